//! Loads, stores, atomics and fences.

use super::cost::is_fence_of_device;
use super::operands::{Operands, predicate_destination};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::execution::{AtomicOperation, AtomicType, CacheOperator, Space};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::integer::{ExtractS32, ExtractU32, Move};
use crate::interpreter::machine::arithmetic::MapPairs;
use crate::interpreter::machine::logic::{LoadBank, QuerySpace};
use crate::mbarrier::BarrierOperation;
use crate::operation::operand::SINK_PREDICATE;
use crate::operation::{AtomicResult, Kind, MemoryForm, UniformAddress};
use crate::program::timing::{LatencyClass, Pipe};
use crate::sass::{self, Address, Aspect, Location, Opcode};

impl Pending {
    pub(super) fn memory(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        match sass.opcode() {
            O::Ldg | O::Ld | O::Lds | O::Ldl => self.load(sass, operands),
            O::Stg | O::St | O::Sts | O::Stl => self.store(sass, operands),
            O::Atomg | O::Atom | O::Atoms | O::Red | O::Redg => self.atomic(sass, operands),
            O::Ldsm => {
                self.instruction.kind = Kind::LoadMatrices;
                self.access(sass, operands)?;
                self.instruction.memory = MemoryForm { elements: 4, scale: 0, ..self.instruction.memory };
                self.matrix_load(sass, operands)
            }
            O::Stsm => {
                self.instruction.kind = Kind::StoreMatrices;
                self.access(sass, operands)?;
                self.instruction.memory = MemoryForm { elements: 4, scale: 0, ..self.instruction.memory };
                self.matrix_store(sass, operands)
            }
            O::Ldc | O::Uldc => self.constant_load(sass, operands),
            O::Membar if is_fence_of_device(sass) => {
                self.instruction.kind = Kind::Fence;
                Ok(())
            }
            O::Qspc => {
                self.access(sass, operands)?;
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                let space = match sass.text(Aspect::Space) {
                    ".G" => 0,
                    ".L" => 1,
                    ".D" => 3,
                    _ => 2,
                };
                self.run(functions::<QuerySpace>(), space)
            }
            // Fences of a CTA, and instructions that empty caches: values are coherent.
            _ => Ok(()),
        }
    }

    /// Space, caching and addresses.
    fn access(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        use Opcode as O;
        let space = match sass.opcode() {
            O::Lds | O::Ldsm | O::Sts | O::Stsm | O::Atoms => Some(Space::Shared),
            O::Ldl | O::Stl => Some(Space::Local),
            O::Ldg | O::Stg | O::Atomg => Some(Space::Global),
            _ => None,
        };
        let address = sass.address_operand(0).ok_or(NO_SUCH_OPERAND)?;
        let is_device = space.is_none_or(|space| space == Space::Global);
        let is_wide = is_device && (sass.has(Aspect::Extended) || is_reduction(sass));
        let is_atomic = matches!(sass.opcode(), O::Atomg | O::Atom | O::Atoms) || is_reduction(sass);
        let form = &mut self.instruction.memory;
        *form = MemoryForm { space, pairs: true, ..MemoryForm::NONE };
        if is_device && !is_atomic {
            form.cache = match (sass.text(Aspect::Order), sass.text(Aspect::Scope), sass.text(Aspect::Eviction)) {
                (".STRONG", ".GPU" | ".SYS", _) | (".MMIO", _, _) => CacheOperator::Volatile,
                (_, _, ".EF") => CacheOperator::Streaming,
                _ => CacheOperator::All,
            };
        }
        form.short_address = !is_wide;
        form.scale = address.scale;
        self.add_uniform(&address, is_wide, operands);
        self.instruction.sources[0] = operands.register(address.register);
        self.instruction.offset = address.offset;
        Ok(())
    }

    /// Adds the uniform register of an address, or the pair of one of 64 bits.
    pub(super) fn add_uniform(&mut self, address: &Address, is_wide: bool, operands: &Operands) {
        if let Some(uniform) = address.uniform {
            let form = &mut self.instruction.memory;
            form.uniform = if is_wide { UniformAddress::Pair } else { UniformAddress::Short };
            form.short_address = !is_wide || address.adds_wide != Some(true);
            self.instruction.operand_list = operands.uniform(uniform).0;
        }
    }

    /// Bytes of an access: a register for each four.
    fn size(&mut self, sass: &sass::Instruction) -> u8 {
        let form = &mut self.instruction.memory;
        (form.element_bytes, form.elements, form.signed) = size_of(sass);
        form.elements
    }

    fn load(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        if predicate_destination(sass.predicate(0)) != SINK_PREDICATE {
            return Err("a load that sets a predicate".to_owned());
        }
        self.instruction.kind = Kind::Load;
        if sass.predicate_source(0).is_some_and(|predicate| !predicate.is_true()) {
            self.instruction.kind = Kind::LoadOrZero;
            self.condition(sass);
        }
        self.access(sass, operands)?;
        for element in 0..self.size(sass) {
            self.instruction.destinations[usize::from(element)] =
                operands.written_following(sass.destination(0), element);
        }
        Ok(())
    }

    fn store(&mut self, sass: &sass::Instruction, operands: &Operands) -> Lowered<()> {
        self.instruction.kind = Kind::Store;
        self.access(sass, operands)?;
        let data = sass.source(0).and_then(|data| data.register()).ok_or(NO_SUCH_OPERAND)?;
        for element in 0..self.size(sass) {
            self.instruction.sources[1 + usize::from(element)] = operands.following(data, element);
        }
        self.instruction.memory.signed = false;
        Ok(())
    }

    fn atomic(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.instruction.kind = Kind::Atomic;
        self.access(sass, operands)?;
        let form = &mut self.instruction.memory;
        form.is_reduction = is_reduction(sass);
        match sass.opcode() {
            Opcode::Atom => self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0)),
            Opcode::Atomg if predicate_destination(sass.predicate(0)) != SINK_PREDICATE => {
                return Err("an atomic on device memory that sets a predicate".to_owned());
            }
            _ => {}
        }
        (form.data_type, form.elements) = atomic_type(sass)?;
        form.operation = atomic_operation(sass)?;
        if matches!(form.operation, AtomicOperation::Barrier(_)) {
            form.data_type = AtomicType::U64;
        }
        // Registers of an element.
        let each: u8 = match form.data_type {
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 | AtomicType::B128 => 2,
            _ => 1,
        };
        form.element_bytes = 4 * each;
        form.wide = [each == 2; 4];
        let elements = form.elements;
        let register = |number: usize| sass.source(number).and_then(|source| source.register()).ok_or(NO_SUCH_OPERAND);
        if form.operation == AtomicOperation::CompareAndSwap {
            form.has_replacement = true;
            // Those of shared memory may say whether they have stored.
            if sass.text(Aspect::Operation).starts_with(".CAST") {
                form.result = AtomicResult::Success;
            }
            let first = register(1)?;
            for element in 0..elements {
                self.instruction.sources[usize::from(1 + elements + element)] =
                    operands.following(first, each * element);
            }
        }
        self.instruction.sources[1] = match sass.text(Aspect::Operation) {
            // Each lane counts as one.
            ".POPC.INC.32" => operands.number(1),
            ".ARRIVE.64" => {
                self.instruction.memory.has_replacement = true;
                self.instruction.sources[2] = operands.wide_number(0);
                operands.wide_number(1)
            }
            _ => operands.register(register(0)?),
        };
        for element in 1..elements {
            self.instruction.sources[usize::from(1 + element)] = operands.following(register(0)?, each * element);
        }
        for element in 0..elements {
            self.instruction.destinations[usize::from(element)] =
                operands.written_following(sass.destination(0), each * element);
        }
        Ok(())
    }

    /// `LDC` and `ULDC`.
    fn constant_load(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let Some(Location::Constant { bank, offset, index }) = sass.source(0).map(|source| source.location) else {
            return Err(NO_SUCH_OPERAND.to_owned());
        };
        let destination = sass.destination(0);
        self.instruction.destinations[0] = operands.written(destination);
        if sass.has(Aspect::Mode) {
            return Err("an indexed constant bank".to_owned());
        }
        // The values of a launch before its parameters are no memory, but a constant like those of other instructions.
        let zero = operands.number(0);
        let index = index.map(|register| operands.read_register(register));
        let parameters = i64::from(operands.parameter_base.0);
        let is_before_parameters = bank == 0 && (0..parameters).contains(&offset);
        let (bytes, elements, is_signed) = size_of(sass);
        let Some(index) = index.filter(|&index| index != zero || !is_before_parameters) else {
            if sass.names_index() {
                (self.cost.pipe, self.cost.latency) = (Pipe::Memory, LatencyClass::ConstantLoad);
            }
            let offset = offset as u32 & 0xffff;
            if elements == 2 {
                self.instruction.sources[0] = operands.wide_constant(bank, offset)?;
                return self.run(functions::<MapPairs<Move<u64>>>(), 0);
            }
            self.instruction.sources[0] = operands.constant(bank, offset & !3)?;
            if bytes < 4 {
                // A byte or a half of the word.
                self.instruction.sources[1] = operands.number(8 * (offset & 3));
                self.instruction.sources[2] = operands.number(8 * u32::from(bytes));
                let functions = if is_signed { functions::<Map<ExtractS32>>() } else { functions::<Map<ExtractU32>>() };
                return self.run(functions, 0);
            }
            return self.run(functions::<Map<Move<u32>>>(), 0);
        };
        self.instruction.sources[0] = index;
        self.instruction.memory = MemoryForm { pairs: true, short_address: true, ..MemoryForm::NONE };
        for element in 0..self.size(sass) {
            self.instruction.destinations[usize::from(element)] = operands.written_following(destination, element);
        }
        match bank {
            0 => {
                self.instruction.kind = Kind::Load;
                self.instruction.memory.space = Some(Space::Parameter);
                self.instruction.offset = offset - parameters;
                Ok(())
            }
            3 => {
                self.instruction.kind = Kind::Load;
                self.instruction.memory.space = Some(Space::Constant);
                // The index has 32 bits, the bank's address is added to it.
                let address = operands.bank_3().ok_or("a constant bank that the module does not have")?;
                self.instruction.memory.uniform = UniformAddress::Pair;
                self.instruction.offset = offset;
                self.instruction.operand_list = operands.wide_number(address).0;
                Ok(())
            }
            _ => {
                self.instruction.offset = offset;
                let (first, words) = operands.bank_rows(bank)?;
                self.instruction.operand_list = first;
                (self.cost.pipe, self.cost.latency) = (Pipe::Memory, LatencyClass::ConstantLoad);
                self.run(functions::<LoadBank>(), words)
            }
        }
    }
}

/// The size of an access: bytes of an element, elements, and whether they are extended with their sign.
pub(super) fn size_of(sass: &sass::Instruction) -> (u8, u8, bool) {
    match sass.text(Aspect::Size) {
        ".U8" => (1, 1, false),
        ".S8" => (1, 1, true),
        ".U16" => (2, 1, false),
        ".S16" => (2, 1, true),
        ".64" => (4, 2, false),
        ".128" | ".U.128" => (4, 4, false),
        _ => (4, 1, false),
    }
}

/// The type of an atomic or a reduction, and how many elements of it there are.
pub(super) fn atomic_type(sass: &sass::Instruction) -> Lowered<(AtomicType, u8)> {
    Ok(match sass.text(Aspect::Type) {
        "" => (AtomicType::U32, 1),
        ".S32" => (AtomicType::S32, 1),
        ".64" => (AtomicType::U64, 1),
        ".S64" => (AtomicType::S64, 1),
        ".128" => (AtomicType::B128, 2),
        ".F64.RN" => (AtomicType::F64, 1),
        ".F32.FTZ.RN" => (AtomicType::F32, 1),
        ".F32x2.FTZ.RN" => (AtomicType::F32, 2),
        ".F32x4.FTZ.RN" => (AtomicType::F32, 4),
        ".F16x2.RN" => (AtomicType::F16x2, 1),
        ".F16x4.RN" => (AtomicType::F16x2, 2),
        ".F16x8.RN" => (AtomicType::F16x2, 4),
        ".BF16x2.RN" => (AtomicType::Bf16x2, 1),
        ".BF16x4.RN" => (AtomicType::Bf16x2, 2),
        ".BF16x8.RN" => (AtomicType::Bf16x2, 4),
        other => return Err(format!("an atomic of the type {other}")),
    })
}

/// The operation of an atomic or a reduction.
pub(super) fn atomic_operation(sass: &sass::Instruction) -> Lowered<AtomicOperation> {
    use AtomicOperation as A;
    Ok(match sass.text(Aspect::Operation) {
        ".ADD" => A::Add,
        ".MIN" => A::Minimum,
        ".MAX" => A::Maximum,
        ".INC" => A::Increment,
        ".DEC" => A::Decrement,
        ".AND" => A::And,
        ".OR" => A::Or,
        ".XOR" => A::Xor,
        ".EXCH" => A::Exchange,
        ".POPC.INC.32" => A::Add,
        ".ARRIVE.64" => A::Barrier(BarrierOperation::ArriveOfAmpere),
        ".CAS" | ".CAST" | ".CAST.SPIN" => A::CompareAndSwap,
        other => return Err(format!("the atomic operation {other}")),
    })
}

/// Does it update memory and return nothing?
fn is_reduction(sass: &sass::Instruction) -> bool {
    matches!(sass.opcode(), Opcode::Red | Opcode::Redg)
}
