//! Exchanges between lanes and predicates: shuffles, votes, matches, predicate logic, special registers.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, Slot, SourcePlace, Suffix};
use crate::sass::word::Field;

const SHUFFLE: Modifier = choice(Aspect::Mode, 58, 2, &[".IDX", ".UP", ".DOWN", ".BFLY"]);
const LANE: Operand = number(53, 5);
const SEGMENT: Operand = number(40, 13);
/// The bytes of a register.
const BYTES: &[&str] = &["", ".B1", ".B2", ".B3"];
const VOTE: Modifier = choice(Aspect::Mode, 72, 2, &[".ALL", ".ANY", ".EQ", NO_SUCH]);
/// A table of three predicates.
const TABLE: Operand = at(Slot::Number2(Field::new(64, 3), Field::new(72, 5)));
/// Whether a lane has another value than the one that is taken; or the same or this.
const DIFFERS: Operand = PD.shown(Shown::Where(|word| word.bits(81, 3) != 7 || word.bit(84)));
const SPECIAL: Operand = at(Slot::Special);
const CLOCK_SIZE: Modifier = choice(Aspect::Size, 80, 1, &[".32", ""]);
const MASK: Operand = number(32, 32);
/// Where it is not all predicates.
const MASK_IF_NOT_ALL: Operand = MASK.shown(Shown::Where(|word| word.bits(32, 32) != 0xff));

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Shfl, &[0x389], &[SHUFFLE], &[PD, RD, RA, RB, RC]),
    Encoding::new(Opcode::Shfl, &[0x589], &[SHUFFLE], &[PD, RD, RA, RB, SEGMENT]),
    Encoding::new(Opcode::Shfl, &[0x989], &[SHUFFLE], &[PD, RD, RA, LANE, RC]),
    Encoding::new(Opcode::Shfl, &[0xf89], &[SHUFFLE], &[PD, RD, RA, LANE, SEGMENT]),
    Encoding::new(Opcode::Vote, &[0x806], &[VOTE], &[RD.shown(Shown::UnlessZero(16)), PD, PS]),
    Encoding::new(
        Opcode::Match,
        &[0x3a1],
        &[choice(Aspect::Mode, 79, 1, &[".ALL", ".ANY"]), flag(Aspect::Wide, 73, ".U64")],
        &[PD.shown(Shown::Where(|word| !word.bit(79))), RD, RA],
    ),
    Encoding::new(Opcode::Plop3, &[0x81c], &[text(".LUT")], &[PD, PD2, PS, PS2, PS3, TABLE, number(16, 8)]),
    Encoding::new(
        Opcode::Plop3,
        &[0x81c],
        &[text(".LUT")],
        &[PD, PD2, PS, PS2, at(Slot::EitherPredicateSource), TABLE, number(16, 8)],
    )
    .since(75),
    // The signs of registers.
    Encoding::new(
        Opcode::Plop3,
        &[0x21f, 0xa1f, 0xc1f],
        &[text(".LUT")],
        &[
            PD,
            PD2,
            sign_of(SourcePlace::Register(24)),
            sign_of(SourcePlace::Exchanged),
            sign_of(SourcePlace::Register(64)),
            number(72, 8),
            number(16, 8),
        ],
    ),
    Encoding::new(
        Opcode::Plop3,
        &[0x21d, 0xa1d, 0xc1d],
        &[text(".LUT")],
        &[PD, PD2, PS, sign_of(SourcePlace::Exchanged), PS3, number(72, 8), number(16, 8)],
    )
    .since(80),
    Encoding::new(
        Opcode::Plop3,
        &[0x21e, 0xa1e, 0xc1e],
        &[text(".LUT")],
        &[
            PD,
            PD2,
            PS,
            sign_of(SourcePlace::Exchanged),
            sign_of(SourcePlace::Register(64)),
            number(72, 8),
            number(16, 8),
        ],
    )
    .since(80),
    // The mask in a register.
    Encoding::new(
        Opcode::P2r,
        &[0x203, 0xa03, 0xc03],
        &[choice(Aspect::Byte, 76, 2, BYTES)],
        &[RD, at(Slot::AllPredicates), RA, b(Immediate::Bits, Sign::None)],
    )
    .since(80),
    Encoding::new(
        Opcode::R2p,
        &[0x204, 0xa04, 0xc04],
        &[],
        &[at(Slot::AllPredicates), byte_of(SourcePlace::Register(24)), b(Immediate::Bits, Sign::None)],
    )
    .since(80),
    Encoding::uniform(
        Opcode::Up2ur,
        &[0xc83],
        &[choice(Aspect::Byte, 76, 2, BYTES)],
        &[UD, at(Slot::AllUniformPredicates), UA, uniform(32, Sign::None)],
    )
    .fixed(&[(Field::new(91, 1), 1)])
    .since(80),
    Encoding::uniform(
        Opcode::Ur2up,
        &[0xc84],
        &[],
        &[at(Slot::AllUniformPredicates), byte_of(SourcePlace::Uniform(24)), uniform(32, Sign::None)],
    )
    .fixed(&[(Field::new(91, 1), 1)])
    .since(80),
    Encoding::new(
        Opcode::P2r,
        &[0x803],
        &[choice(Aspect::Byte, 76, 2, BYTES)],
        &[RD, at(Slot::AllPredicates), RA, at(Slot::SignedNumber(Field::new(32, 32)))],
    )
    .until(89),
    Encoding::new(
        Opcode::P2r,
        &[0x803],
        &[choice(Aspect::Byte, 76, 2, BYTES)],
        &[RD, at(Slot::AllPredicates), RA, MASK],
    )
    .since(90),
    Encoding::new(
        Opcode::R2p,
        &[0x804],
        &[],
        &[at(Slot::AllPredicates), byte_of(SourcePlace::Register(24)), MASK_IF_NOT_ALL],
    ),
    Encoding::uniform(
        Opcode::Up2ur,
        &[0x883],
        &[choice(Aspect::Byte, 76, 2, BYTES)],
        &[UD, at(Slot::AllUniformPredicates), UA, MASK],
    )
    .fixed(&[(Field::new(91, 1), 1)]),
    Encoding::uniform(
        Opcode::Ur2up,
        &[0x884],
        &[],
        &[at(Slot::AllUniformPredicates), byte_of(SourcePlace::Uniform(24)), MASK_IF_NOT_ALL],
    )
    .fixed(&[(Field::new(91, 1), 1)]),
    // The names of special registers depend on the generation.
    Encoding::new(Opcode::S2r, &[0x919], &[], &[RD, SPECIAL]).until(79),
    Encoding::new(Opcode::S2r, &[0x919], &[], &[RD, SPECIAL]).between(80, 89),
    Encoding::new(Opcode::S2r, &[0x919], &[], &[RD, SPECIAL]).since(90),
    Encoding::new(Opcode::Cs2r, &[0x805], &[CLOCK_SIZE], &[RD, SPECIAL]).until(79),
    Encoding::new(Opcode::Cs2r, &[0x805], &[CLOCK_SIZE], &[RD, SPECIAL]).between(80, 89),
    Encoding::new(Opcode::Cs2r, &[0x805], &[CLOCK_SIZE], &[RD, SPECIAL]).since(90),
    Encoding::uniform(Opcode::S2ur, &[0x9c3], &[], &[UD, SPECIAL]).until(79),
    Encoding::uniform(Opcode::S2ur, &[0x9c3], &[], &[UD, SPECIAL]).between(80, 89),
    Encoding::uniform(Opcode::S2ur, &[0x9c3], &[], &[UD, SPECIAL]).since(90),
    Encoding::new(Opcode::R2ur, &[0x3c2], &[], &[PD_IF_ANY, UD, a(Sign::None)]).between(75, 75),
    Encoding::new(Opcode::R2ur, &[0x3c2], &[flag(Aspect::Mode, 84, ".OR")], &[DIFFERS, UD, a(Sign::None)])
        .between(80, 89),
    Encoding::new(Opcode::R2ur, &[0x2ca], &[flag(Aspect::Mode, 84, ".OR")], &[DIFFERS, UD, a(Sign::None)]).since(90),
    Encoding::new(
        Opcode::Redux,
        &[0x3c4],
        &[
            choice(Aspect::Operation, 78, 3, &["", ".OR", ".XOR", ".SUM", ".MIN", ".MAX"]),
            flag(Aspect::Type, 73, ".S32"),
        ],
        &[UD, RA],
    )
    .since(80),
    Encoding::new(Opcode::Voteu, &[0x886], &[VOTE], &[UD.shown(Shown::Where(|word| word.bits(16, 6) != 63)), UPD, PS])
        .since(75),
];

/// The byte of a register that predicates are made of.
const fn byte_of(place: SourcePlace) -> Operand {
    source(place, Immediate::Bits, Sign::None, Suffix::Part(Field::new(76, 2), |_| BYTES))
}

/// The sign of a register.
const fn sign_of(place: SourcePlace) -> Operand {
    source(place, Immediate::Bits, Sign::None, Suffix::Fixed(".SIGN"))
}
