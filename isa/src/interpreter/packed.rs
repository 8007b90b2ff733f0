//! Integers packed into a 32-bit register: two of 16 bits, four of 8.

use super::bodies::LaneOperation;
use std::marker::PhantomData;

/// Bits of the immediate of [`Packed`].
pub(crate) mod limit {
    /// `.sat`
    pub const SATURATE: u32 = 1;
    /// `.relu`
    pub const RELU: u32 = 2;
}

/// An operation on one part.
pub(crate) trait PartOperation {
    fn apply(a: i32, b: i32) -> i32;
}

macro_rules! part_operations {
    ($($(#[$meta:meta])* $name:ident, |$a:ident, $b:ident| $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl PartOperation for $name {
            #[inline(always)]
            fn apply($a: i32, $b: i32) -> i32 {
                $value
            }
        }
    )*};
}
part_operations! {
    /// `add`
    AddParts, |a, b| a + b;
    /// `sub`
    SubtractParts, |a, b| a - b;
    /// `min`
    MinimumParts, |a, b| a.min(b);
    /// `max`
    MaximumParts, |a, b| a.max(b);
    /// `neg`
    NegateParts, |a, _b| -a;
}

/// Runs a [`PartOperation`] on each part of `BITS` bits.
pub(crate) struct Packed<O, const BITS: u32, const SIGNED: bool>(PhantomData<O>);

impl<O: PartOperation, const BITS: u32, const SIGNED: bool> LaneOperation for Packed<O, BITS, SIGNED> {
    type A = u32;
    type B = u32;
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(a: u32, b: u32, _: (), immediate: u32) -> u32 {
        let part = |value: u32, shift: u32| {
            let top = value << (32 - BITS - shift);
            if SIGNED { top as i32 >> (32 - BITS) } else { (top >> (32 - BITS)) as i32 }
        };
        let (least, most) = if SIGNED { (-(1 << (BITS - 1)), (1 << (BITS - 1)) - 1) } else { (0, (1 << BITS) - 1) };
        let mut result = 0;
        for index in 0..32 / BITS {
            let shift = index * BITS;
            let mut value = O::apply(part(a, shift), part(b, shift));
            if immediate & limit::SATURATE != 0 {
                value = value.clamp(least, most);
            }
            if immediate & limit::RELU != 0 {
                value = value.max(0);
            }
            result |= (value as u32 & (u32::MAX >> (32 - BITS))) << shift;
        }
        result
    }
}
