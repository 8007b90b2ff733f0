//! Exits, convergence, barriers.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Distance, Immediate, Sign, Slot};
use crate::sass::word::{Field, Word};

const BARRIER: Operand = at(Slot::ConvergenceBarrier(16));
pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(
        Opcode::Exit,
        &[0x94d],
        &[
            choice(Aspect::Mode, 84, 2, &["", ".KEEPREFCOUNT", ".PREEMPTED", NO_SUCH]),
            flag(Aspect::NoExitHandler, 86, ".NO_ATEXIT"),
        ],
        &[PS_IF_ANY],
    ),
    Encoding::new(
        Opcode::Bssy,
        &[0x945],
        &[],
        &[PS_IF_ANY, BARRIER, at(Slot::Target(Distance::Words(Field::new(34, 30))))],
    ),
    Encoding::new(Opcode::Bsync, &[0x941], &[], &[PS_IF_ANY, BARRIER]),
    Encoding::new(Opcode::Break, &[0x942], &[], &[PS_IF_ANY, BARRIER]),
    Encoding::new(Opcode::Bmov, &[0x355], &[text(".32"), flag(Aspect::Clear, 84, ".CLEAR")], &[RD, WARP_STATE]),
    Encoding::new(Opcode::Bmov, &[0x356], &[text(".32"), flag(Aspect::Mode, 84, ".PQUAD")], &[WARP_STATE, RB]),
    Encoding::new(Opcode::Bmov, &[0xf55], &[text(".32")], &[BARRIER, WARP_WORD]).fixed(IS_WARP_WORD),
    Encoding::new(Opcode::Bmov, &[0xf56], &[text(".32"), flag(Aspect::Mode, 84, ".PQUAD")], &[WARP_WORD, BARRIER])
        .fixed(IS_WARP_WORD),
    Encoding::new(Opcode::Warpsync, &[0x948], &[], &[PS_IF_ANY, number(32, 32)]).until(89),
    Encoding::new(Opcode::Warpsync, &[0x348], &[], &[PS_IF_ANY, RB]).until(75),
    Encoding::new(Opcode::Warpsync, &[0x348], &[EXCLUSIVE], &[PS_IF_ANY, RB]).between(80, 89),
    Encoding::new(Opcode::Warpsync, &[0x348], &[EXCLUSIVE_BY_CODE], &[PS_IF_ANY, RA]).since(90),
    Encoding::new(Opcode::Warpsync, &[0x948], &[ALL], &[PS_IF_ANY]).since(90),
    // The lanes of a mask run up to the end of the collective operation together.
    Encoding::new(Opcode::Warpsync, &[0x348], &[COLLECTIVE], &[PS_IF_ANY, RA, COLLECTIVE_TARGET])
        .fixed(&[(Field::new(85, 2), 2)])
        .since(90),
    Encoding::new(Opcode::Warpsync, &[0x948], &[COLLECTIVE, ALL], &[PS_IF_ANY, COLLECTIVE_TARGET])
        .fixed(&[(Field::new(85, 2), 2)])
        .since(90),
    Encoding::new(Opcode::Endcollective, &[0x91b], &[], &[PS_IF_ANY]).since(90),
    Encoding::new(Opcode::Yield, &[0x946], &[], &[PS_IF_ANY]),
    Encoding::new(Opcode::Nanosleep, &[0x95d], &[RANDOM, WARP], &[PS_IF_ANY, number(32, 32)]),
    Encoding::new(Opcode::Nanosleep, &[0x35d], &[RANDOM, WARP], &[PS_IF_ANY, RB]),
    // Until a barrier in shared memory changes, so long at most.
    Encoding::new(Opcode::Nanosleep, &[0x95d], &[RANDOM, WARP, SYNCS], &[PS_IF_ANY, number(32, 32)]).since(90),
    Encoding::new(Opcode::Nanosleep, &[0x35d], &[RANDOM, WARP, SYNCS], &[PS_IF_ANY, RB]).since(90),
    Encoding::new(
        Opcode::Nanosleep,
        &[0x95d],
        &[function(Aspect::Mode, |word| (word.bits(83, 2) == 1).then_some(".CLEAR"), 3 << 83)],
        &[PS_IF_ANY],
    )
    .since(90),
    Encoding::new(Opcode::Nanosleep, &[0xb5d, 0xd5d], &[RANDOM, WARP], &[PS_IF_ANY, b(Immediate::Bits, Sign::None)])
        .since(80),
    // A place of code that the warp keeps.
    Encoding::new(Opcode::Rpcmov, &[0x353], &[text(".32")], &[RD, PLACE_HALF]).since(80),
    Encoding::new(Opcode::Rpcmov, second_forms!(0x152), &[text(".32")], &[PLACE_HALF, b(Immediate::Bits, Sign::None)])
        .since(80),
    Encoding::new(
        Opcode::Rpcmov,
        &[0x954, 0xb54, 0xd54],
        &[text(".64")],
        &[at(Slot::Name(Aspect::Half, Field::new(31, 1), &["Rpc"])), b(Immediate::Bits, Sign::None)],
    )
    .since(80),
    Encoding::new(Opcode::Nop, &[0x918], &[], &[]),
    Encoding::new(Opcode::Lepc, &[0x34e], &[], &[RD]),
    Encoding::new(Opcode::Lepc, &[0x94e], &[], &[RD, at(Slot::Target(Distance::Bytes(Field::new(24, 58))))])
        .fixed(&[(Field::new(91, 1), 0)])
        .since(90),
    Encoding::new(
        Opcode::Bpt,
        &[0x95c],
        &[choice(
            Aspect::Mode,
            84,
            3,
            &[NO_SUCH, NO_SUCH, ".PAUSE", ".TRAP", ".INT", ".DRAIN", ".PAUSE_QUIET", NO_SUCH],
        )],
        &[number(34, 3).shown(Shown::Where(|word| word.bits(34, 3) != 0))],
    ),
    Encoding::new(
        Opcode::Depbar,
        &[0x91a],
        &[function(Aspect::Comparison, |word| word.bit(47).then_some(".LE"), 1 << 47)],
        &[at(Slot::Scoreboard(Field::new(44, 3))), number(38, 6), at(Slot::Scoreboards(Field::new(32, 6)))],
    ),
    // All accesses that these scoreboards count.
    Encoding::new(Opcode::Depbar, &[0x91a], &[], &[at(Slot::Scoreboards(Field::new(32, 6)))]).since(80),
    Encoding::new(Opcode::Bar, &[0xb1d], CTA_BARRIER, &[number(54, 4), THREADS, REDUCED]),
    Encoding::new(Opcode::Bar, &[0x51d], CTA_BARRIER, &[RB, THREADS, REDUCED]),
    Encoding::new(Opcode::Bar, &[0x91d], CTA_BARRIER, &[number(54, 4), RB, REDUCED]),
    // One register has both, the barrier and its threads.
    Encoding::new(Opcode::Bar, &[0x31d], CTA_BARRIER, &[RB, RB, REDUCED]),
    Encoding::new(Opcode::Pmtrig, &[0x801], &[], &[PS_IF_ANY, number(32, 16)]),
    Encoding::new(
        Opcode::B2r,
        &[0x31c],
        &[function(Aspect::Mode, |word| if word.bits(78, 2) == 1 { Some(".RESULT") } else { None }, 3 << 78)],
        &[RD, PD_IF_ANY],
    ),
    Encoding::new(
        Opcode::B2r,
        &[0x31c],
        &[function(Aspect::Mode, |word| (word.bits(78, 2) == 0).then_some(""), 3 << 78)],
        &[RD, number(54, 4)],
    )
    .since(80),
    Encoding::new(
        Opcode::B2r,
        &[0x31c],
        &[function(Aspect::Mode, |word| (word.bits(78, 2) == 2).then_some(".WARP"), 3 << 78)],
        &[RD],
    )
    .since(80),
];

const PLACE_HALF: Operand = at(Slot::Name(Aspect::Half, Field::new(31, 1), &["Rpc.LO", "Rpc.HI"]));
const EXCLUSIVE: Modifier = flag(Aspect::Mode, 86, ".EXCLUSIVE");
const EXCLUSIVE_BY_CODE: Modifier = choice(Aspect::Mode, 85, 2, &["", ".EXCLUSIVE", NO_SUCH, NO_SUCH]);
const ALL: Modifier = text(".ALL");
const COLLECTIVE: Modifier = function(Aspect::Mode, |_| Some(".COLLECTIVE"), 0);
const COLLECTIVE_TARGET: Operand = at(Slot::Target(Distance::Split));
const SYNCS: Modifier = function(Aspect::Mode, |word| (word.bits(83, 2) == 2).then_some(".SYNCS"), 3 << 83);
const IS_WARP_WORD: &[(Field, u64)] = &[(Field::new(28, 1), 1)];
/// The work of a barrier of the CTA.
const CTA_BARRIER: &[Modifier] = &[
    function(Aspect::Mode, barrier_mode, Field::new(74, 2).mask() | Field::new(77, 3).mask()),
    flag(Aspect::DeferBlocking, 80, ".DEFER_BLOCKING"),
];
/// The threads that it waits for, where not for all.
const THREADS: Operand = number(42, 12).shown(Shown::Where(|word| word.bits(42, 12) != 0 || word.bits(77, 3) == 1));
/// The predicate that it reduces.
const REDUCED: Operand = PS.shown(Shown::Present(|word| word.bits(77, 3) == 2));
const RANDOM: Modifier = flag(Aspect::Random, 86, ".RAND");
const WARP: Modifier = flag(Aspect::Warp, 85, ".WARP");
/// A convergence barrier, or another word of a warp's state.
const WARP_STATE: Operand = at(Slot::WarpState(Field::new(24, 5)));

/// One of those that are no convergence barrier.
const WARP_WORD: Operand = at(Slot::WarpState(Field::new(24, 4)));

fn barrier_mode(word: Word) -> Option<&'static str> {
    Some(match (word.bits(77, 3), word.bits(74, 2)) {
        (0, 0) => ".SYNC",
        (1, 0) => ".ARV",
        (2, operation) => [".RED.POPC", ".RED.AND", ".RED.OR"].get(operation as usize)?,
        _ => return None,
    })
}
