//! The special-function unit of machine code. Subnormal sources and results are zeros of their sign: code for subnormals scales them
//! around the instruction.

use crate::interpreter::bodies::LaneOperation;
use crate::interpreter::floating_point::float::{canonical, flush, high_word, square_root, starting_value};

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident($a:ident) = $value:expr;)*) => {$(
        $(#[$meta])*
        pub(crate) struct $name;
        impl LaneOperation for $name {
            type A = f32;
            type B = ();
            type C = ();
            type D = f32;
            #[inline(always)]
            fn apply($a: f32, _: (), _: (), _: u32) -> f32 {
                let $a = flush($a);
                canonical(flush($value))
            }
        }
    )*};
}
functions! {
    /// `MUFU.RCP`
    Reciprocal(a) = 1.0 / a;
    /// `MUFU.RSQ`
    ReciprocalRoot(a) = (1.0 / f64::from(a).sqrt()) as f32;
    /// `MUFU.SQRT`
    Root(a) = square_root(a);
    /// `MUFU.SIN`: the sine of an angle in turns.
    Sine(a) = turns(a).sin_in_turns();
    /// `MUFU.COS`
    Cosine(a) = turns(a).cos_in_turns();
    /// `MUFU.EX2`
    PowerOfTwo(a) = libm::exp2f(a);
    /// `MUFU.LG2`
    BinaryLogarithm(a) = libm::log2f(a);
}

/// An angle in turns, without whole ones: exact.
struct Turns(f64);

#[inline(always)]
fn turns(angle: f32) -> Turns {
    let angle = f64::from(angle);
    Turns(angle - angle.trunc())
}

impl Turns {
    fn sin_in_turns(self) -> f32 {
        libm::sin(self.0 * std::f64::consts::TAU) as f32
    }

    fn cos_in_turns(self) -> f32 {
        libm::cos(self.0 * std::f64::consts::TAU) as f32
    }
}

/// The upper word of a double, which has its sign where a single has one, with zeros below it.
#[inline(always)]
fn double_of(high: f32) -> f64 {
    f64::from_bits(u64::from(high.to_bits()) << 32)
}

/// `MUFU.RCP64H`: the upper word of a double's reciprocal, from its upper word.
pub(crate) struct ReciprocalHigh;
/// `MUFU.RSQ64H`
pub(crate) struct ReciprocalRootHigh;

impl LaneOperation for ReciprocalHigh {
    type A = f32;
    type B = ();
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(a: f32, _: (), _: (), _: u32) -> u32 {
        (starting_value(1.0 / high_word(double_of(a))).to_bits() >> 32) as u32
    }
}

impl LaneOperation for ReciprocalRootHigh {
    type A = f32;
    type B = ();
    type C = ();
    type D = u32;
    #[inline(always)]
    fn apply(a: f32, _: (), _: (), _: u32) -> u32 {
        (starting_value(1.0 / high_word(double_of(a)).sqrt()).to_bits() >> 32) as u32
    }
}
