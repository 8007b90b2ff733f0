//! The copy protocol: bulk transfers by the GPU's copy engine, in pages over the data link.

use std::sync::Arc;

/// A transfer's number, unique within a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(pub u32);

/// What a transfer does. Addresses are device addresses.
#[derive(Clone, Debug)]
pub enum CopyOperation {
    /// Host memory to device memory. The bytes are those of the host buffer when the call was made.
    HostToDevice {
        /// First device address written.
        destination: u64,
        /// What is written.
        data: Arc<[u8]>,
    },
    /// Device memory to host memory.
    DeviceToHost {
        /// First device address read.
        source: u64,
        /// Bytes read.
        bytes: u64,
    },
    /// Within device memory.
    DeviceToDevice {
        /// First device address written.
        destination: u64,
        /// First device address read.
        source: u64,
        /// Bytes copied.
        bytes: u64,
    },
    /// Sets device memory to one byte value.
    Fill {
        /// First device address written.
        destination: u64,
        /// The byte.
        value: u8,
        /// Bytes written.
        bytes: u64,
    },
}

impl CopyOperation {
    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        match self {
            CopyOperation::HostToDevice { data, .. } => data.len() as u64,
            CopyOperation::DeviceToHost { bytes, .. }
            | CopyOperation::DeviceToDevice { bytes, .. }
            | CopyOperation::Fill { bytes, .. } => *bytes,
        }
    }
}

/// Messages of the copy protocol, host side to copy engine and back.
#[derive(Debug)]
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
    /// Copy engine to host: asks for a page of a host-to-device transfer.
    PageRequest {
        /// The transfer.
        copy: CopyId,
        /// Offset of the page in the transfer, bytes.
        offset: u64,
        /// Bytes of this page.
        bytes: u32,
    },
    /// The transfer is done; device-to-host transfers bring their bytes.
    Completed {
        /// The transfer.
        copy: CopyId,
        /// Of device-to-host: what was read.
        data: Option<Box<Vec<u8>>>,
        /// Why nothing was transferred: the range is not inside an allocation.
        error: Option<Box<str>>,
    },
}

impl CopyMessage {
    /// Bytes the message occupies on a link beyond its header.
    pub fn data_bytes(&self) -> u64 {
        match self {
            CopyMessage::Page { bytes, .. } => u64::from(*bytes),
            CopyMessage::Command(_) | CopyMessage::PageRequest { .. } | CopyMessage::Completed { .. } => 0,
        }
    }
}
