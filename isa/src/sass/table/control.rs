//! Branches, calls, convergence, barriers.

use super::slots::*;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown, Slot};
use crate::sass::instruction::hexadecimal;
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

/// Where a branch goes.
const TARGET: Operand = at(Slot::Target(Field::new(34, 48)));
/// The number that a branch to a register's value adds.
const OFFSET: Operand = at(Slot::Function(|word| hexadecimal(word.signed(34, 48) << 2), Field::new(34, 48).mask()));
const BARRIER: Operand = at(Slot::ConvergenceBarrier(16));
/// Whether the stack of calls is counted.
const COUNTED: Modifier = choice(85, 2, &["", ".INC", ".DEC", NO_SUCH]);
const RELATIVE: Modifier = choice(85, 1, &[".REL", ".ABS"]);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Bra, &[0x947], &[COUNTED, choice(32, 2, &["", ".U", ".DIV", ".CONV"])], &[PS_IF_ANY, TARGET]),
    Encoding::new(Opcode::Brx, &[0x949], &[COUNTED], &[PS_IF_ANY, RA, OFFSET.joined()]),
    Encoding::new(Opcode::Jmx, &[0x94c], &[COUNTED], &[PS_IF_ANY, RA, OFFSET.joined()]),
    Encoding::new(Opcode::Brxu, &[0x958], &[flag(32, ".U")], &[PS_IF_ANY, UA, OFFSET.joined()])
        .fixed(&[(Field::new(91, 1), 1)])
        .since(75),
    Encoding::new(Opcode::Jmxu, &[0x959], &[flag(32, ".U")], &[PS_IF_ANY, UA, OFFSET.joined()])
        .fixed(&[(Field::new(91, 1), 1)])
        .since(75),
    Encoding::new(Opcode::Call, &[0x944], &[CALL_RELATIVE, NO_COUNT], &[PS_IF_ANY, TARGET]),
    Encoding::new(Opcode::Call, &[0x344], &[CALL_RELATIVE, NO_COUNT], &[PS_IF_ANY, RA, TARGET.joined()]),
    Encoding::new(Opcode::Call, &[0x343], &[CALL_ABSOLUTE, NO_COUNT], &[PS_IF_ANY, RA, ABSOLUTE_OFFSET.joined()]),
    Encoding::new(Opcode::Call, &[0x943], &[CALL_ABSOLUTE, NO_COUNT], &[PS_IF_ANY, ABSOLUTE_TARGET]),
    Encoding::new(
        Opcode::Ret,
        &[0x950],
        &[RELATIVE, flag(86, ".NODEC")],
        &[PS_IF_ANY, RA, at(Slot::ReturnTarget(Field::new(34, 48))).joined()],
    ),
    Encoding::new(
        Opcode::Exit,
        &[0x94d],
        &[choice(84, 2, &["", ".KEEPREFCOUNT", ".PREEMPTED", NO_SUCH]), flag(86, ".NO_ATEXIT")],
        &[PS_IF_ANY],
    ),
    Encoding::new(Opcode::Bssy, &[0x945], &[], &[PS_IF_ANY, BARRIER, at(Slot::Target(Field::new(34, 30)))]),
    Encoding::new(Opcode::Bsync, &[0x941], &[], &[PS_IF_ANY, BARRIER]),
    Encoding::new(Opcode::Break, &[0x942], &[], &[PS_IF_ANY, BARRIER]),
    Encoding::new(Opcode::Bmov, &[0x355], &[Modifier::Text(".32"), flag(84, ".CLEAR")], &[RD, WARP_STATE]),
    Encoding::new(Opcode::Bmov, &[0x356], &[Modifier::Text(".32"), flag(84, ".PQUAD")], &[WARP_STATE, RB]),
    Encoding::new(Opcode::Bmov, &[0xf55], &[Modifier::Text(".32")], &[BARRIER, WARP_WORD]).fixed(IS_WARP_WORD),
    Encoding::new(Opcode::Bmov, &[0xf56], &[Modifier::Text(".32"), flag(84, ".PQUAD")], &[WARP_WORD, BARRIER])
        .fixed(IS_WARP_WORD),
    Encoding::new(Opcode::Warpsync, &[0x948], &[], &[PS_IF_ANY, at(Slot::Number(Field::new(32, 32)))]),
    Encoding::new(Opcode::Warpsync, &[0x348], &[], &[PS_IF_ANY, RB]),
    Encoding::new(Opcode::Yield, &[0x946], &[], &[PS_IF_ANY]),
    Encoding::new(Opcode::Nanosleep, &[0x95d], &[RANDOM, WARP], &[PS_IF_ANY, at(Slot::Number(Field::new(32, 32)))]),
    Encoding::new(Opcode::Nanosleep, &[0x35d], &[RANDOM, WARP], &[PS_IF_ANY, RB]),
    Encoding::new(Opcode::Nop, &[0x918], &[], &[]),
    Encoding::new(Opcode::Lepc, &[0x34e], &[], &[RD]),
    Encoding::new(
        Opcode::Bpt,
        &[0x95c],
        &[choice(84, 3, &[NO_SUCH, NO_SUCH, ".PAUSE", ".TRAP", ".INT", ".DRAIN", ".PAUSE_QUIET", NO_SUCH])],
        &[at(Slot::Number(Field::new(34, 3))).shown(Shown::Where(|word| word.bits(34, 3) != 0))],
    ),
    Encoding::new(
        Opcode::Depbar,
        &[0x91a],
        &[Modifier::Function(|word| word.bit(47).then_some(".LE"), 1 << 47)],
        &[
            at(Slot::Scoreboard(Field::new(44, 3))),
            at(Slot::Number(Field::new(38, 6))),
            at(Slot::Scoreboards(Field::new(32, 6))),
        ],
    ),
    Encoding::new(Opcode::Bar, &[0xb1d], CTA_BARRIER, &[at(Slot::Number(Field::new(54, 4))), THREADS, REDUCED]),
    Encoding::new(Opcode::Bar, &[0x51d], CTA_BARRIER, &[RB, THREADS, REDUCED]),
    Encoding::new(Opcode::Bar, &[0x91d], CTA_BARRIER, &[at(Slot::Number(Field::new(54, 4))), RB, REDUCED]),
    // One register has both, the barrier and its threads.
    Encoding::new(Opcode::Bar, &[0x31d], CTA_BARRIER, &[RB, RB, REDUCED]),
    Encoding::new(Opcode::Pmtrig, &[0x801], &[], &[PS_IF_ANY, at(Slot::Number(Field::new(32, 16)))]),
    Encoding::new(
        Opcode::B2r,
        &[0x31c],
        &[Modifier::Function(|word| if word.bits(78, 2) == 1 { Some(".RESULT") } else { None }, 3 << 78)],
        &[RD, PD_IF_ANY],
    ),
];

const IS_WARP_WORD: &[(Field, u64)] = &[(Field::new(28, 1), 1)];
/// The work of a barrier of the CTA.
const CTA_BARRIER: &[Modifier] = &[
    Modifier::Function(barrier_mode, Field::new(74, 2).mask() | Field::new(77, 3).mask()),
    flag(80, ".DEFER_BLOCKING"),
];
/// The threads that it waits for, where not for all.
const THREADS: Operand =
    at(Slot::Number(Field::new(42, 12))).shown(Shown::Where(|word| word.bits(42, 12) != 0 || word.bits(77, 3) == 1));
/// The predicate that it reduces.
const REDUCED: Operand = PS.shown(Shown::Present(|word| word.bits(77, 3) == 2));
const CALL_RELATIVE: Modifier = Modifier::Text(".REL");
const CALL_ABSOLUTE: Modifier = Modifier::Text(".ABS");
/// Calls count the stack unless they say so.
const NO_COUNT: Modifier = flag(86, ".NOINC");
const RANDOM: Modifier = flag(86, ".RAND");
const WARP: Modifier = flag(85, ".WARP");
/// The addend of a call to a register's value, where there is one.
const ABSOLUTE_OFFSET: Operand = OFFSET.shown(Shown::Where(|word| word.bits(34, 48) != 0));
/// An address that the linker writes.
const ABSOLUTE_TARGET: Operand =
    at(Slot::Function(|word| format!("{:#x}", word.bits(34, 48) << 2), Field::new(34, 48).mask()));

/// A convergence barrier, or another word of a warp's state.
const WARP_STATE: Operand = at(Slot::Function(warp_state, Field::new(24, 5).mask()));

/// One of those that are no convergence barrier.
const WARP_WORD: Operand = at(Slot::Function(warp_state, Field::new(24, 4).mask()));

fn warp_state(word: Word) -> String {
    /// The names of the numbers from 16 on.
    const NAMES: [&str; 16] = [
        "THREAD_STATE_ENUM.0",
        "THREAD_STATE_ENUM.1",
        "THREAD_STATE_ENUM.2",
        "THREAD_STATE_ENUM.3",
        "THREAD_STATE_ENUM.4",
        "TRAP_RETURN_PC.LO",
        "TRAP_RETURN_PC.HI",
        "TRAP_RETURN_MASK",
        "MEXITED",
        "MKILL",
        "MACTIVE",
        "MATEXIT",
        "OPT_STACK",
        "API_CALL_DEPTH",
        "ATEXIT_PC.LO",
        "ATEXIT_PC.HI",
    ];
    match word.bits(24, 5) {
        number @ 0..16 => format!("B{number}"),
        number => NAMES[number as usize - 16].to_owned(),
    }
}

fn barrier_mode(word: Word) -> Option<&'static str> {
    Some(match (word.bits(77, 3), word.bits(74, 2)) {
        (0, 0) => ".SYNC",
        (1, 0) => ".ARV",
        (2, operation) => [".RED.POPC", ".RED.AND", ".RED.OR"].get(operation as usize)?,
        _ => return None,
    })
}
