//! Copies from device to shared memory that go on while the warp does: `LDGSTS`, and what waits for it.

use super::memory::{atomic_operation, atomic_type, size_of};
use super::operands::{Operands, predicate_destination};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::execution::{AtomicOperation, AtomicType, CacheOperator, Space};
use crate::mbarrier::BarrierOperation;
use crate::operation::operand::{SINK_ROW, Source};
use crate::operation::{AtomicResult, Kind, MemoryForm, barrier_test};
use crate::sass::{self, Aspect, Opcode};

impl Pending {
    pub(super) fn asynchronous(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        match sass.opcode() {
            Opcode::Ldgsts => self.copy(sass, operands),
            Opcode::Ldgdepbar => {
                self.instruction.kind = Kind::CopyCommit;
                Ok(())
            }
            Opcode::Syncs => self.synchronise(sass, operands),
            Opcode::Stas | Opcode::Redas => self.access_and_tell(sass, operands),
            _ => self.arrival_after_copies(sass, operands),
        }
    }

    /// `LDGSTS`: where its predicate is false, it writes zeros. `.ZFILL` is of copies that read a part of their bytes: the lowest bits of the
    /// address say how many they leave out (own finding from the code for `cp.async` with a size to read).
    fn copy(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let [to, from] = [0, 1].map(|number| sass.address_operand(number));
        let (to, from) = to.zip(from).ok_or(NO_SUCH_OPERAND)?;
        let (each, elements, _) = size_of(sass);
        let bytes = each * elements;
        self.condition(sass);
        // A copy knows the lanes that read nothing.
        self.instruction.predicate_flips[0] = !self.instruction.predicate_flips[0];
        self.instruction.kind = if sass.has(Aspect::ZeroFill) { Kind::CopyPart } else { Kind::Copy };
        self.instruction.offset = from.offset;
        self.instruction.immediate = to.offset as u32;
        self.instruction.sources = [
            operands.register(from.register),
            operands.register(to.register),
            operands.number(bytes.into()),
            to.uniform.map_or(Source(Source::CONSTANT), |register| operands.uniform(register)),
            Source(Source::CONSTANT),
        ];
        self.instruction.memory = MemoryForm {
            space: None,
            cache: if sass.has(Aspect::Bypass) { CacheOperator::L2Only } else { CacheOperator::All },
            element_bytes: bytes,
            pairs: true,
            ..MemoryForm::NONE
        };
        self.add_uniform(&from, true, operands);
        Ok(())
    }

    /// `STAS` and `REDAS`: the pair of registers has the address, to which the number is added, and that of the barrier.
    fn access_and_tell(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        let address = sass.address_operand(0).ok_or(NO_SUCH_OPERAND)?;
        if address.adds_wide == Some(false)
            || address.uniform.is_some_and(|uniform| uniform != sass::ZERO_UNIFORM_REGISTER)
        {
            return Err("an access that tells a barrier whose address is in no pair of registers alone".to_owned());
        }
        let data = sass.source(0).and_then(|data| data.register()).ok_or(NO_SUCH_OPERAND)?;
        let is_reduction = sass.opcode() == Opcode::Redas;
        let (mut element_bytes, elements, _) = size_of(sass);
        let (mut operation, mut data_type) = (AtomicOperation::Add, AtomicType::U32);
        if is_reduction {
            operation = atomic_operation(sass)?;
            (data_type, _) = atomic_type(sass)?;
            element_bytes = data_type.bytes();
        }
        self.instruction.kind = Kind::AndTell;
        self.instruction.sources[0] = operands.register(address.register);
        self.instruction.offset = address.offset;
        for element in 0..elements {
            self.instruction.sources[1 + usize::from(element)] = operands.following(data, element);
        }
        self.instruction.memory = MemoryForm {
            space: Some(Space::Shared),
            cache: CacheOperator::L2Only,
            element_bytes,
            elements,
            pairs: true,
            wide: [element_bytes == 8; 4],
            operation,
            data_type,
            is_reduction,
            ..MemoryForm::NONE
        };
        Ok(())
    }

    /// `ARRIVES.LDGSTSBAR`: the lanes arrive at a barrier when their copies so far have come. Code itself counts the arrivals in; on Hopper
    /// as bytes that the phase waits for, of which each arrival is one.
    fn arrival_after_copies(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        let operation = match sass.text(Aspect::Mode) {
            ".TRANSCNT" => BarrierOperation::Complete,
            ".ARVCNT" => BarrierOperation::Arrive,
            _ if sass.encoding().has(Aspect::Mode) => return Err("an arrival at a barrier of Ampere".to_owned()),
            _ => BarrierOperation::ArriveOfAmpere,
        };
        self.instruction.kind = Kind::CopyArrive;
        self.barrier_access(sass, AtomicOperation::Barrier(operation), operands)
    }

    /// The form of an access to a barrier in shared memory.
    fn barrier_access(
        &mut self,
        sass: &sass::Instruction,
        operation: AtomicOperation,
        operands: &Operands,
    ) -> Lowered<()> {
        let address = sass.address_operand(0).ok_or(NO_SUCH_OPERAND)?;
        self.instruction.sources[0] = operands.register(address.register);
        self.instruction.offset = address.offset;
        self.instruction.memory = MemoryForm {
            space: Some(Space::Shared),
            cache: CacheOperator::L2Only,
            element_bytes: 8,
            short_address: true,
            pairs: true,
            wide: [true; 4],
            data_type: AtomicType::U64,
            operation,
            ..MemoryForm::NONE
        };
        self.add_uniform(&address, false, operands);
        Ok(())
    }

    /// `SYNCS`: barriers of Hopper in shared memory.
    fn synchronise(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        match sass.text(Aspect::Operation) {
            // Objects are made by code that stores them.
            ".EXCH" if operands.written(sass.destination(0)) == SINK_ROW => {
                self.instruction.kind = Kind::Atomic;
                self.barrier_access(sass, AtomicOperation::Exchange, operands)?;
                self.instruction.memory.is_reduction = true;
                self.instruction.sources[1] = operands.read_wide(sass.source(0).ok_or(NO_SUCH_OPERAND)?)?;
                Ok(())
            }
            ".ARRIVE" => self.arrival(sass, operands),
            ".PHASECHK" => {
                self.instruction.kind = Kind::BarrierTest;
                self.barrier_access(sass, AtomicOperation::Add, operands)?;
                self.instruction.sources[1] = operands.read(sass.source(0).ok_or(NO_SUCH_OPERAND)?)?;
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                let waits = if sass.has(Aspect::Wait) { barrier_test::SUSPENDS } else { 0 };
                self.instruction.immediate = barrier_test::UPPER_HALF | waits;
                Ok(())
            }
            // What is cached of barriers is coherent; a barrier that is no longer one is left as it is.
            ".IV" | ".WB" | ".IVALL" | ".WBALL" => Ok(()),
            other => Err(format!("the operation {other} on a barrier, or one that returns the old value")),
        }
    }

    /// `SYNCS.ARRIVE`: the letters A and T are followed by what the arrivals and the bytes that a phase waits for are changed by: R is the
    /// number in a register, X bytes that have come (own finding from the code for each `mbarrier` instruction of PTX).
    fn arrival(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        // Counts have fewer than 32 bits; the upper half of the pair is not looked at.
        let number = operands.read(sass.source(0).ok_or(NO_SUCH_OPERAND)?)?;
        let (zero, one) = (operands.wide_number(0), operands.wide_number(1));
        let (operation, [operand, bytes]) = match sass.text(Aspect::Arrival) {
            "" => (BarrierOperation::Arrive, [one, number]),
            ".A1T0" => (BarrierOperation::Arrive, [one, zero]),
            ".ART0" => (BarrierOperation::Arrive, [number, zero]),
            ".A0T1" => (BarrierOperation::Expect, [one, zero]),
            ".A0TR" => (BarrierOperation::Expect, [number, zero]),
            ".A0TX" => (BarrierOperation::Complete, [number, zero]),
            other => return Err(format!("an arrival {other}")),
        };
        let operation = match operation {
            BarrierOperation::Arrive if sass.has(Aspect::Drop) => BarrierOperation::ArriveDrop,
            _ if sass.has(Aspect::Drop) => return Err("an arrival of no threads that leave".to_owned()),
            _ => operation,
        };
        self.instruction.kind = Kind::Atomic;
        self.barrier_access(sass, AtomicOperation::Barrier(operation), operands)?;
        let form = &mut self.instruction.memory;
        form.has_replacement = true;
        form.is_reduction = sass.has(Aspect::NoResult);
        if sass.has(Aspect::ThreadMask) {
            form.result = AtomicResult::Lanes;
        }
        (self.instruction.sources[1], self.instruction.sources[2]) = (operand, bytes);
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        Ok(())
    }
}
