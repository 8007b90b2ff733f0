//! The uniform datapath: values that a warp has once.

use super::slots::*;
use crate::sass::encoding::{Encoding, Immediate, Modifier, Operand, Shown, Sign, Slot};
use crate::sass::instruction::uniform_register;
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

/// The source in bits 32 to 63: a uniform register, or an immediate; `further` are its sign bits.
const fn second(source: fn(Word) -> String, further: u128) -> Operand {
    at(Slot::UniformExchanged(source, further))
}

const CARRIED_B: Operand = second(|word| source(word, Immediate::Signed), 1 << 63);
const SIGNED_B: Operand = second(|word| source(word, Immediate::Signed), 0);
const INVERTED_B: Operand = second(inverted, 1 << 63);
const BITS_B: Operand = second(|word| source(word, Immediate::Bits), 0);

fn source(word: Word, immediate: Immediate) -> String {
    if matches!(word.code() >> 9, 2 | 4) {
        return crate::sass::instruction::immediate_text(word.bits(32, 32) as u32, immediate);
    }
    let sign = match (word.bit(63), word.bit(74)) {
        (false, _) => "",
        (true, true) => "~",
        (true, false) => "-",
    };
    format!("{sign}{}", uniform_register(word.bits(32, 6)))
}

fn sign_of(word: Word, low: u8) -> String {
    format!("{}.SIGN", uniform_register(word.bits(low, 6)))
}

fn inverted(word: Word) -> String {
    format!("{}{}", if word.bit(63) { "~" } else { "" }, uniform_register(word.bits(32, 6)))
}

const CARRIED_A: Operand = at(Slot::UniformSource(24, Sign::NegateOrInvert));
const CARRIED_C: Operand = at(Slot::UniformSource(64, Sign::NegateOrInvert));
const HIGH: Modifier = flag(80, ".HI");

const SHIFT: &[Modifier] =
    &[choice(76, 1, &[".L", ".R"]), flag(75, ".W"), choice(73, 2, &[".S64", ".U64", ".S32", ".U32"]), HIGH];
/// Where others have a predicate that they write.
const NO_PREDICATE: &[(Field, u64)] = &[(Field::new(81, 3), 7)];

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::uniform(Opcode::Uldc, &[0xab9], &[SIZE_TO_64], &[UD, at(Slot::Constant)]),
    Encoding::uniform(Opcode::Uldc, &[0xabb], &[SIZE_TO_64], &[UD, at(Slot::UniformIndexedConstant)]),
    Encoding::uniform(
        Opcode::Uiadd3,
        uniform_forms!(0x090),
        &[CARRY],
        &[
            UD,
            UPD_IF_ANY,
            UPD2_IF_ANY,
            CARRIED_A,
            CARRIED_B,
            CARRIED_C,
            UPS.shown(Shown::If(74)),
            UPS2.shown(Shown::If(74)),
        ],
    ),
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
        Opcode::Uimad,
        uniform_forms!(0x0a5),
        &[Modifier::Text(".WIDE"), CARRY, UNSIGNED],
        &[UD, UPD_IF_ANY, UA, SIGNED_B, CARRIED_C, UPS.shown(Shown::If(74))],
    ),
    Encoding::uniform(Opcode::Ushf, &[0x499], SHIFT, &[UD, UA, UC, BITS_B]),
    Encoding::uniform(Opcode::Ushf, uniform_forms!(0x099), SHIFT, &[UD, UA, BITS_B, UC]),
    Encoding::uniform(
        Opcode::Ulop3,
        uniform_forms!(0x092),
        &[Modifier::Text(".LUT"), flag(80, ".PAND")],
        &[UPD_IF_ANY, UD, UA, BITS_B, UC, at(Slot::Number(Field::new(72, 8))), UPS],
    ),
    Encoding::uniform(
        Opcode::Ulea,
        uniform_forms!(0x091),
        &[HIGH, CARRY, EXTENDED_SIGN],
        &[
            UD,
            UPD_IF_ANY,
            CARRIED_A,
            second(|word| source(word, Immediate::Bits), 1 << 63),
            UC.shown(Shown::Where(|word| word.bit(80) && !word.bit(73))),
            at(Slot::Number(Field::new(75, 5))),
            UPS.shown(Shown::If(74)),
        ],
    ),
    Encoding::uniform(
        Opcode::Uisetp,
        uniform_forms!(0x08c),
        &[INTEGER_COMPARISON, UNSIGNED, BOOLEAN, flag(72, ".EX")],
        &[UPD, UPD2, UA, SIGNED_B, UPS, UPS3.shown(Shown::If(72))],
    ),
    Encoding::uniform(Opcode::Usel, uniform_forms!(0x087), &[], &[UD, UA, BITS_B, UPS]),
    Encoding::uniform(Opcode::Uflo, &[0x2bd], &[UNSIGNED, flag(74, ".SH")], &[UD, UPD_IF_ANY, INVERTED_B]),
    Encoding::uniform(Opcode::Upopc, &[0x2bf], &[], &[UD, INVERTED_B]),
    Encoding::uniform(Opcode::Ubrev, &[0x2be], &[], &[UD, BITS_B]),
    Encoding::uniform(Opcode::Ubmsk, uniform_forms!(0x09b), &[flag(75, ".W")], &[UD, UA, BITS_B]),
    Encoding::uniform(Opcode::Usgxt, uniform_forms!(0x09a), &[flag(75, ".W"), UNSIGNED], &[UD, UA, BITS_B]),
    Encoding::uniform(Opcode::Uprmt, uniform_forms!(0x096), &[], &[UD, UA, BITS_B, UC]),
    Encoding::uniform(
        Opcode::Uplop3,
        &[0x89c],
        &[Modifier::Text(".LUT")],
        &[
            UPD,
            UPD2,
            UPS,
            UPS2,
            UPS3,
            at(Slot::Number2(Field::new(64, 3), Field::new(72, 5))),
            at(Slot::Number(Field::new(16, 8))),
        ],
    ),
    // The signs of registers.
    Encoding::uniform(
        Opcode::Uplop3,
        &[0x29f],
        &[Modifier::Text(".LUT")],
        &[
            UPD,
            UPD2,
            at(Slot::UniformRegister(24, |word| sign_of(word, 24))),
            second(|word| sign_of(word, 32), 0),
            at(Slot::UniformRegister(64, |word| sign_of(word, 64))),
            at(Slot::Number(Field::new(72, 8))),
            at(Slot::Number(Field::new(16, 8))),
        ],
    ),
];
