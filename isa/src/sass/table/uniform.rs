//! The uniform datapath: values that a warp has once.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Distance, Immediate, Sign, Slot, SourcePlace, Suffix};
use crate::sass::word::Field;

/// The source in bits 32 to 63: a uniform register, or an immediate.
const fn second(immediate: Immediate, sign: Sign) -> Operand {
    source(SourcePlace::UniformExchanged, immediate, sign, Suffix::None)
}

/// The sign of a uniform register.
const fn sign_of(place: SourcePlace) -> Operand {
    source(place, Immediate::Bits, Sign::None, Suffix::Fixed(".SIGN"))
}

const CARRIED_B: Operand = second(Immediate::Signed, Sign::NegateOrInvert);
const SIGNED_B: Operand = second(Immediate::Signed, Sign::None);
const INVERTED_B: Operand = second(Immediate::Bits, Sign::Invert);
const BITS_B: Operand = second(Immediate::Bits, Sign::None);

const CARRIED_A: Operand = uniform(24, Sign::NegateOrInvert);
const CARRIED_C: Operand = uniform(64, Sign::NegateOrInvert);
const HIGH: Modifier = flag(Aspect::High, 80, ".HI");

const SHIFT: &[Modifier] = &[
    choice(Aspect::Direction, 76, 1, &[".L", ".R"]),
    flag(Aspect::Wrap, 75, ".W"),
    choice(Aspect::Type, 73, 2, &[".S64", ".U64", ".S32", ".U32"]),
    HIGH,
];
const IS_UNIFORM: &[(Field, u64)] = &[(Field::new(91, 1), 1)];
/// Where others have a predicate that they write.
const NO_PREDICATE: &[(Field, u64)] = &[(Field::new(81, 3), 7)];

/// The operands of a sum of three with carries.
const SUMMED: &[Operand] = &[
    UD,
    UPD_IF_ANY,
    UPD2_IF_ANY,
    CARRIED_A,
    CARRIED_B,
    CARRIED_C,
    UPS.shown(Shown::If(74)),
    UPS2.shown(Shown::If(74)),
];

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::uniform(Opcode::Uldc, &[0xab9], &[SIZE_TO_64], &[UD, at(Slot::Constant)]),
    Encoding::uniform(Opcode::Uldc, &[0xabb], &[SIZE_TO_64], &[UD, at(Slot::UniformIndexedConstant)]),
    Encoding::uniform(Opcode::Uiadd3, uniform_forms!(0x090), &[CARRY], SUMMED),
    // Pairs of registers.
    Encoding::uniform(Opcode::Uiadd3, &[0x297, 0x897], &[function(Aspect::Wide, |_| Some(".64"), 0), CARRY], SUMMED)
        .since(80),
    Encoding::uniform(Opcode::Umov, &[0x882, 0xc82], &[], &[UD, BITS_B]),
    Encoding::uniform(
        Opcode::Uimad,
        uniform_forms!(0x0a4),
        &[UNSIGNED, CARRY],
        &[UD, UA, SIGNED_B, CARRIED_C, UPS.shown(Shown::If(74))],
    )
    .fixed(NO_PREDICATE),
    Encoding::uniform(Opcode::Uimad, &[0x4a4], &[UNSIGNED, CARRY], &[UD, UA, UC, SIGNED_B, UPS.shown(Shown::If(74))])
        .fixed(NO_PREDICATE),
    Encoding::uniform(
        Opcode::UimadWide,
        uniform_forms!(0x0a5),
        &[UNSIGNED, CARRY],
        &[UD, UPD_IF_ANY, UA, SIGNED_B, CARRIED_C, UPS.shown(Shown::If(74))],
    ),
    Encoding::uniform(Opcode::Ushf, &[0x499], SHIFT, &[UD, UA, UC, BITS_B]),
    Encoding::uniform(Opcode::Ushf, uniform_forms!(0x099), SHIFT, &[UD, UA, BITS_B, UC]),
    Encoding::uniform(
        Opcode::Ulop3,
        uniform_forms!(0x092),
        &[text(".LUT"), flag(Aspect::PredicateAnd, 80, ".PAND")],
        &[UPD_IF_ANY, UD, UA, BITS_B, UC, number(72, 8), UPS],
    ),
    Encoding::uniform(
        Opcode::Ulea,
        uniform_forms!(0x091),
        &[HIGH, CARRY, EXTENDED_SIGN],
        &[
            UD,
            UPD_IF_ANY,
            CARRIED_A,
            second(Immediate::Bits, Sign::NegateOrInvert),
            UC.shown(Shown::Where(|word| word.bit(80) && !word.bit(73))),
            number(75, 5),
            UPS.shown(Shown::If(74)),
        ],
    ),
    Encoding::uniform(
        Opcode::Uisetp,
        uniform_forms!(0x08c),
        &[INTEGER_COMPARISON, UNSIGNED, BOOLEAN, flag(Aspect::Extended, 72, ".EX")],
        &[UPD, UPD2, UA, SIGNED_B, UPS, UPS3.shown(Shown::If(72))],
    ),
    Encoding::uniform(Opcode::Usel, uniform_forms!(0x087), &[], &[UD, UA, BITS_B, UPS]),
    Encoding::uniform(
        Opcode::Uflo,
        &[0x2bd],
        &[UNSIGNED, flag(Aspect::ShiftAmount, 74, ".SH")],
        &[UD, UPD_IF_ANY, INVERTED_B],
    ),
    Encoding::uniform(
        Opcode::Uflo,
        &[0x8bd],
        &[UNSIGNED, flag(Aspect::ShiftAmount, 74, ".SH")],
        &[UD, UPD_IF_ANY, BITS_B],
    )
    .since(80),
    Encoding::uniform(Opcode::Upopc, &[0x2bf], &[], &[UD, INVERTED_B]),
    Encoding::uniform(Opcode::Upopc, &[0x8bf], &[], &[UD, BITS_B]).since(80),
    Encoding::uniform(Opcode::Ubrev, &[0x2be], &[], &[UD, BITS_B]),
    Encoding::uniform(Opcode::Ubrev, &[0x8be], &[], &[UD, BITS_B]).since(80),
    Encoding::uniform(Opcode::Ubmsk, uniform_forms!(0x09b), &[flag(Aspect::Wrap, 75, ".W")], &[UD, UA, BITS_B]),
    Encoding::uniform(
        Opcode::Usgxt,
        uniform_forms!(0x09a),
        &[flag(Aspect::Wrap, 75, ".W"), UNSIGNED],
        &[UD, UA, BITS_B],
    ),
    Encoding::uniform(Opcode::Uprmt, uniform_forms!(0x096), &[], &[UD, UA, BITS_B, UC]),
    Encoding::uniform(
        Opcode::Uplop3,
        &[0x89c],
        &[text(".LUT")],
        &[UPD, UPD2, UPS, UPS2, UPS3, at(Slot::Number2(Field::new(64, 3), Field::new(72, 5))), number(16, 8)],
    ),
    // Where the instructions of a place are.
    Encoding::uniform(Opcode::Ulepc, &[0x3ce], &[], &[UD]).fixed(IS_UNIFORM).since(90),
    Encoding::uniform(Opcode::Ulepc, &[0x9ce], &[], &[UD, at(Slot::Target(Distance::Bytes(Field::new(24, 58))))])
        .fixed(IS_UNIFORM)
        .since(90),
    Encoding::uniform(
        Opcode::Uplop3,
        &[0x29d],
        &[text(".LUT")],
        &[UPD, UPD2, UPS, sign_of(SourcePlace::UniformExchanged), UPS3, number(72, 8), number(16, 8)],
    )
    .since(80),
    Encoding::uniform(
        Opcode::Uplop3,
        &[0x29e],
        &[text(".LUT")],
        &[
            UPD,
            UPD2,
            UPS,
            sign_of(SourcePlace::UniformExchanged),
            sign_of(SourcePlace::Uniform(64)),
            number(72, 8),
            number(16, 8),
        ],
    )
    .since(80),
    // The signs of registers.
    Encoding::uniform(
        Opcode::Uplop3,
        &[0x29f],
        &[text(".LUT")],
        &[
            UPD,
            UPD2,
            sign_of(SourcePlace::Uniform(24)),
            sign_of(SourcePlace::UniformExchanged),
            sign_of(SourcePlace::Uniform(64)),
            number(72, 8),
            number(16, 8),
        ],
    ),
];
