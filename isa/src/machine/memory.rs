//! The shared memory and the constant banks of a kernel.
//!
//! In files that were linked the kernel has both, and code has its offsets in them. Relocatable files have variables for each function: the
//! memory of a kernel is put together from its own variables and those of the functions that it can reach. Shared variables of functions
//! come first, the largest in front, then those of the kernel, the most aligned in front, then dynamic shared memory. The numbers of
//! textures and surfaces that code names are behind the parameters in bank 0.
//!
//! Source: own findings from the output of nvlink 13.5 for files of ptxas 12.9 and 13.5. nvlink gives a function the same offsets for all
//! kernels, so that some kernels have gaps there that they do not have here.

use crate::cubin::{Cubin, Function, RelocationKind, Symbol};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The constant bank with a function's constants and tables of branches.
const FUNCTION_BANK: u32 = 2;
/// The shared memory of a CTA at whose end that of a kernel for Hopper begins, bytes: addresses and the sizes of sections count it, also
/// where no section is (own finding: ptxas 13.5). Ampere and Ada have as much that addresses do not count.
const RESERVED_OF_HOPPER: u32 = 1024;
/// The alignment of dynamic shared memory where the file does not say it (ptxas 12.9).
const DYNAMIC_ALIGNMENT: u64 = 16;
/// The beginning of the names of sections with the shared variables of one kernel; those of functions are in another.
const KERNEL_SHARED_MEMORY: &str = ".nv.shared.";

/// Bytes of the number of a reference.
const SLOT_BYTES: usize = 4;

/// Where a kernel's shared variables and the constants of its functions lie.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelMemory {
    /// The shared memory before its own, bytes.
    pub reserved_shared_bytes: u32,
    /// The end of its static shared memory, bytes.
    pub shared_end: u64,
    /// The first bytes of shared variables, by their symbols.
    shared: BTreeMap<usize, u64>,
    /// The first bytes in bank 2 of the sections that it consists of.
    bank_2: Vec<(usize, u64)>,
    /// Where in bank 0 the numbers of references are, by their symbols.
    slots: BTreeMap<usize, u32>,
}

impl KernelMemory {
    /// The memory of a kernel with the functions that it can reach.
    pub fn new(cubin: &Cubin<'_>, entry: &Function<'_>, reached: &[&Function<'_>]) -> KernelMemory {
        let reserved_shared_bytes = if cubin.architecture >= 90 { RESERVED_OF_HOPPER } else { 0 };
        let shared_end = entry.shared_memory.bytes.max(reserved_shared_bytes.into());
        let mut memory = KernelMemory { reserved_shared_bytes, shared_end, ..KernelMemory::default() };
        let mut end = 0u64;
        // What no relocation names is at the beginning of the bank: the kernel's own.
        let others = if cubin.is_relocatable { reached } else { &[] };
        let functions = || [entry].into_iter().chain(others.iter().copied());
        for bank in functions().filter_map(|function| function.constant_bank(FUNCTION_BANK)) {
            let first = if end == 0 { 0 } else { aligned(end, bank.alignment) };
            memory.bank_2.push((bank.section, first));
            end = first.saturating_add(bank.image.len() as u64);
        }
        if cubin.is_relocatable {
            let code: BTreeSet<usize> = functions().map(|function| function.section).collect();
            memory.place_shared(cubin, &code);
            memory.place_slots(cubin, entry, &code);
        }
        memory
    }

    /// Places the shared variables that the code of some sections names.
    fn place_shared(&mut self, cubin: &Cubin<'_>, code: &BTreeSet<usize>) {
        let named = cubin.relocations.iter().filter(|relocation| code.contains(&relocation.section));
        let named: BTreeSet<usize> = named.map(|relocation| relocation.symbol).collect();
        let symbols = named.into_iter().filter_map(|number| Some((number, cubin.symbols.get(number)?)));
        let (mut of_functions, mut of_kernel, mut dynamic) = (Vec::new(), Vec::new(), Vec::new());
        for (number, symbol) in symbols.filter(|(_, symbol)| symbol.is_shared()) {
            match symbol.section.map(|section| cubin.sections.get(section).copied().unwrap_or_default()) {
                Some(name) if name.starts_with(KERNEL_SHARED_MEMORY) => of_kernel.push((number, symbol)),
                Some(_) => of_functions.push((number, symbol)),
                None if is_dynamic(symbol) => dynamic.push((number, symbol)),
                None => {}
            }
        }
        of_functions.sort_by_key(|(_, symbol)| Reverse(symbol.bytes));
        of_kernel.sort_by_key(|(_, symbol)| Reverse(symbol.value));
        let mut end = self.reserved_shared_bytes.into();
        for (number, symbol) in of_functions.into_iter().chain(of_kernel) {
            let first = aligned(end, symbol.value);
            self.shared.insert(number, first);
            end = first.saturating_add(symbol.bytes);
        }
        end = end.max(self.shared_end);
        let alignment = |symbol: &Symbol<'_>| if symbol.value == 0 { DYNAMIC_ALIGNMENT } else { symbol.value };
        for (_, symbol) in &dynamic {
            end = aligned(end, alignment(symbol));
        }
        self.shared.extend(dynamic.into_iter().map(|(number, _)| (number, end)));
        self.shared_end = end;
    }

    /// Makes room in bank 0 for the references that the code of some sections names.
    fn place_slots(&mut self, cubin: &Cubin<'_>, entry: &Function<'_>, code: &BTreeSet<usize>) {
        let slots = cubin.relocations.iter().filter(|it| it.kind == RelocationKind::InstructionSlot14);
        let named: BTreeSet<usize> = slots.filter(|it| code.contains(&it.section)).map(|it| it.symbol).collect();
        let first = entry.constant_bank(0).map_or(0, |bank| bank.image.len().next_multiple_of(SLOT_BYTES));
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        self.slots = named.into_iter().zip((first..).step_by(SLOT_BYTES)).collect();
    }

    /// Where in bank 0 the numbers of references are that code names, by their symbols.
    pub fn slots(&self) -> &BTreeMap<usize, u32> {
        &self.slots
    }

    /// The first byte of a shared variable that the linker has placed.
    pub fn shared(&self, symbol: usize) -> Option<u64> {
        self.shared.get(&symbol).copied()
    }

    /// The sections that bank 2 consists of, with their first bytes in it.
    pub fn bank_2(&self) -> &[(usize, u64)] {
        &self.bank_2
    }

    /// The first byte of a section in the kernel's constant bank.
    pub fn constants(&self, section: usize) -> u64 {
        self.bank_2.iter().find(|(own, _)| *own == section).map_or(0, |(_, first)| *first)
    }
}

/// Whether an undefined variable is dynamic shared memory, which nobody defines.
pub(super) fn is_dynamic(symbol: &Symbol<'_>) -> bool {
    symbol.is_undefined() && symbol.is_shared() && symbol.bytes == 0
}

/// The first multiple of an alignment from an offset on.
fn aligned(offset: u64, alignment: u64) -> u64 {
    offset.checked_next_multiple_of(alignment.max(1)).unwrap_or(u64::MAX)
}
