//! Conversions between types.

use super::slots::*;
use crate::sass::encoding::{Encoding, Immediate, Modifier, NO_SUCH, Operand, Place, Sign, Slot};
use crate::sass::instruction::{immediate_text, single_or_half, source_at};
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

/// A floating-point type, by its size.
const FLOATS: &[&str] = &[NO_SUCH, ".F16", ".F32", ".F64"];
/// The same where the single is understood.
const FLOATS_OR_SINGLE: &[&str] = &[NO_SUCH, ".F16", "", ".F64"];
/// An integer type: size, and above it whether it is signed.
const INTEGERS: &[&str] = &[".U8", ".U16", ".U32", ".U64", ".S8", ".S16", "", ".S64"];

/// The source of a conversion from an integer: with a byte or a half of it where that is the type.
const INTEGER_SOURCE: Operand = at(Slot::Exchanged(integer_source, 3 << 60));

fn integer_source(word: Word) -> String {
    let text = Place::exchanged(word).and_then(|place| source_at(word, place, false));
    let Some(text) = text else { return immediate_text(word.bits(32, 32) as u32, Immediate::Bits) };
    let part = word.bits(60, 2) as usize;
    let part = match word.bits(84, 2) {
        0 => ["", ".B1", ".B2", ".B3"][part],
        1 => ["", ".H1", "", ""][part],
        _ => "",
    };
    format!("{text}{part}")
}

const TO_INTEGER_MODIFIERS: &[Modifier] = &[
    FLUSH,
    Modifier::Choice2(Field::new(75, 2), Field::new(72, 1), INTEGERS),
    choice(84, 2, FLOATS_OR_SINGLE),
    TO_INTEGER,
    flag(77, ".NTZ"),
    WIDTH,
];
const FROM_INTEGER_MODIFIERS: &[Modifier] = &[
    choice(75, 2, FLOATS_OR_SINGLE),
    Modifier::Choice2(Field::new(84, 2), Field::new(74, 1), INTEGERS),
    ROUNDING,
    WIDTH,
];
const BETWEEN_FLOATS_MODIFIERS: &[Modifier] = &[FLUSH, choice(75, 2, FLOATS), choice(84, 2, FLOATS), ROUNDING, WIDTH];
const TO_INTEGRAL_MODIFIERS: &[Modifier] =
    &[FLUSH, Modifier::Choice2(Field::new(84, 2), Field::new(75, 2), INTEGRAL), TO_INTEGER, WIDTH];

/// The type of a value that is rounded to an integral one, which is the type of the result: both fields are the same.
const INTEGRAL: &[&str] = &[
    NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ".F16", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, "", NO_SUCH, NO_SUCH,
    NO_SUCH, NO_SUCH, ".F64",
];

/// The rounding of two singles as they become halves.
const ROUNDING_OF_PAIR: Modifier = choice(79, 2, &["", NO_SUCH, NO_SUCH, ".RZ"]);

/// A floating-point source; a half is one of a register's two.
const FLOAT_SOURCE: Operand = at(Slot::Exchanged(float_source, 1 << 60 | 3 << 62));
const FROM_FLOAT: &[Operand] = &[RD, FLOAT_SOURCE];

fn float_source(word: Word) -> String {
    match word.bits(84, 2) {
        3 if Place::exchanged(word) == Some(Place::Immediate) => {
            immediate_text(word.bits(32, 32) as u32, Immediate::DoubleHigh)
        }
        size => single_or_half(word, size == 1),
    }
}

/// The fields that have to fit together: conversions with a type of 64 bits have codes of their own, and only a narrow source is a part of
/// its register.
const WIDTH: Modifier = Modifier::Function(|word| (has_own_code(word) && has_part(word)).then_some(""), 0);

fn has_own_code(word: Word) -> bool {
    let sizes = [word.bits(75, 2), word.bits(84, 2)];
    // There is no copy of a double.
    let is_copy = sizes == [3, 3] && word.bits(0, 9) == 0x110;
    sizes.contains(&3) == matches!(word.bits(0, 9), 0x110..=0x113) && !is_copy
}

fn has_part(word: Word) -> bool {
    let is_integer = matches!(word.bits(0, 9), 0x106 | 0x112);
    match (word.bits(60, 2), word.bits(84, 2)) {
        _ if Place::exchanged(word) == Some(Place::Immediate) => true,
        (0, _) => true,
        (_, 0) => is_integer,
        (1, 1) => true,
        _ => false,
    }
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
        &[Modifier::Text(".PACK_AB"), ROUNDING_OF_PAIR],
        &[RD, RA, b(Immediate::Single, Sign::None)],
    )
    .fixed(&[(Field::new(64, 8), 255)])
    .since(75),
];
