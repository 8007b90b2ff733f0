//! Exchanges between lanes and predicates: shuffles, votes, matches, predicate logic, special registers.

use super::slots::*;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Place, Shown, Sign, Slot};
use crate::sass::instruction::{constant, register, uniform_register};
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

const SHUFFLE: Modifier = choice(58, 2, &[".IDX", ".UP", ".DOWN", ".BFLY"]);
const LANE: Operand = at(Slot::Number(Field::new(53, 5)));
const SEGMENT: Operand = at(Slot::Number(Field::new(40, 13)));
const VOTE: Modifier = choice(72, 2, &[".ALL", ".ANY", ".EQ", NO_SUCH]);
/// A table of three predicates.
const TABLE: Operand = at(Slot::Number2(Field::new(64, 3), Field::new(72, 5)));
const MASK: Operand = at(Slot::Number(Field::new(32, 32)));

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Shfl, &[0x389], &[SHUFFLE], &[PD, RD, RA, RB, RC]),
    Encoding::new(Opcode::Shfl, &[0x589], &[SHUFFLE], &[PD, RD, RA, RB, SEGMENT]),
    Encoding::new(Opcode::Shfl, &[0x989], &[SHUFFLE], &[PD, RD, RA, LANE, RC]),
    Encoding::new(Opcode::Shfl, &[0xf89], &[SHUFFLE], &[PD, RD, RA, LANE, SEGMENT]),
    Encoding::new(Opcode::Vote, &[0x806], &[VOTE], &[RD.shown(Shown::UnlessZero(16)), PD, PS]),
    Encoding::new(
        Opcode::Match,
        &[0x3a1],
        &[choice(79, 1, &[".ALL", ".ANY"]), flag(73, ".U64")],
        &[PD.shown(Shown::Where(|word| !word.bit(79))), RD, RA],
    ),
    Encoding::new(
        Opcode::Plop3,
        &[0x81c],
        &[Modifier::Text(".LUT")],
        &[PD, PD2, PS, PS2, PS3, TABLE, at(Slot::Number(Field::new(16, 8)))],
    ),
    Encoding::new(
        Opcode::Plop3,
        &[0x81c],
        &[Modifier::Text(".LUT")],
        &[PD, PD2, PS, PS2, at(Slot::EitherPredicateSource), TABLE, at(Slot::Number(Field::new(16, 8)))],
    )
    .since(75),
    // The signs of registers.
    Encoding::new(
        Opcode::Plop3,
        &[0x21f, 0xa1f, 0xc1f],
        &[Modifier::Text(".LUT")],
        &[
            PD,
            PD2,
            at(Slot::Register(24, |word| sign_of(word, 24), 0)),
            at(Slot::Exchanged(sign_of_second, 0)),
            at(Slot::Register(64, |word| sign_of(word, 64), 0)),
            at(Slot::Number(Field::new(72, 8))),
            at(Slot::Number(Field::new(16, 8))),
        ],
    ),
    Encoding::new(
        Opcode::P2r,
        &[0x803],
        &[choice(76, 2, &["", ".B1", ".B2", ".B3"])],
        &[RD, at(Slot::AllPredicates), RA, at(Slot::SignedNumber(Field::new(32, 32)))],
    ),
    Encoding::new(
        Opcode::R2p,
        &[0x804],
        &[],
        &[at(Slot::AllPredicates), at(Slot::Register(24, byte_of_register, 3 << 76)), MASK],
    ),
    Encoding::uniform(
        Opcode::Up2ur,
        &[0x883],
        &[choice(76, 2, &["", ".B1", ".B2", ".B3"])],
        &[UD, at(Slot::AllUniformPredicates), UA, MASK],
    )
    .fixed(&[(Field::new(91, 1), 1)]),
    Encoding::uniform(
        Opcode::Ur2up,
        &[0x884],
        &[],
        &[at(Slot::AllUniformPredicates), at(Slot::UniformRegister(24, byte_of_uniform_register)), MASK],
    )
    .fixed(&[(Field::new(91, 1), 1)])
    .ignoring(76, 2),
    Encoding::new(Opcode::S2r, &[0x919], &[], &[RD, at(Slot::Special)]),
    Encoding::new(Opcode::Cs2r, &[0x805], &[choice(80, 1, &[".32", ""])], &[RD, at(Slot::Special)]),
    Encoding::uniform(Opcode::S2ur, &[0x9c3], &[], &[UD, at(Slot::Special)]),
    Encoding::new(Opcode::R2ur, &[0x3c2], &[], &[PD_IF_ANY, UD, a(Sign::None)]).since(75),
    Encoding::new(Opcode::Voteu, &[0x886], &[VOTE], &[UD.shown(Shown::Where(|word| word.bits(16, 6) != 63)), UPD, PS])
        .since(75),
];

/// The byte of a register that predicates are made of.
fn byte_of_register(word: crate::sass::word::Word) -> String {
    let byte = ["", ".B1", ".B2", ".B3"][word.bits(76, 2) as usize];
    format!("{}{byte}", crate::sass::instruction::register_source(word, 24, false))
}

fn byte_of_uniform_register(word: Word) -> String {
    format!("{}{}", uniform_register(word.bits(24, 6)), ["", ".B1", ".B2", ".B3"][word.bits(76, 2) as usize])
}

/// The disassembler puts a space between a constant's bank and its offset here.
fn sign_of_second(word: Word) -> String {
    match Place::exchanged(word) {
        Some(Place::Constant) => format!("{}.SIGN", constant(word).replace("][", "] [")),
        Some(Place::Uniform) => format!("{}.SIGN", uniform_register(word.bits(32, 6))),
        _ => sign_of(word, 32),
    }
}

fn sign_of(word: Word, low: u8) -> String {
    format!("{}.SIGN", register(word.bits(low, 8)))
}
