//! Arithmetic of machine code: sums with carries, products, and PTX's operations on pairs of registers and on signed sources.

use super::signs::{Signed, sign, sign_of};
use crate::interpreter::bodies::{Body, LaneOperation};
use crate::interpreter::registers::{Lane, Registers, each_lane};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;
use std::marker::PhantomData;

/// Runs a [`LaneOperation`] whose values of 64 bits are pairs of registers.
pub(crate) struct MapPairs<O>(PhantomData<O>);

impl<O: LaneOperation> Body for MapPairs<O> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = O::A::read_pair(registers, constants, instruction.sources[0]);
        let b = O::B::read_pair(registers, constants, instruction.sources[1]);
        let c = O::C::read_pair(registers, constants, instruction.sources[2]);
        let immediate = instruction.immediate;
        let mut result = [O::apply(a[0], b[0], c[0], immediate); LANES];
        for lane in 1..LANES {
            result[lane] = O::apply(a[lane], b[lane], c[lane], immediate);
        }
        O::D::write_pair(registers, instruction.destinations[0], &result, mask);
    }
}

/// The same on sources with signs.
pub(crate) struct MapSigned<O>(PhantomData<O>);

impl<O: LaneOperation> Body for MapSigned<O>
where
    O::A: Signed,
    O::B: Signed,
    O::C: Signed,
{
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = O::A::read_pair(registers, constants, instruction.sources[0]);
        let b = O::B::read_pair(registers, constants, instruction.sources[1]);
        let c = O::C::read_pair(registers, constants, instruction.sources[2]);
        let immediate = instruction.immediate;
        let [sa, sb, sc] = [0, 1, 2].map(|source| sign_of(instruction.signs, source));
        let mut result = [O::D::ZERO; LANES];
        for lane in 0..LANES {
            result[lane] = O::apply(a[lane].signed(sa), b[lane].signed(sb), c[lane].signed(sc), immediate);
        }
        O::D::write_pair(registers, instruction.destinations[0], &result, mask);
    }
}

/// The work of sums beside adding: bits of the immediate.
pub(crate) mod sum {
    /// Negative sources are inverted, not negated, and the source predicates are added: `.X`.
    pub const EXTENDED: u32 = 1;
    /// The shift of `LEA`, from this bit on.
    pub const SHIFT: u32 = 8;
    /// `LEA.HI`
    pub const HIGH: u32 = 2;
    /// `LEA.HI.SX32`
    pub const SIGN_EXTENDED: u32 = 4;
}

#[inline(always)]
fn inverted_if(signs: u8, source: usize) -> u32 {
    if sign_of(signs, source) & sign::NEGATE != 0 { u32::MAX } else { 0 }
}

/// `IADD3` without carries.
pub(crate) struct Add3;

impl Body for Add3 {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let [fa, fb, fc] = [0, 1, 2].map(|source| inverted_if(instruction.signs, source));
        // -x is !x + 1.
        let ones = (fa & 1) + (fb & 1) + (fc & 1);
        let mut result = [0; LANES];
        for lane in 0..LANES {
            result[lane] = (a[lane] ^ fa).wrapping_add(b[lane] ^ fb).wrapping_add((c[lane] ^ fc).wrapping_add(ones));
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
    }
}

/// The carries that an instruction adds: the source predicates of one that is `.X`.
#[inline(always)]
fn carries_in(instruction: &Instruction, registers: &Registers) -> [u32; 2] {
    if instruction.immediate & sum::EXTENDED == 0 {
        return [0; 2];
    }
    [0, 1].map(|place| registers.predicate(instruction.predicate_sources[place], instruction.predicate_flips[place]))
}

/// `IADD3` with carries: the first destination predicate is set where the sum carries at least once, the second where it does twice.
pub(crate) struct Add3Carry;

impl Body for Add3Carry {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let [fa, fb, fc] = [0, 1, 2].map(|source| inverted_if(instruction.signs, source));
        let is_extended = instruction.immediate & sum::EXTENDED != 0;
        let ones = if is_extended { 0 } else { u64::from((fa & 1) + (fb & 1) + (fc & 1)) };
        let [first, second] = carries_in(instruction, registers);
        let mut result = [0; LANES];
        let (mut once, mut twice) = (0, 0);
        for lane in 0..LANES {
            let carries = u64::from(first >> lane & 1) + u64::from(second >> lane & 1);
            let total = u64::from(a[lane] ^ fa) + u64::from(b[lane] ^ fb) + u64::from(c[lane] ^ fc) + ones + carries;
            result[lane] = total as u32;
            once |= u32::from(total >> 32 >= 1) << lane;
            twice |= u32::from(total >> 32 >= 2) << lane;
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
        registers.set_predicate(instruction.predicate_destinations[0], once, mask);
        registers.set_predicate(instruction.predicate_destinations[1], twice, mask);
    }
}

/// `LEA`: the first source, to which the third is the upper half, shifted to the left, plus the second.
pub(crate) struct ShiftAdd;

impl Body for ShiftAdd {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b, c] = [0, 1, 2].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let [fa, fb] = [0, 1].map(|source| inverted_if(instruction.signs, source));
        let flags = instruction.immediate;
        let shift = flags >> sum::SHIFT;
        let is_extended = flags & sum::EXTENDED != 0;
        let ones = if is_extended { 0 } else { u64::from((fa & 1) + (fb & 1)) };
        let [carry, _] = carries_in(instruction, registers);
        let mut result = [0; LANES];
        let mut carries = 0;
        for lane in 0..LANES {
            let high = if flags & sum::SIGN_EXTENDED != 0 { (a[lane] as i32 >> 31) as u32 } else { c[lane] };
            let scaled = (u64::from(a[lane]) | u64::from(high) << 32) << shift;
            let part = if flags & sum::HIGH != 0 { (scaled >> 32) as u32 } else { scaled as u32 };
            let total = u64::from(part ^ fa) + u64::from(b[lane] ^ fb) + ones + u64::from(carry >> lane & 1);
            result[lane] = total as u32;
            carries |= u32::from(total >> 32 != 0) << lane;
        }
        u32::write(registers, instruction.destinations[0], &result, mask);
        registers.set_predicate(instruction.predicate_destinations[0], carries, mask);
    }
}

/// The part of a product of 32-bit factors that is added to.
pub(crate) mod product {
    /// The lower 32 bits: `IMAD`.
    pub const LOW: u8 = 0;
    /// The upper 32 bits of the sum with a pair: `IMAD.HI`.
    pub const HIGH: u8 = 1;
    /// All 64 bits, in a pair: `IMAD.WIDE`.
    pub const WIDE: u8 = 2;
}

/// A product plus a signed addend and the carry of a predicate, where the plain products of PTX do not do; sets a predicate where the
/// sum carries. The addend is inverted rather than negated where the immediate says that it is extended.
pub(crate) struct MultiplyAddCarry<const PART: u8, const SIGNED: bool>;

impl<const PART: u8, const SIGNED: bool> Body for MultiplyAddCarry<PART, SIGNED> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let [a, b] = [0, 1].map(|source| u32::read(registers, constants, instruction.sources[source]));
        let c: [u64; LANES] = if PART == product::LOW {
            u32::read(registers, constants, instruction.sources[2]).map(u64::from)
        } else {
            u64::read_pair(registers, constants, instruction.sources[2])
        };
        let width = if PART == product::LOW { u64::from(u32::MAX) } else { u64::MAX };
        let is_negated = sign_of(instruction.signs, 2) & sign::NEGATE != 0;
        let flip = if is_negated { width } else { 0 };
        let one = u64::from(is_negated && instruction.immediate & sum::EXTENDED == 0);
        let [carry, _] = carries_in(instruction, registers);
        let mut result = [0u64; LANES];
        let mut carries = 0;
        for lane in 0..LANES {
            let full = if SIGNED {
                (i64::from(a[lane] as i32) * i64::from(b[lane] as i32)) as u64
            } else {
                u64::from(a[lane]) * u64::from(b[lane])
            };
            let total =
                u128::from(full & width) + u128::from(c[lane] ^ flip) + u128::from(one + u64::from(carry >> lane & 1));
            result[lane] = total as u64 & width;
            carries |= u32::from(total > u128::from(width)) << lane;
        }
        match PART {
            product::WIDE => u64::write_pair(registers, instruction.destinations[0], &result, mask),
            part => {
                let shift = if part == product::HIGH { 32 } else { 0 };
                let result = each_lane!(result, |value| (value >> shift) as u32);
                u32::write(registers, instruction.destinations[0], &result, mask);
            }
        }
        registers.set_predicate(instruction.predicate_destinations[0], carries, mask);
    }
}

/// `IMAD.HI` without carries and signs.
pub(crate) struct MultiplyAddHigh<const SIGNED: bool>;

impl<const SIGNED: bool> LaneOperation for MultiplyAddHigh<SIGNED> {
    type A = u32;
    type B = u32;
    type C = u64;
    type D = u32;
    #[inline(always)]
    fn apply(a: u32, b: u32, c: u64, _: u32) -> u32 {
        let product =
            if SIGNED { (i64::from(a as i32) * i64::from(b as i32)) as u64 } else { u64::from(a) * u64::from(b) };
        (product.wrapping_add(c) >> 32) as u32
    }
}

/// `FMUL` whose product is scaled by a power of two, the immediate's upper half as a single's upper half; rounded once to nearest.
pub(crate) struct ScaledProduct<const FLUSH: bool>;

impl<const FLUSH: bool> LaneOperation for ScaledProduct<FLUSH> {
    type A = f32;
    type B = f32;
    type C = ();
    type D = f32;
    #[inline(always)]
    fn apply(a: f32, b: f32, _: (), scale: u32) -> f32 {
        use crate::interpreter::floating_point::float::{canonical, flush};
        let [a, b] = if FLUSH { [flush(a), flush(b)] } else { [a, b] };
        // A product of singles and its scaling are exact in double precision.
        let product = (f64::from(a) * f64::from(b) * f64::from(f32::from_bits(scale))) as f32;
        canonical(if FLUSH { flush(product) } else { product })
    }
}

/// The sum of three pairs, each with a sign.
pub(crate) struct AddPairs;

impl Body for AddPairs {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let pairs = [0, 1, 2].map(|source| u64::read_pair(registers, constants, instruction.sources[source]));
        let sums = std::array::from_fn(|lane| {
            (0..3).fold(0u64, |sum, source| match sign_of(instruction.signs, source) & sign::NEGATE {
                0 => sum.wrapping_add(pairs[source][lane]),
                _ => sum.wrapping_sub(pairs[source][lane]),
            })
        });
        u64::write_pair(registers, instruction.destinations[0], &sums, mask);
    }
}
