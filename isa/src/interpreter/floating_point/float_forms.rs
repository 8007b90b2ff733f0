//! Less usual forms of single and double precision: pairs, mixed precision, `min` and `max` with modifiers, classes of values.

use super::float::{SINGLE_NAN, Single, SingleFunction, canonical, flush};
use super::half_arithmetic::{Format, extremum_mode};
use crate::interpreter::bodies::LaneOperation;
use crate::interpreter::compare::Comparison;
use std::marker::PhantomData;

/// Runs a [`SingleFunction`] on the two singles of a register pair, `.f32x2`.
pub(crate) struct SinglePair<F, const FLUSH: bool>(PhantomData<F>);

impl<F: SingleFunction, const FLUSH: bool> LaneOperation for SinglePair<F, FLUSH> {
    type A = u64;
    type B = u64;
    type C = u64;
    type D = u64;
    #[inline(always)]
    fn apply(a: u64, b: u64, c: u64, immediate: u32) -> u64 {
        let low = |value: u64| f32::from_bits(value as u32);
        let high = |value: u64| f32::from_bits((value >> 32) as u32);
        let first = Single::<F, FLUSH, false>::apply(low(a), low(b), low(c), immediate);
        let second = Single::<F, FLUSH, false>::apply(high(a), high(b), high(c), immediate);
        u64::from(first.to_bits()) | u64::from(second.to_bits()) << 32
    }
}

/// Runs a [`SingleFunction`] whose first operand is of a 16-bit format.
pub(crate) struct Mixed<F, T, const SATURATE: bool>(PhantomData<(F, T)>);
/// As [`Mixed`], with two such operands and a single: `fma`.
pub(crate) struct MixedFused<F, T, const SATURATE: bool>(PhantomData<(F, T)>);

impl<F: SingleFunction, T: Format, const SATURATE: bool> LaneOperation for Mixed<F, T, SATURATE> {
    type A = u16;
    type B = f32;
    type C = ();
    type D = f32;
    #[inline(always)]
    fn apply(a: u16, b: f32, _: (), rounding: u32) -> f32 {
        Single::<F, false, SATURATE>::apply(T::widen(a), b, 0.0, rounding)
    }
}

impl<F: SingleFunction, T: Format, const SATURATE: bool> LaneOperation for MixedFused<F, T, SATURATE> {
    type A = u16;
    type B = u16;
    type C = f32;
    type D = f32;
    #[inline(always)]
    fn apply(a: u16, b: u16, c: f32, rounding: u32) -> f32 {
        Single::<F, false, SATURATE>::apply(T::widen(a), T::widen(b), c, rounding)
    }
}

/// `min` and `max` of two singles, or of three where `THREE`; the immediate is an [`extremum_mode`].
pub(crate) struct SingleExtremum<const THREE: bool>;

impl<const THREE: bool> LaneOperation for SingleExtremum<THREE> {
    type A = f32;
    type B = f32;
    type C = f32;
    type D = f32;
    #[inline(always)]
    fn apply(a: f32, b: f32, c: f32, mode: u32) -> f32 {
        let operand = |value: f32| if mode & extremum_mode::FLUSH != 0 { flush(value) } else { value };
        let magnitude = |value: f32| if mode & extremum_mode::ABSOLUTE != 0 { value.abs() } else { value };
        let (a, b) = (operand(a), operand(b));
        let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
        let mut result = single_extremum(magnitude(a), magnitude(b), mode);
        if THREE {
            result = single_extremum(result, magnitude(operand(c)), mode);
        }
        if mode & extremum_mode::XOR_SIGN != 0 {
            result = f32::from_bits((result.to_bits() & 0x7fff_ffff) | sign);
        }
        canonical(result)
    }
}

#[inline(always)]
fn single_extremum(a: f32, b: f32, mode: u32) -> f32 {
    // In this order of bits, -0 is less than +0.
    let order = |value: f32| {
        let bits = value.to_bits();
        if bits >> 31 != 0 { !bits } else { bits | 0x8000_0000 }
    };
    if mode & extremum_mode::NAN != 0 && (a.is_nan() || b.is_nan()) {
        return SINGLE_NAN;
    }
    if a.is_nan() {
        b
    } else if b.is_nan() || (order(a) < order(b)) == (mode & extremum_mode::MAXIMUM == 0) {
        a
    } else {
        b
    }
}

/// The classes that `testp` tells apart: bits of its second operand.
pub(crate) mod class {
    /// Normal values and zeros.
    pub const NORMAL: u64 = 1;
    pub const SUBNORMAL: u64 = 2;
    pub const INFINITE: u64 = 4;
    pub const NAN: u64 = 8;
}

/// Whether a single is of one of some [`class`]es.
pub(crate) struct SingleClass;
/// Whether a double is of one of some [`class`]es.
pub(crate) struct DoubleClass;

impl Comparison for SingleClass {
    type T = u32;
    #[inline(always)]
    fn test(value: u32, classes: u32) -> bool {
        let class = match value & 0x7fff_ffff {
            0 | 0x0080_0000..0x7f80_0000 => class::NORMAL,
            0..0x0080_0000 => class::SUBNORMAL,
            0x7f80_0000 => class::INFINITE,
            _ => class::NAN,
        };
        class as u32 & classes != 0
    }
}

impl Comparison for DoubleClass {
    type T = u64;
    #[inline(always)]
    fn test(value: u64, classes: u64) -> bool {
        let class = match value & 0x7fff_ffff_ffff_ffff {
            0 | 0x0010_0000_0000_0000..0x7ff0_0000_0000_0000 => class::NORMAL,
            0..0x0010_0000_0000_0000 => class::SUBNORMAL,
            0x7ff0_0000_0000_0000 => class::INFINITE,
            _ => class::NAN,
        };
        class & classes != 0
    }
}
