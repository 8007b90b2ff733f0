//! Code and data of a cubin with their relocations done.
//!
//! A kernel's own code is the beginning of its program, because tables of its branches and calls count from there. The functions that are
//! no kernels follow, at the same addresses in the programs of all kernels: a kernel may leave the address of a function in memory for
//! another one to call.

use super::places::{Places, VARIABLE_BANK, data_bytes, refused};
use super::{CODE_WINDOW, CodeSection, MachineError, system_call_address};
use crate::cubin::{Binding, Cubin, Function, Relocation, RelocationKind, Symbol, SymbolKind};
use crate::execution::SystemCall;
use crate::sass::Field;
use std::collections::{BTreeMap, BTreeSet};

/// Where functions begin, as numbers of words, with their names.
pub(super) type FunctionStarts = Vec<(u32, Box<str>)>;

/// Bytes of an instruction.
const WORD_BYTES: usize = 16;
/// An instruction that does nothing, for places that no function of the program has.
pub(super) const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

/// The functions of the device runtime, by the names that code gives them.
fn system_call(name: &str) -> Option<SystemCall> {
    Some(match name {
        "vprintf" => SystemCall::Print,
        "malloc" => SystemCall::Allocate,
        "free" => SystemCall::Free,
        "__assertfail" => SystemCall::Assert,
        _ => return None,
    })
}

/// Whether a program that refers to a symbol cannot run: nobody defines it.
fn is_missing(symbol: &Symbol<'_>) -> bool {
    let is_reference = matches!(symbol.kind, SymbolKind::Texture | SymbolKind::Sampler | SymbolKind::Surface);
    symbol.is_undefined() && !is_reference && symbol.binding != Binding::Weak && system_call(symbol.name).is_none()
}

fn words_of(code: &[u8]) -> usize {
    code.len() / WORD_BYTES
}

/// The functions beside a kernel that its program must have, in the order of their sections: those that it calls by name, directly or
/// not, and those whose address is taken somewhere.
///
/// # Errors
///
/// One of them, or the kernel, refers to what nobody defines.
pub(super) fn reached_functions<'a>(
    cubin: &'a Cubin<'a>,
    entry: &'a Function<'a>,
) -> Result<Vec<&'a Function<'a>>, MachineError> {
    let others = || cubin.functions.iter().filter(|function| !function.is_entry);
    let by_section: BTreeMap<usize, &Function<'_>> = others().map(|function| (function.section, function)).collect();
    let section_of = |symbol: usize| cubin.symbols.get(symbol).and_then(|symbol| symbol.section);
    let mut calls: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut to_visit = vec![entry.section];
    for relocation in &cubin.relocations {
        let Some(target) = section_of(relocation.symbol).filter(|target| by_section.contains_key(target)) else {
            continue;
        };
        match relocation.kind {
            RelocationKind::UnusedClear32 | RelocationKind::UnusedClear64 => {}
            RelocationKind::Instruction47 => {
                calls.insert((relocation.section, target));
            }
            // Return addresses are taken of the code that they are in.
            _ if relocation.section == target => {}
            _ => to_visit.push(target),
        }
    }
    for call in &cubin.calls {
        if let (Some(caller), Some(callee)) = (section_of(call.caller), section_of(call.callee)) {
            calls.insert((caller, callee));
        }
    }
    let mut reached: BTreeMap<usize, &Function<'_>> = BTreeMap::new();
    let mut visited = BTreeSet::new();
    while let Some(section) = to_visit.pop() {
        if !visited.insert(section) {
            continue;
        }
        reached.extend(by_section.get(&section).map(|function| (section, *function)));
        to_visit.extend(calls.range((section, 0)..=(section, usize::MAX)).map(|(_, callee)| *callee));
    }
    let reached: Vec<&Function<'_>> = reached.into_values().collect();
    for function in reached.iter().copied().chain([entry]) {
        let externs = function.externs.iter().filter_map(|symbol| cubin.symbols.get(*symbol));
        if let Some(symbol) = externs.into_iter().find(|symbol| is_missing(symbol)) {
            let (function, symbol) = (function.name.to_owned(), symbol.name.to_owned());
            return Err(MachineError::Undefined { function, symbol });
        }
    }
    Ok(reached)
}

/// Why a symbol has no address.
enum Unresolved {
    /// Nobody defines it.
    Undefined,
    /// It is a kernel, and not that of the program.
    Kernel,
}

/// What the symbols of a file stand for.
pub(super) struct Linker<'a> {
    cubin: &'a Cubin<'a>,
    places: &'a Places,
    addresses: &'a [u64],
    /// The first words of functions, by section.
    code: BTreeMap<usize, usize>,
}

impl<'a> Linker<'a> {
    /// Of data, which no kernel's code lies beside.
    pub fn new(cubin: &'a Cubin<'a>, places: &'a Places, addresses: &'a [u64]) -> Linker<'a> {
        let mut next = cubin.kernels().map(|kernel| words_of(kernel.code)).max().unwrap_or(0);
        let mut code = BTreeMap::new();
        for function in cubin.functions.iter().filter(|function| !function.is_entry) {
            code.insert(function.section, next);
            next += words_of(function.code);
        }
        Linker { cubin, places, addresses, code }
    }

    /// Of the program of a kernel.
    pub fn of_kernel(mut self, entry: &Function<'_>) -> Linker<'a> {
        self.code.insert(entry.section, 0);
        self
    }

    /// The first word of a function.
    pub fn first_word(&self, function: &Function<'_>) -> usize {
        self.code.get(&function.section).copied().unwrap_or(0)
    }

    fn placed(&self, placement: Option<usize>) -> Option<u64> {
        self.addresses.get(placement?).copied()
    }

    /// What a symbol stands for, with something added to it.
    fn value(&self, number: usize, addend: i64) -> Result<u64, Unresolved> {
        let Some(symbol) = self.cubin.symbols.get(number) else { return Err(Unresolved::Undefined) };
        let from = |first: u64, offset: u64| Ok(first.wrapping_add(offset).wrapping_add_signed(addend));
        if let Some(own) = self.placed(self.places.symbol(number)) {
            return from(own, 0);
        }
        let Some(section) = symbol.section else {
            return match system_call(symbol.name) {
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

    /// The address of what an offset of a section means that is in a managed variable.
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
            let banks = self.cubin.constant_banks.iter().map(|bank| (bank.section, Some(bank.image)));
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

    /// A section's image with its relocations done. What nobody defines is zero there: kernels that refer to it are refused.
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
                    self.value(relocation.symbol, addend).unwrap_or(0)
                }
            };
            place.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        data
    }

    /// The words of a program, and where its functions begin.
    pub fn words(
        &self,
        entry: &Function<'_>,
        reached: &[&Function<'_>],
    ) -> Result<(Vec<u128>, FunctionStarts), MachineError> {
        let mut words = Vec::new();
        let mut functions = Vec::new();
        for function in [entry].into_iter().chain(reached.iter().copied()) {
            let first = self.first_word(function);
            words.resize(first, NOP);
            let (code, _) = function.code.as_chunks::<WORD_BYTES>();
            words.extend(code.iter().map(|bytes| u128::from_le_bytes(*bytes)));
            functions.push((first as u32, function.name.into()));
            for inner in &function.inner {
                functions.push(((first + inner.offset as usize / WORD_BYTES) as u32, inner.name.into()));
            }
            self.relocate(function, &mut words[first..])?;
        }
        functions.sort();
        Ok((words, functions))
    }

    /// The functions of the file that a program's words are of.
    pub fn sections(&self, entry: &Function<'_>, reached: &[&Function<'_>]) -> Vec<CodeSection> {
        let functions = [entry].into_iter().chain(reached.iter().copied());
        let mut sections: Vec<CodeSection> = functions
            .map(|function| CodeSection {
                name: function.name.into(),
                first: self.first_word(function) as u32,
                words: words_of(function.code) as u32,
                digest: function.digest(),
            })
            .collect();
        sections.sort_by_key(|section| section.first);
        sections
    }

    /// Does the relocations of a function's code.
    fn relocate(&self, function: &Function<'_>, words: &mut [u128]) -> Result<(), MachineError> {
        let own = self.cubin.relocations.iter().filter(|relocation| relocation.section == function.section);
        for relocation in own {
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
        let refusal = || refused(self.cubin, relocation);
        let (field, shift) = match relocation.kind {
            // All functions that are used are there.
            Kind::None | Kind::UnusedClear32 | Kind::UnusedClear64 => return Ok(word),
            Kind::Instruction32
            | Kind::InstructionLow32
            | Kind::InstructionFunction32
            | Kind::InstructionFunctionLow32 => (Field::new(32, 32), 0),
            Kind::InstructionHigh32 | Kind::InstructionFunctionHigh32 => (Field::new(32, 32), 32),
            Kind::Instruction47 => (Field::new(34, 47), 2),
            Kind::InstructionConstant19 => (Field::new(40, 14), 2),
            Kind::Instruction24 => (Field::new(40, 24), 0),
            _ => return Err(refusal()),
        };
        let place = |value: u64| (word & !field.mask()) | (u128::from(value) << field.low & field.mask());
        let before = ((word & field.mask()) >> field.low) as u64;
        let addend = relocation.addend.unwrap_or((before << shift) as i64);
        let is_part = shift == 32 || matches!(relocation.kind, Kind::InstructionLow32 | Kind::InstructionFunctionLow32);
        if is_part && relocation.addend.is_none() && before != 0 {
            // Half of an addend: the other half is elsewhere.
            return Err(refusal());
        }
        let value = match relocation.kind {
            Kind::InstructionConstant19 => {
                let (bank, offset) = self.constant(relocation.symbol, addend).ok_or_else(refusal)?;
                let banked = Field::new(54, 5);
                return Ok((place(offset >> shift) & !banked.mask()) | u128::from(bank) << banked.low);
            }
            Kind::Instruction32 | Kind::Instruction24 => self.offset(relocation.symbol, addend),
            _ => match self.value(relocation.symbol, addend) {
                Ok(value) => Some(value >> shift),
                Err(unresolved) => return Err(self.missing(function, relocation.symbol, &unresolved)),
            },
        };
        let value = value.filter(|value| is_part || value >> field.width == 0).ok_or_else(refusal)?;
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
    fn constant(&self, symbol: usize, addend: i64) -> Option<(u32, u64)> {
        let symbol = self.cubin.symbols.get(symbol)?;
        let functions = self.cubin.functions.iter().flat_map(|function| &function.constant_banks);
        let mut banks = self.cubin.constant_banks.iter().chain(functions);
        let bank = banks.find(|bank| Some(bank.section) == symbol.section)?.bank;
        let offset = symbol.value.checked_add_signed(addend)?;
        (offset < 1 << 16 && offset.is_multiple_of(4)).then_some((bank, offset))
    }

    /// Where in shared memory or in a constant bank a symbol is.
    fn offset(&self, symbol: usize, addend: i64) -> Option<u64> {
        let it = self.cubin.symbols.get(symbol)?;
        let section = it.section?;
        let is_code = self.cubin.functions.iter().any(|function| function.section == section);
        let is_global = self.cubin.global_sections.iter().any(|global| global.section == section);
        if is_code || is_global { None } else { it.value.checked_add_signed(addend) }
    }

    /// Slots of constant bank 0 that hold the numbers of references.
    pub fn fixed_slots(&self, entry: &Function<'_>) -> Result<Vec<(u32, u32)>, MachineError> {
        let Some(bank) = entry.constant_bank(0) else { return Ok(Vec::new()) };
        let mut slots: BTreeMap<u32, u32> = BTreeMap::new();
        for relocation in self.cubin.relocations.iter().filter(|relocation| relocation.section == bank.section) {
            let refusal = || refused(self.cubin, relocation);
            let offset = u32::try_from(relocation.offset).map_err(|_| refusal())?;
            match relocation.kind {
                RelocationKind::None => {}
                RelocationKind::TextureHeaderIndex | RelocationKind::SurfaceHeaderIndex => {
                    let number = self.value(relocation.symbol, 0).ok().and_then(|value| u32::try_from(value).ok());
                    slots.insert(offset, number.ok_or_else(refusal)?);
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
