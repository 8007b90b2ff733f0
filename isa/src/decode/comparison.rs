//! Comparison, selection, and logic on predicates.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::access::address::IsExplicitCluster;
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::compare::*;
use crate::interpreter::integer::{SelectByFloatSign, SelectBySign};
use crate::operation::LaneFunction;
use crate::ptx::ast::{Instruction, OperandKind, RegisterId};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

type Lanes = [LaneFunction; 2];

macro_rules! by_comparison {
    ($body:ident, $comparison:ident, $type:expr) => {
        match $type {
            T::U16 | T::B16 => Some(functions::<$body<$comparison<u16>>>()),
            T::S16 => Some(functions::<$body<$comparison<i16>>>()),
            T::U32 | T::B32 => Some(functions::<$body<$comparison<u32>>>()),
            T::S32 => Some(functions::<$body<$comparison<i32>>>()),
            T::U64 | T::B64 => Some(functions::<$body<$comparison<u64>>>()),
            T::S64 => Some(functions::<$body<$comparison<i64>>>()),
            T::F32 => Some(functions::<$body<$comparison<f32>>>()),
            T::F64 => Some(functions::<$body<$comparison<f64>>>()),
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

/// The outcomes for which a comparison of floats is true.
fn outcomes(comparison: M) -> Option<u32> {
    use outcome::*;
    Some(match comparison {
        M::Eq => EQUAL,
        M::Ne => LESS | GREATER,
        M::Lt => LESS,
        M::Le => LESS | EQUAL,
        M::Gt => GREATER,
        M::Ge => GREATER | EQUAL,
        M::Equ => EQUAL | UNORDERED,
        M::Neu => LESS | GREATER | UNORDERED,
        M::Ltu => LESS | UNORDERED,
        M::Leu => LESS | EQUAL | UNORDERED,
        M::Gtu => GREATER | UNORDERED,
        M::Geu => GREATER | EQUAL | UNORDERED,
        M::Num => LESS | EQUAL | GREATER,
        M::Nan => UNORDERED,
        _ => return None,
    })
}

/// The functions of `setp` or `set` that compare floats as bits.
macro_rules! by_bits {
    ($body:ident, $type:expr, $flush:expr) => {
        match ($type, $flush) {
            (T::F16, false) => Some(functions::<$body<HalfBits, false>>()),
            (T::F16, true) => Some(functions::<$body<HalfBitsFlushed, false>>()),
            (T::F16x2, false) => Some(functions::<$body<HalfBits, true>>()),
            (T::F16x2, true) => Some(functions::<$body<HalfBitsFlushed, true>>()),
            (T::Bf16, false) => Some(functions::<$body<BrainBits, false>>()),
            (T::Bf16x2, false) => Some(functions::<$body<BrainBits, true>>()),
            (T::F32, true) => Some(functions::<$body<SingleBitsFlushed, false>>()),
            _ => None,
        }
    };
}

/// Whether values of a type have an order that is of use: untyped bits are only equal or not.
fn has_order(comparison: M, data_type: T) -> bool {
    match comparison {
        M::Eq | M::Ne => true,
        M::Lo | M::Ls | M::Hi | M::Hs => data_type.is_unsigned_integer(),
        M::Lt | M::Le | M::Gt | M::Ge => !data_type.is_untyped_bits(),
        _ => data_type.is_float(),
    }
}

/// The comparison that `setp` or `set` names: its first dotted word that is one (`.lo` and `.hi` among them).
fn comparison_of(instruction: &Instruction) -> Option<M> {
    instruction.modifiers.iter().copied().find(|modifier| modifier.is_comparison() || matches!(modifier, M::Lo | M::Hi))
}

/// The value of a true comparison in a register of that type.
fn value_of_truth(to: T, data_type: T) -> Option<u32> {
    let is_pair = matches!(data_type, T::F16x2 | T::Bf16x2);
    Some(match to {
        T::F32 if !is_pair => 1f32.to_bits(),
        T::U32 | T::S32 => u32::MAX,
        T::U16 | T::S16 if !is_pair => 0xffff,
        T::F16 if !is_pair => 0x3c00,
        T::Bf16 if !is_pair => 0x3f80,
        T::F16x2 if data_type == to => 0x3c00_3c00,
        T::Bf16x2 if data_type == to => 0x3f80_3f80,
        _ => return None,
    })
}

impl Decoder<'_> {
    /// `setp` and `set`.
    pub(super) fn comparison(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let is_set = instruction.opcode == O::Set;
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let Some(comparison) = comparison_of(instruction) else { return Ok(false) };
        if !has_order(comparison, data_type) {
            return Ok(false);
        }
        let flush = instruction.has(M::Ftz);
        let is_direct = !flush && matches!(data_type, T::F32 | T::F64) || !data_type.is_float();
        let lanes: Option<Lanes> = match (is_set, is_direct) {
            (_, true) if flush => None,
            (true, true) => by_any_comparison!(SetValue, comparison, data_type),
            (false, true) => by_any_comparison!(SetPredicate, comparison, data_type),
            (true, false) => by_bits!(SetValueByOutcome, data_type, flush),
            (false, false) => by_bits!(SetPredicateByOutcome, data_type, flush),
        };
        let Some(lanes) = lanes else { return Ok(false) };
        let set = if is_direct { 0 } else { outcomes(comparison).unwrap_or(0) << outcome::SHIFT };
        // `.and` and the like name a combination where a predicate follows.
        let how = instruction.modifiers.iter().find_map(|modifier| match modifier {
            M::And => Some(combine::AND),
            M::Or => Some(combine::OR),
            M::Xor => Some(combine::XOR),
            _ => None,
        });
        match (how, instruction.operands.get(3)) {
            (None, Some(operand)) => {
                return Err(self.bad(operand, "a predicate here needs `.and`, `.or` or `.xor` to combine it"));
            }
            (Some(_), None) => return Ok(false),
            _ => {}
        }
        self.check_source_types(instruction, &[data_type; 2])?;
        let a = self.source(self.operand(instruction, 1)?, data_type)?;
        let b = self.source(self.operand(instruction, 2)?, data_type)?;
        let other = if how.is_some() { self.predicate(self.operand(instruction, 3)?)? } else { (Slot::None, 0) };
        let destination = self.operand(instruction, 0)?;
        let mut ones = Slot::None;
        if is_set {
            let Some(value) = value_of_truth(instruction.types[0], data_type) else { return Ok(false) };
            ones = self.constant(u64::from(value), false);
            self.check_operand_type(instruction, destination, instruction.types[0])?;
        }
        let predicates = if is_set { [Slot::None; 2] } else { self.predicate_pair(destination)? };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.functions = lanes;
        last.instruction.immediate = how.unwrap_or(combine::NONE) | set;
        last.sources = [a, b, ones, Slot::None, Slot::None];
        last.predicate_sources[0] = other.0;
        last.instruction.predicate_flips[0] = other.1;
        last.predicate_destinations = predicates;
        if is_set {
            self.set_destination(destination, T::U32)?;
        }
        Ok(true)
    }

    /// One or two predicates that an instruction sets; `_` for those that it does not.
    pub(super) fn predicate_pair(&self, operand: &crate::ptx::ast::Operand) -> Decoded<[Slot; 2]> {
        let slot = |register: Option<RegisterId>| match register {
            None => Ok(Slot::None),
            Some(register) if self.is_predicate(register) => Ok(Slot::Register(register.0)),
            Some(_) => Err(self.bad(operand, "a predicate register is expected here")),
        };
        match operand.kind {
            OperandKind::Pair(first, second) => Ok([slot(first)?, slot(second)?]),
            OperandKind::Register(register) => Ok([slot(Some(register))?, Slot::None]),
            OperandKind::Sink => Ok([Slot::None; 2]),
            _ => Err(self.bad(operand, "a predicate register is expected here")),
        }
    }

    /// `selp`.
    pub(super) fn selection(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let lanes = match data_type.bits() {
            64 => functions::<Select<u64>>(),
            16 | 32 => functions::<Select<u32>>(),
            _ => return Ok(false),
        };
        self.check_operand_types(instruction, data_type, &[data_type; 2])?;
        let predicate = self.predicate(self.operand(instruction, 3)?)?;
        self.emit(instruction, lanes, 0, data_type, &[data_type; 2])?;
        let last = self.last();
        last.predicate_sources[0] = predicate.0;
        last.instruction.predicate_flips[0] = predicate.1;
        Ok(true)
    }

    /// `slct`: the first of two values where the third operand is not negative.
    pub(super) fn selection_by_sign(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let [data_type, by] = instruction.types[..] else { return Ok(false) };
        let flush = u32::from(instruction.has(M::Ftz));
        let lanes = match (data_type.bits(), by) {
            (_, T::S32) if flush != 0 => return Ok(false),
            (16 | 32, T::S32) => functions::<Map<SelectBySign<u32>>>(),
            (64, T::S32) => functions::<Map<SelectBySign<u64>>>(),
            (16 | 32, T::F32) => functions::<Map<SelectByFloatSign<u32>>>(),
            (64, T::F32) => functions::<Map<SelectByFloatSign<u64>>>(),
            _ => return Ok(false),
        };
        let from = [data_type, data_type, by];
        self.emit(instruction, lanes, flush, data_type, &from)?;
        Ok(true)
    }

    /// Logic on predicates, and `mov.pred`.
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
        let [destination, _] = self.predicate_pair(self.operand(instruction, 0)?)?;
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.functions = functions::<PredicateLogic>();
        last.instruction.immediate = how;
        last.predicate_sources = sources.map(|source| source.0);
        last.instruction.predicate_flips = sources.map(|source| source.1);
        last.predicate_destinations[0] = destination;
        Ok(true)
    }

    /// `%is_explicit_cluster`
    pub(super) fn is_explicit_cluster(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let [destination, _] = self.predicate_pair(self.operand(instruction, 0)?)?;
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.functions = functions::<IsExplicitCluster>();
        last.predicate_destinations[0] = destination;
        Ok(true)
    }
}
