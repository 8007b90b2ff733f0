//! Video instructions: parts of registers as operands, saturation, merging and accumulation.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::functions;
use crate::interpreter::compare::outcome;
use crate::interpreter::video::*;
use crate::ptx::ast::{Instruction, Operand, OperandKind, PartSelector};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

/// The operation of a video instruction and in how many parts it works; 1 for the scalar ones.
fn operation_of(opcode: O) -> Option<(Operation, u32)> {
    Some(match opcode {
        O::Vadd => (Operation::Add, 1),
        O::Vsub => (Operation::Subtract, 1),
        O::Vabsdiff => (Operation::AbsoluteDifference, 1),
        O::Vmin => (Operation::Minimum, 1),
        O::Vmax => (Operation::Maximum, 1),
        O::Vshl => (Operation::ShiftLeft, 1),
        O::Vshr => (Operation::ShiftRight, 1),
        O::Vset => (Operation::Compare, 1),
        O::Vmad => (Operation::MultiplyAdd, 1),
        O::Vadd2 => (Operation::Add, 2),
        O::Vsub2 => (Operation::Subtract, 2),
        O::Vavrg2 => (Operation::Average, 2),
        O::Vabsdiff2 => (Operation::AbsoluteDifference, 2),
        O::Vmin2 => (Operation::Minimum, 2),
        O::Vmax2 => (Operation::Maximum, 2),
        O::Vset2 => (Operation::Compare, 2),
        O::Vadd4 => (Operation::Add, 4),
        O::Vsub4 => (Operation::Subtract, 4),
        O::Vavrg4 => (Operation::Average, 4),
        O::Vabsdiff4 => (Operation::AbsoluteDifference, 4),
        O::Vmin4 => (Operation::Minimum, 4),
        O::Vmax4 => (Operation::Maximum, 4),
        O::Vset4 => (Operation::Compare, 4),
        _ => return None,
    })
}

/// Whether an instruction is decoded here.
pub(super) fn is_video(opcode: O) -> bool {
    operation_of(opcode).is_some()
}

/// The outcomes for which the comparison of `vset` is true.
fn outcomes(instruction: &Instruction) -> Option<u8> {
    let set = instruction.modifiers.iter().find_map(|modifier| match modifier {
        M::Eq => Some(outcome::EQUAL),
        M::Ne => Some(outcome::LESS | outcome::GREATER),
        M::Lt => Some(outcome::LESS),
        M::Le => Some(outcome::LESS | outcome::EQUAL),
        M::Gt => Some(outcome::GREATER),
        M::Ge => Some(outcome::GREATER | outcome::EQUAL),
        _ => None,
    });
    set.map(|set| set as u8)
}

impl Decoder<'_> {
    /// Video instructions; false where the form is not supported.
    pub(super) fn video(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some((operation, parts)) = operation_of(instruction.opcode) else { return Ok(false) };
        let types = &instruction.types;
        let (to, a, b) = match types[..] {
            [a, b] => (T::U32, a, b),
            [to, a, b] => (to, a, b),
            _ => return Ok(false),
        };
        if [to, a, b].iter().any(|scalar_type| !matches!(scalar_type, T::U32 | T::S32)) {
            return Ok(false);
        }
        let mut form = VideoForm { operation, ..VideoForm::default() };
        form.signed = [a, b, to].map(|scalar_type| scalar_type == T::S32);
        form.saturates = instruction.has(M::Sat);
        form.secondary = match () {
            () if instruction.has(M::Add) => Secondary::Add,
            () if instruction.has(M::Min) => Secondary::Minimum,
            () if instruction.has(M::Max) => Secondary::Maximum,
            () => Secondary::None,
        };
        form.wraps = instruction.has(M::Wrap);
        form.adds_one = instruction.has(M::PlusOne);
        form.scale = match () {
            () if instruction.has(M::Shr7) => 7,
            () if instruction.has(M::Shr15) => 15,
            () => 0,
        };
        if operation == Operation::Compare {
            let Some(set) = outcomes(instruction) else { return Ok(false) };
            form.outcomes = set;
        }
        if parts == 1 { self.scalar_video(instruction, form) } else { self.parallel_video(instruction, form, parts) }
    }

    fn scalar_video(&mut self, instruction: &Instruction, mut form: VideoForm) -> Decoded<bool> {
        let destination = self.operand(instruction, 0)?;
        let (to, selector, _) = self.video_operand(instruction, destination)?;
        form.destination = self.scalar_part(destination, selector)?;
        let merges = form.destination != WHOLE;
        let has_third = instruction.operands.len() == 4;
        if merges && form.secondary != Secondary::None {
            return Err(self.bad(destination, "a part of the destination and a second operation exclude each other"));
        }
        if has_third != (merges || form.secondary != Secondary::None || form.operation == Operation::MultiplyAdd) {
            return Err(self.bad(
                &instruction.operands[instruction.operands.len() - 1],
                "a third source goes with a part of the destination or a second operation",
            ));
        }
        let mut sources = [Slot::None; 5];
        for (index, operand) in instruction.operands[1..].iter().enumerate().take(3) {
            let (slot, selector, negated) = self.video_operand(instruction, operand)?;
            let part = self.scalar_part(operand, selector)?;
            if negated && (form.operation != Operation::MultiplyAdd || form.adds_one) {
                return Err(self.bad(operand, "only `vmad` without `.po` negates its sources"));
            }
            if index == 2 && part != WHOLE {
                return Err(self.bad(operand, "the third source is a whole register"));
            }
            sources[index] = slot;
            form.negated[index] = negated;
            if index < 2 {
                form.sources[index][0] = part;
            }
        }
        let lanes = if form.operation == Operation::MultiplyAdd {
            functions::<VideoMultiplyAdd>()
        } else {
            functions::<ScalarVideo>()
        };
        self.emit_video(instruction, form, lanes, sources, to);
        Ok(true)
    }

    fn parallel_video(&mut self, instruction: &Instruction, mut form: VideoForm, parts: u32) -> Decoded<bool> {
        if !matches!(form.secondary, Secondary::None | Secondary::Add) {
            return Ok(false);
        }
        let destination = self.operand(instruction, 0)?;
        let (to, selector, _) = self.video_operand(instruction, destination)?;
        form.mask = match selector {
            None => ((1u32 << parts) - 1) as u8,
            Some(selector) => {
                let mut mask = 0;
                for part in self.selected(destination, selector, parts, parts)? {
                    mask |= 1 << part;
                }
                mask
            }
        };
        let mut sources = [Slot::None; 5];
        for (index, operand) in instruction.operands[1..].iter().enumerate().take(3) {
            let (slot, selector, negated) = self.video_operand(instruction, operand)?;
            sources[index] = slot;
            if negated || (index == 2 && selector.is_some()) {
                return Err(self.bad(operand, "this source is a whole register"));
            }
            if index == 2 {
                continue;
            }
            // Parts are counted through both sources: those of the first, then those of the second.
            let mut chosen: [u8; 4] = std::array::from_fn(|part| (part + index * parts as usize) as u8);
            if let Some(selector) = selector {
                let written = self.selected(operand, selector, parts, 2 * parts)?;
                if written.len() != parts as usize {
                    return Err(self.bad(operand, "a part for each of the operation's is expected here"));
                }
                for (place, part) in chosen.iter_mut().zip(written.iter().rev()) {
                    *place = *part;
                }
            }
            form.sources[index] = chosen;
        }
        let lanes = if parts == 2 { functions::<ParallelVideo<2>>() } else { functions::<ParallelVideo<4>>() };
        self.emit_video(instruction, form, lanes, sources, to);
        Ok(true)
    }

    fn emit_video(
        &mut self,
        instruction: &Instruction,
        form: VideoForm,
        lanes: [crate::operation::LaneFunction; 2],
        sources: [Slot; 5],
        to: Slot,
    ) {
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.instruction.functions = lanes;
        last.instruction.offset = form.to_bits() as i64;
        last.sources = sources;
        last.destinations[0] = to;
    }

    /// A register or literal of 32 bits, the part of it that is meant, and whether it is negated.
    fn video_operand(
        &mut self,
        instruction: &Instruction,
        operand: &Operand,
    ) -> Decoded<(Slot, Option<PartSelector>, bool)> {
        let (register, selector, negated) = match operand.kind {
            OperandKind::Part { register, selector, negated } => (register, Some(selector), negated),
            OperandKind::NegatedRegister(register) => (register, None, true),
            OperandKind::Sink => return Ok((Slot::None, None, false)),
            _ => {
                self.check_operand_type(instruction, operand, T::B32)?;
                return Ok((self.source(operand, T::B32)?, None, false));
            }
        };
        let whole = Operand { kind: OperandKind::Register(register), span: operand.span };
        self.check_operand_type(instruction, &whole, T::B32)?;
        Ok((Slot::Register(register.0), selector, negated))
    }

    /// The part of an operand of a scalar instruction.
    fn scalar_part(&self, operand: &Operand, selector: Option<PartSelector>) -> Decoded<u8> {
        let Some(PartSelector { half_words, parts, count }) = selector else { return Ok(WHOLE) };
        let most = if half_words { 2 } else { 4 };
        if count != 1 || parts[0] >= most {
            return Err(self.bad(operand, "one of the parts `.b0` to `.b3`, `.h0` and `.h1` is expected here"));
        }
        Ok(parts[0] + if half_words { HALF } else { 0 })
    }

    /// The parts that an operand of a parallel instruction names, in the order written; numbers are below `limit`.
    fn selected(&self, operand: &Operand, selector: PartSelector, parts: u32, limit: u32) -> Decoded<Vec<u8>> {
        let written = &selector.parts[..usize::from(selector.count)];
        if selector.half_words != (parts == 2) || written.iter().any(|part| u32::from(*part) >= limit) {
            let letter = if parts == 2 { 'h' } else { 'b' };
            return Err(self.bad(operand, &format!("parts `.{letter}0` to `.{letter}{}` are expected here", limit - 1)));
        }
        Ok(written.to_vec())
    }
}
