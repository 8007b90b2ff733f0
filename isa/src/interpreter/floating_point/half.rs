//! Half precision and bfloat16 to and from other formats on one lane.

use super::float::flush;
use crate::interpreter::bodies::LaneOperation;
use crate::interpreter::integer::fixed_operations;

/// The not-a-number of half-precision operations.
const HALF_NAN: u16 = 0x7fff;

/// The value of a half.
#[inline(always)]
pub(crate) fn to_double(half: u16) -> f64 {
    let magnitude = u64::from(half & 0x7fff);
    let value = if magnitude >= 0x7c00 {
        if magnitude == 0x7c00 { f64::INFINITY } else { f64::NAN }
    } else if magnitude < 0x0400 {
        magnitude as f64 * (1.0 / 16_777_216.0)
    } else {
        f64::from_bits((magnitude << 42) + ((1023 - 15) << 52))
    };
    if half & 0x8000 != 0 { -value } else { value }
}

/// Rounds to the nearest half, ties to even. The value is exact, or rounded to odd.
#[inline(always)]
pub(crate) fn from_double(value: f64) -> u16 {
    if value.is_nan() {
        return HALF_NAN;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    if magnitude < 1.0 / 16_384.0 {
        return sign | (magnitude * 16_777_216.0).round_ties_even() as u16;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + ((1 << 41) - 1) + ((bits >> 42) & 1);
    sign | ((rounded >> 42) - ((1023 - 15) << 10)) as u16
}

fixed_operations! {
    /// `cvt.f32.f16`
    HalfToSingle(a: u16, _b: (), _c: (), _i) -> f32 = {
        let value = to_double(a);
        if value.is_nan() { super::float::SINGLE_NAN } else { value as f32 }
    };
    /// `cvt.f64.f16`
    HalfToDouble(a: u16, _b: (), _c: (), _i) -> f64 = {
        let value = to_double(a);
        if value.is_nan() { super::float::DOUBLE_NAN } else { value }
    };
    /// `cvt.rn.f16.f32`; the immediate is 1 to flush subnormal sources.
    SingleToHalf(a: f32, _b: (), _c: (), i) -> u16 = from_double(f64::from(if i == 1 { flush(a) } else { a }));
    /// `cvt.rn.f16.f64`
    DoubleToHalf(a: f64, _b: (), _c: (), _i) -> u16 = from_double(a);
    /// `cvt.rn.f16.s32`
    SignedToHalf(a: i32, _b: (), _c: (), _i) -> u16 = from_double(f64::from(a));
    /// `cvt.rn.f16.u32`
    UnsignedToHalf(a: u32, _b: (), _c: (), _i) -> u16 = from_double(f64::from(a));
    /// `cvt.rzi.s32.f16`
    HalfToSigned(a: u16, _b: (), _c: (), _i) -> i32 = to_double(a).trunc() as i32;
    /// `cvt.rzi.u32.f16`
    HalfToUnsigned(a: u16, _b: (), _c: (), _i) -> u32 = to_double(a).trunc() as u32;
    /// `cvt.f32.bf16`
    BrainToSingle(a: u16, _b: (), _c: (), _i) -> f32 = super::float::canonical(f32::from_bits(u32::from(a) << 16));
    /// `cvt.rn.bf16.f32`
    SingleToBrain(a: f32, _b: (), _c: (), _i) -> u16 = {
        let bits = a.to_bits();
        if a.is_nan() { 0x7fff } else { ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16 }
    };
}
