//! The shared libraries that a CUDA program loads in place of NVIDIA's: small files that are written before each run.
//!
//! Programs link against versioned names (`cudaMalloc@libcudart.so.12`), and the same name means different things in different
//! versions. So each version has a library of its own whose functions are one jump each, to the implementation in
//! `libbalar_cudart.so` or, where there is none, to a common entry that says so. A last library makes programs find these,
//! wherever they look for them ([`AUDIT`]).

mod audit;
mod elf;
mod resolution;
mod shared_object;

pub use audit::{NAME as AUDIT, provides};
pub use resolution::Implementations;

use crate::abi::exports::{DEVICE_FILES, DRIVER, LIBRARIES, MANAGEMENT, NVRTC, PROFILING, UNIMPLEMENTED};
use balar_host::DriverVersion;
use std::io;
use std::path::{Path, PathBuf};

/// Why the libraries cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The implementation cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause, by the operating system.
        error: io::Error,
    },
    /// The implementation is no shared library.
    #[error("{path} is no shared library: {reason}")]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// The mistake in it.
        reason: String,
    },
    /// The implementation is some other library.
    #[error("{path} does not export `{UNIMPLEMENTED}`: expected libbalar_cudart.so of this version")]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A library cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause, by the operating system.
        error: io::Error,
    },
    /// The library's tables cannot be laid out.
    #[error("cannot lay out {soname}: {reason}")]
    Layout {
        /// The library.
        soname: &'static str,
        /// The mistake.
        reason: String,
    },
}

/// Writes the runtime libraries of CUDA 11 to 13, the driver library, the management library, the profiling libraries and our functions of
/// NVRTC into `folder`, and returns their paths. Their functions are those of `implementation`, which is libbalar_cudart.so. The driver
/// library and the management library also have names without a version, by which some programs load them. All are libraries of a node with
/// this driver. The last file is the audit library, which answers searches for any of them.
pub fn write(folder: &Path, implementation: &Path, driver: DriverVersion) -> Result<Vec<PathBuf>, Error> {
    // The path is written into the libraries: it must not depend on where the program is started.
    let implementation =
        implementation.canonicalize().map_err(|error| Error::Read { path: implementation.to_owned(), error })?;
    let implementations = Implementations::read(&implementation)?;
    let mut paths: Vec<PathBuf> = LIBRARIES
        .iter()
        .chain(&PROFILING)
        .chain([&MANAGEMENT, &NVRTC, &DEVICE_FILES])
        .map(|library| {
            let content = elf::library(library, driver, &implementations, &implementation)?;
            write_file(folder.join(library.soname), &content)
        })
        .collect::<Result<_, _>>()?;
    for (link, target) in [("libcuda.so", DRIVER.soname), ("libnvidia-ml.so", MANAGEMENT.soname)] {
        let link = folder.join(link);
        match std::os::unix::fs::symlink(target, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::Write { path: link, error });
            }
            _ => paths.push(link),
        }
    }
    // The paths in it hold for processes with other working folders.
    let stubs = folder.canonicalize().map_err(|error| Error::Read { path: folder.to_owned(), error })?;
    paths.push(write_file(folder.join(AUDIT), &audit::library(&stubs)?)?);
    Ok(paths)
}

fn write_file(path: PathBuf, content: &[u8]) -> Result<PathBuf, Error> {
    match std::fs::write(&path, content) {
        Ok(()) => Ok(path),
        Err(error) => Err(Error::Write { path, error }),
    }
}
