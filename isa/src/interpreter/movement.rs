//! Moves between one register and several.

use super::bodies::{Body, write_element};
use super::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;

/// `mov d, {a, b, ...}`: `immediate` is the bits of a part.
pub(crate) struct Pack;

impl Body for Pack {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let bits = instruction.immediate;
        let keep = (1u64 << bits) - 1;
        let mut values = [0; LANES];
        for part in 0..usize::from(instruction.memory.elements) {
            let row = u32::read(registers, constants, instruction.sources[part]);
            for lane in 0..LANES {
                values[lane] |= (u64::from(row[lane]) & keep) << (bits * part as u32);
            }
        }
        write_element(registers, instruction.destinations[0], instruction.memory.wide[0], &values, mask);
    }
}

/// `mov {a, b, ...}, d`
pub(crate) struct Unpack;

impl Body for Unpack {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let bits = instruction.immediate;
        let keep = (1u64 << bits) - 1;
        let values: [u64; LANES] = if instruction.memory.wide[0] {
            u64::read(registers, constants, instruction.sources[0])
        } else {
            u32::read(registers, constants, instruction.sources[0]).map(u64::from)
        };
        for part in 0..usize::from(instruction.memory.elements) {
            let shift = bits * part as u32;
            let row = values.map(|value| ((value >> shift) & keep) as u32);
            u32::write(registers, instruction.destinations[part], &row, mask);
        }
    }
}
