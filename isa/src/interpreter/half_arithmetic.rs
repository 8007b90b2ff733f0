//! Arithmetic of half precision and of bfloat16 on one lane, and on pairs: computed in double precision, rounded once.

use super::bodies::LaneOperation;
use super::float::add_to_odd;
use super::half::{from_double, to_double};
use super::integer::fixed_operations;
use std::marker::PhantomData;

/// What operations of both formats return for not-a-number.
const NAN: u16 = 0x7fff;
const SIGN: u16 = 0x8000;

/// How a result is treated: bits of the immediate.
pub(crate) mod half_mode {
    /// Clamps to 0 to 1; not-a-number becomes 0.
    pub const SATURATE: u32 = 1;
    /// Negative results become 0.
    pub const RELU: u32 = 2;
    /// Subnormal operands and results become zeros of their sign.
    pub const FLUSH: u32 = 4;
}

/// A format of 16 bits.
pub(crate) trait Format {
    /// The bits of infinity.
    const INFINITY: u16;
    /// The smallest normal value.
    const SMALLEST: u16;
    /// The value.
    fn widen(bits: u16) -> f64;
    /// Rounds to nearest, ties to even; the value is exact, or rounded to odd.
    fn narrow(value: f64) -> u16;
}

/// `.f16`
pub(crate) struct F16;
/// `.bf16`
pub(crate) struct Brain;

impl Format for F16 {
    const INFINITY: u16 = 0x7c00;
    const SMALLEST: u16 = 0x0400;
    #[inline(always)]
    fn widen(bits: u16) -> f64 {
        to_double(bits)
    }
    #[inline(always)]
    fn narrow(value: f64) -> u16 {
        from_double(value)
    }
}

impl Format for Brain {
    const INFINITY: u16 = 0x7f80;
    const SMALLEST: u16 = 0x0080;
    #[inline(always)]
    fn widen(bits: u16) -> f64 {
        f64::from(f32::from_bits(u32::from(bits) << 16))
    }
    #[inline(always)]
    fn narrow(value: f64) -> u16 {
        /// Half a unit above the largest value.
        const LIMIT: f64 = f64::from_bits(((1023 + 127) << 52) | (0xff8 << 40));
        /// 2^-126
        const SMALLEST_NORMAL: f64 = f32::MIN_POSITIVE as f64;
        /// 2^133: one over the smallest subnormal.
        const UNITS: f64 = f64::from_bits((1023 + 133) << 52);
        if value.is_nan() {
            return NAN;
        }
        let sign = if value.is_sign_negative() { SIGN } else { 0 };
        let magnitude = value.abs();
        if magnitude >= LIMIT {
            return sign | Self::INFINITY;
        }
        if magnitude < SMALLEST_NORMAL {
            return sign | (magnitude * UNITS).round_ties_even() as u16;
        }
        let bits = magnitude.to_bits();
        let rounded = bits + ((1 << 44) - 1) + ((bits >> 45) & 1);
        sign | ((rounded >> 45) - ((1023 - 127) << 7)) as u16
    }
}

/// Arithmetic, exact or rounded to odd in double precision.
pub(crate) trait HalfFunction {
    fn compute(a: f64, b: f64, c: f64) -> f64;
}

macro_rules! half {
    ($($(#[$meta:meta])* $name:ident, |$a:ident, $b:ident, $c:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl HalfFunction for $name {
            #[inline(always)]
            fn compute($a: f64, $b: f64, $c: f64) -> f64 {
                $value
            }
        }
    )*};
}
half! {
    /// `add` of halves: exact in double precision.
    AddHalf, |a, b, _c| a + b;
    /// `sub` of halves: exact in double precision.
    SubtractHalf, |a, b, _c| a - b;
    /// `add` of bfloat16.
    AddBrain, |a, b, _c| add_to_odd(a, b);
    /// `sub` of bfloat16.
    SubtractBrain, |a, b, _c| add_to_odd(a, -b);
    /// `mul`: exact in double precision.
    MultiplyHalf, |a, b, _c| a * b;
    /// `fma`: the product is exact in double precision.
    FusedHalf, |a, b, c| add_to_odd(a * b, c);
    /// `ex2.approx`
    PowerOfTwoHalf, |a, _b, _c| f64::from(libm::exp2f(a as f32));
    /// `tanh.approx`
    HyperbolicTangentHalf, |a, _b, _c| f64::from(libm::tanhf(a as f32));
}

#[inline(always)]
fn flush<T: Format>(bits: u16) -> u16 {
    if bits & !SIGN < T::SMALLEST { bits & SIGN } else { bits }
}

#[inline(always)]
fn operand<T: Format>(bits: u16, flushes: bool) -> f64 {
    T::widen(if flushes { flush::<T>(bits) } else { bits })
}

#[inline(always)]
fn one<F: HalfFunction, T: Format>(a: u16, b: u16, c: u16, mode: u32) -> u16 {
    let flushes = mode & half_mode::FLUSH != 0;
    let value = F::compute(operand::<T>(a, flushes), operand::<T>(b, flushes), operand::<T>(c, flushes));
    let value = if mode & half_mode::SATURATE != 0 {
        if value >= 1.0 {
            1.0
        } else if value > 0.0 {
            value
        } else {
            0.0
        }
    } else if mode & half_mode::RELU != 0 && value <= 0.0 {
        0.0
    } else {
        value
    };
    let result = T::narrow(value);
    if flushes { flush::<T>(result) } else { result }
}

/// Runs a [`HalfFunction`]; the immediate is a [`half_mode`].
pub(crate) struct Half<F, T>(PhantomData<(F, T)>);
/// The same on both halves of a register.
pub(crate) struct HalfPair<F, T>(PhantomData<(F, T)>);

impl<F: HalfFunction, T: Format> LaneOperation for Half<F, T> {
    type A = u16;
    type B = u16;
    type C = u16;
    type D = u16;
    #[inline(always)]
    fn apply(a: u16, b: u16, c: u16, mode: u32) -> u16 {
        one::<F, T>(a, b, c, mode)
    }
}

impl<F: HalfFunction, T: Format> LaneOperation for HalfPair<F, T> {
    type A = u32;
    type B = u32;
    type C = u32;
    type D = u32;
    #[inline(always)]
    fn apply(a: u32, b: u32, c: u32, mode: u32) -> u32 {
        let low = one::<F, T>(a as u16, b as u16, c as u16, mode);
        let high = one::<F, T>((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16, mode);
        u32::from(low) | u32::from(high) << 16
    }
}

/// What `min` and `max` are asked for: bits of the immediate.
pub(crate) mod extremum_mode {
    /// The larger.
    pub const MAXIMUM: u32 = 1;
    /// Not-a-number wins.
    pub const NAN: u32 = 2;
    /// Of absolute values.
    pub const ABSOLUTE: u32 = 4;
    /// The sign is that of the product.
    pub const XOR_SIGN: u32 = 8;
    /// Subnormal operands and results become zeros of their sign.
    pub const FLUSH: u32 = 16;
}

#[inline(always)]
fn extremum<T: Format>(a: u16, b: u16, mode: u32) -> u16 {
    let (mut a, mut b) = if mode & extremum_mode::FLUSH != 0 { (flush::<T>(a), flush::<T>(b)) } else { (a, b) };
    let sign = (a ^ b) & SIGN;
    if mode & extremum_mode::ABSOLUTE != 0 {
        (a, b) = (a & !SIGN, b & !SIGN);
    }
    let is_nan = |bits: u16| bits & !SIGN > T::INFINITY;
    // In this order of bits, -0 is less than +0.
    let order = |bits: u16| if bits & SIGN != 0 { !bits } else { bits | SIGN };
    let result = match (is_nan(a), is_nan(b)) {
        (true, true) => return NAN,
        (true, _) | (_, true) if mode & extremum_mode::NAN != 0 => return NAN,
        (true, false) => b,
        (false, true) => a,
        _ if (order(a) < order(b)) == (mode & extremum_mode::MAXIMUM == 0) => a,
        _ => b,
    };
    if mode & extremum_mode::XOR_SIGN != 0 { result & !SIGN | sign } else { result }
}

/// `min` and `max`; the immediate is an [`extremum_mode`].
pub(crate) struct Extremum<T>(PhantomData<T>);
/// The same on both halves of a register.
pub(crate) struct ExtremumPair<T>(PhantomData<T>);

impl<T: Format> LaneOperation for Extremum<T> {
    type A = u16;
    type B = u16;
    type C = ();
    type D = u16;
    #[inline(always)]
    fn apply(a: u16, b: u16, _: (), mode: u32) -> u16 {
        extremum::<T>(a, b, mode)
    }
}

impl<T: Format> LaneOperation for ExtremumPair<T> {
    type A = u32;
    type B = u32;
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(a: u32, b: u32, _: (), mode: u32) -> u32 {
        let low = extremum::<T>(a as u16, b as u16, mode);
        let high = extremum::<T>((a >> 16) as u16, (b >> 16) as u16, mode);
        u32::from(low) | u32::from(high) << 16
    }
}

fixed_operations! {
    /// `neg` of one or two halves or bfloat16s: the immediate has the sign bits. Not-a-numbers keep their payload.
    NegateHalf(a: u32, _b: (), _c: (), signs) -> u32 = a ^ signs;
    /// `abs`
    AbsoluteHalf(a: u32, _b: (), _c: (), signs) -> u32 = a & !signs;
    /// `neg.ftz`
    NegateHalfFlushed(a: u32, _b: (), _c: (), signs) -> u32 = flush_halves(a) ^ signs;
    /// `abs.ftz`
    AbsoluteHalfFlushed(a: u32, _b: (), _c: (), signs) -> u32 = flush_halves(a) & !signs;
}

#[inline(always)]
fn flush_halves(a: u32) -> u32 {
    u32::from(flush::<F16>(a as u16)) | u32::from(flush::<F16>((a >> 16) as u16)) << 16
}
