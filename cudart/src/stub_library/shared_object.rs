//! The common part of the libraries that this folder writes: x86-64 shared objects in which every address is an offset in the file.

use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, SectionIndex, Sym, Writer};
use std::ops::Range;

/// Every segment begins on a page of its own.
pub const PAGE: usize = 4096;

/// Writes the header of the file.
pub fn write_file_header(writer: &mut Writer<'_>) -> object::write::Result<()> {
    writer.write_file_header(&FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_X86_64,
        e_entry: 0,
        e_flags: 0,
    })
}

/// Writes a program header, which tells the dynamic linker the use of a part of the file.
pub fn write_segment(writer: &mut Writer<'_>, kind: u32, flags: u32, part: Range<usize>, align: usize) {
    writer.write_program_header(&ProgramHeader {
        p_type: kind,
        p_flags: flags,
        p_offset: part.start as u64,
        p_vaddr: part.start as u64,
        p_paddr: part.start as u64,
        p_filesz: part.len() as u64,
        p_memsz: part.len() as u64,
        p_align: align as u64,
    });
}

/// Writes the program header without which the dynamic linker takes the stack to be executable.
pub fn write_stack_segment(writer: &mut Writer<'_>) {
    write_segment(writer, elf::PT_GNU_STACK, elf::PF_R | elf::PF_W, 0..0, 16);
}

/// A function: in `section`, or one of another library.
pub fn function_symbol(name: StringId, section: Option<SectionIndex>, at: usize, bytes: usize) -> Sym {
    Sym {
        name: Some(name),
        section,
        st_info: (elf::STB_GLOBAL << 4) | elf::STT_FUNC,
        st_other: elf::STV_DEFAULT,
        st_shndx: elf::SHN_UNDEF,
        st_value: at as u64,
        st_size: bytes as u64,
    }
}

/// The header of a section that is loaded and holds bytes without a structure. `flags` are the flags beside the one for loading.
pub fn section(name: StringId, flags: u32, part: Range<usize>, align: usize) -> SectionHeader {
    SectionHeader {
        name: Some(name),
        sh_type: elf::SHT_PROGBITS,
        sh_flags: u64::from(elf::SHF_ALLOC | flags),
        sh_addr: part.start as u64,
        sh_offset: part.start as u64,
        sh_size: part.len() as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: align as u64,
        sh_entsize: 0,
    }
}
