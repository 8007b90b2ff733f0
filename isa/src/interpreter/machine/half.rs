//! Half precision of machine code: each source with a choice of its halves and a sign.

use super::signs::{sign, sign_of};
use crate::interpreter::bodies::Body;
use crate::interpreter::compare::combined;
use crate::interpreter::floating_point::float::{add_to_odd, canonical, flush, saturate, saturate_double};
use crate::interpreter::floating_point::half_arithmetic::{
    F16, Format, HalfFunction, extremum, extremum_mode, half_mode,
};
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;
use std::marker::PhantomData;

/// The halves of a source that are used: 0 both of them.
pub(crate) mod halves {
    /// All of it, a single.
    pub const SINGLE: u32 = 1;
    /// The lower half twice.
    pub const LOW: u32 = 2;
    /// The upper half twice.
    pub const HIGH: u32 = 3;
    /// Where that of source `n` stands in the immediate: from this bit plus 2 `n` on. Below is a
    /// [`half_mode`](crate::interpreter::floating_point::half_arithmetic::half_mode).
    pub const SHIFT: u32 = 8;
    /// The result is a single, computed from the lower halves.
    pub const SINGLE_RESULT: u32 = 1 << 16;
    /// Comparisons: the first predicate is true where both halves' are.
    pub const AND: u32 = 1 << 17;
    /// Comparisons: 1.0 where true, in place of all ones.
    pub const ONE: u32 = 1 << 18;
}

/// The operation of an instruction on up to three values.
pub(crate) mod operation {
    pub const ADD: u8 = 0;
    pub const MULTIPLY: u8 = 1;
    pub const FUSED: u8 = 2;
}

#[inline(always)]
fn value<T: Format>(bits: u32, part: u32, choice: u32, sign: u8, flushes: bool) -> f32 {
    let from_half = |half: u16| {
        let is_subnormal = half & 0x7fff < T::SMALLEST;
        T::widen(if flushes && is_subnormal { half & 0x8000 } else { half })
    };
    let value = match choice {
        halves::SINGLE => f32::from_bits(bits),
        halves::LOW => from_half(bits as u16),
        halves::HIGH => from_half((bits >> 16) as u16),
        _ => from_half((bits >> (16 * part)) as u16),
    };
    let value = if sign & sign::ABSOLUTE != 0 { value.abs() } else { value };
    if sign & sign::NEGATE != 0 { -value } else { value }
}

/// `MUFU` of one half of a register; the immediate is its first bit.
pub(crate) struct SpecialHalf<F>(PhantomData<F>);

impl<F: HalfFunction> Body for SpecialHalf<F> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let words = u32::read(registers, constants, instruction.sources[0]);
        let sign = sign_of(instruction.signs, 0);
        let results = words.map(|word| {
            let single = value::<F16>(word >> instruction.immediate, 0, halves::LOW, sign, false);
            u32::from(F16::narrow(F::compute(single, 0.0, 0.0)))
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}

/// `HADD2`, `HMUL2` and `HFMA2` in all their forms, of halves or of bfloat16.
pub(crate) struct HalfArithmetic<const OPERATION: u8, T>(PhantomData<T>);

impl<const OPERATION: u8, T: Format> Body for HalfArithmetic<OPERATION, T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let flags = instruction.immediate;
        let flushes = flags & half_mode::FLUSH != 0;
        let saturates = flags & half_mode::SATURATE != 0;
        let operand = |source: usize, part: u32| {
            let row = u32::read(registers, constants, instruction.sources[source]);
            let choice = flags >> (halves::SHIFT + 2 * source as u32) & 3;
            values::<T>(&row, part, choice, sign_of(instruction.signs, source), flushes)
        };
        let compute = |part: u32| -> [f64; LANES] {
            let (a, b) = (operand(0, part), operand(1, part));
            let mut results = [0.0; LANES];
            match OPERATION {
                operation::ADD => {
                    for lane in 0..LANES {
                        results[lane] = f64::from(a[lane]) + f64::from(b[lane]);
                    }
                }
                operation::MULTIPLY => {
                    for lane in 0..LANES {
                        results[lane] = f64::from(a[lane]) * f64::from(b[lane]);
                    }
                }
                // Exact but for sums of halves that are 2^29 apart, which do not reach a half's last bit; rounded to odd it is right.
                _ => {
                    let c = operand(2, part);
                    for lane in 0..LANES {
                        results[lane] = add_to_odd(f64::from(a[lane]) * f64::from(b[lane]), f64::from(c[lane]));
                    }
                }
            }
            results
        };
        let result = if flags & halves::SINGLE_RESULT != 0 {
            compute(0).map(|value| {
                let value = value as f32;
                let value = if saturates { saturate(value) } else { canonical(value) };
                (if flushes { flush(value) } else { value }).to_bits()
            })
        } else {
            let is_positive = flags & half_mode::RELU != 0;
            let [lower, upper] = [0, 1].map(|part| {
                compute(part).map(|value| {
                    let value = if saturates { saturate_double(value) } else { value };
                    let value = if is_positive && value <= 0.0 { 0.0 } else { value };
                    let half = T::narrow_double(value);
                    u32::from(if flushes && half & 0x7fff < T::SMALLEST { half & 0x8000 } else { half })
                })
            });
            std::array::from_fn(|lane| lower[lane] | upper[lane] << 16)
        };
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// [`value`] of all lanes.
#[inline(always)]
fn values<T: Format>(row: &[u32; LANES], part: u32, choice: u32, sign: u8, flushes: bool) -> [f32; LANES] {
    let choice = if choice == 0 { halves::LOW + part } else { choice };
    if choice == halves::SINGLE {
        return row.map(|bits| value::<T>(bits, 0, halves::SINGLE, sign, flushes));
    }
    let shift = if choice == halves::HIGH { 16 } else { 0 };
    row.map(|bits| value::<T>(bits >> shift, 0, halves::LOW, sign, flushes))
}

/// `HMNMX2`: the lesser of each half's two values where the predicate is true, elsewhere the greater one. `offset` is an
/// [`extremum_mode`].
pub(crate) struct HalfExtremum<T>(PhantomData<T>);

impl<T: Format> Body for HalfExtremum<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let rows = [0, 1].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let flags = instruction.immediate;
        let lesser = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let results = std::array::from_fn(|lane| {
            let which = if lesser >> lane & 1 != 0 { 0 } else { extremum_mode::MAXIMUM };
            let part = |part: u32| {
                let [a, b] = [0, 1].map(|source| {
                    let choice = flags >> (halves::SHIFT + 2 * source as u32) & 3;
                    // A single becomes a value of the format.
                    T::narrow(value::<T>(rows[source][lane], part, choice, sign_of(instruction.signs, source), false))
                });
                u32::from(extremum::<T>(a, b, instruction.offset as u32 | which))
            };
            part(0) | part(1) << 16
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}

/// The lanes in which the comparison of the halves is true, lower and upper.
#[inline(always)]
fn compare<T: Format>(instruction: &Instruction, registers: &Registers, constants: &[Row]) -> [u32; 2] {
    let rows = [0, 1].map(|source| u32::read(registers, constants, instruction.sources[source]));
    let flags = instruction.immediate;
    let flushes = flags & half_mode::FLUSH != 0;
    let set = instruction.offset as u32;
    [0, 1].map(|part| {
        (0..LANES).fold(0, |truth, lane| {
            let [a, b] = [0, 1].map(|source| {
                let choice = flags >> (halves::SHIFT + 2 * source as u32) & 3;
                value::<T>(rows[source][lane], part, choice, sign_of(instruction.signs, source), flushes)
            });
            let outcome = u32::from(a < b) | u32::from(a == b) << 1 | u32::from(a > b) << 2;
            let outcome = if outcome == 0 { 8 } else { outcome };
            truth | u32::from(set & outcome != 0) << lane
        })
    })
}

/// Where the code that comparisons are combined by stands in the immediate.
pub(crate) const COMBINATION_SHIFT: u32 = 20;

/// `HSETP2`: `offset` is the set of outcomes.
pub(crate) struct CompareHalves<T>(PhantomData<T>);

impl<T: Format> Body for CompareHalves<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [low, high] = compare::<T>(instruction, registers, constants);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let how = instruction.immediate >> COMBINATION_SHIFT & 3;
        let [first, second] =
            if instruction.immediate & halves::AND != 0 { [low & high, !(low & high)] } else { [low, high] };
        registers.set_predicate(instruction.predicate_destinations[0], combined(how, first, other), mask);
        registers.set_predicate(instruction.predicate_destinations[1], combined(how, second, other), mask);
    }
}

/// `HSET2`: the same as values of two halves.
pub(crate) struct CompareHalvesToValue<T>(PhantomData<T>);

impl<T: Format> Body for CompareHalvesToValue<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truths = compare::<T>(instruction, registers, constants);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let how = instruction.immediate >> COMBINATION_SHIFT & 3;
        let [low, high] = truths.map(|truth| combined(how, truth, other));
        let one = if instruction.immediate & halves::ONE != 0 { u32::from(T::ONE) } else { 0xffff };
        let mut values = [0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            let [low, high] = [low, high].map(|truth| (truth >> lane & 1) * one);
            *value = low | (high << 16);
        }
        u32::write(registers, instruction.destinations[0], &values, mask);
    }
}
