//! Conversions between types.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Role, Sign, SourcePlace, Suffix};
use crate::sass::word::{Field, Word};

/// A floating-point type, by its size.
const FLOATS: &[&str] = &[NO_SUCH, ".F16", ".F32", ".F64"];
/// The same where the single is understood.
const FLOATS_OR_SINGLE: &[&str] = &[NO_SUCH, ".F16", "", ".F64"];
/// An integer type: size, and above it whether it is signed.
const INTEGERS: &[&str] = &[".U8", ".U16", ".U32", ".U64", ".S8", ".S16", "", ".S64"];

/// The source of a conversion from an integer: with a byte or a half of it where that is the type.
const INTEGER_SOURCE: Operand =
    source(SourcePlace::Exchanged, Immediate::Bits, Sign::None, Suffix::Part(Field::new(60, 2), parts_of_integer));

fn parts_of_integer(word: Word) -> &'static [&'static str] {
    match word.field(SOURCE_SIZE) {
        0 => &["", ".B1", ".B2", ".B3"],
        1 => &["", ".H1"],
        _ => &[""],
    }
}

/// The size of the source: 8, 16, 32 or 64 bits.
const SOURCE_SIZE: Field = Field::new(84, 2);

const TO_INTEGER_MODIFIERS: &[Modifier] = &[
    FLUSH,
    choice_2(Aspect::ResultType, Field::new(75, 2), Field::new(72, 1), INTEGERS),
    choice(Aspect::SourceType, 84, 2, FLOATS_OR_SINGLE),
    TO_INTEGER,
    flag(Aspect::NanToZero, 77, ".NTZ"),
    WIDTH,
];
const FROM_INTEGER_MODIFIERS: &[Modifier] = &[
    choice(Aspect::ResultType, 75, 2, FLOATS_OR_SINGLE),
    choice_2(Aspect::SourceType, Field::new(84, 2), Field::new(74, 1), INTEGERS),
    ROUNDING,
    WIDTH,
];
const BETWEEN_FLOATS_MODIFIERS: &[Modifier] =
    &[FLUSH, choice(Aspect::ResultType, 75, 2, FLOATS), choice(Aspect::SourceType, 84, 2, FLOATS), ROUNDING, WIDTH];
const TO_INTEGRAL_MODIFIERS: &[Modifier] =
    &[FLUSH, choice_2(Aspect::SourceType, Field::new(84, 2), Field::new(75, 2), INTEGRAL), TO_INTEGER, WIDTH];

/// The type of a value that is rounded to an integral one, which is the type of the result: both fields are the same.
const INTEGRAL: &[&str] = &[
    NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ".F16", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, "", NO_SUCH, NO_SUCH,
    NO_SUCH, NO_SUCH, ".F64",
];

/// The rounding of two singles as they become halves.
const ROUNDING_OF_PAIR: Modifier = choice(Aspect::Rounding, 79, 2, &["", NO_SUCH, NO_SUCH, ".RZ"]);

/// A floating-point source; a half is one of a register's two.
const FLOAT_SOURCE: Operand = source(
    SourcePlace::Exchanged,
    Immediate::OfSize(SOURCE_SIZE),
    Sign::NegateAbsolute,
    Suffix::Part(Field::new(60, 1), |word| if word.field(SOURCE_SIZE) == 1 { &["", ".H1"] } else { &[""] }),
);
const FROM_FLOAT: &[Operand] = &[RD, FLOAT_SOURCE];

/// The types have to fit together: conversions with a type of 64 bits have codes of their own.
const WIDTH: Modifier = function(Aspect::Name, |word| has_own_code(word).then_some(""), 0);

fn has_own_code(word: Word) -> bool {
    let sizes = [word.bits(75, 2), word.field(SOURCE_SIZE)];
    // There is no copy of a double.
    let is_copy = sizes == [3, 3] && word.bits(0, 9) == 0x110;
    sizes.contains(&3) == matches!(word.bits(0, 9), 0x110..=0x113) && !is_copy
}

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::I2f, second_forms!(0x106), FROM_INTEGER_MODIFIERS, &[RD, INTEGER_SOURCE]),
    Encoding::new(Opcode::I2f, second_forms!(0x112), FROM_INTEGER_MODIFIERS, &[RD, INTEGER_SOURCE]),
    Encoding::new(Opcode::F2i, second_forms!(0x105), TO_INTEGER_MODIFIERS, FROM_FLOAT),
    Encoding::new(Opcode::F2i, second_forms!(0x111), TO_INTEGER_MODIFIERS, FROM_FLOAT),
    Encoding::new(Opcode::F2f, second_forms!(0x104), BETWEEN_FLOATS_MODIFIERS, FROM_FLOAT),
    Encoding::new(Opcode::F2f, second_forms!(0x110), BETWEEN_FLOATS_MODIFIERS, FROM_FLOAT),
    Encoding::new(Opcode::Frnd, second_forms!(0x107), TO_INTEGRAL_MODIFIERS, FROM_FLOAT),
    Encoding::new(Opcode::Frnd, second_forms!(0x113), TO_INTEGRAL_MODIFIERS, FROM_FLOAT),
    // Disassemblers print it from sm_80 on, and nothing of it for sm_75.
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[text(".PACK_AB"), ROUNDING_OF_PAIR],
        &[RD, RA, b(Immediate::Single, Sign::None)],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .between(75, 75),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, flag(Aspect::ResultType, 76, ".BF16"), text(".PACK_AB"), ROUNDING_OF_PAIR],
        &[RD, RA, b(Immediate::Single, Sign::None)],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .between(80, 86),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, flag(Aspect::ResultType, 76, ".BF16"), MERGE_C, ROUNDING_OF_PAIR],
        &[RD, b(Immediate::Single, Sign::None), PART_OF_C],
    )
    .ignoring(24, 8)
    .between(80, 86),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, PACKED_TYPE, text(".F32"), text(".PACK_AB"), ROUNDING_OF_PAIR],
        &[RD, RA, b(Immediate::Single, Sign::None)],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .since(89),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, PACKED_TYPE, text(".F32"), MERGE_C, ROUNDING_OF_PAIR],
        &[RD, b(Immediate::Single, Sign::None), PART_OF_C],
    )
    .ignoring(24, 8)
    .since(89),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, PACKED_TYPE, text(".F32"), PACK_AB_MERGE_C, ROUNDING_OF_PAIR],
        &[RD, RA, b(Immediate::Single, Sign::None), PART_OF_C],
    )
    .since(89),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, PACKED_TYPE, text(".F32"), PACK_B, ROUNDING_OF_PAIR],
        &[RD, b(Immediate::Single, Sign::None)],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .ignoring(24, 8)
    .since(89),
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[RELU, PACKED_TYPE, choice(Aspect::SourceType, 73, 2, &[NO_SUCH, NO_SUCH, ".E5M2", ".E4M3"]), UNPACK_B],
        &[RD, UNPACKED],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .ignoring(24, 8)
    .since(89),
    // Two halves that become bytes.
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[FINITE, RELU, PACKED_TYPE, FROM_HALVES, UNPACK_B_MERGE_C, ROUNDING_OF_PAIR],
        &[RD, b(Immediate::Bits, Sign::None), PART_OF_C],
    )
    .ignoring(24, 8)
    .since(89),
    Encoding::new(Opcode::F2ip, second_forms!(0x043), TO_BYTES, &[RD, RA, b(Immediate::Single, Sign::None), PART_OF_C])
        .since(80),
    Encoding::new(
        Opcode::F2ip,
        &[0x443, 0x643, 0xe43],
        TO_BYTES,
        &[RD, RA, b(Immediate::Single, Sign::None), c(Immediate::Single, Sign::None)],
    )
    .since(80),
    // Conversions of bfloat16.
    Encoding::new(
        Opcode::F2f,
        second_forms!(0x104),
        &[FLUSH, TO_BFLOAT, choice(Aspect::SourceType, 84, 3, &[NO_SUCH, ".F16"]), ROUNDING],
        &[RD, HALF_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::F2f,
        second_forms!(0x110),
        &[FLUSH, TO_BFLOAT, choice(Aspect::SourceType, 84, 3, &[NO_SUCH, NO_SUCH, NO_SUCH, ".F64"]), ROUNDING],
        &[RD, other(Immediate::DoubleHigh, Sign::NegateAbsolute)],
    )
    .since(90),
    Encoding::new(
        Opcode::F2f,
        second_forms!(0x104),
        &[FLUSH, choice(Aspect::ResultType, 75, 3, &[NO_SUCH, ".F16", ".F32"]), FROM_BFLOAT, ROUNDING],
        &[RD, BFLOAT_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::F2f,
        second_forms!(0x110),
        &[FLUSH, choice(Aspect::ResultType, 75, 3, &[NO_SUCH, NO_SUCH, NO_SUCH, ".F64"]), FROM_BFLOAT, ROUNDING],
        &[RD, BFLOAT_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::F2i,
        second_forms!(0x105),
        &[
            FLUSH,
            function(Aspect::Name, |word| (word.bits(75, 2) != 3).then_some(""), 0),
            choice_2(Aspect::ResultType, Field::new(75, 2), Field::new(72, 1), INTEGERS),
            FROM_BFLOAT,
            TO_INTEGER,
            flag(Aspect::NanToZero, 77, ".NTZ"),
        ],
        &[RD, BFLOAT_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::F2i,
        second_forms!(0x111),
        &[
            FLUSH,
            function(Aspect::Name, |word| (word.bits(75, 2) == 3).then_some(""), 0),
            choice_2(Aspect::ResultType, Field::new(75, 2), Field::new(72, 1), INTEGERS),
            FROM_BFLOAT,
            TO_INTEGER,
            flag(Aspect::NanToZero, 77, ".NTZ"),
        ],
        &[RD, BFLOAT_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::I2f,
        second_forms!(0x106),
        &[
            TO_BFLOAT,
            function(Aspect::Name, |word| (word.bits(84, 2) != 3).then_some(""), 0),
            choice_2(Aspect::SourceType, Field::new(84, 2), Field::new(74, 1), INTEGERS),
            ROUNDING,
        ],
        &[RD, INTEGER_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::I2f,
        second_forms!(0x112),
        &[
            TO_BFLOAT,
            function(Aspect::Name, |word| (word.bits(84, 2) == 3).then_some(""), 0),
            choice_2(Aspect::SourceType, Field::new(84, 2), Field::new(74, 1), INTEGERS),
            ROUNDING,
        ],
        &[RD, INTEGER_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::Frnd,
        second_forms!(0x107),
        &[
            FLUSH,
            FROM_BFLOAT,
            function(Aspect::Name, |word| (word.bits(75, 3) == 4).then_some(""), 7 << 75),
            TO_INTEGER,
        ],
        &[RD, BFLOAT_SOURCE],
    )
    .since(90),
    Encoding::new(
        Opcode::I2fp,
        second_forms!(0x045),
        &[text(".F32"), choice(Aspect::SourceType, 74, 1, &[".U32", ".S32"]), ROUNDING],
        &[RD, b(Immediate::Bits, Sign::None)],
    )
    .fixed(&[(Field::new(75, 3), 2), (Field::new(84, 2), 2)])
    .since(86),
    // A conversion to bfloat16 has the type beside the others.
    Encoding::new(
        Opcode::F2f,
        second_forms!(0x104),
        &[
            FLUSH,
            function(Aspect::ResultType, |word| (word.bits(75, 3) == 4).then_some(".BF16"), 7 << 75),
            function(Aspect::SourceType, |word| (word.bits(84, 2) == 2).then_some(".F32"), 3 << 84),
            ROUNDING,
        ],
        &[RD, other(Immediate::Single, Sign::NegateAbsolute)],
    )
    .since(80),
];

const TO_BFLOAT: Modifier = function(Aspect::ResultType, |word| (word.bits(75, 3) == 4).then_some(".BF16"), 7 << 75);
const FROM_BFLOAT: Modifier = function(Aspect::SourceType, |word| (word.bits(84, 3) == 4).then_some(".BF16"), 7 << 84);
/// A half of a register.
const HALF_SOURCE: Operand = source(
    SourcePlace::Exchanged,
    Immediate::Half,
    Sign::NegateAbsolute,
    Suffix::Part(Field::new(60, 1), |_| &["", ".H1"]),
);
const BFLOAT_SOURCE: Operand = source(
    SourcePlace::Exchanged,
    Immediate::Single,
    Sign::NegateAbsolute,
    Suffix::Part(Field::new(60, 1), |_| &["", ".H1"]),
);
/// Two singles that become bytes, before others.
const TO_BYTES: &[Modifier] = &[
    choice(Aspect::ResultType, 76, 2, &[".U8", ".S8", NO_SUCH, NO_SUCH]),
    text(".F32"),
    choice(Aspect::Rounding, 78, 2, &["", NO_SUCH, NO_SUCH, ".TRUNC"]),
    flag(Aspect::NanToZero, 74, ".NTZ"),
    flag(Aspect::Relu, 75, ".RELU"),
];

/// From Ampere on, a pair of singles may become other types, which may be limited, in other places of a register.
const FINITE: Modifier = flag(Aspect::Saturate, 77, ".SATFINITE");
const RELU: Modifier = flag(Aspect::Relu, 75, ".RELU");
const PACKED_TYPE: Modifier = choice_2(
    Aspect::ResultType,
    Field::new(76, 1),
    Field::new(86, 2),
    &[".F16", ".BF16", NO_SUCH, ".TF32", ".E5M2", ".E4M3", NO_SUCH, NO_SUCH],
);
const PACKING: u128 = 1 << 78 | 3 << 89;
const MERGE_C: Modifier = packing(|word| packing_of(word, 0b001).then_some(".MERGE_C"));
const PACK_AB_MERGE_C: Modifier = packing(|word| packing_of(word, 0b101).then_some(".PACK_AB_MERGE_C"));
const PACK_B: Modifier = packing(|word| packing_of(word, 0b011).then_some(".PACK_B"));
const UNPACK_B: Modifier = packing(|word| packing_of(word, 0b010).then_some(".UNPACK_B"));
const UNPACK_B_MERGE_C: Modifier = packing(|word| packing_of(word, 0b100).then_some(".UNPACK_B_MERGE_C"));
const FROM_HALVES: Modifier = function(Aspect::SourceType, |word| (word.bits(73, 2) == 1).then_some(".F16"), 3 << 73);
const PART_OF_C: Operand =
    source(SourcePlace::Register(64), Immediate::Bits, Sign::None, Suffix::Part(Field::new(72, 1), |_| &["", ".H1"]));
/// Two bytes of a register that become halves.
const UNPACKED: Operand =
    source(SourcePlace::Role(Role::B), Immediate::Bits, Sign::None, Suffix::Part(Field::new(88, 1), |_| &["", ".H1"]));

const fn packing(text: fn(Word) -> Option<&'static str>) -> Modifier {
    function(Aspect::Packing, text, PACKING)
}

/// Is it this way of packing? Bit 78, then bits 89 and 90.
fn packing_of(word: Word, code: u64) -> bool {
    word.bits(78, 1) | word.bits(89, 2) << 1 == code
}
