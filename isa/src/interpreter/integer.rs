//! Integer, logic, shift and bit operations on one lane.

use super::bodies::LaneOperation;
use super::registers::Lane;
use std::marker::PhantomData;

/// Declares lane operations that a type parameter with a bound makes generic.
macro_rules! operations {
    ($bound:ident: $($(#[$meta:meta])* $name:ident($a:ident, $b:ident, $c:ident) = $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name<T>(PhantomData<T>);
        impl<T: $bound> LaneOperation for $name<T> {
            type A = T;
            type B = T;
            type C = T;
            type D = T;
            #[inline(always)]
            fn apply($a: T, $b: T, $c: T, _: u32) -> T {
                $value
            }
        }
    )*};
}

/// Declares lane operations on given types.
macro_rules! fixed_operations {
    ($($(#[$meta:meta])* $name:ident($a:ident: $ta:ty, $b:ident: $tb:ty, $c:ident: $tc:ty, $immediate:ident) -> $td:ty = $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl LaneOperation for $name {
            type A = $ta;
            type B = $tb;
            type C = $tc;
            type D = $td;
            #[inline(always)]
            fn apply($a: $ta, $b: $tb, $c: $tc, $immediate: u32) -> $td {
                $value
            }
        }
    )*};
}
pub(crate) use fixed_operations;

/// The demands of integer operations on a type. Division by zero gives all ones, and so does its remainder: PTX leaves both open, and the
/// instruction sequences of NVIDIA GPUs end that way.
pub(crate) trait Integer: Lane + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn mul_high(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn rem(self, other: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn is_zero(self) -> bool;
    fn one_if(truth: bool) -> Self;
    fn shl(self, count: u32) -> Self;
    fn shr(self, count: u32) -> Self;
    fn abs_diff(self, other: Self) -> Self;
    fn add_saturating(self, other: Self) -> Self;
    fn sub_saturating(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($type:ty, $double:ty, $signed:expr;)*) => {$(
        #[allow(unused_comparisons, clippy::allow_attributes, reason = "one text for signed and unsigned types")]
        impl Integer for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self { ((self as $double * other as $double) >> <$type>::BITS) as $type }
            #[inline(always)]
            fn div(self, other: Self) -> Self { if other == 0 { !0 } else { self.wrapping_div(other) } }
            #[inline(always)]
            fn rem(self, other: Self) -> Self { if other == 0 { !0 } else { self.wrapping_rem(other) } }
            #[inline(always)]
            fn neg(self) -> Self { (0 as $type).wrapping_sub(self) }
            #[inline(always)]
            fn abs(self) -> Self { if self < 0 { (0 as $type).wrapping_sub(self) } else { self } }
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn not(self) -> Self { !self }
            #[inline(always)]
            fn is_zero(self) -> bool { self == 0 }
            #[inline(always)]
            fn one_if(truth: bool) -> Self { truth as $type }
            #[inline(always)]
            fn shl(self, count: u32) -> Self { if count < <$type>::BITS { self << count } else { 0 } }
            #[inline(always)]
            fn shr(self, count: u32) -> Self {
                if $signed { self >> count.min(<$type>::BITS - 1) } else if count < <$type>::BITS { self >> count } else { 0 }
            }
            #[inline(always)]
            fn abs_diff(self, other: Self) -> Self {
                if self < other { other.wrapping_sub(self) } else { self.wrapping_sub(other) }
            }
            #[inline(always)]
            fn add_saturating(self, other: Self) -> Self { self.saturating_add(other) }
            #[inline(always)]
            fn sub_saturating(self, other: Self) -> Self { self.saturating_sub(other) }
        }
    )*};
}
integer! {
    u16, u32, false;
    i16, i32, true;
    u32, u64, false;
    i32, i64, true;
    u64, u128, false;
    i64, i128, true;
}

operations! { Integer:
    /// `add`.
    Add(a, b, _c) = a.add(b);
    /// `add.sat`.
    AddSaturating(a, b, _c) = a.add_saturating(b);
    /// `sub`.
    Subtract(a, b, _c) = a.sub(b);
    /// `sub.sat`.
    SubtractSaturating(a, b, _c) = a.sub_saturating(b);
    /// `mul.lo`.
    Multiply(a, b, _c) = a.mul(b);
    /// `mul.hi`.
    MultiplyHigh(a, b, _c) = a.mul_high(b);
    /// `mad.lo`.
    MultiplyAdd(a, b, c) = a.mul(b).add(c);
    /// `mad.hi`.
    MultiplyHighAdd(a, b, c) = a.mul_high(b).add(c);
    /// `div`.
    Divide(a, b, _c) = a.div(b);
    /// `rem`.
    Remainder(a, b, _c) = a.rem(b);
    /// `neg`.
    Negate(a, _b, _c) = a.neg();
    /// `abs`.
    Absolute(a, _b, _c) = a.abs();
    /// `min`.
    Minimum(a, b, _c) = if b < a { b } else { a };
    /// `max`.
    Maximum(a, b, _c) = if b > a { b } else { a };
    /// `and`.
    And(a, b, _c) = a.and(b);
    /// `or`.
    Or(a, b, _c) = a.or(b);
    /// `xor`.
    Xor(a, b, _c) = a.xor(b);
    /// `not`.
    Not(a, _b, _c) = a.not();
    /// `cnot`.
    LogicalNot(a, _b, _c) = T::one_if(a.is_zero());
    /// `sad`.
    SumOfAbsoluteDifference(a, b, c) = c.add(a.abs_diff(b));
    /// `mov`.
    Move(a, _b, _c) = a;
}

/// `shl` and `shr`: the count is a 32-bit value, whatever the type.
macro_rules! shifts {
    ($($name:ident, $method:ident;)*) => {$(
        /// A shift; counts past the width shift everything out.
        pub(crate) struct $name<T>(PhantomData<T>);
        impl<T: Integer> LaneOperation for $name<T> {
            type A = T;
            type B = u32;
            type C = ();
            type D = T;
            #[inline(always)]
            fn apply(a: T, b: u32, _: (), _: u32) -> T {
                a.$method(b)
            }
        }
    )*};
}
shifts! { ShiftLeft, shl; ShiftRight, shr; }

/// `slct` by an integer.
pub(crate) struct SelectBySign<T>(PhantomData<T>);
impl<T: Lane> LaneOperation for SelectBySign<T> {
    type A = T;
    type B = T;
    type C = i32;
    type D = T;
    #[inline(always)]
    fn apply(a: T, b: T, c: i32, _: u32) -> T {
        if c >= 0 { a } else { b }
    }
}

/// `slct` by a float; the immediate is 1 to take subnormals as zero.
pub(crate) struct SelectByFloatSign<T>(PhantomData<T>);
impl<T: Lane> LaneOperation for SelectByFloatSign<T> {
    type A = T;
    type B = T;
    type C = f32;
    type D = T;
    #[inline(always)]
    fn apply(a: T, b: T, c: f32, immediate: u32) -> T {
        let is_zero = immediate == 1 && c.to_bits() & 0x7f80_0000 == 0;
        if c >= 0.0 || is_zero { a } else { b }
    }
}

/// An integer conversion: `D` from the low bits or the extension of `A`.
pub(crate) struct Resize<A, D>(PhantomData<(A, D)>);
/// A saturating integer conversion.
pub(crate) struct ResizeSaturating<A, D>(PhantomData<(A, D)>);

macro_rules! resize {
    ($($a:ty => $($d:ty)*;)*) => {$($(
        impl LaneOperation for Resize<$a, $d> {
            type A = $a;
            type B = ();
            type C = ();
            type D = $d;
            #[inline(always)]
            fn apply(a: $a, _: (), _: (), _: u32) -> $d {
                a as $d
            }
        }
        impl LaneOperation for ResizeSaturating<$a, $d> {
            type A = $a;
            type B = ();
            type C = ();
            type D = $d;
            #[inline(always)]
            fn apply(a: $a, _: (), _: (), _: u32) -> $d {
                (a as i128).clamp(<$d>::MIN as i128, <$d>::MAX as i128) as $d
            }
        }
    )*)*};
}
resize! {
    u8 => u8 i8 u16 i16 u32 i32 u64 i64;
    i8 => u8 i8 u16 i16 u32 i32 u64 i64;
    u16 => u8 i8 u16 i16 u32 i32 u64 i64;
    i16 => u8 i8 u16 i16 u32 i32 u64 i64;
    u32 => u8 i8 u16 i16 u32 i32 u64 i64;
    i32 => u8 i8 u16 i16 u32 i32 u64 i64;
    u64 => u8 i8 u16 i16 u32 i32 u64 i64;
    i64 => u8 i8 u16 i16 u32 i32 u64 i64;
}

fixed_operations! {
    /// `clmad`: the lower or, where the immediate is 1, the upper half of a product without carries, to which a third value is added likewise.
    CarrylessMultiplyAdd(a: u64, b: u64, c: u64, i) -> u64 = {
        let product = (0..64).fold(0u128, |product, bit| product ^ (u128::from(a) << bit) & 0u128.wrapping_sub(u128::from(b >> bit & 1)));
        (product >> (64 * i.min(1))) as u64 ^ c
    };
    /// `mul.wide.s16`.
    MultiplyWideS16(a: i16, b: i16, _c: (), _i) -> i32 = i32::from(a) * i32::from(b);
    /// `mul.wide.u16`.
    MultiplyWideU16(a: u16, b: u16, _c: (), _i) -> u32 = u32::from(a) * u32::from(b);
    /// `mul.wide.s32`.
    MultiplyWideS32(a: i32, b: i32, _c: (), _i) -> i64 = i64::from(a) * i64::from(b);
    /// `mul.wide.u32`.
    MultiplyWideU32(a: u32, b: u32, _c: (), _i) -> u64 = u64::from(a) * u64::from(b);
    /// `mad.wide.s16`.
    MultiplyAddWideS16(a: i16, b: i16, c: i32, _i) -> i32 = (i32::from(a) * i32::from(b)).wrapping_add(c);
    /// `mad.wide.u16`.
    MultiplyAddWideU16(a: u16, b: u16, c: u32, _i) -> u32 = (u32::from(a) * u32::from(b)).wrapping_add(c);
    /// `mad.wide.s32`.
    MultiplyAddWideS32(a: i32, b: i32, c: i64, _i) -> i64 = (i64::from(a) * i64::from(b)).wrapping_add(c);
    /// `mad.wide.u32`.
    MultiplyAddWideU32(a: u32, b: u32, c: u64, _i) -> u64 = (u64::from(a) * u64::from(b)).wrapping_add(c);
    /// `mad.hi.sat.s32`.
    MultiplyHighAddSaturating(a: i32, b: i32, c: i32, _i) -> i32 = a.mul_high(b).saturating_add(c);
    /// `mul24.lo.s32`: the low 32 bits of the product of 24-bit values.
    Multiply24S32(a: i32, b: i32, _c: (), _i) -> i32 = (a << 8 >> 8).wrapping_mul(b << 8 >> 8);
    /// `mul24.lo.u32`.
    Multiply24U32(a: u32, b: u32, _c: (), _i) -> u32 = (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff);
    /// `mad24.lo.s32`.
    MultiplyAdd24S32(a: i32, b: i32, c: i32, _i) -> i32 = (a << 8 >> 8).wrapping_mul(b << 8 >> 8).wrapping_add(c);
    /// `mad24.lo.u32`.
    MultiplyAdd24U32(a: u32, b: u32, c: u32, _i) -> u32 = (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c);
    /// `mul24.hi.s32`: bits 16 to 47 of the product of 24-bit values.
    Multiply24HighS32(a: i32, b: i32, _c: (), _i) -> i32 =
        ((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> 16) as i32;
    /// `mul24.hi.u32`.
    Multiply24HighU32(a: u32, b: u32, _c: (), _i) -> u32 =
        ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32;
    /// `mad24.hi.s32`; the immediate is 1 for `.sat`.
    MultiplyAdd24HighS32(a: i32, b: i32, c: i32, i) -> i32 = {
        let product = ((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> 16) as i32;
        if i == 1 { product.saturating_add(c) } else { product.wrapping_add(c) }
    };
    /// `mad24.hi.u32`.
    MultiplyAdd24HighU32(a: u32, b: u32, c: u32, _i) -> u32 =
        (((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32).wrapping_add(c);
    /// `min.relu.s32`.
    MinimumRelu(a: i32, b: i32, _c: (), _i) -> i32 = a.min(b).max(0);
    /// `max.relu.s32`.
    MaximumRelu(a: i32, b: i32, _c: (), _i) -> i32 = a.max(b).max(0);
    /// `popc.b32`.
    PopulationCount32(a: u32, _b: (), _c: (), _i) -> u32 = a.count_ones();
    /// `popc.b64`.
    PopulationCount64(a: u64, _b: (), _c: (), _i) -> u32 = a.count_ones();
    /// `clz.b32`.
    LeadingZeros32(a: u32, _b: (), _c: (), _i) -> u32 = a.leading_zeros();
    /// `clz.b64`.
    LeadingZeros64(a: u64, _b: (), _c: (), _i) -> u32 = a.leading_zeros();
    /// `brev.b32`.
    Reverse32(a: u32, _b: (), _c: (), _i) -> u32 = a.reverse_bits();
    /// `brev.b64`.
    Reverse64(a: u64, _b: (), _c: (), _i) -> u64 = a.reverse_bits();
    /// `bfind.u32`; the immediate is 1 for `.shiftamt`.
    FindU32(a: u32, _b: (), _c: (), i) -> u32 = find(u64::from(a), 32, i);
    /// `bfind.s32`.
    FindS32(a: i32, _b: (), _c: (), i) -> u32 = find(u64::from((if a < 0 { !a } else { a }) as u32), 32, i);
    /// `bfind.u64`.
    FindU64(a: u64, _b: (), _c: (), i) -> u32 = find(a, 64, i);
    /// `bfind.s64`.
    FindS64(a: i64, _b: (), _c: (), i) -> u32 = find((if a < 0 { !a } else { a }) as u64, 64, i);
    /// `bfe.u32`: bits of the source from b's place, c of them.
    ExtractU32(a: u32, b: u32, c: u32, _i) -> u32 = {
        let (place, length) = (b & 0xff, c & 0xff);
        let field = if place >= 32 { 0 } else { a >> (place & 31) };
        if length >= 32 { field } else { field & ((1 << (length & 31)) - 1) }
    };
    /// `bfe.s32`: the bits past the source, too, are its sign.
    ExtractS32(a: i32, b: u32, c: u32, _i) -> i32 = {
        let field = a >> (b & 0xff).min(31);
        let unused = 32 - (c & 0xff).min(32);
        if unused == 32 { 0 } else { (field << (unused & 31)) >> (unused & 31) }
    };
    /// `bfe.u64`.
    ExtractU64(a: u64, b: u32, c: u32, _i) -> u64 = {
        let (place, length) = (b & 0xff, c & 0xff);
        let field = if place >= 64 { 0 } else { a >> (place & 63) };
        if length >= 64 { field } else { field & ((1 << (length & 63)) - 1) }
    };
    /// `bfe.s64`.
    ExtractS64(a: i64, b: u32, c: u32, _i) -> i64 = {
        let field = a >> (b & 0xff).min(63);
        let unused = 64 - (c & 0xff).min(64);
        if unused == 64 { 0 } else { (field << (unused & 63)) >> (unused & 63) }
    };
    /// `lop3.b32`; the immediate is the table.
    Logic3(a: u32, b: u32, c: u32, i) -> u32 = logic3(a, b, c, i);
    /// `shf.l`; the immediate is 1 for `.wrap`.
    FunnelLeft(a: u32, b: u32, c: u32, i) -> u32 = {
        let count = if i == 1 { c & 31 } else { c.min(32) };
        ((((u64::from(b) << 32) | u64::from(a)) << count) >> 32) as u32
    };
    /// `shf.r`.
    FunnelRight(a: u32, b: u32, c: u32, i) -> u32 = {
        let count = if i == 1 { c & 31 } else { c.min(32) };
        (((u64::from(b) << 32) | u64::from(a)) >> count) as u32
    };
    /// `prmt.b32`; the immediate is the mode.
    Permute(a: u32, b: u32, c: u32, i) -> u32 = permute(a, b, c, i);
    /// `bmsk.clamp`: ones from bit a, b of them.
    MaskClamp(a: u32, b: u32, _c: (), _i) -> u32 = {
        let ones = if b >= 32 { u32::MAX } else { (1 << b) - 1 };
        if a >= 32 { 0 } else { ones << a }
    };
    /// `bmsk.wrap`.
    MaskWrap(a: u32, b: u32, _c: (), _i) -> u32 = ((1 << (b & 31)) - 1) << (a & 31);
    /// `dp4a`; the immediate's bits 0 and 1 say which sources are signed.
    DotProduct4(a: u32, b: u32, c: u32, i) -> u32 = {
        let mut sum = c;
        for byte in 0..4 {
            let part = |value: u32, signed: bool| {
                let byte = (value >> (8 * byte)) as u8;
                if signed { byte as i8 as u32 } else { u32::from(byte) }
            };
            sum = sum.wrapping_add(part(a, i & 1 != 0).wrapping_mul(part(b, i & 2 != 0)));
        }
        sum
    };
    /// `dp2a`: half words of the first source times the low two bytes of the second, its high two where the immediate has bit 2;
    /// bits 0 and 1 say which sources are signed.
    DotProduct2(a: u32, b: u32, c: u32, i) -> u32 = {
        let mut sum = c;
        for part in 0..2 {
            let half = (a >> (16 * part)) as u16;
            let half = if i & 1 != 0 { half as i16 as u32 } else { u32::from(half) };
            let byte = (b >> (8 * (part + ((i >> 1) & 2)))) as u8;
            let byte = if i & 2 != 0 { byte as i8 as u32 } else { u32::from(byte) };
            sum = sum.wrapping_add(half.wrapping_mul(byte));
        }
        sum
    };
    /// `fns`: where the n-th set bit of a is, counted from bit b, upwards or (n negative) downwards.
    FindNthSet(a: u32, b: u32, c: i32, _i) -> u32 = find_nth_set(a, b, c);
    /// `szext.s32`: the low b bits, sign-extended; the immediate is 1 for `.clamp`.
    ExtendS32(a: u32, b: u32, _c: (), i) -> u32 = {
        let width = b & 31;
        let sign = if width == 0 { 0 } else { (a >> (width.wrapping_sub(1) & 31)) & 1 };
        let kept = (1u32 << width) - 1;
        if i == 1 && b >= 32 { a } else { (a & kept) | (0u32.wrapping_sub(sign) & !kept) }
    };
    /// `szext.u32`: the low b bits.
    ExtendU32(a: u32, b: u32, _c: (), i) -> u32 = if i == 1 && b >= 32 { a } else { a & ((1u32 << (b & 31)) - 1) };
    /// One past the lane, bits below it and so on: `%lanemask_*` from the lane number; the immediate says which.
    LaneMask(a: u32, _b: (), _c: (), i) -> u32 = match i {
        0 => 1 << a,
        1 => (1 << a) - 1,
        2 => (1 << a) | ((1 << a) - 1),
        3 => !((1 << a) - 1),
        _ => !((1 << a) | ((1 << a) - 1)),
    };
}

#[inline(always)]
fn find(value: u64, width: u32, shift_amount: u32) -> u32 {
    if value == 0 {
        return u32::MAX;
    }
    let place = 63 - value.leading_zeros();
    if shift_amount == 1 { width - 1 - place } else { place }
}

#[inline(always)]
fn find_nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if base >= 32 {
        return u32::MAX;
    }
    if offset == 0 {
        return if (mask >> base) & 1 != 0 { base } else { u32::MAX };
    }
    let step = if offset > 0 { 1 } else { -1 };
    let mut left = offset.unsigned_abs();
    let mut place = base as i32;
    while (0..32).contains(&place) {
        left -= (mask >> place) & 1;
        if left == 0 {
            return place as u32;
        }
        place += step;
    }
    u32::MAX
}

/// The function of three values whose table has a bit for each of their combinations: the first value counts 4, the second 2, the third
/// 1.
#[inline(always)]
pub(crate) fn logic3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let row = |number: u32| 0u32.wrapping_sub((table >> number) & 1);
    // Chosen by the second value, then by the third, then by the first.
    let by_b = |first: u32| row(first) ^ (b & (row(first) ^ row(first + 2)));
    let by_c = |first: u32| by_b(first) ^ (c & (by_b(first) ^ by_b(first + 1)));
    by_c(0) ^ (a & (by_c(0) ^ by_c(4)))
}

/// Modes of `prmt`.
pub(crate) mod permute_mode {
    pub const INDEX: u32 = 0;
    pub const FORWARD: u32 = 1;
    pub const BACKWARD: u32 = 2;
    pub const REPLICATE8: u32 = 3;
    pub const EDGE_LEFT: u32 = 4;
    pub const EDGE_RIGHT: u32 = 5;
    pub const REPLICATE16: u32 = 6;
}

#[inline(always)]
fn permute(a: u32, b: u32, c: u32, mode: u32) -> u32 {
    let bytes = u64::from(a) | (u64::from(b) << 32);
    let select = c & 3;
    let mut result = 0;
    for place in 0..4u32 {
        let selector = match mode {
            permute_mode::FORWARD => (select + place) & 7,
            permute_mode::BACKWARD => select.wrapping_sub(place) & 7,
            permute_mode::REPLICATE8 => select,
            permute_mode::EDGE_LEFT => select.max(place),
            permute_mode::EDGE_RIGHT => select.min(place),
            permute_mode::REPLICATE16 => 2 * (select & 1) + (place & 1),
            _ => (c >> (4 * place)) & 15,
        };
        let byte = (bytes >> (8 * (selector & 7))) as u8;
        let byte = if selector & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        result |= u32::from(byte) << (8 * place);
    }
    result
}
