//! Symbols.
//!
//! Source: own findings from the output of ptxas 12.9 and 13.5.

use object::elf;

/// Flag of [`Symbol::other`]: a kernel.
const OTHER_ENTRY: u8 = 0x10;
/// Flag of [`Symbol::other`]: a managed variable.
const OTHER_MANAGED: u8 = 0x04;
/// Bits of [`Symbol::other`] that name a variable's memory: 0x20 global, 0x40 shared, 0x80 constant.
const OTHER_MEMORY: u8 = 0xe0;
const OTHER_SHARED: u8 = 0x40;

/// The kind of thing that a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Nothing in particular.
    Unspecified,
    /// A variable of a linked file.
    Object,
    /// A function: a kernel, or one that kernels call.
    Function,
    /// A section.
    Section,
    /// A texture reference (type 10). It is undefined: the driver makes it.
    Texture,
    /// A sampler reference (type 11), likewise.
    Sampler,
    /// A surface reference (type 12), likewise.
    Surface,
    /// A variable of a relocatable file (type 13).
    RelocatableObject,
    /// Another ELF type.
    Other(u8),
}

impl SymbolKind {
    pub(super) fn of(kind: u8) -> Self {
        match kind {
            elf::STT_NOTYPE => Self::Unspecified,
            elf::STT_OBJECT => Self::Object,
            elf::STT_FUNC => Self::Function,
            elf::STT_SECTION => Self::Section,
            10 => Self::Texture,
            11 => Self::Sampler,
            12 => Self::Surface,
            13 => Self::RelocatableObject,
            other => Self::Other(other),
        }
    }
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// This file alone.
    Local,
    /// Everyone; one file defines it.
    Global,
    /// Everyone; several files may define it.
    Weak,
    /// Another ELF binding.
    Other(u8),
}

impl Binding {
    pub(super) fn of(binding: u8) -> Self {
        match binding {
            elf::STB_LOCAL => Self::Local,
            elf::STB_GLOBAL => Self::Global,
            elf::STB_WEAK => Self::Weak,
            other => Self::Other(other),
        }
    }
}

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'data> {
    /// Its name; that of the section for the symbol of a section.
    pub name: &'data str,
    /// The kind of thing that it stands for.
    pub kind: SymbolKind,
    /// Who sees it.
    pub binding: Binding,
    /// The byte `st_other`, with flags of CUDA's own.
    pub other: u8,
    /// The number of the section that it is in; `None` where it is undefined.
    pub section: Option<usize>,
    /// Bytes from the beginning of that section.
    pub value: u64,
    /// Bytes that it is long.
    pub bytes: u64,
}

impl Symbol<'_> {
    /// Whether it is a kernel, which the host can launch.
    pub fn is_entry(&self) -> bool {
        self.kind == SymbolKind::Function && self.other & OTHER_ENTRY != 0
    }

    /// Whether it is a variable in managed memory.
    pub fn is_managed(&self) -> bool {
        self.is_variable() && self.other & OTHER_MANAGED != 0
    }

    /// Whether it is a variable in shared memory of a file that is to be linked. It has no place yet: [`Self::value`] is its alignment.
    /// One that is undefined and has no bytes is dynamic shared memory.
    pub fn is_shared(&self) -> bool {
        self.kind == SymbolKind::RelocatableObject && self.other & OTHER_MEMORY == OTHER_SHARED
    }

    /// Whether it is a variable.
    pub fn is_variable(&self) -> bool {
        matches!(self.kind, SymbolKind::Object | SymbolKind::RelocatableObject)
    }

    /// Whether a name is expected from outside the file: `vprintf`, `malloc`, a texture reference.
    pub fn is_undefined(&self) -> bool {
        self.section.is_none() && !self.name.is_empty()
    }
}
