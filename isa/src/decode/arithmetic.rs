//! Arithmetic, logic, comparison and selection.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::*;
use crate::interpreter::integer::{self as i, permute_mode};
use crate::operation::LaneFunction;
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
macro_rules! by_comparison {
    ($body:ident, $comparison:ident, $type:expr) => {
        match $type {
            T::U16 | T::B16 => Some(functions::<$body<i::$comparison<u16>>>()),
            T::S16 => Some(functions::<$body<i::$comparison<i16>>>()),
            T::U32 | T::B32 => Some(functions::<$body<i::$comparison<u32>>>()),
            T::S32 => Some(functions::<$body<i::$comparison<i32>>>()),
            T::U64 | T::B64 => Some(functions::<$body<i::$comparison<u64>>>()),
            T::S64 => Some(functions::<$body<i::$comparison<i64>>>()),
            T::F32 => Some(functions::<$body<i::$comparison<f32>>>()),
            T::F64 => Some(functions::<$body<i::$comparison<f64>>>()),
            _ => None,
        }
    };
}
macro_rules! by_any_comparison {
    ($body:ident, $modifier:expr, $type:expr) => {
        match $modifier {
            M::Eq => by_comparison!($body, Equal, $type),
            M::Ne if !$type.is_float() => by_comparison!($body, NotEqualOrUnordered, $type),
            M::Ne => by_comparison!($body, NotEqual, $type),
            M::Lt | M::Lo => by_comparison!($body, Less, $type),
            M::Le | M::Ls => by_comparison!($body, LessOrEqual, $type),
            M::Gt | M::Hi => by_comparison!($body, Greater, $type),
            M::Ge | M::Hs => by_comparison!($body, GreaterOrEqual, $type),
            M::Equ => by_comparison!($body, EqualOrUnordered, $type),
            M::Neu => by_comparison!($body, NotEqualOrUnordered, $type),
            M::Ltu => by_comparison!($body, LessOrUnordered, $type),
            M::Leu => by_comparison!($body, LessEqualOrUnordered, $type),
            M::Gtu => by_comparison!($body, GreaterOrUnordered, $type),
            M::Geu => by_comparison!($body, GreaterEqualOrUnordered, $type),
            M::Num => by_comparison!($body, Ordered, $type),
            M::Nan => by_comparison!($body, Unordered, $type),
            _ => None,
        }
    };
}

impl Decoder<'_> {
    /// Emits an instruction of a lane function: sources of the given types from operand 1 on, destination from operand 0.
    pub(super) fn emit(
        &mut self,
        instruction: &Instruction,
        lanes: Lanes,
        immediate: u32,
        to: T,
        from: &[T],
    ) -> Decoded<()> {
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
        let Some(&data_type) = instruction.types.first() else { return Ok(false) };
        match instruction.opcode {
            O::Setp | O::Set => return self.comparison(instruction),
            O::Selp => return self.selection(instruction),
            O::And | O::Or | O::Xor | O::Not if data_type == T::Pred => return self.predicate_logic(instruction),
            O::Bfi => return self.insertion(instruction),
            _ if super::float::is_arithmetic(instruction.opcode, data_type) => return self.float(instruction),
            O::Addc | O::Subc | O::Madc => return self.carry(instruction),
            O::Add | O::Sub | O::Mad if instruction.has(M::Cc) => return self.carry(instruction),
            _ => {}
        }
        let Some((lanes, immediate)) = self.lanes(instruction, data_type) else { return Ok(false) };
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
        let choice = [data_type, data_type, instruction.types.get(1).copied().unwrap_or(T::S32)];
        let bits = [T::B32; 3];
        let (to, from): (T, &[T]) = match instruction.opcode {
            O::Shl | O::Shr => (data_type, &shift),
            O::Popc | O::Clz | O::Bfind => (T::U32, &same[..1]),
            O::Bfe => (data_type, &extraction),
            O::Mul | O::Mad if instruction.has(M::Wide) => (wide, &widening[..sources]),
            O::Slct => (data_type, &choice),
            O::Lop3 | O::Prmt | O::Shf | O::Dp4a => (T::B32, &bits),
            _ => (data_type, &same[..sources]),
        };
        self.emit(instruction, lanes, immediate, to, from)?;
        Ok(true)
    }

    fn lanes(&mut self, instruction: &Instruction, data_type: T) -> Option<(Lanes, u32)> {
        let has = |modifier| instruction.has(modifier);
        let lanes = match instruction.opcode {
            O::Add if has(M::Sat) && data_type == T::S32 => functions::<Map<i::AddSaturating<i32>>>(),
            O::Sub if has(M::Sat) && data_type == T::S32 => functions::<Map<i::SubtractSaturating<i32>>>(),
            O::Mad if has(M::Sat) && has(M::Hi) && data_type == T::S32 => {
                functions::<Map<i::MultiplyHighAddSaturating>>()
            }
            _ if has(M::Sat) => return None,
            O::Add => by_integer!(data_type, Add)?,
            O::Sub => by_integer!(data_type, Subtract)?,
            O::Mul if has(M::Wide) => match data_type {
                T::S16 => functions::<Map<i::MultiplyWideS16>>(),
                T::U16 => functions::<Map<i::MultiplyWideU16>>(),
                T::S32 => functions::<Map<i::MultiplyWideS32>>(),
                T::U32 => functions::<Map<i::MultiplyWideU32>>(),
                _ => return None,
            },
            O::Mul if has(M::Hi) => by_integer!(data_type, MultiplyHigh)?,
            O::Mul => by_integer!(data_type, Multiply)?,
            O::Mad if has(M::Wide) => match data_type {
                T::S16 => functions::<Map<i::MultiplyAddWideS16>>(),
                T::U16 => functions::<Map<i::MultiplyAddWideU16>>(),
                T::S32 => functions::<Map<i::MultiplyAddWideS32>>(),
                T::U32 => functions::<Map<i::MultiplyAddWideU32>>(),
                _ => return None,
            },
            O::Mad if has(M::Hi) => by_integer!(data_type, MultiplyHighAdd)?,
            O::Mad => by_integer!(data_type, MultiplyAdd)?,
            O::Mul24 if !has(M::Hi) && data_type == T::S32 => functions::<Map<i::Multiply24S32>>(),
            O::Mul24 if !has(M::Hi) => functions::<Map<i::Multiply24U32>>(),
            O::Mad24 if !has(M::Hi) && data_type == T::S32 => functions::<Map<i::MultiplyAdd24S32>>(),
            O::Mad24 if !has(M::Hi) => functions::<Map<i::MultiplyAdd24U32>>(),
            O::Div => by_integer!(data_type, Divide)?,
            O::Rem => by_integer!(data_type, Remainder)?,
            O::Neg => by_integer!(data_type, Negate)?,
            O::Abs => by_integer!(data_type, Absolute)?,
            O::Min => by_integer!(data_type, Minimum)?,
            O::Max => by_integer!(data_type, Maximum)?,
            O::Sad => by_integer!(data_type, SumOfAbsoluteDifference)?,
            O::And => by_integer!(data_type, And)?,
            O::Or => by_integer!(data_type, Or)?,
            O::Xor => by_integer!(data_type, Xor)?,
            O::Not => by_integer!(data_type, Not)?,
            O::Cnot => by_integer!(data_type, LogicalNot)?,
            O::Shl => by_integer!(data_type, ShiftLeft)?,
            O::Shr => by_integer!(data_type, ShiftRight)?,
            O::Popc if data_type == T::B64 => functions::<Map<i::PopulationCount64>>(),
            O::Popc => functions::<Map<i::PopulationCount32>>(),
            O::Clz if data_type == T::B64 => functions::<Map<i::LeadingZeros64>>(),
            O::Clz => functions::<Map<i::LeadingZeros32>>(),
            O::Brev if data_type == T::B64 => functions::<Map<i::Reverse64>>(),
            O::Brev => functions::<Map<i::Reverse32>>(),
            O::Bfind => {
                let lanes = match data_type {
                    T::U32 => functions::<Map<i::FindU32>>(),
                    T::S32 => functions::<Map<i::FindS32>>(),
                    T::U64 => functions::<Map<i::FindU64>>(),
                    T::S64 => functions::<Map<i::FindS64>>(),
                    _ => return None,
                };
                return Some((lanes, u32::from(has(M::ShiftAmount))));
            }
            O::Bfe => match data_type {
                T::U32 => functions::<Map<i::ExtractU32>>(),
                T::S32 => functions::<Map<i::ExtractS32>>(),
                T::U64 => functions::<Map<i::ExtractU64>>(),
                T::S64 => functions::<Map<i::ExtractS64>>(),
                _ => return None,
            },
            O::Slct => match (data_type.bits(), instruction.types.get(1)) {
                (32, Some(T::S32)) => functions::<Map<i::SelectBySign<u32>>>(),
                (64, Some(T::S32)) => functions::<Map<i::SelectBySign<u64>>>(),
                (32, Some(T::F32)) => functions::<Map<i::SelectByFloatSign<u32>>>(),
                (64, Some(T::F32)) => functions::<Map<i::SelectByFloatSign<u64>>>(),
                _ => return None,
            },
            O::Lop3 if instruction.operands.len() == 5 => {
                let OperandKind::Integer(table) = instruction.operands[4].kind else { return None };
                return Some((functions::<Map<i::Logic3>>(), table as u32 & 0xff));
            }
            O::Shf => {
                let lanes =
                    if has(M::L) { functions::<Map<i::FunnelLeft>>() } else { functions::<Map<i::FunnelRight>>() };
                return Some((lanes, u32::from(has(M::Wrap))));
            }
            O::Prmt => {
                let mode = instruction.modifiers.iter().find_map(|modifier| match modifier {
                    M::F4e => Some(permute_mode::FORWARD),
                    M::B4e => Some(permute_mode::BACKWARD),
                    M::Rc8 => Some(permute_mode::REPLICATE8),
                    M::Ecl => Some(permute_mode::EDGE_LEFT),
                    M::Ecr => Some(permute_mode::EDGE_RIGHT),
                    M::Rc16 => Some(permute_mode::REPLICATE16),
                    _ => None,
                });
                return Some((functions::<Map<i::Permute>>(), mode.unwrap_or(permute_mode::INDEX)));
            }
            O::Bmsk if has(M::Clamp) => functions::<Map<i::MaskClamp>>(),
            O::Bmsk => functions::<Map<i::MaskWrap>>(),
            O::Dp4a => {
                let signed = |index: usize| u32::from(instruction.types.get(index) == Some(&T::S32));
                return Some((functions::<Map<i::DotProduct4>>(), signed(0) | signed(1) << 1));
            }
            _ => return None,
        };
        Some((lanes, 0))
    }

    fn comparison(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let is_set = instruction.opcode == O::Set;
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let Some(&comparison) =
            instruction.modifiers.iter().find(|modifier| modifier.is_comparison() || matches!(modifier, M::Lo | M::Hi))
        else {
            return Ok(false);
        };
        let lanes: Option<Lanes> = if is_set {
            by_any_comparison!(SetValue, comparison, data_type)
        } else {
            by_any_comparison!(SetPredicate, comparison, data_type)
        };
        let Some(lanes) = lanes else { return Ok(false) };
        if instruction.has(M::Ftz) && data_type == T::F32 && !instruction.operands.is_empty() {
            // Subnormals compare as zeros: not done.
            return Ok(false);
        }
        let how = instruction.modifiers.iter().find_map(|modifier| match modifier {
            M::And => Some(combine::AND),
            M::Or => Some(combine::OR),
            M::Xor => Some(combine::XOR),
            _ => None,
        });
        let a = self.source(self.operand(instruction, 1)?, data_type)?;
        let b = self.source(self.operand(instruction, 2)?, data_type)?;
        let other = if how.is_some() { self.predicate(self.operand(instruction, 3)?)? } else { (Slot::None, 0) };
        let ones = if is_set {
            let to = instruction.types[0];
            let value = match to {
                T::F32 => u64::from(1f32.to_bits()),
                T::U32 | T::S32 => u64::from(u32::MAX),
                _ => return Ok(false),
            };
            self.constant(value, false)
        } else {
            Slot::None
        };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.functions = lanes;
        last.instruction.immediate = how.unwrap_or(combine::NONE);
        last.sources = [a, b, ones, Slot::None, Slot::None];
        last.predicate_sources[0] = other.0;
        last.instruction.predicate_flips[0] = other.1;
        let destination = self.operand(instruction, 0)?;
        if is_set {
            self.set_destination(destination, T::U32)?;
        } else {
            let slot = |register: Option<crate::ptx::ast::RegisterId>| {
                register.map_or(Slot::None, |register| Slot::Register(register.0))
            };
            self.last().predicate_destinations = match destination.kind {
                OperandKind::Pair(first, second) => [slot(first), slot(second)],
                OperandKind::Register(register) => [slot(Some(register)), Slot::None],
                _ => [Slot::None; 2],
            };
        }
        Ok(true)
    }

    fn selection(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let lanes = if data_type.bits() == 64 { functions::<Select<u64>>() } else { functions::<Select<u32>>() };
        let predicate = self.predicate(self.operand(instruction, 3)?)?;
        self.emit(instruction, lanes, 0, data_type, &[data_type; 2])?;
        let last = self.last();
        last.predicate_sources[0] = predicate.0;
        last.instruction.predicate_flips[0] = predicate.1;
        Ok(true)
    }

    pub(super) fn predicate_logic(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let mut sources = [(Slot::None, 0); 2];
        for (index, source) in sources.iter_mut().enumerate().take(instruction.operands.len().saturating_sub(1)) {
            *source = self.predicate(self.operand(instruction, index + 1)?)?;
        }
        let how = match instruction.opcode {
            O::And => combine::AND,
            O::Or => combine::OR,
            O::Xor => combine::XOR,
            _ => combine::NONE,
        };
        if instruction.opcode == O::Not {
            sources[0].1 = !sources[0].1;
        }
        let destination = self.destination(self.operand(instruction, 0)?)?;
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.functions = functions::<PredicateLogic>();
        last.instruction.immediate = how;
        last.predicate_sources = sources.map(|source| source.0);
        last.instruction.predicate_flips = sources.map(|source| source.1);
        last.predicate_destinations[0] = destination;
        Ok(true)
    }

    fn insertion(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let lanes = if data_type.bits() == 64 { functions::<Insert<true>>() } else { functions::<Insert<false>>() };
        self.emit(instruction, lanes, 0, data_type, &[data_type, data_type, T::U32, T::U32])?;
        Ok(true)
    }

    fn carry(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let out = instruction.has(M::Cc);
        let wide = data_type.bits() == 64;
        let high = instruction.has(M::Hi);
        let signed = data_type == T::S32;
        let lanes = match (instruction.opcode, out, wide) {
            (O::Add, true, false) => functions::<Carry<false, true, false, false>>(),
            (O::Add, true, true) => functions::<Carry<false, true, false, true>>(),
            (O::Addc, false, false) => functions::<Carry<true, false, false, false>>(),
            (O::Addc, false, true) => functions::<Carry<true, false, false, true>>(),
            (O::Addc, true, false) => functions::<Carry<true, true, false, false>>(),
            (O::Addc, true, true) => functions::<Carry<true, true, false, true>>(),
            (O::Sub, true, false) => functions::<Carry<false, true, true, false>>(),
            (O::Sub, true, true) => functions::<Carry<false, true, true, true>>(),
            (O::Subc, false, false) => functions::<Carry<true, false, true, false>>(),
            (O::Subc, false, true) => functions::<Carry<true, false, true, true>>(),
            (O::Subc, true, false) => functions::<Carry<true, true, true, false>>(),
            (O::Subc, true, true) => functions::<Carry<true, true, true, true>>(),
            (O::Mad, true, false) => match (high, signed) {
                (false, _) => functions::<MultiplyCarry<false, true, false, false>>(),
                (true, false) => functions::<MultiplyCarry<false, true, true, false>>(),
                (true, true) => functions::<MultiplyCarry<false, true, true, true>>(),
            },
            (O::Madc, true, false) => match (high, signed) {
                (false, _) => functions::<MultiplyCarry<true, true, false, false>>(),
                (true, false) => functions::<MultiplyCarry<true, true, true, false>>(),
                (true, true) => functions::<MultiplyCarry<true, true, true, true>>(),
            },
            (O::Madc, false, false) => match (high, signed) {
                (false, _) => functions::<MultiplyCarry<true, false, false, false>>(),
                (true, false) => functions::<MultiplyCarry<true, false, true, false>>(),
                (true, true) => functions::<MultiplyCarry<true, false, true, true>>(),
            },
            _ => return Ok(false),
        };
        let sources = instruction.operands.len().saturating_sub(1).min(3);
        self.emit(instruction, lanes, 0, data_type, &[data_type; 3][..sources])?;
        Ok(true)
    }
}
