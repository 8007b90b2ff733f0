//! Code and data of a cubin with their relocations done.
//!
//! A kernel's own code is the beginning of its program, because tables of its branches and calls count from there. The functions that are
//! no kernels follow, at the same addresses in the programs of all kernels: a kernel may leave the address of a function in memory for
//! another one to call.

use super::code::{CODE_WINDOW, CodeSection, kernel_address, system_call_address};
use super::error::MachineError;
use super::memory::KernelMemory;
use super::places::{Places, VARIABLE_BANK, data_bytes, refused};
use super::reach::is_missing;
use super::shared::FunctionStarts;
use crate::cubin::{CONSTANT_BANK_BYTES, Cubin, Function, Relocation, RelocationKind, SymbolKind};
use crate::execution::SystemCall;
use crate::sass::{Field, Word};
use std::collections::BTreeMap;

/// Bytes of an instruction.
const WORD_BYTES: usize = 16;
/// The lower and the upper bits of a call's target from Hopper on.
const SPLIT_LOW: Field = Field::new(16, 8);
const SPLIT_HIGH: Field = Field::new(34, 47);
/// An instruction that does nothing, for places that no function of the program has.
pub(super) const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

fn words_of(code: &[u8]) -> usize {
    code.len() / WORD_BYTES
}

/// Why a symbol has no address.
enum Unresolved {
    /// Nobody defines it.
    Undefined,
    /// It is a kernel, and not that of the program.
    Kernel,
}

/// The meaning of the symbols of a file.
pub(super) struct Linker<'a> {
    cubin: &'a Cubin<'a>,
    places: &'a Places,
    addresses: &'a [u64],
    /// The first words of functions, by section.
    code: BTreeMap<usize, usize>,
    /// The memory of the kernel beside its code.
    memory: KernelMemory,
    /// The number of the file's first kernel among those of its module.
    first_kernel: usize,
}

impl<'a> Linker<'a> {
    /// A linker for data, which lies beside no kernel's code.
    pub fn new(cubin: &'a Cubin<'a>, places: &'a Places, addresses: &'a [u64], first_kernel: usize) -> Linker<'a> {
        let mut next = cubin.kernels().map(|kernel| words_of(kernel.code)).max().unwrap_or(0);
        let mut code = BTreeMap::new();
        for function in cubin.functions.iter().filter(|function| !function.is_entry) {
            code.insert(function.section, next);
            next += words_of(function.code);
        }
        Linker { cubin, places, addresses, code, memory: KernelMemory::default(), first_kernel }
    }

    /// A linker for the program of a kernel with the functions that it can reach.
    pub fn of_kernel(mut self, entry: &Function<'_>, reached: &[&Function<'_>]) -> Linker<'a> {
        self.code.insert(entry.section, 0);
        self.memory = KernelMemory::new(self.cubin, entry, reached);
        self
    }

    /// The architecture that the code is for.
    pub fn architecture(&self) -> u32 {
        self.cubin.architecture
    }

    /// The shared memory before the kernel's own, and its static shared memory, bytes.
    pub fn shared_memory(&self) -> (u32, u64) {
        let KernelMemory { reserved_shared_bytes: reserved, shared_end, .. } = self.memory;
        (reserved, shared_end.saturating_sub(reserved.into()))
    }

    /// Constant bank 2 of the kernel, relocated.
    pub fn bank_2(&self) -> Vec<u8> {
        let functions = self.cubin.functions.iter().flat_map(|function| &function.constant_banks);
        let images: BTreeMap<usize, &[u8]> = functions.map(|bank| (bank.section, &*bank.image)).collect();
        let mut all = Vec::new();
        for (section, first) in self.memory.bank_2() {
            // Banks behind that cannot be reached.
            let Some(image) = images.get(section).filter(|_| *first <= CONSTANT_BANK_BYTES) else { continue };
            all.resize(*first as usize, 0);
            all.extend(self.data(*section, image));
        }
        all
    }

    /// Constant bank 4, relocated.
    pub fn bank_4(&self) -> Vec<u8> {
        self.cubin.constant_bank(4).map_or_else(Vec::new, |bank| self.data(bank.section, &bank.image))
    }

    /// The first word of a function.
    pub fn first_word(&self, function: &Function<'_>) -> usize {
        self.code.get(&function.section).copied().unwrap_or(0)
    }

    fn placed(&self, placement: Option<usize>) -> Option<u64> {
        self.addresses.get(placement?).copied()
    }

    /// The value of a symbol, plus an addend.
    fn value(&self, number: usize, addend: i64) -> Result<u64, Unresolved> {
        let Some(symbol) = self.cubin.symbols.get(number) else { return Err(Unresolved::Undefined) };
        let from = |first: u64, offset: u64| Ok(first.wrapping_add(offset).wrapping_add_signed(addend));
        if let Some(own) = self.placed(self.places.symbol(number)).or_else(|| self.memory.shared(number)) {
            return from(own, 0);
        }
        let Some(section) = symbol.section else {
            return match SystemCall::named(symbol.name) {
                Some(call) => from(system_call_address(call), 0),
                None if is_missing(symbol) => Err(Unresolved::Undefined),
                None => from(0, 0),
            };
        };
        if let Some(first) = self.placed(self.places.section(section)) {
            let moved = (symbol.kind == SymbolKind::Section).then(|| self.managed_at(section, addend)).flatten();
            return moved.map_or_else(|| from(first, symbol.value), Ok);
        }
        if let Some(word) = self.code.get(&section) {
            return from(CODE_WINDOW + (WORD_BYTES * word) as u64, symbol.value);
        }
        if self.cubin.functions.iter().any(|function| function.section == section) {
            return Err(Unresolved::Kernel);
        }
        // In shared memory or a constant bank: an offset.
        from(0, symbol.value)
    }

    /// The address that stands for a kernel, where a relocation asks for the address of a function and the symbol is a kernel.
    fn kernel(&self, kind: RelocationKind, symbol: usize) -> Option<u64> {
        use RelocationKind as Kind;
        let asks = matches!(
            kind,
            Kind::FunctionDescriptor32
                | Kind::FunctionDescriptor64
                | Kind::InstructionFunction32
                | Kind::InstructionFunctionLow32
                | Kind::InstructionFunctionHigh32
        );
        let section = self.cubin.symbols.get(symbol).filter(|_| asks)?.section?;
        let number = self.cubin.kernels().position(|kernel| kernel.section == section)?;
        Some(kernel_address(self.first_kernel + number))
    }

    /// The address that an offset of a section means, where the offset lies in a managed variable.
    fn managed_at(&self, section: usize, offset: i64) -> Option<u64> {
        let offset = u64::try_from(offset).ok()?;
        let mut managed = self.cubin.variables.iter().filter(|it| it.is_managed && it.section == section);
        let variable = managed.find(|it| (it.offset..it.offset + it.bytes.max(1)).contains(&offset))?;
        Some(self.placed(self.places.symbol(variable.symbol))? + (offset - variable.offset))
    }

    /// The bytes that a placement begins with.
    pub fn initial_value(&self, placement: usize) -> Option<Vec<u8>> {
        let image = |section: usize| {
            let globals = self.cubin.global_sections.iter().map(|global| (global.section, global.image));
            let banks = self.cubin.constant_banks.iter().map(|bank| (bank.section, Some(&*bank.image)));
            let image = globals.chain(banks).find(|(number, _)| *number == section)?.1?;
            Some(self.data(section, image))
        };
        if let Some(section) = self.places.section_at(placement) {
            return image(section);
        }
        let symbol = self.places.symbol_at(placement)?;
        let variable = self.cubin.variables.iter().find(|variable| variable.symbol == symbol)?;
        let first = usize::try_from(variable.offset).ok()?;
        let end = first.checked_add(usize::try_from(variable.bytes).ok()?)?;
        Some(image(variable.section)?.get(first..end)?.to_vec())
    }

    /// A section's image with its relocations done. Undefined symbols are zero there: kernels that refer to them are refused.
    pub fn data(&self, section: usize, image: &[u8]) -> Vec<u8> {
        let mut data = image.to_vec();
        for relocation in self.cubin.relocations.iter().filter(|relocation| relocation.section == section) {
            let first = usize::try_from(relocation.offset).unwrap_or(usize::MAX);
            let bytes = data_bytes(relocation.kind).unwrap_or(0);
            let place = first.checked_add(bytes).and_then(|end| data.get_mut(first..end));
            let Some(place) = place.filter(|place| !place.is_empty()) else { continue };
            let mut before = [0; 8];
            before[..bytes].copy_from_slice(place);
            let value = match relocation.kind {
                RelocationKind::UnusedClear32 | RelocationKind::UnusedClear64 => {
                    match self.value(relocation.symbol, 0) {
                        Ok(_) => continue,
                        Err(_) => 0,
                    }
                }
                _ => {
                    let addend = relocation.addend.unwrap_or(i64::from_le_bytes(before));
                    let kernel = self.kernel(relocation.kind, relocation.symbol);
                    kernel.unwrap_or_else(|| self.value(relocation.symbol, addend).unwrap_or(0))
                }
            };
            place.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        data
    }

    /// The words of functions, from word `first` of a program on, and where the functions begin.
    pub fn words(
        &self,
        functions: &[&Function<'_>],
        first: usize,
    ) -> Result<(Vec<u128>, FunctionStarts), MachineError> {
        let mut relocations: BTreeMap<usize, Vec<&Relocation>> = BTreeMap::new();
        for relocation in &self.cubin.relocations {
            relocations.entry(relocation.section).or_default().push(relocation);
        }
        let mut words = Vec::new();
        let mut starts = Vec::new();
        for function in functions {
            let begin = self.first_word(function);
            words.resize(begin - first, NOP);
            let (code, _) = function.code.as_chunks::<WORD_BYTES>();
            words.extend(code.iter().map(|bytes| u128::from_le_bytes(*bytes)));
            starts.push((begin as u32, function.name.into()));
            for inner in &function.inner {
                starts.push(((begin + inner.offset as usize / WORD_BYTES) as u32, inner.name.into()));
            }
            let own = relocations.get(&function.section).map_or(&[][..], |own| own);
            self.relocate(function, own, &mut words[begin - first..])?;
        }
        starts.sort();
        Ok((words, starts))
    }

    /// The functions of the file that words of a program are of.
    pub fn sections(&self, functions: &[&Function<'_>]) -> Vec<CodeSection> {
        let mut sections: Vec<CodeSection> = functions
            .iter()
            .map(|function| CodeSection {
                name: function.name.into(),
                first: self.first_word(function) as u32,
                words: words_of(function.code) as u32,
                digest: function.digest(),
                section: function.section,
            })
            .collect();
        sections.sort_by_key(|section| section.first);
        sections
    }

    /// Does the relocations of a function's code.
    fn relocate(
        &self,
        function: &Function<'_>,
        relocations: &[&Relocation],
        words: &mut [u128],
    ) -> Result<(), MachineError> {
        for relocation in relocations {
            let offset = usize::try_from(relocation.offset).unwrap_or(usize::MAX);
            let word = words.get_mut(offset / WORD_BYTES).filter(|_| offset.is_multiple_of(WORD_BYTES));
            let word = word.ok_or_else(|| refused(self.cubin, relocation))?;
            *word = self.relocated(function, *word, relocation)?;
        }
        Ok(())
    }

    /// An instruction with a relocation done.
    fn relocated(&self, function: &Function<'_>, word: u128, relocation: &Relocation) -> Result<u128, MachineError> {
        use RelocationKind as Kind;
        let refusal = || match self.cubin.symbols.get(relocation.symbol) {
            Some(symbol) if is_missing(symbol) => self.missing(function, relocation.symbol, &Unresolved::Undefined),
            _ => refused(self.cubin, relocation),
        };
        let (field, shift) = match relocation.kind {
            // All functions that are used are there.
            Kind::None | Kind::UnusedClear32 | Kind::UnusedClear64 | Kind::Yield | Kind::FunctionTable => {
                return Ok(word);
            }
            Kind::Instruction32
            | Kind::InstructionLow32
            | Kind::InstructionFunction32
            | Kind::InstructionFunctionLow32 => (Field::new(32, 32), 0),
            Kind::InstructionHigh32 | Kind::InstructionFunctionHigh32 => (Field::new(32, 32), 32),
            Kind::Instruction47 => (Field::new(34, 47), 2),
            Kind::InstructionSplit55 => (SPLIT_HIGH, 2),
            Kind::InstructionConstant19 => (Field::new(40, 14), 2),
            Kind::InstructionConstant21 => (Field::new(38, 16), 0),
            Kind::InstructionSlot14 => (Field::new(40, 14), 2),
            Kind::Instruction16 => (Field::new(32, 16), 0),
            Kind::Instruction24 => (Field::new(40, 24), 0),
            _ => return Err(refusal()),
        };
        // Lower bits that lie apart.
        let low = (relocation.kind == Kind::InstructionSplit55).then_some(SPLIT_LOW);
        let low_bits = low.map_or(0, |low| low.width);
        let place = |value: u64| {
            let put = |word: u128, field: Field, value: u64| {
                (word & !field.mask()) | (u128::from(value) << field.low & field.mask())
            };
            let placed = put(word, field, value >> low_bits);
            low.map_or(placed, |low| put(placed, low, value))
        };
        let before = low.map_or_else(|| Word(word).field(field), |low| Word(word).fields(low, field));
        let addend = relocation.addend.unwrap_or((before << shift) as i64);
        let is_part = shift == 32 || matches!(relocation.kind, Kind::InstructionLow32 | Kind::InstructionFunctionLow32);
        if is_part && relocation.addend.is_none() && before != 0 {
            // Half of an addend: the other half is elsewhere.
            return Err(refusal());
        }
        let value = match relocation.kind {
            Kind::InstructionConstant19 | Kind::InstructionConstant21 => {
                let (bank, offset) = self.constant(relocation.symbol, addend).ok_or_else(refusal)?;
                let banked = Field::new(54, 5);
                // What an index is added to may be negative: the index is larger then.
                let fits = match relocation.kind {
                    Kind::InstructionConstant19 => (0..1 << 16).contains(&offset) && offset % 4 == 0,
                    _ => i16::try_from(offset).is_ok(),
                };
                let word = fits.then(|| place(offset.cast_unsigned() >> shift)).ok_or_else(refusal)?;
                return Ok((word & !banked.mask()) | u128::from(bank) << banked.low);
            }
            Kind::Instruction32 | Kind::Instruction24 | Kind::Instruction16 => {
                self.offset(relocation.symbol, addend, field.width.into())
            }
            Kind::InstructionSlot14 => {
                self.memory.slots().get(&relocation.symbol).map(|slot| u64::from(*slot) >> shift)
            }
            kind => {
                match self.kernel(kind, relocation.symbol).map_or_else(|| self.value(relocation.symbol, addend), Ok) {
                    Ok(value) => Some(value >> shift),
                    Err(unresolved) => return Err(self.missing(function, relocation.symbol, &unresolved)),
                }
            }
        };
        let value = value.filter(|value| is_part || value >> (field.width + low_bits) == 0).ok_or_else(refusal)?;
        Ok(place(value))
    }

    fn missing(&self, function: &Function<'_>, symbol: usize, unresolved: &Unresolved) -> MachineError {
        let name = self.cubin.symbols.get(symbol).map_or("", |symbol| symbol.name).to_owned();
        let function = function.name.to_owned();
        match unresolved {
            Unresolved::Undefined => MachineError::Undefined { function, symbol: name },
            Unresolved::Kernel => MachineError::KernelAddress { function, kernel: name },
        }
    }

    /// Bank and offset of a constant.
    fn constant(&self, symbol: usize, addend: i64) -> Option<(u32, i64)> {
        let symbol = self.cubin.symbols.get(symbol)?;
        let section = symbol.section?;
        let functions = self.cubin.functions.iter().flat_map(|function| &function.constant_banks);
        let mut banks = self.cubin.constant_banks.iter().chain(functions);
        let bank = banks.find(|bank| bank.section == section)?.bank;
        let first = symbol.value.checked_add(self.memory.constants(section))?;
        Some((bank, i64::try_from(first).ok()?.checked_add(addend)?))
    }

    /// Where in shared memory or in a constant bank something is, in so many bits. It may be in front of the first byte: code adds an
    /// index.
    fn offset(&self, number: usize, addend: i64, bits: u32) -> Option<u64> {
        let offset = i64::try_from(self.first_byte(number)?).ok()?.checked_add(addend)?;
        let fits = (-1 << (bits - 1)..1 << bits).contains(&offset);
        fits.then_some(offset.cast_unsigned() & ((1 << bits) - 1))
    }

    /// The offset of a symbol in shared memory or in a constant bank.
    fn first_byte(&self, number: usize) -> Option<u64> {
        if let Some(first) = self.memory.shared(number) {
            return Some(first);
        }
        let symbol = self.cubin.symbols.get(number)?;
        let section = symbol.section?;
        let is_code = self.cubin.functions.iter().any(|function| function.section == section);
        let is_global = self.cubin.global_sections.iter().any(|global| global.section == section);
        if is_code || is_global { None } else { symbol.value.checked_add(self.memory.constants(section)) }
    }

    /// Slots of constant bank 0 that hold the numbers of references.
    pub fn fixed_slots(&self, entry: &Function<'_>) -> Result<Vec<(u32, u32)>, MachineError> {
        let number = |symbol: usize| self.value(symbol, 0).ok().and_then(|value| u32::try_from(value).ok());
        let mut slots: BTreeMap<u32, u32> =
            self.memory.slots().iter().filter_map(|(symbol, slot)| Some((*slot, number(*symbol)?))).collect();
        let Some(bank) = entry.constant_bank(0) else { return Ok(slots.into_iter().collect()) };
        for relocation in self.cubin.relocations.iter().filter(|relocation| relocation.section == bank.section) {
            let refusal = || refused(self.cubin, relocation);
            let offset = u32::try_from(relocation.offset).map_err(|_| refusal())?;
            match relocation.kind {
                RelocationKind::None => {}
                RelocationKind::TextureHeaderIndex | RelocationKind::SurfaceHeaderIndex => {
                    slots.insert(offset, number(relocation.symbol).ok_or_else(refusal)?);
                }
                // The slot of the texture that it is used with: a texture here has a sampler of its own.
                RelocationKind::SamplerHeaderIndex => {}
                _ => return Err(refusal()),
            }
        }
        Ok(slots.into_iter().collect())
    }

    /// Where the constant variables lie in device memory, and their bytes.
    pub fn constant_variables(&self) -> Option<(u64, u64)> {
        let bank = self.cubin.constant_bank(VARIABLE_BANK)?;
        Some((self.placed(self.places.section(bank.section))?, bank.image.len() as u64))
    }
}
