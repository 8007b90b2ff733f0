//! Conversions between types.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, SourcePlace, Suffix};
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
    // Disassemblers print it from sm_80 on, and nothing of it for sm_75. Of what it has there (`.BF16`, `.RELU`, `.SATFINITE`,
    // `.MERGE_C`), code for sm_75 has nothing.
    Encoding::new(
        Opcode::F2fp,
        second_forms!(0x03e),
        &[text(".PACK_AB"), ROUNDING_OF_PAIR],
        &[RD, RA, b(Immediate::Single, Sign::None)],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .since(75),
];
