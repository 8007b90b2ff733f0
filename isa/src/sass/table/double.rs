//! Double-precision arithmetic.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign};
use crate::sass::word::Word;

const DOUBLE: Immediate = Immediate::DoubleHigh;
const FLOAT: Sign = Sign::NegateAbsolute;

/// The addend is in place C, or where the form has an immediate, a constant or a uniform register in place B, there.
const ADDEND_B: Operand = b(DOUBLE, FLOAT).shown(Shown::Present(has_addend_in_b));
const ADDEND_C: Operand = c(DOUBLE, FLOAT).shown(Shown::Present(|word| !has_addend_in_b(word)));

fn has_addend_in_b(word: Word) -> bool {
    matches!(word.form(), 4..=6)
}

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Dfma, all_forms!(0x02b), &[ROUNDING], &[RD, a(FLOAT), b(DOUBLE, FLOAT), c(DOUBLE, FLOAT)]),
    Encoding::new(Opcode::Dadd, all_forms!(0x029), &[ROUNDING], &[RD, a(FLOAT), ADDEND_B, ADDEND_C]),
    Encoding::new(Opcode::Dmul, second_forms!(0x028), &[ROUNDING], &[RD, a(FLOAT), b(DOUBLE, FLOAT)]),
    Encoding::new(
        Opcode::Dsetp,
        all_forms!(0x02a),
        &[
            choice(
                Aspect::Comparison,
                76,
                4,
                &[
                    ".MIN", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU",
                    ".NEU", ".GEU", ".MAX",
                ],
            ),
            BOOLEAN,
        ],
        &[PD, PD2, a(FLOAT), other(DOUBLE, FLOAT), PS],
    ),
];
