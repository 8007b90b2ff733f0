//! Cubins: the description of kernels in an ELF file of CUDA machine code, as data. No instruction is decoded here.
//!
//! A cubin has of each kernel its code (`.text.NAME`), attributes (`.nv.info.NAME`), shared memory (`.nv.shared.NAME`) and constant
//! banks (`.nv.constant0.NAME`); and for all of them global memory, constant memory, symbols and relocations. Sections and symbols
//! are named by their numbers in the file.
//!
//! Source: own findings from the output of ptxas 11.8, 12.9 and 13.5 for sm_70, sm_72 and sm_75, compared with the output of disassemblers.
//! Files for other architectures are read as far as they are like these.
//!
//! **Invariant:** no bytes make the reader panic, and its allocations are at most in proportion to them.

mod assembly;
mod call_graph;
mod elf;
mod error;
mod function;
mod header;
mod info;
mod linked;
mod memory;
mod relocation;
mod source_lines;
mod symbol;
#[cfg(test)]
mod tests;

pub use call_graph::Call;
pub use error::{CubinError, Place};
pub use function::{
    BlockLimit, Function, IndirectBranch, InnerFunction, Parameter, ParameterArea, SharedMemory, StackSizes,
};
pub use header::CubinHeader;
pub use info::{Attribute, AttributeValue};
pub use linked::{CONSTANT_BANK_BYTES, LinkError};
pub use memory::{ConstantBank, GlobalSection, Variable, VariableMemory};
pub use relocation::{Relocation, RelocationKind};
pub(crate) use source_lines::line_tables;
pub use symbol::{Binding, Symbol, SymbolKind};

use object::LittleEndian as LE;
use object::read::elf::SectionHeader as _;

/// The note of tools that says for which PTX architecture a file was compiled, from version 8 of the format on.
const COMPILER_NOTE: &str = ".note.nv.cuinfo";
/// The note's type.
const COMPILER_NOTE_TYPE: u32 = 1000;

/// A cubin. It borrows names, code and images from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin<'data> {
    /// The architecture that the code is for: 75.
    pub architecture: u32,
    /// The architecture of the PTX that it was compiled from, where the file says so.
    pub virtual_architecture: Option<u32>,
    /// The release of the tools that wrote the file, ten times the major number plus the minor one: 129. `None` where it does not say.
    pub toolkit: Option<u32>,
    /// The version of the format: 7 or 8.
    pub abi_version: u8,
    /// The operating system field of the header: 0x33 or 0x41.
    pub os_abi: u8,
    /// Whether it is to be linked with others before it is loaded, or was by [`Self::linked`].
    pub is_relocatable: bool,
    /// Its functions, in the order of their sections.
    pub functions: Vec<Function<'data>>,
    /// The constant banks of all functions.
    pub constant_banks: Vec<ConstantBank<'data>>,
    /// Its global memory.
    pub global_sections: Vec<GlobalSection<'data>>,
    /// The variables in global memory and in [`Self::constant_banks`], in the order of their symbols.
    pub variables: Vec<Variable<'data>>,
    /// All symbols, by number.
    pub symbols: Vec<Symbol<'data>>,
    /// The names of all sections, by number.
    pub sections: Vec<&'data str>,
    /// The relocations of sections that the GPU sees; relocations of information for debuggers are left out.
    pub relocations: Vec<Relocation>,
    /// Which functions call which.
    pub calls: Vec<Call>,
}

impl<'data> Cubin<'data> {
    /// Reads a cubin.
    ///
    /// # Errors
    ///
    /// The image is no cubin, or breaks the format.
    pub fn read(image: &'data [u8]) -> Result<Self, CubinError> {
        let Some(header) = CubinHeader::read(image) else {
            let (bytes, first) = (image.len(), &image[..image.len().min(8)]);
            let what = format!("{bytes} bytes that begin with {first:02x?}, expected an ELF file of CUDA code");
            return Err(CubinError::file(0, what));
        };
        let file = elf::File::read(image)?;
        let (functions, constant_banks) = assembly::functions(&file, header.abi_version)?;
        let global_sections = memory::global_sections(&file);
        let variables = memory::variables(&file, &global_sections, &constant_banks)?;
        let relocations = relocation::relocations(&file)?;
        let calls = call_graph::calls(&file)?;
        let (noted_architecture, noted_toolkit) = compiler_note(&file)?;
        Ok(Self {
            architecture: header.architecture,
            virtual_architecture: header.virtual_architecture.or(noted_architecture),
            toolkit: header.toolkit.or(noted_toolkit),
            abi_version: header.abi_version,
            os_abi: header.os_abi,
            is_relocatable: file.is_relocatable,
            functions,
            constant_banks,
            global_sections,
            variables,
            sections: file.sections.iter().map(|section| section.name).collect(),
            symbols: file.symbols,
            relocations,
            calls,
        })
    }

    /// The kernels: the functions that the host can launch.
    pub fn kernels(&self) -> impl Iterator<Item = &Function<'data>> {
        self.functions.iter().filter(|function| function.is_entry)
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<&Function<'data>> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The module's image of a constant bank.
    pub fn constant_bank(&self, bank: u32) -> Option<&ConstantBank<'data>> {
        self.constant_banks.iter().find(|image| image.bank == bank)
    }

    /// The names that are expected from outside: functions of the driver (`vprintf`, `malloc`), texture references.
    pub fn undefined_symbols(&self) -> impl Iterator<Item = &Symbol<'data>> {
        self.symbols.iter().filter(|symbol| symbol.is_undefined())
    }
}

/// The architecture of the PTX and the release of the tools, as a note has them. The release has 32 bits, or 16 in notes
/// of 6 bytes, as some cubins of CUDA 13's cuBLASLt have them.
fn compiler_note(file: &elf::File<'_>) -> Result<(Option<u32>, Option<u32>), CubinError> {
    let Some((_, section, _)) = file.named(COMPILER_NOTE).find(|(_, _, rest)| rest.is_empty()) else {
        return Ok((None, None));
    };
    let broken = |error: object::Error| CubinError::section(section.name, 0, format!("{error}, expected a note"));
    let notes = section.header.notes(LE, file.bytes).map_err(broken)?;
    let Some(mut notes) = notes else { return Ok((None, None)) };
    while let Some(note) = notes.next().map_err(broken)? {
        if note.n_type(LE) != COMPILER_NOTE_TYPE {
            continue;
        }
        // The note's own version, the architecture, the release.
        let half = |at: usize| note.desc().get(at..)?.first_chunk().map(|bytes| u32::from(u16::from_le_bytes(*bytes)));
        let toolkit = half(4).map(|low| low | half(6).unwrap_or(0) << 16);
        return Ok((half(2), toolkit));
    }
    Ok((None, None))
}
