//! Arithmetic with the carry flag, and bit-field insertion: more than a lane function of three values.

use super::bodies::Body;
use super::registers::{Lane, Registers};
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::{Row, Source};
use std::marker::PhantomData;

/// The use of the carry flag by an instruction: bits of `Instruction::immediate`.
pub(crate) mod flag {
    /// Adds the flag.
    pub const IN: u32 = 1;
    /// Sets the flag.
    pub const OUT: u32 = 2;
    /// Subtracts; the flag is the borrow.
    pub const SUBTRACT: u32 = 4;
}

/// Which half of a product.
pub(crate) mod half_of_product {
    pub const LOW: u8 = 0;
    pub const HIGH_UNSIGNED: u8 = 1;
    pub const HIGH_SIGNED: u8 = 2;
}

/// An unsigned word that additions carry out of.
pub(crate) trait Word: Lane + Default {
    /// The sum with a carry of 0 or 1, and the carry out.
    fn add_with_carry(self, other: Self, carry: u32) -> (Self, u32);
    /// All bits inverted where `invert` is true.
    fn inverted_if(self, invert: bool) -> Self;
    /// Half of the product.
    fn product<const HALF: u8>(self, other: Self) -> Self;
}

macro_rules! word {
    ($($type:ty, $signed:ty, $wide:ty, $wide_signed:ty;)*) => {$(
        impl Word for $type {
            #[inline(always)]
            fn add_with_carry(self, other: Self, carry: u32) -> (Self, u32) {
                let first = self.wrapping_add(other);
                let second = first.wrapping_add(carry as $type);
                (second, u32::from(first < self) | u32::from(second < first))
            }
            #[inline(always)]
            fn inverted_if(self, invert: bool) -> Self {
                if invert { !self } else { self }
            }
            #[inline(always)]
            fn product<const HALF: u8>(self, other: Self) -> Self {
                match HALF {
                    half_of_product::LOW => self.wrapping_mul(other),
                    half_of_product::HIGH_UNSIGNED => ((self as $wide * other as $wide) >> <$type>::BITS) as $type,
                    _ => {
                        let product = self as $signed as $wide_signed * other as $signed as $wide_signed;
                        (product >> <$type>::BITS) as $type
                    }
                }
            }
        }
    )*};
}
word! {
    u32, i32, u64, i64;
    u64, i64, u128, i128;
}

/// `add` and the like with carry: the immediate is of [`flag`].
pub(crate) struct Carry<W>(PhantomData<W>);

impl<W: Word> Body for Carry<W> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = W::read(registers, constants, instruction.sources[0]);
        let b = W::read(registers, constants, instruction.sources[1]);
        add_with_carry(instruction, registers, &a, &b, mask);
    }
}

/// `mad` and `madc` with carry: half of the product, plus the third source.
pub(crate) struct MultiplyCarry<W, const HALF: u8>(PhantomData<W>);

impl<W: Word, const HALF: u8> Body for MultiplyCarry<W, HALF> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let a = W::read(registers, constants, instruction.sources[0]);
        let b = W::read(registers, constants, instruction.sources[1]);
        let c = W::read(registers, constants, instruction.sources[2]);
        let mut product = a;
        for lane in 0..LANES {
            product[lane] = a[lane].product::<HALF>(b[lane]);
        }
        add_with_carry(instruction, registers, &product, &c, mask);
    }
}

#[inline(always)]
fn add_with_carry<W: Word>(
    instruction: &Instruction,
    registers: &mut Registers,
    a: &[W; LANES],
    b: &[W; LANES],
    mask: u32,
) {
    let subtract = instruction.immediate & flag::SUBTRACT != 0;
    // a - b - borrow is a + !b + 1 - borrow, and its borrow the opposite of that sum's carry.
    let flip = if subtract { u32::MAX } else { 0 };
    let flags = (if instruction.immediate & flag::IN != 0 { registers.carry } else { 0 }) ^ flip;
    let mut values = [W::default(); LANES];
    let mut carries = 0;
    for lane in 0..LANES {
        let (sum, carry) = a[lane].add_with_carry(b[lane].inverted_if(subtract), (flags >> lane) & 1);
        values[lane] = sum;
        carries |= carry << lane;
    }
    W::write(registers, instruction.destinations[0], &values, mask);
    if instruction.immediate & flag::OUT != 0 {
        registers.carry = (registers.carry & !mask) | ((carries ^ flip) & mask);
    }
}

/// `bfi`: the first source's low bits into the second, at the third's position, as many as the fourth says.
pub(crate) struct Insert<T>(PhantomData<T>);

/// A word that a bit field is put into.
pub(crate) trait Field: Lane {
    /// `low` bits of the field at `place`.
    fn insert(self, field: Self, place: u32, length: u32) -> Self;
}

macro_rules! field {
    ($($type:ty;)*) => {$(
        impl Field for $type {
            #[inline(always)]
            fn insert(self, field: Self, place: u32, length: u32) -> Self {
                const BITS: u32 = <$type>::BITS;
                let ones = if length >= BITS { <$type>::MAX } else { (1 << (length & (BITS - 1))) - 1 };
                let place_in_word = place & (BITS - 1);
                let (ones, field) =
                    if place >= BITS { (0, 0) } else { (ones << place_in_word, field << place_in_word) };
                (self & !ones) | (field & ones)
            }
        }
    )*};
}
field! { u32; u64; }

impl<T: Field> Body for Insert<T> {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let read = |registers: &Registers, source: Source| u32::read(registers, constants, source);
        let fields = T::read(registers, constants, instruction.sources[0]);
        let mut values = T::read(registers, constants, instruction.sources[1]);
        let places = read(registers, instruction.sources[2]);
        let lengths = read(registers, instruction.sources[3]);
        for lane in 0..LANES {
            values[lane] = values[lane].insert(fields[lane], places[lane] & 0xff, lengths[lane] & 0xff);
        }
        T::write(registers, instruction.destinations[0], &values, mask);
    }
}
