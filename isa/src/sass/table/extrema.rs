//! Sums and extrema of integers, which may be pairs of halves, on Hopper.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign};

const TYPE: Modifier = choice(Aspect::Type, 72, 2, &[".U32", "", ".U16x2", ".S16x2"]);
const RELU: Modifier = flag(Aspect::Relu, 76, ".RELU");
/// Whether the minimum is taken: else the maximum.
const IS_MINIMUM: Operand = PS;
const BITS: Immediate = Immediate::Bits;

/// The predicates of a choice, for each half of a pair: whether the first source was taken. There are both, or none.
const CHOSEN: [Operand; 2] = [PD_IF_ANY, PD2.shown(Shown::UnlessTrue(81))];
const BOTH_OR_NONE: Modifier =
    function(Aspect::Name, |word| ((word.bits(81, 3) == 7) == (word.bits(84, 3) == 7)).then_some(""), 0);

pub(super) const ENCODINGS: &[Encoding] = &[
    // A product of polynomials of bits, and a sum.
    Encoding::new(
        Opcode::Clmad,
        &[0x22c, 0x62c, 0xa2c, 0xc2c, 0xe2c],
        &[choice(Aspect::High, 77, 1, &[".LO", ".HI"])],
        &[RD, RA, b(BITS, Sign::None), c(BITS, Sign::None)],
    )
    .since(80),
    Encoding::new(
        Opcode::Viadd,
        second_forms!(0x036),
        &[flag(Aspect::Type, 73, ".16x2")],
        &[RD, RA, b(BITS, Sign::Negate)],
    )
    .since(90),
    Encoding::new(
        Opcode::Viaddmnmx,
        all_forms!(0x046),
        &[TYPE, RELU],
        &[RD, RA, b(BITS, Sign::Negate), c(BITS, Sign::None), IS_MINIMUM],
    )
    .since(90),
    Encoding::new(
        Opcode::Vimnmx,
        second_forms!(0x048),
        &[TYPE, RELU, BOTH_OR_NONE],
        &[RD, CHOSEN[0], CHOSEN[1], RA, b(Immediate::Signed, Sign::None), IS_MINIMUM],
    )
    .since(90),
    Encoding::new(
        Opcode::Vimnmx3,
        second_forms!(0x00f),
        &[TYPE, RELU],
        &[RD, RA, b(BITS, Sign::None), c(BITS, Sign::None), IS_MINIMUM],
    )
    .since(90),
];
