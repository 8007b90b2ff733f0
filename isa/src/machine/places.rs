//! The places of a cubin's parts: sections and variables of their own, by the placements of the module.

use super::MachineError;
use crate::cubin::{Cubin, Relocation, RelocationKind, Symbol, SymbolKind, VariableMemory};
use crate::module::VariableKind;
use std::collections::BTreeMap;

/// The constant bank with `__constant__` variables, which is memory that the host can write.
pub(super) const VARIABLE_BANK: u32 = 3;

/// What a module needs a place for: a section with variables, a variable of its own, or the number of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The name of the section or variable.
    pub name: Box<str>,
    /// Which memory it is in. A texture or surface has no memory: it needs a number of 32 bits that no other image of the process has.
    pub kind: VariableKind,
    /// Size, bytes.
    pub bytes: u64,
    /// Alignment, bytes.
    pub alignment: u64,
}

/// A variable of a module, in one of its placements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVariable {
    /// Its name.
    pub name: Box<str>,
    /// What it is to the host.
    pub kind: VariableKind,
    /// The number of the placement.
    pub placement: usize,
    /// Its first byte there.
    pub offset: u64,
    /// Size, bytes.
    pub bytes: u64,
}

/// The placements of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The first of its placements.
    first: usize,
    /// Placements by their sections, and which of these sections have an image in the file.
    sections: BTreeMap<usize, usize>,
    /// Placements of managed variables and of references, by their symbols.
    symbols: BTreeMap<usize, usize>,
}

impl Places {
    /// Adds the needs of a file to `placements`.
    pub fn new(cubin: &Cubin<'_>, placements: &mut Vec<Placement>) -> Places {
        let mut places = Places { first: placements.len(), ..Places::default() };
        let name = |section: usize| cubin.sections.get(section).copied().unwrap_or_default().into();
        for section in &cubin.global_sections {
            let bytes = match section.image {
                Some(image) => image.len() as u64,
                None => own_bytes(cubin, section.section, section.bytes),
            };
            places.sections.insert(section.section, placements.len());
            let alignment = section.alignment;
            placements.push(Placement { name: name(section.section), kind: VariableKind::Global, bytes, alignment });
        }
        if let Some(bank) = cubin.constant_bank(VARIABLE_BANK) {
            places.sections.insert(bank.section, placements.len());
            placements.push(Placement {
                name: name(bank.section),
                kind: VariableKind::Constant,
                bytes: bank.image.len() as u64,
                alignment: bank.alignment,
            });
        }
        for variable in cubin.variables.iter().filter(|variable| is_apart(variable.is_managed, variable.memory)) {
            places.symbols.insert(variable.symbol, placements.len());
            placements.push(Placement {
                name: variable.name.into(),
                kind: VariableKind::Managed,
                bytes: variable.bytes,
                alignment: 8,
            });
        }
        for (number, symbol) in cubin.symbols.iter().enumerate() {
            let Some(kind) = reference(symbol) else { continue };
            places.symbols.insert(number, placements.len());
            placements.push(Placement { name: symbol.name.into(), kind, bytes: 0, alignment: 1 });
        }
        places
    }

    /// The number of the file's first placement.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The placement of a section.
    pub fn section(&self, section: usize) -> Option<usize> {
        self.sections.get(&section).copied()
    }

    /// The section that a placement is.
    pub fn section_at(&self, placement: usize) -> Option<usize> {
        self.sections.iter().find(|(_, at)| **at == placement).map(|(section, _)| *section)
    }

    /// The placement of a managed variable, or of a reference.
    pub fn symbol(&self, symbol: usize) -> Option<usize> {
        self.symbols.get(&symbol).copied()
    }

    /// The symbol whose own placement this is.
    pub fn symbol_at(&self, placement: usize) -> Option<usize> {
        self.symbols.iter().find(|(_, at)| **at == placement).map(|(symbol, _)| *symbol)
    }

    /// The variables of the file, those first that all of it sees, and its references.
    pub fn variables(&self, cubin: &Cubin<'_>) -> Vec<PlacedVariable> {
        let mut variables = Vec::new();
        for variable in &cubin.variables {
            let own = self.symbol(variable.symbol);
            let Some(placement) = own.or_else(|| self.section(variable.section)) else { continue };
            let kind = match variable.memory {
                _ if own.is_some() => VariableKind::Managed,
                VariableMemory::Global => VariableKind::Global,
                VariableMemory::Constant(_) => VariableKind::Constant,
            };
            let offset = if own.is_some() { 0 } else { variable.offset };
            let name = variable.name.into();
            variables.push((variable.symbol, PlacedVariable { name, kind, placement, offset, bytes: variable.bytes }));
        }
        for (&symbol, &placement) in &self.symbols {
            let Some((symbol, kind)) = cubin.symbols.get(symbol).and_then(|it| Some(symbol).zip(reference(it))) else {
                continue;
            };
            let name = cubin.symbols[symbol].name.into();
            variables.push((symbol, PlacedVariable { name, kind, placement, offset: 0, bytes: 0 }));
        }
        let is_local = |symbol: usize| cubin.symbols[symbol].binding == crate::cubin::Binding::Local;
        variables.sort_by_key(|(symbol, _)| (is_local(*symbol), *symbol));
        variables.into_iter().map(|(_, variable)| variable).collect()
    }
}

/// Whether a variable has a placement of its own.
fn is_apart(is_managed: bool, memory: VariableMemory) -> bool {
    is_managed && memory == VariableMemory::Global
}

/// The kind of reference that a symbol is. The driver makes references: none has a section.
fn reference(symbol: &Symbol<'_>) -> Option<VariableKind> {
    match symbol.kind {
        SymbolKind::Texture => Some(VariableKind::Texture),
        SymbolKind::Sampler => Some(VariableKind::Sampler),
        SymbolKind::Surface => Some(VariableKind::Surface),
        _ => None,
    }
    .filter(|_| symbol.is_undefined())
}

/// Bytes of a section without an image that are not those of managed variables at its end.
fn own_bytes(cubin: &Cubin<'_>, section: usize, bytes: u64) -> u64 {
    let variables = || cubin.variables.iter().filter(|variable| variable.section == section);
    if !variables().any(|variable| variable.is_managed) {
        return bytes;
    }
    let others = variables().filter(|variable| !variable.is_managed);
    others.map(|variable| variable.offset + variable.bytes).max().unwrap_or(0)
}

/// The bytes of data that a relocation fills in; `None` of one that belongs into instructions.
pub(super) fn data_bytes(kind: RelocationKind) -> Option<usize> {
    Some(match kind {
        RelocationKind::None => 0,
        RelocationKind::Address32
        | RelocationKind::Generic32
        | RelocationKind::FunctionDescriptor32
        | RelocationKind::TextureHeaderIndex
        | RelocationKind::SamplerHeaderIndex
        | RelocationKind::SurfaceHeaderIndex
        | RelocationKind::UnusedClear32 => 4,
        RelocationKind::Address64
        | RelocationKind::Generic64
        | RelocationKind::FunctionDescriptor64
        | RelocationKind::UnusedClear64 => 8,
        _ => return None,
    })
}

/// Checks the relocations of everything but code.
pub(super) fn data_relocations(cubin: &Cubin<'_>) -> Result<(), MachineError> {
    let globals = cubin.global_sections.iter().filter_map(|section| Some((section.section, section.image?)));
    let banks = cubin.constant_banks.iter().chain(cubin.functions.iter().flat_map(|function| &function.constant_banks));
    let images: BTreeMap<usize, &[u8]> = globals.chain(banks.map(|bank| (bank.section, &*bank.image))).collect();
    for relocation in &cubin.relocations {
        let Some(image) = images.get(&relocation.section) else { continue };
        let end = data_bytes(relocation.kind).and_then(|bytes| relocation.offset.checked_add(bytes as u64));
        if end.is_none_or(|end| end > image.len() as u64) {
            return Err(refused(cubin, relocation));
        }
    }
    Ok(())
}

/// The error of a relocation.
pub(super) fn refused(cubin: &Cubin<'_>, relocation: &Relocation) -> MachineError {
    MachineError::Relocation {
        section: cubin.sections.get(relocation.section).copied().unwrap_or_default().to_owned(),
        offset: relocation.offset,
        kind: match relocation.kind {
            RelocationKind::Other(number) => format!("of type {number}"),
            kind => format!("{kind:?}"),
        },
    }
}
