//! Loads and stores.

use super::call::FRAME_COST;
use super::timing::{Cost, cost};
use super::{Decoded, Decoder, Slot};
use crate::execution::{CacheOperator, Space};
use crate::interpreter::bodies::{LoadParameter, functions};
use crate::liveness::Width;
use crate::operation::{Kind, MemoryForm};
use crate::ptx::ast::{AddressBase, Instruction, Operand, OperandKind, RegisterId, SymbolReference};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};
use std::slice;

/// An address before registers have places: the register or constant, whether it has 32 bits, and the number that is added to it.
pub(super) type DecodedAddress = (Slot, bool, i64);

/// How a load or store may be cached. Eviction priorities and prefetch sizes are hints that change no result.
pub(super) fn cache_operator(instruction: &Instruction) -> CacheOperator {
    let mut cache = CacheOperator::All;
    for modifier in &instruction.modifiers {
        cache = match modifier {
            M::Volatile | M::Relaxed | M::Acquire | M::Release | M::Mmio | M::Cv | M::SequentiallyConsistent => {
                return CacheOperator::Volatile;
            }
            M::Cg | M::L1NoAllocate => CacheOperator::L2Only,
            M::Cs | M::Lu => CacheOperator::Streaming,
            _ => cache,
        };
    }
    cache
}

/// The parts of a vector, or an operand on its own.
pub(super) fn parts(operand: &Operand) -> &[Operand] {
    match &operand.kind {
        OperandKind::Vector(parts) => parts,
        _ => slice::from_ref(operand),
    }
}

impl Decoder<'_> {
    /// The address that an operand in brackets names.
    pub(super) fn address(&mut self, operand: &Operand) -> Decoded<DecodedAddress> {
        let OperandKind::Address(address) = operand.kind else {
            return Err(self.bad(operand, "an address in brackets is expected here"));
        };
        let (base, short, offset) = match address.base {
            AddressBase::Absolute => (self.constant(address.offset as u64, true), false, 0),
            AddressBase::Register(register) => match self.widths[register.index()] {
                Width::One => (Slot::Register(register.0), true, address.offset),
                Width::Two => (Slot::Register(register.0), false, address.offset),
                _ => return Err(self.bad(operand, "an address is a register of 32 or 64 bits")),
            },
            AddressBase::Symbol(symbol) => {
                if let Some((base, place)) = self.frame_place(symbol) {
                    return Ok((base, true, address.offset.wrapping_add(place)));
                }
                let Some(base) = self.layout.address(symbol) else {
                    return Err(self.bad(operand, "the address of this symbol is not supported by the simulator"));
                };
                let base = base.wrapping_add(address.offset as u64);
                let is_shared = self.layout.is_shared(symbol);
                (if is_shared { self.shared_address(base, true) } else { self.constant(base, true) }, false, 0)
            }
        };
        Ok((base, short, offset))
    }

    /// Whether an operand that holds a value of this type in memory may be that register: PTX lets loads and stores have wider
    /// registers, but none narrower, and no floating-point value in an integer register or the other way round.
    fn check_register(&self, operand: &Operand, register: RegisterId, data_type: T) -> Decoded<()> {
        let Some(&of_register) = self.function.register_types.get(register.index()) else { return Ok(()) };
        if of_register == T::Pred {
            return Err(self.bad(operand, "a predicate cannot be loaded or stored"));
        }
        if of_register.bits() < data_type.bits() {
            return Err(self.bad(operand, "this register is too narrow for the instruction's type"));
        }
        let is_integer =
            |scalar_type: T| matches!(scalar_type, T::U8 | T::S8 | T::U16 | T::S16 | T::U32 | T::S32 | T::U64 | T::S64);
        if (data_type.is_float() && is_integer(of_register)) || (is_integer(data_type) && of_register.is_float()) {
            return Err(self.bad(operand, "the register's type and the instruction's do not go together"));
        }
        Ok(())
    }

    /// Checks an operand of a load, store or atomic, a register or a vector's part.
    pub(super) fn check_value(&self, operand: &Operand, data_type: T) -> Decoded<()> {
        match operand.kind {
            OperandKind::Register(register) => self.check_register(operand, register, data_type),
            _ => Ok(()),
        }
    }

    /// The memory space that an instruction names; `Err(())` where it is not one that the instruction can access.
    pub(super) fn memory_space(instruction: &Instruction) -> Result<Option<Space>, ()> {
        Ok(match instruction.state_space() {
            None => None,
            Some(StateSpace::Global) => Some(Space::Global),
            // An address says whose shared memory of the cluster it is in.
            Some(StateSpace::Shared | StateSpace::SharedCta | StateSpace::SharedCluster) => Some(Space::Shared),
            Some(StateSpace::Local) => Some(Space::Local),
            Some(StateSpace::Constant) if matches!(instruction.opcode, O::Ld) => Some(Space::Constant),
            Some(StateSpace::Parameter | StateSpace::KernelParameter) if instruction.opcode == O::Ld => {
                Some(Space::Parameter)
            }
            _ => return Err(()),
        })
    }

    /// Whether the operands from `count` on are a cache hint, which is checked and has no effect.
    pub(super) fn has_operands(&self, instruction: &Instruction, count: usize) -> Decoded<bool> {
        let hint = usize::from(instruction.has(M::L2CacheHint));
        if let (1, Some(policy)) = (hint, instruction.operands.get(count)) {
            self.check_value(policy, T::B64)?;
        }
        Ok(instruction.operands.len() == count + hint)
    }

    /// `ld`, `ldu` and `st`; false where the form is not supported.
    pub(super) fn memory(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let opcode = instruction.opcode;
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        // 128 bits are loaded and stored as two elements.
        let (bytes, count) = match data_type {
            T::B128 if instruction.vector_length() == 1 => (8, 2),
            _ => (data_type.bytes(), instruction.vector_length()),
        };
        if bytes > 8 || bytes * count > 16 || count > 4 || data_type == T::Pred {
            return Ok(false);
        }
        let in_frame = self.is_frame_parameter(instruction);
        let space = if in_frame { Ok(Some(Space::Local)) } else { Self::memory_space(instruction) };
        let Ok(space) = space else { return Ok(false) };
        let form = MemoryForm {
            space: if opcode == O::Ldu { Some(Space::Global) } else { space },
            cache: cache_operator(instruction),
            element_bytes: bytes as u8,
            elements: count as u8,
            signed: data_type.is_signed_integer(),
            ..MemoryForm::NONE
        };
        if !self.has_operands(instruction, 2)? {
            return Ok(false);
        }
        let address_operand = self.operand(instruction, usize::from(opcode != O::St))?;
        if let OperandKind::Address(address) = address_operand.kind
            && let AddressBase::Symbol(SymbolReference::Function(_)) = address.base
        {
            return Ok(false);
        }
        let address = self.address(address_operand)?;
        let value = self.operand(instruction, usize::from(opcode == O::St))?;
        if data_type != T::B128 && parts(value).len() != count as usize {
            return Err(self.bad(value, "the vector's length is not the instruction's"));
        }
        match opcode {
            O::St => self.store(instruction, form, address, value, data_type)?,
            _ => self.load(instruction, form, address, value, data_type)?,
        }
        Ok(true)
    }

    /// Arguments and results of functions are in registers where the GPU's own code passes them.
    fn access_cost(&self, instruction: &Instruction) -> Cost {
        if self.is_frame_parameter(instruction) { FRAME_COST } else { cost(instruction) }
    }

    fn load(
        &mut self,
        instruction: &Instruction,
        mut form: MemoryForm,
        (base, short, offset): DecodedAddress,
        value: &Operand,
        data_type: T,
    ) -> Decoded<()> {
        let mut destinations = [Slot::None; 4];
        let is_double = data_type == T::B128;
        if is_double {
            destinations[..2].copy_from_slice(&self.halves(value)?);
            form.wide[..2].fill(true);
        }
        for (index, part) in parts(value).iter().enumerate().filter(|_| !is_double) {
            self.check_value(part, data_type)?;
            destinations[index] = self.destination(part)?;
            form.wide[index] = self.is_wide(destinations[index]);
        }
        form.short_address = short;
        let mut offset = offset;
        // Parameters at the same offset in all lanes are read without a trip through memory.
        let mut is_parameter = false;
        if let (Some(Space::Parameter), Slot::Constant(row)) = (form.space, base) {
            let rows = &self.constants[usize::from(row)..usize::from(row) + 2];
            let values: &[u64] = bytemuck::cast_slice(rows);
            offset = offset.wrapping_add(values[0] as i64);
            is_parameter = true;
            let end = offset.saturating_add(i64::from(form.element_bytes) * i64::from(form.elements));
            let size = self.layout.parameter_bytes;
            if offset < 0 || end > i64::from(size) {
                let message = format!("bytes {offset} to {} of a parameter block of {size} bytes", end - 1);
                return Err(self.bad(self.operand(instruction, 1)?, &message));
            }
        }
        self.start(instruction.span, self.access_cost(instruction));
        let last = self.last();
        last.destinations = destinations;
        last.instruction.offset = offset;
        last.instruction.memory = form;
        if is_parameter {
            last.instruction.functions = functions::<LoadParameter>();
            last.instruction.kind = Kind::Lanes;
        } else {
            last.sources[0] = base;
            last.instruction.kind = Kind::Load;
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        instruction: &Instruction,
        mut form: MemoryForm,
        (base, short, offset): DecodedAddress,
        value: &Operand,
        data_type: T,
    ) -> Decoded<()> {
        let mut sources = [base, Slot::None, Slot::None, Slot::None, Slot::None];
        let is_double = data_type == T::B128;
        if is_double {
            sources[1..3].copy_from_slice(&self.halves(value)?);
            form.wide[..2].fill(true);
        }
        for (index, part) in parts(value).iter().enumerate().filter(|_| !is_double) {
            self.check_value(part, data_type)?;
            // A store takes the low bytes of a wider register.
            let is_wide = match part.kind {
                OperandKind::Register(register) => self.widths[register.index()] == Width::Two,
                _ => data_type.bits() == 64,
            };
            let from = if is_wide && data_type.bits() != 64 { T::B64 } else { data_type };
            sources[1 + index] = self.source(part, from)?;
            form.wide[index] = from.bits() == 64;
        }
        form.short_address = short;
        self.release_to_cluster(instruction);
        self.start(instruction.span, self.access_cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.instruction.offset = offset;
        last.instruction.memory = form;
        last.instruction.kind = Kind::Store;
        Ok(())
    }
}
