//! Double precision with directed rounding, in integers: exact, so that the rounding is right in every range, and the same on every
//! machine without its rounding mode or its fused multiply-add.

use super::float::{quiet, rounding};
use crate::interpreter::bodies::LaneOperation;
use std::marker::PhantomData;

const SIGNIFICAND_BITS: u32 = 53;
/// Exponent of the last place of subnormals and of the smallest normals.
const SMALLEST_EXPONENT: i32 = -1074;
/// Exponent of the last place of the largest values.
const LARGEST_EXPONENT: i32 = 971;

/// A finite value other than zero: `significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Exact {
    /// `value` is finite and not zero.
    fn new(value: f64) -> Exact {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let (significand, exponent) = match (bits >> 52 & 0x7ff) as i32 {
            0 => (fraction, SMALLEST_EXPONENT),
            biased => (fraction | 1 << 52, biased - 1 + SMALLEST_EXPONENT),
        };
        Exact { negative: value.is_sign_negative(), significand: significand.into(), exponent }
    }

    /// The same value with the significand's first one at a bit.
    fn with_top_at(self, bit: u32) -> Exact {
        let shift = bit as i32 - (127 - self.significand.leading_zeros() as i32);
        // Only ever widened: the callers' bits are above those of their significands.
        Exact { significand: self.significand << shift, exponent: self.exponent - shift, ..self }
    }

    fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }
}

/// Rounds a value towards zero, down or up. `more` says that the exact magnitude lies above that of `value`, by less than a unit of
/// its significand, which then has more bits than the result.
fn round(value: Exact, more: bool, direction: u32) -> f64 {
    let bits = 128 - value.significand.leading_zeros();
    let shift = (bits as i32 - SIGNIFICAND_BITS as i32).max(SMALLEST_EXPONENT - value.exponent);
    let (mut kept, inexact) = match shift {
        ..=0 => (value.significand << -shift, more),
        1..=127 => (value.significand >> shift, more || value.significand & ((1 << shift) - 1) != 0),
        _ => (0, true),
    };
    let away = match direction {
        rounding::DOWN => value.negative,
        rounding::UP => !value.negative,
        _ => false,
    };
    if inexact && away {
        kept += 1;
    }
    let exponent = value.exponent + shift;
    let magnitude = if exponent > LARGEST_EXPONENT {
        OVERFLOWN
    } else {
        // The significand's leading one, where it has one, and its carry are part of the exponent's field.
        (((exponent - SMALLEST_EXPONENT) as u64) << 52) + kept as u64
    };
    let magnitude = match magnitude {
        OVERFLOWN.. if away => f64::INFINITY.to_bits(),
        OVERFLOWN.. => f64::MAX.to_bits(),
        _ => magnitude,
    };
    f64::from_bits(magnitude | u64::from(value.negative) << 63)
}

const OVERFLOWN: u64 = f64::INFINITY.to_bits();

/// The sum of two zeros, or of a value and its opposite.
fn zero_of_sum(a: f64, b: f64, direction: u32) -> f64 {
    if a == 0.0 && b == 0.0 && a.is_sign_negative() == b.is_sign_negative() {
        a
    } else if direction == rounding::DOWN {
        -0.0
    } else {
        0.0
    }
}

/// x + y, for values with at most 106 bits; `None` where it is zero.
fn sum(x: Exact, y: Exact, direction: u32) -> Option<f64> {
    let (x, y) = (x.with_top_at(126), y.with_top_at(126));
    let (large, small) = if (x.exponent, x.significand) >= (y.exponent, y.significand) { (x, y) } else { (y, x) };
    let distance = large.exponent.abs_diff(small.exponent);
    let (aligned, lost) = match distance {
        0..=127 => (small.significand >> distance, small.significand & ((1 << distance) - 1) != 0),
        _ => (0, true),
    };
    let significand = if large.negative == small.negative {
        large.significand + aligned
    } else {
        large.significand - aligned - u128::from(lost)
    };
    (significand != 0).then(|| round(Exact { significand, ..large }, lost, direction))
}

/// a + b
fn add(a: f64, b: f64, direction: u32) -> f64 {
    if !a.is_finite() || !b.is_finite() {
        return a + b;
    }
    match (a == 0.0, b == 0.0) {
        (true, true) => zero_of_sum(a, b, direction),
        (true, false) => b,
        (false, true) => a,
        _ => sum(Exact::new(a), Exact::new(b), direction).unwrap_or_else(|| zero_of_sum(a, b, direction)),
    }
}

/// a * b
fn multiply(a: f64, b: f64, direction: u32) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return a * b;
    }
    round(Exact::new(a).times(Exact::new(b)), false, direction)
}

/// a * b + c, rounded once, not to the nearest.
pub(crate) fn fused(a: f64, b: f64, c: f64, direction: u32) -> f64 {
    if !a.is_finite() || !b.is_finite() {
        return a * b + c;
    }
    if !c.is_finite() {
        return c;
    }
    if a == 0.0 || b == 0.0 {
        return add(a * b, c, direction);
    }
    let product = Exact::new(a).times(Exact::new(b));
    if c == 0.0 {
        return round(product, false, direction);
    }
    sum(product, Exact::new(c), direction).unwrap_or_else(|| zero_of_sum(1.0, -1.0, direction))
}

/// a / b
fn divide(a: f64, b: f64, direction: u32) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return a / b;
    }
    // The dividend has 127 bits, the divisor at most 53: a quotient of at least 74.
    let (dividend, divisor) = (Exact::new(a).with_top_at(126), Exact::new(b));
    let quotient = Exact {
        negative: dividend.negative != divisor.negative,
        significand: dividend.significand / divisor.significand,
        exponent: dividend.exponent - divisor.exponent,
    };
    round(quotient, dividend.significand % divisor.significand != 0, direction)
}

/// The square root.
fn root(a: f64, direction: u32) -> f64 {
    if !a.is_finite() || a <= 0.0 {
        return a.sqrt();
    }
    let mut square = Exact::new(a).with_top_at(126);
    if square.exponent % 2 != 0 {
        square = Exact { significand: square.significand >> 1, exponent: square.exponent + 1, ..square };
    }
    let significand = square.significand.isqrt();
    let more = significand * significand != square.significand;
    round(Exact { significand, exponent: square.exponent / 2, ..square }, more, direction)
}

/// A double-precision operation that is rounded towards zero, down or up.
pub(crate) trait DirectedFunction {
    const OPERANDS: usize;
    fn compute(a: f64, b: f64, c: f64, direction: u32) -> f64;
}

/// Runs a [`DirectedFunction`]; the immediate is the rounding. Not-a-numbers are as those of rounding to nearest.
pub(crate) struct Directed<F>(PhantomData<F>);

impl<F: DirectedFunction> LaneOperation for Directed<F> {
    type A = f64;
    type B = f64;
    type C = f64;
    type D = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64, c: f64, direction: u32) -> f64 {
        let result = F::compute(a, b, c, direction);
        if result.is_nan() { quiet(F::OPERANDS, a, b, c) } else { result }
    }
}

macro_rules! directed {
    ($($(#[$meta:meta])* $name:ident, $operands:literal, |$a:ident, $b:ident, $c:ident, $direction:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl DirectedFunction for $name {
            const OPERANDS: usize = $operands;
            #[inline(always)]
            fn compute($a: f64, $b: f64, $c: f64, $direction: u32) -> f64 {
                $value
            }
        }
    )*};
}

directed! {
    /// `add.f64`
    AddDirectedF64, 2, |a, b, _c, direction| add(a, b, direction);
    /// `sub.f64`
    SubtractDirectedF64, 2, |a, b, _c, direction| add(a, -b, direction);
    /// `mul.f64`
    MultiplyDirectedF64, 2, |a, b, _c, direction| multiply(a, b, direction);
    /// `fma.f64`
    FusedDirectedF64, 3, |a, b, c, direction| fused(a, b, c, direction);
    /// `div.f64`
    DivideDirectedF64, 2, |a, b, _c, direction| divide(a, b, direction);
    /// `rcp.f64`
    ReciprocalDirectedF64, 1, |a, _b, _c, direction| divide(1.0, a, direction);
    /// `sqrt.f64`
    SquareRootDirectedF64, 1, |a, _b, _c, direction| root(a, direction);
}
