//! The ends and the shape of copies of rows and slices.

use crate::bytes::Bytes;
use serde::{Deserialize, Serialize};

/// How much a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyShape {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

impl CopyShape {
    /// One row.
    pub fn linear(bytes: u64) -> CopyShape {
        CopyShape { width: bytes, height: 1, depth: 1 }
    }

    /// Is it one row?
    pub fn is_row(&self) -> bool {
        self.height == 1 && self.depth == 1
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }
}

/// Where a copy reads or writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CopyEnd {
    /// Pageable host memory: rows without gaps, in the call (as a source) or in its result (as a destination, where the bytes are
    /// absent).
    Bytes(Bytes),
    /// Memory of the node: device, pinned or managed.
    Memory {
        /// Address of the first byte.
        address: u64,
        /// Bytes from a row to the next.
        row_pitch: u64,
        /// Bytes from a slice to the next.
        slice_pitch: u64,
    },
    /// An array.
    Array {
        /// Its number.
        array: u64,
        /// The first byte of a row, row, slice or layer.
        offset: [u64; 3],
    },
}

impl CopyEnd {
    /// Bytes without gaps, from an address on.
    pub fn linear(address: u64) -> CopyEnd {
        CopyEnd::Memory { address, row_pitch: 0, slice_pitch: 0 }
    }
}
