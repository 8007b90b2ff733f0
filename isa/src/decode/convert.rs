//! Conversions between types and between address spaces.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::execution::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::convert::{Conversion, Convert, ConvertPair, Extended, Mode, PackIntegers, Scalar};
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::half::*;
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

fn scalar_of(scalar_type: T) -> Option<Scalar> {
    Some(match scalar_type {
        T::F16 => Scalar::F16,
        T::Bf16 => Scalar::Bf16,
        T::Tf32 => Scalar::Tf32,
        T::F32 => Scalar::F32,
        T::F64 => Scalar::F64,
        other => match integer_of(other)? {
            T::U8 => Scalar::U8,
            T::S8 => Scalar::S8,
            T::U16 => Scalar::U16,
            T::S16 => Scalar::S16,
            T::U32 => Scalar::U32,
            T::S32 => Scalar::S32,
            T::U64 => Scalar::U64,
            _ => Scalar::S64,
        },
    })
}

/// The type of each value of a packed pair.
fn half_of_pair(scalar_type: T) -> Option<Scalar> {
    Some(match scalar_type {
        T::F16x2 => Scalar::F16,
        T::Bf16x2 => Scalar::Bf16,
        T::E4m3x2 => Scalar::E4m3,
        T::E5m2x2 => Scalar::E5m2,
        T::E2m3x2 => Scalar::E2m3,
        T::E3m2x2 => Scalar::E3m2,
        T::E2m1x2 => Scalar::E2m1,
        _ => return None,
    })
}

/// The rounding that an instruction names.
fn mode_of(instruction: &Instruction) -> Option<Mode> {
    instruction.modifiers.iter().find_map(|modifier| {
        Some(match modifier {
            M::Rn | M::Rni => Mode::Nearest,
            M::Rz | M::Rzi => Mode::Zero,
            M::Rm | M::Rmi => Mode::Down,
            M::Rp | M::Rpi => Mode::Up,
            M::Rna => Mode::NearestAway,
            M::Rs => Mode::Stochastic,
            _ => return None,
        })
    })
}

/// The conversion of one value to another; `None` where PTX has no such conversion.
fn conversion_of(instruction: &Instruction, to: T, from: T) -> Option<Conversion> {
    let (to, from) = (scalar_of(to)?, scalar_of(from)?);
    let is_integer = |scalar: Scalar| (scalar as u8) < Scalar::F16 as u8;
    let integral =
        instruction.has(M::Rni) || instruction.has(M::Rzi) || instruction.has(M::Rmi) || instruction.has(M::Rpi);
    // Old code leaves the rounding out: integers are cut off, other results rounded to nearest.
    let mode = mode_of(instruction).unwrap_or(if is_integer(to) { Mode::Zero } else { Mode::Nearest });
    let conversion = Conversion {
        from,
        to,
        mode,
        flushes: instruction.has(M::Ftz),
        saturates: instruction.has(M::Sat),
        is_finite: instruction.has(M::Satfinite),
        is_positive: instruction.has(M::Relu),
        is_integral: integral && !is_integer(to) && to == from,
        is_packed: false,
    };
    let is_alternate = conversion.is_finite || conversion.is_positive || to == Scalar::Tf32;
    let exists = match mode {
        _ if from == Scalar::Tf32 => false,
        Mode::Stochastic => false,
        Mode::NearestAway => to == Scalar::Tf32 && from == Scalar::F32,
        Mode::Down | Mode::Up if is_alternate => false,
        _ if is_alternate => from == Scalar::F32 && matches!(to, Scalar::F16 | Scalar::Bf16 | Scalar::Tf32),
        _ => true,
    };
    exists.then_some(conversion)
}

/// The function of a conversion that kernels use often; `None` for others.
fn fast_lanes(conversion: &Conversion, to: T, from: T) -> Option<(Lanes, u32)> {
    let Conversion { mode, flushes: flush, saturates, is_finite, is_positive, is_integral: integral, .. } = *conversion;
    if is_finite || is_positive || matches!(mode, Mode::NearestAway | Mode::Stochastic) {
        return None;
    }
    let rounding = mode as u32;
    let directed = rounding | u32::from(flush) << 2;
    Some(match (integer_of(to), integer_of(from)) {
        (Some(T::S16), Some(from)) if saturates => {
            (by_type!(from, |A| functions::<Map<Extended<ResizeSaturating<A, i16>>>>()), 0)
        }
        (Some(T::S16), Some(from)) => (by_type!(from, |A| functions::<Map<Extended<Resize<A, i16>>>>()), 0),
        (Some(to), Some(from)) if saturates => {
            (by_type!(from, |A| by_type!(to, |D| functions::<Map<ResizeSaturating<A, D>>>())), 0)
        }
        (Some(to), Some(from)) => (by_type!(from, |A| by_type!(to, |D| functions::<Map<Resize<A, D>>>())), 0),
        (Some(T::S16), None) => match from {
            T::F32 => (functions::<Map<Extended<SingleToInteger<i16>>>>(), directed),
            T::F64 => (functions::<Map<Extended<DoubleToInteger<i16>>>>(), rounding),
            _ => return None,
        },
        (Some(to), None) => match from {
            T::F32 => (by_type!(to, |D| functions::<Map<SingleToInteger<D>>>()), directed),
            T::F64 => (by_type!(to, |D| functions::<Map<DoubleToInteger<D>>>()), rounding),
            T::F16 if to == T::S32 && rounding == rounding::ZERO => (functions::<Map<HalfToSigned>>(), 0),
            T::F16 if to == T::U32 && rounding == rounding::ZERO => (functions::<Map<HalfToUnsigned>>(), 0),
            _ => return None,
        },
        (None, Some(from)) => match to {
            _ if saturates => return None,
            T::F32 => (by_type!(from, |A| functions::<Map<IntegerToSingle<A>>>()), rounding),
            T::F64 => (by_type!(from, |A| functions::<Map<IntegerToDouble<A>>>()), rounding),
            T::F16 if from == T::S32 && rounding == rounding::NEAREST => (functions::<Map<SignedToHalf>>(), 0),
            T::F16 if from == T::U32 && rounding == rounding::NEAREST => (functions::<Map<UnsignedToHalf>>(), 0),
            _ => return None,
        },
        (None, None) => match (to, from) {
            (T::F32, T::F32) if !integral => (single!(KeepF32, flush, saturates), 0),
            (T::F32, T::F32) => (
                match rounding {
                    rounding::ZERO => single!(TruncateF32, flush, saturates),
                    rounding::DOWN => single!(FloorF32, flush, saturates),
                    rounding::UP => single!(CeilingF32, flush, saturates),
                    _ => single!(RoundF32, flush, saturates),
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
                u32::from(saturates),
            ),
            (T::F64, T::F32) if !saturates => (functions::<Map<Widen>>(), u32::from(flush)),
            (T::F32, T::F64) if rounding == rounding::NEAREST && !flush && !saturates => {
                (functions::<Map<Narrow>>(), 0)
            }
            (T::F32, T::F64) => (functions::<Map<NarrowDirected>>(), directed | u32::from(saturates) << 3),
            _ if saturates => return None,
            (T::F32, T::F16) => (functions::<Map<HalfToSingle>>(), 0),
            (T::F64, T::F16) => (functions::<Map<HalfToDouble>>(), 0),
            (T::F16, T::F32) if rounding == rounding::NEAREST => (functions::<Map<SingleToHalf>>(), u32::from(flush)),
            (T::F16, T::F64) if rounding == rounding::NEAREST => (functions::<Map<DoubleToHalf>>(), 0),
            (T::F32, T::Bf16) if !flush => (functions::<Map<BrainToSingle>>(), 0),
            (T::Bf16, T::F32) if rounding == rounding::NEAREST && !flush => (functions::<Map<SingleToBrain>>(), 0),
            _ => return None,
        },
    })
}

impl Decoder<'_> {
    /// `cvt` and `cvta`; false where the form is not supported.
    pub(super) fn conversion(&mut self, instruction: &Instruction) -> Decoded<bool> {
        match instruction.opcode {
            O::Cvt if instruction.has(M::Pack) => self.pack_integers(instruction),
            O::Cvt => {
                let [to, from] = instruction.types[..] else { return Ok(false) };
                if half_of_pair(to).is_some() {
                    return self.pair(instruction, to, from);
                }
                let Some(conversion) = conversion_of(instruction, to, from) else { return Ok(false) };
                if instruction.operands.len() != 2 {
                    return Ok(false);
                }
                let general = || (functions::<Convert>(), conversion.pack());
                let (lanes, immediate) = fast_lanes(&conversion, to, from).unwrap_or_else(general);
                self.emit(instruction, lanes, immediate, to, &[from])?;
                Ok(true)
            }
            O::Cvta => {
                let data_type = instruction.types[0];
                let window = match instruction.state_space() {
                    // A cluster is one CTA: its shared memory is the CTA's own.
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

    /// Two values to a packed pair, from two registers or from one; false where PTX has no such form.
    fn pair(&mut self, instruction: &Instruction, to: T, from: T) -> Decoded<bool> {
        let (Some(result), Some(mode)) = (half_of_pair(to), mode_of(instruction)) else { return Ok(false) };
        let is_half = |scalar: Scalar| matches!(scalar, Scalar::F16 | Scalar::Bf16);
        let is_finite = instruction.has(M::Satfinite);
        let source = half_of_pair(from);
        let count = instruction.operands.len();
        let exists = match (source, mode) {
            (None, Mode::Nearest | Mode::Zero) if is_half(result) => from == T::F32 && count == 3,
            (None, Mode::Stochastic) if is_half(result) => from == T::F32 && count == 4,
            (None, Mode::Nearest) => from == T::F32 && count == 3 && is_finite,
            (Some(source), Mode::Nearest) if is_half(source) => !is_half(result) && count == 2 && is_finite,
            (Some(_), Mode::Nearest) => result == Scalar::F16 && count == 2 && !is_finite,
            _ => false,
        };
        if !exists || instruction.has(M::ScaledN2Ue8m0) || instruction.has(M::Sat) {
            return Ok(false);
        }
        let mut sources = [Slot::None; 5];
        let types = if source.is_some() { [from, T::B32, T::B32] } else { [T::F32, T::F32, T::B32] };
        for (index, scalar_type) in types.into_iter().enumerate().take(count - 1) {
            sources[index] = self.source(self.operand(instruction, index + 1)?, scalar_type)?;
        }
        let conversion = Conversion {
            from: source.unwrap_or(Scalar::F32),
            to: result,
            mode,
            flushes: instruction.has(M::Ftz),
            saturates: false,
            is_finite,
            is_positive: instruction.has(M::Relu),
            is_integral: false,
            is_packed: source.is_some(),
        };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.instruction.functions = functions::<ConvertPair>();
        last.instruction.immediate = conversion.pack();
        self.set_destination(self.operand(instruction, 0)?, to)?;
        Ok(true)
    }

    /// `cvt.pack`
    fn pack_integers(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let (bits, has_third) = match instruction.types[..] {
            [T::U16 | T::S16, T::S32] => (16, false),
            [T::U8 | T::S8, T::S32, T::B32] => (8, true),
            [T::U4 | T::S4, T::S32, T::B32] => (4, true),
            [T::U2 | T::S2, T::S32, T::B32] => (2, true),
            _ => return Ok(false),
        };
        if !instruction.has(M::Sat) || instruction.operands.len() != 3 + usize::from(has_third) {
            return Ok(false);
        }
        let immediate = bits | u32::from(instruction.types[0].is_signed_integer()) << 8;
        let types = [T::S32, T::S32, T::B32];
        self.emit(
            instruction,
            functions::<Map<PackIntegers>>(),
            immediate,
            T::B32,
            &types[..2 + usize::from(has_third)],
        )?;
        Ok(true)
    }
}
