//! The sections and symbols of the file, with every offset and size checked against it.

use super::error::CubinError;
use super::symbol::{Binding, Symbol, SymbolKind};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};
use object::read::{SectionIndex, SymbolIndex};
use std::ops::Range;

/// Section type of `.nv.info` and `.nv.info.NAME`.
pub(super) const SECTION_INFO: u32 = 0x7000_0000;
/// Section type of `.nv.callgraph`.
pub(super) const SECTION_CALL_GRAPH: u32 = 0x7000_0001;
/// Section type of `.nv.global` in a relocatable file: without bytes in the file, as NOBITS in others.
const SECTION_GLOBAL: u32 = 0x7000_0007;
/// Section type of local memory in a relocatable file, without bytes in the file.
const SECTION_LOCAL: u32 = 0x7000_0009;
/// Section type of shared memory in a relocatable file, without bytes in the file.
const SECTION_SHARED: u32 = 0x7000_000a;

/// A name is shorter: compilers wrote none beyond 500 bytes.
const MAXIMUM_NAME_BYTES: usize = 1 << 16;

/// A section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'data> {
    pub name: &'data str,
    pub header: &'data SectionHeader64<LE>,
    pub kind: u32,
    pub flags: u64,
    pub info: u32,
    /// Its size once it is loaded.
    pub bytes: u64,
    /// A power of two.
    pub alignment: u64,
    /// Its bytes in the file: all of it or nothing.
    pub data: &'data [u8],
}

impl Section<'_> {
    /// Whether the GPU gets to see it.
    pub fn is_loaded(&self) -> bool {
        self.flags & u64::from(elf::SHF_ALLOC) != 0
    }

    /// Whether the file has no bytes of it.
    pub fn is_empty_in_file(&self) -> bool {
        self.kind == elf::SHT_NOBITS || [SECTION_GLOBAL, SECTION_LOCAL, SECTION_SHARED].contains(&self.kind)
    }
}

/// The file: sections and symbols by their numbers.
pub(super) struct File<'data> {
    pub bytes: &'data [u8],
    pub is_relocatable: bool,
    pub sections: Vec<Section<'data>>,
    pub symbols: Vec<Symbol<'data>>,
}

impl<'data> File<'data> {
    /// Reads the tables that every other part of the reader needs.
    pub fn read(bytes: &'data [u8]) -> Result<Self, CubinError> {
        let broken = |error: object::Error| CubinError::file(0, format!("{error}, expected a 64-bit ELF file"));
        let header = FileHeader64::<LE>::parse(bytes).map_err(broken)?;
        if !header.is_little_endian() {
            return Err(CubinError::file(5, "data that is big-endian, expected little-endian"));
        }
        let table = header.sections(LE, bytes).map_err(broken)?;
        let names = header.section_strings_index(LE, bytes).map_err(broken)?;
        let names = match names {
            SectionIndex(0) => &[][..],
            index => section_data(bytes, index.0, table.section(index).map_err(broken)?)?,
        };
        let mut sections = Vec::with_capacity(table.len());
        let mut together = 0u64;
        for (index, header) in table.enumerate() {
            let section = section(bytes, names, index.0, header)?;
            together = together.saturating_add(section.data.len() as u64);
            sections.push(section);
        }
        // Whatever is made of the sections is at most so many times the file.
        if together > bytes.len() as u64 {
            let length = bytes.len();
            let what = format!("sections of {together} bytes together, expected no more than the file's {length}");
            return Err(CubinError::file(header.e_shoff(LE), what));
        }
        let symbols = symbols(bytes, &table, &sections)?;
        let is_relocatable = header.e_type(LE) == elf::ET_REL;
        Ok(Self { bytes, is_relocatable, sections, symbols })
    }

    /// The symbol of a number that a section has at an offset.
    pub fn symbol(&self, index: u32, section: &str, offset: u64) -> Result<usize, CubinError> {
        let count = self.symbols.len();
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => Err(CubinError::section(
                section,
                offset,
                format!("the symbol {index}, expected one of the {count} that there are"),
            )),
        }
    }

    /// The sections whose names begin with a prefix, with their numbers and the rest of the name.
    pub fn named<'a>(
        &'a self,
        prefix: &'static str,
    ) -> impl Iterator<Item = (usize, &'a Section<'data>, &'data str)> + use<'a, 'data> {
        let sections = self.sections.iter().enumerate();
        sections.filter_map(move |(index, section)| Some((index, section, section.name.strip_prefix(prefix)?)))
    }
}

/// A part of the file.
fn range(offset: u64, length: u64) -> Option<Range<usize>> {
    Some(usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(length)?).ok()?)
}

/// The bytes that the file has of a section.
fn section_data<'data>(
    bytes: &'data [u8],
    index: usize,
    header: &SectionHeader64<LE>,
) -> Result<&'data [u8], CubinError> {
    let (offset, length) = (header.sh_offset(LE), header.sh_size(LE));
    range(offset, length).and_then(|range| bytes.get(range)).ok_or_else(|| {
        let file = bytes.len();
        let what = format!("{length} bytes from {offset:#x} on, expected them inside the file's {file}");
        CubinError::section(&index.to_string(), 0, what)
    })
}

/// A name in a table of names; `whose` says in messages whose name it is.
fn name(names: &[u8], at: u32, whose: impl Fn() -> String) -> Result<&str, CubinError> {
    let rest = usize::try_from(at).ok().and_then(|at| names.get(at..)).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAXIMUM_NAME_BYTES)];
    let error = |why: &str| {
        let length = names.len();
        CubinError::section(&whose(), 0, format!("a name at {at:#x} of the {length} bytes of names, {why}"))
    };
    let end = rest.iter().position(|&byte| byte == 0);
    let end = end.ok_or_else(|| error("expected one that ends there with a zero byte"))?;
    std::str::from_utf8(&rest[..end]).map_err(|_| error("expected one in UTF-8"))
}

/// The section of a header.
fn section<'data>(
    bytes: &'data [u8],
    names: &'data [u8],
    index: usize,
    header: &'data SectionHeader64<LE>,
) -> Result<Section<'data>, CubinError> {
    let name = match header.sh_name(LE) {
        0 if names.is_empty() => "",
        at => name(names, at, || index.to_string())?,
    };
    let alignment = header.sh_addralign(LE).max(1);
    if !alignment.is_power_of_two() {
        let what = format!("an alignment of {alignment} bytes, expected a power of two");
        return Err(CubinError::section(name, 0, what));
    }
    let mut section = Section {
        name,
        header,
        kind: header.sh_type(LE),
        flags: header.sh_flags(LE),
        info: header.sh_info(LE),
        bytes: header.sh_size(LE),
        alignment,
        data: &[],
    };
    if section.kind == elf::SHT_NULL {
        section.bytes = 0;
    } else if !section.is_empty_in_file() {
        section.data = section_data(bytes, index, header)?;
    }
    Ok(section)
}

/// The symbols of the file.
fn symbols<'data>(
    bytes: &'data [u8],
    table: &object::read::elf::SectionTable<'data, FileHeader64<LE>>,
    sections: &[Section<'data>],
) -> Result<Vec<Symbol<'data>>, CubinError> {
    let tables = || sections.iter().enumerate().filter(|(_, section)| section.kind == elf::SHT_SYMTAB);
    let Some((index, section)) = tables().next() else { return Ok(Vec::new()) };
    if tables().count() > 1 {
        return Err(CubinError::section(section.name, 0, "one of several tables of symbols, expected one table"));
    }
    let broken = |error: object::Error| CubinError::section(section.name, 0, format!("{error}, expected symbols"));
    let symbols = table.symbol_table_by_index(LE, bytes, SectionIndex(index)).map_err(broken)?;
    let names = sections.get(symbols.string_section().0).map_or(&[][..], |section| section.data);
    let mut all = Vec::with_capacity(symbols.len());
    for (index, symbol) in symbols.enumerate() {
        let whose = || format!("{} (symbol {})", section.name, index.0);
        let place = symbols.symbol_section(LE, symbol, SymbolIndex(index.0)).map_err(broken)?;
        let place = place.map(|index| index.0);
        let mut name = match symbol.st_name(LE) {
            0 => "",
            at => name(names, at, whose)?,
        };
        if let Some(place) = place {
            let Some(named) = sections.get(place) else {
                let count = sections.len();
                let what = format!("the section {place}, expected one of the {count} that there are");
                return Err(CubinError::section(&whose(), 0, what));
            };
            // The symbol of a section may have no name of its own.
            if name.is_empty() && symbol.st_type() == elf::STT_SECTION {
                name = named.name;
            }
        }
        all.push(Symbol {
            name,
            kind: SymbolKind::of(symbol.st_type()),
            binding: Binding::of(symbol.st_bind()),
            other: symbol.st_other(),
            section: place,
            value: symbol.st_value(LE),
            bytes: symbol.st_size(LE),
        });
    }
    Ok(all)
}
