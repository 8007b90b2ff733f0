//! Loads, stores, atomics and fences.

use super::operands::{Operands, inverted_predicate_source, predicate_destination};
use super::{Lowered, Pending};
use crate::execution::{AtomicOperation, AtomicType, CacheOperator, Space};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::integer::{ExtractS32, ExtractU32, Move};
use crate::interpreter::machine::arithmetic::MapPairs;
use crate::interpreter::machine::logic::{LoadBank, QuerySpace};
use crate::operation::operand::SINK_PREDICATE;
use crate::operation::{Kind, MemoryForm, UniformAddress};
use crate::program::timing::{LatencyClass, Pipe};
use crate::sass::{self, Opcode, UNIFORM_FLAG, Word};

/// How an access forms its addresses.
struct Address {
    /// The lowest bit of the offset, and its width.
    offset: (u8, u8),
    /// The lowest bit of the uniform register, in forms that have one.
    uniform: Option<u8>,
    /// Addresses have 64 bits.
    is_wide: bool,
}

impl Pending {
    pub(super) fn memory(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        match sass.opcode() {
            O::Ldg | O::Ld | O::Lds | O::Ldl => self.load(sass.opcode(), word, operands),
            O::Stg | O::St | O::Sts | O::Stl => self.store(sass.opcode(), word, operands),
            O::Atomg | O::Atom | O::Atoms | O::Red => self.atomic(sass.opcode(), word, operands),
            O::Ldsm => {
                self.instruction.kind = Kind::LoadMatrices;
                self.access(sass.opcode(), word, operands, true);
                // Bits 78 and 79 say which matrices.
                self.instruction.memory = MemoryForm { elements: 4, scale: 0, ..self.instruction.memory };
                self.matrix_load(word, operands)
            }
            O::Ldc | O::Uldc => self.constant_load(sass.opcode(), word, operands),
            O::Membar if word.bits(76, 3) >= 2 => {
                self.instruction.kind = Kind::Fence;
                Ok(())
            }
            O::Qspc => {
                self.access(sass.opcode(), word, operands, true);
                self.instruction.predicate_destinations[0] = predicate_destination(word, 81, false);
                self.run(functions::<QuerySpace>(), word.bits(73, 2) as u32)
            }
            // Fences of a CTA, and instructions that empty caches: values are coherent.
            _ => Ok(()),
        }
    }

    /// Space, caching and addresses.
    fn access(&mut self, opcode: Opcode, word: Word, operands: &Operands, is_load: bool) {
        use Opcode as O;
        let space = match opcode {
            O::Lds | O::Ldsm | O::Sts | O::Atoms => Some(Space::Shared),
            O::Ldl | O::Stl => Some(Space::Local),
            O::Ldg | O::Stg | O::Atomg => Some(Space::Global),
            _ => None,
        };
        let has_uniform = word.bit(UNIFORM_FLAG);
        let is_generic = matches!(opcode, O::Ld | O::St) && !has_uniform;
        let address = Address {
            offset: if is_generic { (32, 32) } else { (40, 24) },
            uniform: has_uniform.then_some(if is_load { 32 } else { 64 }),
            is_wide: space.is_none_or(|space| space == Space::Global) && (word.bit(72) || opcode == O::Red),
        };
        let is_atomic = matches!(opcode, O::Atomg | O::Atom | O::Red | O::Atoms);
        let (order, scope) = (word.bits(79, 2), word.bits(77, 2));
        let is_device = space.is_none_or(|space| space == Space::Global);
        let form = &mut self.instruction.memory;
        *form = MemoryForm { space, pairs: true, ..MemoryForm::NONE };
        if is_device && !is_atomic {
            form.cache = match (order, scope, word.bits(84, 3)) {
                (2, 2.., _) | (3, _, _) => CacheOperator::Volatile,
                (_, _, 0) => CacheOperator::Streaming,
                _ => CacheOperator::All,
            };
        }
        form.short_address = !address.is_wide;
        if let Some(low) = address.uniform {
            form.uniform = if address.is_wide { UniformAddress::Pair } else { UniformAddress::Short };
            // Atomics add registers of 64 bits, other accesses those that bit 90 says.
            form.short_address = !address.is_wide || !(word.bit(90) || (is_atomic && opcode != O::Red));
            self.instruction.operand_list = operands.uniform(word.bits(low, 6) as u8).0;
        }
        if space == Some(Space::Shared) {
            form.scale = [0, 2, 3, 4][word.bits(78, 2) as usize];
        }
        self.instruction.sources[0] = operands.register(word.bits(24, 8) as u8);
        self.instruction.offset = word.signed(address.offset.0, address.offset.1);
    }

    /// Bytes of an access, from the field of its size: a register for each four.
    fn size(&mut self, word: Word) -> Lowered<u8> {
        let form = &mut self.instruction.memory;
        (form.element_bytes, form.elements, form.signed) = match word.bits(73, 3) {
            0 => (1, 1, false),
            1 => (1, 1, true),
            2 => (2, 1, false),
            3 => (2, 1, true),
            4 => (4, 1, false),
            5 => (4, 2, false),
            _ => (4, 4, false),
        };
        Ok(form.elements)
    }

    fn load(&mut self, opcode: Opcode, word: Word, operands: &Operands) -> Lowered<()> {
        if matches!(opcode, Opcode::Ldg) && predicate_destination(word, 81, false) != SINK_PREDICATE {
            return Err("a load that sets a predicate".to_owned());
        }
        self.instruction.kind = Kind::Load;
        if matches!(opcode, Opcode::Ldg | Opcode::Ld) && word.bits(64, 4) != 0 {
            self.instruction.kind = Kind::LoadOrZero;
            let (slot, flip) = inverted_predicate_source(word, 64);
            (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
        }
        self.access(opcode, word, operands, true);
        for element in 0..self.size(word)? {
            self.instruction.destinations[usize::from(element)] =
                operands.following_row(word.bits(16, 8) as u8, element);
        }
        Ok(())
    }

    fn store(&mut self, opcode: Opcode, word: Word, operands: &Operands) -> Lowered<()> {
        self.instruction.kind = Kind::Store;
        self.access(opcode, word, operands, false);
        let data = if word.code() == 0x385 { 64 } else { 32 };
        for element in 0..self.size(word)? {
            self.instruction.sources[1 + usize::from(element)] = operands.following(word.bits(data, 8) as u8, element);
        }
        self.instruction.memory.signed = false;
        Ok(())
    }

    fn atomic(&mut self, opcode: Opcode, word: Word, operands: &Operands) -> Lowered<()> {
        use AtomicOperation as A;
        self.instruction.kind = Kind::Atomic;
        self.access(opcode, word, operands, false);
        let is_swap = matches!(word.code(), 0x3a9 | 0x38b | 0x38d);
        let form = &mut self.instruction.memory;
        form.is_reduction = opcode == Opcode::Red;
        match opcode {
            Opcode::Atom => self.instruction.predicate_destinations[0] = predicate_destination(word, 81, false),
            Opcode::Atomg if predicate_destination(word, 81, false) != SINK_PREDICATE => {
                return Err("an atomic on device memory that sets a predicate".to_owned());
            }
            _ => {}
        }
        form.data_type = match word.bits(73, 3) {
            0 => AtomicType::U32,
            1 => AtomicType::S32,
            2 => AtomicType::U64,
            3 => AtomicType::F32,
            4 => AtomicType::F16x2,
            5 => AtomicType::S64,
            _ => AtomicType::F64,
        };
        let is_wide = matches!(form.data_type, AtomicType::U64 | AtomicType::S64 | AtomicType::F64);
        form.element_bytes = if is_wide { 8 } else { 4 };
        form.wide[0] = is_wide;
        let operation = if opcode == Opcode::Red { word.bits(87, 3) } else { word.bits(87, 4) };
        form.operation = match operation {
            _ if is_swap => A::CompareAndSwap,
            0 => A::Add,
            1 => A::Minimum,
            2 => A::Maximum,
            3 => A::Increment,
            4 => A::Decrement,
            5 => A::And,
            6 => A::Or,
            7 => A::Xor,
            _ => A::Exchange,
        };
        if is_swap {
            form.has_replacement = true;
            // Those of shared memory may say whether they have stored.
            form.succeeds = word.code() == 0x38d && word.bits(87, 2) & 1 != 0;
            self.instruction.sources[2] = operands.register(word.bits(64, 8) as u8);
        }
        self.instruction.sources[1] = operands.register(word.bits(32, 8) as u8);
        if opcode != Opcode::Red {
            self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
        }
        Ok(())
    }

    /// `LDC` and `ULDC`.
    fn constant_load(&mut self, opcode: Opcode, word: Word, operands: &mut Operands) -> Lowered<()> {
        let is_uniform = opcode == Opcode::Uldc;
        let (bank, offset) = (word.bits(54, 5) as u32, word.signed(38, 16));
        let size = word.bits(73, 3);
        let destination = if is_uniform {
            operands.uniform_row(word.bits(16, 6) as u8)
        } else {
            operands.row(word.bits(16, 8) as u8)
        };
        self.instruction.destinations[0] = destination;
        if !is_uniform && word.bits(78, 2) != 0 {
            return Err("an indexed constant bank".to_owned());
        }
        // The values of a launch before its parameters are no memory, but a constant like those of other instructions.
        let has_no_index = if is_uniform { word.bits(24, 6) == 63 } else { word.bits(24, 8) == 255 };
        let parameters = i64::from(operands.parameter_base.0);
        let is_before_parameters = bank == 0 && (0..parameters).contains(&offset);
        if word.code() == 0xab9 || (has_no_index && is_before_parameters) {
            let offset = offset as u32 & 0xffff;
            if word.code() != 0xab9 {
                (self.cost.pipe, self.cost.latency) = (Pipe::Memory, LatencyClass::ConstantLoad);
            }
            if size == 5 {
                self.instruction.sources[0] = operands.wide_constant(bank, offset)?;
                return self.run(functions::<MapPairs<Move<u64>>>(), 0);
            }
            self.instruction.sources[0] = operands.constant(bank, offset & !3)?;
            if size < 4 {
                // A byte or a half of the word.
                self.instruction.sources[1] = operands.number(8 * (offset & 3));
                self.instruction.sources[2] = operands.number(if size < 2 { 8 } else { 16 });
                let is_signed = size & 1 != 0;
                let functions = if is_signed { functions::<Map<ExtractS32>>() } else { functions::<Map<ExtractU32>>() };
                return self.run(functions, 0);
            }
            return self.run(functions::<Map<Move<u32>>>(), 0);
        }
        self.instruction.sources[0] = if is_uniform {
            operands.uniform(word.bits(24, 6) as u8)
        } else {
            operands.register(word.bits(24, 8) as u8)
        };
        self.instruction.memory = MemoryForm { pairs: true, short_address: true, ..MemoryForm::NONE };
        let elements = self.size(word)?;
        if elements == 2 {
            self.instruction.destinations[1] = if is_uniform {
                operands.uniform_row(word.bits(16, 6) as u8 + 1)
            } else {
                operands.following_row(word.bits(16, 8) as u8, 1)
            };
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
