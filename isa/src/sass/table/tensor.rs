//! Tensor cores.

use super::slots::*;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Sign, Slot};
use crate::sass::instruction::{register, register_source};
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

/// A matrix in registers, stored by rows or by columns.
fn with_layout(word: Word, low: u8, negate: u8, column: u8) -> String {
    let sign = if word.bit(negate) { "-" } else { "" };
    format!("{sign}{}{}", register_source(word, low, true), if word.bit(column) { ".COL" } else { ".ROW" })
}

const A: Operand = at(Slot::Register(24, |word| with_layout(word, 24, 72, 73), 1 << 72 | 1 << 73));
const B: Operand = at(Slot::Register(32, |word| with_layout(word, 32, 63, 74), 1 << 63 | 1 << 74));
const C: Operand = at(Slot::Register(64, |word| register_source(word, 64, true), 0));

/// Matrices of integers are stored in one way alone.
const ROWS: Operand = at(Slot::Register(24, |word| format!("{}.ROW", register_source(word, 24, true)), 0));
const COLUMNS: Operand = at(Slot::Register(32, |word| format!("{}.COL", register_source(word, 32, true)), 0));
const BY_COLUMNS: &[(Field, u64)] = &[(Field::new(74, 1), 1)];

/// Bytes or four bits, each matrix signed or not.
fn integer_matrices(word: Word) -> Option<&'static str> {
    let types = usize::from(word.bit(76)) + 2 * usize::from(word.bit(78));
    match (word.bits(83, 3), word.bit(77) || word.bit(79)) {
        (0, false) => Some([".8816.U8.U8", ".8816.S8.U8", ".8816.U8.S8", ".8816.S8.S8"][types]),
        (7, false) => Some([".8832.U4.U4", ".8832.S4.U4", ".8832.U4.S4", ".8832.S4.S4"][types]),
        _ => None,
    }
}

pub(super) const ENCODINGS: &[Encoding] = &[
    // Volta: a quarter of the product of 8x8x4 matrices of each group of eight lanes.
    Encoding::new(
        Opcode::Hmma,
        &[0x236],
        &[
            Modifier::Function(|word| (!word.bit(75)).then_some(".884"), 1 << 75),
            Modifier::Choice2(Field::new(76, 1), Field::new(78, 1), &[".F16.F16", ".F32.F16", NO_SUCH, ".F32.F32"]),
            Modifier::Choice2(Field::new(79, 1), Field::new(80, 1), &[".STEP0", ".STEP1", ".STEP2", ".STEP3"]),
            flag(77, ".SATFINITE"),
        ],
        &[RD, A, B, C],
    ),
    // Turing: the product of a whole warp.
    Encoding::new(
        Opcode::Hmma,
        &[0x23c],
        &[
            Modifier::Choice2(Field::new(78, 1), Field::new(75, 1), &[".1688", ".1684", NO_SUCH, NO_SUCH]),
            choice(76, 1, &[".F16", ".F32"]),
            flag(77, ".SATFINITE"),
        ],
        &[RD, a(Sign::Negate), at(Slot::Source(32, Sign::Negate)), C],
    )
    .since(75),
    Encoding::new(
        Opcode::Imma,
        &[0x237],
        &[Modifier::Function(integer_matrices, Field::new(76, 4).mask() | Field::new(83, 3).mask()), flag(82, ".SAT")],
        &[RD, ROWS, COLUMNS, C],
    )
    .fixed(BY_COLUMNS)
    .since(75),
    Encoding::new(Opcode::Bmma, &[0x23d], &[Modifier::Text(".88128.XOR.POPC")], &[RD, ROWS, COLUMNS, C])
        .fixed(&[(Field::new(74, 1), 1), (Field::new(80, 1), 1)])
        .since(75),
    Encoding::new(
        Opcode::Movm,
        &[0x23a],
        &[Modifier::Text(".16.MT88")],
        &[RD, at(Slot::Register(24, |word| register(word.bits(24, 8)), 0))],
    )
    .since(75),
];
