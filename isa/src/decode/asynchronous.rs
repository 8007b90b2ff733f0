//! Copies from device to shared memory (`cp.async`), and `mbarrier` objects.

use super::atomic::function;
use super::memory::{DecodedAddress, cache_operator, parts};
use super::timing::{access, cost};
use super::{Decoded, Decoder, Slot};
use crate::execution::{AtomicOperation, AtomicType, BarrierOperation as B, CacheOperator, Space};
use crate::interpreter::access::asynchronous::PendingCount;
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::integer::Resize;
use crate::liveness::Width;
use crate::operation::{ALL_COPIES, Kind, MemoryForm, barrier_test};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};

/// Bookkeeping of the memory pipe that takes a cycle of it.
const BOOKKEEPING: super::timing::Cost = (Pipe::Memory, LatencyClass::Variable, CountClass::Other, 1);
/// Most arrivals that a phase can wait for.
const MOST_ARRIVALS: u64 = (1 << 20) - 1;

/// `mbarrier` objects are in the CTA's shared memory; `None` where the instruction names another space.
fn barrier_space(instruction: &Instruction) -> Option<Option<Space>> {
    match instruction.state_space() {
        None => Some(None),
        Some(StateSpace::Shared | StateSpace::SharedCta | StateSpace::SharedCluster) => Some(Some(Space::Shared)),
        _ => None,
    }
}

impl Decoder<'_> {
    /// `cp.async` and its companions, and `mbarrier`; false where the form is not supported.
    pub(super) fn asynchronous(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if instruction.opcode == O::Mbarrier {
            return self.mbarrier(instruction);
        }
        if !instruction.has(M::Async) || instruction.has(M::Reduce) {
            return Ok(false);
        }
        if instruction.has(M::Mbarrier) {
            return self.arrive_after_copies(instruction);
        }
        let (kind, groups) = match () {
            () if instruction.has(M::CommitGroup) => (Kind::CopyCommit, 0),
            () if instruction.has(M::WaitAll) => (Kind::CopyWait, ALL_COPIES),
            () if instruction.has(M::WaitGroup) => {
                let operand = self.operand(instruction, 0)?;
                let OperandKind::Integer(groups) = operand.kind else {
                    return Err(self.bad(operand, "a number of groups is expected here"));
                };
                (Kind::CopyWait, u32::try_from(groups).unwrap_or(ALL_COPIES).min(ALL_COPIES - 1))
            }
            () => return self.copy_to_shared(instruction),
        };
        self.start(instruction.span, BOOKKEEPING);
        self.last().instruction.kind = kind;
        self.last().instruction.immediate = groups;
        Ok(true)
    }

    /// `cp.async.ca` and `.cg`: `[to], [from], size`, then the bytes to read or a predicate, then a cache hint.
    fn copy_to_shared(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let size_operand = self.operand(instruction, 2)?;
        let size = match size_operand.kind {
            OperandKind::Integer(size @ (4 | 8 | 16)) => size as u8,
            _ => return Err(self.bad(size_operand, "a copy has 4, 8 or 16 bytes")),
        };
        if instruction.has(M::Cg) && size != 16 {
            return Err(self.bad(size_operand, "a copy through the L2 alone has 16 bytes"));
        }
        let hint = usize::from(instruction.has(M::L2CacheHint));
        let (mut bytes, mut ignored) = (None, (Slot::None, u32::MAX));
        match instruction.operands.len() - hint {
            3 => {}
            4 => {
                let operand = self.operand(instruction, 3)?;
                let is_predicate = match operand.kind {
                    OperandKind::Register(register) => self.widths[register.index()] == Width::Predicate,
                    OperandKind::NegatedPredicate(_) => true,
                    _ => false,
                };
                if is_predicate {
                    ignored = self.predicate(operand)?;
                } else {
                    bytes = Some(self.source(operand, T::U32)?);
                }
            }
            _ => return Ok(false),
        }
        let (to, to_short, to_offset) = self.address(self.operand(instruction, 0)?)?;
        let (from, from_short, from_offset) = self.address(self.operand(instruction, 1)?)?;
        let bytes = bytes.unwrap_or_else(|| self.constant(u64::from(size), false));
        let Ok(offset) = i32::try_from(to_offset) else {
            return Err(self.bad(&instruction.operands[0], "this offset is no offset in shared memory"));
        };
        self.start(instruction.span, access(false, true));
        let last = self.last();
        last.sources = [from, to, bytes, Slot::None, Slot::None];
        last.predicate_sources[0] = ignored.0;
        let instruction_cache = cache_operator(instruction);
        let decoded = &mut last.instruction;
        decoded.predicate_flips[0] = ignored.1;
        decoded.kind = Kind::Copy;
        decoded.offset = from_offset;
        decoded.immediate = offset as u32;
        decoded.memory = MemoryForm {
            space: None,
            cache: instruction_cache,
            element_bytes: size,
            short_address: from_short,
            wide: [false, !to_short, false, false],
            ..MemoryForm::NONE
        };
        Ok(true)
    }

    /// `st.async` and `red.async` to shared memory of the cluster: the address, the values, the barrier that is told of their bytes. False where
    /// the form is not supported.
    pub(super) fn access_and_tell(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(Some(Space::Shared) | None) = Self::memory_space(instruction).ok() else { return Ok(false) };
        let Some(&data_type) = instruction.types.last() else { return Ok(false) };
        let elements = instruction.vector_length();
        let bytes = data_type.bytes() * elements;
        let is_reduction = instruction.opcode == O::Red;
        // Other forms tell nobody.
        if !instruction.has(M::CompleteTxBytes) || !matches!(data_type.bytes(), 4 | 8) || bytes > 16 {
            return Ok(false);
        }
        let mut form = MemoryForm {
            space: Some(Space::Shared),
            cache: CacheOperator::L2Only,
            element_bytes: data_type.bytes() as u8,
            elements: elements as u8,
            is_reduction,
            ..MemoryForm::NONE
        };
        if is_reduction {
            let Some((operation, data_type)) = function(instruction, data_type, elements) else { return Ok(false) };
            if elements != 1 || !matches!(data_type, AtomicType::U32 | AtomicType::S32 | AtomicType::U64) {
                return Ok(false);
            }
            (form.operation, form.data_type) = (operation, data_type);
        }
        let value = self.operand(instruction, 1)?;
        if parts(value).len() != elements as usize {
            return Err(self.bad(value, "the vector's length is not the instruction's"));
        }
        let (to, barrier) = (self.operand(instruction, 0)?, self.operand(instruction, 2)?);
        let ((to, offset), (barrier, barrier_offset)) = (self.shared_word(to)?, self.shared_word(barrier)?);
        let both = self.pack_pair(instruction.span, [to, barrier], Width::Two);
        self.store(instruction, form, (both, false, i64::from(offset)), value, data_type)?;
        let last = self.last();
        last.cost = access(true, false);
        last.instruction.kind = Kind::AndTell;
        last.instruction.immediate = barrier_offset as u32;
        Ok(true)
    }

    /// The register of an address in shared memory, of which a generic one has the same lower half, and what is added to it.
    fn shared_word(&mut self, operand: &Operand) -> Decoded<(Slot, i32)> {
        let (base, short, offset) = self.address(operand)?;
        let Ok(offset) = i32::try_from(offset) else {
            return Err(self.bad(operand, "this offset is no offset in shared memory"));
        };
        let (Slot::Register(register), false) = (base, short) else { return Ok((base, offset)) };
        let low = self.new_register(Width::One);
        self.helper(operand.span, functions::<Map<Resize<u64, u32>>>(), register, low);
        Ok((Slot::Register(low), offset))
    }

    fn arrive_after_copies(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(space) = barrier_space(instruction) else { return Ok(false) };
        let address = self.address(self.operand(instruction, 0)?)?;
        self.start(instruction.span, BOOKKEEPING);
        self.barrier_access(address, space);
        let last = self.last();
        last.instruction.kind = Kind::CopyArrive;
        last.instruction.immediate = u32::from(!instruction.has(M::Noinc));
        Ok(true)
    }

    /// Makes the last instruction access an object.
    fn barrier_access(&mut self, (base, short, offset): DecodedAddress, space: Option<Space>) {
        let last = self.last();
        last.sources[0] = base;
        last.instruction.offset = offset;
        last.instruction.memory = MemoryForm {
            space,
            cache: CacheOperator::L2Only,
            element_bytes: 8,
            short_address: short,
            wide: [true; 4],
            data_type: AtomicType::U64,
            ..MemoryForm::NONE
        };
    }

    fn mbarrier(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if instruction.has(M::PendingCount) {
            let state = self.source(self.operand(instruction, 1)?, T::B64)?;
            self.start(instruction.span, (Pipe::Int, LatencyClass::Integer, CountClass::Integer, 1));
            self.last().sources[0] = state;
            self.last().instruction.functions = functions::<Map<PendingCount>>();
            let to = self.operand(instruction, 0)?;
            self.set_destination(to, T::B32)?;
            return Ok(true);
        }
        let Some(space) = barrier_space(instruction) else { return Ok(false) };
        if instruction.has(M::TestWait) || instruction.has(M::TryWait) {
            return self.barrier_test(instruction, space);
        }
        let returns = instruction.has(M::Arrive) || instruction.has(M::ArriveDrop);
        let expects = instruction.has(M::ExpectTx);
        let place = usize::from(returns);
        let operation = match () {
            () if instruction.has(M::Init) => B::Initialize,
            () if instruction.has(M::Inval) => B::Initialize,
            () if instruction.has(M::Arrive) => B::Arrive,
            () if instruction.has(M::ArriveDrop) => B::ArriveDrop,
            () if expects => B::Expect,
            () if instruction.has(M::CompleteTx) => B::Complete,
            () => return Ok(false),
        };
        let destination = if returns { self.destination(self.operand(instruction, 0)?)? } else { Slot::None };
        if destination != Slot::None && !self.is_wide(destination) {
            return Err(self.bad(&instruction.operands[0], "a state has 64 bits"));
        }
        let address = self.address(self.operand(instruction, place)?)?;
        let value = match instruction.operands.get(place + 1) {
            Some(operand) => {
                let is_count = matches!(operation, B::Initialize | B::Arrive | B::ArriveDrop) && !expects;
                if let (true, OperandKind::Integer(count)) = (is_count, &operand.kind)
                    && !(1..=MOST_ARRIVALS).contains(count)
                {
                    return Err(self.bad(operand, "a count of arrivals is from 1 to 1048575"));
                }
                self.barrier_count(operand)?
            }
            // An object that is no longer one is left as zeros.
            None => self.constant(u64::from(!instruction.has(M::Inval)), true),
        };
        let (operand, replacement) =
            if expects && returns { (self.constant(1, true), value) } else { (value, self.constant(0, true)) };
        // An arrival releases unless it says otherwise.
        if returns && instruction.has(M::SharedCluster) && !instruction.has(M::Relaxed) {
            self.release(instruction);
        }
        self.start(instruction.span, cost(instruction));
        self.barrier_access(address, space);
        let last = self.last();
        (last.sources[1], last.sources[2]) = (operand, replacement);
        last.destinations[0] = destination;
        last.instruction.kind = Kind::Atomic;
        let form = &mut last.instruction.memory;
        form.operation = AtomicOperation::Barrier(operation);
        form.has_replacement = true;
        form.is_reduction = destination == Slot::None;
        Ok(true)
    }

    /// A count as 64 bits.
    fn barrier_count(&mut self, operand: &crate::ptx::ast::Operand) -> Decoded<Slot> {
        if let OperandKind::Register(register) = operand.kind
            && self.widths[register.index()] == Width::One
        {
            // Zero-extended, as 32-bit registers are.
            return self.source(operand, T::U64);
        }
        let value = self.immediate(operand, T::U32)?;
        Ok(self.constant(value, true))
    }

    fn barrier_test(&mut self, instruction: &Instruction, space: Option<Space>) -> Decoded<bool> {
        let destination = self.destination(self.operand(instruction, 0)?)?;
        if let Slot::Register(register) = destination
            && self.widths[register as usize] != Width::Predicate
        {
            return Err(self.bad(&instruction.operands[0], "a predicate is expected here"));
        }
        let address = self.address(self.operand(instruction, 1)?)?;
        let has_parity = instruction.has(M::Parity);
        let phase = self.source(self.operand(instruction, 2)?, if has_parity { T::U32 } else { T::B64 })?;
        if let Some(time) = instruction.operands.get(3) {
            // How long it may wait: a hint, which the simulator's short wait keeps in any case.
            self.source(time, T::U32)?;
        }
        self.start(instruction.span, cost(instruction));
        self.barrier_access(address, space);
        let last = self.last();
        last.sources[1] = phase;
        last.predicate_destinations[0] = destination;
        last.instruction.kind = Kind::BarrierTest;
        last.instruction.immediate = if has_parity { barrier_test::PARITY } else { 0 }
            | if instruction.has(M::TryWait) { barrier_test::SUSPENDS } else { 0 };
        Ok(true)
    }
}
