//! Operations in which lanes read each other: shuffle, vote, match, reduction, election.

use super::bodies::Body;
use super::registers::{Lane, Registers};
use crate::lanes::{LANES, lanes};
use crate::operation::Instruction;
use crate::operation::operand::Row;

/// Modes of `shfl`: the low byte of the immediate.
pub(crate) mod shuffle {
    pub const UP: u32 = 0;
    pub const DOWN: u32 = 1;
    pub const BUTTERFLY: u32 = 2;
    pub const INDEX: u32 = 3;
}

/// `shfl.sync`: sources are value, lane and clamp with segment mask (PTX ISA, shfl: the pseudocode there).
pub(crate) struct Shuffle;

impl Body for Shuffle {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        let lanes = u32::read(registers, constants, instruction.sources[1]);
        let clamps = u32::read(registers, constants, instruction.sources[2]);
        let mut result = [0; LANES];
        let mut inside = 0;
        for lane in 0..LANES as u32 {
            let place = lane as usize;
            let amount = lanes[place] & 31;
            let clamp = clamps[place] & 31;
            let segment = (clamps[place] >> 8) & 31;
            let limit = (lane & segment) | (clamp & !segment);
            let first = lane & segment;
            let (from, in_range) = match instruction.immediate {
                shuffle::UP => (lane.wrapping_sub(amount), lane as i32 - amount as i32 >= limit as i32),
                shuffle::DOWN => (lane + amount, lane + amount <= limit),
                shuffle::BUTTERFLY => (lane ^ amount, lane ^ amount <= limit),
                _ => {
                    let from = first | (amount & !segment);
                    (from, from <= limit)
                }
            };
            let from = (if in_range { from } else { lane }) & 31;
            // The ISA leaves open what a lane that takes no part gives; GPUs give 0, and reductions over the first lanes of a
            // warp rely on it.
            result[place] = if mask >> from & 1 == 1 { values[from as usize] } else { 0 };
            inside |= u32::from(in_range) << lane;
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
        registers.set_predicate(instruction.predicate_destinations[0], inside, mask);
    }
}

/// The question of `vote`: the immediate.
pub(crate) mod vote {
    pub const ALL: u32 = 0;
    pub const ANY: u32 = 1;
    pub const UNIFORM: u32 = 2;
    pub const BALLOT: u32 = 3;
}

/// `vote.sync`
pub(crate) struct Vote;

impl Body for Vote {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]) & mask;
        let answer = match instruction.immediate {
            vote::ALL => truth == mask,
            vote::ANY => truth != 0,
            vote::UNIFORM => truth == mask || truth == 0,
            _ => {
                u32::write(registers, instruction.destinations[0], &[truth; LANES], mask);
                return;
            }
        };
        registers.set_predicate(instruction.predicate_destinations[0], if answer { u32::MAX } else { 0 }, mask);
    }
}

/// `match.sync`: the immediate is 1 for `.all`. `WIDE` values have 64 bits.
pub(crate) struct Match<const WIDE: bool>;

impl<const WIDE: bool> Body for Match<WIDE> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values: [u64; LANES] = if WIDE {
            u64::read(registers, constants, instruction.sources[0])
        } else {
            u32::read(registers, constants, instruction.sources[0]).map(u64::from)
        };
        match_values(instruction, registers, &values, mask);
    }
}

/// The result of `match` for the values of the lanes.
#[inline(always)]
pub(crate) fn match_values(instruction: &Instruction, registers: &mut Registers, values: &[u64; LANES], mask: u32) {
    let equal: [u32; LANES] = std::array::from_fn(|lane| {
        (0..LANES).fold(0, |equal, other| equal | u32::from(values[other] == values[lane]) << other) & mask
    });
    if instruction.immediate == 1 {
        let all = equal[mask.trailing_zeros() as usize % LANES] == mask;
        u32::write(registers, instruction.destinations[0], &[if all { mask } else { 0 }; LANES], mask);
        registers.set_predicate(instruction.predicate_destinations[0], if all { u32::MAX } else { 0 }, mask);
    } else {
        u32::write(registers, instruction.destinations[0], &equal, mask);
    }
}

/// Operations of `redux`: the immediate.
pub(crate) mod reduction {
    pub const ADD: u32 = 0;
    pub const AND: u32 = 1;
    pub const OR: u32 = 2;
    pub const XOR: u32 = 3;
    pub const MINIMUM_UNSIGNED: u32 = 4;
    pub const MAXIMUM_UNSIGNED: u32 = 5;
    pub const MINIMUM_SIGNED: u32 = 6;
    pub const MAXIMUM_SIGNED: u32 = 7;
}

/// `redux.sync`
pub(crate) struct Reduce;

impl Body for Reduce {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        let taken = lanes(mask).map(|lane| values[lane]);
        let result = taken.reduce(|a, b| match instruction.immediate {
            reduction::ADD => a.wrapping_add(b),
            reduction::AND => a & b,
            reduction::OR => a | b,
            reduction::XOR => a ^ b,
            reduction::MINIMUM_UNSIGNED => a.min(b),
            reduction::MAXIMUM_UNSIGNED => a.max(b),
            reduction::MINIMUM_SIGNED => (a as i32).min(b as i32) as u32,
            _ => (a as i32).max(b as i32) as u32,
        });
        u32::write(registers, instruction.destinations[0], &[result.unwrap_or(0); LANES], mask);
    }
}

/// The operation of `redux` on floats: bits of the immediate.
pub(crate) mod float_reduction {
    /// `.max`, else `.min`.
    pub const MAXIMUM: u32 = 1;
    /// `.abs`
    pub const ABSOLUTE: u32 = 2;
    /// `.NaN`
    pub const NAN: u32 = 4;
}

/// `redux.sync.min.f32` and `.max.f32`: without `.NaN`, numbers win over NaN; a NaN result is the canonical one.
pub(crate) struct ReduceFloat;

impl Body for ReduceFloat {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        let has = |flag: u32| instruction.immediate & flag != 0;
        // Numbers as integers of the same order: -0 below +0.
        let mut best: Option<i32> = None;
        let mut any_nan = false;
        for (lane, value) in values.iter().enumerate() {
            if (mask >> lane) & 1 == 0 {
                continue;
            }
            let bits = if has(float_reduction::ABSOLUTE) { value & 0x7fff_ffff } else { *value };
            if bits & 0x7fff_ffff > 0x7f80_0000 {
                any_nan = true;
                continue;
            }
            let key = ordered(bits as i32);
            best = Some(match best {
                None => key,
                Some(other) if has(float_reduction::MAXIMUM) => other.max(key),
                Some(other) => other.min(key),
            });
        }
        let result = match best {
            Some(key) if !(any_nan && has(float_reduction::NAN)) => ordered(key) as u32,
            _ => 0x7fff_ffff,
        };
        u32::write(registers, instruction.destinations[0], &[result; LANES], mask);
    }
}

/// The bits of a float as an integer in the floats' order, and back.
#[inline(always)]
fn ordered(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & 0x7fff_ffff)
}

/// `elect.sync`: the lowest lane that takes part.
pub(crate) struct Elect;

impl Body for Elect {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let leader = mask.trailing_zeros();
        u32::write(registers, instruction.destinations[0], &[leader; LANES], mask);
        registers.set_predicate(instruction.predicate_destinations[0], mask & mask.wrapping_neg(), mask);
    }
}
