//! Which function of libbalar_cudart.so stands behind a name of a library.

use super::error::Error;
use crate::abi::exports::{Library, UNIMPLEMENTED, driver_functions_until};
use balar_host::DriverVersion;
use object::elf;
use object::read::elf::{FileHeader, Sym};
use std::collections::BTreeSet;
use std::path::Path;

/// Prefix of the names of implementations.
const PREFIX: &str = "balar_";

/// Where the names of a runtime lead that is newer than the driver.
const INSUFFICIENT: &str = "balar_insufficient_driver";

/// Functions of the runtime that need no driver, beside those that compilers generate calls of (`__cudaRegisterFatBinary`).
const WITHOUT_DRIVER: [&str; 8] = [
    "cudaCreateChannelDesc",
    "cudaDriverGetVersion",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaRuntimeGetVersion",
    "cudaThreadExchangeStreamCaptureMode",
];

/// The names that `library` exports on a node with such a driver: the driver library has no function that is newer.
pub fn names(library: &Library, driver: DriverVersion) -> Vec<&'static str> {
    match library.is_driver() {
        true => driver_functions_until(driver.number()).map(|function| function.symbol).collect(),
        false => library.names().collect(),
    }
}

/// The implementations that libbalar_cudart.so exports.
#[derive(Debug, Clone, Default)]
pub struct Implementations {
    names: BTreeSet<String>,
}

impl Implementations {
    /// Reads the dynamic symbols of the library at `path`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let data = std::fs::read(path).map_err(|error| Error::Read { path: path.to_owned(), error })?;
        let names =
            exported(&data).map_err(|error| Error::NotALibrary { path: path.to_owned(), reason: error.to_string() })?;
        if !names.contains(UNIMPLEMENTED) {
            return Err(Error::NotOurs { path: path.to_owned() });
        }
        Ok(Self { names })
    }

    /// As [`Implementations::of`], on a node with such a driver. A runtime of a newer major version does nothing there (CUDA's minor version
    /// compatibility: one of the same does).
    pub fn on(&self, driver: DriverVersion, library: &Library, name: &str) -> Option<String> {
        let is_refused = library.major.is_some_and(|major| major > driver.major())
            && !name.starts_with("__cuda")
            && !WITHOUT_DRIVER.contains(&name);
        if is_refused { Some(INSUFFICIENT.to_owned()) } else { self.of(library, name) }
    }

    /// The implementation of `name` as `library` exports it.
    pub fn of(&self, library: &Library, name: &str) -> Option<String> {
        candidates(library, name).into_iter().find(|candidate| self.names.contains(candidate))
    }
}

impl<'a> FromIterator<&'a str> for Implementations {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        Self { names: names.into_iter().map(str::to_owned).collect() }
    }
}

/// The names under which the implementation of `name` is looked for, the most special first.
fn candidates(library: &Library, name: &str) -> Vec<String> {
    let Library { suffix, .. } = library;
    // Twins of functions whose default stream is that of the thread. The ending tells blocking functions from others; here it
    // makes no difference.
    let twin_of = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"));
    let mut candidates = match twin_of {
        Some(plain) if !suffix.is_empty() => {
            vec![format!("{PREFIX}{plain}{suffix}_ptsz"), format!("{PREFIX}{plain}_ptsz{suffix}")]
        }
        None if !suffix.is_empty() => vec![format!("{PREFIX}{name}{suffix}")],
        _ => Vec::new(),
    };
    candidates.push(match twin_of {
        Some(plain) => format!("{PREFIX}{plain}_ptsz"),
        None => format!("{PREFIX}{name}"),
    });
    candidates
}

/// The implementations among the symbols that the library `data` exports.
fn exported(data: &[u8]) -> object::read::Result<BTreeSet<String>> {
    let header = elf::FileHeader64::<object::LittleEndian>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    let mut names = BTreeSet::new();
    for symbol in symbols.iter() {
        if symbol.st_shndx(endian) == elf::SHN_UNDEF || symbol.st_bind() == elf::STB_LOCAL {
            continue;
        }
        if let Ok(name) = str::from_utf8(symbol.name(endian, symbols.strings())?)
            && name.starts_with(PREFIX)
        {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::exports::{DRIVER, LIBRARIES};

    #[test]
    fn an_implementation_for_one_version_comes_before_the_general_one() {
        let implementations: Implementations =
            ["balar_cudaGetDeviceProperties", "balar_cudaGetDeviceProperties_13"].into_iter().collect();
        let [eleven, twelve, thirteen, _] = LIBRARIES;
        let of = |library| implementations.of(&library, "cudaGetDeviceProperties");
        assert_eq!(of(eleven).as_deref(), Some("balar_cudaGetDeviceProperties"));
        assert_eq!(of(twelve).as_deref(), Some("balar_cudaGetDeviceProperties"));
        assert_eq!(of(thirteen).as_deref(), Some("balar_cudaGetDeviceProperties_13"));
    }

    #[test]
    fn twins_with_the_default_stream_of_the_thread_have_implementations_of_their_own() {
        let implementations: Implementations =
            ["balar_cudaMemcpy", "balar_cudaMemcpy_ptsz", "balar_cuMemcpyHtoD_v2_ptsz", "balar_cudaMemset"]
                .into_iter()
                .collect();
        let twelve = LIBRARIES[1];
        assert_eq!(implementations.of(&twelve, "cudaMemcpy_ptds").as_deref(), Some("balar_cudaMemcpy_ptsz"));
        assert_eq!(implementations.of(&twelve, "cudaMemset_ptds"), None);
        let driver = implementations.of(&DRIVER, "cuMemcpyHtoD_v2_ptds");
        assert_eq!(driver.as_deref(), Some("balar_cuMemcpyHtoD_v2_ptsz"));
    }

    /// CUDA Compatibility, "Minor Version Compatibility": runtimes of the driver's major version run on it, newer ones do not.
    #[test]
    fn a_runtime_of_a_newer_major_version_than_the_driver_is_refused() {
        let implementations: Implementations = ["balar_cudaMalloc", "balar_cudaGetLastError"].into_iter().collect();
        let [eleven, twelve, thirteen, _] = LIBRARIES;
        let driver: DriverVersion = "12.0".parse().unwrap();
        let on = |library, name| implementations.on(driver, &library, name);
        for library in [eleven, twelve] {
            assert_eq!(on(library, "cudaMalloc").as_deref(), Some("balar_cudaMalloc"));
        }
        assert_eq!(on(thirteen, "cudaMalloc").as_deref(), Some(INSUFFICIENT));
        assert_eq!(on(thirteen, "cudaGetLastError").as_deref(), Some("balar_cudaGetLastError"));
        assert_eq!(on(thirteen, "__cudaRegisterFatBinary"), None);
        assert_eq!(on(DRIVER, "cuMemAlloc"), None);
    }

    #[test]
    fn the_driver_library_has_nothing_newer_than_its_version() {
        let has = |version: &str, name| names(&DRIVER, version.parse().unwrap()).contains(&name);
        // CUDA 13.0 has brought it (cuda.h).
        assert!(has("13.0", "cuCtxGetDevice_v2") && !has("12.9", "cuCtxGetDevice_v2"));
        assert!(has("11.0", "cuCtxGetDevice"));
        assert_eq!(names(&LIBRARIES[2], "11.0".parse().unwrap()).len(), 458);
    }

    #[test]
    fn a_file_that_is_no_library_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "no library").unwrap();
        let error = Implementations::read(&path).unwrap_err().to_string();
        assert!(error.contains("text is no shared library"), "{error}");
    }
}
