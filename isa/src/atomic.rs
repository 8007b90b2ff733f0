//! What an atomic operation makes of one value in memory.

use crate::execution::{AtomicOperation, AtomicType};

impl AtomicType {
    /// Bytes of a value.
    pub const fn bytes(self) -> u8 {
        match self {
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 => 8,
            AtomicType::B16 | AtomicType::F16 | AtomicType::Bf16 => 2,
            AtomicType::U32 | AtomicType::S32 | AtomicType::F32 | AtomicType::F16x2 | AtomicType::Bf16x2 => 4,
        }
    }
}

/// The value that replaces `old`. `operand` is the operand (of a compare-and-swap: the comparand), `new` what a
/// compare-and-swap stores. Values are little endian in the low bytes, zero-extended.
pub fn apply(operation: AtomicOperation, data_type: AtomicType, old: u64, operand: u64, new: u64) -> u64 {
    match operation {
        AtomicOperation::Exchange => operand,
        AtomicOperation::And => old & operand,
        AtomicOperation::Or => old | operand,
        AtomicOperation::Xor => old ^ operand,
        AtomicOperation::CompareAndSwap => {
            if old == operand {
                new
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
        AtomicOperation::Add => add(data_type, old, operand),
        AtomicOperation::Minimum => extremum(data_type, old, operand, true),
        AtomicOperation::Maximum => extremum(data_type, old, operand, false),
    }
}

fn add(data_type: AtomicType, old: u64, operand: u64) -> u64 {
    match data_type {
        AtomicType::U32 | AtomicType::S32 => u64::from((old as u32).wrapping_add(operand as u32)),
        AtomicType::U64 | AtomicType::S64 => old.wrapping_add(operand),
        AtomicType::B16 => u64::from((old as u16).wrapping_add(operand as u16)),
        AtomicType::F32 => u64::from((f32::from_bits(old as u32) + f32::from_bits(operand as u32)).to_bits()),
        AtomicType::F64 => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
        AtomicType::F16 => u64::from(half_add(old as u16, operand as u16)),
        AtomicType::Bf16 => u64::from(brain_add(old as u16, operand as u16)),
        AtomicType::F16x2 => pairwise(old, operand, half_add),
        AtomicType::Bf16x2 => pairwise(old, operand, brain_add),
    }
}

fn pairwise(old: u64, operand: u64, add: fn(u16, u16) -> u16) -> u64 {
    u64::from(add(old as u16, operand as u16)) | u64::from(add((old >> 16) as u16, (operand >> 16) as u16)) << 16
}

/// The sum of two halves is exact in single precision, so that one rounding remains.
fn half_add(a: u16, b: u16) -> u16 {
    half::f16::from_f32(half::f16::from_bits(a).to_f32() + half::f16::from_bits(b).to_f32()).to_bits()
}

/// The sum of two bfloat16 is exact in double precision.
fn brain_add(a: u16, b: u16) -> u16 {
    half::bf16::from_f64(half::bf16::from_bits(a).to_f64() + half::bf16::from_bits(b).to_f64()).to_bits()
}

fn extremum(data_type: AtomicType, old: u64, operand: u64, minimum: bool) -> u64 {
    let operand_is_less = match data_type {
        AtomicType::S32 => (operand as i32) < (old as i32),
        AtomicType::S64 => (operand as i64) < (old as i64),
        AtomicType::F32 => f32::from_bits(operand as u32) < f32::from_bits(old as u32),
        AtomicType::F64 => f64::from_bits(operand) < f64::from_bits(old),
        _ => operand < old,
    };
    if operand_is_less == minimum { operand } else { old }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicOperation::*;
    use AtomicType::*;

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
            (Increment, U32, 5, 5, 0, 0),
            (Increment, U32, 4, 5, 0, 5),
            (Decrement, U32, 0, 5, 0, 5),
            (Decrement, U32, 6, 5, 0, 5),
            (Decrement, U32, 4, 5, 0, 3),
            (Xor, U32, 6, 5, 0, 3),
        ] {
            assert_eq!(apply(operation, data_type, old, operand, new), expected, "{operation:?} {data_type:?}");
        }
    }
}
