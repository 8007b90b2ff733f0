//! Logic, shifts and predicates of machine code.

use crate::interpreter::bodies::{Body, LaneOperation};
use crate::interpreter::integer::logic3;
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::{Row, SINK_PREDICATE};
use std::marker::PhantomData;

/// `SHF`: bits of the immediate. The lowest two are the type: 0 signed and 1 unsigned 64 bits, 2 signed and 3 unsigned 32 bits.
pub(crate) mod funnel {
    /// To the right.
    pub const RIGHT: u32 = 4;
    /// The count wraps rather than being limited.
    pub const WRAP: u32 = 8;
    /// The upper word of the result.
    pub const HIGH: u32 = 16;
}

/// `SHF`: the first source, with the third above it, shifted by the second.
pub(crate) struct Funnel;

impl Body for Funnel {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let flags = instruction.immediate;
        let is_signed = flags & 1 == 0;
        // A count past the width shifts everything out.
        let (last, most) = if flags & 2 == 0 { (63, 64) } else { (31, 32) };
        let mut result = [0; LANES];
        for lane in 0..LANES {
            let value = u64::from(a[lane]) | u64::from(c[lane]) << 32;
            let count = if flags & funnel::WRAP != 0 { b[lane] & last } else { b[lane].min(most) };
            let shifted = match (flags & funnel::RIGHT != 0, is_signed) {
                (false, _) => value.checked_shl(count).unwrap_or(0),
                (true, false) => value.checked_shr(count).unwrap_or(0),
                (true, true) => ((value as i64) >> count.min(63)) as u64,
            };
            result[lane] = if flags & funnel::HIGH != 0 { (shifted >> 32) as u32 } else { shifted as u32 };
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// `LOP3` that sets a predicate where the result is not zero, or the source predicate is true; and, with bit 8 of the immediate
/// (`.PAND`), where both are.
pub(crate) struct Logic3Predicate;

impl Body for Logic3Predicate {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let mut result = [0; LANES];
        let mut truth = 0;
        for lane in 0..LANES {
            result[lane] = logic3(a[lane], b[lane], c[lane], instruction.immediate);
            truth |= u32::from(result[lane] != 0) << lane;
        }
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let value = if instruction.immediate & 0x100 != 0 { truth & other } else { truth | other };
        u32::write(registers, instruction.destinations[0], &result, mask);
        registers.set_predicate(instruction.predicate_destinations[0], value, mask);
    }
}

/// `PLOP3`: two functions of three predicates, whose tables are the lowest bytes of the immediate. The third predicate is the guard
/// slot in `sources[0]`, inverted where `sources[1]` is not zero.
pub(crate) struct PredicateLogic3;

impl Body for PredicateLogic3 {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let [a, b] =
            [0, 1].map(|n| registers.predicate(instruction.predicate_sources[n], instruction.predicate_flips[n]));
        let flip = 0u32.wrapping_sub(u32::from(instruction.sources[1].0));
        let c = registers.predicate(instruction.sources[0].0 as u8, flip);
        for (place, destination) in instruction.predicate_destinations.into_iter().enumerate() {
            let value = logic3(a, b, c, instruction.immediate >> (8 * place) & 0xff);
            registers.set_predicate(destination, value, mask);
        }
    }
}

/// `PLOP3` of the signs of three registers; the immediate has a table for each result.
pub(crate) struct SignLogic;

impl Body for SignLogic {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| {
            let words = u32::read(registers, constants, instruction.sources[source]);
            (0..LANES).fold(0, |signs, lane| signs | words[lane] >> 31 << lane)
        });
        for (place, destination) in instruction.predicate_destinations.into_iter().enumerate() {
            let value = logic3(a, b, c, instruction.immediate >> (8 * place) & 0xff);
            registers.set_predicate(destination, value, mask);
        }
    }
}

/// Predicates of a thread that machine code names, the first of them in the lowest bit.
pub(crate) const PREDICATES: usize = 7;

/// `P2R`: the byte at bit `offset` of the first source gets the predicates from the given one on, under a mask, the second source.
pub(crate) struct PredicatesToRegister<const FIRST: u8>;

impl<const FIRST: u8> Body for PredicatesToRegister<FIRST> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let old = u32::read(registers, constants, instruction.sources[0]);
        let shift = instruction.offset as u32;
        let chosen = instruction.immediate & 0x7f;
        let mut result = [0; LANES];
        for lane in 0..LANES {
            let bits = (0..PREDICATES)
                .fold(0, |bits, place| bits | (registers.predicates[usize::from(FIRST) + place] >> lane & 1) << place);
            result[lane] = old[lane] & !(chosen << shift) | (bits & chosen) << shift;
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// `R2P`: the predicates of a mask, the immediate, from the byte at bit `offset` of a register.
pub(crate) struct RegisterToPredicates<const FIRST: u8>;

impl<const FIRST: u8> Body for RegisterToPredicates<FIRST> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        for place in (0..PREDICATES).filter(|place| instruction.immediate >> place & 1 != 0) {
            let bit = instruction.offset as u32 + place as u32;
            let truth = values.iter().enumerate().fold(0, |bits, (lane, value)| bits | (value >> bit & 1) << lane);
            registers.set_predicate(FIRST + place as u8, truth, mask);
        }
    }
}

/// A predicate with the result of a vote, and the lanes for which its source is true: `VOTE` with both results. The immediate is one of
/// [`vote`](crate::interpreter::collective::vote).
pub(crate) struct VoteWithBallot;

impl Body for VoteWithBallot {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        use crate::interpreter::collective::vote;
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]) & mask;
        let answer = match instruction.immediate {
            vote::ALL => truth == mask,
            vote::ANY => truth != 0,
            _ => truth == mask || truth == 0,
        };
        u32::write(registers, instruction.destinations[0], &[truth; LANES], mask);
        registers.set_predicate(instruction.predicate_destinations[0], if answer { u32::MAX } else { 0 }, mask);
    }
}

/// `B2R.RESULT`: the result of a reduction at a barrier, and whether that is not zero.
pub(crate) struct BarrierResult;

impl Body for BarrierResult {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        let truth = values.iter().enumerate().fold(0, |bits, (lane, value)| bits | u32::from(*value != 0) << lane);
        u32::write(registers, instruction.destinations[0], &values, mask);
        registers.set_predicate(instruction.predicate_destinations[0], truth, mask);
    }
}

/// `VABSDIFF4`: the absolute differences of four bytes, each by itself, or summed up with the third source, which the others do not read
/// (as `vabsdiff4` of PTX). Bit 0 of the immediate: the bytes are signed; bit 1: they are summed up.
pub(crate) struct AbsoluteDifferences;

impl Body for AbsoluteDifferences {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let mut result = c;
        for lane in 0..LANES {
            for byte in 0..4 {
                let [x, y] = [a[lane], b[lane]].map(|value| {
                    let bits = (value >> (8 * byte)) as u8;
                    if instruction.immediate & 1 != 0 { i32::from(bits as i8) } else { i32::from(bits) }
                });
                let difference = (x - y).unsigned_abs();
                if instruction.immediate & 2 != 0 {
                    result[lane] = result[lane].wrapping_add(difference);
                } else {
                    result[lane] = result[lane] & !(0xff << (8 * byte)) | (difference & 0xff) << (8 * byte);
                }
            }
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// An operation on a value that is inverted first.
pub(crate) struct Inverted<O>(PhantomData<O>);
/// The same of a signed value.
pub(crate) struct InvertedSigned<O>(PhantomData<O>);

impl<O: LaneOperation<A = u32, B = (), C = (), D = u32>> LaneOperation for Inverted<O> {
    type A = u32;
    type B = ();
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(a: u32, _: (), _: (), immediate: u32) -> u32 {
        O::apply(!a, (), (), immediate)
    }
}

impl<O: LaneOperation<A = i32, B = (), C = (), D = u32>> LaneOperation for InvertedSigned<O> {
    type A = i32;
    type B = ();
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(a: i32, _: (), _: (), immediate: u32) -> u32 {
        O::apply(!a, (), (), immediate)
    }
}

/// `ELECT`: the lowest of the lanes that run, that the first source has as a mask, and where the predicate is true.
pub(crate) struct ElectAmong;

impl Body for ElectAmong {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let members = u32::read(registers, constants, instruction.sources[0])[mask.trailing_zeros() as usize % LANES];
        let condition = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let candidates = mask & members & condition;
        let leader = candidates.trailing_zeros();
        u32::write(registers, instruction.destinations[0], &[leader; LANES], mask);
        registers.set_predicate(instruction.predicate_destinations[0], candidates & candidates.wrapping_neg(), mask);
    }
}

/// `R2UR`: the value of the first lane. The predicate, where there is one, is true in lanes that have another value; the source predicate is
/// added to it.
pub(crate) struct FirstLane;

impl Body for FirstLane {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        let first = values[mask.trailing_zeros() as usize % LANES];
        let destination = instruction.predicate_destinations[0];
        if destination != SINK_PREDICATE {
            let before = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
            let others = (0..LANES).fold(before, |others, lane| others | u32::from(values[lane] != first) << lane);
            registers.set_predicate(destination, others, mask);
        }
        u32::write(registers, instruction.destinations[0], &[first; LANES], mask);
    }
}

/// `MATCH.U64`: the immediate is 1 for `.ALL`.
pub(crate) struct MatchPairs;

impl Body for MatchPairs {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u64::read_pair(registers, constants, instruction.sources[0]);
        crate::interpreter::collective::match_values(instruction, registers, &values, mask);
    }
}

/// `SR_VIRTID`: the SM from bit 20 on, and the slot of the warp from bit 8 on.
pub(crate) struct VirtualIdentity;

impl Body for VirtualIdentity {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        use crate::interpreter::registers::special;
        let value = registers.special[special::SM] << 20 | registers.special[special::WARP] << 8;
        u32::write(registers, instruction.destinations[0], &[value; LANES], mask);
    }
}

/// `LDC` of a bank that the program has: its words lie in rows of the constants, from the instruction's `operand_list` on, as many as the
/// immediate says. Words beyond are zero.
pub(crate) struct LoadBank;

impl Body for LoadBank {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = &instruction.memory;
        let bases = u32::read(registers, constants, instruction.sources[0]);
        let first = usize::from(instruction.operand_list);
        let word = |number: u32| {
            if number >= instruction.immediate {
                return 0;
            }
            constants[first + number as usize / LANES].0[number as usize % LANES]
        };
        for element in 0..usize::from(form.elements) {
            let mut values = [0; LANES];
            for lane in 0..LANES {
                let address = bases[lane].wrapping_add(instruction.offset as u32).wrapping_add(4 * element as u32);
                let value = word(address / 4) >> (8 * (address % 4));
                let width = 8 * u32::from(form.element_bytes);
                let value = value << (32 - width);
                values[lane] = if form.signed { (value as i32 >> (32 - width)) as u32 } else { value >> (32 - width) };
            }
            u32::write(registers, instruction.destinations[element], &values, mask);
        }
    }
}

/// `QSPC`: whether an address is in the space that the immediate says: 0 global, 1 local, 2 the CTA's shared memory, 3 that of its cluster.
pub(crate) struct QuerySpace;

impl Body for QuerySpace {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        use crate::cluster::rank_of;
        use crate::execution::{LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
        use crate::interpreter::access::memory::read_addresses;
        use crate::interpreter::registers::cluster;
        let mut addresses = [0; LANES];
        read_addresses(instruction, registers, constants, &mut addresses);
        let mut truth = 0;
        for (lane, address) in addresses.into_iter().enumerate() {
            let is_in = |window: u64| address.wrapping_sub(window) < WINDOW_BYTES;
            let is_there = match instruction.immediate {
                0 => !is_in(LOCAL_WINDOW) && !is_in(SHARED_WINDOW),
                1 => is_in(LOCAL_WINDOW),
                2 => is_in(SHARED_WINDOW) && rank_of(address - SHARED_WINDOW) == registers.cluster[cluster::RANK],
                _ => is_in(SHARED_WINDOW),
            };
            truth |= u32::from(is_there) << lane;
        }
        registers.set_predicate(instruction.predicate_destinations[0], truth, mask);
    }
}
