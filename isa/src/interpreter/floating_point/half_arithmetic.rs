//! Arithmetic of half precision and of bfloat16 on one lane, and on pairs: computed in single precision such that rounding to
//! 16 bits is the only one that counts.
//!
//! A sum or a product that is rounded to 24 bits and then to p bits is rounded as if once where 24 >= 2p + 2, which holds for both
//! formats; where results are subnormal, sums are exact, and products either are or are less than half of the smallest value.
//! Fused operations are rounded to odd first.

use super::float::add_to_odd;
use crate::interpreter::bodies::LaneOperation;
use crate::interpreter::integer::fixed_operations;
use std::marker::PhantomData;

/// The not-a-number of operations in both formats.
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
    fn widen(bits: u16) -> f32;
    /// Rounds to nearest, ties to even.
    fn narrow(value: f32) -> u16;
    /// The same of a double.
    fn narrow_double(value: f64) -> u16;
    /// The bits of 1.
    const ONE: u16;
}

/// `.f16`
pub(crate) struct F16;
/// `.bf16`
pub(crate) struct Brain;

impl Format for F16 {
    const INFINITY: u16 = 0x7c00;
    const SMALLEST: u16 = 0x0400;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        /// 2^112: the difference of the exponents' biases.
        const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
        let magnitude = u32::from(bits & !SIGN);
        let sign = u32::from(bits & SIGN) << 16;
        let finite = (f32::from_bits(magnitude << 13) * REBIAS).to_bits();
        let special = 0x7f80_0000 | magnitude << 13;
        f32::from_bits(if magnitude >= u32::from(Self::INFINITY) { special } else { finite } | sign)
    }
    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        /// 2^-14, the smallest normal half.
        const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
        /// 65520: half a unit above the largest half.
        const LIMIT: u32 = 0x477f_f000;
        const INFINITY: u32 = 0x7f80_0000;
        let sign = (value.to_bits() >> 16) as u16 & SIGN;
        let bits = value.to_bits() & 0x7fff_ffff;
        // A unit in the last place of sums with a half is the smallest subnormal.
        let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let normal = (bits.wrapping_add(0xfff + ((bits >> 13) & 1)) >> 13).wrapping_sub(112 << 10);
        let finite = if bits < SMALLEST_NORMAL { subnormal } else { normal } as u16;
        let result = if bits >= LIMIT { Self::INFINITY } else { finite };
        if bits > INFINITY { NAN } else { result | sign }
    }
    #[inline(always)]
    fn narrow_double(value: f64) -> u16 {
        super::half::from_double(value)
    }
    const ONE: u16 = 0x3c00;
}

impl Format for Brain {
    const INFINITY: u16 = 0x7f80;
    const SMALLEST: u16 = 0x0080;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }
    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        let bits = value.to_bits();
        let rounded = (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16;
        if value.is_nan() { NAN } else { rounded }
    }
    #[inline(always)]
    fn narrow_double(value: f64) -> u16 {
        Self::narrow(to_odd_single(value))
    }
    const ONE: u16 = 0x3f80;
}

/// The single that is next to a double, and has its last bit set where it is not the same: what is rounded from it is rounded right.
#[inline(always)]
fn to_odd_single(sum: f64) -> f32 {
    let nearest = sum as f32;
    let (bits, value) = (nearest.to_bits(), f64::from(nearest));
    let odd = bits.wrapping_add(if sum.abs() > value.abs() { 1 } else { u32::MAX });
    let is_exact = value == sum || sum.is_nan();
    f32::from_bits(if is_exact | (bits & 1 != 0) { bits } else { odd })
}

/// Arithmetic on values of 16 bits.
pub(crate) trait HalfFunction {
    fn compute(a: f32, b: f32, c: f32) -> f32;
}

macro_rules! half {
    ($($(#[$meta:meta])* $name:ident, |$a:ident, $b:ident, $c:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl HalfFunction for $name {
            #[inline(always)]
            fn compute($a: f32, $b: f32, $c: f32) -> f32 {
                $value
            }
        }
    )*};
}
half! {
    /// `add`
    AddHalf, |a, b, _c| a + b;
    /// `sub`
    SubtractHalf, |a, b, _c| a - b;
    /// `mul`
    MultiplyHalf, |a, b, _c| a * b;
    /// `fma` of halves: their products are exact in single precision, and within its range.
    FusedHalf, |a, b, c| {
        let product = a * b;
        let sum = product + c;
        let c_part = sum - product;
        let error = (product - (sum - c_part)) + (c - c_part);
        // The last bit of an inexact sum is set: where it is not, its neighbour on the exact value's side has it.
        let (bits, error_bits) = (sum.to_bits(), error.to_bits());
        let odd = bits.wrapping_add(if (bits ^ error_bits) >> 31 == 0 { 1 } else { u32::MAX });
        let is_exact = error_bits & 0x7fff_ffff == 0;
        let is_finite = bits & 0x7fff_ffff < 0x7f80_0000;
        f32::from_bits(if is_exact | (bits & 1 != 0) | !is_finite { bits } else { odd })
    };
    /// `fma` of bfloat16: their products are exact in double precision.
    FusedBrain, |a, b, c| {
        to_odd_single(add_to_odd(f64::from(a) * f64::from(b), f64::from(c)))
    };
    /// `ex2.approx`
    PowerOfTwoHalf, |a, _b, _c| libm::exp2f(a);
    /// `tanh.approx`
    HyperbolicTangentHalf, |a, _b, _c| libm::tanhf(a);
}

#[inline(always)]
fn flush<T: Format>(bits: u16) -> u16 {
    if bits & !SIGN < T::SMALLEST { bits & SIGN } else { bits }
}

#[inline(always)]
fn operand<T: Format>(bits: u16, flushes: bool) -> f32 {
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

/// Runs a [`HalfFunction`]; the immediate is a [`half_mode`], except where `PLAIN`, which has none.
pub(crate) struct Half<F, T, const PLAIN: bool>(PhantomData<(F, T)>);
/// The same on both halves of a register.
pub(crate) struct HalfPair<F, T, const PLAIN: bool>(PhantomData<(F, T)>);

impl<F: HalfFunction, T: Format, const PLAIN: bool> LaneOperation for Half<F, T, PLAIN> {
    type A = u16;
    type B = u16;
    type C = u16;
    type D = u16;
    #[inline(always)]
    fn apply(a: u16, b: u16, c: u16, mode: u32) -> u16 {
        one::<F, T>(a, b, c, if PLAIN { 0 } else { mode })
    }
}

impl<F: HalfFunction, T: Format, const PLAIN: bool> LaneOperation for HalfPair<F, T, PLAIN> {
    type A = u32;
    type B = u32;
    type C = u32;
    type D = u32;
    #[inline(always)]
    fn apply(a: u32, b: u32, c: u32, mode: u32) -> u32 {
        let mode = if PLAIN { 0 } else { mode };
        let low = one::<F, T>(a as u16, b as u16, c as u16, mode);
        let high = one::<F, T>((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16, mode);
        u32::from(low) | u32::from(high) << 16
    }
}

/// The modifiers of `min` and `max`: bits of the immediate.
pub(crate) mod extremum_mode {
    /// The larger.
    pub const MAXIMUM: u32 = 1;
    /// Not-a-number wins.
    pub const NAN: u32 = 2;
    /// Takes absolute values.
    pub const ABSOLUTE: u32 = 4;
    /// The sign is that of the product.
    pub const XOR_SIGN: u32 = 8;
    /// Subnormal operands and results become zeros of their sign.
    pub const FLUSH: u32 = 16;
}

#[inline(always)]
pub(crate) fn extremum<T: Format>(a: u16, b: u16, mode: u32) -> u16 {
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
