//! The file of the audit library: it answers each search of the dynamic linker for a CUDA library with a stub of the run.
//!
//! `LD_LIBRARY_PATH` is one of several places that the dynamic linker looks at, and some come before it: a path in the request, the
//! `DT_RPATH` of any library. A library that `LD_AUDIT` names is asked first, in the program and in its children (`man 7 rtld-audit`).
//!
//! An audit library lives in a link namespace of its own, and a process that loads a C library there for a second time is slower and
//! less like the process that the user knows. So this one needs no other library: it has no relocations, no state but one number, and
//! code that is assembled here because a compiler's would call functions of the C library.
//!
//! ```text
//!   segment       content
//!   read          .hash .dynsym .dynstr
//!   read, run     .text: la_version, la_objsearch
//!   read, write   .data: the table of names and paths, one page after the beginning of .text; .dynamic
//! ```

use super::error::Error;
use super::shared_object::{PAGE, function_symbol, section, write_file_header, write_segment, write_stack_segment};
use object::elf;
use object::write::elf::Writer;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file's name.
pub const NAME: &str = "libbalar_audit.so";

/// A pattern of requests for a file, and the stub that answers them.
struct Answer {
    /// Prefix of the requested file's name.
    stem: &'static str,
    kind: Kind,
    /// The stub's file name.
    stub: &'static str,
}

/// The numbers that the assembled code knows the kinds of answers by.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// A version of the runtime; after the stem may follow a dot and the rest of the version.
    Runtime = 0,
    /// The driver, the management library or a version of the profiling library; after the stem may follow a dot and a version.
    Driver = 1,
    /// The runtime without a version; nothing follows.
    AnyRuntime = 2,
    /// The linker to machine code, where it is asked for by a path; after the stem may follow a dot and a version.
    Linker = 3,
}

/// In the order in which they are tried. The runtime for programs that name no version is the newest.
///
/// nvJitLink makes machine code, which no simulated GPU runs. Python's `cuda.core` asks for it by its path, and links with the driver
/// where it lacks functions: as in the driver library. Libraries of NVIDIA that need it ask for its name, and get it.
const ANSWERS: [Answer; 11] = [
    Answer { stem: "libcudart.so.11", kind: Kind::Runtime, stub: "libcudart.so.11.0" },
    Answer { stem: "libcudart.so.12", kind: Kind::Runtime, stub: "libcudart.so.12" },
    Answer { stem: "libcudart.so.13", kind: Kind::Runtime, stub: "libcudart.so.13" },
    Answer { stem: "libcuda.so", kind: Kind::Driver, stub: "libcuda.so.1" },
    Answer { stem: "libnvidia-ml.so", kind: Kind::Driver, stub: "libnvidia-ml.so.1" },
    Answer { stem: "libcupti.so.11", kind: Kind::Driver, stub: "libcupti.so.11.8" },
    Answer { stem: "libcupti.so.12", kind: Kind::Driver, stub: "libcupti.so.12" },
    Answer { stem: "libcupti.so.13", kind: Kind::Driver, stub: "libcupti.so.13" },
    Answer { stem: "libcupti.so", kind: Kind::Driver, stub: "libcupti.so.13" },
    Answer { stem: "libcudart.so", kind: Kind::AnyRuntime, stub: "libcudart.so.13" },
    Answer { stem: "libnvJitLink.so", kind: Kind::Linker, stub: "libcuda.so.1" },
];

/// Whether a request for a CUDA library of this name, without a path, is answered with one of the simulator's.
pub fn provides(file_name: &str) -> bool {
    let fits = |answer: &Answer| {
        let rest = file_name.strip_prefix(answer.stem);
        rest.is_some_and(|rest| rest.is_empty() || answer.kind != Kind::AnyRuntime && rest.starts_with('.'))
    };
    ANSWERS.iter().filter(|answer| answer.kind != Kind::Linker).any(fits)
}

// The table begins with the offset of the path that answers for a runtime without a version (4 bytes). Its entries follow: the stem's
// length (0: the end), the kind, the path's offset (2 bytes), the stem.
//
// Registers of the search: rax the answer, r8 the file's name in the request, r9 the entry, or 0 where none fits.
core::arch::global_asm!(
    ".pushsection .text.balar_audit, \"ax\", @progbits",
    ".globl balar_audit_begin, balar_audit_search, balar_audit_end",
    ".hidden balar_audit_begin, balar_audit_search, balar_audit_end",
    ".p2align 4",
    "balar_audit_begin:",
    ".Lbalar_audit_begin:",
    // unsigned int la_version(unsigned int): the first version of the interface has all that is used here.
    "endbr64",
    "mov eax, 1",
    "ret",
    ".p2align 4",
    // char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag): the path that is opened in place of `name`.
    "balar_audit_search:",
    "endbr64",
    "mov rax, rdi",
    // LA_SER_ORIG: the request itself. The other flags are for the places that are searched afterwards.
    "cmp edx, 1",
    "jne 9f",
    "call .Lbalar_audit_file_name",
    "call .Lbalar_audit_entry",
    "test r9, r9",
    "jz 9f",
    "cmp byte ptr [r9 + 1], {linker}",
    "jne 4f",
    "cmp r8, rax",
    "je 9f",
    "4:",
    "cmp byte ptr [r9 + 1], {any_runtime}",
    "jne 7f",
    // A path to libcudart.so is a link to a version, as a rule: that version is meant.
    "cmp r8, rax",
    "je 6f",
    "sub rsp, 264",
    "mov rdi, rax",
    "mov rsi, rsp",
    "mov edx, 256",
    "mov eax, {readlink}",
    "syscall",
    // A longer text than fits, like an error, tells nothing.
    "lea rcx, [rax - 1]",
    "xor r9d, r9d",
    "cmp rcx, 255",
    "jae 5f",
    "mov byte ptr [rsp + rax], 0",
    "mov rdi, rsp",
    "call .Lbalar_audit_file_name",
    "call .Lbalar_audit_entry",
    "5:",
    "add rsp, 264",
    "test r9, r9",
    "jz 6f",
    "cmp byte ptr [r9 + 1], {any_runtime}",
    "jne 7f",
    // The runtime that was asked for last, or else the newest.
    "6:",
    "lea rdi, [rip + .Lbalar_audit_begin + {page}]",
    "mov ecx, dword ptr [rdi]",
    "lea rax, [rdi + rcx]",
    "ret",
    // The path of the entry.
    "7:",
    "lea rdi, [rip + .Lbalar_audit_begin + {page}]",
    "movzx ecx, word ptr [r9 + 2]",
    "lea rax, [rdi + rcx]",
    "cmp byte ptr [r9 + 1], {runtime}",
    "jne 9f",
    "mov dword ptr [rdi], ecx",
    "9:",
    "ret",
    // r8: the file's name in the path at rdi.
    ".Lbalar_audit_file_name:",
    "mov r8, rdi",
    "2:",
    "movzx ecx, byte ptr [rdi]",
    "inc rdi",
    "test ecx, ecx",
    "jz 3f",
    "cmp ecx, '/'",
    "jne 2b",
    "mov r8, rdi",
    "jmp 2b",
    "3:",
    "ret",
    // r9: the entry that the name at r8 fits.
    ".Lbalar_audit_entry:",
    "lea r9, [rip + .Lbalar_audit_begin + {page} + 4]",
    "2:",
    "movzx ecx, byte ptr [r9]",
    "xor edi, edi",
    "test ecx, ecx",
    "jz 5f",
    "3:",
    "movzx edx, byte ptr [r8 + rdi]",
    "cmp dl, byte ptr [r9 + rdi + 4]",
    "jne 4f",
    "inc edi",
    "cmp edi, ecx",
    "jne 3b",
    "movzx edx, byte ptr [r8 + rdi]",
    "test edx, edx",
    "jz 6f",
    "cmp byte ptr [r9 + 1], {any_runtime}",
    "je 4f",
    "cmp edx, '.'",
    "je 6f",
    "4:",
    "lea r9, [r9 + rcx + 4]",
    "jmp 2b",
    "5:",
    "xor r9d, r9d",
    "6:",
    "ret",
    "balar_audit_end:",
    ".popsection",
    page = const PAGE,
    readlink = const libc::SYS_readlink,
    any_runtime = const Kind::AnyRuntime as u8,
    runtime = const Kind::Runtime as u8,
    linker = const Kind::Linker as u8,
);

unsafe extern "C" {
    static balar_audit_begin: u8;
    static balar_audit_search: u8;
    static balar_audit_end: u8;
}

/// The code, and where in it `la_objsearch` begins.
fn code() -> (&'static [u8], usize) {
    let begin = &raw const balar_audit_begin;
    let offset = |label: *const u8| label.addr() - begin.addr();
    let bytes = offset(&raw const balar_audit_end);
    // SAFETY: the labels are the ends of the code that is assembled above, which nothing writes.
    (unsafe { std::slice::from_raw_parts(begin, bytes) }, offset(&raw const balar_audit_search))
}

/// The table that the code reads, for stubs in `folder`.
fn table(folder: &Path) -> Result<Vec<u8>, Error> {
    let too_long = || Error::Layout { soname: NAME, reason: format!("the name of {} is too long", folder.display()) };
    let entries: usize = ANSWERS.iter().map(|answer| 4 + answer.stem.len()).sum();
    let mut paths = Vec::new();
    let mut table = vec![0; 4];
    for Answer { stem, kind, stub } in &ANSWERS {
        // After the first number, the entries and the length that ends them.
        let path = u16::try_from(4 + entries + 1 + paths.len()).map_err(|_| too_long())?;
        table.extend([stem.len() as u8, *kind as u8]);
        table.extend(path.to_le_bytes());
        table.extend(stem.as_bytes());
        paths.extend(folder.join(stub).as_os_str().as_bytes());
        paths.push(0);
        if *kind == Kind::AnyRuntime {
            table[..4].copy_from_slice(&u32::from(path).to_le_bytes());
        }
    }
    table.push(0);
    table.extend(paths);
    Ok(table)
}

/// The content of the file for stubs in `folder`.
pub fn library(folder: &Path) -> Result<Vec<u8>, Error> {
    let table = table(folder)?;
    file(&table).map_err(|error| Error::Layout { soname: NAME, reason: error.to_string() })
}

fn file(table: &[u8]) -> object::write::Result<Vec<u8>> {
    let (code, search) = code();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut bytes);
    writer.reserve_null_section_index();
    writer.reserve_hash_section_index();
    writer.reserve_dynsym_section_index();
    writer.reserve_dynstr_section_index();
    let text_section = (writer.add_section_name(b".text"), writer.reserve_section_index());
    let data_section = (writer.add_section_name(b".data"), writer.reserve_section_index());
    writer.reserve_dynamic_section_index();
    writer.reserve_shstrtab_section_index();
    let soname = writer.add_dynamic_string(NAME.as_bytes());
    let names: [&[u8]; 2] = [b"la_version", b"la_objsearch"];
    let functions = names.map(|name| writer.add_dynamic_string(name)).into_iter().zip([0, search]);
    writer.reserve_null_dynamic_symbol_index();
    for _ in names {
        writer.reserve_dynamic_symbol_index();
    }
    let symbols = names.len() as u32;

    writer.reserve_file_header();
    writer.reserve_program_headers(5);
    let hash = writer.reserve_hash(symbols, symbols + 1);
    let dynsym = writer.reserve_dynsym();
    let dynstr = writer.reserve_dynstr();
    let dynstr_bytes = writer.dynstr_len();
    let end_of_tables = writer.reserved_len();
    let text = writer.reserve(code.len(), PAGE);
    // The code reads the table at this distance.
    let data = writer.reserve(table.len(), PAGE);
    debug_assert_eq!(data, text + PAGE, "the code fits a page");
    let dynamic = writer.reserve_dynamic(7);
    let end = writer.reserved_len();
    writer.reserve_shstrtab();
    writer.reserve_section_headers();

    write_file_header(&mut writer)?;
    writer.write_align_program_headers();
    let read_write = elf::PF_R | elf::PF_W;
    write_segment(&mut writer, elf::PT_LOAD, elf::PF_R, 0..end_of_tables, PAGE);
    write_segment(&mut writer, elf::PT_LOAD, elf::PF_R | elf::PF_X, text..text + code.len(), PAGE);
    write_segment(&mut writer, elf::PT_LOAD, read_write, data..end, PAGE);
    write_segment(&mut writer, elf::PT_DYNAMIC, read_write, dynamic..end, 8);
    write_stack_segment(&mut writer);
    writer.write_hash(symbols, symbols + 1, |index| {
        let name = names.get((index as usize).checked_sub(1)?)?;
        Some(elf::hash(name))
    });
    writer.write_null_dynamic_symbol();
    for (name, offset) in functions {
        writer.write_dynamic_symbol(&function_symbol(name, Some(text_section.1), text + offset, 0));
    }
    writer.write_dynstr();
    writer.pad_until(text);
    writer.write(code);
    writer.pad_until(data);
    writer.write(table);
    writer.write_align_dynamic();
    writer.write_dynamic_string(elf::DT_SONAME, soname);
    writer.write_dynamic(elf::DT_HASH, hash as u64);
    writer.write_dynamic(elf::DT_STRTAB, dynstr as u64);
    writer.write_dynamic(elf::DT_SYMTAB, dynsym as u64);
    writer.write_dynamic(elf::DT_STRSZ, dynstr_bytes as u64);
    writer.write_dynamic(elf::DT_SYMENT, 24);
    writer.write_dynamic(elf::DT_NULL, 0);
    writer.write_shstrtab();

    writer.write_null_section_header();
    writer.write_hash_section_header(hash as u64);
    writer.write_dynsym_section_header(dynsym as u64, 1);
    writer.write_dynstr_section_header(dynstr as u64);
    writer.write_section_header(&section(text_section.0, elf::SHF_EXECINSTR, text..text + code.len(), PAGE));
    writer.write_section_header(&section(data_section.0, elf::SHF_WRITE, data..data + table.len(), PAGE));
    writer.write_dynamic_section_header(dynamic as u64);
    writer.write_shstrtab_section_header();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{CStr, CString, c_char, c_uint, c_void};

    type Search = unsafe extern "C" fn(*const c_char, *mut usize, c_uint) -> *const c_char;

    /// `LA_SER_ORIG` and `LA_SER_LIBPATH`.
    const ORIGINAL: c_uint = 1;
    const LIBRARY_PATH: c_uint = 2;

    /// An audit library for stubs in `/stubs`, loaded as any library is.
    struct Loaded(*mut c_void);

    impl Loaded {
        fn new(folder: &Path) -> Self {
            let path = folder.join(NAME);
            std::fs::write(&path, library(Path::new("/stubs")).unwrap()).unwrap();
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the library has no code that runs when it is loaded.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            assert!(!handle.is_null(), "{path:?} is no library");
            Self(handle)
        }

        fn function(&self, name: &CStr) -> *mut c_void {
            // SAFETY: the handle is open.
            let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
            assert!(!found.is_null(), "{name:?}");
            found
        }

        /// The file that is opened in place of `name`.
        fn search(&self, name: &str, flag: c_uint) -> String {
            let name = CString::new(name).unwrap();
            // SAFETY: the function has this type, and the name ends with a zero byte.
            let answer = unsafe {
                let search = std::mem::transmute::<*mut c_void, Search>(self.function(c"la_objsearch"));
                CStr::from_ptr(search(name.as_ptr(), std::ptr::null_mut(), flag))
            };
            answer.to_str().unwrap().to_owned()
        }
    }

    impl Drop for Loaded {
        fn drop(&mut self) {
            // SAFETY: the handle is open, and nothing of the library is in use.
            unsafe { libc::dlclose(self.0) };
        }
    }

    #[test]
    fn requests_for_cuda_libraries_are_answered_with_stubs() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = Loaded::new(folder.path());
        // SAFETY: the function has this type.
        let version = unsafe {
            std::mem::transmute::<*mut c_void, extern "C" fn(c_uint) -> c_uint>(loaded.function(c"la_version"))
        };
        assert_eq!(version(2), 1);
        for (request, answer) in [
            ("libcudart.so", "/stubs/libcudart.so.13"),
            ("libcudart.so.11.0", "/stubs/libcudart.so.11.0"),
            ("libcudart.so.11.8.89", "/stubs/libcudart.so.11.0"),
            ("libcudart.so", "/stubs/libcudart.so.11.0"),
            ("/opt/cuda/lib64/libcudart.so.12.6.77", "/stubs/libcudart.so.12"),
            ("libcuda.so.1", "/stubs/libcuda.so.1"),
            ("libcudart.so", "/stubs/libcudart.so.12"),
            ("./libcudart.so.13", "/stubs/libcudart.so.13"),
            ("libcuda.so", "/stubs/libcuda.so.1"),
            ("libnvidia-ml.so.1", "/stubs/libnvidia-ml.so.1"),
            ("libcupti.so.11.8", "/stubs/libcupti.so.11.8"),
            ("/opt/cupti/libcupti.so.12", "/stubs/libcupti.so.12"),
            ("libcupti.so.2026.3.0", "/stubs/libcupti.so.13"),
            ("/usr/lib64/libnvidia-ml.so.535.104.05", "/stubs/libnvidia-ml.so.1"),
            ("/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05", "/stubs/libcuda.so.1"),
        ] {
            assert_eq!(loaded.search(request, ORIGINAL), answer, "{request}");
            assert!(provides(request.rsplit('/').next().unwrap()), "{request}");
        }
    }

    #[test]
    fn other_requests_are_left_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = Loaded::new(folder.path());
        for request in [
            "",
            "/",
            "libc.so.6",
            "libcudart.so.10.2",
            "libcudart.so.1",
            "libcudart.so.120",
            "libcudart.so.",
            "libcudart.s",
            "libcudart.source",
            "libcudart_static.a",
            "libcudadebugger.so.1",
            "libnvrtc.so.12",
            "libcudart.so.12/libother.so",
            "libnvJitLink.so.12",
            "mylibcudart.so.12",
        ] {
            assert_eq!(loaded.search(request, ORIGINAL), request);
            assert!(!provides(request.rsplit('/').next().unwrap()), "{request}");
        }
        assert_eq!(loaded.search("/opt/libcudart.so.12", LIBRARY_PATH), "/opt/libcudart.so.12");
        assert_eq!(loaded.search("/opt/libnvJitLink.so.12", ORIGINAL), "/stubs/libcuda.so.1");
    }

    #[test]
    fn a_path_without_a_version_means_what_it_links_to() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = Loaded::new(folder.path());
        let link = folder.path().join("libcudart.so");
        let long = format!("{}/libcudart.so.11.0", "x".repeat(250));
        for (target, answer) in [
            ("libcudart.so.12", "/stubs/libcudart.so.12"),
            ("../lib/libcudart.so.11.8.89", "/stubs/libcudart.so.11.0"),
            // These name no version: the one before stays.
            ("elsewhere", "/stubs/libcudart.so.11.0"),
            ("/opt/libcudart.so", "/stubs/libcudart.so.11.0"),
            ("libcudart.so.13", "/stubs/libcudart.so.13"),
            (&long, "/stubs/libcudart.so.13"),
        ] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert_eq!(loaded.search(link.to_str().unwrap(), ORIGINAL), answer, "{target}");
            std::fs::remove_file(&link).unwrap();
        }
        assert_eq!(loaded.search("/no/such/folder/libcudart.so", ORIGINAL), "/stubs/libcudart.so.13");
    }

    #[test]
    fn the_code_fits_the_page_before_its_table() {
        let (code, search) = code();
        assert!(search < code.len() && code.len() <= PAGE);
        let long = Path::new("/").join("x".repeat(70_000));
        assert!(library(&long).unwrap_err().to_string().contains("is too long"));
    }
}
