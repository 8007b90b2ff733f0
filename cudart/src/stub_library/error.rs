//! Why the libraries cannot be written.

use crate::abi::exports::UNIMPLEMENTED;
use std::io;
use std::path::PathBuf;

/// Why the libraries cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The implementation cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The implementation is no shared library.
    #[error("{path} is no shared library: {reason}")]
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
        /// What the system says.
        error: io::Error,
    },
    /// The library's tables cannot be laid out.
    #[error("cannot lay out {soname}: {reason}")]
    Layout {
        /// The library.
        soname: &'static str,
        /// What is wrong.
        reason: String,
    },
}
