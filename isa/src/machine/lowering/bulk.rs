//! Copies of many bytes, of Hopper: `UBLKCP` and its kin, and copies of boxes of tensors, `UTMALDG` and theirs. Their operands are blocks of
//! uniform registers: an address in shared memory, the address of a barrier where one is told, coordinates.

use super::memory::atomic_operation;
use super::operands::Operands;
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::execution::AtomicType;
use crate::operation::operand::Source;
use crate::operation::{BulkForm, BulkOperation, Kind, MemoryForm, bulk_operand as place};
use crate::sass::{self, Aspect, Location, Opcode, RegisterOperand};

impl Pending {
    pub(super) fn bulk(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use BulkOperation as B;
        use Opcode as O;
        let to_shared = sass.text(Aspect::Space) == ".S";
        let operation = match sass.opcode() {
            O::Ublkcp if sass.text(Aspect::SourceSpace) == ".G" && to_shared => B::Load,
            O::Ublkcp if sass.text(Aspect::SourceSpace) == ".G" => return Err("a copy within device memory".to_owned()),
            O::Ublkcp if to_shared => B::Send,
            O::Ublkred if to_shared => B::SendReduce,
            O::Utmaldg => B::Load,
            O::Ublkcp | O::Utmastg => B::Store,
            O::Ublkred | O::Utmaredg => B::Reduce,
            O::Ublkpf | O::Utmapf => B::Prefetch,
            O::Utmacmdflush => {
                self.instruction.kind = Kind::BulkCommit;
                return Ok(());
            }
            // What is cached of tensor maps is coherent.
            _ => return Ok(()),
        };
        let is_tensor = matches!(sass.opcode(), O::Utmaldg | O::Utmastg | O::Utmaredg | O::Utmapf);
        let form = BulkForm {
            operation,
            dimensions: if is_tensor { sass.value(Aspect::Shape) as u8 + 1 } else { 0 },
            is_convolution: sass.has(Aspect::Layout),
            is_multicast: sass.has(Aspect::Multicast),
        };
        self.instruction.kind = Kind::Bulk(form);
        let mut memory = MemoryForm { pairs: true, ..MemoryForm::NONE };
        if matches!(operation, B::Reduce | B::SendReduce) {
            memory.operation = atomic_operation(sass)?;
            memory.data_type = reduced_type(sass.text(Aspect::Type))?;
        }
        // The source of a copy between CTAs is an address in shared memory.
        memory.wide[2] = !matches!(operation, B::Send | B::SendReduce);
        self.instruction.memory = memory;
        let mut list = [Source(Source::CONSTANT); place::COUNT];
        let register = |number: usize, further: u8| match sass.source(number).map(|source| source.location) {
            Some(Location::Register(RegisterOperand::Uniform(first))) => Ok(operands.uniform_following(first, further)),
            _ => Err(NO_SUCH_OPERAND),
        };
        // Coordinates are behind the addresses of the block.
        let addresses = match operation {
            B::Load | B::Send | B::SendReduce => 2,
            B::Store | B::Reduce => 1,
            B::Prefetch => 0,
        };
        match operation {
            B::Load | B::Send | B::SendReduce => {
                (list[place::SHARED], list[place::BARRIER], list[place::OTHER]) =
                    (register(0, 0)?, register(0, 1)?, register(1, 0)?);
            }
            B::Store | B::Reduce if is_tensor => {
                (list[place::SHARED], list[place::OTHER]) = (register(0, 0)?, register(1, 0)?)
            }
            B::Store | B::Reduce => (list[place::OTHER], list[place::SHARED]) = (register(0, 0)?, register(1, 0)?),
            B::Prefetch => list[place::OTHER] = register(usize::from(is_tensor), 0)?,
        }
        if is_tensor {
            for dimension in 0..form.dimensions {
                list[place::COORDINATES + usize::from(dimension)] = register(0, addresses + dimension)?;
            }
            if matches!(sass.opcode(), O::Utmaldg | O::Utmapf) && sass.encoding().has(Aspect::Layout) {
                list[place::OFFSETS] = register(2, 0)?;
            }
        } else {
            list[place::BYTES] = register(if operation == B::Prefetch { 1 } else { 2 }, 0)?;
        }
        self.instruction.operand_list = operands.list(list.iter().map(|source| source.0).collect());
        Ok(())
    }
}

/// The type that values are combined as.
fn reduced_type(name: &str) -> Lowered<AtomicType> {
    Ok(match name {
        "" => AtomicType::U32,
        ".S32" => AtomicType::S32,
        ".U64" => AtomicType::U64,
        ".S64" => AtomicType::S64,
        ".F16.RN" => AtomicType::F16,
        ".F32.RN" => AtomicType::F32,
        ".F32.FTZ.RN" => AtomicType::F32Flushed,
        ".F64.RN" => AtomicType::F64,
        ".BF16.RN" => AtomicType::Bf16,
        other => return Err(format!("a reduction of the type {other}")),
    })
}
