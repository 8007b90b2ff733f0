//! The sums of tensor cores.
//!
//! Products are exact. A block of products and the accumulator is added at once: each addend is cut off, toward zero, at a fixed
//! number of bits below the largest exponent among them (the sum of the factors' exponents, not normalised; zeros do not count),
//! the integers are summed exactly, and the sum is rounded once: toward zero to `.f32`, to nearest even to `.f16`. The next block
//! takes the rounded result as its accumulator. Subnormals are kept, and a sum of zero is positive.
//!
//! Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores" (PeerJ Computer Science 2021: V100, T4,
//! A100); Khattak, Mikaitis, "Accurate models of NVIDIA tensor cores" (2025: V100, A100, Ada, H100, bit by bit). GPUs after
//! Hopper are taken to add as it does.

use super::floating_point::number_format::{Exact, Format, Rounded, Rounding, Value};
use crate::matrix::{Element, Generation};

/// How one generation adds products of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adder {
    /// Products of a block.
    pub block: usize,
    /// Bits kept below the largest exponent.
    pub fraction: i32,
}

impl Adder {
    /// The table of generations and types.
    pub fn new(generation: Generation, element: Element) -> Adder {
        let eighth = matches!(element, Element::E4m3 | Element::E5m2);
        let (block, fraction) = match (generation, element) {
            (Generation::Ada, _) if eighth => (16, 13),
            (Generation::Hopper, _) if eighth => (32, 13),
            (Generation::Volta, _) => (4, 23),
            (Generation::Turing, _) => (4, 24),
            (Generation::Ampere | Generation::Ada, Element::Tf32) => (4, 24),
            (Generation::Ampere | Generation::Ada, _) => (8, 24),
            (Generation::Hopper, Element::Tf32) => (8, 25),
            (Generation::Hopper, _) => (16, 25),
        };
        Adder { block, fraction }
    }

    /// The same for columns of a sparse matrix, of which half are zeros that take no multiplier: the hardware chooses those elements of B that
    /// meet a stored one of A, and takes half the time (NVIDIA A100 whitepaper). That a block has as many products then, of twice as many
    /// columns, is an assumption.
    pub fn of_sparse(self) -> Adder {
        Adder { block: 2 * self.block, ..self }
    }
}

/// A factor, taken apart: `significand` times 2 to `exponent` less the bits of its format's fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Factor {
    pub significand: i32,
    pub exponent: i32,
    pub class: Class,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    #[default]
    Finite,
    /// The significand has the sign.
    Infinite,
    NotANumber,
}

/// The format of an element, and its bits in the format's own width.
pub(crate) fn format_of(element: Element, bits: u64) -> (Format, u64) {
    match element {
        Element::F16 => (Format::F16, bits),
        Element::Bf16 => (Format::BF16, bits),
        // The low 13 bits are not read.
        Element::Tf32 => (Format::TF32, bits >> 13),
        Element::E4m3 => (Format::E4M3, bits),
        Element::E5m2 => (Format::E5M2, bits),
        Element::F64 => (Format::F64, bits),
        _ => (Format::F32, bits),
    }
}

impl Factor {
    /// Takes an element of at most 32 bits apart.
    pub fn new(element: Element, bits: u32) -> Factor {
        let (format, bits) = format_of(element, u64::from(bits));
        match format.value(bits) {
            Value::Finite(Exact { negative, magnitude, exponent }) => {
                let significand = magnitude as i32;
                let exponent = exponent + format.fraction as i32;
                Factor {
                    significand: if negative { -significand } else { significand },
                    exponent,
                    class: Class::Finite,
                }
            }
            Value::Infinite { negative } => {
                Factor { significand: if negative { -1 } else { 1 }, exponent: 0, class: Class::Infinite }
            }
            Value::NotANumber => Factor { significand: 1, exponent: 0, class: Class::NotANumber },
        }
    }
}

/// The bits of not-a-number and infinity of an accumulator: those that the GPUs' other instructions make.
const fn not_a_number(format: Format) -> u32 {
    format.signed(false, (1 << (format.fraction + format.exponent)) - 1) as u32
}

/// An accumulator of `.f32`, or of `.f16` widened to it, as a factor.
fn accumulator(bits: u32) -> Factor {
    Factor::new(Element::F32, bits)
}

/// The accumulator plus the products of a row of A and a column of B: the bits of an `.f32` or `.f16`.
pub(crate) fn multiply_add(
    adder: Adder,
    row: &[Factor],
    column: &[Factor],
    fractions: u32,
    start: u32,
    result: Format,
) -> u32 {
    if let Some(special) = special(row, column, accumulator(start)) {
        return match special {
            Value::Infinite { negative } => result.signed(negative, result.infinity()) as u32,
            _ => not_a_number(result),
        };
    }
    let mut sum = start;
    let mut bits = 0;
    for (row, column) in row.chunks(adder.block).zip(column.chunks(adder.block)) {
        bits = block(adder, row, column, fractions, accumulator(sum), result);
        if bits & result.infinity() as u32 == result.infinity() as u32 {
            // Finite addends may add up to infinity, and no further block changes that: there is no contrary infinity.
            return bits;
        }
        sum = if result == Format::F16 { widened(bits) } else { bits };
    }
    bits
}

/// The bits of a half's value in single precision.
#[inline(always)]
pub(crate) fn widened(half: u32) -> u32 {
    /// 2^112: the difference of the biases, for subnormals, too.
    const UNIT: f32 = f32::from_bits((127 + 127 - 15) << 23);
    let (sign, magnitude) = ((half & 0x8000) << 16, half & 0x7fff);
    let finite = (f32::from_bits(magnitude << 13) * UNIT).to_bits();
    let value = if magnitude >= 0x7c00 { 0x7f80_0000 } else { finite };
    if magnitude > 0x7c00 { not_a_number(Format::F32) } else { sign | value }
}

/// Low bits of an element that are not read.
pub(crate) const fn unread_bits(element: Element) -> u32 {
    if matches!(element, Element::Tf32) { 13 } else { 0 }
}

/// The result where an operand is not finite.
fn special(row: &[Factor], column: &[Factor], start: Factor) -> Option<Value> {
    let is_finite = |factor: &Factor| factor.class == Class::Finite;
    if row.iter().all(is_finite) && column.iter().all(is_finite) && is_finite(&start) {
        return None;
    }
    let mut infinities = [start.class == Class::Infinite && start.significand > 0, false];
    infinities[1] = start.class == Class::Infinite && start.significand < 0;
    if start.class == Class::NotANumber {
        return Some(Value::NotANumber);
    }
    for (a, b) in row.iter().zip(column) {
        if a.class == Class::NotANumber || b.class == Class::NotANumber {
            return Some(Value::NotANumber);
        }
        if a.class == Class::Infinite || b.class == Class::Infinite {
            if a.significand == 0 || b.significand == 0 {
                return Some(Value::NotANumber);
            }
            infinities[usize::from((a.significand < 0) != (b.significand < 0))] = true;
        }
    }
    match infinities {
        [true, true] => Some(Value::NotANumber),
        [false, false] => None,
        [_, negative] => Some(Value::Infinite { negative }),
    }
}

/// One block. `fractions` are the fraction bits of a product.
fn block(adder: Adder, row: &[Factor], column: &[Factor], fractions: u32, start: Factor, result: Format) -> u32 {
    const NONE: i32 = i32::MIN / 2;
    let mut top = if start.significand == 0 { NONE } else { start.exponent };
    for (a, b) in row.iter().zip(column) {
        if a.significand != 0 && b.significand != 0 {
            top = top.max(a.exponent + b.exponent);
        }
    }
    if top == NONE {
        return 0;
    }
    let cut = |value: i64, exponent: i32, fraction: i32| {
        // The exponent of a zero may be above all others.
        if value == 0 {
            return 0;
        }
        let shift = top - exponent + fraction - adder.fraction;
        let magnitude = value.unsigned_abs();
        let magnitude = if shift < 0 { magnitude << -shift } else { magnitude.checked_shr(shift as u32).unwrap_or(0) };
        if value < 0 { -(magnitude as i64) } else { magnitude as i64 }
    };
    let mut sum = cut(i64::from(start.significand), start.exponent, 23);
    for (a, b) in row.iter().zip(column) {
        let product = i64::from(a.significand) * i64::from(b.significand);
        if product != 0 {
            sum += cut(product, a.exponent + b.exponent, fractions as i32);
        }
    }
    let exact = Exact { negative: sum < 0, magnitude: sum.unsigned_abs(), exponent: top - adder.fraction };
    let rounding = if result == Format::F16 { Rounding::Nearest } else { Rounding::Zero };
    match result.round(exact, rounding) {
        Rounded::Bits(bits) => bits as u32,
        Rounded::Overflow => result.signed(exact.negative, result.infinity()) as u32,
    }
}
