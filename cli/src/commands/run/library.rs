//! The implementation of CUDA's functions, which is part of this program's file: `balar-actors` runs programs from wherever it is
//! copied to.

use std::io;
use std::path::{Path, PathBuf};

/// The file's name.
const NAME: &str = "libbalar_cudart.so";

/// Why there is no file of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The build had no shared library.
    #[error("this balar-actors was built without {NAME} and cannot run programs: build it with cargo on x86-64 Linux")]
    NotEmbedded,
    /// The file cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

// The assembler reads the file. `include_bytes!` would too, but already in `cargo check`, which builds no shared library.
core::arch::global_asm!(
    ".pushsection .rodata.balar_cudart, \"a\", @progbits",
    ".globl balar_embedded_cudart_begin, balar_embedded_cudart_end",
    ".hidden balar_embedded_cudart_begin, balar_embedded_cudart_end",
    "balar_embedded_cudart_begin:",
    balar_cudart_path::include_shared_library!(),
    "balar_embedded_cudart_end:",
    ".popsection",
    options(raw)
);

unsafe extern "C" {
    static balar_embedded_cudart_begin: u8;
    static balar_embedded_cudart_end: u8;
}

fn embedded() -> &'static [u8] {
    let begin = &raw const balar_embedded_cudart_begin;
    let end = &raw const balar_embedded_cudart_end;
    // SAFETY: the labels are the ends of what is included above, which nothing writes.
    unsafe { std::slice::from_raw_parts(begin, end.addr() - begin.addr()) }
}

/// Writes the library into `folder`.
///
/// # Errors
///
/// Where the build had none, or the folder takes no file.
pub fn write(folder: &Path) -> Result<PathBuf, Error> {
    let content = embedded();
    if content.is_empty() {
        return Err(Error::NotEmbedded);
    }
    let path = folder.join(NAME);
    match std::fs::write(&path, content) {
        Ok(()) => Ok(path),
        Err(error) => Err(Error::Write { path, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_cudart::stub_library::Implementations;

    #[test]
    fn the_library_of_this_build_is_embedded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(folder.path()).expect("written");
        Implementations::read(&path).expect("it exports what the stubs need");
    }

    #[test]
    fn a_folder_that_takes_no_file_is_named() {
        let error = write(Path::new("/nonexistent")).expect_err("no folder").to_string();
        assert!(error.starts_with("cannot write /nonexistent/libbalar_cudart.so: "), "{error}");
    }
}
