//! The effect of an atomic operation on a value in memory.
//!
//! Floating-point sums round to nearest even, once. A not-a-number has the bits that arithmetic instructions give it. Subnormals
//! stay, but for `.f32` in device memory, where the unit in the L2 flushes them (PTX ISA, `atom`).

use crate::execution::{AtomicFunction, AtomicOperation, AtomicType};
use crate::interpreter::floating_point::float::{DOUBLE_NAN, SINGLE_NAN, flush};
use crate::interpreter::floating_point::half::{from_double, to_double};
use crate::mbarrier;

/// The not-a-number of operations on `f16` and `bf16`.
const HALF_NAN: u16 = 0x7fff;

impl AtomicType {
    /// Bytes of a value.
    pub const fn bytes(self) -> u8 {
        match self {
            AtomicType::B128 => 16,
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 => 8,
            AtomicType::B16 | AtomicType::F16 | AtomicType::Bf16 => 2,
            AtomicType::U32
            | AtomicType::S32
            | AtomicType::F32
            | AtomicType::F32Flushed
            | AtomicType::F16x2
            | AtomicType::Bf16x2 => 4,
        }
    }
}

impl AtomicFunction {
    /// Replaces the value of `memory` and returns the old value, little endian. Memory longer than a value of the type is a vector of
    /// values: each element is replaced on its own. `operand` is the operand (of a compare-and-swap: the comparand), `replacement` the
    /// value that a compare-and-swap stores.
    pub fn update(self, memory: &mut [u8], operand: u128, replacement: u128) -> u128 {
        let width = usize::from(self.data_type.bytes());
        if width == memory.len() && width <= 8 {
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(memory);
            let old = u64::from_le_bytes(bytes);
            let new = self.apply(old, operand as u64, replacement as u64);
            memory.copy_from_slice(&new.to_le_bytes()[..width]);
            return u128::from(old);
        }
        let length = memory.len().min(16);
        let mut bytes = [0; 16];
        bytes[..length].copy_from_slice(&memory[..length]);
        let old = u128::from_le_bytes(bytes);
        let new = if width > 8 {
            self.apply_wide(old, operand, replacement)
        } else {
            let bits = 8 * width as u32;
            (0..(length / width) as u32).map(|element| bits * element).fold(0, |word, place| {
                let [old, operand, replacement] = [old, operand, replacement].map(|value| (value >> place) as u64);
                let new = self.apply(old & (u64::MAX >> (64 - bits)), operand, replacement);
                word | u128::from(new & (u64::MAX >> (64 - bits))) << place
            })
        };
        memory[..length].copy_from_slice(&new.to_le_bytes()[..length]);
        old
    }

    /// The value of 16 bytes that replaces `old`.
    fn apply_wide(self, old: u128, operand: u128, replacement: u128) -> u128 {
        match self.operation {
            AtomicOperation::Exchange => operand,
            AtomicOperation::CompareAndSwap if old == operand => replacement,
            _ => old,
        }
    }

    /// The value whose low bits replace `old`, which is zero-extended; the operands' bits beyond the type mean nothing.
    fn apply(self, old: u64, operand: u64, replacement: u64) -> u64 {
        let keep = u64::MAX >> (64 - 8 * u32::from(self.data_type.bytes().min(8)));
        match self.operation {
            AtomicOperation::Exchange => operand,
            AtomicOperation::And => old & operand,
            AtomicOperation::Or => old | operand,
            AtomicOperation::Xor => old ^ operand,
            AtomicOperation::CompareAndSwap => {
                if old == operand & keep {
                    replacement
                } else {
                    old
                }
            }
            AtomicOperation::Increment => {
                if old as u32 >= operand as u32 {
                    0
                } else {
                    u64::from(old as u32 + 1)
                }
            }
            AtomicOperation::Decrement => {
                if old as u32 == 0 || old as u32 > operand as u32 {
                    u64::from(operand as u32)
                } else {
                    u64::from(old as u32 - 1)
                }
            }
            AtomicOperation::Add => add(self.data_type, old, operand),
            AtomicOperation::Minimum => extremum(self.data_type, old, operand & keep, true),
            AtomicOperation::Maximum => extremum(self.data_type, old, operand & keep, false),
            AtomicOperation::Barrier(operation) => mbarrier::update(operation, old, operand, replacement),
        }
    }
}

fn add(data_type: AtomicType, old: u64, operand: u64) -> u64 {
    let singles = || [old, operand].map(|bits| f32::from_bits(bits as u32));
    match data_type {
        AtomicType::U32 | AtomicType::S32 => u64::from((old as u32).wrapping_add(operand as u32)),
        AtomicType::U64 | AtomicType::S64 | AtomicType::B128 => old.wrapping_add(operand),
        AtomicType::B16 => u64::from((old as u16).wrapping_add(operand as u16)),
        AtomicType::F32 => {
            let [a, b] = singles();
            single_bits(a + b)
        }
        AtomicType::F32Flushed => {
            let [a, b] = singles().map(flush);
            single_bits(flush(a + b))
        }
        AtomicType::F64 => {
            let sum = f64::from_bits(old) + f64::from_bits(operand);
            (if sum.is_nan() { DOUBLE_NAN } else { sum }).to_bits()
        }
        AtomicType::F16 => u64::from(half_add(old as u16, operand as u16)),
        AtomicType::Bf16 => u64::from(brain_add(old as u16, operand as u16)),
        AtomicType::F16x2 => pairwise(old, operand, half_add),
        AtomicType::Bf16x2 => pairwise(old, operand, brain_add),
    }
}

fn single_bits(value: f32) -> u64 {
    u64::from((if value.is_nan() { SINGLE_NAN } else { value }).to_bits())
}

fn pairwise(old: u64, operand: u64, function: impl Fn(u16, u16) -> u16) -> u64 {
    u64::from(function(old as u16, operand as u16))
        | u64::from(function((old >> 16) as u16, (operand >> 16) as u16)) << 16
}

/// The sum of two halves is exact in double precision, so that one rounding remains.
fn half_add(a: u16, b: u16) -> u16 {
    from_double(to_double(a) + to_double(b))
}

fn brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Single precision has more than twice the bits of bfloat16 and two, so that rounding to it first changes nothing; where results
/// are subnormal, sums are exact.
fn brain_add(a: u16, b: u16) -> u16 {
    let sum = brain(a) + brain(b);
    if sum.is_nan() {
        return HALF_NAN;
    }
    let bits = sum.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The smaller or larger of two values, as the numbers that `value` gives: a number rather than a not-a-number, and -0 before +0.
fn half_extremum(a: u16, b: u16, minimum: bool, value: impl Fn(u16) -> f64) -> u16 {
    let (first, second) = (value(a), value(b));
    match (first.is_nan(), second.is_nan()) {
        (true, true) => HALF_NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let second_is_less = second < first || (second == first && second.is_sign_negative());
            if second_is_less == minimum { b } else { a }
        }
    }
}

fn extremum(data_type: AtomicType, old: u64, operand: u64, minimum: bool) -> u64 {
    let half = |a, b| half_extremum(a, b, minimum, to_double);
    let brain = |a, b| half_extremum(a, b, minimum, |bits| f64::from(brain(bits)));
    let operand_is_less = match data_type {
        AtomicType::F16 => return u64::from(half(old as u16, operand as u16)),
        AtomicType::Bf16 => return u64::from(brain(old as u16, operand as u16)),
        AtomicType::F16x2 => return pairwise(old, operand, half),
        AtomicType::Bf16x2 => return pairwise(old, operand, brain),
        AtomicType::S32 => (operand as i32) < (old as i32),
        AtomicType::S64 => (operand as i64) < (old as i64),
        AtomicType::F32 | AtomicType::F32Flushed => f32::from_bits(operand as u32) < f32::from_bits(old as u32),
        AtomicType::F64 => f64::from_bits(operand) < f64::from_bits(old),
        AtomicType::U32 | AtomicType::U64 | AtomicType::B16 | AtomicType::B128 => operand < old,
    };
    if operand_is_less == minimum { operand } else { old }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicOperation::*;
    use AtomicType::*;

    fn update(operation: AtomicOperation, data_type: AtomicType, old: u64, operand: u64, replacement: u64) -> u64 {
        let mut memory = old.to_le_bytes();
        let width = usize::from(data_type.bytes());
        let before = AtomicFunction { operation, data_type }.update(
            &mut memory[..width],
            u128::from(operand),
            u128::from(replacement),
        );
        assert_eq!(before, u128::from(old), "the old value");
        u64::from_le_bytes(memory)
    }

    #[test]
    fn operations() {
        let minus_one = u64::from(u32::MAX);
        for (operation, data_type, old, operand, new, expected) in [
            (Add, U32, minus_one, 2, 0, 1),
            (Add, U64, u64::MAX, 2, 0, 1),
            (Add, F32, u64::from(1.5f32.to_bits()), u64::from(0.25f32.to_bits()), 0, u64::from(1.75f32.to_bits())),
            (Add, F64, 1.5f64.to_bits(), 0.25f64.to_bits(), 0, 1.75f64.to_bits()),
            (Add, F16x2, 0x3c00_3c00, 0x3c00_4000, 0, 0x4000_4200),
            (Minimum, S32, 3, minus_one, 0, minus_one),
            (Minimum, U32, 3, minus_one, 0, 3),
            (Maximum, S32, 3, minus_one, 0, 3),
            (Maximum, U64, 3, 9, 0, 9),
            (Exchange, U32, 3, 9, 0, 9),
            (CompareAndSwap, U32, 3, 3, 7, 7),
            (CompareAndSwap, U32, 4, 3, 7, 4),
            (CompareAndSwap, B16, 3, 0xffff_0003, 0xffff_0007, 7),
            (Increment, U32, 5, 5, 0, 0),
            (Increment, U32, 4, 5, 0, 5),
            (Decrement, U32, 0, 5, 0, 5),
            (Decrement, U32, 6, 5, 0, 5),
            (Decrement, U32, 4, 5, 0, 3),
            (Xor, U32, 6, 5, 0, 3),
            // Subnormals: kept, or flushed to a zero of their sign.
            (Add, F32, 0x8000_0001, 0x8000_0001, 0, 0x8000_0002),
            (Add, F32Flushed, 0x8000_0001, 0x8000_0001, 0, 0x8000_0000),
            (Add, F32, 0x7f80_0000, 0xff80_0000, 0, 0x7fff_ffff),
            // -0 is less than +0, and a number wins over a not-a-number.
            (Minimum, F16, 0x0000, 0x8000, 0, 0x8000),
            (Maximum, F16, 0x8000, 0x0000, 0, 0x0000),
            (Minimum, F16x2, 0x7e00_3c00, 0x4000_7c01, 0, 0x4000_3c00),
            (Maximum, Bf16x2, 0xff80_3f80, 0x7fc0_4000, 0, 0xff80_4000),
            (Minimum, Bf16, 0x7fc0, 0xffff, 0, 0x7fff),
        ] {
            assert_eq!(update(operation, data_type, old, operand, new), expected, "{operation:?} {data_type:?}");
        }
    }

    #[test]
    fn vectors_are_updated_element_by_element() {
        let mut memory = [0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0];
        let function = AtomicFunction { operation: Add, data_type: U32 };
        assert_eq!(function.update(&mut memory, 2 << 32 | 1, 0), 1 << 32 | 0xffff_ffff);
        assert_eq!(memory, [0, 0, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    fn sixteen_bytes() {
        let value = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let mut memory = value.to_le_bytes();
        let swap = AtomicFunction { operation: CompareAndSwap, data_type: B128 };
        assert_eq!(swap.update(&mut memory, value ^ 1 << 100, 5), value);
        assert_eq!(swap.update(&mut memory, value, 5), value);
        assert_eq!(memory, 5u128.to_le_bytes());
    }
}
