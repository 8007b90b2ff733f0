//! Loads, stores, atomics.

use super::timing::cost;
use super::{Decoded, Decoder, Slot};
use crate::allocation::Width;
use crate::execution::{AtomicOperation as A, AtomicType, CacheOperator, Space};
use crate::interpreter::bodies::{LoadParameter, functions};
use crate::operation::{Kind, MemoryForm};
use crate::ptx::ast::{AddressBase, Instruction, Operand, OperandKind, SymbolReference};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};

fn cache_operator(instruction: &Instruction) -> CacheOperator {
    let mut cache = CacheOperator::All;
    for modifier in &instruction.modifiers {
        cache = match modifier {
            M::Volatile | M::Relaxed | M::Acquire | M::Release | M::Mmio | M::Cv | M::SequentiallyConsistent => {
                return CacheOperator::Volatile;
            }
            M::Cg => CacheOperator::L2Only,
            M::Cs | M::Lu => CacheOperator::Streaming,
            _ => cache,
        };
    }
    cache
}

impl Decoder<'_> {
    /// The space, the register (if any) and the offset of an address.
    pub(super) fn address(&mut self, operand: &Operand) -> Decoded<(Slot, bool, i64)> {
        let OperandKind::Address(address) = operand.kind else {
            return Err(self.bad(operand, "an address in brackets is expected here"));
        };
        Ok(match address.base {
            AddressBase::Absolute => (self.constant(0, true), false, address.offset),
            AddressBase::Register(register) => match self.widths[register.index()] {
                Width::One => (Slot::Register(register.0), true, address.offset),
                Width::Two => (Slot::Register(register.0), false, address.offset),
                Width::Predicate => return Err(self.bad(operand, "a predicate is no address")),
            },
            AddressBase::Symbol(symbol) => {
                let Some(base) = self.layout.address(symbol) else {
                    return Err(self.bad(operand, "the address of this symbol is not supported by the simulator"));
                };
                (self.constant(base.wrapping_add(address.offset as u64), true), false, 0)
            }
        })
    }

    /// Memory instructions; false where the form is not supported.
    pub(super) fn memory(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let opcode = instruction.opcode;
        if matches!(opcode, O::Prefetch | O::Prefetchu) {
            self.start(instruction.span, cost(instruction));
            let last = self.last();
            (last.cost.0, last.cost.1) = (crate::program::Pipe::Free, crate::program::LatencyClass::Zero);
            return Ok(true);
        }
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let bytes = data_type.bytes();
        let count = instruction.vector_length();
        if bytes > 8 || bytes * count > 16 || count > 4 || instruction.has(M::Unified) {
            return Ok(false);
        }
        let space = match instruction.state_space() {
            None => None,
            Some(StateSpace::Global) => Some(Space::Global),
            Some(StateSpace::Shared | StateSpace::SharedCta) => Some(Space::Shared),
            Some(StateSpace::Local) => Some(Space::Local),
            Some(StateSpace::Constant) => Some(Space::Constant),
            Some(StateSpace::Parameter | StateSpace::KernelParameter) if opcode == O::Ld => Some(Space::Parameter),
            _ => return Ok(false),
        };
        let mut form = MemoryForm {
            space,
            cache: cache_operator(instruction),
            element_bytes: bytes as u8,
            elements: count as u8,
            signed: data_type.is_signed_integer(),
            ..MemoryForm::NONE
        };
        if opcode == O::Ldu {
            form.space = Some(Space::Global);
        }
        let is_atomic = matches!(opcode, O::Atom | O::Red);
        if is_atomic && (count != 1 || !atomic_form(instruction, data_type, &mut form)) {
            return Ok(false);
        }
        let address_place = usize::from(matches!(opcode, O::Ld | O::Ldu | O::Atom));
        let address_operand = self.operand(instruction, address_place)?;
        // A predicate `p` that a load takes for its cache hint, or an extra operand, is not supported.
        let expected = match opcode {
            O::Ld | O::Ldu | O::St => 2,
            O::Red => 2,
            _ if form.operation == A::CompareAndSwap => 4,
            _ => 3,
        };
        if instruction.operands.len() != expected {
            return Ok(false);
        }
        if let OperandKind::Address(address) = address_operand.kind
            && let AddressBase::Symbol(SymbolReference::Return(_) | SymbolReference::Function(_)) = address.base
        {
            return Ok(false);
        }
        let (base, short, offset) = self.address(address_operand)?;
        form.short_address = short;
        let mut sources = [base, Slot::None, Slot::None, Slot::None, Slot::None];
        let mut destinations = [Slot::None; 4];
        let single;
        match opcode {
            O::Ld | O::Ldu => {
                let operand = self.operand(instruction, 0)?;
                let operands: &[Operand] = match &operand.kind {
                    OperandKind::Vector(parts) => parts,
                    _ => {
                        single = [operand.clone()];
                        &single
                    }
                };
                if operands.len() != count as usize {
                    return Err(self.bad(operand, "the vector's length is not the instruction's"));
                }
                for (index, part) in operands.iter().enumerate() {
                    destinations[index] = self.destination(part)?;
                    form.wide[index] = self.is_wide(destinations[index]);
                    if bytes == 8 && !form.wide[index] && destinations[index] != Slot::None {
                        return Err(self.bad(part, "this register is too narrow for the instruction's type"));
                    }
                }
            }
            O::St => {
                let operand = self.operand(instruction, 1)?;
                let operands: &[Operand] = match &operand.kind {
                    OperandKind::Vector(parts) => parts,
                    _ => {
                        single = [operand.clone()];
                        &single
                    }
                };
                if operands.len() != count as usize {
                    return Err(self.bad(operand, "the vector's length is not the instruction's"));
                }
                for (index, part) in operands.iter().enumerate() {
                    // A store takes the low bytes of a wider register.
                    let is_wide = match part.kind {
                        OperandKind::Register(register) => self.widths[register.index()] == Width::Two,
                        _ => bytes == 8,
                    };
                    let from = if is_wide && bytes != 8 { T::B64 } else { data_type };
                    sources[1 + index] = self.source(part, from)?;
                    form.wide[index] = from.bits() == 64;
                }
            }
            _ => {
                let first = address_place + 1;
                for index in first..instruction.operands.len().min(first + 2) {
                    sources[1 + index - first] = self.source(self.operand(instruction, index)?, data_type)?;
                }
                form.wide[0] = bytes == 8;
                if opcode == O::Atom {
                    destinations[0] = self.destination(self.operand(instruction, 0)?)?;
                    if self.is_wide(destinations[0]) != (bytes == 8) && destinations[0] != Slot::None {
                        return Ok(false);
                    }
                }
            }
        }
        let is_parameter = matches!(opcode, O::Ld | O::Ldu) && space == Some(Space::Parameter);
        // Where it is the same offset in all lanes.
        let mut place = None;
        if let (true, Slot::Constant(row)) = (is_parameter, base) {
            let rows = &self.constants[usize::from(row)..usize::from(row) + 2];
            let values: &[u64] = bytemuck::cast_slice(rows);
            place = Some(values[0] as i64);
            sources[0] = Slot::None;
        }
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.sources = sources;
        last.destinations = destinations;
        last.instruction.offset = offset.wrapping_add(place.unwrap_or(0));
        last.instruction.memory = form;
        last.instruction.kind = match opcode {
            _ if is_parameter => {
                last.instruction.functions = functions::<LoadParameter>();
                last.instruction.immediate = u32::from(place.is_none());
                Kind::Lanes
            }
            O::Ld | O::Ldu => Kind::Load,
            O::St => Kind::Store,
            _ => Kind::Atomic,
        };
        Ok(true)
    }
}

/// Fills in an atomic's operation and type; false where there is none such.
fn atomic_form(instruction: &Instruction, data_type: T, form: &mut MemoryForm) -> bool {
    form.is_reduction = instruction.opcode == O::Red;
    form.cache = CacheOperator::L2Only;
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
    });
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
        _ => return false,
    };
    let Some(operation) = operation else { return false };
    form.operation = operation;
    form.data_type = data_type;
    form.signed = false;
    true
}
