//! Comparisons of machine code: comparisons of upper halves after lower ones, and of floats with signs.

use super::signs::{Signed, sign_of};
use crate::interpreter::bodies::Body;
use crate::interpreter::compare::{combine, combined};
use crate::interpreter::floating_point::float::flush;
use crate::interpreter::floating_point::half_arithmetic::extremum_mode;
use crate::interpreter::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;
use std::marker::PhantomData;

/// Which outcomes of a comparison make it true, in the immediate from bit 4 on, above the code of [`combine`]. Machine code numbers
/// comparisons by these sets: 3 is less or equal.
pub(crate) use crate::interpreter::compare::outcome;

/// Sets the two predicates of a comparison: its result, and the opposite, each combined with the source predicate.
#[inline(always)]
fn set_predicates(instruction: &Instruction, registers: &mut Registers, truth: u32, mask: u32) {
    let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
    let how = instruction.immediate & 3;
    registers.set_predicate(instruction.predicate_destinations[0], combined(how, truth, other), mask);
    registers.set_predicate(instruction.predicate_destinations[1], combined(how, !truth, other), mask);
}

/// Integers. Bit `EXTENDED` of the immediate makes them the upper halves of 64-bit ones: where these are equal, the second source predicate
/// decides, which has the result of the comparison of the lower halves.
pub(crate) struct CompareIntegers<T>(PhantomData<T>);

/// The comparison goes by that of the lower halves.
pub(crate) const EXTENDED: u32 = 4;

impl<T: Lane + PartialOrd> Body for CompareIntegers<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = T::read(registers, constants, instruction.sources[0]);
        let b = T::read(registers, constants, instruction.sources[1]);
        let set = instruction.immediate >> outcome::SHIFT;
        let (mut less, mut equal) = (0, 0);
        for lane in 0..LANES {
            less |= u32::from(a[lane] < b[lane]) << lane;
            equal |= u32::from(a[lane] == b[lane]) << lane;
        }
        let all = |outcome: u32| if set & outcome != 0 { u32::MAX } else { 0 };
        let greater = !less & !equal;
        let of_equal = if instruction.immediate & EXTENDED != 0 {
            registers.predicate(instruction.predicate_sources[1], instruction.predicate_flips[1])
        } else {
            all(outcome::EQUAL)
        };
        let truth = less & all(outcome::LESS) | greater & all(outcome::GREATER) | equal & of_equal;
        set_predicates(instruction, registers, truth, mask);
    }
}

/// A float that is compared.
pub(crate) trait Compared: Signed + PartialOrd {
    /// A subnormal becomes zero, where the format has instructions for that.
    fn flushed(self) -> Self;
}

impl Compared for f32 {
    #[inline(always)]
    fn flushed(self) -> Self {
        flush(self)
    }
}

impl Compared for f64 {
    #[inline(always)]
    fn flushed(self) -> Self {
        self
    }
}

#[inline(always)]
fn compare_floats<T: Compared, const FLUSH: bool>(
    instruction: &Instruction,
    registers: &Registers,
    constants: &[Row],
) -> u32 {
    let a = T::read_pair(registers, constants, instruction.sources[0]);
    let b = T::read_pair(registers, constants, instruction.sources[1]);
    let [sa, sb] = [0, 1].map(|source| sign_of(instruction.signs, source));
    let (mut less, mut equal, mut greater) = (0, 0, 0);
    for lane in 0..LANES {
        let (a, b) = (a[lane].signed(sa), b[lane].signed(sb));
        let (a, b) = if FLUSH { (a.flushed(), b.flushed()) } else { (a, b) };
        less |= u32::from(a < b) << lane;
        equal |= u32::from(a == b) << lane;
        greater |= u32::from(a > b) << lane;
    }
    let set = instruction.immediate >> outcome::SHIFT;
    let chosen = |outcome: u32, lanes: u32| if set & outcome != 0 { lanes } else { 0 };
    chosen(outcome::LESS, less)
        | chosen(outcome::EQUAL, equal)
        | chosen(outcome::GREATER, greater)
        | chosen(outcome::UNORDERED, !(less | equal | greater))
}

/// `FSETP` and `DSETP`.
pub(crate) struct CompareFloats<T, const FLUSH: bool>(PhantomData<T>);

impl<T: Compared, const FLUSH: bool> Body for CompareFloats<T, FLUSH> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare_floats::<T, FLUSH>(instruction, registers, constants);
        set_predicates(instruction, registers, truth, mask);
    }
}

/// `DSETP.MIN` and `DSETP.MAX`. The first predicate is true where the first double is the smaller (larger) one, a number before a
/// not-a-number and -0 before +0. The second is true where both are not-a-numbers; code then takes the second one, quieted.
pub(crate) struct ChooseDouble<const LARGER: bool>;

impl<const LARGER: bool> Body for ChooseDouble<LARGER> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = f64::read_pair(registers, constants, instruction.sources[0]);
        let b = f64::read_pair(registers, constants, instruction.sources[1]);
        let [sa, sb] = [0, 1].map(|source| sign_of(instruction.signs, source));
        let (mut first, mut neither) = (0, 0);
        for lane in 0..LANES {
            let (a, b) = (a[lane].signed(sa), b[lane].signed(sb));
            let before = if LARGER { a > b } else { a < b };
            let is_zero_before = a == b && a.is_sign_negative() != LARGER;
            first |= u32::from(!a.is_nan() && (b.is_nan() || before || is_zero_before)) << lane;
            neither |= u32::from(a.is_nan() && b.is_nan()) << lane;
        }
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let how = instruction.immediate & 3;
        registers.set_predicate(instruction.predicate_destinations[0], combined(how, first, other), mask);
        registers.set_predicate(instruction.predicate_destinations[1], combined(how, neither, other), mask);
    }
}

/// `FSET.BF`: 1.0 where the comparison, combined with the source predicate, is true.
pub(crate) struct CompareToValue<const FLUSH: bool>;

impl<const FLUSH: bool> Body for CompareToValue<FLUSH> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let truth = compare_floats::<f32, FLUSH>(instruction, registers, constants);
        let other = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let truth = combined(instruction.immediate & 3, truth, other);
        let mut values = [0.0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            *value = f32::from(u8::from(truth >> lane & 1 != 0));
        }
        f32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// `FSEL`: one of two singles with signs, by a predicate.
pub(crate) struct SelectFloat<const FLUSH: bool>;

impl<const FLUSH: bool> Body for SelectFloat<FLUSH> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = f32::read(registers, constants, instruction.sources[0]);
        let b = f32::read(registers, constants, instruction.sources[1]);
        let [sa, sb] = [0, 1].map(|source| sign_of(instruction.signs, source));
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let mut values = [0.0; LANES];
        for lane in 0..LANES {
            let value = if truth >> lane & 1 != 0 { a[lane].signed(sa) } else { b[lane].signed(sb) };
            values[lane] = if FLUSH { flush(value) } else { value };
        }
        f32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// `FMNMX` and `IMNMX`: the smaller value where the predicate is true, else the larger one.
pub(crate) struct ByPredicate<Least, Most>(PhantomData<(Least, Most)>);

impl<Least, Most> Body for ByPredicate<Least, Most>
where
    Least: crate::interpreter::bodies::LaneOperation,
    Most: crate::interpreter::bodies::LaneOperation<A = Least::A, B = Least::B, C = Least::C, D = Least::D>,
    Least::C: Lane,
{
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = Least::A::read(registers, constants, instruction.sources[0]);
        let b = Least::B::read(registers, constants, instruction.sources[1]);
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let mut values = [Least::D::ZERO; LANES];
        for lane in 0..LANES {
            values[lane] = if truth >> lane & 1 != 0 {
                Least::apply(a[lane], b[lane], Least::C::ZERO, 0)
            } else {
                Most::apply(a[lane], b[lane], Most::C::ZERO, 0)
            };
        }
        Least::D::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// The same of sources with signs.
pub(crate) struct SignedByPredicate<Least, Most>(PhantomData<(Least, Most)>);

impl<Least, Most> Body for SignedByPredicate<Least, Most>
where
    Least: crate::interpreter::bodies::LaneOperation<A: Signed, B: Signed>,
    Most: crate::interpreter::bodies::LaneOperation<A = Least::A, B = Least::B, C = Least::C, D = Least::D>,
{
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = Least::A::read(registers, constants, instruction.sources[0]);
        let b = Least::B::read(registers, constants, instruction.sources[1]);
        let [sa, sb] = [0, 1].map(|source| sign_of(instruction.signs, source));
        let truth = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let mut values = [Least::D::ZERO; LANES];
        for lane in 0..LANES {
            let (a, b) = (a[lane].signed(sa), b[lane].signed(sb));
            values[lane] = if truth >> lane & 1 != 0 {
                Least::apply(a, b, Least::C::ZERO, 0)
            } else {
                Most::apply(a, b, Most::C::ZERO, 0)
            };
        }
        Least::D::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// `FCHK`: where a quotient needs the long way: where the divisor, its reciprocal, the dividend or the quotient is no normal number,
/// or so small that the remainder is none.
pub(crate) struct CheckDivision;

impl Body for CheckDivision {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b] = [0, 1].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let mut truth = 0;
        for lane in 0..LANES {
            let [dividend, divisor] = [a[lane], b[lane]].map(|bits| (bits >> 23 & 0xff) as i32);
            let quotient = dividend - divisor;
            let is_near =
                (1..=252).contains(&divisor) && (25..=254).contains(&dividend) && (-125..=125).contains(&quotient);
            truth |= u32::from(!is_near) << lane;
        }
        registers.set_predicate(instruction.predicate_destinations[0], truth, mask);
    }
}

/// `FMNMX` with modifiers: the lesser of two singles where the predicate is true, elsewhere the greater one. The immediate is an
/// [`extremum_mode`](crate::interpreter::floating_point::half_arithmetic::extremum_mode).
pub(crate) struct ExtremumF32;

impl Body for ExtremumF32 {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let mode = instruction.immediate;
        let rows = [0, 1].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let lesser = registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
        let results = std::array::from_fn(|lane| {
            let [a, b] = [0, 1].map(|source| {
                let value = f32::from_bits(rows[source][lane]).signed(sign_of(instruction.signs, source));
                if mode & extremum_mode::FLUSH != 0 { flush(value) } else { value }
            });
            extremum(a, b, lesser >> lane & 1 != 0, mode).to_bits()
        });
        u32::write(registers, instruction.destinations[0], &results, mask);
    }
}

/// The lesser or the greater of two singles; -0 is less than +0.
#[inline(always)]
fn extremum(a: f32, b: f32, is_least: bool, mode: u32) -> f32 {
    /// The not-a-number that operations make.
    const NAN: f32 = f32::from_bits(0x7fff_ffff);
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let result = match (a.is_nan(), b.is_nan()) {
        (true, true) => return NAN,
        (true, _) | (_, true) if mode & extremum_mode::NAN != 0 => return NAN,
        (true, false) => b,
        (false, true) => a,
        _ if a.total_cmp(&b).is_lt() == is_least => a,
        _ => b,
    };
    if mode & extremum_mode::XOR_SIGN != 0 { f32::from_bits(result.to_bits() & 0x7fff_ffff | sign) } else { result }
}

/// The operation that combines a comparison with the predicate, from its field.
pub(crate) const fn combination(code: u64) -> u32 {
    match code {
        0 => combine::AND,
        1 => combine::OR,
        _ => combine::XOR,
    }
}
