//! The shared libraries that a CUDA program loads in place of NVIDIA's: small files that are written before each run.
//!
//! Programs link against versioned names (`cudaMalloc@libcudart.so.12`), and the same name means different things in different
//! versions. So each version has a library of its own whose functions are one jump each, to the implementation in
//! `libbalar_cudart.so` or, where there is none, to a common entry that says so. A last library makes programs find these,
//! wherever they look for them ([`AUDIT`]).

mod audit;
mod elf;
mod error;
mod resolution;
mod shared_object;

pub use audit::{NAME as AUDIT, provides};
pub use error::Error;
pub use resolution::Implementations;

use crate::abi::exports::{DEVICE_FILES, DRIVER, LIBRARIES, MANAGEMENT, NVRTC, PROFILING};
use balar_host::DriverVersion;
use std::io;
use std::path::{Path, PathBuf};

/// Writes the runtime libraries of CUDA 11 to 13, the driver library, the management library, the profiling
/// libraries and our functions of NVRTC into `folder`, and returns where they
/// are. Their functions are those of `implementation`, which is libbalar_cudart.so. The driver library and the management library have
/// their names without a version, too, by which some programs load them. They are those of a node with such a driver. The last file is the audit library, which answers searches
/// for any of them.
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
