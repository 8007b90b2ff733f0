//! Signs of sources: machine code negates sources and takes their absolute values as it reads them.

use crate::interpreter::registers::Lane;
use crate::operation::Instruction;

/// Negations and absolute values of sources: bits of [`Instruction::signs`](crate::operation::Instruction::signs), from bit 2 `n` on for
/// source `n`.
pub(crate) mod sign {
    /// It is negated, or inverted.
    pub const NEGATE: u8 = 1;
    /// Its absolute value is taken first.
    pub const ABSOLUTE: u8 = 2;
}

/// The sign of a source among those of an instruction.
#[inline(always)]
pub(crate) fn sign_of(signs: u8, source: usize) -> u8 {
    signs >> (2 * source) & 3
}

/// What inverts the first source of an instruction, where it is inverted.
#[inline(always)]
pub(crate) fn inversion_of(instruction: &Instruction) -> u32 {
    if sign_of(instruction.signs, 0) & sign::NEGATE != 0 { u32::MAX } else { 0 }
}

/// A type whose values have signs.
pub(crate) trait Signed: Lane {
    /// The value with a sign of [`sign`].
    fn signed(self, sign: u8) -> Self;
}

impl Signed for () {
    #[inline(always)]
    fn signed(self, _: u8) -> Self {}
}

macro_rules! floats {
    ($($type:ty, $sign:expr;)*) => {$(
        impl Signed for $type {
            #[inline(always)]
            fn signed(self, sign: u8) -> Self {
                let keep = if sign & sign::ABSOLUTE != 0 { !$sign } else { !0 };
                let flip = if sign & sign::NEGATE != 0 { $sign } else { 0 };
                <$type>::from_bits(self.to_bits() & keep ^ flip)
            }
        }
    )*};
}
floats! {
    f32, 1 << 31;
    f64, 1 << 63;
}
