//! Atomics and reductions.

use super::memory::parts;
use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::execution::{AtomicOperation as A, AtomicType, CacheOperator, Space};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::integer::Resize;
use crate::interpreter::movement::{Pack, Unpack};
use crate::liveness::Width;
use crate::operation::{AtomicResult, Kind, MemoryForm};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::ast::{Instruction, Operand};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::source::Span;
use crate::ptx::types::ScalarType as T;

/// The operation and the type of an atomic, where the ISA has it; `elements` are those of its vector.
pub(super) fn function(instruction: &Instruction, data_type: T, elements: u32) -> Option<(A, AtomicType)> {
    let operation = instruction.modifiers.iter().find_map(|modifier| {
        Some(match modifier {
            M::Add => A::Add,
            M::Min => A::Minimum,
            M::Max => A::Maximum,
            M::And => A::And,
            M::Or => A::Or,
            M::Xor => A::Xor,
            M::Exch => A::Exchange,
            M::Cas => A::CompareAndSwap,
            M::Inc => A::Increment,
            M::Dec => A::Decrement,
            _ => return None,
        })
    })?;
    let known = match operation {
        A::Exchange | A::CompareAndSwap => {
            instruction.opcode == O::Atom && matches!(data_type, T::B16 | T::B32 | T::B64 | T::B128)
        }
        A::And | A::Or | A::Xor => matches!(data_type, T::B32 | T::B64),
        A::Increment | A::Decrement => data_type == T::U32,
        A::Minimum | A::Maximum => {
            matches!(data_type, T::U32 | T::S32 | T::U64 | T::S64 | T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2)
        }
        _ => matches!(
            data_type,
            T::U32 | T::S32 | T::U64 | T::S64 | T::F32 | T::F64 | T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2
        ),
    };
    let is_half = matches!(data_type, T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2);
    let is_vector = match data_type {
        T::F32 => operation == A::Add && matches!(elements, 2 | 4),
        T::F16x2 | T::Bf16x2 => matches!(elements, 2 | 4),
        T::F16 | T::Bf16 => matches!(elements, 2 | 4 | 8),
        _ => false,
    };
    if !known || (elements > 1 && !is_vector) || (instruction.has(M::Noftz) && !is_half) {
        return None;
    }
    let data_type = match data_type {
        T::U32 | T::B32 => AtomicType::U32,
        T::S32 => AtomicType::S32,
        T::U64 | T::B64 => AtomicType::U64,
        T::S64 => AtomicType::S64,
        T::F32 => AtomicType::F32,
        T::F64 => AtomicType::F64,
        T::F16 => AtomicType::F16,
        T::F16x2 => AtomicType::F16x2,
        T::Bf16 => AtomicType::Bf16,
        T::Bf16x2 => AtomicType::Bf16x2,
        T::B16 => AtomicType::B16,
        T::B128 => AtomicType::B128,
        _ => return None,
    };
    Some((operation, data_type))
}

impl Decoder<'_> {
    /// `atom` and `red`; false where the form is not supported.
    pub(super) fn atomic(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let elements = instruction.vector_length();
        let Some((operation, atomic_type)) = function(instruction, data_type, elements) else { return Ok(false) };
        let space = match Self::memory_space(instruction) {
            Ok(space @ (None | Some(Space::Global | Space::Shared))) => space,
            _ => return Ok(false),
        };
        if elements > 1 && space == Some(Space::Shared) {
            return Ok(false);
        }
        let is_reduction = instruction.opcode == O::Red;
        let has_replacement = operation == A::CompareAndSwap;
        let first = usize::from(!is_reduction);
        if !self.has_operands(instruction, first + 2 + usize::from(has_replacement))? {
            return Ok(false);
        }
        let (base, short, offset) = self.address(self.operand(instruction, first)?)?;
        // Eight half-precision values travel as four pairs, 128 bits as two halves.
        let (transport, count) = match data_type {
            T::B128 => (T::B64, 2),
            _ if elements == 8 => (T::B32, 4),
            _ => (data_type, elements as usize),
        };
        let form = MemoryForm {
            space,
            cache: CacheOperator::L2Only,
            element_bytes: transport.bytes() as u8,
            elements: count as u8,
            wide: [transport.bits() == 64; 4],
            short_address: short,
            operation,
            data_type: atomic_type,
            is_reduction,
            has_replacement,
            ..MemoryForm::NONE
        };
        let mut sources = [base, Slot::None, Slot::None, Slot::None, Slot::None];
        for (place, operand) in
            instruction.operands[first + 1..].iter().take(1 + usize::from(has_replacement)).enumerate()
        {
            let values = self.atomic_operand(operand, data_type, elements)?;
            for (index, slot) in values.into_iter().take(count).enumerate() {
                sources[1 + place * count + index] = slot;
            }
        }
        let mut destinations = [Slot::None; 4];
        let mut unpacked = Vec::new();
        // Operands and results share their widths: a result for a wider register gets a register of its own first.
        let mut widened = Vec::new();
        if !is_reduction {
            let operand = self.operand(instruction, 0)?;
            let results = parts(operand);
            if results.len() != elements as usize {
                return Err(self.bad(operand, "the vector's length is not the instruction's"));
            }
            let mut slots = Vec::new();
            if data_type == T::B128 {
                slots.extend(self.halves(operand)?);
            }
            for part in results.iter().filter(|_| data_type != T::B128) {
                self.check_value(part, data_type)?;
                slots.push(self.destination(part)?);
            }
            if elements == 8 {
                for (destination, pair) in destinations.iter_mut().zip(slots.chunks(2)) {
                    let register = self.new_register(Width::One);
                    *destination = Slot::Register(register);
                    unpacked.push((register, [pair[0], pair[1]]));
                }
            } else {
                for (destination, slot) in destinations.iter_mut().zip(slots) {
                    *destination = slot;
                    if let (true, Slot::Register(register), false) = (self.is_wide(slot), slot, transport.bits() == 64)
                    {
                        let narrow = self.new_register(Width::One);
                        *destination = Slot::Register(narrow);
                        widened.push((narrow, register));
                    }
                }
            }
        }
        self.release_to_cluster(instruction);
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.destinations = destinations;
        last.instruction.offset = offset;
        last.instruction.memory = form;
        last.instruction.kind = Kind::Atomic;
        for (register, pair) in unpacked {
            self.unpack_pair(instruction.span, register, pair);
        }
        for (narrow, wide) in widened {
            let lanes = if data_type.is_signed_integer() {
                functions::<Map<Resize<i32, i64>>>()
            } else {
                functions::<Map<Resize<u32, u64>>>()
            };
            self.helper(instruction.span, lanes, narrow, wide);
        }
        Ok(true)
    }

    /// Atomics on global memory whose results no instruction of the function reads become reductions, as ptxas makes them: a warp does not
    /// wait for their answers. Exchanges have no such form.
    pub(super) fn reduce_unread(&mut self) {
        let mut is_read = vec![false; self.widths.len()];
        for register in self.pending.iter().flat_map(|pending| pending.uses().reads) {
            is_read[register as usize] = true;
        }
        let is_wanted = |slot: &Slot| matches!(slot, Slot::Register(register) if is_read[*register as usize]);
        for pending in self.pending.iter_mut().filter(|pending| pending.instruction.kind == Kind::Atomic) {
            let form = &mut pending.instruction.memory;
            let is_global = matches!(form.space, None | Some(Space::Global));
            let is_exchange = matches!(form.operation, A::Exchange | A::CompareAndSwap);
            if is_global
                && !is_exchange
                && form.result == AtomicResult::Old
                && !pending.destinations.iter().any(is_wanted)
            {
                form.is_reduction = true;
                pending.destinations = [Slot::None; 4];
            }
        }
    }

    /// Where the values of an operand are read from.
    fn atomic_operand(&mut self, operand: &Operand, data_type: T, elements: u32) -> Decoded<[Slot; 4]> {
        let values = parts(operand);
        if values.len() != elements as usize {
            return Err(self.bad(operand, "the vector's length is not the instruction's"));
        }
        let mut slots = [Slot::None; 4];
        if data_type == T::B128 {
            slots[..2].copy_from_slice(&self.halves(operand)?);
            return Ok(slots);
        }
        if elements < 8 {
            for (slot, part) in slots.iter_mut().zip(values) {
                self.check_value(part, data_type)?;
                *slot = self.source(part, data_type)?;
            }
            return Ok(slots);
        }
        for (slot, pair) in slots.iter_mut().zip(values.chunks(2)) {
            let mut parts = [Slot::None; 2];
            for (source, part) in parts.iter_mut().zip(pair) {
                self.check_value(part, data_type)?;
                *source = self.source(part, data_type)?;
            }
            *slot = self.pack_pair(operand.span, parts, Width::One);
        }
        Ok(slots)
    }

    /// Two halves into a new register of this width, 32 bits or 64.
    pub(super) fn pack_pair(&mut self, span: Span, halves: [Slot; 2], width: Width) -> Slot {
        let register = Slot::Register(self.new_register(width));
        let is_wide = width == Width::Two;
        self.start(span, (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1));
        let last = self.last();
        last.sources[..2].copy_from_slice(&halves);
        last.destinations[0] = register;
        last.instruction.functions = functions::<Pack>();
        last.instruction.memory.elements = 2;
        last.instruction.memory.wide[0] = is_wide;
        last.instruction.immediate = if is_wide { 32 } else { 16 };
        register
    }

    /// The two halves of a register into registers of their own.
    fn unpack_pair(&mut self, span: Span, register: u32, pair: [Slot; 2]) {
        self.start(span, (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1));
        let last = self.last();
        last.sources[0] = Slot::Register(register);
        last.destinations[..2].copy_from_slice(&pair);
        last.instruction.functions = functions::<Unpack>();
        last.instruction.memory.elements = 2;
        last.instruction.immediate = 16;
    }
}
