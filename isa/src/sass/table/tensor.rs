//! Tensor cores.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, Slot, SourcePlace, Suffix};
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
/// Matrices of bytes that are floats may be negated.
const SIGNED_ROWS: Operand = source(SourcePlace::Register(24), Immediate::Bits, Sign::Negate, Suffix::Fixed(".ROW"));
const SIGNED_COLUMNS: Operand = source(SourcePlace::Register(32), Immediate::Bits, Sign::Negate, Suffix::Fixed(".COL"));
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

/// Half of the elements of the first matrix are stored: which ones is in a register, of some of the lanes.
const SPARSE: Modifier = function(Aspect::Sparse, |_| Some(".SP"), 0);
const METADATA: Operand = source(
    SourcePlace::Register(40),
    Immediate::Bits,
    Sign::None,
    // The control word has such bits of three operands alone.
    Suffix::Part(Field::new(50, 1), |_| &["", ".reuse"]),
);
const SELECTOR: Operand = number(48, 2);

/// The sizes of the matrices of a product, from Ampere on. The text names the tile; how many elements a row of the first matrix has
/// follows from it and the type.
const SHAPE: Modifier =
    choice_2(Aspect::Shape, Field::new(75, 1), Field::new(78, 1), &[".1688", ".16816", ".1684", NO_SUCH]);
const SPARSE_SHAPE: Modifier =
    choice_2(Aspect::Shape, Field::new(75, 1), Field::new(78, 1), &[".1688", ".16816", NO_SUCH, ".16832"]);
const ACCUMULATOR: Modifier = choice(Aspect::ResultType, 76, 1, &[".F16", ".F32"]);
const FACTORS: Modifier = choice(Aspect::SourceType, 82, 2, &["", ".BF16", ".TF32", NO_SUCH]);

const INTEGER_SHAPE: Modifier = choice_2(
    Aspect::Shape,
    Field::new(75, 1),
    Field::new(85, 2),
    &[".8816", NO_SUCH, ".8832", NO_SUCH, ".16816", ".16832", ".16864", NO_SUCH],
);
const SPARSE_INTEGER_SHAPE: Modifier = choice_2(
    Aspect::Shape,
    Field::new(75, 1),
    Field::new(85, 2),
    &[NO_SUCH, NO_SUCH, NO_SUCH, ".8864", NO_SUCH, ".16832", ".16864", ".168128"],
);
const INTEGERS: &[&str] = &[".U8", ".S8", ".U4", ".S4"];
const FIRST_INTEGER: Modifier = choice_2(Aspect::FirstType, Field::new(76, 1), Field::new(83, 1), INTEGERS);
const SECOND_INTEGER: Modifier = choice_2(Aspect::SecondType, Field::new(78, 1), Field::new(84, 1), INTEGERS);
const LIMITED: Modifier = flag(Aspect::Saturate, 82, ".SAT");

const BITS: &[Modifier] = &[
    choice(Aspect::Shape, 75, 2, &[".88128", ".168128", ".168256", NO_SUCH]),
    choice(Aspect::Operation, 78, 1, &[".XOR", ".AND"]),
    text(".POPC"),
];

const BYTE_FLOATS: &[&str] = &[".E4M3", ".E5M2"];

/// A predicate of Hopper's products, where it is not the one that is always true: without it, the accumulator counts as zero.
const ACCUMULATES: Operand =
    at(Slot::InvertedUniformPredicateSource(87)).shown(Shown::Where(|word| word.bits(87, 4) != 0));

const DOUBLE: Sign = Sign::NegateAbsolute;

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
    )
    .until(75),
    // Turing: the product of a whole warp.
    Encoding::new(
        Opcode::Hmma,
        &[0x23c],
        &[
            choice_2(Aspect::Shape, Field::new(78, 1), Field::new(75, 1), &[".1688", ".1684", NO_SUCH, NO_SUCH]),
            ACCUMULATOR,
            flag(Aspect::Saturate, 77, ".SATFINITE"),
        ],
        &[RD, a(Sign::Negate), register(32, Sign::Negate), RC],
    )
    .between(75, 75),
    Encoding::new(
        Opcode::Imma,
        &[0x237],
        &[function(Aspect::Shape, integer_matrices, Field::new(76, 4).mask() | Field::new(83, 3).mask()), LIMITED],
        &[RD, ROWS, COLUMNS, RC],
    )
    .fixed(BY_COLUMNS)
    .between(75, 75),
    Encoding::new(
        Opcode::Bmma,
        &[0x23d],
        &[function(Aspect::Shape, |_| Some(".88128"), 0), text(".XOR"), text(".POPC")],
        &[RD, ROWS, COLUMNS, RC],
    )
    .fixed(&[(Field::new(74, 1), 1), (Field::new(80, 1), 1)])
    .between(75, 75),
    Encoding::new(
        Opcode::Movm,
        &[0x23a],
        &[choice(Aspect::Layout, 78, 2, &[".16.MT88", ".16.M832", ".16.M864", NO_SUCH])],
        &[RD, RA],
    )
    .since(75),
    // Ampere.
    Encoding::new(
        Opcode::Hmma,
        &[0x23c],
        &[SHAPE, ACCUMULATOR, FACTORS],
        &[RD, a(Sign::Negate), register(32, Sign::Negate), RC],
    )
    .between(80, 86),
    Encoding::new(
        Opcode::Hmma,
        &[0x23c],
        &[SHAPE, ACCUMULATOR, FACTORS],
        &[RD, a(Sign::Negate), register(32, Sign::Negate), RC, ACCUMULATES],
    )
    .since(89),
    Encoding::new(
        Opcode::Hmma,
        &[0x23c],
        &[SPARSE, SPARSE_SHAPE, ACCUMULATOR, FACTORS],
        &[RD, a(Sign::Negate), register(32, Sign::Negate), RC, METADATA, SELECTOR],
    )
    .fixed(&[(Field::new(73, 1), 1)])
    .since(80),
    Encoding::new(
        Opcode::Imma,
        &[0x237],
        &[INTEGER_SHAPE, FIRST_INTEGER, SECOND_INTEGER, LIMITED],
        &[RD, ROWS, COLUMNS, RC],
    )
    .fixed(BY_COLUMNS)
    .between(80, 86),
    Encoding::new(
        Opcode::Imma,
        &[0x237],
        &[INTEGER_SHAPE, FIRST_INTEGER, SECOND_INTEGER, LIMITED],
        &[RD, ROWS, COLUMNS, RC, ACCUMULATES],
    )
    .fixed(BY_COLUMNS)
    .since(89),
    Encoding::new(
        Opcode::Imma,
        &[0x237],
        &[SPARSE, SPARSE_INTEGER_SHAPE, FIRST_INTEGER, SECOND_INTEGER, LIMITED],
        &[RD, ROWS, COLUMNS, RC, METADATA, SELECTOR],
    )
    .fixed(&[(Field::new(74, 1), 1), (Field::new(72, 1), 1)])
    .since(80),
    Encoding::new(Opcode::Bmma, &[0x23d], BITS, &[RD, ROWS, COLUMNS, RC])
        .fixed(&[(Field::new(74, 1), 1), (Field::new(80, 1), 1)])
        .between(80, 86),
    Encoding::new(Opcode::Bmma, &[0x23d], BITS, &[RD, ROWS, COLUMNS, RC, ACCUMULATES])
        .fixed(&[(Field::new(74, 1), 1), (Field::new(80, 1), 1)])
        .since(89),
    Encoding::new(
        Opcode::Dmma,
        &[0x23f],
        &[function(Aspect::Shape, |_| Some(".884"), 0), ROUNDING],
        &[RD, a(DOUBLE), register(32, DOUBLE), register(64, DOUBLE)],
    )
    .between(80, 89),
    Encoding::new(
        Opcode::Dmma,
        &[0x23f],
        &[choice(Aspect::Shape, 76, 2, &[".8x8x4", ".16x8x4", ".16x8x8", ".16x8x16"]), ROUNDING],
        &[RD, a(DOUBLE), register(32, DOUBLE), register(64, DOUBLE), ACCUMULATES],
    )
    .since(90),
    // Ada.
    Encoding::new(
        Opcode::Qmma,
        &[0x27a],
        &[
            choice(Aspect::Shape, 75, 2, &[".16816", ".16832", NO_SUCH, NO_SUCH]),
            choice(Aspect::ResultType, 77, 1, &[".F16", ".F32"]),
            choice(Aspect::FirstType, 78, 1, BYTE_FLOATS),
            choice(Aspect::SecondType, 79, 1, BYTE_FLOATS),
        ],
        &[RD, SIGNED_ROWS, SIGNED_COLUMNS, RC, ACCUMULATES],
    )
    .fixed(BY_COLUMNS)
    .between(89, 89),
    Encoding::new(
        Opcode::Qmma,
        &[0x27a],
        &[
            SPARSE,
            choice(Aspect::Shape, 75, 2, &[NO_SUCH, NO_SUCH, ".16864", NO_SUCH]),
            choice(Aspect::ResultType, 77, 1, &[".F16", ".F32"]),
            choice(Aspect::FirstType, 78, 1, BYTE_FLOATS),
            choice(Aspect::SecondType, 79, 1, BYTE_FLOATS),
        ],
        &[RD, SIGNED_ROWS, SIGNED_COLUMNS, RC, METADATA, SELECTOR],
    )
    .fixed(&[(Field::new(74, 1), 1), (Field::new(80, 1), 1)])
    .between(89, 89),
];
