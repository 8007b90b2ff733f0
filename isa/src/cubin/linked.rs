//! Several relocatable cubins as one, as the driver's linker makes one of them.
//!
//! Sections and symbols get the numbers of a list of all. A global name stands for one symbol: the definition of the one file that has it,
//! or the first of weak ones; the others and their code are left out. The images of a constant bank of whole modules are put one behind the
//! other. Nothing gets an address, and shared memory no offset: [`Symbol::is_shared`] tells which symbols need one.
//!
//! Source: own findings from the output of nvlink 13.5 for files of ptxas 12.9 and 13.5.

use super::{Binding, ConstantBank, Cubin, Symbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};

/// Constant banks have no more bytes, and none of their variables a larger alignment.
pub const CONSTANT_BANK_BYTES: u64 = 1 << 16;

/// Why cubins cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// There is none.
    #[error("no machine code to link, expected a relocatable cubin")]
    Nothing,
    /// They are for different GPUs.
    #[error("machine code for sm_{0} and sm_{1} that is to be linked, expected one architecture")]
    Architectures(u32, u32),
    /// Two of them define a name that only one may define.
    #[error("two of the cubins that are linked define {0}, expected one")]
    TwoDefinitions(String),
}

/// The places of the files' parts in the linked file.
struct Merge<'data> {
    symbols: Vec<Symbol<'data>>,
    /// The symbols by the numbers of the list that names stand for.
    meant: Vec<usize>,
    /// Sections whose definitions others have replaced.
    dropped: BTreeSet<usize>,
    /// Sections that are a part of another: that, and their first byte in it.
    moved: BTreeMap<usize, (usize, u64)>,
}

impl<'data> Cubin<'data> {
    /// Links relocatable cubins with each other. A name that no file defines stays undefined.
    ///
    /// # Errors
    ///
    /// They are for different architectures, or two have a strong definition of a name.
    pub fn linked(files: Vec<Cubin<'data>>) -> Result<Cubin<'data>, LinkError> {
        let mut files = files.into_iter();
        let mut all = files.next().ok_or(LinkError::Nothing)?;
        for file in files {
            all.append(file)?;
        }
        let mut merge = Merge::new(&all)?;
        merge.banks(&mut all);
        merge.apply(&mut all);
        Ok(all)
    }

    /// Puts another file behind this one.
    fn append(&mut self, mut other: Cubin<'data>) -> Result<(), LinkError> {
        if other.architecture != self.architecture {
            return Err(LinkError::Architectures(self.architecture, other.architecture));
        }
        let (sections, symbols) = (self.sections.len(), self.symbols.len());
        for symbol in &mut other.symbols {
            symbol.section = symbol.section.map(|section| section + sections);
        }
        for function in &mut other.functions {
            function.section += sections;
            function.symbol += symbols;
            function.inner.iter_mut().for_each(|inner| inner.symbol += symbols);
            function.externs.iter_mut().for_each(|symbol| *symbol += symbols);
            function.constant_banks.iter_mut().for_each(|bank| bank.section += sections);
        }
        other.constant_banks.iter_mut().for_each(|bank| bank.section += sections);
        other.global_sections.iter_mut().for_each(|global| global.section += sections);
        for variable in &mut other.variables {
            variable.section += sections;
            variable.symbol += symbols;
        }
        for relocation in &mut other.relocations {
            relocation.section += sections;
            relocation.symbol += symbols;
        }
        for call in &mut other.calls {
            call.caller += symbols;
            call.callee += symbols;
        }
        self.functions.append(&mut other.functions);
        self.constant_banks.append(&mut other.constant_banks);
        self.global_sections.append(&mut other.global_sections);
        self.variables.append(&mut other.variables);
        self.symbols.append(&mut other.symbols);
        self.sections.append(&mut other.sections);
        self.relocations.append(&mut other.relocations);
        self.calls.append(&mut other.calls);
        Ok(())
    }
}

/// The strength of a symbol, in ascending order: a reference that may stay undefined, a reference that needs a definition, a weak
/// definition, a strong one.
fn strength(symbol: &Symbol<'_>) -> u8 {
    2 * u8::from(!symbol.is_undefined()) + u8::from(symbol.binding != Binding::Weak)
}
const STRONG_DEFINITION: u8 = 3;

impl<'data> Merge<'data> {
    /// The merge of files that lie one behind the other.
    fn new(all: &Cubin<'data>) -> Result<Merge<'data>, LinkError> {
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        let is_seen = |symbol: &Symbol<'_>| symbol.binding != Binding::Local && !symbol.name.is_empty();
        for (number, symbol) in all.symbols.iter().enumerate().filter(|(_, symbol)| is_seen(symbol)) {
            let first = by_name.entry(symbol.name).or_insert(number);
            let (known, found) = (strength(&all.symbols[*first]), strength(symbol));
            if *first != number && known == STRONG_DEFINITION && found == STRONG_DEFINITION {
                return Err(LinkError::TwoDefinitions(symbol.name.to_owned()));
            }
            if found > known {
                *first = number;
            }
        }
        let mut merge = Merge {
            symbols: all.symbols.clone(),
            meant: (0..all.symbols.len()).collect(),
            dropped: BTreeSet::new(),
            moved: BTreeMap::new(),
        };
        for (number, symbol) in all.symbols.iter().enumerate().filter(|(_, symbol)| is_seen(symbol)) {
            let Some(&meant) = by_name.get(symbol.name).filter(|meant| **meant != number) else { continue };
            merge.meant[number] = meant;
            // Nobody asks for the name twice.
            let replaced = &mut merge.symbols[number];
            (replaced.name, replaced.kind, replaced.binding) = ("", SymbolKind::Unspecified, Binding::Local);
            replaced.section = None;
        }
        let replaced = all.functions.iter().filter(|function| merge.is_replaced(function.symbol));
        let sections = replaced.flat_map(|function| {
            let banks = function.constant_banks.iter().map(|bank| bank.section);
            banks.chain([function.section])
        });
        merge.dropped = sections.collect();
        Ok(merge)
    }

    fn is_replaced(&self, symbol: usize) -> bool {
        self.meant(symbol) != symbol
    }

    fn meant(&self, symbol: usize) -> usize {
        self.meant.get(symbol).copied().unwrap_or(symbol)
    }

    /// Makes one image of all images of a bank, that of the first file in front.
    fn banks(&mut self, all: &mut Cubin<'data>) {
        let mut banks: Vec<ConstantBank<'data>> = Vec::new();
        for bank in all.constant_banks.drain(..) {
            let Some(first) = banks.iter_mut().find(|first| first.bank == bank.bank) else {
                banks.push(bank);
                continue;
            };
            let alignment = bank.alignment.clamp(1, CONSTANT_BANK_BYTES);
            first.alignment = first.alignment.max(alignment);
            let image = first.image.to_mut();
            image.resize(image.len().next_multiple_of(alignment as usize), 0);
            self.moved.insert(bank.section, (first.section, image.len() as u64));
            image.extend_from_slice(&bank.image);
        }
        all.constant_banks = banks;
    }

    /// Where an offset of a section has come to lie.
    fn place(&self, section: usize, offset: u64) -> (usize, u64) {
        let (section, first) = self.moved.get(&section).copied().unwrap_or((section, 0));
        (section, offset.saturating_add(first))
    }

    /// Leaves out replaced symbols and their code, and gives all others their new numbers.
    fn apply(mut self, all: &mut Cubin<'data>) {
        let symbols = std::mem::take(&mut self.symbols);
        let placed = |mut symbol: Symbol<'data>| {
            if let Some(section) = symbol.section {
                let (section, value) = self.place(section, symbol.value);
                (symbol.section, symbol.value) = (Some(section), value);
            }
            symbol
        };
        all.symbols = symbols.into_iter().map(placed).collect();
        all.functions.retain(|function| !self.is_replaced(function.symbol));
        for function in &mut all.functions {
            function.externs.iter_mut().for_each(|symbol| *symbol = self.meant(*symbol));
        }
        all.variables.retain(|variable| !self.is_replaced(variable.symbol));
        for variable in &mut all.variables {
            (variable.section, variable.offset) = self.place(variable.section, variable.offset);
        }
        all.relocations.retain(|relocation| !self.dropped.contains(&relocation.section));
        for relocation in &mut all.relocations {
            (relocation.section, relocation.offset) = self.place(relocation.section, relocation.offset);
            relocation.symbol = self.meant(relocation.symbol);
        }
        all.calls.retain(|call| !self.is_replaced(call.caller));
        all.calls.iter_mut().for_each(|call| call.callee = self.meant(call.callee));
    }
}
