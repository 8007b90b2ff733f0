//! How an encoding is described: the codes that it has, the modifiers of its name, its operands, each with the bits that it lies in.
//!
//! Whoever asks what an instruction does, asks by names: for a modifier by its [`Aspect`], for an operand by its place among the operands of
//! its kind (`view.rs`). No bit is named anywhere else.
//!
//! **Invariant:** every bit of a word belongs to something. A bit that no part of an encoding claims must be zero, so that a variant
//! that the tables do not know is refused rather than taken for another one.

use super::aspect::Aspect;
use super::opcode::Opcode;
use super::slot::Slot;
pub use super::word::NO_SUCH;
use super::word::{ControlWord, Field, Word, named};
use std::ops::RangeInclusive;

/// One encoding of an opcode.
#[derive(Debug)]
pub struct Encoding {
    /// Its opcode.
    pub opcode: Opcode,
    /// Bits 0 to 11, one code for each operand form.
    pub codes: &'static [u16],
    /// The words behind the name, in the order of the text.
    pub(super) modifiers: &'static [Modifier],
    /// In the order of the text.
    pub(super) operands: &'static [Operand],
    /// Bits that have a value other than zero in every word, and no text.
    pub(super) fixed: &'static [(Field, u64)],
    /// Bits that say nothing, set by the assembler or not.
    pub(super) ignored: u128,
    /// The first architecture that has it: 75 for sm_75.
    pub since: u32,
    /// The last one.
    pub until: u32,
    /// Its guard is a uniform predicate.
    pub(super) has_uniform_guard: bool,
}

impl Encoding {
    /// An encoding of all architectures from sm_70 on.
    pub const fn new(
        opcode: Opcode,
        codes: &'static [u16],
        modifiers: &'static [Modifier],
        operands: &'static [Operand],
    ) -> Encoding {
        Encoding {
            opcode,
            codes,
            modifiers,
            operands,
            fixed: &[],
            ignored: 0,
            since: 70,
            until: u32::MAX,
            has_uniform_guard: false,
        }
    }

    /// One of the uniform datapath, which sm_75 has first: its guard is a uniform predicate.
    pub const fn uniform(
        opcode: Opcode,
        codes: &'static [u16],
        modifiers: &'static [Modifier],
        operands: &'static [Operand],
    ) -> Encoding {
        Encoding { since: 75, has_uniform_guard: true, ..Encoding::new(opcode, codes, modifiers, operands) }
    }

    /// The same with bits that are always set.
    pub const fn fixed(self, fixed: &'static [(Field, u64)]) -> Encoding {
        Encoding { fixed, ..self }
    }

    /// The same with bits that say nothing.
    pub const fn ignoring(self, low: u8, width: u8) -> Encoding {
        Encoding { ignored: self.ignored | Field::new(low, width).mask(), ..self }
    }

    /// The same from an architecture on.
    pub const fn since(self, since: u32) -> Encoding {
        Encoding { since, ..self }
    }

    /// The same up to an architecture.
    pub const fn until(self, until: u32) -> Encoding {
        Encoding { until, ..self }
    }

    /// The same from an architecture up to another one.
    pub const fn between(self, since: u32, until: u32) -> Encoding {
        Encoding { since, until, ..self }
    }

    /// The architectures that have it.
    pub fn architectures(&self) -> RangeInclusive<u32> {
        self.since..=self.until
    }

    /// Is its guard a uniform predicate?
    pub fn has_uniform_guard(&self) -> bool {
        self.has_uniform_guard
    }

    /// Has it a modifier that says this?
    pub fn has(&self, aspect: Aspect) -> bool {
        self.modifiers.iter().any(|modifier| modifier.aspect == aspect)
    }

    /// What its modifiers say.
    pub fn aspects(&self) -> impl Iterator<Item = Aspect> {
        self.modifiers.iter().map(|modifier| modifier.aspect).filter(|aspect| *aspect != Aspect::Name)
    }

    /// The operands that a word has, shown or not, in the order of the text.
    pub(super) fn operands(&self, word: Word) -> impl Iterator<Item = &'static Operand> {
        let is_absent = move |operand: &&Operand| match operand.shown {
            Shown::Present(is_present) | Shown::PresentWhere(is_present, _) => !is_present(word),
            _ => false,
        };
        self.operands.iter().filter(move |operand| !is_absent(operand))
    }

    /// Is a word of one of its codes an instruction of this encoding? Every bit has to be accounted for, and every modifier has to be
    /// one that exists.
    pub fn accepts(&self, word: Word) -> bool {
        let mut known = COMMON | self.ignored;
        for modifier in self.modifiers {
            if modifier.text(word).is_none() {
                return false;
            }
            known |= modifier.mask();
        }
        for operand in self.operands(word) {
            let Some(mask) = operand.slot.mask(word) else { return false };
            known |= mask;
        }
        for &(field, value) in self.fixed {
            if word.field(field) != value {
                return false;
            }
            known |= field.mask();
        }
        word.0 & !known == 0
    }
}

/// Opcode, form, guard and control word.
const COMMON: u128 = Field::new(0, 16).mask() | ControlWord::FIELD.mask();

/// Something that is appended to the name.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// What it says.
    pub aspect: Aspect,
    /// Where its bits are, and its texts.
    pub form: ModifierForm,
}

/// The bits of a modifier, and their texts.
#[derive(Clone, Copy, Debug)]
pub enum ModifierForm {
    /// A part of the name that every word has.
    Text(&'static str),
    /// A bit and its text where it is set.
    Flag(u8, &'static str),
    /// A field and the text of each of its values; [`NO_SUCH`] where there is no such variant.
    Choice(Field, &'static [&'static str]),
    /// Two fields, the lower half of the value first.
    Choice2(Field, Field, &'static [&'static str]),
    /// The result of a function of the word, from the bits of a mask; `None` where there is no such variant.
    Function(fn(Word) -> Option<&'static str>, u128),
}

impl Modifier {
    /// Its text; `None` where there is no such variant.
    pub fn text(&self, word: Word) -> Option<&'static str> {
        match self.form {
            ModifierForm::Text(name) => Some(name),
            ModifierForm::Flag(bit, name) => Some(if word.bit(bit) { name } else { "" }),
            ModifierForm::Choice(field, names) => named(names, word.field(field)),
            ModifierForm::Choice2(low, high, names) => named(names, word.fields(low, high)),
            ModifierForm::Function(function, _) => function(word),
        }
    }

    /// Its place among its texts; 1 for a bit that is set.
    pub fn value(&self, word: Word) -> u64 {
        match self.form {
            ModifierForm::Text(_) | ModifierForm::Function(..) => 0,
            ModifierForm::Flag(bit, _) => u64::from(word.bit(bit)),
            ModifierForm::Choice(field, _) => word.field(field),
            ModifierForm::Choice2(low, high, _) => word.fields(low, high),
        }
    }

    /// Its bits.
    pub const fn mask(&self) -> u128 {
        match self.form {
            ModifierForm::Text(_) => 0,
            ModifierForm::Flag(bit, _) => 1 << bit,
            ModifierForm::Choice(field, _) => field.mask(),
            ModifierForm::Choice2(low, high, _) => low.mask() | high.mask(),
            ModifierForm::Function(_, mask) => mask,
        }
    }
}

/// An operand: where it lies, and when it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Its place.
    pub slot: Slot,
    /// When the text has it.
    pub shown: Shown,
    /// What stands before it, where it is not the first.
    pub separator: &'static str,
}

impl Operand {
    /// One that the text always has.
    pub const fn new(slot: Slot) -> Operand {
        Operand { slot, shown: Shown::Always, separator: ", " }
    }

    /// The same, joined to the one before by a space.
    pub const fn joined(self) -> Operand {
        Operand { separator: " ", ..self }
    }

    /// The same, with nothing between it and the one before.
    pub const fn attached(self) -> Operand {
        Operand { separator: "", ..self }
    }

    /// The same, shown under a condition.
    pub const fn shown(self, shown: Shown) -> Operand {
        Operand { shown, ..self }
    }
}

/// When an operand is in the text.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Always.
    Always,
    /// Unless the predicate at this bit is PT.
    UnlessTrue(u8),
    /// Where this bit is set.
    If(u8),
    /// Where the register at this bit is not RZ.
    UnlessZero(u8),
    /// Where a function says so.
    Where(fn(Word) -> bool),
    /// Where a function says so; elsewhere the word has no such operand.
    Present(fn(Word) -> bool),
    /// The word has it where the first function says so, and the text where the second does, too.
    PresentWhere(fn(Word) -> bool, fn(Word) -> bool),
}

impl Shown {
    /// Is it in the text of this word?
    pub fn is_shown(self, word: Word) -> bool {
        match self {
            Shown::Always => true,
            Shown::UnlessTrue(low) => word.bits(low, 3) != 7,
            Shown::If(bit) => word.bit(bit),
            Shown::UnlessZero(low) => word.bits(low, 8) != 255,
            Shown::Where(function) | Shown::Present(function) => function(word),
            Shown::PresentWhere(is_present, is_shown) => is_present(word) && is_shown(word),
        }
    }
}
