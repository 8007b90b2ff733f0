//! Conversions between types and between address spaces.

use super::float::rounding_of;
use super::{Decoded, Decoder};
use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::float::*;
use crate::interpreter::half::*;
use crate::interpreter::integer::{Add, Move, Resize, ResizeSaturating, Subtract};
use crate::operation::LaneFunction;
use crate::ptx::ast::Instruction;
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};

type Lanes = [LaneFunction; 2];

/// The integer type of a conversion's side.
fn integer_of(scalar_type: T) -> Option<T> {
    Some(match scalar_type {
        T::B8 => T::U8,
        T::B16 => T::U16,
        T::B32 => T::U32,
        T::B64 => T::U64,
        T::U8 | T::S8 | T::U16 | T::S16 | T::U32 | T::S32 | T::U64 | T::S64 => scalar_type,
        _ => return None,
    })
}

macro_rules! by_type {
    ($type:expr, |$t:ident| $value:expr) => {
        match $type {
            T::U8 => {
                type $t = u8;
                $value
            }
            T::S8 => {
                type $t = i8;
                $value
            }
            T::U16 => {
                type $t = u16;
                $value
            }
            T::S16 => {
                type $t = i16;
                $value
            }
            T::U32 => {
                type $t = u32;
                $value
            }
            T::S32 => {
                type $t = i32;
                $value
            }
            T::U64 => {
                type $t = u64;
                $value
            }
            _ => {
                type $t = i64;
                $value
            }
        }
    };
}

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

fn conversion_lanes(instruction: &Instruction, to: T, from: T) -> Option<(Lanes, u32)> {
    let rounding = rounding_of(instruction);
    let saturating = instruction.has(M::Sat);
    let flush = instruction.has(M::Ftz);
    if instruction.has(M::Relu) || instruction.has(M::Satfinite) || instruction.has(M::Rna) || instruction.has(M::Rs) {
        return None;
    }
    let integral =
        instruction.has(M::Rni) || instruction.has(M::Rzi) || instruction.has(M::Rmi) || instruction.has(M::Rpi);
    let directed = rounding | u32::from(flush) << 2;
    Some(match (integer_of(to), integer_of(from)) {
        (Some(to), Some(from)) if saturating => {
            (by_type!(from, |A| by_type!(to, |D| functions::<Map<ResizeSaturating<A, D>>>())), 0)
        }
        (Some(to), Some(from)) => (by_type!(from, |A| by_type!(to, |D| functions::<Map<Resize<A, D>>>())), 0),
        (Some(to), None) => match from {
            T::F32 => (by_type!(to, |D| functions::<Map<SingleToInteger<D>>>()), directed),
            T::F64 => (by_type!(to, |D| functions::<Map<DoubleToInteger<D>>>()), rounding),
            T::F16 if to == T::S32 && rounding == rounding::ZERO => (functions::<Map<HalfToSigned>>(), 0),
            T::F16 if to == T::U32 && rounding == rounding::ZERO => (functions::<Map<HalfToUnsigned>>(), 0),
            _ => return None,
        },
        (None, Some(from)) => match to {
            _ if saturating => return None,
            T::F32 => (by_type!(from, |A| functions::<Map<IntegerToSingle<A>>>()), rounding),
            T::F64 => (by_type!(from, |A| functions::<Map<IntegerToDouble<A>>>()), rounding),
            T::F16 if from == T::S32 && rounding == rounding::NEAREST => (functions::<Map<SignedToHalf>>(), 0),
            T::F16 if from == T::U32 && rounding == rounding::NEAREST => (functions::<Map<UnsignedToHalf>>(), 0),
            _ => return None,
        },
        (None, None) => match (to, from) {
            (T::F32, T::F32) if !integral => (single!(KeepF32, flush, saturating), 0),
            (T::F32, T::F32) => (
                match rounding {
                    rounding::ZERO => single!(TruncateF32, flush, saturating),
                    rounding::DOWN => single!(FloorF32, flush, saturating),
                    rounding::UP => single!(CeilingF32, flush, saturating),
                    _ => single!(RoundF32, flush, saturating),
                },
                0,
            ),
            (T::F64, T::F64) => (
                match rounding {
                    _ if !integral => functions::<Map<Double<KeepF64>>>(),
                    rounding::ZERO => functions::<Map<Double<TruncateF64>>>(),
                    rounding::DOWN => functions::<Map<Double<FloorF64>>>(),
                    rounding::UP => functions::<Map<Double<CeilingF64>>>(),
                    _ => functions::<Map<Double<RoundF64>>>(),
                },
                u32::from(saturating),
            ),
            (T::F64, T::F32) if !saturating => (functions::<Map<Widen>>(), u32::from(flush)),
            (T::F32, T::F64) if rounding == rounding::NEAREST && !flush && !saturating => {
                (functions::<Map<Narrow>>(), 0)
            }
            (T::F32, T::F64) => (functions::<Map<NarrowDirected>>(), directed | u32::from(saturating) << 3),
            _ if saturating => return None,
            (T::F32, T::F16) => (functions::<Map<HalfToSingle>>(), 0),
            (T::F64, T::F16) => (functions::<Map<HalfToDouble>>(), 0),
            (T::F16, T::F32) if rounding == rounding::NEAREST => (functions::<Map<SingleToHalf>>(), u32::from(flush)),
            (T::F16, T::F64) if rounding == rounding::NEAREST => (functions::<Map<DoubleToHalf>>(), 0),
            (T::F32, T::Bf16) => (functions::<Map<BrainToSingle>>(), 0),
            (T::Bf16, T::F32) if rounding == rounding::NEAREST && !flush => (functions::<Map<SingleToBrain>>(), 0),
            _ => return None,
        },
    })
}

impl Decoder<'_> {
    /// `cvt` and `cvta`; false where the form is not supported.
    pub(super) fn conversion(&mut self, instruction: &Instruction) -> Decoded<bool> {
        match instruction.opcode {
            O::Cvt => {
                let [to, from] = instruction.types[..] else { return Ok(false) };
                let Some((lanes, immediate)) = conversion_lanes(instruction, to, from) else { return Ok(false) };
                self.emit(instruction, lanes, immediate, to, &[from])?;
                Ok(true)
            }
            O::Cvta => {
                let data_type = instruction.types[0];
                let window = match instruction.state_space() {
                    Some(StateSpace::Shared | StateSpace::SharedCta | StateSpace::SharedCluster) => SHARED_WINDOW,
                    Some(StateSpace::Local) => LOCAL_WINDOW,
                    Some(StateSpace::Parameter | StateSpace::KernelParameter) => PARAMETER_WINDOW,
                    Some(StateSpace::Global | StateSpace::Constant) => 0,
                    _ => return Ok(false),
                };
                if data_type.bits() != 64 {
                    return Ok(false);
                }
                let lanes = match (window, instruction.has(M::To)) {
                    (0, _) => functions::<Map<Move<u64>>>(),
                    (_, false) => functions::<Map<Add<u64>>>(),
                    (_, true) => functions::<Map<Subtract<u64>>>(),
                };
                self.emit(instruction, lanes, 0, data_type, &[data_type])?;
                if window != 0 {
                    let base = self.constant(window, true);
                    self.last().sources[1] = base;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
