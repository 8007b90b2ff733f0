//! Conversions of machine code, whose source may be a part of a register, with a sign.

use super::signs::{sign, sign_of};
use crate::interpreter::bodies::Body;
use crate::interpreter::convert::Conversion;
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;

/// Any conversion: the immediate is a packed [`Conversion`], `offset` the first bit of the source's part.
pub(crate) struct ConvertPart;

impl Body for ConvertPart {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let conversion = Conversion::unpack(instruction.immediate);
        let sources: [u64; LANES] = if conversion.from.is_wide() {
            u64::read_pair(registers, constants, instruction.sources[0])
        } else {
            u32::read(registers, constants, instruction.sources[0]).map(u64::from)
        };
        let sign = sign_of(instruction.signs, 0);
        let top = 1u64 << (conversion.from.bits() - 1);
        let keep = if sign & sign::ABSOLUTE != 0 { !top } else { u64::MAX };
        let flip = if sign & sign::NEGATE != 0 { top } else { 0 };
        let sources = sources.map(|source| (source >> instruction.offset) & keep ^ flip);
        let results = match conversion.of_lanes(&sources.map(|source| source as u32)) {
            Some(results) => results.map(u64::from),
            None => sources.map(|source| conversion.convert(source, 0)),
        };
        if conversion.to.is_wide() {
            u64::write_pair(registers, instruction.destinations[0], &results, mask);
        } else {
            u32::write(registers, instruction.destinations[0], &results.map(|value| value as u32), mask);
        }
    }
}

/// Two singles, or the halves of the first register, to two bytes, the first one above the second, below a half of a third register: the
/// immediate is a packed [`Conversion`], `offset` the first bit of that half.
pub(crate) struct ConvertPairBelow;

impl Body for ConvertPairBelow {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let conversion = Conversion::unpack(instruction.immediate);
        let [upper, lower, above] = [0, 1, 2].map(|place| u32::read(registers, constants, instruction.sources[place]));
        let bits = conversion.to.bits();
        let results = std::array::from_fn(|lane| {
            let (upper, lower) = if conversion.is_packed {
                (upper[lane] >> 16, upper[lane] & 0xffff)
            } else {
                (upper[lane], lower[lane])
            };
            // Integers come with their sign extended.
            let converted = |value: u32| conversion.convert(u64::from(value), 0) as u32 & (u32::MAX >> (32 - bits));
            let [upper, lower] = [upper, lower].map(converted);
            let kept = above[lane] >> instruction.offset & 0xffff;
            (u64::from(kept) << (2 * bits)) as u32 | upper << bits | lower
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}

/// Two bytes of a register to two halves: the immediate is a packed [`Conversion`], `offset` the first bit of the bytes.
pub(crate) struct UnpackPair;

impl Body for UnpackPair {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let conversion = Conversion::unpack(instruction.immediate);
        let words = u32::read(registers, constants, instruction.sources[0]);
        let [first, second] =
            [0, 8].map(|further| words.map(|word| word >> (instruction.offset as u32 + further) & 0xff));
        if let (Some(lower), Some(upper)) = (conversion.of_lanes(&first), conversion.of_lanes(&second)) {
            let both = std::array::from_fn(|lane| upper[lane] << 16 | lower[lane]);
            return u32::write(registers, instruction.destinations[0], &both, mask);
        }
        let results = words.map(|word| {
            let byte = |number: u32| u64::from(word >> (instruction.offset as u32 + 8 * number) & 0xff);
            (conversion.convert(byte(0), 0) | conversion.convert(byte(1), 0) << 16) as u32
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}

/// A single to 16 bits, below a half of a second register: the immediate is a packed [`Conversion`], `offset` the first bit of that half.
pub(crate) struct ConvertBelow;

impl Body for ConvertBelow {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let conversion = Conversion::unpack(instruction.immediate);
        let [values, above] = [0, 1].map(|place| u32::read(registers, constants, instruction.sources[place]));
        let low = conversion
            .of_lanes(&values)
            .unwrap_or_else(|| values.map(|value| conversion.convert(u64::from(value), 0) as u32));
        let results = std::array::from_fn(|lane| (above[lane] >> instruction.offset) << 16 | low[lane]);
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}
