//! Floating-point arithmetic: single, double and half precision, and pairs of them.

use super::{Decoded, Decoder};
use crate::interpreter::bodies::*;
use crate::interpreter::float::*;
use crate::interpreter::half::*;
use crate::operation::LaneFunction;
use crate::ptx::ast::Instruction;
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

type Lanes = [LaneFunction; 2];

macro_rules! single {
    ($operation:ident, $flush:expr, $saturate:expr) => {
        match ($flush, $saturate) {
            (false, false) => functions::<Map<Single<$operation, false, false>>>(),
            (true, false) => functions::<Map<Single<$operation, true, false>>>(),
            (false, true) => functions::<Map<Single<$operation, false, true>>>(),
            (true, true) => functions::<Map<Single<$operation, true, true>>>(),
        }
    };
}
macro_rules! half {
    ($type:expr, $operation:ident) => {
        match $type {
            T::F16 => Some(functions::<Map<Half<$operation>>>()),
            T::F16x2 => Some(functions::<Map<HalfPair<$operation>>>()),
            _ => None,
        }
    };
}
/// The directed rounding that an instruction asks for.
pub(super) fn rounding_of(instruction: &Instruction) -> u32 {
    for modifier in &instruction.modifiers {
        match modifier {
            M::Rz | M::Rzi => return rounding::ZERO,
            M::Rm | M::Rmi => return rounding::DOWN,
            M::Rp | M::Rpi => return rounding::UP,
            _ => {}
        }
    }
    rounding::NEAREST
}

/// Whether an instruction of that type is decoded here: comparison, selection, moves and conversion are not.
pub(super) fn is_arithmetic(opcode: O, data_type: T) -> bool {
    data_type.is_float() && !matches!(opcode, O::Setp | O::Set | O::Selp | O::Slct | O::Mov | O::Cvt)
}

impl Decoder<'_> {
    /// Floating-point arithmetic; false where the form is not supported.
    pub(super) fn float(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let Some((lanes, immediate)) = lanes(instruction, data_type) else { return Ok(false) };
        let sources = instruction.operands.len().saturating_sub(1).min(3);
        self.emit(instruction, lanes, immediate, data_type, &[data_type; 3][..sources])?;
        Ok(true)
    }
}

fn lanes(instruction: &Instruction, data_type: T) -> Option<(Lanes, u32)> {
    let has = |modifier| instruction.has(modifier);
    let saturating = u32::from(has(M::Sat));
    let rounding = rounding_of(instruction);
    if has(M::Relu) || has(M::XorSign) {
        return None;
    }
    if data_type == T::F32 {
        return single_lanes(instruction, rounding);
    }
    if data_type == T::F64 {
        return double_lanes(instruction, rounding, saturating);
    }
    if matches!(data_type, T::F16 | T::F16x2) {
        if rounding != rounding::NEAREST || has(M::Ftz) {
            return None;
        }
        let signs = if data_type == T::F16 { 0x8000 } else { 0x8000_8000 };
        return Some(match instruction.opcode {
            O::Add => (half!(data_type, AddF16)?, saturating),
            O::Sub => (half!(data_type, SubtractF16)?, saturating),
            O::Mul => (half!(data_type, MultiplyF16)?, saturating),
            O::Fma => (half!(data_type, FusedF16)?, saturating),
            O::Min if !has(M::NaN) => (half!(data_type, MinimumF16)?, 0),
            O::Max if !has(M::NaN) => (half!(data_type, MaximumF16)?, 0),
            O::Neg => (functions::<Map<NegateHalf>>(), signs),
            O::Abs => (functions::<Map<AbsoluteHalf>>(), signs),
            _ => return None,
        });
    }
    None
}

fn single_lanes(instruction: &Instruction, rounding: u32) -> Option<(Lanes, u32)> {
    let has = |modifier| instruction.has(modifier);
    let (flush, saturate) = (has(M::Ftz), has(M::Sat));
    let near = rounding == rounding::NEAREST;
    let lanes = match instruction.opcode {
        O::Add if near => single!(AddF32, flush, saturate),
        O::Add => single!(AddDirectedF32, flush, saturate),
        O::Sub if near => single!(SubtractF32, flush, saturate),
        O::Sub => single!(SubtractDirectedF32, flush, saturate),
        O::Mul if near => single!(MultiplyF32, flush, saturate),
        O::Mul => single!(MultiplyDirectedF32, flush, saturate),
        O::Fma | O::Mad if near => single!(FusedF32, flush, saturate),
        O::Fma | O::Mad => single!(FusedDirectedF32, flush, saturate),
        O::Div => single!(DivideF32, flush, false),
        O::Rcp => single!(ReciprocalF32, flush, false),
        O::Sqrt => single!(SquareRootF32, flush, false),
        O::Rsqrt => single!(ReciprocalRootF32, flush, false),
        O::Sin => single!(SineF32, flush, false),
        O::Cos => single!(CosineF32, flush, false),
        O::Ex2 => single!(PowerOfTwoF32, flush, false),
        O::Lg2 => single!(BinaryLogarithmF32, flush, false),
        O::Tanh => single!(HyperbolicTangentF32, flush, false),
        O::Min if has(M::NaN) => single!(MinimumNanF32, flush, false),
        O::Max if has(M::NaN) => single!(MaximumNanF32, flush, false),
        O::Min => single!(MinimumF32, flush, false),
        O::Max => single!(MaximumF32, flush, false),
        O::Neg => single!(NegateF32, flush, false),
        O::Abs => single!(AbsoluteF32, flush, false),
        O::Copysign => functions::<Map<CopySignF32>>(),
        _ => return None,
    };
    Some((lanes, rounding))
}

fn double_lanes(instruction: &Instruction, rounding: u32, saturating: u32) -> Option<(Lanes, u32)> {
    if rounding != rounding::NEAREST {
        return None;
    }
    let has = |modifier| instruction.has(modifier);
    let lanes = match instruction.opcode {
        O::Add => functions::<Map<Double<AddF64>>>(),
        O::Sub => functions::<Map<Double<SubtractF64>>>(),
        O::Mul => functions::<Map<Double<MultiplyF64>>>(),
        O::Fma | O::Mad => functions::<Map<Double<FusedF64>>>(),
        O::Div => functions::<Map<Double<DivideF64>>>(),
        O::Rcp if has(M::Approx) => functions::<Map<Double<ReciprocalHighF64>>>(),
        O::Rcp => functions::<Map<Double<ReciprocalF64>>>(),
        O::Sqrt => functions::<Map<Double<SquareRootF64>>>(),
        O::Rsqrt if has(M::Ftz) => functions::<Map<Double<ReciprocalRootHighF64>>>(),
        O::Rsqrt => functions::<Map<Double<ReciprocalRootF64>>>(),
        O::Min => functions::<Map<Double<MinimumF64>>>(),
        O::Max => functions::<Map<Double<MaximumF64>>>(),
        O::Neg => functions::<Map<NegateF64>>(),
        O::Abs => functions::<Map<AbsoluteF64>>(),
        O::Copysign => functions::<Map<CopySignF64>>(),
        _ => return None,
    };
    Some((lanes, saturating))
}
