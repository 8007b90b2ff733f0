//! Floating-point arithmetic: single and double precision, half precision, bfloat16, and pairs of them.

use super::float_rules::check;
use super::{Decoded, Decoder};
use crate::interpreter::bodies::*;
use crate::interpreter::compare::{SetPredicate, combine};
use crate::interpreter::floating_point::directed::*;
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::float_forms::*;
use crate::interpreter::floating_point::half_arithmetic::*;
use crate::operation::LaneFunction;
use crate::ptx::ast::{Instruction, OperandKind};
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
    ($operation:ident, $flush:expr) => {
        if $flush {
            functions::<Map<Single<$operation, true, false>>>()
        } else {
            functions::<Map<Single<$operation, false, false>>>()
        }
    };
}
macro_rules! single_pair {
    ($operation:ident, $flush:expr) => {
        if $flush {
            functions::<Map<SinglePair<$operation, true>>>()
        } else {
            functions::<Map<SinglePair<$operation, false>>>()
        }
    };
}
macro_rules! mixed {
    ($body:ident, $operation:ident, $from:expr, $saturate:expr) => {
        match ($from, $saturate) {
            (T::F16, false) => functions::<Map<$body<$operation, F16, false>>>(),
            (T::F16, true) => functions::<Map<$body<$operation, F16, true>>>(),
            (_, false) => functions::<Map<$body<$operation, Brain, false>>>(),
            (_, true) => functions::<Map<$body<$operation, Brain, true>>>(),
        }
    };
}
macro_rules! half {
    ($type:expr, $mode:expr, $half:ident, $brain:ident) => {
        match ($type, $mode) {
            (T::F16, 0) => functions::<Map<Half<$half, F16, true>>>(),
            (T::F16, _) => functions::<Map<Half<$half, F16, false>>>(),
            (T::F16x2, 0) => functions::<Map<HalfPair<$half, F16, true>>>(),
            (T::F16x2, _) => functions::<Map<HalfPair<$half, F16, false>>>(),
            (T::Bf16, 0) => functions::<Map<Half<$brain, Brain, true>>>(),
            (T::Bf16, _) => functions::<Map<Half<$brain, Brain, false>>>(),
            (_, 0) => functions::<Map<HalfPair<$brain, Brain, true>>>(),
            _ => functions::<Map<HalfPair<$brain, Brain, false>>>(),
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

/// The modifiers of an instruction, besides its operation.
struct Form {
    opcode: O,
    rounding: u32,
    near: bool,
    flush: bool,
    saturate: bool,
    approximate: bool,
    operands: usize,
    extremum: u32,
}

impl Decoder<'_> {
    /// Floating-point arithmetic; false where the form is not supported.
    pub(super) fn float(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        // Before PTX 1.4 the words were left out; GPUs of compute capability 1 flush subnormal singles always.
        let is_old = self.module.version < (1, 4);
        let always_flushes = self.module.targets.iter().any(|target| target.len() == 5 && target.starts_with("sm_1"));
        if !check(instruction, data_type, is_old)? {
            return Ok(false);
        }
        if instruction.opcode == O::Testp {
            return self.class_test(instruction, data_type);
        }
        let has = |modifier| instruction.has(modifier);
        let rounding = rounding_of(instruction);
        let flag = |modifier, bit| if has(modifier) { bit } else { 0 };
        let form = Form {
            opcode: instruction.opcode,
            rounding,
            near: rounding == rounding::NEAREST,
            flush: has(M::Ftz) || (always_flushes && data_type == T::F32),
            saturate: has(M::Sat),
            approximate: has(M::Approx) || (is_old && data_type == T::F32 && !has(M::Full) && !has(M::Rn)),
            operands: instruction.operands.len(),
            extremum: flag(M::NaN, extremum_mode::NAN)
                | flag(M::AbsoluteValue, extremum_mode::ABSOLUTE)
                | flag(M::XorSign, extremum_mode::XOR_SIGN)
                | flag(M::Ftz, extremum_mode::FLUSH)
                | if instruction.opcode == O::Max { extremum_mode::MAXIMUM } else { 0 },
        };
        let relu = has(M::Relu);
        let second = instruction.types.get(1).copied();
        let lanes = match (data_type, second) {
            (T::F32, Some(from)) => mixed_lanes(&form, from),
            (T::F32, None) => single_lanes(&form),
            (T::F64, None) => double_lanes(&form),
            (T::F32x2, None) => single_pair_lanes(&form),
            (T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2, None) => half_lanes(&form, data_type, relu),
            _ => None,
        };
        let Some((lanes, immediate)) = lanes else { return Ok(false) };
        let sources = instruction.operands.len().saturating_sub(1).min(3);
        let mut from = [data_type; 3];
        if let Some(second) = second {
            // The last operand is the single that is added to.
            from[..sources - 1].fill(second);
        }
        self.emit(instruction, lanes, immediate, data_type, &from[..sources])?;
        Ok(true)
    }

    /// `testp`
    fn class_test(&mut self, instruction: &Instruction, data_type: T) -> Decoded<bool> {
        let classes = instruction.modifiers.iter().find_map(|modifier| match modifier {
            M::Finite => Some(class::NORMAL | class::SUBNORMAL),
            M::Infinite => Some(class::INFINITE),
            M::Number => Some(class::NORMAL | class::SUBNORMAL | class::INFINITE),
            M::NotANumber => Some(class::NAN),
            M::Normal => Some(class::NORMAL),
            M::Subnormal => Some(class::SUBNORMAL),
            _ => None,
        });
        let Some(classes) = classes else { return Ok(false) };
        let wide = data_type == T::F64;
        let lanes =
            if wide { functions::<SetPredicate<DoubleClass>>() } else { functions::<SetPredicate<SingleClass>>() };
        let value = self.source(self.operand(instruction, 1)?, data_type)?;
        let classes = self.constant(classes, wide);
        let destination = self.operand(instruction, 0)?;
        if let OperandKind::Register(register) = destination.kind
            && self.widths[register.index()] != crate::liveness::Width::Predicate
        {
            return Err(self.bad(destination, "a predicate is expected here"));
        }
        let destination = self.destination(destination)?;
        self.start(instruction.span, super::timing::cost(instruction));
        let last = self.last();
        last.instruction.functions = lanes;
        last.instruction.immediate = combine::NONE;
        last.sources[0] = value;
        last.sources[1] = classes;
        last.predicate_destinations[0] = destination;
        Ok(true)
    }
}

fn single_lanes(form: &Form) -> Option<(Lanes, u32)> {
    let &Form { flush, saturate, near, approximate, .. } = form;
    let lanes = match form.opcode {
        O::Add if near => single!(AddF32, flush, saturate),
        O::Add => single!(AddDirectedF32, flush, saturate),
        O::Sub if near => single!(SubtractF32, flush, saturate),
        O::Sub => single!(SubtractDirectedF32, flush, saturate),
        O::Mul if near => single!(MultiplyF32, flush, saturate),
        O::Mul => single!(MultiplyDirectedF32, flush, saturate),
        O::Fma | O::Mad if near => single!(FusedF32, flush, saturate),
        O::Fma | O::Mad => single!(FusedDirectedF32, flush, saturate),
        O::Div if approximate => single!(DivideApproximateF32, flush),
        O::Div if near => single!(DivideF32, flush),
        O::Div => single!(DivideDirectedF32, flush),
        O::Rcp if near => single!(ReciprocalF32, flush),
        O::Rcp => single!(ReciprocalDirectedF32, flush),
        O::Sqrt if near => single!(SquareRootF32, flush),
        O::Sqrt => single!(SquareRootDirectedF32, flush),
        O::Rsqrt => single!(ReciprocalRootF32, flush),
        O::Sin => single!(SineF32, flush),
        O::Cos => single!(CosineF32, flush),
        O::Ex2 => single!(PowerOfTwoF32, flush),
        O::Lg2 => single!(BinaryLogarithmF32, flush),
        O::Tanh => single!(HyperbolicTangentF32, flush),
        O::Min | O::Max if form.operands == 4 => {
            return Some((functions::<Map<SingleExtremum<true>>>(), form.extremum));
        }
        O::Min | O::Max if form.extremum & extremum_mode::XOR_SIGN != 0 => {
            return Some((functions::<Map<SingleExtremum<false>>>(), form.extremum));
        }
        O::Min if form.extremum & extremum_mode::NAN != 0 => single!(MinimumNanF32, flush),
        O::Max if form.extremum & extremum_mode::NAN != 0 => single!(MaximumNanF32, flush),
        O::Min => single!(MinimumF32, flush),
        O::Max => single!(MaximumF32, flush),
        O::Neg => single!(NegateF32, flush),
        O::Abs => single!(AbsoluteF32, flush),
        O::Copysign => functions::<Map<CopySignF32>>(),
        _ => return None,
    };
    Some((lanes, form.rounding))
}

fn double_lanes(form: &Form) -> Option<(Lanes, u32)> {
    let near = form.near;
    let lanes = match form.opcode {
        O::Rcp if form.approximate => functions::<Map<ReciprocalHighF64>>(),
        O::Rsqrt if form.flush => functions::<Map<ReciprocalRootHighF64>>(),
        O::Rsqrt => functions::<Map<Double<ReciprocalRootF64>>>(),
        O::Add if near => functions::<Map<Double<AddF64>>>(),
        O::Add => functions::<Map<Directed<AddDirectedF64>>>(),
        O::Sub if near => functions::<Map<Double<SubtractF64>>>(),
        O::Sub => functions::<Map<Directed<SubtractDirectedF64>>>(),
        O::Mul if near => functions::<Map<Double<MultiplyF64>>>(),
        O::Mul => functions::<Map<Directed<MultiplyDirectedF64>>>(),
        O::Fma | O::Mad if near => functions::<Map<Double<FusedF64>>>(),
        O::Fma | O::Mad => functions::<Map<Directed<FusedDirectedF64>>>(),
        O::Div if near => functions::<Map<Double<DivideF64>>>(),
        O::Div => functions::<Map<Directed<DivideDirectedF64>>>(),
        O::Rcp if near => functions::<Map<Double<ReciprocalF64>>>(),
        O::Rcp => functions::<Map<Directed<ReciprocalDirectedF64>>>(),
        O::Sqrt if near => functions::<Map<Double<SquareRootF64>>>(),
        O::Sqrt => functions::<Map<Directed<SquareRootDirectedF64>>>(),
        O::Min => functions::<Map<ExtremumF64<false>>>(),
        O::Max => functions::<Map<ExtremumF64<true>>>(),
        O::Neg => functions::<Map<NegateF64>>(),
        O::Abs => functions::<Map<AbsoluteF64>>(),
        O::Copysign => functions::<Map<CopySignF64>>(),
        _ => return None,
    };
    // The immediate of the operations that round to nearest says whether to saturate.
    Some((lanes, form.rounding))
}

fn single_pair_lanes(form: &Form) -> Option<(Lanes, u32)> {
    let &Form { flush, near, .. } = form;
    let lanes = match form.opcode {
        O::Add if near => single_pair!(AddF32, flush),
        O::Add => single_pair!(AddDirectedF32, flush),
        O::Sub if near => single_pair!(SubtractF32, flush),
        O::Sub => single_pair!(SubtractDirectedF32, flush),
        O::Mul if near => single_pair!(MultiplyF32, flush),
        O::Mul => single_pair!(MultiplyDirectedF32, flush),
        O::Fma if near => single_pair!(FusedF32, flush),
        O::Fma => single_pair!(FusedDirectedF32, flush),
        _ => return None,
    };
    Some((lanes, form.rounding))
}

fn mixed_lanes(form: &Form, from: T) -> Option<(Lanes, u32)> {
    let saturate = form.saturate;
    let lanes = match form.opcode {
        O::Add => mixed!(Mixed, AddDirectedF32, from, saturate),
        O::Sub => mixed!(Mixed, SubtractDirectedF32, from, saturate),
        O::Fma => mixed!(MixedFused, FusedDirectedF32, from, saturate),
        _ => return None,
    };
    Some((lanes, form.rounding))
}

fn half_lanes(form: &Form, data_type: T, relu: bool) -> Option<(Lanes, u32)> {
    let is_pair = matches!(data_type, T::F16x2 | T::Bf16x2);
    let is_brain = matches!(data_type, T::Bf16 | T::Bf16x2);
    let signs = if is_pair { 0x8000_8000 } else { 0x8000 };
    let flag = |truth, bit| if truth { bit } else { 0 };
    let mode =
        flag(form.saturate, half_mode::SATURATE) | flag(relu, half_mode::RELU) | flag(form.flush, half_mode::FLUSH);
    Some(match form.opcode {
        O::Add => (half!(data_type, mode, AddHalf, AddHalf), mode),
        O::Sub => (half!(data_type, mode, SubtractHalf, SubtractHalf), mode),
        O::Mul => (half!(data_type, mode, MultiplyHalf, MultiplyHalf), mode),
        O::Fma => (half!(data_type, mode, FusedHalf, FusedBrain), mode),
        O::Ex2 => (half!(data_type, mode, PowerOfTwoHalf, PowerOfTwoHalf), mode),
        O::Tanh => (half!(data_type, mode, HyperbolicTangentHalf, HyperbolicTangentHalf), mode),
        O::Min | O::Max => {
            let lanes = match (is_brain, is_pair) {
                (false, false) => functions::<Map<Extremum<F16>>>(),
                (false, true) => functions::<Map<ExtremumPair<F16>>>(),
                (true, false) => functions::<Map<Extremum<Brain>>>(),
                (true, true) => functions::<Map<ExtremumPair<Brain>>>(),
            };
            (lanes, form.extremum)
        }
        O::Neg if form.flush => (functions::<Map<NegateHalfFlushed>>(), signs),
        O::Neg => (functions::<Map<NegateHalf>>(), signs),
        O::Abs if form.flush => (functions::<Map<AbsoluteHalfFlushed>>(), signs),
        O::Abs => (functions::<Map<AbsoluteHalf>>(), signs),
        _ => return None,
    })
}
