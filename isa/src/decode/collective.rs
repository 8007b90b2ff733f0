//! Exchange between the lanes of a warp.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::functions;
use crate::interpreter::collective::*;
use crate::operation::Kind;
use crate::ptx::ast::{Instruction, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

impl Decoder<'_> {
    /// Shuffles, votes, matches and reductions; false where the form is not supported.
    pub(super) fn collective(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if !instruction.has(M::Sync) {
            // The forms without a member mask ended with sm_70.
            return Ok(false);
        }
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let members = self.source(self.operand(instruction, instruction.operands.len().saturating_sub(1))?, T::B32)?;
        let destination = self.operand(instruction, 0)?;
        let (to, in_range) = match destination.kind {
            OperandKind::Pair(first, second) => [first, second]
                .map(|register| register.map_or(Slot::None, |register| Slot::Register(register.0)))
                .into(),
            _ => (self.destination(destination)?, Slot::None),
        };
        let mut sources = [Slot::None, Slot::None, Slot::None, members, Slot::None];
        let mut predicate = (Slot::None, 0);
        let (lanes, immediate) = match instruction.opcode {
            O::Shfl => {
                for (index, source) in sources.iter_mut().enumerate().take(3) {
                    *source = self.source(self.operand(instruction, index + 1)?, T::B32)?;
                }
                let mode = match () {
                    () if instruction.has(M::Up) => shuffle::UP,
                    () if instruction.has(M::Down) => shuffle::DOWN,
                    () if instruction.has(M::Bfly) => shuffle::BUTTERFLY,
                    () => shuffle::INDEX,
                };
                (functions::<Shuffle>(), mode)
            }
            O::Vote => {
                predicate = self.predicate(self.operand(instruction, 1)?)?;
                let mode = match () {
                    () if instruction.has(M::All) => vote::ALL,
                    () if instruction.has(M::Any) => vote::ANY,
                    () if instruction.has(M::Uni) => vote::UNIFORM,
                    () => vote::BALLOT,
                };
                (functions::<Vote>(), mode)
            }
            O::Match => {
                sources[0] = self.source(self.operand(instruction, 1)?, data_type)?;
                let lanes =
                    if data_type.bits() == 64 { functions::<Match<true>>() } else { functions::<Match<false>>() };
                (lanes, u32::from(instruction.has(M::All)))
            }
            O::Redux => {
                sources[0] = self.source(self.operand(instruction, 1)?, data_type)?;
                let signed = data_type == T::S32;
                let operation = match () {
                    () if instruction.has(M::Add) => reduction::ADD,
                    () if instruction.has(M::And) => reduction::AND,
                    () if instruction.has(M::Or) => reduction::OR,
                    () if instruction.has(M::Xor) => reduction::XOR,
                    () if instruction.has(M::Min) && signed => reduction::MINIMUM_SIGNED,
                    () if instruction.has(M::Min) => reduction::MINIMUM_UNSIGNED,
                    () if signed => reduction::MAXIMUM_SIGNED,
                    () => reduction::MAXIMUM_UNSIGNED,
                };
                if data_type.is_float() {
                    return Ok(false);
                }
                (functions::<Reduce>(), operation)
            }
            _ => return Ok(false),
        };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.kind = Kind::Collective;
        last.instruction.functions = lanes;
        last.instruction.immediate = immediate;
        last.sources = sources;
        last.predicate_sources[0] = predicate.0;
        last.instruction.predicate_flips[0] = predicate.1;
        if instruction.opcode == O::Vote && !instruction.has(M::Ballot) {
            last.predicate_destinations[0] = to;
        } else {
            last.destinations[0] = to;
            last.predicate_destinations[0] = in_range;
        }
        Ok(true)
    }
}
