//! Exchange between the lanes of a warp, and instructions that concern launches or register counts and do nothing here.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::functions;
use crate::interpreter::collective::*;
use crate::operation::{Kind, LaneFunction};
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

/// The operands that an instruction between lanes reads and writes.
#[derive(Default)]
struct Exchange {
    value: Slot,
    predicate: Slot,
    sources: [Slot; 5],
    truth: (Slot, u32),
    immediate: u32,
}

impl Decoder<'_> {
    /// Shuffles, votes, matches, reductions and elections; false where the form is not supported.
    pub(super) fn collective(&mut self, instruction: &Instruction) -> Decoded<bool> {
        match instruction.opcode {
            O::Griddepcontrol => {
                // A grid starts when those before it in its stream have ended: there is nothing to wait for or to let go.
                self.start(instruction.span, cost(instruction));
                return Ok(true);
            }
            O::Setmaxnreg => return self.register_count(instruction),
            _ => {}
        }
        let mut exchange = Exchange::default();
        let Some(lanes) = (match instruction.opcode {
            O::Shfl => self.shuffle(instruction, &mut exchange)?,
            O::Vote => self.vote(instruction, &mut exchange)?,
            O::Match => self.matching(instruction, &mut exchange)?,
            O::Redux => self.reduction(instruction, &mut exchange)?,
            O::Elect => {
                (exchange.value, exchange.predicate) = self.value_and_predicate(instruction, T::B32)?;
                Some(functions::<Elect>())
            }
            _ => None,
        }) else {
            return Ok(false);
        };
        let synchronises = instruction.has(M::Sync);
        if synchronises {
            let members = self.operand(instruction, instruction.operands.len().saturating_sub(1))?;
            self.check_operand_type(instruction, members, T::B32)?;
            exchange.sources[3] = self.source(members, T::B32)?;
        }
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        // Without a member mask, those that take part are the lanes that are here.
        last.instruction.kind = if synchronises { Kind::Collective } else { Kind::Lanes };
        last.pinned = true;
        last.instruction.functions = lanes;
        last.instruction.immediate = exchange.immediate;
        last.sources = exchange.sources;
        last.predicate_sources[0] = exchange.truth.0;
        last.instruction.predicate_flips[0] = exchange.truth.1;
        last.destinations[0] = exchange.value;
        last.predicate_destinations[0] = exchange.predicate;
        Ok(true)
    }

    fn shuffle(&mut self, instruction: &Instruction, exchange: &mut Exchange) -> Decoded<Option<[LaneFunction; 2]>> {
        if instruction.types[0] != T::B32 {
            return Ok(None);
        }
        (exchange.value, exchange.predicate) = self.value_and_predicate(instruction, T::B32)?;
        let types = [T::B32, T::U32, T::U32];
        self.check_source_types(instruction, &types)?;
        for (index, scalar_type) in types.into_iter().enumerate() {
            exchange.sources[index] = self.source(self.operand(instruction, index + 1)?, scalar_type)?;
        }
        exchange.immediate = match () {
            () if instruction.has(M::Up) => shuffle::UP,
            () if instruction.has(M::Down) => shuffle::DOWN,
            () if instruction.has(M::Bfly) => shuffle::BUTTERFLY,
            () if instruction.has(M::Idx) => shuffle::INDEX,
            () => return Ok(None),
        };
        Ok(Some(functions::<Shuffle>()))
    }

    fn vote(&mut self, instruction: &Instruction, exchange: &mut Exchange) -> Decoded<Option<[LaneFunction; 2]>> {
        exchange.truth = self.predicate(self.operand(instruction, 1)?)?;
        exchange.immediate = match () {
            () if instruction.has(M::All) => vote::ALL,
            () if instruction.has(M::Any) => vote::ANY,
            () if instruction.has(M::Uni) => vote::UNIFORM,
            () if instruction.has(M::Ballot) => vote::BALLOT,
            () => return Ok(None),
        };
        let destination = self.operand(instruction, 0)?;
        if exchange.immediate == vote::BALLOT {
            self.check_operand_type(instruction, destination, T::B32)?;
            exchange.value = self.destination(destination)?;
        } else {
            [exchange.predicate, _] = self.predicate_pair(destination)?;
        }
        Ok(Some(functions::<Vote>()))
    }

    fn matching(&mut self, instruction: &Instruction, exchange: &mut Exchange) -> Decoded<Option<[LaneFunction; 2]>> {
        let data_type = instruction.types[0];
        let lanes = match data_type {
            T::B32 => functions::<Match<false>>(),
            T::B64 => functions::<Match<true>>(),
            _ => return Ok(None),
        };
        if !instruction.has(M::Sync) || instruction.has(M::All) == instruction.has(M::Any) {
            return Ok(None);
        }
        (exchange.value, exchange.predicate) = self.value_and_predicate(instruction, T::B32)?;
        self.check_source_types(instruction, &[data_type])?;
        exchange.sources[0] = self.source(self.operand(instruction, 1)?, data_type)?;
        exchange.immediate = u32::from(instruction.has(M::All));
        Ok(Some(lanes))
    }

    fn reduction(&mut self, instruction: &Instruction, exchange: &mut Exchange) -> Decoded<Option<[LaneFunction; 2]>> {
        let data_type = instruction.types[0];
        let has = |modifier| instruction.has(modifier);
        let bitwise = data_type == T::B32;
        let (lanes, operation) = match data_type {
            _ if !has(M::Sync) => return Ok(None),
            T::F32 if has(M::Min) || has(M::Max) => {
                let flag = |modifier, flag| if has(modifier) { flag } else { 0 };
                let flags = flag(M::Max, float_reduction::MAXIMUM)
                    | flag(M::AbsoluteValue, float_reduction::ABSOLUTE)
                    | flag(M::NaN, float_reduction::NAN);
                (functions::<ReduceFloat>(), flags)
            }
            T::B32 | T::U32 | T::S32 if !has(M::NaN) && !has(M::AbsoluteValue) => {
                let signed = data_type == T::S32;
                let operation = match () {
                    () if has(M::And) && bitwise => reduction::AND,
                    () if has(M::Or) && bitwise => reduction::OR,
                    () if has(M::Xor) && bitwise => reduction::XOR,
                    () if bitwise => return Ok(None),
                    () if has(M::Add) => reduction::ADD,
                    () if has(M::Min) && signed => reduction::MINIMUM_SIGNED,
                    () if has(M::Min) => reduction::MINIMUM_UNSIGNED,
                    () if has(M::Max) && signed => reduction::MAXIMUM_SIGNED,
                    () if has(M::Max) => reduction::MAXIMUM_UNSIGNED,
                    () => return Ok(None),
                };
                (functions::<Reduce>(), operation)
            }
            _ => return Ok(None),
        };
        self.check_operand_types(instruction, data_type, &[data_type])?;
        exchange.value = self.destination(self.operand(instruction, 0)?)?;
        exchange.sources[0] = self.source(self.operand(instruction, 1)?, data_type)?;
        exchange.immediate = operation;
        Ok(Some(lanes))
    }

    /// A destination `d|p`, where either may be `_`, or `d` alone.
    fn value_and_predicate(&mut self, instruction: &Instruction, scalar_type: T) -> Decoded<(Slot, Slot)> {
        let destination = self.operand(instruction, 0)?;
        let OperandKind::Pair(value, predicate) = destination.kind else {
            self.check_operand_type(instruction, destination, scalar_type)?;
            return Ok((self.destination(destination)?, Slot::None));
        };
        let slot = |register: Option<crate::ptx::ast::RegisterId>| {
            register.map_or(Slot::None, |register| Slot::Register(register.0))
        };
        if let Some(register) = value {
            let operand = Operand { kind: OperandKind::Register(register), span: destination.span };
            self.check_operand_type(instruction, &operand, scalar_type)?;
        }
        if predicate.is_some_and(|register| !self.is_predicate(register)) {
            return Err(self.bad(destination, "the second of this pair is to be a predicate register"));
        }
        Ok((slot(value), slot(predicate)))
    }

    /// `setmaxnreg`: a warp has its registers for good here.
    fn register_count(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let operand = self.operand(instruction, 0)?;
        match operand.kind {
            OperandKind::Integer(count) if (24..=256).contains(&count) && count % 8 == 0 => {}
            _ => return Err(self.bad(operand, "a count of registers is a literal multiple of 8 from 24 to 256")),
        }
        self.start(instruction.span, cost(instruction));
        Ok(true)
    }
}
