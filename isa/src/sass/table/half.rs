//! Half-precision arithmetic: two values in a register, each source with a choice of its halves.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, Operand};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Role, Sign, SourcePlace, Suffix};

const fn half(place: SourcePlace) -> Operand {
    source(place, Immediate::Halves, Sign::NegateAbsolute, Suffix::Halves)
}

const A: Operand = half(SourcePlace::Register(24));
/// The second source of three.
const B: Operand = half(SourcePlace::Role(Role::B));
/// The third of three.
const C: Operand = half(SourcePlace::Role(Role::C));
/// The second of two.
const OTHER: Operand = half(SourcePlace::Exchanged);

const SINGLE_RESULT: Modifier = flag(Aspect::SingleResult, 78, ".F32");
const COMPARISON: Modifier = choice(Aspect::Comparison, 76, 4, COMPARISONS);
const BOOLEAN_69: Modifier = choice(Aspect::Boolean, 69, 2, BOOLEANS);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Hadd2, all_forms!(0x030), &[SINGLE_RESULT, FLUSH, SATURATE], &[RD, A, OTHER]),
    Encoding::new(Opcode::Hmul2, all_forms!(0x032), &[SINGLE_RESULT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, OTHER]),
    Encoding::new(Opcode::Hfma2, all_forms!(0x031), &[SINGLE_RESULT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, B, C]),
    Encoding::new(
        Opcode::Hsetp2,
        all_forms!(0x034),
        &[COMPARISON, FLUSH, flag(Aspect::BothHalves, 71, ".H_AND"), BOOLEAN_69],
        &[PD, PD2, A, OTHER, PS],
    ),
    Encoding::new(
        Opcode::Hset2,
        all_forms!(0x033),
        &[flag(Aspect::BooleanFloat, 71, ".BF"), COMPARISON, FLUSH, BOOLEAN_69],
        &[RD, A, OTHER, PS],
    ),
];
