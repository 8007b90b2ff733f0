//! Mistakes in cubins, with their places.

use std::fmt;

/// Where something of a cubin lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// So many bytes from the beginning of the file.
    File(u64),
    /// In a section.
    Section {
        /// The section's name, or its number where the name itself cannot be read.
        name: String,
        /// Bytes from the beginning of the section.
        offset: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(offset) => write!(formatter, "offset {offset:#x}"),
            Self::Section { name, offset: 0 } => write!(formatter, "section {name}"),
            Self::Section { name, offset } => write!(formatter, "section {name}, offset {offset:#x}"),
        }
    }
}

/// A mistake in a cubin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cubin, {place}: {what}")]
pub struct CubinError {
    /// Where.
    pub place: Place,
    /// The contents, and the expected ones.
    pub what: String,
}

impl CubinError {
    /// An error of the file at an offset.
    pub(super) fn file(offset: u64, what: impl Into<String>) -> Self {
        Self { place: Place::File(offset), what: what.into() }
    }

    /// An error of a section at an offset in it.
    pub(super) fn section(name: &str, offset: u64, what: impl Into<String>) -> Self {
        Self { place: Place::Section { name: name.to_owned(), offset }, what: what.into() }
    }
}
