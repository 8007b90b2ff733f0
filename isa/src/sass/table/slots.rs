//! Operands and modifiers that many encodings share.

use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Modifier, ModifierForm, NO_SUCH, Operand, Shown};
use crate::sass::slot::{Immediate, Role, Sign, Slot, SourcePlace, SourceSlot, Suffix};
use crate::sass::word::{Field, Word};

/// The codes of an opcode in all forms with three sources: RRR, RRI, RRC, RIR, RCR, RUR, RRU.
macro_rules! all_forms {
    ($opcode:literal) => {
        &[
            $opcode | 0x200,
            $opcode | 0x400,
            $opcode | 0x600,
            $opcode | 0x800,
            $opcode | 0xa00,
            $opcode | 0xc00,
            $opcode | 0xe00,
        ]
    };
}
/// The codes of an opcode whose second source alone is exchangeable: register, immediate, constant, uniform register.
macro_rules! second_forms {
    ($opcode:literal) => {
        &[$opcode | 0x200, $opcode | 0x800, $opcode | 0xa00, $opcode | 0xc00]
    };
}
/// As `second_forms!`, for the uniform datapath: register and immediate.
macro_rules! uniform_forms {
    ($opcode:literal) => {
        &[$opcode | 0x200, $opcode | 0x800]
    };
}
pub(super) use {all_forms, second_forms, uniform_forms};

/// A part of the name that every word has.
pub(super) const fn text(text: &'static str) -> Modifier {
    Modifier { aspect: Aspect::Name, form: ModifierForm::Text(text) }
}

/// A bit with a text.
pub(super) const fn flag(aspect: Aspect, bit: u8, text: &'static str) -> Modifier {
    Modifier { aspect, form: ModifierForm::Flag(bit, text) }
}

/// A field with the texts of its values.
pub(super) const fn choice(aspect: Aspect, low: u8, width: u8, texts: &'static [&'static str]) -> Modifier {
    Modifier { aspect, form: ModifierForm::Choice(Field::new(low, width), texts) }
}

/// Two fields with the texts of their values, the lower half first.
pub(super) const fn choice_2(aspect: Aspect, low: Field, high: Field, texts: &'static [&'static str]) -> Modifier {
    Modifier { aspect, form: ModifierForm::Choice2(low, high, texts) }
}

/// A text that a function finds, from the bits of a mask.
pub(super) const fn function(aspect: Aspect, function: fn(Word) -> Option<&'static str>, mask: u128) -> Modifier {
    Modifier { aspect, form: ModifierForm::Function(function, mask) }
}

/// An operand that is always shown.
pub(super) const fn at(slot: Slot) -> Operand {
    Operand::new(slot)
}

/// A number in a field.
pub(super) const fn number(low: u8, width: u8) -> Operand {
    at(Slot::Number(Field::new(low, width)))
}

/// A source.
pub(super) const fn source(place: SourcePlace, immediate: Immediate, sign: Sign, suffix: Suffix) -> Operand {
    at(Slot::Source(SourceSlot { place, immediate, sign, suffix }))
}

/// A general register that is read.
pub(super) const fn register(low: u8, sign: Sign) -> Operand {
    source(SourcePlace::Register(low), Immediate::Bits, sign, Suffix::None)
}

/// A uniform register that is read.
pub(super) const fn uniform(low: u8, sign: Sign) -> Operand {
    source(SourcePlace::Uniform(low), Immediate::Bits, sign, Suffix::None)
}

/// A source in place A.
pub(super) const fn a(sign: Sign) -> Operand {
    register(24, sign)
}

/// The second source, where the form puts it.
pub(super) const fn b(immediate: Immediate, sign: Sign) -> Operand {
    source(SourcePlace::Role(Role::B), immediate, sign, Suffix::None)
}

/// The third source, where the form puts it.
pub(super) const fn c(immediate: Immediate, sign: Sign) -> Operand {
    source(SourcePlace::Role(Role::C), immediate, sign, Suffix::None)
}

/// The one source in bits 32 to 63, whichever role the form puts there.
pub(super) const fn other(immediate: Immediate, sign: Sign) -> Operand {
    source(SourcePlace::Exchanged, immediate, sign, Suffix::None)
}

pub(super) const RD: Operand = at(Slot::Destination(16));
pub(super) const RA: Operand = a(Sign::None);
/// A register in bits 32 to 39.
pub(super) const RB: Operand = register(32, Sign::None);
/// A register in bits 64 to 71.
pub(super) const RC: Operand = register(64, Sign::None);
pub(super) const UD: Operand = at(Slot::UniformDestination(16));
pub(super) const UA: Operand = uniform(24, Sign::None);
pub(super) const UC: Operand = uniform(64, Sign::None);

/// The first predicate that is written.
pub(super) const PD: Operand = at(Slot::Predicate(81));
/// The second.
pub(super) const PD2: Operand = at(Slot::Predicate(84));
/// The first predicate that is written, where it is one.
pub(super) const PD_IF_ANY: Operand = PD.shown(Shown::UnlessTrue(81));
pub(super) const PD2_IF_ANY: Operand = PD2.shown(Shown::UnlessTrue(84));
pub(super) const UPD: Operand = at(Slot::UniformPredicate(81));
pub(super) const UPD2: Operand = at(Slot::UniformPredicate(84));
pub(super) const UPD_IF_ANY: Operand = UPD.shown(Shown::UnlessTrue(81));
pub(super) const UPD2_IF_ANY: Operand = UPD2.shown(Shown::UnlessTrue(84));
/// The first predicate that is read.
pub(super) const PS: Operand = at(Slot::PredicateSource(87));
/// The second.
pub(super) const PS2: Operand = at(Slot::PredicateSource(77));
/// The third.
pub(super) const PS3: Operand = at(Slot::PredicateSource(68));
/// The third, where it is not PT.
pub(super) const PS3_IF_ANY: Operand = PS3.shown(Shown::Where(|word| word.bits(68, 4) != 7));
pub(super) const UPS: Operand = at(Slot::UniformPredicateSource(87));
pub(super) const UPS2: Operand = at(Slot::UniformPredicateSource(77));
pub(super) const UPS3: Operand = at(Slot::UniformPredicateSource(68));
/// The first predicate that is read, where it is not PT.
pub(super) const PS_IF_ANY: Operand = PS.shown(Shown::Where(|word| word.bits(87, 4) != 7));

pub(super) const CARRY: Modifier = flag(Aspect::Carry, 74, ".X");
/// The high part of a shift by an address scale may extend the sign from 32 bits.
pub(super) const EXTENDED_SIGN: Modifier = function(
    Aspect::ExtendedSign,
    |word| match (word.bit(80), word.bit(73)) {
        (_, false) => Some(""),
        (true, true) => Some(".SX32"),
        (false, true) => None,
    },
    1 << 73,
);
pub(super) const FLUSH: Modifier = flag(Aspect::Flush, 80, ".FTZ");
/// Products may flush denormals, or make zero times anything zero, too.
pub(super) const FLUSH_OF_PRODUCT: Modifier =
    choice_2(Aspect::Flush, Field::new(80, 1), Field::new(76, 1), &["", ".FTZ", ".FMZ", NO_SUCH]);
pub(super) const SATURATE: Modifier = flag(Aspect::Saturate, 77, ".SAT");
pub(super) const ROUNDING: Modifier = choice(Aspect::Rounding, 78, 2, &["", ".RM", ".RP", ".RZ"]);
pub(super) const TO_INTEGER: Modifier = choice(Aspect::Rounding, 78, 2, &["", ".FLOOR", ".CEIL", ".TRUNC"]);
/// Without it, an integer operation is unsigned.
pub(super) const UNSIGNED: Modifier = choice(Aspect::Unsigned, 73, 1, &[".U32", ""]);
pub(super) const INTEGER_COMPARISON: Modifier =
    choice(Aspect::Comparison, 76, 3, &[".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".T"]);
pub(super) const COMPARISONS: &[&str] = &[
    ".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU", ".GEU",
    ".T",
];
pub(super) const BOOLEANS: &[&str] = &[".AND", ".OR", ".XOR", NO_SUCH];
pub(super) const BOOLEAN: Modifier = choice(Aspect::Boolean, 74, 2, BOOLEANS);
/// The eviction priority of the line.
pub(super) const EVICTION: Modifier =
    choice(Aspect::Eviction, 84, 3, &[".EF", "", ".EL", ".LU", ".EU", ".NA", NO_SUCH, NO_SUCH]);
pub(super) const SCOPE: Modifier = choice(Aspect::Scope, 77, 2, &[".CTA", ".SM", ".GPU", ".SYS"]);
pub(super) const ORDER: Modifier = choice(Aspect::Order, 79, 2, &[".CONSTANT", "", ".STRONG", ".MMIO"]);
/// The order of atomics.
pub(super) const STRONG: Modifier = choice(Aspect::Order, 79, 2, &[NO_SUCH, "", ".STRONG", NO_SUCH]);
/// The order of stores.
pub(super) const STORE_ORDER: Modifier = choice(Aspect::Order, 79, 2, &[NO_SUCH, "", ".STRONG", ".MMIO"]);
/// Bytes of a memory access.
pub(super) const SIZE: Modifier =
    choice(Aspect::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", ".U.128"]);
/// The same without 128 bits.
pub(super) const SIZE_TO_64: Modifier =
    choice(Aspect::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", NO_SUCH, NO_SUCH]);
/// A 64-bit address.
pub(super) const EXTENDED: Modifier = flag(Aspect::Extended, 72, ".E");

/// Order and scope from Ampere on, as the disassembler names them: one field says both.
pub(super) const LOAD_ORDER: Modifier = choice(
    Aspect::Order,
    77,
    4,
    &[
        "",
        ".CONSTANT",
        ".CONSTANT",
        ".CONSTANT",
        ".CONSTANT",
        ".STRONG",
        ".STRONG",
        ".STRONG",
        ".MMIO",
        ".CONSTANT",
        ".STRONG",
        ".CONSTANT",
        ".MMIO",
        ".CONSTANT",
        ".CONSTANT",
        ".CONSTANT",
    ],
);
pub(super) const LOAD_SCOPE: Modifier = choice(
    Aspect::Scope,
    77,
    4,
    &[
        "",
        ".PRIVATE",
        ".CTA",
        ".CTA.PRIVATE",
        "",
        ".SM",
        ".GPU.PRIVATE",
        ".GPU",
        ".GPU",
        ".SM",
        ".SYS",
        ".SM.PRIVATE",
        ".SYS",
        ".VC",
        ".VC.PRIVATE",
        ".GPU",
    ],
);
/// Those of stores, which know nothing of constants where loads have some of them.
pub(super) const AMPERE_STORE_ORDER: Modifier =
    function(Aspect::Order, |word| store_order(word).map(|[order, _]| order), 0xf << 77);
pub(super) const AMPERE_STORE_SCOPE: Modifier =
    function(Aspect::Scope, |word| store_order(word).map(|[_, scope]| scope), 0xf << 77);

fn store_order(word: Word) -> Option<[&'static str; 2]> {
    match word.bits(77, 4) {
        4 => Some([".STRONG", ".SM.PRIVATE"]),
        _ => Some([LOAD_ORDER.text(word)?, LOAD_SCOPE.text(word)?]),
    }
}
