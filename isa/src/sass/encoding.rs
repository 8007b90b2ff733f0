//! How an encoding is described: the codes that it has, the modifiers of its name, its operands, each with the bits that it lies in.
//!
//! **Invariant:** every bit of a word belongs to something. A bit that no part of an encoding claims must be zero, so that a variant
//! that the tables do not know is refused rather than taken for another one.

use super::opcode::Opcode;
use super::word::{ControlWord, Field, Word};

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
        Encoding { opcode, codes, modifiers, operands, fixed: &[], ignored: 0, since: 70, has_uniform_guard: false }
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

    /// Is its guard a uniform predicate?
    pub fn has_uniform_guard(&self) -> bool {
        self.has_uniform_guard
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
        let is_absent = |operand: &&Operand| matches!(operand.shown, Shown::Present(function) if !function(word));
        for operand in self.operands.iter().filter(|operand| !is_absent(operand)) {
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
pub enum Modifier {
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

/// The text of a value that no variant has.
pub const NO_SUCH: &str = "?";

impl Modifier {
    /// Its text; `None` where there is no such variant.
    pub fn text(&self, word: Word) -> Option<&'static str> {
        let of = |names: &'static [&'static str], value: u64| {
            names.get(value as usize).copied().filter(|name| *name != NO_SUCH)
        };
        match *self {
            Modifier::Text(name) => Some(name),
            Modifier::Flag(bit, name) => Some(if word.bit(bit) { name } else { "" }),
            Modifier::Choice(field, names) => of(names, word.field(field)),
            Modifier::Choice2(low, high, names) => of(names, word.field(low) | word.field(high) << low.width),
            Modifier::Function(function, _) => function(word),
        }
    }

    /// Its bits.
    pub const fn mask(&self) -> u128 {
        match *self {
            Modifier::Text(_) => 0,
            Modifier::Flag(bit, _) => 1 << bit,
            Modifier::Choice(field, _) => field.mask(),
            Modifier::Choice2(low, high, _) => low.mask() | high.mask(),
            Modifier::Function(_, mask) => mask,
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
    /// No comma stands before it.
    pub is_joined: bool,
}

impl Operand {
    /// One that the text always has.
    pub const fn new(slot: Slot) -> Operand {
        Operand { slot, shown: Shown::Always, is_joined: false }
    }

    /// The same, joined to the one before by a space.
    pub const fn joined(self) -> Operand {
        Operand { is_joined: true, ..self }
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
        }
    }
}

/// The signs before a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing.
    None,
    /// It may be negated.
    Negate,
    /// It may be negated, and its absolute value taken.
    NegateAbsolute,
    /// It may be negated; with the carry (bit 74), inverted instead.
    NegateOrInvert,
    /// It may be inverted.
    Invert,
}

/// How an immediate is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    /// A signed number.
    Signed,
    /// Bits.
    Bits,
    /// A single.
    Single,
    /// The upper half of a double.
    DoubleHigh,
    /// A half, in the lower 16 bits.
    Half,
    /// Two halves.
    Halves,
}

/// Which operand of an instruction with exchangeable forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The second source.
    B,
    /// The third.
    C,
}

/// Where a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A general register, by its lowest bit: 24, 32 or 64.
    Register(u8),
    /// Bits 32 to 63.
    Immediate,
    /// A constant: its offset in words from bit 40 on, its bank from bit 54 on.
    Constant,
    /// A uniform register, from bit 32 on.
    Uniform,
}

impl Place {
    /// Where the form of a word puts a source; `None` in forms without one.
    pub fn of(role: Role, word: Word) -> Option<Place> {
        Some(match (word.code() >> 9, role) {
            (1, Role::B) => Place::Register(32),
            (2 | 3 | 7, Role::B) | (1 | 4 | 5 | 6, Role::C) => Place::Register(64),
            (2, Role::C) | (4, Role::B) => Place::Immediate,
            (3, Role::C) | (5, Role::B) => Place::Constant,
            (6, Role::B) | (7, Role::C) => Place::Uniform,
            _ => return None,
        })
    }

    /// The bits that negate (or invert) it and take its absolute value.
    pub const fn sign_bits(self) -> (u8, u8) {
        match self {
            Place::Register(24) => (72, 73),
            Place::Register(64) => (75, 74),
            _ => (63, 62),
        }
    }

    /// The operand in bits 32 to 63 of the form.
    pub fn exchanged(word: Word) -> Option<Place> {
        let is_there = |place: &Place| *place != Place::Register(64);
        Place::of(Role::B, word).filter(is_there).or_else(|| Place::of(Role::C, word))
    }

    /// Its bits without its sign; `None` where they do not fit together.
    fn mask(self, word: Word) -> Option<u128> {
        Some(match self {
            Place::Register(low) => Field::new(low, 8).mask(),
            Place::Immediate => Field::new(32, 32).mask(),
            Place::Constant => Field::new(40, 19).mask(),
            Place::Uniform if !word.bit(UNIFORM_FLAG) => return None,
            Place::Uniform => Field::new(32, 6).mask() | 1 << UNIFORM_FLAG,
        })
    }
}

/// A constant's bank, and its offset in bytes, for loads of constants.
const CONSTANT_BYTE: Field = Field::new(38, 21);
/// Set where a source is a uniform register.
pub const UNIFORM_FLAG: u8 = 91;

/// How a memory instruction forms its address.
#[derive(Clone, Copy, Debug)]
pub struct AddressForm {
    /// The signed number that is added.
    pub offset: Field,
    /// The uniform register that is added, by its lowest bit, where the instruction has one.
    pub uniform: Option<u8>,
    /// For addresses with a uniform register: how many bits of the general one are added to it.
    pub width: RegisterWidth,
    /// The register may be scaled by bits 78 and 79.
    pub has_scale: bool,
}

/// How many bits of a general register are added to a uniform one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterWidth {
    /// It is not said: addresses of shared and local memory have 32.
    Unsaid,
    /// 64 where bit 90 is set, 32 otherwise.
    Bit90,
    /// 64.
    Wide,
}

/// An operand's kind and place.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// A general register that is written.
    Destination(u8),
    /// A general register that is read.
    Source(u8, Sign),
    /// A source whose form the opcode says.
    Flexible(Role, Immediate, Sign),
    /// A uniform register that is written.
    UniformDestination(u8),
    /// A uniform register that is read; its sign bits are the sign bits of a general one.
    UniformSource(u8, Sign),
    /// A predicate that is written.
    Predicate(u8),
    /// A predicate that is read; the bit above inverts it.
    PredicateSource(u8),
    /// A predicate that is read, its number inverted, so that no bit is set of PT; the bit above inverts the predicate.
    InvertedPredicateSource(u8),
    /// A uniform predicate that is written.
    UniformPredicate(u8),
    /// A uniform predicate that is read.
    UniformPredicateSource(u8),
    /// A predicate that is read, uniform where bit 67 is set (at bit 68).
    EitherPredicateSource,
    /// A number.
    Number(Field),
    /// A signed number.
    SignedNumber(Field),
    /// A number in two fields, the lower half first.
    Number2(Field, Field),
    /// An address.
    Address(AddressForm),
    /// A constant whose offset a general register gives.
    IndexedConstant,
    /// A constant whose offset a uniform register gives.
    UniformIndexedConstant,
    /// A constant (bits 38 to 58).
    Constant,
    /// A special register.
    Special,
    /// A convergence barrier of the warp.
    ConvergenceBarrier(u8),
    /// A scoreboard.
    Scoreboard(Field),
    /// Scoreboards in braces, a bit each; not shown where there is none.
    Scoreboards(Field),
    /// An instruction, relative to the next one, in units of four bytes.
    Target(Field),
    /// As `Target`, absolute where bit 85 is set.
    ReturnTarget(Field),
    /// All predicates.
    AllPredicates,
    /// All uniform predicates.
    AllUniformPredicates,
    /// A general register that is read, by its lowest bit; a function writes it, with further bits.
    Register(u8, fn(Word) -> String, u128),
    /// A uniform register that is read, by its lowest bit; a function writes it.
    UniformRegister(u8, fn(Word) -> String),
    /// Something that a function writes, from the bits of a mask.
    Function(fn(Word) -> String, u128),
    /// The source in bits 32 to 63, whatever the form puts there, which a function writes, with further bits where it is no immediate.
    Exchanged(fn(Word) -> String, u128),
    /// The same of the uniform datapath: an immediate, or a uniform register.
    UniformExchanged(fn(Word) -> String, u128),
}

impl Slot {
    /// The bits that it is made of in this word; `None` where the form has no such operand.
    pub fn mask(&self, word: Word) -> Option<u128> {
        let predicate = |low: u8| Field::new(low, 3).mask();
        Some(match *self {
            Slot::Destination(low) => Field::new(low, 8).mask(),
            Slot::Source(low, sign) => Field::new(low, 8).mask() | sign_mask(Place::Register(low), sign),
            Slot::Flexible(role, _, sign) => {
                let place = Place::of(role, word)?;
                // The sign bits of an immediate are its own.
                place.mask(word)? | if place == Place::Immediate { 0 } else { sign_mask(place, sign) }
            }
            Slot::UniformDestination(low) | Slot::UniformRegister(low, _) => Field::new(low, 6).mask(),
            Slot::UniformSource(low, sign) => Field::new(low, 6).mask() | sign_mask(Place::Register(low), sign),
            Slot::Predicate(low) | Slot::UniformPredicate(low) => predicate(low),
            Slot::PredicateSource(low) | Slot::InvertedPredicateSource(low) | Slot::UniformPredicateSource(low) => {
                Field::new(low, 4).mask()
            }
            Slot::EitherPredicateSource => Field::new(67, 5).mask(),
            Slot::Number(field) | Slot::SignedNumber(field) => field.mask(),
            Slot::Target(field) | Slot::ReturnTarget(field) => field.mask(),
            Slot::Scoreboard(field) | Slot::Scoreboards(field) => field.mask(),
            Slot::Number2(low, high) => low.mask() | high.mask(),
            Slot::Address(AddressForm { offset, uniform, width, has_scale }) => {
                if uniform.is_some() && !word.bit(UNIFORM_FLAG) {
                    return None;
                }
                let uniform = uniform.map_or(0, |low| Field::new(low, 6).mask() | 1 << UNIFORM_FLAG);
                let width = if width == RegisterWidth::Bit90 { 1 << 90 } else { 0 };
                let scale = if has_scale { Field::new(78, 2).mask() } else { 0 };
                Field::new(24, 8).mask() | offset.mask() | uniform | width | scale
            }
            Slot::IndexedConstant => Field::new(24, 8).mask() | CONSTANT_BYTE.mask(),
            Slot::UniformIndexedConstant => Field::new(24, 6).mask() | CONSTANT_BYTE.mask() | 1 << UNIFORM_FLAG,
            Slot::Constant => CONSTANT_BYTE.mask(),
            Slot::Special => Field::new(72, 8).mask(),
            Slot::ConvergenceBarrier(low) => Field::new(low, 4).mask(),
            Slot::AllPredicates | Slot::AllUniformPredicates => 0,
            Slot::Register(low, _, further) => Field::new(low, 8).mask() | further,
            Slot::Function(_, mask) => mask,
            Slot::UniformExchanged(_, further) => match (word.code() >> 9, word.bit(UNIFORM_FLAG)) {
                // A move of an immediate is the one instruction without the flag.
                (4, has_flag) if has_flag == (word.code() == 0x882) => return None,
                (2 | 4, true) | (4, false) => Field::new(32, 32).mask() | 1 << UNIFORM_FLAG,
                (1 | 6, true) => Field::new(32, 6).mask() | 1 << UNIFORM_FLAG | further,
                _ => return None,
            },
            Slot::Exchanged(_, further) => {
                let place = Place::exchanged(word)?;
                place.mask(word)? | if place == Place::Immediate { 0 } else { further }
            }
        })
    }
}

/// The bits of a sign at a place.
fn sign_mask(place: Place, sign: Sign) -> u128 {
    let (negate, absolute) = place.sign_bits();
    match sign {
        Sign::None => 0,
        Sign::Negate | Sign::Invert | Sign::NegateOrInvert => 1 << negate,
        Sign::NegateAbsolute => 1 << negate | 1 << absolute,
    }
}
