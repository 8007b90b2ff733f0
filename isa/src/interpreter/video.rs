//! Video instructions on one lane, as the PTX ISA's text says step by step.

use super::bodies::Body;
use super::compare::outcome;
use super::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;

/// The whole register as a part; 0 to 3 are bytes.
pub(crate) const WHOLE: u8 = 6;
/// The first half word as a part.
pub(crate) const HALF: u8 = 4;

/// The first operation of a video instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    #[default]
    Add,
    Subtract,
    AbsoluteDifference,
    Minimum,
    Maximum,
    Average,
    ShiftLeft,
    ShiftRight,
    Compare,
    MultiplyAdd,
}

/// The operation on that result and the third source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Secondary {
    #[default]
    None,
    Add,
    Minimum,
    Maximum,
}

const OPERATIONS: [Operation; 10] = [
    Operation::Add,
    Operation::Subtract,
    Operation::AbsoluteDifference,
    Operation::Minimum,
    Operation::Maximum,
    Operation::Average,
    Operation::ShiftLeft,
    Operation::ShiftRight,
    Operation::Compare,
    Operation::MultiplyAdd,
];
const SECONDARIES: [Secondary; 4] = [Secondary::None, Secondary::Add, Secondary::Minimum, Secondary::Maximum];

/// The words and selectors of a video instruction, kept in [`Instruction::offset`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VideoForm {
    pub operation: Operation,
    pub secondary: Secondary,
    /// The signs of the first source, the second, and the destination.
    pub signed: [bool; 3],
    /// The negations of the sources.
    pub negated: [bool; 3],
    pub saturates: bool,
    /// `.wrap`
    pub wraps: bool,
    /// `.po`
    pub adds_one: bool,
    /// Bits that `vmad` shifts right: 0, 7 or 15.
    pub scale: u8,
    /// The outcomes of `vset`, as in [`outcome`].
    pub outcomes: u8,
    /// The part of the destination of a scalar instruction.
    pub destination: u8,
    /// The parts that a parallel instruction computes.
    pub mask: u8,
    /// Parts of the first two sources, one in the scalar instructions.
    pub sources: [[u8; 4]; 2],
}

impl VideoForm {
    /// The operation as bits.
    pub fn to_bits(self) -> u64 {
        let mut bits = 0;
        let mut place = 0;
        let mut put = |value: u64, width: u32| {
            bits |= value << place;
            place += width;
        };
        put(self.operation as u64, 4);
        put(self.secondary as u64, 2);
        for flag in self.signed.into_iter().chain(self.negated) {
            put(u64::from(flag), 1);
        }
        put(u64::from(self.saturates), 1);
        put(u64::from(self.wraps), 1);
        put(u64::from(self.adds_one), 1);
        put(u64::from(self.scale), 4);
        put(u64::from(self.outcomes), 3);
        put(u64::from(self.destination), 3);
        put(u64::from(self.mask), 4);
        for part in self.sources.into_iter().flatten() {
            put(u64::from(part), 3);
        }
        bits
    }

    /// From bits.
    #[inline(always)]
    pub fn from_bits(bits: u64) -> Self {
        let mut place = 0;
        let mut take = |width: u32| {
            let value = (bits >> place) & ((1 << width) - 1);
            place += width;
            value as u8
        };
        let mut form = VideoForm {
            operation: OPERATIONS[usize::from(take(4)) % OPERATIONS.len()],
            secondary: SECONDARIES[usize::from(take(2))],
            ..VideoForm::default()
        };
        for flag in form.signed.iter_mut().chain(&mut form.negated) {
            *flag = take(1) != 0;
        }
        form.saturates = take(1) != 0;
        form.wraps = take(1) != 0;
        form.adds_one = take(1) != 0;
        form.scale = take(4);
        form.outcomes = take(3);
        form.destination = take(3);
        form.mask = take(4);
        for part in form.sources.iter_mut().flatten() {
            *part = take(3);
        }
        form
    }
}

/// The bits of a part: where they begin and how many.
#[inline(always)]
fn place_of(part: u8) -> (u32, u32) {
    match part {
        0..=3 => (8 * u32::from(part), 8),
        4 => (0, 16),
        5 => (16, 16),
        _ => (0, 32),
    }
}

/// A field of a word, extended.
#[inline(always)]
fn field(value: u32, first: u32, bits: u32, signed: bool) -> i128 {
    let top = value << (32 - bits - first);
    if signed { i128::from(top as i32 >> (32 - bits)) } else { i128::from(top >> (32 - bits)) }
}

/// The nearest value of that many bits.
#[inline(always)]
fn clamp(value: i128, bits: u32, signed: bool) -> i128 {
    if signed { value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { value.clamp(0, (1 << bits) - 1) }
}

#[inline(always)]
fn combine(form: &VideoForm, a: i128, b: i128) -> i128 {
    match form.operation {
        Operation::Add | Operation::MultiplyAdd => a + b,
        Operation::Subtract => a - b,
        Operation::AbsoluteDifference => (a - b).abs(),
        Operation::Minimum => a.min(b),
        Operation::Maximum => a.max(b),
        // Halves round away from zero.
        Operation::Average => (a + b + i128::from(a + b >= 0)) >> 1,
        Operation::ShiftLeft => a << shift_count(form, b),
        Operation::ShiftRight => a >> shift_count(form, b),
        Operation::Compare => {
            let found = match a.cmp(&b) {
                std::cmp::Ordering::Less => outcome::LESS,
                std::cmp::Ordering::Equal => outcome::EQUAL,
                std::cmp::Ordering::Greater => outcome::GREATER,
            };
            i128::from(u32::from(form.outcomes) & found != 0)
        }
    }
}

#[inline(always)]
fn shift_count(form: &VideoForm, count: i128) -> u32 {
    if form.wraps { count as u32 & 31 } else { count.min(32) as u32 }
}

/// The scalar instructions but `vmad`.
pub(crate) struct ScalarVideo;

impl Body for ScalarVideo {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = VideoForm::from_bits(instruction.offset as u64);
        let [a, b, c] = [0, 1, 2].map(|index| u32::read(registers, constants, instruction.sources[index]));
        let [part_a, part_b] = form.sources.map(|parts| place_of(parts[0]));
        let (first, bits) = place_of(form.destination);
        let mut result = [0; LANES];
        for lane in 0..LANES {
            let value = combine(
                &form,
                field(a[lane], part_a.0, part_a.1, form.signed[0]),
                field(b[lane], part_b.0, part_b.1, form.signed[1]),
            );
            // A value that is not saturated has 33 bits with its sign.
            let value = if form.saturates { clamp(value, bits, form.signed[2]) } else { value << 95 >> 95 };
            let third = field(c[lane], 0, 32, form.signed[2]);
            let value = match form.secondary {
                Secondary::None => value,
                Secondary::Add => value + third,
                Secondary::Minimum => value.min(third),
                Secondary::Maximum => value.max(third),
            };
            let kept = if bits == 32 { 0 } else { !(((1u32 << bits) - 1) << first) };
            result[lane] = ((value as u32) << first) & !kept | c[lane] & kept;
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// `vmad`.
pub(crate) struct VideoMultiplyAdd;

impl Body for VideoMultiplyAdd {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = VideoForm::from_bits(instruction.offset as u64);
        let [a, b, c] = [0, 1, 2].map(|index| u32::read(registers, constants, instruction.sources[index]));
        let [part_a, part_b] = form.sources.map(|parts| place_of(parts[0]));
        let negates_product = form.negated[0] != form.negated[1];
        let negates_third = form.negated[2];
        let signed = form.signed[0] || form.signed[1] || negates_product || negates_third;
        let mut result = [0; LANES];
        for lane in 0..LANES {
            let mut value =
                field(a[lane], part_a.0, part_a.1, form.signed[0]) * field(b[lane], part_b.0, part_b.1, form.signed[1]);
            let mut third = c[lane];
            // Negation is inversion plus one, of the product or else of the third source.
            let mut one = form.adds_one;
            if !one && negates_product {
                value = !value;
                one = true;
            } else if !one && negates_third {
                third = !third;
                one = true;
            }
            value = (value + field(third, 0, 32, signed) + i128::from(one)) >> form.scale;
            result[lane] = if form.saturates { clamp(value, 32, signed) } else { value } as u32;
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// The instructions on two half words or four bytes.
pub(crate) struct ParallelVideo<const PARTS: usize>;

impl<const PARTS: usize> Body for ParallelVideo<PARTS> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let form = VideoForm::from_bits(instruction.offset as u64);
        let [a, b, c] = [0, 1, 2].map(|index| u32::read(registers, constants, instruction.sources[index]));
        let bits = 32 / PARTS as u32;
        let ones = u32::MAX >> (32 - bits);
        let accumulates = form.secondary == Secondary::Add;
        let mut result = c;
        for lane in 0..LANES {
            let part = |part: u8, signed: bool| {
                let part = usize::from(part);
                let word = if part < PARTS { a[lane] } else { b[lane] };
                field(word, bits * (part % PARTS) as u32, bits, signed)
            };
            for index in (0..PARTS).filter(|index| (form.mask >> index) & 1 != 0) {
                let value = combine(
                    &form,
                    part(form.sources[0][index], form.signed[0]),
                    part(form.sources[1][index], form.signed[1]),
                );
                let value = if form.saturates { clamp(value, bits, form.signed[2]) } else { value };
                if accumulates {
                    result[lane] = result[lane].wrapping_add(value as u32);
                } else {
                    let first = bits * index as u32;
                    result[lane] = result[lane] & !(ones << first) | ((value as u32 & ones) << first);
                }
            }
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_survives_as_bits() {
        for (index, operation) in OPERATIONS.into_iter().enumerate() {
            let form = VideoForm {
                operation,
                secondary: SECONDARIES[index % 4],
                signed: [true, false, index % 2 == 0],
                negated: [false, true, index % 3 == 0],
                saturates: index % 2 == 1,
                wraps: true,
                adds_one: false,
                scale: 15,
                outcomes: 5,
                destination: WHOLE,
                mask: 0b1010,
                sources: [[7, 6, 5, 4], [0, 1, 2, 3]],
            };
            assert_eq!(VideoForm::from_bits(form.to_bits()), form);
        }
    }
}
