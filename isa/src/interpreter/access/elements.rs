//! The elements of loads and stores, between registers and their places in memory.

use crate::execution::LaneValues;
use crate::interpreter::bodies::{extend, write_element};
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::{Row, Source};

/// One element of a vector access.
#[inline(always)]
fn element_of(values: &LaneValues, bytes: u8, element: usize, signed: bool) -> [u64; LANES] {
    let first = element * usize::from(bytes);
    let half = if first >= 8 { &values.high } else { &values.low };
    let shift = 8 * (first % 8) as u32;
    let keep = if bytes == 8 { u64::MAX } else { (1 << (8 * u32::from(bytes))) - 1 };
    let mut values = [0; LANES];
    for lane in 0..LANES {
        values[lane] = extend((half[lane] >> shift) & keep, bytes, signed);
    }
    values
}

#[inline(always)]
pub(in crate::interpreter) fn read_element(
    registers: &Registers,
    constants: &[Row],
    source: Source,
    (wide, pairs): (bool, bool),
) -> [u64; LANES] {
    match (wide, pairs) {
        (false, _) => u32::read(registers, constants, source).map(u64::from),
        (true, false) => u64::read(registers, constants, source),
        (true, true) => u64::read_pair(registers, constants, source),
    }
}

/// Puts the elements of a vector, from operands `first` on, one after the other as they lie in memory.
#[inline(always)]
pub(in crate::interpreter) fn gather(
    instruction: &Instruction,
    registers: &Registers,
    constants: &[Row],
    first: usize,
    values: &mut LaneValues,
) {
    let form = &instruction.memory;
    let keep = if form.element_bytes == 8 { u64::MAX } else { (1 << (8 * u32::from(form.element_bytes))) - 1 };
    if form.elements == 1 {
        let elements = read_element(registers, constants, instruction.sources[first], (form.wide[0], form.pairs));
        for (to, from) in values.low.iter_mut().zip(elements) {
            *to = from & keep;
        }
        return;
    }
    values.low = [0; LANES];
    values.high = [0; LANES];
    for element in 0..usize::from(form.elements) {
        let width = (form.wide[element], form.pairs);
        let elements = read_element(registers, constants, instruction.sources[first + element], width);
        let place = element * usize::from(form.element_bytes);
        let half = if place >= 8 { &mut values.high } else { &mut values.low };
        let shift = 8 * (place % 8) as u32;
        for (old, value) in half.iter_mut().zip(elements) {
            *old |= (value & keep) << shift;
        }
    }
}

/// Writes values, as they lie in memory, to the destinations.
#[inline(always)]
pub(crate) fn scatter(instruction: &Instruction, registers: &mut Registers, values: &LaneValues, mask: u32) {
    let form = &instruction.memory;
    if form.pairs && form.wide[0] {
        let halves = [&values.low, &values.high].into_iter().take(form.elements.into());
        for (half, destination) in halves.zip(instruction.destinations) {
            u64::write_pair(registers, destination, half, mask);
        }
        return;
    }
    if form.elements == 1 {
        write_element(registers, instruction.destinations[0], form.wide[0], &values.low, mask);
        return;
    }
    for element in 0..usize::from(form.elements) {
        let values = element_of(values, form.element_bytes, element, form.signed);
        write_element(registers, instruction.destinations[element], form.wide[element], &values, mask);
    }
}

/// Writes the values that a load has read to its destinations. A single value has been extended to 64 bits.
#[inline(always)]
pub(in crate::interpreter) fn write_extended(
    instruction: &Instruction,
    registers: &mut Registers,
    accessed: &LaneValues,
    mask: u32,
) {
    let form = &instruction.memory;
    if form.elements == 1 {
        write_element(registers, instruction.destinations[0], form.wide[0], &accessed.low, mask);
    } else if form.element_bytes == 4 && !form.wide[0] {
        for element in 0..usize::from(form.elements) {
            let half = if element >= 2 { &accessed.high } else { &accessed.low };
            let shift = 32 * (element as u32 % 2);
            let mut values = [0; LANES];
            for lane in 0..LANES {
                values[lane] = (half[lane] >> shift) as u32;
            }
            u32::write(registers, instruction.destinations[element], &values, mask);
        }
    } else {
        scatter(instruction, registers, accessed, mask);
    }
}

/// Writes the values that a load has read, as they lie in memory, to its destinations.
pub(crate) fn write_loaded(instruction: &Instruction, registers: &mut Registers, values: &LaneValues, mask: u32) {
    let form = &instruction.memory;
    if form.elements > 1 || !form.signed {
        return write_extended(instruction, registers, values, mask);
    }
    let low = values.low.map(|value| extend(value, form.element_bytes, true));
    write_extended(instruction, registers, &LaneValues { low, high: values.high }, mask);
}
