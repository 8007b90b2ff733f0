//! CUDA arrays and how their texels are stored.

use bytemuck::{Pod, Zeroable};

/// `cudaChannelFormatDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ChannelFormatDesc {
    /// Bits of x, y, z and w.
    pub bits: [i32; 4],
    /// `cudaChannelFormatKind`.
    pub kind: i32,
}

/// Values of [`ChannelFormatDesc::kind`].
pub mod channel_kind {
    /// `cudaChannelFormatKindSigned`.
    pub const SIGNED: i32 = 0;
    /// `cudaChannelFormatKindUnsigned`.
    pub const UNSIGNED: i32 = 1;
    /// `cudaChannelFormatKindFloat`.
    pub const FLOAT: i32 = 2;
    /// `cudaChannelFormatKindNone`.
    pub const NONE: i32 = 3;
    /// `cudaChannelFormatKindUnsignedNormalized8X1`, the first of nine: 8 and 16 bits in 1, 2 and 4 channels.
    pub const UNSIGNED_NORMALIZED_8X1: i32 = 5;
    /// `cudaChannelFormatKindSignedNormalized16X4`, the last of the normalised formats.
    pub const SIGNED_NORMALIZED_16X4: i32 = 16;
}

/// Flags of `cudaMallocArray` and `cudaMalloc3DArray`.
pub mod array_flags {
    /// `cudaArrayLayered`.
    pub const LAYERED: u32 = 0x01;
    /// `cudaArraySurfaceLoadStore`.
    pub const SURFACE_LOAD_STORE: u32 = 0x02;
    /// `cudaArrayCubemap`.
    pub const CUBEMAP: u32 = 0x04;
    /// `cudaArrayTextureGather`.
    pub const TEXTURE_GATHER: u32 = 0x08;
    /// `cudaArrayColorAttachment`.
    pub const COLOR_ATTACHMENT: u32 = 0x20;
    /// `cudaArraySparse`.
    pub const SPARSE: u32 = 0x40;
    /// `cudaArrayDeferredMapping`.
    pub const DEFERRED_MAPPING: u32 = 0x80;
}

/// `cudaArrayMemoryRequirements`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ArrayMemoryRequirements {
    /// Bytes.
    pub size: u64,
    /// Bytes.
    pub alignment: u64,
    /// Zero.
    pub reserved: [u32; 4],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;

    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<ChannelFormatDesc>(20, 4);
        check::<ArrayMemoryRequirements>(32, 8);
    }
}
