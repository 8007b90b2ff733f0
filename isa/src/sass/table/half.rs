//! Half-precision arithmetic: two values in a register, each source with a choice of its halves.

use super::slots::*;
use crate::sass::encoding::{Encoding, Immediate, Modifier, Operand, Place, Slot};
use crate::sass::instruction::{immediate_text, register_source, source_at};
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

/// The part of a source that is used: its two halves, the register as a single, its lower or its upper half twice.
const HALVES: [&str; 4] = ["", ".F32", ".H0_H0", ".H1_H1"];

/// The first source: halves in bits 74 and 75.
const A: Operand = at(Slot::Register(
    24,
    |word| with_halves(&register_source(word, 24, false), word.bit(72), word.bit(73), word.bits(74, 2)),
    Field::new(72, 4).mask(),
));

/// The operand in bits 32 to 63: the second source, or the third.
fn exchanged(word: Word) -> String {
    let Some(place) = Place::exchanged(word) else { return String::new() };
    let (is_negated, is_absolute, halves) = (word.bit(63), word.bit(62), word.bits(60, 2));
    match source_at(word, place, has_three_registers(word)) {
        None => immediate_text(word.bits(32, 32) as u32, Immediate::Halves),
        // Here the bars stand around the choice of halves.
        Some(text) if place == Place::Constant => {
            with_halves(&format!("{text}{}", HALVES[halves as usize]), is_negated, is_absolute, 0)
        }
        Some(text) => with_halves(&text, is_negated, is_absolute, halves),
    }
}

/// The other one: a register in bits 64 to 71, its halves in bits 81 and 82.
fn register_c(word: Word) -> String {
    with_halves(&register_source(word, 64, has_three_registers(word)), word.bit(84), word.bit(83), word.bits(81, 2))
}

fn with_halves(text: &str, is_negated: bool, is_absolute: bool, halves: u64) -> String {
    let sign = if is_negated { "-" } else { "" };
    let (name, kept) = text.strip_suffix(".reuse").map_or((text, ""), |name| (name, ".reuse"));
    let bars = if is_absolute { "|" } else { "" };
    format!("{sign}{bars}{name}{bars}{kept}{}", HALVES[halves as usize])
}

/// Sign and halves of the operand in bits 32 to 63.
const EXCHANGED: u128 = Field::new(60, 4).mask();
const OF_C: u128 = Field::new(81, 4).mask();

/// Has a multiply-add registers alone?
fn has_three_registers(word: Word) -> bool {
    word.code() == 0x231
}

/// The second source of three.
const B: Operand =
    at(Slot::Exchanged(|word| if is_turned(word) { register_c(word) } else { exchanged(word) }, EXCHANGED));
/// The third of three.
const C: Operand =
    at(Slot::Register(64, |word| if is_turned(word) { exchanged(word) } else { register_c(word) }, OF_C));
/// The second of two.
const OTHER: Operand = at(Slot::Exchanged(exchanged, EXCHANGED));

const SINGLE_RESULT: Modifier = flag(78, ".F32");
const COMPARISON: Modifier = choice(76, 4, COMPARISONS);
const BOOLEAN_69: Modifier = choice(69, 2, BOOLEANS);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Hadd2, all_forms!(0x030), &[SINGLE_RESULT, FLUSH, SATURATE], &[RD, A, OTHER]),
    Encoding::new(Opcode::Hmul2, all_forms!(0x032), &[SINGLE_RESULT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, OTHER]),
    Encoding::new(Opcode::Hfma2, all_forms!(0x031), &[SINGLE_RESULT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, B, C]),
    Encoding::new(
        Opcode::Hsetp2,
        all_forms!(0x034),
        &[COMPARISON, FLUSH, flag(71, ".H_AND"), BOOLEAN_69],
        &[PD, PD2, A, OTHER, PS],
    ),
    Encoding::new(
        Opcode::Hset2,
        all_forms!(0x033),
        &[flag(71, ".BF"), COMPARISON, FLUSH, BOOLEAN_69],
        &[RD, A, OTHER, PS],
    ),
];
