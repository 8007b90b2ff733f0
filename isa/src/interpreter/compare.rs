//! Comparison, selection, and logic on predicates.

use super::bodies::{Body, lanes_one_by_one, read_lanes};
use super::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;
use std::marker::PhantomData;

/// A truth from two values of the same lane.
pub(crate) trait Comparison {
    type T: Lane;
    fn test(a: Self::T, b: Self::T) -> bool;
}

/// How `setp` and `set` combine a comparison with a predicate: `Instruction::immediate`.
pub(crate) mod combine {
    pub const NONE: u32 = 0;
    pub const AND: u32 = 1;
    pub const OR: u32 = 2;
    pub const XOR: u32 = 3;
}

#[inline(always)]
pub(crate) fn combined(how: u32, truth: u32, predicate: u32) -> u32 {
    match how {
        combine::AND => truth & predicate,
        combine::OR => truth | predicate,
        combine::XOR => truth ^ predicate,
        _ => truth,
    }
}

#[inline(always)]
fn compare<O: Comparison>(instruction: &Instruction, registers: &Registers, constants: &[Row]) -> u32 {
    let a = O::T::read(registers, constants, instruction.sources[0]);
    let b = O::T::read(registers, constants, instruction.sources[1]);
    let mut truth = 0;
    for lane in 0..LANES {
        truth |= u32::from(O::test(a[lane], b[lane])) << lane;
    }
    truth
}

/// As [`compare`], in little code.
#[inline(always)]
fn compare_compact<O: Comparison>(instruction: &Instruction, registers: &Registers, constants: &[Row]) -> u32 {
    let a = read_lanes::<O::T>(registers, constants, instruction.sources[0]);
    let b = read_lanes::<O::T>(registers, constants, instruction.sources[1]);
    lanes_one_by_one().fold(0, |truth, lane| truth | u32::from(O::test(a[lane], b[lane])) << lane)
}

/// `setp`: two predicates from a comparison.
pub(crate) struct SetPredicate<O>(PhantomData<O>);

impl<O: Comparison> Body for SetPredicate<O> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare::<O>(instruction, registers, constants);
        set_predicates(instruction, registers, truth, mask);
    }

    #[inline(always)]
    fn run_compact(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare_compact::<O>(instruction, registers, constants);
        set_predicates(instruction, registers, truth, mask);
    }
}

/// The result of `setp` for the truths of its comparison.
#[inline(always)]
fn set_predicates(instruction: &Instruction, registers: &mut Registers, truth: u32, mask: u32) {
    let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
    let how = instruction.immediate;
    registers.set_predicate(instruction.predicate_destinations[0], combined(how, truth, other), mask);
    registers.set_predicate(instruction.predicate_destinations[1], combined(how, !truth, other), mask);
}

/// `set`: a comparison's result as a 32-bit value, all ones (or 1.0, the second source's value) where true.
pub(crate) struct SetValue<O>(PhantomData<O>);

impl<O: Comparison> Body for SetValue<O> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare::<O>(instruction, registers, constants);
        set_values(instruction, registers, constants, truth, mask);
    }

    #[inline(always)]
    fn run_compact(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare_compact::<O>(instruction, registers, constants);
        set_values(instruction, registers, constants, truth, mask);
    }
}

/// The result of `set` for the truths of its comparison: compiled once for all of them, since compilers make little use of `set`.
#[inline(never)]
fn set_values(instruction: &Instruction, registers: &mut Registers, constants: &[Row], truth: u32, mask: u32) {
    let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
    let truth = combined(instruction.immediate, truth, other);
    let ones = u32::read(registers, constants, instruction.sources[2]);
    let values = std::array::from_fn(|lane| if (truth >> lane) & 1 != 0 { ones[lane] } else { 0 });
    u32::write(registers, instruction.destinations[0], &values, mask);
}

/// How two floats compare: bits of a set of outcomes.
pub(crate) mod outcome {
    pub const LESS: u32 = 1;
    pub const EQUAL: u32 = 2;
    pub const GREATER: u32 = 4;
    pub const UNORDERED: u32 = 8;
    /// Where the set is in `Instruction::immediate`, above the [`super::combine`] code.
    pub const SHIFT: u32 = 4;
}

/// A float format that is compared as bits: magnitudes in sign and magnitude order as integers do.
pub(crate) trait FloatBits {
    /// Bits of the format.
    const BITS: u32;
    /// The magnitude of infinity; those above are NaN.
    const INFINITY: u32;
    /// Magnitudes below this count as zero.
    const SMALLEST: u32;
}

macro_rules! float_bits {
    ($($(#[$meta:meta])* $name:ident, $bits:expr, $infinity:expr, $smallest:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl FloatBits for $name {
            const BITS: u32 = $bits;
            const INFINITY: u32 = $infinity;
            const SMALLEST: u32 = $smallest;
        }
    )*};
}
float_bits! {
    /// f16.
    HalfBits, 16, 0x7c00, 0;
    /// f16, subnormals as zero.
    HalfBitsFlushed, 16, 0x7c00, 0x0400;
    /// bf16.
    BrainBits, 16, 0x7f80, 0;
    /// f32, subnormals as zero.
    SingleBitsFlushed, 32, 0x7f80_0000, 0x0080_0000;
}

/// The lanes in which the comparison of the values at a bit position has an outcome of the set.
#[inline(always)]
fn lanes_of_outcomes<F: FloatBits>(a: &[u32; LANES], b: &[u32; LANES], shift: u32, set: u32) -> u32 {
    let sign = 1u32 << (F::BITS - 1);
    let key = |value: u32| {
        let value = value >> shift;
        let magnitude = value & (sign - 1);
        let magnitude = if magnitude < F::SMALLEST { 0 } else { magnitude as i32 };
        if value & sign != 0 { -magnitude } else { magnitude }
    };
    let mut less = 0;
    let mut equal = 0;
    let mut unordered = 0;
    for lane in 0..LANES {
        let (a, b) = (key(a[lane]), key(b[lane]));
        let infinity = F::INFINITY as i32;
        let is_nan = (a > infinity) | (a < -infinity) | (b > infinity) | (b < -infinity);
        less |= u32::from(a < b) << lane;
        equal |= u32::from(a == b) << lane;
        unordered |= u32::from(is_nan) << lane;
    }
    let chosen = |outcome: u32, lanes: u32| if set & outcome != 0 { lanes } else { 0 };
    let ordered =
        chosen(outcome::LESS, less) | chosen(outcome::EQUAL, equal) | chosen(outcome::GREATER, !less & !equal);
    (ordered & !unordered) | chosen(outcome::UNORDERED, unordered)
}

/// `setp` of floats by bits. Where `PAIR`, the predicates are of the low and the high half of the registers.
pub(crate) struct SetPredicateByOutcome<F, const PAIR: bool>(PhantomData<F>);

impl<F: FloatBits, const PAIR: bool> Body for SetPredicateByOutcome<F, PAIR> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = u32::read(registers, constants, instruction.sources[0]);
        let b = u32::read(registers, constants, instruction.sources[1]);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let how = instruction.immediate & 3;
        let set = instruction.immediate >> outcome::SHIFT;
        let low = lanes_of_outcomes::<F>(&a, &b, 0, set);
        let second = if PAIR { lanes_of_outcomes::<F>(&a, &b, 16, set) } else { !low };
        registers.set_predicate(instruction.predicate_destinations[0], combined(how, low, other), mask);
        registers.set_predicate(instruction.predicate_destinations[1], combined(how, second, other), mask);
    }
}

/// `set` of floats by bits, the third source where true. Where `PAIR`, each half of it where the halves' comparison is.
pub(crate) struct SetValueByOutcome<F, const PAIR: bool>(PhantomData<F>);

impl<F: FloatBits, const PAIR: bool> Body for SetValueByOutcome<F, PAIR> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = u32::read(registers, constants, instruction.sources[0]);
        let b = u32::read(registers, constants, instruction.sources[1]);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let how = instruction.immediate & 3;
        let set = instruction.immediate >> outcome::SHIFT;
        let low = combined(how, lanes_of_outcomes::<F>(&a, &b, 0, set), other);
        let high = if PAIR { combined(how, lanes_of_outcomes::<F>(&a, &b, 16, set), other) } else { low };
        let ones = u32::read(registers, constants, instruction.sources[2]);
        let mut values = [0; LANES];
        for lane in 0..LANES {
            let low = 0u32.wrapping_sub((low >> lane) & 1) & 0xffff;
            let high = 0u32.wrapping_sub((high >> lane) & 1) & 0xffff_0000;
            values[lane] = ones[lane] & (low | high);
        }
        u32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// A predicate that tells whether a register is zero, combined with another one: the result of `lop3` with a boolean operator.
pub(crate) struct TestNonZero;

impl Body for TestNonZero {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let values = u32::read(registers, constants, instruction.sources[0]);
        let mut truth = 0;
        for (lane, value) in values.iter().enumerate() {
            truth |= u32::from(*value != 0) << lane;
        }
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let value = combined(instruction.immediate, truth, other);
        registers.set_predicate(instruction.predicate_destinations[0], value, mask);
    }
}

/// `selp`: one of two values, by a predicate.
pub(crate) struct Select<T>(PhantomData<T>);

impl<T: Lane> Body for Select<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = T::read(registers, constants, instruction.sources[0]);
        let b = T::read(registers, constants, instruction.sources[1]);
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let mut values = b;
        for lane in 0..LANES {
            values[lane] = if (truth >> lane) & 1 != 0 { a[lane] } else { b[lane] };
        }
        T::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// Logic on predicates: `Instruction::immediate` says which, as in [`combine`]; `NONE` moves the first.
pub(crate) struct PredicateLogic;

impl Body for PredicateLogic {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, _: &[Row], mask: u32) {
        let [a, b] =
            [0, 1].map(|n| registers.predicate(instruction.predicate_sources[n], instruction.predicate_flips[n]));
        let value = combined(instruction.immediate, a, b);
        registers.set_predicate(instruction.predicate_destinations[0], value, mask);
    }
}

macro_rules! comparisons {
    ($($(#[$meta:meta])* $name:ident, |$a:ident, $b:ident| $test:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name<T>(PhantomData<T>);
        impl<T: Lane + PartialOrd> Comparison for $name<T> {
            type T = T;
            #[inline(always)]
            fn test($a: T, $b: T) -> bool {
                $test
            }
        }
    )*};
}
#[allow(
    clippy::eq_op,
    clippy::double_comparisons,
    clippy::allow_attributes,
    clippy::neg_cmp_op_on_partial_ord,
    reason = "a NaN differs from itself"
)]
mod comparisons {
    use super::*;
    comparisons! {
        /// `.eq`
        Equal, |a, b| a == b;
        /// `.ne` of integers, `.neu` of floats.
        NotEqualOrUnordered, |a, b| a != b;
        /// `.lt`, `.lo`
        Less, |a, b| a < b;
        /// `.le`, `.ls`
        LessOrEqual, |a, b| a <= b;
        /// `.gt`, `.hi`
        Greater, |a, b| a > b;
        /// `.ge`, `.hs`
        GreaterOrEqual, |a, b| a >= b;
        /// `.ne` of floats.
        NotEqual, |a, b| a < b || a > b;
        /// `.equ`
        EqualOrUnordered, |a, b| !(a < b || a > b);
        /// `.ltu`
        LessOrUnordered, |a, b| !(a >= b);
        /// `.leu`
        LessEqualOrUnordered, |a, b| !(a > b);
        /// `.gtu`
        GreaterOrUnordered, |a, b| !(a <= b);
        /// `.geu`
        GreaterEqualOrUnordered, |a, b| !(a < b);
        /// `.num`
        Ordered, |a, b| a == a && b == b;
        /// `.nan`
        Unordered, |a, b| a != a || b != b;
    }
}
pub(crate) use comparisons::*;
