//! Products of matrices by the four warps of a group, which go on while the warps do. The second matrix is in shared memory, the first one
//! too or in registers: descriptors of them are in four uniform registers, two for each matrix.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, Slot, SourcePlace, Suffix};
use crate::sass::word::{Field, Word};

/// Sizes of the result: its rows, and its columns in steps of eight.
const COLUMNS: &[&str] = &[
    ".64x8", ".64x16", ".64x24", ".64x32", ".64x40", ".64x48", ".64x56", ".64x64", ".64x72", ".64x80", ".64x88",
    ".64x96", ".64x104", ".64x112", ".64x120", ".64x128", ".64x136", ".64x144", ".64x152", ".64x160", ".64x168",
    ".64x176", ".64x184", ".64x192", ".64x200", ".64x208", ".64x216", ".64x224", ".64x232", ".64x240", ".64x248",
    ".64x256",
];
/// The sizes of products of integers and of bits.
const FEWER_COLUMNS: &[&str] = &[
    ".64x8", ".64x16", ".64x24", ".64x32", ".64x48", ".64x64", ".64x80", ".64x96", ".64x112", ".64x128", ".64x144",
    ".64x160", ".64x176", ".64x192", ".64x208", ".64x224", ".64x240", ".64x256",
];
const SHAPE: Modifier = choice(Aspect::Shape, 53, 5, COLUMNS);
const HALF_DEPTH: Modifier = choice(Aspect::Depth, 58, 2, &["x16", "x8", NO_SUCH, NO_SUCH]);
const SPARSE_HALF_DEPTH: Modifier = choice(Aspect::Depth, 58, 2, &["x16", NO_SUCH, "x32", NO_SUCH]);
const BYTE_DEPTH: Modifier = choice(Aspect::Depth, 58, 1, &["x32", NO_SUCH]);
const SPARSE_BYTE_DEPTH: Modifier = choice(Aspect::Depth, 58, 1, &[NO_SUCH, "x64"]);
const INTEGER_SIZE: Field = Field::new(53, 6);
const INTEGER_SHAPE: Modifier = function(Aspect::Shape, |word| integer_shape(word, 0), INTEGER_SIZE.mask());
const SPARSE_INTEGER_SHAPE: Modifier = function(Aspect::Shape, |word| integer_shape(word, 1), INTEGER_SIZE.mask());
const INTEGER_DEPTH: Modifier = function(Aspect::Depth, |_| Some("x32"), 0);
const SPARSE_INTEGER_DEPTH: Modifier = function(Aspect::Depth, |_| Some("x64"), 0);

/// The size of a product of integers: three numbers for each, the first for whole matrices, the second for sparse ones.
fn integer_shape(word: Word, kind: u64) -> Option<&'static str> {
    let number = word.field(INTEGER_SIZE);
    (number % 3 == kind).then(|| FEWER_COLUMNS.get(number as usize / 3).copied()).flatten()
}

const IS_SPARSE: Modifier = function(Aspect::Sparse, |word| word.bit(73).then_some(".SP"), 1 << 73);
const BY_REGISTER: Modifier = flag(Aspect::Offsets, 74, ".REGOFFSET");
const FLOAT_RESULT: Modifier = choice(Aspect::ResultType, 75, 1, &[".F16", ".F32"]);
const HALF_FACTORS: Modifier = choice(Aspect::SourceType, 76, 2, &["", ".BF16", ".TF32", NO_SUCH]);
const BYTE_FLOATS: &[&str] = &[".E4M3", ".E5M2"];
const BYTES: &[&str] = &[".U8", ".S8", NO_SUCH, NO_SUCH];

/// The descriptors of both matrices.
const BOTH_DESCRIBED: Operand = described(24);
/// Those of which the second one counts alone.
const SECOND_DESCRIBED: Operand = described(32);

const fn described(low: u8) -> Operand {
    source(SourcePlace::Uniform(low), Immediate::Bits, Sign::None, Suffix::Brackets("gdesc"))
}

/// What is done with a matrix in shared memory before it is multiplied.
const fn changed(aspect: Aspect, bit: u8, texts: &'static [&'static str]) -> Operand {
    at(Slot::Name(aspect, Field::new(bit, 1), texts)).attached()
}

const NEGATE_FIRST: Operand = changed(Aspect::NegateFirst, 72, &["", ".negA"]);
const NEGATE_SECOND: Operand = changed(Aspect::NegateSecond, 63, &["", ".negB"]);
const TRANSPOSE_FIRST: Operand = changed(Aspect::TransposeFirst, 61, &["", ".tnspA"]);
const TRANSPOSE_SECOND: Operand = changed(Aspect::TransposeSecond, 62, &["", ".tnspB"]);

/// The first matrix in registers.
const SIGNED_A: Operand = a(Sign::Negate);
/// A predicate, where it is not the one that is always true: without it, the accumulator counts as zero.
const ACCUMULATES: Operand =
    at(Slot::InvertedUniformPredicateSource(87)).shown(Shown::Where(|word| word.bits(87, 4) != 0));
/// Which elements of a sparse matrix are stored, in a register of some of the lanes.
const METADATA: Operand = register(40, Sign::None);
const SELECTOR: Operand = number(48, 2);
const SELECTOR_IF_ANY: Operand = SELECTOR.shown(Shown::Where(|word| word.bits(48, 2) != 0));
/// The last product of a group names the group that it ends.
const GROUP: Operand = at(Slot::Name(
    Aspect::Group,
    Field::new(84, 3),
    &["gsb0", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ""],
));
const IS_UNIFORM: &[(Field, u64)] = &[(Field::new(91, 1), 1)];

const HALVES: &[Modifier] = &[SHAPE, HALF_DEPTH, FLOAT_RESULT, HALF_FACTORS];
const SPARSE_HALVES: &[Modifier] = &[IS_SPARSE, BY_REGISTER, SHAPE, SPARSE_HALF_DEPTH, FLOAT_RESULT, HALF_FACTORS];
const FIRST_BYTE_FLOAT: Modifier = choice(Aspect::FirstType, 76, 1, BYTE_FLOATS);
const SECOND_BYTE_FLOAT: Modifier = choice(Aspect::SecondType, 77, 1, BYTE_FLOATS);
const FLOATS_OF_BYTES: &[Modifier] = &[SHAPE, BYTE_DEPTH, FLOAT_RESULT, FIRST_BYTE_FLOAT, SECOND_BYTE_FLOAT];
const SPARSE_FLOATS_OF_BYTES: &[Modifier] =
    &[IS_SPARSE, BY_REGISTER, SHAPE, SPARSE_BYTE_DEPTH, FLOAT_RESULT, FIRST_BYTE_FLOAT, SECOND_BYTE_FLOAT];
const FIRST_INTEGER: Modifier = choice(Aspect::FirstType, 76, 2, BYTES);
const SECOND_INTEGER: Modifier = choice(Aspect::SecondType, 82, 2, BYTES);
const LIMITED: Modifier = flag(Aspect::Saturate, 75, ".SAT");
const INTEGERS: &[Modifier] = &[INTEGER_SHAPE, INTEGER_DEPTH, FIRST_INTEGER, SECOND_INTEGER, LIMITED];
const SPARSE_INTEGERS: &[Modifier] =
    &[IS_SPARSE, BY_REGISTER, SPARSE_INTEGER_SHAPE, SPARSE_INTEGER_DEPTH, FIRST_INTEGER, SECOND_INTEGER, LIMITED];
const BITS: &[Modifier] = &[
    function(Aspect::Shape, |word| FEWER_COLUMNS.get(word.field(INTEGER_SIZE) as usize).copied(), INTEGER_SIZE.mask()),
    function(Aspect::Depth, |_| Some("x256"), 0),
    function(Aspect::Operation, |word| (word.bits(77, 2) == 2).then_some(".AND"), 3 << 77),
    function(Aspect::Name, |word| word.bit(80).then_some(".POPC"), 1 << 80),
];

/// An encoding of Hopper with descriptors.
const fn group(
    opcode: Opcode,
    codes: &'static [u16],
    modifiers: &'static [Modifier],
    operands: &'static [Operand],
) -> Encoding {
    Encoding::new(opcode, codes, modifiers, operands).fixed(IS_UNIFORM).since(90)
}

pub(super) const ENCODINGS: &[Encoding] = &[
    group(
        Opcode::Hgmma,
        &[0x9f0],
        HALVES,
        &[RD, BOTH_DESCRIBED, NEGATE_FIRST, NEGATE_SECOND, TRANSPOSE_FIRST, TRANSPOSE_SECOND, RC, ACCUMULATES, GROUP],
    ),
    group(
        Opcode::Hgmma,
        &[0x9f0],
        SPARSE_HALVES,
        &[
            RD,
            BOTH_DESCRIBED,
            NEGATE_FIRST,
            NEGATE_SECOND,
            TRANSPOSE_FIRST,
            TRANSPOSE_SECOND,
            RC,
            ACCUMULATES,
            METADATA,
            SELECTOR,
            GROUP,
        ],
    ),
    group(
        Opcode::Hgmma,
        &[0xdf0],
        HALVES,
        &[RD, SIGNED_A, SECOND_DESCRIBED, NEGATE_SECOND, TRANSPOSE_SECOND, RC, ACCUMULATES, GROUP],
    ),
    group(
        Opcode::Hgmma,
        &[0xdf0],
        SPARSE_HALVES,
        &[RD, SIGNED_A, SECOND_DESCRIBED, NEGATE_SECOND, TRANSPOSE_SECOND, RC, ACCUMULATES, METADATA, SELECTOR, GROUP],
    ),
    group(Opcode::Igmma, &[0x9f1], INTEGERS, &[RD, BOTH_DESCRIBED, RC, ACCUMULATES, GROUP]),
    group(
        Opcode::Igmma,
        &[0x9f1],
        SPARSE_INTEGERS,
        &[RD, BOTH_DESCRIBED, RC, ACCUMULATES, METADATA, SELECTOR_IF_ANY, GROUP],
    ),
    group(Opcode::Igmma, &[0xdf1], INTEGERS, &[RD, RA, SECOND_DESCRIBED, RC, ACCUMULATES, GROUP]),
    group(
        Opcode::Igmma,
        &[0xdf1],
        SPARSE_INTEGERS,
        &[RD, RA, SECOND_DESCRIBED, RC, ACCUMULATES, METADATA, SELECTOR_IF_ANY, GROUP],
    ),
    group(Opcode::Bgmma, &[0x9f2], BITS, &[RD, BOTH_DESCRIBED, RC, ACCUMULATES, GROUP]),
    group(Opcode::Bgmma, &[0xdf2], BITS, &[RD, RA, SECOND_DESCRIBED, RC, ACCUMULATES, GROUP]),
    group(
        Opcode::Qgmma,
        &[0x9f3],
        FLOATS_OF_BYTES,
        &[RD, BOTH_DESCRIBED, NEGATE_FIRST, NEGATE_SECOND, RC, ACCUMULATES, GROUP],
    ),
    group(
        Opcode::Qgmma,
        &[0x9f3],
        SPARSE_FLOATS_OF_BYTES,
        &[RD, BOTH_DESCRIBED, NEGATE_FIRST, NEGATE_SECOND, RC, ACCUMULATES, METADATA, SELECTOR_IF_ANY, GROUP],
    ),
    group(
        Opcode::Qgmma,
        &[0xdf3],
        FLOATS_OF_BYTES,
        &[RD, SIGNED_A, SECOND_DESCRIBED, NEGATE_SECOND, RC, ACCUMULATES, GROUP],
    ),
    group(
        Opcode::Qgmma,
        &[0xdf3],
        SPARSE_FLOATS_OF_BYTES,
        &[RD, SIGNED_A, SECOND_DESCRIBED, NEGATE_SECOND, RC, ACCUMULATES, METADATA, SELECTOR_IF_ANY, GROUP],
    ),
    // The registers of the products are in order with the warp's other accesses.
    Encoding::new(
        Opcode::Warpgroup,
        &[0x9c5],
        &[choice(Aspect::Mode, 79, 2, &[".ARRIVE", ".WAIT", NO_SUCH, NO_SUCH])],
        &[],
    )
    .since(90),
    // So many groups may still go on.
    Encoding::new(
        Opcode::Warpgroup,
        &[0x9c5],
        &[
            function(Aspect::Mode, |word| (word.bits(79, 2) == 2).then_some(".DEPBAR"), 3 << 79),
            function(Aspect::Comparison, |word| word.bit(47).then_some(".LE"), 1 << 47),
        ],
        &[
            at(Slot::Name(
                Aspect::Group,
                Field::new(84, 3),
                &["gsb0", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH],
            )),
            number(72, 3),
        ],
    )
    .since(90),
];
