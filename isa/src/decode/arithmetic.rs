//! Integer arithmetic, logic, shifts and bit fields.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::*;
use crate::interpreter::carry::{Carry, Insert, MultiplyCarry, flag, half_of_product};
use crate::interpreter::compare::{TestNonZero, combine};
use crate::interpreter::integer::{self as i, permute_mode};
use crate::interpreter::packed::*;
use crate::liveness::Width;
use crate::operation::LaneFunction;
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::ast::{Instruction, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

type Lanes = [LaneFunction; 2];

/// The functions of a generic integer operation for a type.
macro_rules! by_integer {
    ($type:expr, $operation:ident) => {
        match $type {
            T::U16 | T::B16 => Some(functions::<Map<i::$operation<u16>>>()),
            T::S16 => Some(functions::<Map<i::$operation<i16>>>()),
            T::U32 | T::B32 => Some(functions::<Map<i::$operation<u32>>>()),
            T::S32 => Some(functions::<Map<i::$operation<i32>>>()),
            T::U64 | T::B64 => Some(functions::<Map<i::$operation<u64>>>()),
            T::S64 => Some(functions::<Map<i::$operation<i64>>>()),
            _ => None,
        }
    };
}
/// The functions of an operation on packed integers.
macro_rules! by_packed {
    ($type:expr, $operation:ident) => {
        match $type {
            T::U16x2 => Some(functions::<Map<Packed<$operation, 16, false>>>()),
            T::S16x2 => Some(functions::<Map<Packed<$operation, 16, true>>>()),
            T::U8x4 => Some(functions::<Map<Packed<$operation, 8, false>>>()),
            T::S8x4 => Some(functions::<Map<Packed<$operation, 8, true>>>()),
            _ => None,
        }
    };
}

impl Decoder<'_> {
    /// Emits an instruction of a lane function: sources of the given types from operand 1 on, destination from operand 0.
    /// Conversions may have wider registers than their types; the operands of others are checked.
    pub(super) fn emit(
        &mut self,
        instruction: &Instruction,
        lanes: Lanes,
        immediate: u32,
        to: T,
        from: &[T],
    ) -> Decoded<()> {
        if !matches!(instruction.opcode, O::Cvt | O::Cvta) {
            self.check_operand_types(instruction, to, from)?;
        }
        let mut sources = [Slot::None; 5];
        for (index, scalar_type) in from.iter().enumerate() {
            let operand = self.operand(instruction, index + 1)?;
            sources[index] = self.source(operand, *scalar_type)?;
        }
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.instruction.functions = lanes;
        last.instruction.immediate = immediate;
        self.set_destination(self.operand(instruction, 0)?, to)
    }

    /// Arithmetic and logic; false where the form is not supported.
    pub(super) fn arithmetic(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if matches!(instruction.opcode, O::Elect | O::Griddepcontrol | O::Setmaxnreg) {
            return self.collective(instruction);
        }
        let Some(&data_type) = instruction.types.first() else { return Ok(false) };
        match instruction.opcode {
            O::Setp | O::Set => return self.comparison(instruction),
            O::Selp => return self.selection(instruction),
            O::Slct => return self.selection_by_sign(instruction),
            O::And | O::Or | O::Xor | O::Not if data_type == T::Pred => return self.predicate_logic(instruction),
            _ if super::video::is_video(instruction.opcode) => return self.video(instruction),
            _ if super::float::is_arithmetic(instruction.opcode, data_type) => return self.float(instruction),
            O::Bfi => return self.insertion(instruction),
            O::Lop3 => return self.logic3(instruction),
            O::Addc | O::Subc | O::Madc => return self.carry(instruction),
            O::Add | O::Sub | O::Mad if instruction.has(M::Cc) => return self.carry(instruction),
            _ => {}
        }
        let Some((lanes, immediate)) = integer_lanes(instruction, data_type) else { return Ok(false) };
        let shift = [data_type, T::U32];
        let wide = match data_type {
            T::S16 => T::S32,
            T::U16 => T::U32,
            T::S32 => T::S64,
            _ => T::U64,
        };
        let same = [data_type; 3];
        let sources = instruction.operands.len().saturating_sub(1).min(3);
        let extraction = [data_type, T::U32, T::U32];
        let widening = [data_type, data_type, wide];
        let funnel = [T::B32, T::B32, T::U32];
        let bits = [T::B32; 3];
        let (to, from): (T, &[T]) = match instruction.opcode {
            O::Shl | O::Shr | O::Szext => (data_type, &shift),
            O::Popc | O::Clz | O::Bfind => (T::U32, &same[..1]),
            O::Bfe => (data_type, &extraction),
            O::Bmsk => (T::B32, &bits[..2]),
            O::Mul | O::Mad if instruction.has(M::Wide) => (wide, &widening[..sources]),
            O::Shf => (T::B32, &funnel),
            O::Prmt | O::Fns | O::Dp4a | O::Dp2a => (T::B32, &bits),
            _ => (data_type, &same[..sources]),
        };
        self.emit(instruction, lanes, immediate, to, from)?;
        Ok(true)
    }

    fn insertion(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let lanes = match data_type {
            T::B32 => functions::<Insert<u32>>(),
            T::B64 => functions::<Insert<u64>>(),
            _ => return Ok(false),
        };
        let from = [data_type, data_type, T::U32, T::U32];
        self.emit(instruction, lanes, 0, data_type, &from)?;
        Ok(true)
    }

    /// `lop3`, with a predicate of the result's being non-zero where a boolean operator is given.
    fn logic3(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let table = self.operand(instruction, 4)?;
        let table = match table.kind {
            OperandKind::Integer(value) if value < 256 => value as u32,
            _ => return Err(self.bad(table, "the table of `lop3` is a literal from 0 to 255")),
        };
        let how = match () {
            () if instruction.has(M::And) => Some(combine::AND),
            () if instruction.has(M::Or) => Some(combine::OR),
            () => None,
        };
        let destination = self.operand(instruction, 0)?;
        let (value, predicate) = match (&destination.kind, how) {
            (OperandKind::Pair(value, predicate), Some(_)) => (*value, *predicate),
            (OperandKind::Register(value), None) => (Some(*value), None),
            (OperandKind::Sink, None) => (None, None),
            (_, Some(_)) => return Err(self.bad(destination, "`lop3` with `.and` or `.or` has a pair `d|p` here")),
            _ => return Err(self.bad(destination, "`lop3` has a pair here with `.and` or `.or` alone")),
        };
        let other = match how {
            Some(_) => self.predicate(self.operand(instruction, 5)?)?,
            None => (Slot::None, 0),
        };
        self.check_operand_types(instruction, T::B32, &[T::B32; 3])?;
        let mut sources = [Slot::None; 5];
        for (index, source) in sources.iter_mut().enumerate().take(3) {
            *source = self.source(self.operand(instruction, index + 1)?, T::B32)?;
        }
        let value = match value {
            Some(register) => register.0,
            None => self.new_register(Width::One),
        };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.destinations[0] = Slot::Register(value);
        last.instruction.functions = functions::<Map<i::Logic3>>();
        last.instruction.immediate = table;
        if let Some(how) = how {
            self.start(instruction.span, free());
            let last = self.last();
            last.sources[0] = Slot::Register(value);
            last.instruction.functions = functions::<TestNonZero>();
            last.instruction.immediate = how;
            last.predicate_sources[0] = other.0;
            last.instruction.predicate_flips[0] = other.1;
            last.predicate_destinations[0] = predicate.map_or(Slot::None, |register| Slot::Register(register.0));
        }
        Ok(true)
    }

    fn carry(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let wide = match data_type {
            T::U32 | T::S32 | T::B32 => false,
            T::U64 | T::S64 | T::B64 => true,
            _ => return Ok(false),
        };
        let signed = data_type.is_signed_integer();
        let half = match (instruction.has(M::Hi), signed) {
            (false, _) => half_of_product::LOW,
            (true, false) => half_of_product::HIGH_UNSIGNED,
            (true, true) => half_of_product::HIGH_SIGNED,
        };
        const LOW: u8 = half_of_product::LOW;
        const HIGH_UNSIGNED: u8 = half_of_product::HIGH_UNSIGNED;
        const HIGH_SIGNED: u8 = half_of_product::HIGH_SIGNED;
        let lanes = match (instruction.opcode, wide, half) {
            (O::Mad | O::Madc, false, LOW) => functions::<MultiplyCarry<u32, LOW>>(),
            (O::Mad | O::Madc, false, HIGH_UNSIGNED) => functions::<MultiplyCarry<u32, HIGH_UNSIGNED>>(),
            (O::Mad | O::Madc, false, _) => functions::<MultiplyCarry<u32, HIGH_SIGNED>>(),
            (O::Mad | O::Madc, true, LOW) => functions::<MultiplyCarry<u64, LOW>>(),
            (O::Mad | O::Madc, true, HIGH_UNSIGNED) => functions::<MultiplyCarry<u64, HIGH_UNSIGNED>>(),
            (O::Mad | O::Madc, true, _) => functions::<MultiplyCarry<u64, HIGH_SIGNED>>(),
            (_, false, _) => functions::<Carry<u32>>(),
            (_, true, _) => functions::<Carry<u64>>(),
        };
        let mut flags = if instruction.has(M::Cc) { flag::OUT } else { 0 };
        if matches!(instruction.opcode, O::Addc | O::Subc | O::Madc) {
            flags |= flag::IN;
        }
        if matches!(instruction.opcode, O::Sub | O::Subc) {
            flags |= flag::SUBTRACT;
        }
        let sources = instruction.operands.len().saturating_sub(1).min(3);
        let from = &[data_type; 3][..sources];
        self.emit(instruction, lanes, flags, data_type, from)?;
        Ok(true)
    }
}

/// The cost of an instruction that the GPU performs as part of another one.
pub(super) const fn free() -> super::timing::Cost {
    (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1)
}

/// Which bits of the immediate say that sources are signed.
fn signed_sources(instruction: &Instruction) -> u32 {
    let signed = |index: usize| u32::from(instruction.types.get(index) == Some(&T::S32));
    signed(0) | signed(1) << 1
}

fn packed_lanes(instruction: &Instruction, data_type: T) -> Option<(Lanes, u32)> {
    let lanes = match instruction.opcode {
        O::Add => by_packed!(data_type, AddParts)?,
        O::Sub => by_packed!(data_type, SubtractParts)?,
        O::Min => by_packed!(data_type, MinimumParts)?,
        O::Max => by_packed!(data_type, MaximumParts)?,
        O::Neg => by_packed!(data_type, NegateParts)?,
        _ => return None,
    };
    let saturate = if instruction.has(M::Sat) { limit::SATURATE } else { 0 };
    let relu = if instruction.has(M::Relu) { limit::RELU } else { 0 };
    Some((lanes, saturate | relu))
}

fn integer_lanes(instruction: &Instruction, data_type: T) -> Option<(Lanes, u32)> {
    if matches!(data_type, T::U16x2 | T::S16x2 | T::U8x4 | T::S8x4) {
        return packed_lanes(instruction, data_type);
    }
    let has = |modifier| instruction.has(modifier);
    let plain = |lanes| Some((lanes, 0));
    match instruction.opcode {
        O::Add | O::Sub | O::Mul | O::Mad | O::Mul24 | O::Mad24 | O::Sad | O::Div | O::Rem | O::Neg | O::Abs => {
            product_lanes(instruction, data_type)
        }
        _ if has(M::Ftz) || has(M::NaN) || has(M::XorSign) || has(M::AbsoluteValue) => None,
        O::Min if has(M::Relu) && data_type == T::S32 => plain(functions::<Map<i::MinimumRelu>>()),
        O::Max if has(M::Relu) && data_type == T::S32 => plain(functions::<Map<i::MaximumRelu>>()),
        O::Min | O::Max if has(M::Relu) || instruction.operands.len() != 3 || data_type.is_untyped_bits() => None,
        O::Min => plain(by_integer!(data_type, Minimum)?),
        O::Max => plain(by_integer!(data_type, Maximum)?),
        O::And => plain(by_integer!(data_type, And)?),
        O::Or => plain(by_integer!(data_type, Or)?),
        O::Xor => plain(by_integer!(data_type, Xor)?),
        O::Not => plain(by_integer!(data_type, Not)?),
        O::Cnot => plain(by_integer!(data_type, LogicalNot)?),
        O::Shl => plain(by_integer!(data_type, ShiftLeft)?),
        O::Shr => plain(by_integer!(data_type, ShiftRight)?),
        _ => bit_lanes(instruction, data_type),
    }
}

/// Arithmetic: types without a sign have none.
fn product_lanes(instruction: &Instruction, data_type: T) -> Option<(Lanes, u32)> {
    if data_type.is_untyped_bits() {
        return None;
    }
    let has = |modifier| instruction.has(modifier);
    let high = has(M::Hi);
    let lanes = match (instruction.opcode, data_type) {
        (O::Add, T::S32) if has(M::Sat) => functions::<Map<i::AddSaturating<i32>>>(),
        (O::Add, T::U32) if has(M::Sat) => functions::<Map<i::AddSaturating<u32>>>(),
        (O::Sub, T::S32) if has(M::Sat) => functions::<Map<i::SubtractSaturating<i32>>>(),
        (O::Sub, T::U32) if has(M::Sat) => functions::<Map<i::SubtractSaturating<u32>>>(),
        (O::Mad, T::S32) if has(M::Sat) && high => functions::<Map<i::MultiplyHighAddSaturating>>(),
        (O::Mad24, T::S32) if high => {
            return Some((functions::<Map<i::MultiplyAdd24HighS32>>(), u32::from(has(M::Sat))));
        }
        _ if has(M::Sat) => return None,
        (O::Add, _) => by_integer!(data_type, Add)?,
        (O::Sub, _) => by_integer!(data_type, Subtract)?,
        (O::Mul, T::S16) if has(M::Wide) => functions::<Map<i::MultiplyWideS16>>(),
        (O::Mul, T::U16) if has(M::Wide) => functions::<Map<i::MultiplyWideU16>>(),
        (O::Mul, T::S32) if has(M::Wide) => functions::<Map<i::MultiplyWideS32>>(),
        (O::Mul, T::U32) if has(M::Wide) => functions::<Map<i::MultiplyWideU32>>(),
        (O::Mad, T::S16) if has(M::Wide) => functions::<Map<i::MultiplyAddWideS16>>(),
        (O::Mad, T::U16) if has(M::Wide) => functions::<Map<i::MultiplyAddWideU16>>(),
        (O::Mad, T::S32) if has(M::Wide) => functions::<Map<i::MultiplyAddWideS32>>(),
        (O::Mad, T::U32) if has(M::Wide) => functions::<Map<i::MultiplyAddWideU32>>(),
        _ if has(M::Wide) => return None,
        (O::Mul, _) if high => by_integer!(data_type, MultiplyHigh)?,
        (O::Mul, _) => by_integer!(data_type, Multiply)?,
        (O::Mad, _) if high => by_integer!(data_type, MultiplyHighAdd)?,
        (O::Mad, _) => by_integer!(data_type, MultiplyAdd)?,
        (O::Mul24, T::S32) if high => functions::<Map<i::Multiply24HighS32>>(),
        (O::Mul24, T::U32) if high => functions::<Map<i::Multiply24HighU32>>(),
        (O::Mul24, T::S32) => functions::<Map<i::Multiply24S32>>(),
        (O::Mul24, T::U32) => functions::<Map<i::Multiply24U32>>(),
        (O::Mad24, T::U32) if high => functions::<Map<i::MultiplyAdd24HighU32>>(),
        (O::Mad24, T::S32) => functions::<Map<i::MultiplyAdd24S32>>(),
        (O::Mad24, T::U32) => functions::<Map<i::MultiplyAdd24U32>>(),
        (O::Div, _) => by_integer!(data_type, Divide)?,
        (O::Rem, _) => by_integer!(data_type, Remainder)?,
        (O::Neg, T::S16 | T::S32 | T::S64) => by_integer!(data_type, Negate)?,
        (O::Abs, T::S16 | T::S32 | T::S64) => by_integer!(data_type, Absolute)?,
        (O::Sad, _) => by_integer!(data_type, SumOfAbsoluteDifference)?,
        _ => return None,
    };
    Some((lanes, 0))
}

/// Counting, finding, extracting and permuting bits.
fn bit_lanes(instruction: &Instruction, data_type: T) -> Option<(Lanes, u32)> {
    let has = |modifier| instruction.has(modifier);
    let clamps = u32::from(has(M::Clamp));
    Some(match (instruction.opcode, data_type) {
        (O::Popc, T::B32) => (functions::<Map<i::PopulationCount32>>(), 0),
        (O::Popc, T::B64) => (functions::<Map<i::PopulationCount64>>(), 0),
        (O::Clz, T::B32) => (functions::<Map<i::LeadingZeros32>>(), 0),
        (O::Clz, T::B64) => (functions::<Map<i::LeadingZeros64>>(), 0),
        (O::Brev, T::B32) => (functions::<Map<i::Reverse32>>(), 0),
        (O::Brev, T::B64) => (functions::<Map<i::Reverse64>>(), 0),
        (O::Bfind, T::U32) => (functions::<Map<i::FindU32>>(), u32::from(has(M::ShiftAmount))),
        (O::Bfind, T::S32) => (functions::<Map<i::FindS32>>(), u32::from(has(M::ShiftAmount))),
        (O::Bfind, T::U64) => (functions::<Map<i::FindU64>>(), u32::from(has(M::ShiftAmount))),
        (O::Bfind, T::S64) => (functions::<Map<i::FindS64>>(), u32::from(has(M::ShiftAmount))),
        (O::Clmad, T::U64) if has(M::Hi) || has(M::Lo) => {
            (functions::<Map<i::CarrylessMultiplyAdd>>(), u32::from(has(M::Hi)))
        }
        (O::Fns, T::B32) => (functions::<Map<i::FindNthSet>>(), 0),
        (O::Bfe, T::U32) => (functions::<Map<i::ExtractU32>>(), 0),
        (O::Bfe, T::S32) => (functions::<Map<i::ExtractS32>>(), 0),
        (O::Bfe, T::U64) => (functions::<Map<i::ExtractU64>>(), 0),
        (O::Bfe, T::S64) => (functions::<Map<i::ExtractS64>>(), 0),
        (O::Szext, T::U32) => (functions::<Map<i::ExtendU32>>(), clamps),
        (O::Szext, T::S32) => (functions::<Map<i::ExtendS32>>(), clamps),
        (O::Bmsk, T::B32) if has(M::Clamp) => (functions::<Map<i::MaskClamp>>(), 0),
        (O::Bmsk, T::B32) => (functions::<Map<i::MaskWrap>>(), 0),
        (O::Shf, T::B32) if has(M::L) => (functions::<Map<i::FunnelLeft>>(), u32::from(has(M::Wrap))),
        (O::Shf, T::B32) if has(M::R) => (functions::<Map<i::FunnelRight>>(), u32::from(has(M::Wrap))),
        (O::Prmt, T::B32) => {
            let mode = instruction.modifiers.iter().find_map(|modifier| match modifier {
                M::F4e => Some(permute_mode::FORWARD),
                M::B4e => Some(permute_mode::BACKWARD),
                M::Rc8 => Some(permute_mode::REPLICATE8),
                M::Ecl => Some(permute_mode::EDGE_LEFT),
                M::Ecr => Some(permute_mode::EDGE_RIGHT),
                M::Rc16 => Some(permute_mode::REPLICATE16),
                _ => None,
            });
            (functions::<Map<i::Permute>>(), mode.unwrap_or(permute_mode::INDEX))
        }
        (O::Dp4a, _) => (functions::<Map<i::DotProduct4>>(), signed_sources(instruction)),
        (O::Dp2a, _) => (functions::<Map<i::DotProduct2>>(), signed_sources(instruction) | u32::from(has(M::Hi)) << 2),
        _ => return None,
    })
}
