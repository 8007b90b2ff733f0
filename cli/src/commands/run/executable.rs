//! Inspection of the program to run: whether it will load the simulator's CUDA libraries, and a remedy if not.

use balar_cudart::stub_library::provides;
use miette::Diagnostic;
use object::LittleEndian;
use object::elf;
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _, Sym as _};
use std::fmt;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A program that can be run.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// The file.
    pub path: PathBuf,
    /// Libraries to preload, because their functions must take precedence over those of libraries that the program keeps.
    pub preload: Vec<&'static str>,
    /// Warnings about a program that can run.
    pub notes: Vec<String>,
}

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Unsuitable {
    /// There is no such file.
    #[error("there is no program `{}`{}", .program.display(), if *.in_path { " in the folders of PATH" } else { "" })]
    NotFound {
        /// As the user wrote it.
        program: PathBuf,
        /// Whether it was looked for in PATH.
        in_path: bool,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A folder, a socket or the like.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// Permission to execute is missing.
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// Its permissions make the dynamic linker ignore the environment.
    #[error("{} is set-user-ID or set-group-ID: the dynamic linker then ignores LD_LIBRARY_PATH and LD_AUDIT", .0.display())]
    ChangesUser(PathBuf),
    /// Neither a program nor a script.
    #[error("{} is neither an x86-64 program nor a script", .0.display())]
    NotAProgram(PathBuf),
    /// A damaged ELF file.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The interpreter of a script.
    #[error("{} needs the interpreter `{interpreter}`, which cannot be run", .path.display())]
    Interpreter {
        /// The script.
        path: PathBuf,
        /// As its first line says.
        interpreter: String,
    },
    /// For another machine.
    #[error("{} is a program for {machine}: expected x86-64", .path.display())]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// What it is for.
        machine: String,
    },
    /// Not linked.
    #[error("{} is {what}: expected a program", .path.display())]
    NotLinked {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A program for another C library.
    #[error("{} uses the C library of `{loader}`: expected the GNU C library", .path.display())]
    OtherCLibrary {
        /// The file.
        path: PathBuf,
        /// Its dynamic linker.
        loader: String,
    },
    /// An unsupported version of CUDA.
    #[error("{} needs {library}", .path.display())]
    OtherRuntime {
        /// The file.
        path: PathBuf,
        /// The library.
        library: String,
    },
}

impl Unsuitable {
    /// What the user can do.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NotFound { program, in_path: true } if program.is_file() => {
                Some(format!("to run the file of this folder, write `./{}`", program.display()))
            }
            Self::NotExecutable(path) => Some(format!("`chmod +x {}` makes it so", path.display())),
            Self::ChangesUser(_) => Some("run a copy of it without these permissions".to_owned()),
            Self::NotAProgram(_) => Some("a script begins with `#!` and its interpreter".to_owned()),
            Self::OtherMachine { .. } => Some("compile it for x86-64 Linux (`-m64`)".to_owned()),
            Self::NotLinked { .. } => Some("link it to a program and run that".to_owned()),
            Self::OtherCLibrary { .. } => Some("compile it on a system with the GNU C library".to_owned()),
            Self::OtherRuntime { .. } => {
                Some("supported are the runtimes of CUDA 11, 12 and 13: compile it with one of these".to_owned())
            }
            _ => None,
        }
    }
}

impl Diagnostic for Unsuitable {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.remedy().map(|remedy| Box::new(remedy) as Box<dyn fmt::Display>)
    }
}

/// Finds `program` as a shell does, in the folders of `search` (PATH) if it has no slash, and looks at what it is.
pub fn inspect(program: &Path, search: Option<&std::ffi::OsStr>) -> Result<Executable, Unsuitable> {
    let path = find(program, search)?;
    check_permissions(&path)?;
    let data = std::fs::read(&path).map_err(|error| Unsuitable::Unreadable { path: path.clone(), error })?;
    if let Some(line) = data.strip_prefix(b"#!") {
        let words = words_of(line);
        check_interpreter(&path, words.first().map_or("", String::as_str))?;
        // `env` is asked for an interpreter by its name. A script that is called so chooses one.
        let own = path.to_str().into_iter();
        let preload = device_files(words.iter().map(String::as_str).chain(own).any(is_python));
        // What a script loads is known only when it runs: the simulator's audit library is asked then.
        return Ok(Executable { path, preload, notes: Vec::new() });
    }
    if !data.starts_with(&elf::ELFMAG) {
        return Err(Unsuitable::NotAProgram(path));
    }
    check_machine(&path, &data)?;
    let linkage =
        Linkage::read(&data).map_err(|error| Unsuitable::Damaged { path: path.clone(), reason: error.to_string() })?;
    linkage.check(&path)?;
    let mut preload = device_files(path.to_str().is_some_and(is_python));
    preload.extend(linkage.preload());
    Ok(Executable { path, preload, notes: linkage.notes() })
}

fn find(program: &Path, search: Option<&std::ffi::OsStr>) -> Result<PathBuf, Unsuitable> {
    let in_path = !program.as_os_str().as_encoded_bytes().contains(&b'/');
    let found = if in_path {
        let mut places = std::env::split_paths(search.unwrap_or_default()).map(|folder| folder.join(program));
        places.find(|path| path.is_file() && is_executable(path))
    } else {
        program.exists().then(|| program.to_owned())
    };
    found.ok_or_else(|| Unsuitable::NotFound { program: program.to_owned(), in_path })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

fn check_permissions(path: &Path) -> Result<(), Unsuitable> {
    let metadata = path.metadata().map_err(|error| Unsuitable::Unreadable { path: path.to_owned(), error })?;
    if !metadata.is_file() {
        return Err(Unsuitable::NotAFile(path.to_owned()));
    }
    if !is_executable(path) {
        return Err(Unsuitable::NotExecutable(path.to_owned()));
    }
    // The files of /proc/self belong to the user and the group that this process runs as.
    let own = Path::new("/proc/self").metadata().ok();
    let (user, group) = own.map_or((metadata.uid(), metadata.gid()), |own| (own.uid(), own.gid()));
    let changes_user = metadata.mode() & 0o4000 != 0 && metadata.uid() != user;
    let changes_group = metadata.mode() & 0o2000 != 0 && metadata.gid() != group;
    if changes_user || changes_group {
        return Err(Unsuitable::ChangesUser(path.to_owned()));
    }
    Ok(())
}

/// The words of the first line of a script; `line` is what follows `#!`.
fn words_of(line: &[u8]) -> Vec<String> {
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect()
}

/// Is this the name or the path of a Python interpreter? Its packages look for the files of a GPU.
fn is_python(interpreter: &str) -> bool {
    file_name(interpreter).starts_with("python")
}

/// What makes a program find the files of a GPU, where it is to.
fn device_files(wanted: bool) -> Vec<&'static str> {
    wanted.then_some(balar_cudart::abi::exports::DEVICE_FILES.soname).into_iter().collect()
}

/// Checks the interpreter that the first line of a script names.
fn check_interpreter(path: &Path, interpreter: &str) -> Result<(), Unsuitable> {
    if is_executable(Path::new(interpreter)) {
        return Ok(());
    }
    Err(Unsuitable::Interpreter { path: path.to_owned(), interpreter: interpreter.to_owned() })
}

/// Checks the first bytes of an ELF file, whose layout is the same for all machines.
fn check_machine(path: &Path, data: &[u8]) -> Result<(), Unsuitable> {
    let byte = |at: usize| data.get(at).copied().unwrap_or_default();
    let bits = if byte(4) == elf::ELFCLASS32 { 32 } else { 64 };
    let half = |at: usize| match byte(5) {
        elf::ELFDATA2MSB => u16::from_be_bytes([byte(at), byte(at + 1)]),
        _ => u16::from_le_bytes([byte(at), byte(at + 1)]),
    };
    let machine = match half(18) {
        elf::EM_X86_64 if bits == 64 => return Ok(()),
        elf::EM_X86_64 => "32-bit x86 (x32)".to_owned(),
        elf::EM_386 => "32-bit x86".to_owned(),
        elf::EM_AARCH64 => "64-bit ARM".to_owned(),
        elf::EM_ARM => "32-bit ARM".to_owned(),
        elf::EM_PPC64 => "64-bit POWER".to_owned(),
        elf::EM_RISCV => format!("{bits}-bit RISC-V"),
        elf::EM_CUDA => "an NVIDIA GPU (a cubin)".to_owned(),
        other => format!("machine {other} of ELF"),
    };
    Err(Unsuitable::OtherMachine { path: path.to_owned(), machine })
}

/// What an ELF file tells about the libraries that it uses.
#[derive(Debug, Default)]
struct Linkage {
    kind: u16,
    loader: Option<String>,
    needed: Vec<String>,
    /// Asks NVRTC for machine code of GPUs.
    imports_cubin: bool,
}

/// NVIDIA's libraries whose kernels exist only as machine code.
const CLOSED_LIBRARIES: [&str; 9] =
    ["libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl", "libnpp", "libnvjpeg"];

impl Linkage {
    fn read(data: &[u8]) -> object::read::Result<Self> {
        let header = elf::FileHeader64::<LittleEndian>::parse(data)?;
        let endian = header.endian()?;
        let mut linkage = Self { kind: header.e_type(endian), ..Self::default() };
        for segment in header.program_headers(endian, data)? {
            if let Some(loader) = segment.interpreter(endian, data)? {
                linkage.loader = Some(String::from_utf8_lossy(loader).into_owned());
            }
        }
        let sections = header.sections(endian, data)?;
        if let Some((entries, strings)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, strings)?;
            for entry in entries.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED)) {
                let name = entry.string(endian, strings)?;
                linkage.needed.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        for symbol in symbols.iter().filter(|symbol| symbol.st_shndx(endian) == elf::SHN_UNDEF) {
            let name = symbol.name(endian, symbols.strings())?;
            linkage.imports_cubin |= name == b"nvrtcGetCUBIN";
        }
        Ok(linkage)
    }

    fn check(&self, path: &Path) -> Result<(), Unsuitable> {
        let path = || path.to_owned();
        match self.kind {
            elf::ET_EXEC | elf::ET_DYN => {}
            elf::ET_REL => return Err(Unsuitable::NotLinked { path: path(), what: "an object file" }),
            elf::ET_CORE => return Err(Unsuitable::NotLinked { path: path(), what: "a memory dump" }),
            _ => return Err(Unsuitable::NotLinked { path: path(), what: "an ELF file of an unknown kind" }),
        }
        match &self.loader {
            None if self.kind == elf::ET_DYN && !self.needed.is_empty() => {
                return Err(Unsuitable::NotLinked { path: path(), what: "a shared library" });
            }
            Some(loader) if loader.contains("musl") => {
                return Err(Unsuitable::OtherCLibrary { path: path(), loader: loader.clone() });
            }
            // A static program may start others that load shared libraries.
            None | Some(_) => {}
        }
        let mut runtimes = self.needed.iter().filter(|library| file_name(library).starts_with("libcudart.so"));
        if let Some(library) = runtimes.find(|library| !provides(file_name(library))) {
            return Err(Unsuitable::OtherRuntime { path: path(), library: library.clone() });
        }
        Ok(())
    }

    /// Libraries to preload, see [`Executable::preload`].
    fn preload(&self) -> Vec<&'static str> {
        self.imports_cubin.then_some(balar_cudart::abi::exports::NVRTC.soname).into_iter().collect()
    }

    fn notes(&self) -> Vec<String> {
        let closed = |library: &&String| CLOSED_LIBRARIES.iter().any(|known| file_name(library).starts_with(known));
        let note = |library: &String| {
            format!(
                "{library} contains kernels only as machine code: they run where it has some for the GPU, but not with '--isa ptx'"
            )
        };
        let is_static = self.loader.is_none().then(|| {
            "the program is linked statically and loads no CUDA library, but programs that it starts may".to_owned()
        });
        is_static.into_iter().chain(self.needed.iter().filter(closed).map(note)).collect()
    }
}

fn file_name(library: &str) -> &str {
    library.rsplit('/').next().unwrap_or(library)
}

#[cfg(test)]
mod tests;
