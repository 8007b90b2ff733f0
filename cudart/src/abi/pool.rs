//! Memory pools.

use bytemuck::{Pod, Zeroable};

/// `cudaMemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemLocation {
    /// `cudaMemLocationType`: see [`location_type`].
    pub kind: u32,
    /// Device ordinal or host NUMA node.
    pub id: i32,
}

/// Values of [`MemLocation::kind`].
pub mod location_type {
    /// `cudaMemLocationTypeDevice`.
    pub const DEVICE: u32 = 1;
    /// `cudaMemLocationTypeHost`.
    pub const HOST: u32 = 2;
    /// `cudaMemLocationTypeHostNuma`.
    pub const HOST_NUMA: u32 = 3;
    /// `cudaMemLocationTypeHostNumaCurrent`.
    pub const HOST_NUMA_CURRENT: u32 = 4;
}

/// `cudaMemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemAccessDesc {
    /// Who is given access.
    pub location: MemLocation,
    /// `cudaMemAccessFlags`: 0 none, 1 read, 3 read and write.
    pub flags: u32,
}

/// `cudaMemAccessFlagsProtReadWrite`.
pub const ACCESS_READ_WRITE: u32 = 3;

/// `cudaMemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemPoolProps {
    /// `cudaMemAllocationType`: 1 pinned, 2 managed.
    pub allocation_type: u32,
    /// `cudaMemAllocationHandleType`: the handles that it can be exported as.
    pub handle_types: u32,
    /// Where its memory lies.
    pub location: MemLocation,
    /// Used on Windows alone.
    pub security_attributes: u64,
    /// Most bytes it may have, 0 for no limit (CUDA 12.2 and later).
    pub maximum_bytes: u64,
    reserved: [u64; 7],
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemAllocationProps {
    /// `CUmemAllocationType`: 1 pinned.
    pub allocation_type: u32,
    /// `CUmemAllocationHandleType`: the handles that it can be exported as.
    pub handle_types: u32,
    /// Where its memory lies.
    pub location: MemLocation,
    /// Used on Windows alone.
    pub security_attributes: u64,
    /// Whether it may be compressed: a wish.
    pub compression: u8,
    /// Whether other hardware accesses it directly.
    pub rdma_capable: u8,
    /// `CUmemCreateUsage`: 1 for sparse arrays.
    pub usage: u16,
    reserved: [u8; 4],
}

impl MemAllocationProps {
    /// Memory at a location, without further properties.
    pub fn pinned(location: MemLocation) -> MemAllocationProps {
        MemAllocationProps { allocation_type: 1, location, ..MemAllocationProps::default() }
    }
}

/// Values of `cudaMemPoolAttr`.
pub mod pool_attribute {
    /// `cudaMemPoolReuseFollowEventDependencies`, an int.
    pub const REUSE_FOLLOW_EVENT_DEPENDENCIES: u32 = 1;
    /// `cudaMemPoolReuseAllowOpportunistic`, an int.
    pub const REUSE_ALLOW_OPPORTUNISTIC: u32 = 2;
    /// `cudaMemPoolReuseAllowInternalDependencies`, an int.
    pub const REUSE_ALLOW_INTERNAL_DEPENDENCIES: u32 = 3;
    /// `cudaMemPoolAttrReleaseThreshold`, 64 bits as all that follow.
    pub const RELEASE_THRESHOLD: u32 = 4;
    /// `cudaMemPoolAttrReservedMemCurrent`.
    pub const RESERVED_CURRENT: u32 = 5;
    /// `cudaMemPoolAttrReservedMemHigh`.
    pub const RESERVED_HIGH: u32 = 6;
    /// `cudaMemPoolAttrUsedMemCurrent`.
    pub const USED_CURRENT: u32 = 7;
    /// `cudaMemPoolAttrUsedMemHigh`.
    pub const USED_HIGH: u32 = 8;
    /// `cudaMemPoolAttrAllocationType`, an int as all that follow but the size (CUDA 13).
    pub const ALLOCATION_TYPE: u32 = 9;
    /// `cudaMemPoolAttrExportHandleTypes`.
    pub const EXPORT_HANDLE_TYPES: u32 = 10;
    /// `cudaMemPoolAttrLocationId`.
    pub const LOCATION_ID: u32 = 11;
    /// `cudaMemPoolAttrLocationType`.
    pub const LOCATION_TYPE: u32 = 12;
    /// `cudaMemPoolAttrMaxPoolSize`, 64 bits.
    pub const MAXIMUM_BYTES: u32 = 13;
    /// `cudaMemPoolAttrHwDecompressEnabled`.
    pub const HARDWARE_DECOMPRESSION: u32 = 14;
}

/// Values of `cudaGraphMemAttributeType`.
pub mod graph_memory_attribute {
    /// `cudaGraphMemAttrUsedMemCurrent`.
    pub const USED_CURRENT: u32 = 0;
    /// `cudaGraphMemAttrUsedMemHigh`.
    pub const USED_HIGH: u32 = 1;
    /// `cudaGraphMemAttrReservedMemCurrent`.
    pub const RESERVED_CURRENT: u32 = 2;
    /// `cudaGraphMemAttrReservedMemHigh`.
    pub const RESERVED_HIGH: u32 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<MemLocation>(8, 4);
        check::<MemAccessDesc>(12, 4);
        check::<MemPoolProps>(88, 8);
        check::<MemAllocationProps>(32, 8);
        assert_eq!(offset_of!(MemAllocationProps, compression), 24);
        assert_eq!(offset_of!(MemAllocationProps, usage), 26);
        assert_eq!(offset_of!(MemPoolProps, location), 8);
        assert_eq!(offset_of!(MemPoolProps, security_attributes), 16);
        assert_eq!(offset_of!(MemPoolProps, maximum_bytes), 24);
    }
}
