//! Copies from device to shared memory that go on while the warp does: `LDGSTS`, and what waits for it.

use super::memory::size_of;
use super::operands::Operands;
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::execution::{AtomicOperation, AtomicType, CacheOperator, Space};
use crate::mbarrier::BarrierOperation;
use crate::operation::operand::Source;
use crate::operation::{Kind, MemoryForm};
use crate::sass::{self, Aspect, Opcode};

impl Pending {
    pub(super) fn asynchronous(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        match sass.opcode() {
            Opcode::Ldgsts => self.copy(sass, operands),
            Opcode::Ldgdepbar => {
                self.instruction.kind = Kind::CopyCommit;
                Ok(())
            }
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

    /// `ARRIVES.LDGSTSBAR`: the lanes arrive at a barrier when their copies so far have come. Code itself counts the arrivals in.
    fn arrival_after_copies(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        if sass.encoding().has(Aspect::Mode) {
            return Err("an arrival at a barrier of Hopper".to_owned());
        }
        let address = sass.address_operand(0).ok_or(NO_SUCH_OPERAND)?;
        self.instruction.kind = Kind::CopyArrive;
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
            operation: AtomicOperation::Barrier(BarrierOperation::ArriveOfAmpere),
            ..MemoryForm::NONE
        };
        self.add_uniform(&address, false, operands);
        Ok(())
    }
}
