//! `mov`: between registers, from special registers, literals and addresses, and between one register and several.

use super::arithmetic::free;
use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::integer::{Move, Resize};
use crate::interpreter::movement::{Pack, Unpack};
use crate::liveness::Width;
use crate::program::timing::{LatencyClass, Pipe};
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::source::Span;
use crate::ptx::special_register::SpecialRegisterName;
use crate::ptx::types::ScalarType as T;

/// The type of a part where a value is taken apart into that many.
fn part_type(whole: T, parts: usize) -> Option<T> {
    match (whole.bits(), parts) {
        (16, 2) | (32, 4) => Some(T::B8),
        (32, 2) | (64, 4) => Some(T::B16),
        (64, 2) | (128, 4) => Some(T::B32),
        (128, 2) => Some(T::B64),
        _ => None,
    }
}

impl Decoder<'_> {
    /// `mov`.
    pub(super) fn movement(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let data_type = instruction.types[0];
        let destination = self.operand(instruction, 0)?;
        let source = self.operand(instruction, 1)?;
        if data_type == T::Pred {
            return match source.kind {
                OperandKind::Special(name) if name.name == SpecialRegisterName::IsExplicitCluster => {
                    self.is_explicit_cluster(instruction)
                }
                _ => self.predicate_logic(instruction),
            };
        }
        if data_type.bits() < 16 {
            return Ok(false);
        }
        match (&destination.kind, &source.kind) {
            (OperandKind::Vector(to), OperandKind::Vector(from)) => self.move_each(instruction, to, from)?,
            (_, OperandKind::Vector(parts)) => self.pack(instruction, destination, parts)?,
            (OperandKind::Vector(parts), _) => self.unpack(instruction, parts, source)?,
            (_, OperandKind::Special(name)) => {
                self.check_operand_type(instruction, destination, data_type)?;
                let slot = self.destination(destination)?;
                if data_type.bits() == 16 {
                    // Special registers had 16 bits once; reads of that width give the low half.
                    let whole = self.new_register(Width::One);
                    self.start(instruction.span, cost(instruction));
                    self.special(source, *name, Slot::Register(whole), false)?;
                    if let Slot::Register(to) = slot {
                        self.helper(instruction.span, functions::<Map<Resize<u32, u16>>>(), whole, to);
                    }
                } else {
                    self.start(instruction.span, cost(instruction));
                    self.special(source, *name, slot, data_type.bits() == 64)?;
                }
            }
            _ if data_type == T::B128 => {
                let to = self.halves(destination)?;
                let from = self.halves(source)?;
                for (to, from) in to.into_iter().zip(from) {
                    self.copy(instruction.span, from, to, true);
                }
            }
            _ => {
                self.check_operand_type(instruction, destination, data_type)?;
                self.check_operand_type(instruction, source, data_type)?;
                let wide = data_type.bits() == 64;
                let from = self.source(source, data_type)?;
                let to = self.destination(destination)?;
                self.copy(instruction.span, from, to, wide);
                // Instructions that the GPU's own code folds into operands.
                self.last().cost = cost(instruction);
                (self.last().cost.0, self.last().cost.1) = (Pipe::Free, LatencyClass::Zero);
            }
        }
        Ok(true)
    }

    /// Emits a move that costs nothing.
    pub(super) fn copy(&mut self, span: Span, from: Slot, to: Slot, wide: bool) {
        self.start(span, free());
        let last = self.last();
        last.sources[0] = from;
        last.destinations[0] = to;
        last.instruction.functions = if wide { functions::<Map<Move<u64>>>() } else { functions::<Map<Move<u32>>>() };
    }

    /// The low and the high 64 bits of a 128-bit operand: registers, both of them wide, or constants.
    pub(super) fn halves(&mut self, operand: &Operand) -> Decoded<[Slot; 2]> {
        match operand.kind {
            OperandKind::Register(register) if self.register_type(register) == Some(T::B128) => {
                let next = self.widths.len() as u32;
                let high = *self.upper_halves.entry(register.0).or_insert(next);
                if high == next {
                    self.widths.push(Width::Two);
                }
                Ok([Slot::Register(register.0), Slot::Register(high)])
            }
            OperandKind::Sink => Ok([Slot::None; 2]),
            OperandKind::Integer(value) => Ok([self.constant(value, true), self.constant(0, true)]),
            _ => Err(self.bad(operand, "a register of type .b128 is expected here")),
        }
    }

    /// `mov.v2`, `mov.v4`: each element on its own; all are read before any is written.
    fn move_each(&mut self, instruction: &Instruction, to: &[Operand], from: &[Operand]) -> Decoded<()> {
        let data_type = instruction.types[0];
        let wide = data_type.bits() == 64;
        if to.len() != from.len() || data_type == T::B128 {
            return Err(self.bad(&instruction.operands[1], "as many elements as the destination has are expected here"));
        }
        let mut copies = Vec::with_capacity(to.len());
        for (to, from) in to.iter().zip(from) {
            self.check_operand_type(instruction, to, data_type)?;
            self.check_operand_type(instruction, from, data_type)?;
            let from = self.source(from, data_type)?;
            let between = Slot::Register(self.new_register(if wide { Width::Two } else { Width::One }));
            self.copy(instruction.span, from, between, wide);
            copies.push((between, self.destination(to)?));
        }
        for (from, to) in copies {
            self.copy(instruction.span, from, to, wide);
        }
        Ok(())
    }

    /// `mov d, {a, b, ...}`
    fn pack(&mut self, instruction: &Instruction, destination: &Operand, parts: &[Operand]) -> Decoded<()> {
        let data_type = instruction.types[0];
        let Some(part) = part_type(data_type, parts.len()) else {
            let message = format!("{} parts do not make a value of type .{data_type}", parts.len());
            return Err(self.bad(&instruction.operands[1], &message));
        };
        for operand in parts {
            self.check_part_type(instruction, operand, part)?;
        }
        if data_type == T::B128 {
            let to = self.halves(destination)?;
            for (to, parts) in to.into_iter().zip(parts.chunks(parts.len() / 2)) {
                match parts {
                    [whole] => {
                        let from = self.source(whole, T::B64)?;
                        self.copy(instruction.span, from, to, true);
                    }
                    _ => self.pack_into(instruction, to, T::B64, part, parts)?,
                }
            }
            return Ok(());
        }
        self.check_operand_type(instruction, destination, data_type)?;
        let to = self.destination(destination)?;
        self.pack_into(instruction, to, data_type, part, parts)
    }

    fn pack_into(&mut self, instruction: &Instruction, to: Slot, whole: T, part: T, parts: &[Operand]) -> Decoded<()> {
        let mut sources = [Slot::None; 5];
        for (slot, operand) in sources.iter_mut().zip(parts) {
            *slot = self.source(operand, part)?;
        }
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.destinations[0] = to;
        last.instruction.functions = functions::<Pack>();
        last.instruction.memory.elements = parts.len() as u8;
        last.instruction.memory.wide[0] = whole.bits() == 64;
        last.instruction.immediate = part.bits();
        Ok(())
    }

    /// `mov {a, b, ...}, s`
    fn unpack(&mut self, instruction: &Instruction, parts: &[Operand], source: &Operand) -> Decoded<()> {
        let data_type = instruction.types[0];
        let Some(part) = part_type(data_type, parts.len()) else {
            let message = format!("a value of type .{data_type} does not have {} parts", parts.len());
            return Err(self.bad(&instruction.operands[0], &message));
        };
        for operand in parts {
            self.check_part_type(instruction, operand, part)?;
        }
        if data_type == T::B128 {
            let from = self.halves(source)?;
            for (from, parts) in from.into_iter().zip(parts.chunks(parts.len() / 2)) {
                match parts {
                    [whole] => {
                        let to = self.destination(whole)?;
                        self.copy(instruction.span, from, to, true);
                    }
                    _ => self.unpack_from(instruction, from, T::B64, part, parts)?,
                }
            }
            return Ok(());
        }
        self.check_operand_type(instruction, source, data_type)?;
        let from = self.source(source, data_type)?;
        self.unpack_from(instruction, from, data_type, part, parts)
    }

    fn unpack_from(
        &mut self,
        instruction: &Instruction,
        from: Slot,
        whole: T,
        part: T,
        parts: &[Operand],
    ) -> Decoded<()> {
        let mut destinations = [Slot::None; 4];
        for (slot, operand) in destinations.iter_mut().zip(parts) {
            *slot = self.destination(operand)?;
        }
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources[0] = from;
        last.destinations = destinations;
        last.instruction.functions = functions::<Unpack>();
        last.instruction.memory.elements = parts.len() as u8;
        last.instruction.memory.wide[0] = whole.bits() == 64;
        last.instruction.immediate = part.bits();
        Ok(())
    }
}
