//! Tensor cores.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, NO_SUCH, Operand};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, SourcePlace, Suffix};
use crate::sass::word::{Field, Word};

/// A matrix in registers, stored by rows or by columns, as a bit says.
const fn matrix(low: u8, layout: fn(Word) -> &'static [&'static str], column: u8) -> Operand {
    source(SourcePlace::Register(low), Immediate::Bits, Sign::Negate, Suffix::Part(Field::new(column, 1), layout))
}

/// A matrix that is stored in one way.
const fn stored(low: u8, layout: &'static str) -> Operand {
    source(SourcePlace::Register(low), Immediate::Bits, Sign::None, Suffix::Fixed(layout))
}

const A: Operand = matrix(24, |_| LAYOUTS, 73);
const B: Operand = matrix(32, |_| LAYOUTS, 74);
const LAYOUTS: &[&str] = &[".ROW", ".COL"];

/// Matrices of integers are stored in one way alone.
const ROWS: Operand = stored(24, ".ROW");
const COLUMNS: Operand = stored(32, ".COL");
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
        Opcode::HmmaStep,
        &[0x236],
        &[
            function(Aspect::Shape, |word| (!word.bit(75)).then_some(".884"), 1 << 75),
            choice_2(
                Aspect::Type,
                Field::new(76, 1),
                Field::new(78, 1),
                &[".F16.F16", ".F32.F16", NO_SUCH, ".F32.F32"],
            ),
            choice_2(Aspect::Step, Field::new(79, 1), Field::new(80, 1), &[".STEP0", ".STEP1", ".STEP2", ".STEP3"]),
            flag(Aspect::Saturate, 77, ".SATFINITE"),
        ],
        &[RD, A, B, RC],
    ),
    // Turing: the product of a whole warp.
    Encoding::new(
        Opcode::Hmma,
        &[0x23c],
        &[
            choice_2(Aspect::Shape, Field::new(78, 1), Field::new(75, 1), &[".1688", ".1684", NO_SUCH, NO_SUCH]),
            choice(Aspect::Type, 76, 1, &[".F16", ".F32"]),
            flag(Aspect::Saturate, 77, ".SATFINITE"),
        ],
        &[RD, a(Sign::Negate), register(32, Sign::Negate), RC],
    )
    .since(75),
    Encoding::new(
        Opcode::Imma,
        &[0x237],
        &[
            function(Aspect::Shape, integer_matrices, Field::new(76, 4).mask() | Field::new(83, 3).mask()),
            flag(Aspect::Saturate, 82, ".SAT"),
        ],
        &[RD, ROWS, COLUMNS, RC],
    )
    .fixed(BY_COLUMNS)
    .since(75),
    Encoding::new(Opcode::Bmma, &[0x23d], &[text(".88128.XOR.POPC")], &[RD, ROWS, COLUMNS, RC])
        .fixed(&[(Field::new(74, 1), 1), (Field::new(80, 1), 1)])
        .since(75),
    Encoding::new(Opcode::Movm, &[0x23a], &[text(".16.MT88")], &[RD, RA]).since(75),
];
