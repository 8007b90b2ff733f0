//! Calls of the driver's virtual memory management: addresses without memory, memory without addresses, and the two together.

use serde::{Deserialize, Serialize};

/// Addresses, their lengths and physical memory are multiples of this, bytes (`cuMemGetAllocationGranularity` on V100).
pub const GRANULARITY: u64 = 2 << 20;

/// A call of virtual memory management. Addresses and lengths are multiples of [`GRANULARITY`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VirtualMemoryCall {
    /// `cuMemAddressReserve`: a range of addresses without memory; gives [`CallResult::Pointer`](super::CallResult::Pointer).
    Reserve {
        /// Bytes.
        bytes: u64,
        /// Alignment of the first address: a power of two, or 0.
        alignment: u64,
    },
    /// `cuMemAddressFree`: a whole range that `Reserve` gave, with no memory mapped.
    Unreserve {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
    },
    /// `cuMemCreate`: memory of the device without an address; gives [`CallResult::Object`](super::CallResult::Object), its handle.
    Create {
        /// Bytes.
        bytes: u64,
    },
    /// `cuMemRelease`: the memory ends when no reference to it is left and it is not mapped.
    Release {
        /// The memory.
        handle: u64,
    },
    /// `cuMemRetainAllocationHandle`: one more reference to the memory that is mapped at an address; gives
    /// [`CallResult::Object`](super::CallResult::Object).
    Retain {
        /// The address.
        pointer: u64,
    },
    /// `cuMemGetAllocationPropertiesFromHandle`; gives [`CallResult::Owner`](super::CallResult::Owner).
    Owner {
        /// The memory.
        handle: u64,
    },
    /// `cuMemMap`: from now on, the addresses are those of the memory's first bytes. No device may access them yet.
    Map {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
        /// The memory.
        handle: u64,
    },
    /// `cuMemUnmap` of one or several whole mappings that follow each other: waits for all devices.
    Unmap {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
    },
    /// `cuMemSetAccess` to one or several whole mappings that follow each other.
    SetAccess {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
        /// Devices and their new access. Other devices keep theirs.
        devices: Vec<(u32, MemoryAccess)>,
    },
    /// `cuMemGetAccess`; gives [`CallResult::Access`](super::CallResult::Access).
    GetAccess {
        /// An address in a mapping.
        pointer: u64,
        /// The device that is asked about.
        device: u32,
    },
}

impl VirtualMemoryCall {
    /// The name of the CUDA function.
    pub fn name(&self) -> &'static str {
        match self {
            VirtualMemoryCall::Reserve { .. } => "cuMemAddressReserve",
            VirtualMemoryCall::Unreserve { .. } => "cuMemAddressFree",
            VirtualMemoryCall::Create { .. } => "cuMemCreate",
            VirtualMemoryCall::Release { .. } => "cuMemRelease",
            VirtualMemoryCall::Retain { .. } => "cuMemRetainAllocationHandle",
            VirtualMemoryCall::Owner { .. } => "cuMemGetAllocationPropertiesFromHandle",
            VirtualMemoryCall::Map { .. } => "cuMemMap",
            VirtualMemoryCall::Unmap { .. } => "cuMemUnmap",
            VirtualMemoryCall::SetAccess { .. } => "cuMemSetAccess",
            VirtualMemoryCall::GetAccess { .. } => "cuMemGetAccess",
        }
    }
}

/// The access that a device has to mapped memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryAccess {
    /// Nothing.
    #[default]
    None,
    /// Read it. Stores are not refused.
    Read,
    /// Read and write it.
    ReadWrite,
}
