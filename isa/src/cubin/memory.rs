//! The memory of a module: constant banks, sections of global memory, the variables in them.

use super::elf::{File, Section};
use super::error::CubinError;
use std::borrow::Cow;

/// Constant banks have smaller numbers.
const CONSTANT_BANKS: u32 = 32;

/// The image of a constant bank, either of a function (`.nv.constant0.NAME`) or of the whole module (`.nv.constant3`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantBank<'data> {
    /// Its number. Banks of a function: 0 has the parameters, 2 the compiler's constants and tables of branches. Banks of a module: 3 has
    /// `__constant__` variables, 4 the addresses of variables and of functions that the driver supplies.
    pub bank: u32,
    /// The number of its section.
    pub section: usize,
    /// The alignment of its first byte.
    pub alignment: u64,
    /// Its bytes, before relocations.
    pub image: Cow<'data, [u8]>,
}

/// A section of global memory: `.nv.global.init` or `.nv.global`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalSection<'data> {
    /// Its number.
    pub section: usize,
    /// Its bytes. The file says so, and without an image nothing limits them.
    pub bytes: u64,
    /// The alignment of its first byte.
    pub alignment: u64,
    /// Its bytes before relocations; `None` where all are zero.
    pub image: Option<&'data [u8]>,
}

/// Which memory a variable is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableMemory {
    /// Global memory: a section of [`Cubin::global_sections`](super::Cubin::global_sections).
    Global,
    /// Constant memory: this bank of [`Cubin::constant_banks`](super::Cubin::constant_banks).
    Constant(u32),
}

/// A variable of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable<'data> {
    /// Its name.
    pub name: &'data str,
    /// The number of its symbol.
    pub symbol: usize,
    /// Which memory it is in.
    pub memory: VariableMemory,
    /// The number of its section.
    pub section: usize,
    /// Its first byte in the section.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Whether it is in managed memory.
    pub is_managed: bool,
}

/// The constant bank that a section has, and the name of the function that it is of, if any.
pub(super) fn constant_bank<'data>(
    index: usize,
    section: &Section<'data>,
    rest: &'data str,
) -> Result<(ConstantBank<'data>, Option<&'data str>), CubinError> {
    let (digits, function) = match rest.split_once('.') {
        Some((digits, function)) => (digits, Some(function)),
        None => (rest, None),
    };
    let Some(bank) = digits.parse().ok().filter(|&bank| bank < CONSTANT_BANKS) else {
        let what = format!("the constant bank {digits:?}, expected a number below {CONSTANT_BANKS}");
        return Err(CubinError::section(section.name, 0, what));
    };
    Ok((ConstantBank { bank, section: index, alignment: section.alignment, image: section.data.into() }, function))
}

/// The sections of global memory.
pub(super) fn global_sections<'data>(file: &File<'data>) -> Vec<GlobalSection<'data>> {
    let all = file.named(".nv.global").filter(|(_, _, rest)| ["", ".init"].contains(rest));
    all.map(|(index, section, _)| GlobalSection {
        section: index,
        bytes: section.bytes,
        alignment: section.alignment,
        image: (!section.is_empty_in_file()).then_some(section.data),
    })
    .collect()
}

/// The variables in sections of global memory and in the module's constant banks, in the order of their symbols.
pub(super) fn variables<'data>(
    file: &File<'data>,
    globals: &[GlobalSection<'data>],
    banks: &[ConstantBank<'data>],
) -> Result<Vec<Variable<'data>>, CubinError> {
    let mut memories = vec![None; file.sections.len()];
    for global in globals {
        memories[global.section] = Some(VariableMemory::Global);
    }
    for bank in banks {
        memories[bank.section] = Some(VariableMemory::Constant(bank.bank));
    }
    let mut variables = Vec::new();
    for (index, symbol) in file.symbols.iter().enumerate().filter(|(_, symbol)| symbol.is_variable()) {
        let Some(section) = symbol.section else { continue };
        let Some(memory) = memories[section] else { continue };
        let (offset, bytes) = (symbol.value, symbol.bytes);
        let Section { name, bytes: there, .. } = file.sections[section];
        if offset.checked_add(bytes).is_none_or(|end| end > there) {
            let variable = symbol.name;
            let what =
                format!("the variable {variable} of {bytes} bytes, expected it inside the section's {there:#x} bytes");
            return Err(CubinError::section(name, offset, what));
        }
        let is_managed = symbol.is_managed();
        variables.push(Variable { name: symbol.name, symbol: index, memory, section, offset, bytes, is_managed });
    }
    Ok(variables)
}
