//! Half-precision arithmetic: two values in a register, each source with a choice of its halves.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Role, Sign, Slot, SourcePlace, Suffix};
use crate::sass::word::Field;

const fn half(place: SourcePlace) -> Operand {
    source(place, Immediate::Halves, Sign::NegateAbsolute, Suffix::Halves)
}

/// The same, or two bfloat16 where the bit of the type is set.
const fn typed(place: SourcePlace, bit: u8) -> Operand {
    source(place, Immediate::HalvesOrBfloats(bit), Sign::NegateAbsolute, Suffix::Halves)
}

const A: Operand = half(SourcePlace::Register(24));
/// The second source of three.
const B: Operand = half(SourcePlace::Role(Role::B));
/// The third of three.
const C: Operand = half(SourcePlace::Role(Role::C));
/// The second of two.
const OTHER: Operand = half(SourcePlace::Exchanged);
const TYPED_B: Operand = typed(SourcePlace::Role(Role::B), 85);
const TYPED_C: Operand = typed(SourcePlace::Role(Role::C), 85);
const TYPED: Operand = typed(SourcePlace::Exchanged, 85);
const COMPARED: Operand = typed(SourcePlace::Exchanged, 65);

/// Sources of the multiply-add that runs on the pipe of matrices: signs, and always both halves.
const fn whole(place: SourcePlace) -> Operand {
    source(place, Immediate::Halves, Sign::NegateAbsolute, Suffix::BothHalves)
}

/// The same, or two bfloat16.
const fn whole_or_bfloat(place: SourcePlace) -> Operand {
    source(place, Immediate::HalvesOrBfloats(85), Sign::NegateAbsolute, Suffix::BothHalves)
}

/// The result is a single.
const RESULT: Modifier = flag(Aspect::ResultType, 78, ".F32");
/// The same, or the operands are two bfloat16, from Ampere on.
const TYPE: Modifier =
    choice_2(Aspect::ResultType, Field::new(78, 1), Field::new(85, 1), &["", ".F32", ".BF16_V2", NO_SUCH]);
const TYPE_OF_PRODUCT: Modifier = choice(Aspect::ResultType, 85, 1, &["", ".BF16_V2"]);
/// A value that stands for one outside of an array makes the result zero.
const OUT_OF_BOUNDS: Modifier =
    function(Aspect::Flush, |word| (word.bit(80) && word.bit(76)).then_some(".OOB"), 1 << 80 | 1 << 76);
const RELU: Modifier = flag(Aspect::Relu, 79, ".RELU");
/// Where negative results become zero: whether they do.
const RELU_IF: Operand = PS.shown(Shown::PresentWhere(|word| word.bit(79), |word| word.bits(87, 4) != 7));
const COMPARISON: Modifier = choice(Aspect::Comparison, 76, 4, COMPARISONS);
const BOOLEAN_69: Modifier = choice(Aspect::Boolean, 69, 2, BOOLEANS);
const BOTH_HALVES: Modifier = flag(Aspect::BothHalves, 71, ".H_AND");
const AS_FLOAT: Modifier = flag(Aspect::BooleanFloat, 71, ".BF");
const COMPARED_TYPE: Modifier = choice(Aspect::ResultType, 65, 1, &["", ".BF16_V2"]);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Hadd2, all_forms!(0x030), &[RESULT, FLUSH, SATURATE], &[RD, A, OTHER]).until(75),
    Encoding::new(Opcode::Hadd2, all_forms!(0x030), &[TYPE, FLUSH, SATURATE], &[RD, A, TYPED]).since(80),
    Encoding::new(Opcode::Hmul2, all_forms!(0x032), &[RESULT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, OTHER]).until(75),
    Encoding::new(Opcode::Hmul2, all_forms!(0x032), &[TYPE_OF_PRODUCT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, TYPED])
        .since(80),
    Encoding::new(Opcode::Hfma2, all_forms!(0x031), &[RESULT, FLUSH_OF_PRODUCT, SATURATE], &[RD, A, B, C]).until(75),
    Encoding::new(
        Opcode::Hfma2,
        all_forms!(0x031),
        &[TYPE, FLUSH_OF_PRODUCT, SATURATE, RELU],
        &[RD, A, TYPED_B, TYPED_C, RELU_IF],
    )
    .since(80),
    Encoding::new(
        Opcode::Hfma2,
        all_forms!(0x031),
        &[TYPE, OUT_OF_BOUNDS, SATURATE, RELU],
        &[RD, A, TYPED_B, TYPED_C, RELU_IF],
    )
    .since(90),
    // The upper half of the second source is its lower half, negated.
    Encoding::new(
        Opcode::Hfma2,
        all_forms!(0x031),
        &[TYPE, FLUSH_OF_PRODUCT, SATURATE, RELU],
        &[
            RD,
            A,
            whole_or_bfloat(SourcePlace::Role(Role::B)),
            at(Slot::Name(Aspect::NegateUpper, Field::new(86, 1), &[NO_SUCH, ".H0_NH1"])).attached(),
            TYPED_C,
            RELU_IF,
        ],
    )
    .since(86),
    Encoding::new(
        Opcode::Hfma2Mma,
        all_forms!(0x035),
        &[FLUSH_OF_PRODUCT, SATURATE, RELU],
        &[
            RD,
            whole(SourcePlace::Register(24)),
            whole(SourcePlace::Role(Role::B)),
            whole(SourcePlace::Role(Role::C)),
            RELU_IF,
        ],
    )
    .between(80, 89),
    Encoding::new(
        Opcode::Hfma2Mma,
        all_forms!(0x035),
        &[TYPE_OF_PRODUCT, FLUSH_OF_PRODUCT, SATURATE, RELU],
        &[
            RD,
            whole(SourcePlace::Register(24)),
            whole_or_bfloat(SourcePlace::Role(Role::B)),
            whole_or_bfloat(SourcePlace::Role(Role::C)),
            RELU_IF,
        ],
    )
    .since(90),
    Encoding::new(
        Opcode::Hsetp2,
        all_forms!(0x034),
        &[COMPARISON, FLUSH, BOTH_HALVES, BOOLEAN_69],
        &[PD, PD2, A, OTHER, PS],
    )
    .until(75),
    Encoding::new(
        Opcode::Hsetp2,
        all_forms!(0x034),
        &[COMPARED_TYPE, COMPARISON, BOTH_HALVES, FLUSH, BOOLEAN_69],
        &[PD, PD2, A, COMPARED, PS],
    )
    .since(80),
    Encoding::new(
        Opcode::Hset2,
        all_forms!(0x033),
        &[COMPARED_TYPE, AS_FLOAT, COMPARISON, FLUSH, BOOLEAN_69],
        &[RD, A, COMPARED, PS],
    )
    .since(90),
    Encoding::new(Opcode::Hset2, all_forms!(0x033), &[AS_FLOAT, COMPARISON, FLUSH, BOOLEAN_69], &[RD, A, OTHER, PS])
        .until(89),
    Encoding::new(
        Opcode::Hmnmx2,
        all_forms!(0x040),
        &[TYPE, FLUSH, flag(Aspect::Nan, 81, ".NAN")],
        &[RD, A, TYPED, PS],
    )
    .between(80, 80),
    Encoding::new(
        Opcode::Hmnmx2,
        all_forms!(0x040),
        &[TYPE, FLUSH, flag(Aspect::Nan, 81, ".NAN"), flag(Aspect::ExclusiveSign, 82, ".XORSIGN")],
        &[RD, A, TYPED, PS],
    )
    .since(86),
    // Predicates say whether the results are the halves of the first source.
    Encoding::new(
        Opcode::Hmnmx2,
        all_forms!(0x040),
        &[
            TYPE,
            FLUSH,
            flag(Aspect::Nan, 81, ".NAN"),
            flag(Aspect::ExclusiveSign, 82, ".XORSIGN"),
            function(Aspect::Mode, |word| word.bit(65).then_some(".IS_A"), 1 << 65),
        ],
        &[RD, at(Slot::Predicate(66)), at(Slot::Predicate(69)), A, TYPED, PS],
    )
    .since(90),
    // Extrema of three.
    Encoding::new(
        Opcode::Vhmnmx,
        second_forms!(0x047),
        &[
            choice(Aspect::ResultType, 85, 1, &["", ".BF16_V2"]),
            FLUSH,
            flag(Aspect::Nan, 81, ".NAN"),
            flag(Aspect::ExclusiveSign, 82, ".XORSIGN"),
        ],
        &[RD, A, TYPED_B, THIRD, PS],
    )
    .since(90),
];

/// The third source of three, with bits of its own for its halves.
const THIRD: Operand =
    source(SourcePlace::Register(64), Immediate::Bits, Sign::NegateAbsolute, Suffix::HalvesAt(Field::new(76, 2)));
