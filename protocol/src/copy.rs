//! The copy protocol: bulk transfers by the GPU's copy engine, in pages over the data link.

use crate::memory::{MemoryRequest, MemoryResponse};
use crate::ports::Side;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A transfer's number, unique within a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CopyId(pub u32);

/// Bytes in the memory of the node: rows of a slice, slices of the whole. Packed, they follow each other without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
    /// Bytes from a row to the next.
    pub row_pitch: u64,
    /// Bytes from a slice to the next.
    pub slice_pitch: u64,
}

impl Rows {
    /// One row.
    pub fn linear(address: u64, bytes: u64) -> Rows {
        Rows { address, width: bytes, height: 1, depth: 1, row_pitch: bytes, slice_pitch: bytes }
    }

    /// Bytes in all rows.
    pub fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }

    /// Bytes from the first to the last, those between rows included; `None` where they are more than an address can count.
    pub fn span(&self) -> Option<u64> {
        if self.bytes() == 0 {
            return Some(0);
        }
        let slices = self.slice_pitch.checked_mul(self.depth - 1)?;
        let rows = self.row_pitch.checked_mul(self.height - 1)?;
        slices.checked_add(rows)?.checked_add(self.width)
    }

    /// The same bytes in the same order, with rows and slices that follow each other without gaps made one.
    #[must_use]
    pub fn joined(self) -> Rows {
        let Rows { address, mut width, mut height, mut depth, mut row_pitch, mut slice_pitch } = self;
        if height == 1 {
            row_pitch = width;
        }
        if depth == 1 {
            slice_pitch = row_pitch.saturating_mul(height);
        }
        if row_pitch == width {
            width = width.saturating_mul(height);
            (height, row_pitch) = (depth, slice_pitch);
            (depth, slice_pitch) = (1, row_pitch.saturating_mul(height));
            if row_pitch == width {
                width = width.saturating_mul(height);
                (height, row_pitch, slice_pitch) = (1, width, width);
            }
        }
        Rows { address, width, height, depth, row_pitch, slice_pitch }
    }

    /// Where `bytes` bytes from `offset` of the packed ones on are: runs of consecutive addresses, as (first address, bytes).
    pub fn runs(&self, offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let (rows, end) = (*self, offset.saturating_add(bytes).min(self.bytes()));
        let mut next = offset;
        std::iter::from_fn(move || {
            let run = rows.run_at(next, end)?;
            next += run.1;
            Some(run)
        })
    }

    /// The run that begins at `offset` of the packed bytes, no further than `end`.
    pub fn run_at(&self, offset: u64, end: u64) -> Option<(u64, u64)> {
        if offset >= end || self.width == 0 || self.height == 0 {
            return None;
        }
        let (row, in_row) = (offset / self.width, offset % self.width);
        let (slice, row) = (row / self.height, row % self.height);
        let address = self.address + slice * self.slice_pitch + row * self.row_pitch + in_row;
        Some((address, (self.width - in_row).min(end - offset)))
    }
}

/// What a transfer does. Addresses are those of the node: memory of any GPU, or pinned and managed memory. Where rows have two
/// ends, both have as many bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CopyOperation {
    /// Pageable host memory to memory of the node. The bytes are those of the host buffer when the call was made.
    HostToDevice {
        /// What is written.
        destination: Rows,
        /// The bytes, packed.
        data: Arc<[u8]>,
    },
    /// Memory of the node to pageable host memory.
    DeviceToHost {
        /// What is read.
        source: Rows,
    },
    /// Within the memory of the node. Bytes are read and written when the transfer gets to them.
    DeviceToDevice {
        /// What is written.
        destination: Rows,
        /// What is read.
        source: Rows,
    },
    /// Sets memory to a value.
    Fill {
        /// What is written.
        destination: Rows,
        /// The value of every element, in its low bytes.
        value: u32,
        /// Bytes of an element: 1, 2 or 4.
        element_bytes: u8,
    },
}

impl CopyOperation {
    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        match self {
            CopyOperation::HostToDevice { data, .. } => data.len() as u64,
            CopyOperation::DeviceToHost { source } => source.bytes(),
            CopyOperation::DeviceToDevice { destination, .. } | CopyOperation::Fill { destination, .. } => {
                destination.bytes()
            }
        }
    }

    /// What is written of the memory of the node.
    pub fn destination(&self) -> Option<&Rows> {
        match self {
            CopyOperation::HostToDevice { destination, .. }
            | CopyOperation::DeviceToDevice { destination, .. }
            | CopyOperation::Fill { destination, .. } => Some(destination),
            CopyOperation::DeviceToHost { .. } => None,
        }
    }

    /// What is read of the memory of the node.
    pub fn source(&self) -> Option<&Rows> {
        match self {
            CopyOperation::DeviceToHost { source } | CopyOperation::DeviceToDevice { source, .. } => Some(source),
            CopyOperation::HostToDevice { .. } | CopyOperation::Fill { .. } => None,
        }
    }
}

/// Messages of the copy protocol, host side to copy engine and back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CopyMessage {
    /// Host to copy engine: start this transfer after those before it.
    Command(Box<(CopyId, CopyOperation)>),
    /// One page of a transfer crosses the data link; it carries its size for the link's occupancy.
    Page {
        /// The transfer.
        copy: CopyId,
        /// Offset of the page in the transfer, bytes.
        offset: u64,
        /// Bytes of this page.
        bytes: u32,
        /// Is it the last one?
        last: bool,
    },
    /// Copy engine to host: asks for a page of a transfer whose bytes are in host memory, or another GPU's.
    PageRequest {
        /// The transfer.
        copy: CopyId,
        /// Offset of the page in the transfer, bytes.
        offset: u64,
        /// Bytes of this page.
        bytes: u32,
    },
    /// Copy engine to host: a kernel's own access to host memory, which crosses the link alone.
    Access(MemoryRequest),
    /// Host to copy engine: the access is done.
    Accessed(MemoryResponse),
    /// The transfer is done; device-to-host transfers bring their bytes.
    Completed {
        /// The transfer.
        copy: CopyId,
        /// Of device-to-host: what was read.
        data: Option<Box<Arc<[u8]>>>,
        /// Why nothing was transferred: the range is not inside an allocation.
        error: Option<Box<str>>,
    },
}

impl CopyMessage {
    /// Which side sends it: the host is the client, the copy engine the server. `None` of pages, which cross in both directions.
    pub const fn sender(&self) -> Option<Side> {
        match self {
            CopyMessage::Command(_) | CopyMessage::Accessed(_) => Some(Side::Client),
            CopyMessage::PageRequest { .. } | CopyMessage::Access(_) | CopyMessage::Completed { .. } => {
                Some(Side::Server)
            }
            CopyMessage::Page { .. } => None,
        }
    }

    /// Bytes the message occupies on a link beyond its header.
    pub fn data_bytes(&self) -> u64 {
        match self {
            CopyMessage::Page { bytes, .. } => u64::from(*bytes),
            CopyMessage::Access(request) => u64::from(request.data_bytes),
            CopyMessage::Accessed(response) => response.data_bytes(),
            CopyMessage::Command(_) | CopyMessage::PageRequest { .. } | CopyMessage::Completed { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_gaps_are_one() {
        let rows = |width, height, depth, row_pitch, slice_pitch| {
            let joined = Rows { address: 0, width, height, depth, row_pitch, slice_pitch }.joined();
            (joined.width, joined.height, joined.depth)
        };
        assert_eq!(rows(64, 4, 3, 64, 256), (768, 1, 1));
        assert_eq!(rows(64, 4, 3, 64, 512), (256, 3, 1));
        assert_eq!(rows(64, 4, 3, 80, 320), (64, 4, 3));
        assert_eq!(rows(64, 1, 3, 7, 64), (192, 1, 1));
        assert_eq!(rows(64, 1, 3, 7, 100), (64, 3, 1));
        assert_eq!(rows(64, 4, 1, 64, 9), (256, 1, 1));
        assert_eq!(rows(64, 4, 1, 65, 9), (64, 4, 1));
        assert_eq!(Rows::linear(5, 100).joined(), Rows::linear(5, 100));
    }

    #[test]
    fn runs_cover_the_packed_bytes_in_order() {
        let rows = Rows { address: 1000, width: 10, height: 2, depth: 2, row_pitch: 16, slice_pitch: 100 };
        let runs = |offset, bytes| rows.runs(offset, bytes).collect::<Vec<_>>();
        assert_eq!(runs(0, 40), [(1000, 10), (1016, 10), (1100, 10), (1116, 10)]);
        assert_eq!(runs(5, 20), [(1005, 5), (1016, 10), (1100, 5)]);
        assert_eq!(runs(39, 100), [(1125, 1)]);
        assert_eq!((runs(40, 1), rows.bytes(), rows.span()), (vec![], 40, Some(126)));
        assert_eq!(Rows::linear(7, 0).runs(0, 5).count(), 0);
        let huge = Rows { depth: 3, slice_pitch: u64::MAX / 2, ..rows };
        assert_eq!((huge.span(), Rows { height: 0, ..rows }.span()), (None, Some(0)));
    }
}
