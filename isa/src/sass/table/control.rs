//! Branches, calls, convergence, barriers.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::Slot;
use crate::sass::word::{Field, Word};

/// Where a branch goes.
const TARGET: Operand = at(Slot::Target(Field::new(34, 48)));
/// The number that a branch to a register's value adds.
const OFFSET: Operand = at(Slot::JumpOffset(Field::new(34, 48)));
const BARRIER: Operand = at(Slot::ConvergenceBarrier(16));
/// Whether the stack of calls is counted.
const COUNTED: Modifier = choice(Aspect::CallCount, 85, 2, &["", ".INC", ".DEC", NO_SUCH]);
const RELATIVE: Modifier = choice(Aspect::Absolute, 85, 1, &[".REL", ".ABS"]);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(
        Opcode::Bra,
        &[0x947],
        &[COUNTED, choice(Aspect::Mode, 32, 2, &["", ".U", ".DIV", ".CONV"])],
        &[PS_IF_ANY, TARGET],
    ),
    Encoding::new(Opcode::Brx, &[0x949], &[COUNTED], &[PS_IF_ANY, RA, OFFSET.joined()]),
    Encoding::new(Opcode::Jmx, &[0x94c], &[COUNTED], &[PS_IF_ANY, RA, OFFSET.joined()]),
    Encoding::new(Opcode::Brxu, &[0x958], &[flag(Aspect::Mode, 32, ".U")], &[PS_IF_ANY, UA, OFFSET.joined()])
        .fixed(&[(Field::new(91, 1), 1)])
        .since(75),
    Encoding::new(Opcode::Jmxu, &[0x959], &[flag(Aspect::Mode, 32, ".U")], &[PS_IF_ANY, UA, OFFSET.joined()])
        .fixed(&[(Field::new(91, 1), 1)])
        .since(75),
    Encoding::new(Opcode::Call, &[0x944], &[CALL_RELATIVE, NO_COUNT], &[PS_IF_ANY, TARGET]),
    Encoding::new(Opcode::Call, &[0x344], &[CALL_RELATIVE, NO_COUNT], &[PS_IF_ANY, RA, TARGET.joined()]),
    Encoding::new(Opcode::Call, &[0x343], &[CALL_ABSOLUTE, NO_COUNT], &[PS_IF_ANY, RA, ABSOLUTE_OFFSET.joined()]),
    Encoding::new(Opcode::Call, &[0x943], &[CALL_ABSOLUTE, NO_COUNT], &[PS_IF_ANY, ABSOLUTE_TARGET]),
    Encoding::new(
        Opcode::Ret,
        &[0x950],
        &[RELATIVE, flag(Aspect::CallCount, 86, ".NODEC")],
        &[PS_IF_ANY, RA, at(Slot::ReturnTarget(Field::new(34, 48))).joined()],
    ),
    Encoding::new(
        Opcode::Exit,
        &[0x94d],
        &[
            choice(Aspect::Mode, 84, 2, &["", ".KEEPREFCOUNT", ".PREEMPTED", NO_SUCH]),
            flag(Aspect::NoExitHandler, 86, ".NO_ATEXIT"),
        ],
        &[PS_IF_ANY],
    ),
    Encoding::new(Opcode::Bssy, &[0x945], &[], &[PS_IF_ANY, BARRIER, at(Slot::Target(Field::new(34, 30)))]),
    Encoding::new(Opcode::Bsync, &[0x941], &[], &[PS_IF_ANY, BARRIER]),
    Encoding::new(Opcode::Break, &[0x942], &[], &[PS_IF_ANY, BARRIER]),
    Encoding::new(Opcode::Bmov, &[0x355], &[text(".32"), flag(Aspect::Clear, 84, ".CLEAR")], &[RD, WARP_STATE]),
    Encoding::new(Opcode::Bmov, &[0x356], &[text(".32"), flag(Aspect::Mode, 84, ".PQUAD")], &[WARP_STATE, RB]),
    Encoding::new(Opcode::Bmov, &[0xf55], &[text(".32")], &[BARRIER, WARP_WORD]).fixed(IS_WARP_WORD),
    Encoding::new(Opcode::Bmov, &[0xf56], &[text(".32"), flag(Aspect::Mode, 84, ".PQUAD")], &[WARP_WORD, BARRIER])
        .fixed(IS_WARP_WORD),
    Encoding::new(Opcode::Warpsync, &[0x948], &[], &[PS_IF_ANY, number(32, 32)]),
    Encoding::new(Opcode::Warpsync, &[0x348], &[], &[PS_IF_ANY, RB]),
    Encoding::new(Opcode::Yield, &[0x946], &[], &[PS_IF_ANY]),
    Encoding::new(Opcode::Nanosleep, &[0x95d], &[RANDOM, WARP], &[PS_IF_ANY, number(32, 32)]),
    Encoding::new(Opcode::Nanosleep, &[0x35d], &[RANDOM, WARP], &[PS_IF_ANY, RB]),
    Encoding::new(Opcode::Nop, &[0x918], &[], &[]),
    Encoding::new(Opcode::Lepc, &[0x34e], &[], &[RD]),
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
];

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
const CALL_RELATIVE: Modifier = text(".REL");
const CALL_ABSOLUTE: Modifier = function(Aspect::Absolute, |_| Some(".ABS"), 0);
/// Calls count the stack unless they say so.
const NO_COUNT: Modifier = flag(Aspect::CallCount, 86, ".NOINC");
const RANDOM: Modifier = flag(Aspect::Random, 86, ".RAND");
const WARP: Modifier = flag(Aspect::Warp, 85, ".WARP");
/// The addend of a call to a register's value, where there is one.
const ABSOLUTE_OFFSET: Operand = OFFSET.shown(Shown::Where(|word| word.bits(34, 48) != 0));
/// An address that the linker writes.
const ABSOLUTE_TARGET: Operand = at(Slot::AbsoluteTarget(Field::new(34, 48)));

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
