//! Single and double precision on one lane. Results do not depend on the processor: transcendental functions are computed in
//! software, not-a-numbers are given fixed bits.

use crate::interpreter::bodies::LaneOperation;
use crate::interpreter::integer::fixed_operations;
use std::marker::PhantomData;

/// The not-a-number of single-precision operations on NVIDIA's GPUs (CUDA C programming guide, floating point).
pub(crate) const SINGLE_NAN: f32 = f32::from_bits(0x7fff_ffff);
/// The not-a-number that an invalid double-precision operation makes (`CUDART_NAN`).
pub(crate) const DOUBLE_NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// Directed rounding, the immediate of the operations that know it.
pub(crate) mod rounding {
    pub const NEAREST: u32 = 0;
    pub const ZERO: u32 = 1;
    pub const DOWN: u32 = 2;
    pub const UP: u32 = 3;
}

/// Flushes a subnormal to a zero of its sign.
#[inline(always)]
pub(crate) fn flush(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

#[inline(always)]
pub(crate) fn canonical(value: f32) -> f32 {
    if value.is_nan() { SINGLE_NAN } else { value }
}

/// The root, its not-a-number with the fixed bits. Told apart by its bits: the compiler takes a not-a-number of any bits for the
/// root of a negative number, and leaves out a test by `is_nan` that would choose among them.
#[inline(always)]
pub(crate) fn square_root(value: f32) -> f32 {
    let bits = value.sqrt().to_bits();
    if bits & 0x7fff_ffff > 0x7f80_0000 { SINGLE_NAN } else { f32::from_bits(bits) }
}

/// Clamps to 0 to 1; not-a-number becomes 0.
#[inline(always)]
pub(crate) fn saturate(value: f32) -> f32 {
    if value >= 1.0 {
        1.0
    } else if value > 0.0 {
        value
    } else {
        0.0
    }
}

#[inline(always)]
pub(crate) fn saturate_double(value: f64) -> f64 {
    if value >= 1.0 {
        1.0
    } else if value > 0.0 {
        value
    } else {
        0.0
    }
}

/// A single-precision result from three values; `immediate` is the rounding.
pub(crate) trait SingleFunction {
    fn compute(a: f32, b: f32, c: f32, immediate: u32) -> f32;
    /// Whether the result's not-a-numbers get their fixed bits.
    const CANONICAL: bool = true;
}

/// Runs a [`SingleFunction`] with flushing and saturation.
pub(crate) struct Single<F, const FLUSH: bool, const SATURATE: bool>(PhantomData<F>);

impl<F: SingleFunction, const FLUSH: bool, const SATURATE: bool> LaneOperation for Single<F, FLUSH, SATURATE> {
    type A = f32;
    type B = f32;
    type C = f32;
    type D = f32;
    #[inline(always)]
    fn apply(a: f32, b: f32, c: f32, immediate: u32) -> f32 {
        let [a, b, c] = if FLUSH { [flush(a), flush(b), flush(c)] } else { [a, b, c] };
        let mut result = F::compute(a, b, c, immediate);
        if FLUSH {
            result = flush(result);
        }
        if SATURATE {
            result = saturate(result);
        } else if F::CANONICAL {
            result = canonical(result);
        }
        result
    }
}

/// A double-precision result from three values.
pub(crate) trait DoubleFunction {
    fn compute(a: f64, b: f64, c: f64) -> f64;
    const OPERANDS: usize;
}

/// Runs a [`DoubleFunction`]: a not-a-number operand is passed on, quieted, the first one first.
pub(crate) struct Double<F>(PhantomData<F>);

impl<F: DoubleFunction> LaneOperation for Double<F> {
    type A = f64;
    type B = f64;
    type C = f64;
    type D = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64, c: f64, saturating: u32) -> f64 {
        let result = F::compute(a, b, c);
        if saturating != 0 {
            return saturate_double(result);
        }
        if result.is_nan() { quiet(F::OPERANDS, a, b, c) } else { result }
    }
}

/// A not-a-number that is quiet, with the bits of another one.
#[inline(always)]
fn quieted(value: f64) -> f64 {
    f64::from_bits(value.to_bits() | 0x0008_0000_0000_0000)
}

/// `min` and `max` of doubles: a number wins over not-a-number, -0 is less than +0. Of two not-a-numbers it is the second one, quieted:
/// the ISA says only that double precision keeps a not-a-number's bits, and ptxas 12.9 makes instructions of it that take the second.
pub(crate) struct ExtremumF64<const LARGER: bool>;

impl<const LARGER: bool> LaneOperation for ExtremumF64<LARGER> {
    type A = f64;
    type B = f64;
    type C = f64;
    type D = f64;
    #[inline(always)]
    fn apply(a: f64, b: f64, _c: f64, _immediate: u32) -> f64 {
        let is_before = if LARGER { a > b } else { a < b };
        match (a.is_nan(), b.is_nan()) {
            (true, true) => quieted(b),
            (true, false) => b,
            (false, true) => a,
            _ if is_before || (a == b && a.is_sign_negative() != LARGER) => a,
            _ => b,
        }
    }
}

#[inline(always)]
pub(in crate::interpreter) fn quiet(operands: usize, a: f64, b: f64, c: f64) -> f64 {
    if a.is_nan() {
        quieted(a)
    } else if operands > 1 && b.is_nan() {
        quieted(b)
    } else if operands > 2 && c.is_nan() {
        quieted(c)
    } else {
        DOUBLE_NAN
    }
}

macro_rules! single {
    ($($(#[$meta:meta])* $name:ident, |$a:ident, $b:ident, $c:ident, $i:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl SingleFunction for $name {
            #[inline(always)]
            fn compute($a: f32, $b: f32, $c: f32, $i: u32) -> f32 {
                $value
            }
        }
    )*};
}

macro_rules! double {
    ($($(#[$meta:meta])* $name:ident, $operands:literal, |$a:ident, $b:ident, $c:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl DoubleFunction for $name {
            const OPERANDS: usize = $operands;
            #[inline(always)]
            fn compute($a: f64, $b: f64, $c: f64) -> f64 {
                $value
            }
        }
    )*};
}

single! {
    /// `add.rn`
    AddF32, |a, b, _c, _i| a + b;
    /// `sub.rn`
    SubtractF32, |a, b, _c, _i| a - b;
    /// `mul.rn`
    MultiplyF32, |a, b, _c, _i| a * b;
    /// `fma.rn`
    FusedF32, |a, b, c, _i| a.mul_add(b, c);
    /// `add` with directed rounding.
    AddDirectedF32, |a, b, _c, i| round_to_single(add_to_odd(f64::from(a), f64::from(b)), i, zero_sum(a, b, i));
    /// `sub` with directed rounding.
    SubtractDirectedF32, |a, b, _c, i| round_to_single(add_to_odd(f64::from(a), -f64::from(b)), i, zero_sum(a, -b, i));
    /// `mul` with directed rounding.
    MultiplyDirectedF32, |a, b, _c, i| round_to_single(f64::from(a) * f64::from(b), i, a * b);
    /// `fma` with directed rounding.
    FusedDirectedF32, |a, b, c, i| {
        let product = f64::from(a) * f64::from(b);
        let sign = if product.is_sign_negative() { -0.0 } else { 0.0 };
        round_to_single(add_to_odd(product, f64::from(c)), i, zero_sum(if product == 0.0 { sign } else { product as f32 }, c, i))
    };
    /// `div.rn` and `div.full`
    DivideF32, |a, b, _c, _i| a / b;
    /// `div` with directed rounding. A quotient of 24-bit significands is a value of 24 bits, or further from all of them than
    /// double precision's rounding reaches: so it need not be rounded to odd.
    DivideDirectedF32, |a, b, _c, i| round_to_single(f64::from(a) / f64::from(b), i, a / b);
    /// `div.approx`: the dividend times the reciprocal, which is zero above 2^126.
    DivideApproximateF32, |a, b, _c, _i| {
        const LARGEST: f32 = f32::from_bits((127 + 126) << 23);
        let magnitude = b.abs();
        // The instruction says nothing of subnormal divisors, whose reciprocals overflow.
        let near = if magnitude < f32::MIN_POSITIVE { a / b } else { a * (1.0 / b) };
        if magnitude > LARGEST { a * (1.0 / (b * f32::INFINITY)) } else { near }
    };
    /// `rcp.rn` and `rcp.approx`
    ReciprocalF32, |a, _b, _c, _i| 1.0 / a;
    /// `rcp` with directed rounding.
    ReciprocalDirectedF32, |a, _b, _c, i| round_to_single(1.0 / f64::from(a), i, 1.0 / a);
    /// `sqrt.rn` and `sqrt.approx`
    SquareRootF32, |a, _b, _c, _i| square_root(a);
    /// `sqrt` with directed rounding; as with quotients, no other root is near a value of 24 bits.
    SquareRootDirectedF32, |a, _b, _c, i| round_to_single(f64::from(a).sqrt(), i, square_root(a));
    /// `rsqrt.approx`
    ReciprocalRootF32, |a, _b, _c, _i| (1.0 / f64::from(a).sqrt()) as f32;
    /// `sin.approx`
    SineF32, |a, _b, _c, _i| libm::sinf(a);
    /// `cos.approx`
    CosineF32, |a, _b, _c, _i| libm::cosf(a);
    /// `ex2.approx`
    PowerOfTwoF32, |a, _b, _c, _i| libm::exp2f(a);
    /// `lg2.approx`
    BinaryLogarithmF32, |a, _b, _c, _i| libm::log2f(a);
    /// `tanh.approx`
    HyperbolicTangentF32, |a, _b, _c, _i| libm::tanhf(a);
    /// `min`: a number wins over not-a-number, -0 is less than +0.
    MinimumF32, |a, b, _c, _i| if a.is_nan() { b } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b };
    /// `max`
    MaximumF32, |a, b, _c, _i| if a.is_nan() { b } else if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b };
    /// `min.NaN`
    MinimumNanF32, |a, b, _c, _i| if a.is_nan() || b.is_nan() { SINGLE_NAN } else if a < b || (a == b && a.is_sign_negative()) { a } else { b };
    /// `max.NaN`
    MaximumNanF32, |a, b, _c, _i| if a.is_nan() || b.is_nan() { SINGLE_NAN } else if a > b || (a == b && a.is_sign_positive()) { a } else { b };
    /// To an integral value: nearest even.
    RoundF32, |a, _b, _c, _i| a.round_ties_even();
    /// Towards zero.
    TruncateF32, |a, _b, _c, _i| a.trunc();
    /// Down.
    FloorF32, |a, _b, _c, _i| a.floor();
    /// Up.
    CeilingF32, |a, _b, _c, _i| a.ceil();
    /// A conversion of single to single that keeps the value.
    KeepF32, |a, _b, _c, _i| a;
    /// `neg`
    NegateF32, |a, _b, _c, _i| -a;
    /// `abs`
    AbsoluteF32, |a, _b, _c, _i| a.abs();
}

double! {
    /// `add.rn`
    AddF64, 2, |a, b, _c| a + b;
    /// `sub.rn`
    SubtractF64, 2, |a, b, _c| a - b;
    /// `mul.rn`
    MultiplyF64, 2, |a, b, _c| a * b;
    /// `fma.rn`
    FusedF64, 3, |a, b, c| a.mul_add(b, c);
    /// `div.rn`
    DivideF64, 2, |a, b, _c| a / b;
    /// `rcp.rn`
    ReciprocalF64, 1, |a, _b, _c| 1.0 / a;
    /// `sqrt.rn`
    SquareRootF64, 1, |a, _b, _c| a.sqrt();
    /// `rsqrt.approx`
    ReciprocalRootF64, 1, |a, _b, _c| 1.0 / a.sqrt();
    /// To an integral value: nearest even.
    RoundF64, 1, |a, _b, _c| a.round_ties_even();
    /// Towards zero.
    TruncateF64, 1, |a, _b, _c| a.trunc();
    /// Down.
    FloorF64, 1, |a, _b, _c| a.floor();
    /// Up.
    CeilingF64, 1, |a, _b, _c| a.ceil();
    /// A conversion that keeps the value.
    KeepF64, 1, |a, _b, _c| a;
}

fixed_operations! {
    /// `neg.f64`
    NegateF64(a: u64, _b: (), _c: (), _i) -> u64 = a ^ 0x8000_0000_0000_0000;
    /// `abs.f64`
    AbsoluteF64(a: u64, _b: (), _c: (), _i) -> u64 = a & 0x7fff_ffff_ffff_ffff;
    /// `rcp.approx.ftz.f64`
    ReciprocalHighF64(a: f64, _b: (), _c: (), _i) -> f64 = starting_value(1.0 / high_word(a));
    /// `rsqrt.approx.ftz.f64`
    ReciprocalRootHighF64(a: f64, _b: (), _c: (), _i) -> f64 = starting_value(1.0 / high_word(a).sqrt());
    /// `copysign.f32`: b with the sign of a.
    CopySignF32(a: u32, b: u32, _c: (), _i) -> u32 = (a & 0x8000_0000) | (b & 0x7fff_ffff);
    /// `copysign.f64`
    CopySignF64(a: u64, b: u64, _c: (), _i) -> u64 = (a & (1 << 63)) | (b & !(1 << 63));
    /// `cvt.f64.f32`
    Widen(a: f32, _b: (), _c: (), i) -> f64 = {
        let a = if i != 0 { flush(a) } else { a };
        if a.is_nan() { f64::from_bits(0x7fff_ffff_e000_0000) } else { f64::from(a) }
    };
    /// `cvt.rn.f32.f64`
    Narrow(a: f64, _b: (), _c: (), _i) -> f32 = canonical(a as f32);
    /// `cvt.f32.f64` with directed rounding, flushing (4) and saturation (8).
    NarrowDirected(a: f64, _b: (), _c: (), i) -> f32 = {
        let value = round_to_single(a, i & 3, a as f32);
        let value = if i & 4 != 0 { flush(value) } else { value };
        if i & 8 != 0 { saturate(value) } else { canonical(value) }
    };
}

/// The high word of a double, subnormals flushed: the operand of the instructions for starting values.
pub(crate) fn high_word(value: f64) -> f64 {
    let value = f64::from_bits(value.to_bits() & 0xffff_ffff_0000_0000);
    if value.abs() < f64::MIN_POSITIVE { f64::from_bits(value.to_bits() & (1 << 63)) } else { value }
}

/// The result of these instructions: the high word, one encoding of not-a-number.
pub(crate) fn starting_value(value: f64) -> f64 {
    if value.is_nan() { f64::from_bits(0x7fff_ffff_0000_0000) } else { high_word(value) }
}

/// Sets the last bit of an inexact value that was rounded, so that a second rounding to fewer bits is right. `error` has the
/// sign of the exact value less `value`.
fn to_odd(value: f64, error: f64) -> f64 {
    if error == 0.0 || !value.is_finite() || value.to_bits() & 1 != 0 {
        return value;
    }
    if (error > 0.0) == (value > 0.0) {
        f64::from_bits(value.to_bits() + 1)
    } else {
        f64::from_bits(value.to_bits() - 1)
    }
}

/// a + b rounded to odd; exact error by Knuth's two-sum.
pub(crate) fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    to_odd(sum, error)
}

/// The zero that a sum of opposite values has: -0 when rounding down.
fn zero_sum(a: f32, b: f32, rounding: u32) -> f32 {
    if a == 0.0 && b == 0.0 && a.is_sign_negative() == b.is_sign_negative() {
        return a;
    }
    if rounding == rounding::DOWN { -0.0 } else { 0.0 }
}

/// Rounds a value that is exact, or rounded to odd, to single precision. `zero` is the result where the value is zero.
pub(crate) fn round_to_single(value: f64, rounding: u32, zero: f32) -> f32 {
    if value == 0.0 {
        return if zero == 0.0 { zero } else { value as f32 };
    }
    let nearest = value as f32;
    let wide = f64::from(nearest);
    match rounding {
        rounding::ZERO if wide.abs() > value.abs() => {
            if value > 0.0 {
                nearest.next_down()
            } else {
                nearest.next_up()
            }
        }
        rounding::DOWN if wide > value => nearest.next_down(),
        rounding::UP if wide < value => nearest.next_up(),
        _ => nearest,
    }
}

/// Integer to single precision; the immediate is the rounding.
pub(crate) struct IntegerToSingle<T>(PhantomData<T>);
/// Integer to double precision; the immediate is the rounding.
pub(crate) struct IntegerToDouble<T>(PhantomData<T>);
/// Single precision to integer: the immediate is the rounding, plus 4 to flush subnormals. Not-a-number becomes 0, in 64 bits the
/// topmost bit alone (PTX ISA, cvt).
pub(crate) struct SingleToInteger<T>(PhantomData<T>);
/// Double precision to integer: the immediate is the rounding. Not-a-number becomes the topmost bit alone (PTX ISA, cvt).
pub(crate) struct DoubleToInteger<T>(PhantomData<T>);

macro_rules! float_conversions {
    ($($type:ty)*) => {$(
        impl LaneOperation for IntegerToSingle<$type> {
            type A = $type;
            type B = ();
            type C = ();
            type D = f32;
            #[inline(always)]
            fn apply(a: $type, _: (), _: (), i: u32) -> f32 {
                let nearest = a as f32;
                if i == rounding::NEAREST { nearest } else { direct(a as i128, nearest, i) }
            }
        }
        impl LaneOperation for IntegerToDouble<$type> {
            type A = $type;
            type B = ();
            type C = ();
            type D = f64;
            #[inline(always)]
            fn apply(a: $type, _: (), _: (), i: u32) -> f64 {
                let nearest = a as f64;
                if i == rounding::NEAREST { nearest } else { direct_double(a as i128, nearest, i) }
            }
        }
        impl LaneOperation for SingleToInteger<$type> {
            type A = f32;
            type B = ();
            type C = ();
            type D = $type;
            #[inline(always)]
            fn apply(a: f32, _: (), _: (), i: u32) -> $type {
                if <$type>::BITS == 64 && a.is_nan() {
                    return 1 << (<$type>::BITS - 1);
                }
                let a = if i & 4 != 0 { flush(a) } else { a };
                (match i & 3 {
                    rounding::NEAREST => a.round_ties_even(),
                    rounding::DOWN => a.floor(),
                    rounding::UP => a.ceil(),
                    _ => a.trunc(),
                }) as $type
            }
        }
        impl LaneOperation for DoubleToInteger<$type> {
            type A = f64;
            type B = ();
            type C = ();
            type D = $type;
            #[inline(always)]
            fn apply(a: f64, _: (), _: (), i: u32) -> $type {
                if a.is_nan() {
                    return 1 << (<$type>::BITS - 1);
                }
                (match i & 3 {
                    rounding::NEAREST => a.round_ties_even(),
                    rounding::DOWN => a.floor(),
                    rounding::UP => a.ceil(),
                    _ => a.trunc(),
                }) as $type
            }
        }
    )*};
}
float_conversions! { u8 i8 u16 i16 u32 i32 u64 i64 }

fn direct(exact: i128, nearest: f32, rounding: u32) -> f32 {
    let back = nearest as i128;
    match rounding {
        rounding::ZERO if back.abs() > exact.abs() => {
            if exact > 0 {
                nearest.next_down()
            } else {
                nearest.next_up()
            }
        }
        rounding::DOWN if back > exact => nearest.next_down(),
        rounding::UP if back < exact => nearest.next_up(),
        _ => nearest,
    }
}

fn direct_double(exact: i128, nearest: f64, rounding: u32) -> f64 {
    let back = nearest as i128;
    match rounding {
        rounding::ZERO if back.abs() > exact.abs() => {
            if exact > 0 {
                nearest.next_down()
            } else {
                nearest.next_up()
            }
        }
        rounding::DOWN if back > exact => nearest.next_down(),
        rounding::UP if back < exact => nearest.next_up(),
        _ => nearest,
    }
}
