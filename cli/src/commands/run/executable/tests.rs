use super::*;
use object::write::elf::{self as writing, Writer};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// What a program has beside its tables.
const TEXT: &[u8] = b"nothing of note";

/// A small program, as the linker would describe it.
struct Program {
    kind: u16,
    machine: u16,
    interpreter: &'static str,
    needed: &'static [&'static str],
    imports: &'static [&'static str],
}

impl Default for Program {
    fn default() -> Self {
        Self {
            kind: elf::ET_DYN,
            machine: elf::EM_X86_64,
            interpreter: "/lib64/ld-linux-x86-64.so.2",
            needed: &["libc.so.6"],
            imports: &["malloc"],
        }
    }
}

impl Program {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(object::Endianness::Little, true, &mut bytes);
        writer.reserve_null_section_index();
        writer.reserve_dynsym_section_index();
        writer.reserve_dynstr_section_index();
        writer.reserve_dynamic_section_index();
        let text_name = writer.add_section_name(b".rodata");
        writer.reserve_section_index();
        writer.reserve_shstrtab_section_index();
        let needed: Vec<_> = self.needed.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
        let imports: Vec<_> = self.imports.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
        writer.reserve_null_dynamic_symbol_index();
        for _ in &imports {
            writer.reserve_dynamic_symbol_index();
        }
        writer.reserve_file_header();
        let interpreted = u32::from(!self.interpreter.is_empty());
        writer.reserve_program_headers(interpreted);
        let interpreter = writer.reserve(self.interpreter.len() + 1, 1);
        let text = writer.reserve(TEXT.len(), 1);
        writer.reserve_dynsym();
        writer.reserve_dynstr();
        writer.reserve_dynamic(needed.len() + 1);
        writer.reserve_shstrtab();
        writer.reserve_section_headers();

        writer
            .write_file_header(&writing::FileHeader {
                os_abi: 0,
                abi_version: 0,
                e_type: self.kind,
                e_machine: self.machine,
                e_entry: 0,
                e_flags: 0,
            })
            .unwrap();
        writer.write_align_program_headers();
        if interpreted == 1 {
            let size = self.interpreter.len() as u64 + 1;
            writer.write_program_header(&writing::ProgramHeader {
                p_type: elf::PT_INTERP,
                p_flags: elf::PF_R,
                p_offset: interpreter as u64,
                p_vaddr: interpreter as u64,
                p_paddr: interpreter as u64,
                p_filesz: size,
                p_memsz: size,
                p_align: 1,
            });
        }
        writer.write(self.interpreter.as_bytes());
        writer.write(&[0]);
        writer.write(TEXT);
        writer.write_null_dynamic_symbol();
        for name in imports {
            writer.write_dynamic_symbol(&writing::Sym {
                name: Some(name),
                section: None,
                st_info: (elf::STB_GLOBAL << 4) | elf::STT_FUNC,
                st_other: 0,
                st_shndx: elf::SHN_UNDEF,
                st_value: 0,
                st_size: 0,
            });
        }
        writer.write_dynstr();
        writer.write_align_dynamic();
        for name in needed {
            writer.write_dynamic_string(elf::DT_NEEDED, name);
        }
        writer.write_dynamic(elf::DT_NULL, 0);
        writer.write_shstrtab();
        writer.write_null_section_header();
        writer.write_dynsym_section_header(0, 1);
        writer.write_dynstr_section_header(0);
        writer.write_dynamic_section_header(0);
        writer.write_section_header(&writing::SectionHeader {
            name: Some(text_name),
            sh_type: elf::SHT_PROGBITS,
            sh_flags: elf::SHF_ALLOC.into(),
            sh_addr: 0,
            sh_offset: text as u64,
            sh_size: TEXT.len() as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 1,
            sh_entsize: 0,
        });
        writer.write_shstrtab_section_header();
        bytes
    }
}

/// What `inspect` says of a file `app` with this content.
fn inspected(content: &[u8], mode: u32) -> Result<Executable, Unsuitable> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    inspect(&path, None)
}

/// Checks that a file is refused with the text and the remedy given.
#[track_caller]
fn refused(content: &[u8], message: &str, remedy: &str) {
    let error = inspected(content, 0o755).unwrap_err();
    assert!(error.to_string().contains(message), "{error}");
    let text = error.remedy().unwrap_or_default();
    assert!(text.contains(remedy), "{text}");
}

#[test]
fn programs_of_the_shared_runtime_and_of_the_driver_run() {
    for library in ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13", "/opt/lib/libcudart.so"] {
        let needed: &'static [&'static str] = vec![library, "libc.so.6"].leak();
        let program = Program { needed, imports: &["cudaMalloc"], ..Program::default() };
        let executable = inspected(&program.bytes(), 0o755).unwrap();
        assert_eq!((executable.preload, executable.notes), (vec![], vec![]), "{library}");
    }
    let driver = Program { needed: &["libcuda.so.1"], imports: &["cuInit"], ..Program::default() };
    assert!(inspected(&driver.bytes(), 0o755).is_ok());
    // The runtime comes with another library of the program, or is part of it.
    let indirect = Program { imports: &["__cudaRegisterFatBinary"], ..Program::default() };
    assert!(inspected(&indirect.bytes(), 0o755).is_ok());
    let without_cuda = Program::default();
    assert!(inspected(&without_cuda.bytes(), 0o755).is_ok());
}

#[test]
fn what_no_simulator_library_can_be_loaded_into_is_refused() {
    refused(&Program { machine: elf::EM_AARCH64, ..Program::default() }.bytes(), "for 64-bit ARM", "x86-64");
    let mut narrow = Program { machine: elf::EM_386, ..Program::default() }.bytes();
    narrow[4] = elf::ELFCLASS32;
    refused(&narrow, "for 32-bit x86", "-m64");
    refused(&Program { machine: elf::EM_CUDA, ..Program::default() }.bytes(), "a cubin", "");
    refused(&Program { kind: elf::ET_REL, ..Program::default() }.bytes(), "an object file", "link it");
    refused(&Program { interpreter: "", ..Program::default() }.bytes(), "a shared library", "run that");
    let musl = Program { interpreter: "/lib/ld-musl-x86_64.so.1", ..Program::default() };
    refused(&musl.bytes(), "ld-musl", "GNU C library");
    let old = Program { needed: &["libcudart.so.10.2"], imports: &["cudaMalloc"], ..Program::default() };
    refused(&old.bytes(), "needs libcudart.so.10.2", "CUDA 11, 12 and 13");
    refused(&Program::default().bytes()[..100], "is damaged", "");
    refused(b"#!/no/such/interpreter -x\n", "`/no/such/interpreter`", "");
    refused(b"plain text", "neither an x86-64 program nor a script", "#!");
}

/// What scripts and launchers start is told what it needs when it runs.
#[test]
fn scripts_run_and_so_do_programs_without_shared_libraries() {
    let executable = inspected(b"#! /bin/sh -e\nexec ./app\n", 0o755).unwrap();
    assert_eq!((executable.preload, executable.notes), (vec![], vec![]));
    let program = Program { interpreter: "", needed: &[], kind: elf::ET_EXEC, ..Program::default() };
    let notes = inspected(&program.bytes(), 0o755).unwrap().notes;
    assert!(matches!(&notes[..], [note] if note.starts_with("the program is linked statically")), "{notes:?}");
}

/// Their packages look for the files of a GPU.
#[test]
fn python_programs_find_the_files_of_a_gpu() {
    for first in ["#!/usr/bin/env -S python3 -B", "#!/bin/env python", "#!/usr/bin/env python3.11"] {
        let preload = inspected(format!("{first}\nimport jax\n").as_bytes(), 0o755).unwrap().preload;
        assert_eq!(preload, ["libbalar_device_files.so"], "{first}");
    }
    assert!(is_python("/opt/venv/bin/python3") && !is_python("/opt/python/bin/sh"));
}

#[test]
fn functions_that_come_before_those_of_nvrtc_are_preloaded() {
    let imports = &["nvrtcGetCUBIN", "nvrtcGetCUBINSize", "cuInit"];
    let compiler = Program { needed: &["libcuda.so.1", "libnvrtc.so.12"], imports, ..Program::default() };
    assert_eq!(inspected(&compiler.bytes(), 0o755).unwrap().preload, ["libbalar_nvrtc.so"]);
    let compiler = Program { imports: &["nvrtcGetPTX"], ..compiler };
    assert!(inspected(&compiler.bytes(), 0o755).unwrap().preload.is_empty());
}

#[test]
fn libraries_with_machine_code_alone_are_mentioned() {
    let program = Program { needed: &["libcudart.so.12", "libcublas.so.12"], ..Program::default() };
    let notes = inspected(&program.bytes(), 0o755).unwrap().notes;
    assert!(
        matches!(&notes[..], [note] if note.starts_with("libcublas.so.12 contains kernels only as machine code")),
        "{notes:?}"
    );
}

#[test]
fn files_that_cannot_be_executed_are_refused_with_the_command_that_helps() {
    let error = inspected(&Program::default().bytes(), 0o644).unwrap_err();
    assert!(error.to_string().ends_with("app is not executable"), "{error}");
    assert!(error.remedy().unwrap().contains("chmod +x"));
    let error = inspect(Path::new("/"), None).unwrap_err();
    assert_eq!(error.to_string(), "/ is not a file");
    let error = inspect(Path::new("./no-such-app"), None).unwrap_err();
    assert_eq!(error.to_string(), "there is no program `./no-such-app`");
}

#[test]
fn names_without_a_slash_are_looked_for_in_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app-of-the-test");
    fs::write(&path, Program::default().bytes()).unwrap();
    let search = std::env::join_paths([Path::new("/no/such/folder"), folder.path()]).unwrap();
    let name = Path::new("app-of-the-test");
    // Found there but not executable: as a shell has it, not found.
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let error = inspect(name, Some(&search)).unwrap_err();
    assert_eq!(error.to_string(), "there is no program `app-of-the-test` in the folders of PATH");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(inspect(name, Some(&search)).unwrap().path, path);
}
