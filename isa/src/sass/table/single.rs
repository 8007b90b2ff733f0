//! Single-precision arithmetic and the special-function unit.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, Slot, SourcePlace, Suffix};
use crate::sass::word::{Field, Word};

const SINGLE: Immediate = Immediate::Single;
const FLOAT: Sign = Sign::NegateAbsolute;

/// The source. In functions of doubles, an immediate is a double's upper half.
const MUFU_SINGLE: Operand = b(SINGLE, FLOAT).shown(Shown::Present(|word| !is_of_high_half(word)));
const MUFU_DOUBLE: Operand = b(Immediate::DoubleHigh, FLOAT).shown(Shown::Present(is_of_high_half));

fn is_of_high_half(word: Word) -> bool {
    matches!(word.bits(74, 4), 6 | 7)
}

const OF_HALF: Modifier = function(Aspect::Type, |word| word.bit(73).then_some(".F16"), 1 << 73);
/// Hopper has bfloat16, too.
const OF_HALVES: Modifier = choice(Aspect::Type, 72, 2, &[NO_SUCH, ".F16", ".BF16", NO_SUCH]);
const HALF_FUNCTION: Modifier = choice(
    Aspect::Operation,
    74,
    4,
    &[".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", NO_SUCH, NO_SUCH, ".SQRT", ".TANH"],
);
/// A half, one of a register's two.
const HALF: Operand =
    source(SourcePlace::Exchanged, Immediate::Half, FLOAT, Suffix::Part(Field::new(60, 1), |_| &["", ".H1"]));

/// The work of each of four lanes on its two operands: it adds, subtracts either from the other, or leaves out the first.
fn swizzle(word: Word) -> String {
    (0..4).rev().map(|lane| ["PP", "PN", "NP", "ZP"][word.bits(32 + 2 * lane, 2) as usize]).collect()
}

const NAN: Modifier = flag(Aspect::Nan, 81, ".NAN");
const SCALE: Modifier = choice(Aspect::Scale, 84, 3, &[NO_SUCH, ".D8", ".D4", ".D2", "", ".M2", ".M4", ".M8"]);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(
        Opcode::Ffma,
        all_forms!(0x023),
        &[FLUSH_OF_PRODUCT, ROUNDING, SATURATE],
        &[RD, a(FLOAT), b(SINGLE, FLOAT), c(SINGLE, FLOAT)],
    ),
    Encoding::new(Opcode::Fadd, all_forms!(0x021), &[FLUSH, ROUNDING, SATURATE], &[RD, a(FLOAT), other(SINGLE, FLOAT)]),
    Encoding::new(
        Opcode::Fmul,
        second_forms!(0x020),
        &[FLUSH_OF_PRODUCT, SCALE, ROUNDING, SATURATE],
        &[RD, a(FLOAT), b(SINGLE, FLOAT)],
    ),
    Encoding::new(
        Opcode::Fsetp,
        second_forms!(0x00b),
        &[choice(Aspect::Comparison, 76, 4, COMPARISONS), FLUSH, BOOLEAN],
        &[PD, PD2, a(FLOAT), b(SINGLE, FLOAT), PS],
    ),
    Encoding::new(Opcode::Fsel, second_forms!(0x008), &[FLUSH], &[RD, a(FLOAT), b(SINGLE, FLOAT), PS]),
    Encoding::new(Opcode::Fmnmx, second_forms!(0x009), &[FLUSH], &[RD, a(FLOAT), b(SINGLE, FLOAT), PS]),
    Encoding::new(Opcode::Fmnmx, second_forms!(0x009), &[FLUSH, NAN], &[RD, a(FLOAT), b(SINGLE, FLOAT), PS])
        .between(80, 80),
    Encoding::new(
        Opcode::Fmnmx,
        second_forms!(0x009),
        &[FLUSH, NAN, flag(Aspect::ExclusiveSign, 82, ".XORSIGN")],
        &[RD, a(FLOAT), b(SINGLE, FLOAT), PS],
    )
    .since(86),
    // A predicate says whether the result is the first source.
    Encoding::new(
        Opcode::Fmnmx,
        second_forms!(0x009),
        &[
            FLUSH,
            NAN,
            flag(Aspect::ExclusiveSign, 82, ".XORSIGN"),
            function(Aspect::Mode, |word| word.bit(65).then_some(".IS_A"), 1 << 65),
        ],
        &[RD, at(Slot::Predicate(66)), a(FLOAT), b(SINGLE, FLOAT), PS],
    )
    .since(90),
    Encoding::new(Opcode::Fchk, second_forms!(0x102), &[], &[PD, a(FLOAT), b(SINGLE, FLOAT)]),
    Encoding::new(
        Opcode::Fset,
        second_forms!(0x00a),
        &[text(".BF"), choice(Aspect::Comparison, 76, 4, COMPARISONS), FLUSH, BOOLEAN],
        &[RD, a(FLOAT), b(SINGLE, FLOAT), PS],
    ),
    Encoding::new(
        Opcode::Mufu,
        second_forms!(0x108),
        &[choice(
            Aspect::Operation,
            74,
            4,
            &[".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", ".RCP64H", ".RSQ64H", ".SQRT", ".TANH"],
        )],
        &[RD, MUFU_SINGLE, MUFU_DOUBLE],
    ),
    Encoding::new(
        Opcode::Mufu,
        second_forms!(0x108),
        &[
            choice(
                Aspect::Operation,
                74,
                4,
                &[NO_SUCH, NO_SUCH, ".EX2", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ".TANH"],
            ),
            OF_HALF,
        ],
        &[RD, HALF],
    )
    .between(75, 75),
    Encoding::new(Opcode::Mufu, second_forms!(0x108), &[HALF_FUNCTION, OF_HALF], &[RD, HALF]).between(80, 89),
    Encoding::new(Opcode::Mufu, second_forms!(0x108), &[HALF_FUNCTION, OF_HALVES], &[RD, HALF]).since(90),
    Encoding::new(
        Opcode::Fswzadd,
        &[0x822],
        &[FLUSH, ROUNDING, flag(Aspect::NoDerivative, 77, ".NDV")],
        &[RD, RA, RC, at(Slot::Function(swizzle, Field::new(32, 8).mask()))],
    ),
];
