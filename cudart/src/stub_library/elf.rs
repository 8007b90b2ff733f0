//! The file of one library: x86-64 ELF with a jump for each function.
//!
//! ```text
//!   segment       sections
//!   read          .hash .dynsym .dynstr .gnu.version .gnu.version_d .rela.dyn .rodata (names without an implementation)
//!   read, run     .text: a jump through the slot of each function
//!   read, write   .dynamic .got: a slot for each implementation, filled by the dynamic linker, read-only afterwards
//! ```
//!
//! Addresses are offsets in the file: every segment begins on a page of its own.

use super::error::Error;
use super::resolution::{Implementations, names};
use super::shared_object::{PAGE, function_symbol, section, write_file_header, write_segment, write_stack_segment};
use crate::abi::exports::Library;
use balar_host::DriverVersion;
use object::elf;
use object::write::StringId;
use object::write::elf::{Rel, SectionHeader, SectionIndex, Sym, Verdef, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Bytes of code of one function.
const JUMP_BYTES: usize = 32;
/// Bytes of one slot of the table of addresses.
const SLOT_BYTES: usize = 8;
/// Number of the version of the library's own symbols; 1 is for symbols without a version.
const OWN_VERSION: u16 = 2;

/// The content of the file of `library` on a node with such a driver. Its functions jump to those of the library at `implementation`.
pub fn library(
    library: &Library,
    driver: DriverVersion,
    implementations: &Implementations,
    implementation: &Path,
) -> Result<Vec<u8>, Error> {
    let layout = |reason: String| Error::Layout { soname: library.soname, reason };
    let needed = implementation.to_str().ok_or_else(|| layout(format!("{implementation:?} is not UTF-8")))?;
    let functions = Functions::new(library, driver, implementations);
    file(library, &functions, needed).map_err(|error| layout(error.to_string()))
}

/// Targets of the functions of a library.
struct Functions {
    /// Symbols of the implementation in use: a slot each.
    imports: Vec<String>,
    exports: Vec<Export>,
    /// The names without an implementation, each with a zero byte at its end.
    names: Vec<u8>,
}

struct Export {
    name: &'static str,
    slot: usize,
    /// Where its name is in [`Functions::names`], if it has no implementation.
    unimplemented: Option<usize>,
}

impl Functions {
    fn new(library: &Library, driver: DriverVersion, implementations: &Implementations) -> Self {
        let names = names(library, driver).into_iter();
        let found: Vec<_> = names.map(|name| (name, implementations.on(driver, library, name))).collect();
        let used: BTreeSet<String> = found.iter().filter_map(|(_, symbol)| symbol.clone()).collect();
        let mut imports: Vec<String> = used.into_iter().collect();
        let slots: BTreeMap<String, usize> = imports.iter().cloned().zip(0..).collect();
        let slot_of_unimplemented = imports.len();
        imports.push(library.unimplemented.to_owned());
        let mut names = Vec::new();
        let exports = found
            .into_iter()
            .map(|(name, symbol)| match symbol.and_then(|symbol| slots.get(&symbol)) {
                Some(&slot) => Export { name, slot, unimplemented: None },
                None => {
                    let at = names.len();
                    names.extend_from_slice(name.as_bytes());
                    names.push(0);
                    Export { name, slot: slot_of_unimplemented, unimplemented: Some(at) }
                }
            })
            .collect();
        Self { imports, exports, names }
    }
}

/// The code of `export`, which lies at address `at`.
fn jump(export: &Export, at: usize, slots: usize, names: usize) -> [u8; JUMP_BYTES] {
    // Addresses in code are relative to the end of the instruction; all are in one file of less than 2 GiB.
    let relative = |to: usize, end: usize| (to.wrapping_sub(at + end) as u32).to_le_bytes();
    let mut code = Vec::with_capacity(JUMP_BYTES);
    // endbr64: functions are called through pointers too.
    code.extend([0xf3, 0x0f, 0x1e, 0xfa]);
    if let Some(name) = export.unimplemented {
        // lea rdi, [rip + name]
        code.extend([0x48, 0x8d, 0x3d]);
        code.extend(relative(names + name, code.len() + 4));
    }
    // jmp [rip + slot]
    code.extend([0xff, 0x25]);
    code.extend(relative(slots + export.slot * SLOT_BYTES, code.len() + 4));
    // int3 up to the next function.
    code.resize(JUMP_BYTES, 0xcc);
    let mut bytes = [0; JUMP_BYTES];
    bytes.copy_from_slice(&code);
    bytes
}

/// Offsets and sizes of the parts of the file.
#[derive(Default)]
struct Places {
    hash: usize,
    dynsym: usize,
    dynstr: usize,
    dynstr_bytes: usize,
    versym: usize,
    verdef: usize,
    relocations: usize,
    names: usize,
    end_of_tables: usize,
    text: usize,
    end_of_text: usize,
    dynamic: usize,
    slots: usize,
    /// The end of the writable segment: the dynamic linker makes it read-only in whole pages.
    end: usize,
}

/// Entries of the dynamic section.
fn dynamic_count(library: &Library) -> usize {
    if library.versioned { 14 } else { 11 }
}

/// A section of ours: the name's place among the names of sections, and its index.
type Section = (StringId, SectionIndex);

/// Names, symbols and sections of the file.
struct Contents {
    soname: StringId,
    /// The library of the implementation.
    needed: StringId,
    imported: Vec<StringId>,
    exported: Vec<StringId>,
    relocations: Section,
    names: Section,
    text: Section,
    slots: Section,
    /// Symbols, with that of index 0.
    chain_count: u32,
}

/// Adds names and symbols, and reserves the indices of sections.
fn reserve_contents<'a>(
    writer: &mut Writer<'a>,
    library: &Library,
    functions: &'a Functions,
    needed: &'a str,
) -> Contents {
    writer.reserve_null_section_index();
    writer.reserve_hash_section_index();
    writer.reserve_dynsym_section_index();
    writer.reserve_dynstr_section_index();
    if library.versioned {
        writer.reserve_gnu_versym_section_index();
        writer.reserve_gnu_verdef_section_index();
    }
    let relocations = (writer.add_section_name(b".rela.dyn"), writer.reserve_section_index());
    let names = (writer.add_section_name(b".rodata"), writer.reserve_section_index());
    let text = (writer.add_section_name(b".text"), writer.reserve_section_index());
    writer.reserve_dynamic_section_index();
    let slots = (writer.add_section_name(b".got"), writer.reserve_section_index());
    writer.reserve_shstrtab_section_index();

    let Functions { imports, exports, .. } = functions;
    let soname = writer.add_dynamic_string(library.soname.as_bytes());
    let needed = writer.add_dynamic_string(needed.as_bytes());
    let imported: Vec<StringId> = imports.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
    let exported: Vec<StringId> =
        exports.iter().map(|export| writer.add_dynamic_string(export.name.as_bytes())).collect();
    writer.reserve_null_dynamic_symbol_index();
    let symbol_count = imports.len() + exports.len() + usize::from(library.versioned);
    for _ in 0..symbol_count {
        writer.reserve_dynamic_symbol_index();
    }
    let chain_count = symbol_count as u32 + 1;
    Contents { soname, needed, imported, exported, relocations, names, text, slots, chain_count }
}

/// Reserves the places of the parts.
fn reserve_places(writer: &mut Writer<'_>, library: &Library, functions: &Functions, chain_count: u32) -> Places {
    let Functions { imports, exports, names } = functions;
    let mut places = Places::default();
    writer.reserve_file_header();
    writer.reserve_program_headers(6);
    places.hash = writer.reserve_hash(exports.len() as u32, chain_count);
    places.dynsym = writer.reserve_dynsym();
    places.dynstr = writer.reserve_dynstr();
    places.dynstr_bytes = writer.dynstr_len();
    if library.versioned {
        places.versym = writer.reserve_gnu_versym();
        places.verdef = writer.reserve_gnu_verdef(2, 2);
    }
    places.relocations = writer.reserve_relocations(imports.len(), true);
    places.names = writer.reserve(names.len(), 1);
    places.end_of_tables = writer.reserved_len();
    places.text = writer.reserve(exports.len() * JUMP_BYTES, PAGE);
    places.end_of_text = writer.reserved_len();
    writer.reserve(0, PAGE);
    places.dynamic = writer.reserve_dynamic(dynamic_count(library));
    places.slots = writer.reserve(imports.len() * SLOT_BYTES, SLOT_BYTES);
    writer.reserve(0, PAGE);
    places.end = writer.reserved_len();
    writer.reserve_shstrtab();
    writer.reserve_section_headers();
    places
}

fn file(library: &Library, functions: &Functions, needed: &str) -> object::write::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut bytes);
    let contents = reserve_contents(&mut writer, library, functions, needed);
    let places = reserve_places(&mut writer, library, functions, contents.chain_count);
    write_file_header(&mut writer)?;
    write_segments(&mut writer, library, &places);
    write_symbols(&mut writer, library, functions, &contents, &places);
    let Functions { imports, exports, names } = functions;
    writer.write_align_relocation();
    for index in 0..imports.len() {
        let r_offset = (places.slots + index * SLOT_BYTES) as u64;
        let r_type = elf::R_X86_64_GLOB_DAT;
        writer.write_relocation(true, &Rel { r_offset, r_sym: index as u32 + 1, r_type, r_addend: 0 });
    }
    writer.write(names);
    writer.pad_until(places.text);
    for (index, export) in exports.iter().enumerate() {
        writer.write(&jump(export, places.text + index * JUMP_BYTES, places.slots, places.names));
    }
    writer.pad_until(places.dynamic);
    write_dynamic(&mut writer, library, (contents.soname, contents.needed), &places, imports.len());
    writer.pad_until(places.end);
    writer.write_shstrtab();
    write_section_headers(&mut writer, library, functions, &contents, &places);
    Ok(bytes)
}

fn write_segments(writer: &mut Writer<'_>, library: &Library, places: &Places) {
    writer.write_align_program_headers();
    let read_write = elf::PF_R | elf::PF_W;
    let dynamic_bytes = dynamic_count(library) * 16;
    let dynamic = places.dynamic..places.dynamic + dynamic_bytes;
    write_segment(writer, elf::PT_LOAD, elf::PF_R, 0..places.end_of_tables, PAGE);
    write_segment(writer, elf::PT_LOAD, elf::PF_R | elf::PF_X, places.text..places.end_of_text, PAGE);
    write_segment(writer, elf::PT_LOAD, read_write, places.dynamic..places.end, PAGE);
    write_segment(writer, elf::PT_DYNAMIC, read_write, dynamic, 8);
    write_segment(writer, elf::PT_GNU_RELRO, elf::PF_R, places.dynamic..places.end, 1);
    write_stack_segment(writer);
}

/// The symbols (the imports, the exports, and the version's own), the tables that find them, their names and versions.
fn write_symbols(
    writer: &mut Writer<'_>,
    library: &Library,
    functions: &Functions,
    contents: &Contents,
    places: &Places,
) {
    let Functions { imports, exports, .. } = functions;
    writer.write_hash(exports.len() as u32, contents.chain_count, |index| {
        let export = (index as usize).checked_sub(1 + imports.len())?;
        let name = exports.get(export).map(|export| export.name);
        // The symbol after the last function is that of the version.
        Some(elf::hash(name.unwrap_or(library.soname).as_bytes()))
    });
    writer.write_null_dynamic_symbol();
    for name in &contents.imported {
        writer.write_dynamic_symbol(&function_symbol(*name, None, 0, 0));
    }
    for (index, name) in contents.exported.iter().enumerate() {
        let at = places.text + index * JUMP_BYTES;
        writer.write_dynamic_symbol(&function_symbol(*name, Some(contents.text.1), at, JUMP_BYTES));
    }
    if library.versioned {
        writer.write_dynamic_symbol(&Sym {
            name: Some(contents.soname),
            section: None,
            st_info: (elf::STB_GLOBAL << 4) | elf::STT_OBJECT,
            st_other: elf::STV_DEFAULT,
            st_shndx: elf::SHN_ABS,
            st_value: 0,
            st_size: 0,
        });
    }
    writer.write_dynstr();
    if library.versioned {
        write_versions(writer, contents.soname, imports.len(), exports.len() + 1);
    }
}

fn write_section_headers(
    writer: &mut Writer<'_>,
    library: &Library,
    functions: &Functions,
    contents: &Contents,
    places: &Places,
) {
    let Functions { imports, exports, names } = functions;
    writer.write_null_section_header();
    writer.write_hash_section_header(places.hash as u64);
    writer.write_dynsym_section_header(places.dynsym as u64, 1);
    writer.write_dynstr_section_header(places.dynstr as u64);
    if library.versioned {
        writer.write_gnu_versym_section_header(places.versym as u64);
        writer.write_gnu_verdef_section_header(places.verdef as u64);
    }
    let dynsym = writer.dynsym_index();
    let relocations = places.relocations..places.relocations + imports.len() * 24;
    writer.write_section_header(&SectionHeader {
        sh_type: elf::SHT_RELA,
        sh_link: dynsym.0,
        sh_entsize: 24,
        ..section(contents.relocations.0, 0, relocations, 8)
    });
    let names = places.names..places.names + names.len();
    writer.write_section_header(&section(contents.names.0, 0, names, 1));
    let text = places.text..places.text + exports.len() * JUMP_BYTES;
    writer.write_section_header(&section(contents.text.0, elf::SHF_EXECINSTR, text, PAGE));
    writer.write_dynamic_section_header(places.dynamic as u64);
    let slots = places.slots..places.slots + imports.len() * SLOT_BYTES;
    writer.write_section_header(&SectionHeader {
        sh_entsize: SLOT_BYTES as u64,
        ..section(contents.slots.0, elf::SHF_WRITE, slots, SLOT_BYTES)
    });
    writer.write_shstrtab_section_header();
}

/// The version of each symbol, and the versions there are: the library's own name twice, as the file's and as that of its symbols.
fn write_versions(writer: &mut Writer<'_>, soname: StringId, imports: usize, own: usize) {
    writer.write_null_gnu_versym();
    for _ in 0..imports {
        writer.write_gnu_versym(elf::VER_NDX_GLOBAL);
    }
    for _ in 0..own {
        writer.write_gnu_versym(OWN_VERSION);
    }
    writer.write_align_gnu_verdef();
    for (index, flags) in [(elf::VER_NDX_GLOBAL, elf::VER_FLG_BASE), (OWN_VERSION, 0)] {
        writer.write_gnu_verdef(&Verdef { version: elf::VER_DEF_CURRENT, flags, index, aux_count: 1, name: soname });
    }
}

/// The dynamic section: [`dynamic_count`] entries.
fn write_dynamic(
    writer: &mut Writer<'_>,
    library: &Library,
    (soname, needed): (StringId, StringId),
    places: &Places,
    imports: usize,
) {
    writer.write_align_dynamic();
    writer.write_dynamic_string(elf::DT_NEEDED, needed);
    writer.write_dynamic_string(elf::DT_SONAME, soname);
    writer.write_dynamic(elf::DT_HASH, places.hash as u64);
    writer.write_dynamic(elf::DT_STRTAB, places.dynstr as u64);
    writer.write_dynamic(elf::DT_SYMTAB, places.dynsym as u64);
    writer.write_dynamic(elf::DT_STRSZ, places.dynstr_bytes as u64);
    writer.write_dynamic(elf::DT_SYMENT, 24);
    writer.write_dynamic(elf::DT_RELA, places.relocations as u64);
    writer.write_dynamic(elf::DT_RELASZ, (imports * 24) as u64);
    writer.write_dynamic(elf::DT_RELAENT, 24);
    if library.versioned {
        writer.write_dynamic(elf::DT_VERSYM, places.versym as u64);
        writer.write_dynamic(elf::DT_VERDEF, places.verdef as u64);
        writer.write_dynamic(elf::DT_VERDEFNUM, 2);
    }
    writer.write_dynamic(elf::DT_NULL, 0);
}
