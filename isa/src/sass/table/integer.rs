//! Integer arithmetic, logic, moves and selections.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, SourcePlace, Suffix};
use crate::sass::word::{Field, Word};

const SIGNED: Immediate = Immediate::Signed;
const BITS: Immediate = Immediate::Bits;
const PLAIN: Sign = Sign::None;
const CARRIED: Sign = Sign::NegateOrInvert;

/// `IMAD` has further names, for factors or addends that are constants.
const IMAD_ALIAS: Modifier = function(Aspect::Name, imad_alias, 0);

fn imad_alias(word: Word) -> Option<&'static str> {
    let form = word.form();
    let is_zero = |low| word.bits(low, 8) == 255;
    // Where the second and the third source are registers.
    let b = match form {
        1 => Some(32),
        2 | 3 => Some(64),
        _ => None,
    };
    let c_is_zero = matches!(form, 1 | 4 | 5) && is_zero(64);
    let immediate = word.bits(32, 32);
    // The names are older than the uniform datapath.
    if word.bit(74) || matches!(form, 6 | 7) {
        return Some("");
    }
    let b_is_zero = b.is_some_and(is_zero) || (form == 4 && immediate == 0);
    let b_is_one = form == 4 && immediate == 1;
    Some(if is_zero(24) || b_is_zero || (b_is_one && c_is_zero) {
        ".MOV"
    } else if b_is_one {
        ".IADD"
    } else if form == 4 && c_is_zero && immediate.is_power_of_two() && !matches!(immediate, 0x1_0000 | 0x8000_0000) {
        ".SHL"
    } else {
        ""
    })
}

const SHIFT_TYPE: Modifier = choice(Aspect::Type, 73, 2, &[".S64", ".U64", ".S32", ".U32"]);
const DIRECTION: Modifier = choice(Aspect::Direction, 76, 1, &[".L", ".R"]);
const WRAP: Modifier = flag(Aspect::Wrap, 75, ".W");
const HIGH: Modifier = flag(Aspect::High, 80, ".HI");
/// The same in a form that has it always.
const HIGH_ALWAYS: Modifier = function(Aspect::High, |word| word.bit(80).then_some(".HI"), 1 << 80);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(
        Opcode::Imad,
        all_forms!(0x024),
        &[IMAD_ALIAS, UNSIGNED, CARRY],
        &[RD, RA, b(SIGNED, PLAIN), c(SIGNED, CARRIED), PS.shown(Shown::If(74))],
    )
    .fixed(&[(Field::new(81, 3), 7)]),
    Encoding::new(
        Opcode::ImadWide,
        all_forms!(0x025),
        &[UNSIGNED, CARRY],
        &[RD, PD_IF_ANY, RA, b(SIGNED, PLAIN), c(SIGNED, CARRIED), PS.shown(Shown::If(74))],
    ),
    Encoding::new(
        Opcode::ImadHigh,
        all_forms!(0x027),
        &[UNSIGNED, CARRY],
        &[RD, PD_IF_ANY, RA, b(SIGNED, PLAIN), c(SIGNED, CARRIED), PS.shown(Shown::If(74))],
    ),
    Encoding::new(
        Opcode::Iadd3,
        second_forms!(0x010),
        &[CARRY],
        &[
            RD,
            PD_IF_ANY,
            PD2_IF_ANY,
            a(CARRIED),
            b(SIGNED, CARRIED),
            c(SIGNED, CARRIED),
            PS.shown(Shown::If(74)),
            PS2.shown(Shown::If(74)),
        ],
    ),
    Encoding::new(
        Opcode::Isetp,
        second_forms!(0x00c),
        &[INTEGER_COMPARISON, UNSIGNED, BOOLEAN, flag(Aspect::Extended, 72, ".EX")],
        &[PD, PD2, RA, b(SIGNED, PLAIN), PS, PS3_IF_ANY],
    )
    .until(75),
    Encoding::new(
        Opcode::Isetp,
        second_forms!(0x00c),
        &[INTEGER_COMPARISON, UNSIGNED, BOOLEAN, flag(Aspect::Extended, 72, ".EX")],
        &[PD, PD2, RA, b(SIGNED, PLAIN), PS, PS3.shown(Shown::If(72))],
    )
    .since(80),
    Encoding::new(
        Opcode::Lop3,
        second_forms!(0x012),
        &[text(".LUT"), flag(Aspect::PredicateAnd, 80, ".PAND")],
        &[PD_IF_ANY, RD, RA, b(BITS, PLAIN), c(BITS, PLAIN), number(72, 8), PS],
    ),
    Encoding::new(
        Opcode::Shf,
        all_forms!(0x019),
        &[DIRECTION, WRAP, SHIFT_TYPE, HIGH],
        &[RD, RA, b(BITS, PLAIN), c(BITS, PLAIN)],
    ),
    Encoding::new(
        Opcode::Lea,
        second_forms!(0x011),
        &[HIGH, CARRY, EXTENDED_SIGN],
        &[
            RD,
            PD_IF_ANY,
            a(CARRIED),
            b(BITS, CARRIED),
            c(BITS, PLAIN).shown(Shown::Where(|word| word.bit(80) && !word.bit(73))),
            number(75, 5),
            PS.shown(Shown::If(74)),
        ],
    ),
    // With the upper half as an immediate, alone in this form.
    Encoding::new(
        Opcode::Lea,
        &[0x411],
        &[HIGH_ALWAYS, CARRY],
        &[RD, PD_IF_ANY, a(CARRIED), RC, c(BITS, PLAIN), number(75, 5), PS.shown(Shown::If(74))],
    ),
    Encoding::new(Opcode::Sel, second_forms!(0x007), &[], &[RD, RA, b(BITS, PLAIN), PS]),
    Encoding::new(Opcode::Imnmx, second_forms!(0x017), &[UNSIGNED], &[RD, RA, b(SIGNED, PLAIN), PS]),
    Encoding::new(Opcode::Iabs, second_forms!(0x013), &[], &[RD, b(BITS, PLAIN)]),
    Encoding::new(
        Opcode::Prmt,
        all_forms!(0x016),
        &[choice(Aspect::Mode, 72, 3, &["", ".F4E", ".B4E", ".RC8", ".ECL", ".ECR", ".RC16", NO_SUCH])],
        &[RD, RA, b(BITS, PLAIN), c(BITS, PLAIN)],
    ),
    Encoding::new(
        Opcode::Mov,
        second_forms!(0x002),
        &[],
        &[RD, b(BITS, PLAIN), number(72, 4).shown(Shown::Where(|word| word.bits(72, 4) != 15))],
    ),
    Encoding::new(Opcode::Popc, second_forms!(0x109), &[], &[RD, b(BITS, Sign::Invert)]),
    Encoding::new(
        Opcode::Flo,
        second_forms!(0x100),
        &[UNSIGNED, flag(Aspect::ShiftAmount, 74, ".SH")],
        &[RD, PD_IF_ANY, b(BITS, Sign::Invert)],
    ),
    Encoding::new(Opcode::Brev, second_forms!(0x101), &[], &[RD, b(BITS, PLAIN)]),
    Encoding::new(Opcode::Bmsk, second_forms!(0x01b), &[WRAP], &[RD, RA, b(BITS, PLAIN)]),
    Encoding::new(Opcode::Sgxt, second_forms!(0x01a), &[WRAP, UNSIGNED], &[RD, RA, b(BITS, PLAIN)]),
    Encoding::new(
        Opcode::Idp,
        second_forms!(0x026),
        &[function(Aspect::Type, dot_product, DOT_PRODUCT_TYPES)],
        &[RD, RA, b(BITS, PLAIN), register(64, Sign::Negate)],
    ),
    Encoding::new(
        Opcode::Vabsdiff,
        all_forms!(0x014),
        &[UNSIGNED],
        &[RD, PD_IF_ANY, RA, b(BITS, PLAIN), c(BITS, PLAIN)],
    ),
    Encoding::new(
        Opcode::Vabsdiff4,
        all_forms!(0x015),
        &[choice(Aspect::Unsigned, 73, 1, &[".U8", ""]), flag(Aspect::Accumulate, 75, ".ACC")],
        &[RD, PD_IF_ANY, RA, b(BITS, PLAIN), c(BITS, PLAIN)],
    ),
    Encoding::new(
        Opcode::I2i,
        second_forms!(0x038),
        &[choice(Aspect::Type, 76, 2, NARROW), text(".S32.SAT")],
        &[RD, b(BITS, PLAIN)],
    )
    .since(75),
    Encoding::new(
        Opcode::I2ip,
        second_forms!(0x039),
        &[choice(Aspect::Type, 76, 3, NARROW_TO_BITS), text(".S32.SAT")],
        &[RD, RA, b(BITS, PLAIN), PART_OF_C],
    )
    .between(75, 89),
    Encoding::new(
        Opcode::I2ip,
        second_forms!(0x039),
        &[
            choice(Aspect::Type, 76, 3, NARROW_TO_BITS),
            text(".S32"),
            choice(Aspect::Saturate, 74, 2, &["", ".SAT", ".SATRELU", NO_SUCH]),
        ],
        &[RD, RA, b(BITS, PLAIN), PART_OF_C],
    )
    .since(90),
];

/// The types that a narrowing conversion has.
const NARROW: &[&str] = &[".U8", ".S8", ".U16", ".S16"];

/// Those of a conversion of two numbers.
const NARROW_TO_BITS: &[&str] = &[".U8", ".S8", ".U16", ".S16", ".U2", ".S2", ".U4", ".S4"];

/// The part of a register in place C that the other results are put before.
const PART_OF_C: Operand = source(
    SourcePlace::Register(64),
    Immediate::Bits,
    Sign::None,
    Suffix::Part(Field::new(72, 2), |word| match word.bits(76, 3) {
        0..4 => &["", ".H1"],
        4 | 5 => &[NO_SUCH, NO_SUCH, NO_SUCH, ".28"],
        _ => &[NO_SUCH, NO_SUCH, ".24"],
    }),
);

const DOT_PRODUCT_TYPES: u128 = Field::new(73, 2).mask() | Field::new(76, 2).mask();

/// Products of four bytes, or of two halves with two bytes.
fn dot_product(word: Word) -> Option<&'static str> {
    let types = usize::from(word.bit(73)) + 2 * usize::from(word.bit(74));
    Some(match word.bits(76, 2) {
        0 => [".4A.U8.U8", ".4A.S8.U8", ".4A.U8.S8", ".4A.S8.S8"][types],
        1 => [".2A.LO.U16.U8", ".2A.LO.S16.U8", ".2A.LO.U16.S8", ".2A.LO.S16.S8"][types],
        3 => [".2A.HI.U16.U8", ".2A.HI.S16.U8", ".2A.HI.U16.S8", ".2A.HI.S16.S8"][types],
        _ => return None,
    })
}
