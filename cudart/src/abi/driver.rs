//! Structures of the driver's functions, laid out as `cuda.h` has them (CUDA 11 to 13 agree on these).

use super::launch::LaunchAttribute;
use crate::abi::arguments::In;
use bytemuck::Zeroable;
use std::ffi::{c_int, c_void};

/// An address of device memory (`CUdeviceptr`).
pub type DevicePointer = u64;

/// `CUmemorytype`: the memory is the host's.
pub const MEMORY_HOST: u32 = 1;
/// `CUmemorytype`: the memory is a device's.
pub const MEMORY_DEVICE: u32 = 2;
/// `CUmemorytype`: the memory is an array.
pub const MEMORY_ARRAY: u32 = 3;
/// `CUmemorytype`: the address says whose it is.
pub const MEMORY_UNIFIED: u32 = 4;

/// One end of a `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyEnd2D {
    /// First byte of each row.
    pub x_bytes: usize,
    /// First row.
    pub y: usize,
    /// Which of the next three it is.
    pub memory_type: u32,
    /// Address in the host's memory.
    pub host: *mut c_void,
    /// Address of a device.
    pub device: DevicePointer,
    /// Handle of an array.
    pub array: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    /// The source.
    pub source: CopyEnd2D,
    /// The destination.
    pub destination: CopyEnd2D,
    /// Bytes of a row.
    pub width_bytes: usize,
    /// Rows.
    pub height: usize,
}

/// One end of a `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CopyEnd3D {
    /// First byte of each row.
    pub x_bytes: usize,
    /// First row.
    pub y: usize,
    /// First slice.
    pub z: usize,
    /// Level of detail; 0.
    pub level: usize,
    /// Which of the next three it is.
    pub memory_type: u32,
    /// Address in the host's memory.
    pub host: *mut c_void,
    /// Address of a device.
    pub device: DevicePointer,
    /// Handle of an array.
    pub array: *mut c_void,
    /// The context of the memory (`CUDA_MEMCPY3D_PEER`), or reserved.
    pub context: *mut c_void,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// Rows from a slice to the next.
    pub height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    /// The source.
    pub source: CopyEnd3D,
    /// The destination.
    pub destination: CopyEnd3D,
    /// Bytes of a row.
    pub width_bytes: usize,
    /// Rows.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NodeOfCopy {
    flags: [c_int; 2],
    /// The context; null for the current one.
    pub context: *mut c_void,
    /// The copy.
    pub copy: Copy3D,
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayDescriptor {
    /// Elements of a row.
    pub width: usize,
    /// Rows; 0 for an array of one dimension.
    pub height: usize,
    /// `CUarray_format`.
    pub format: u32,
    /// Values of an element: 1, 2 or 4.
    pub channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayDescriptor3D {
    /// Elements of a row.
    pub width: usize,
    /// Rows; 0 for an array of one dimension.
    pub height: usize,
    /// Slices or layers; 0 for an array of two dimensions.
    pub depth: usize,
    /// `CUarray_format`.
    pub format: u32,
    /// Values of an element: 1, 2 or 4.
    pub channels: u32,
    /// `CUDA_ARRAY3D_*`.
    pub flags: u32,
}

/// Extents and attributes of a launch (`CUlaunchConfig`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// The stream.
    pub stream: *mut c_void,
    /// Its attributes.
    pub attributes: In<LaunchAttribute>,
    /// The number of attributes.
    pub attribute_count: u32,
}

/// `CUDA_LAUNCH_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchParameters {
    /// The kernel.
    pub function: *mut c_void,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// The stream.
    pub stream: *mut c_void,
    /// Addresses of the arguments.
    pub arguments: *mut *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS` of CUDA 11; that of CUDA 12 adds the two fields at its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNode {
    /// The kernel.
    pub function: *mut c_void,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// Addresses of the arguments.
    pub arguments: *mut *mut c_void,
    /// Arguments in one buffer.
    pub extra: *mut *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS` of CUDA 12.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNode2 {
    /// The fields of CUDA 11.
    pub base: KernelNode,
    /// The kernel as one of a library, where `base.function` is null.
    pub kernel: *mut c_void,
    /// The context; null for the current one.
    pub context: *mut c_void,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemsetNode {
    /// First address.
    pub destination: DevicePointer,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// The value.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub element_bytes: u32,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// The properties of devices before CUDA 5 (`CUdevprop`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct OldProperties {
    /// Threads of a block at most.
    pub block_threads: c_int,
    /// Extents of a block at most.
    pub block_extents: [c_int; 3],
    /// Extents of a grid at most.
    pub grid_extents: [c_int; 3],
    /// Shared memory of a block, bytes.
    pub shared_bytes: c_int,
    /// Constant memory, bytes.
    pub constant_bytes: c_int,
    /// Threads of a warp.
    pub warp_threads: c_int,
    /// Largest pitch of copies, bytes.
    pub pitch_bytes: c_int,
    /// Registers of a block.
    pub registers: c_int,
    /// Clock, kHz.
    pub clock_khz: c_int,
    /// Alignment of textures, bytes.
    pub texture_alignment: c_int,
}

/// A resource that can be divided among work (`CUdevResource`, `cudaDevResource`): SMs alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceResource {
    /// Its kind: [`DeviceResource::SMS`].
    pub kind: u32,
    reserved: [u32; 23],
    /// SMs.
    pub sm_count: u32,
    /// SMs of a part at least.
    pub smallest_part: u32,
    /// SMs of a part are a multiple of this.
    pub part_alignment: u32,
    further: [u32; 7],
    next: u64,
}

impl DeviceResource {
    /// The kind of SMs (`CU_DEV_RESOURCE_TYPE_SM`).
    pub const SMS: u32 = 1;

    /// All SMs of a device. The CUDA driver API, 6.36 (green contexts), says at `cuDevSmResourceSplitByCount` how they can be divided: down
    /// to 1 SM up to compute capability 6, 2 of 7, 4 (in pairs) of 8, 8 from 9 on.
    pub fn sms(count: u32, major: u32) -> DeviceResource {
        let (smallest_part, part_alignment) = match major {
            ..=6 => (1, 1),
            7 => (2, 2),
            8 => (4, 2),
            _ => (8, 8),
        };
        DeviceResource { kind: DeviceResource::SMS, sm_count: count, smallest_part, part_alignment, ..Self::default() }
    }
}

/// `CUctxCreateParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ContextParameters {
    /// `CUexecAffinityParam`s.
    pub affinity: *const c_void,
    /// Their number.
    pub affinities: c_int,
    /// For use with a graphics library.
    pub graphics: *const c_void,
}

/// `CUDA_RESOURCE_DESC`: the memory that a texture or surface object reads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct ResourceDescriptor {
    /// `CUresourcetype`: 0 array, 1 mipmapped array, 2 linear memory, 3 rows with a pitch.
    pub kind: u32,
    /// The memory.
    pub resource: ResourceUnion,
    /// 0.
    pub flags: u32,
}

/// The union of `CUDA_RESOURCE_DESC`: every form begins with a handle or an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct ResourceUnion {
    /// An array's handle, or an address.
    pub first: u64,
    /// `CUarray_format` of linear memory.
    pub format: u32,
    /// Values of an element.
    pub channels: u32,
    /// Bytes of linear memory; elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes from a row to the next.
    pub pitch: usize,
    reserved: [u64; 11],
}

/// `CUDA_TEXTURE_DESC`: how a texture object reads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TextureDescriptor {
    /// `CUaddress_mode` in each dimension.
    pub address_modes: [u32; 3],
    /// `CUfilter_mode`: 0 nearest, 1 linear.
    pub filter: u32,
    /// `CU_TRSF_*`.
    pub flags: u32,
    /// For mipmapped arrays.
    pub anisotropy: u32,
    /// For mipmapped arrays.
    pub mipmap_filter: u32,
    /// For mipmapped arrays.
    pub mipmap_bias: f32,
    /// For mipmapped arrays.
    pub mipmap_minimum: f32,
    /// For mipmapped arrays.
    pub mipmap_maximum: f32,
    /// The value outside of the texture.
    pub border: [f32; 4],
    reserved: [c_int; 12],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that a C compiler gives the structures of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        let sizes = [
            size_of::<Copy2D>(),
            size_of::<Copy3D>(),
            size_of::<ArrayDescriptor>(),
            size_of::<ArrayDescriptor3D>(),
            size_of::<LaunchConfig>(),
            size_of::<LaunchParameters>(),
            size_of::<KernelNode>(),
            size_of::<KernelNode2>(),
            size_of::<MemsetNode>(),
            size_of::<OldProperties>(),
            size_of::<ResourceDescriptor>(),
            size_of::<TextureDescriptor>(),
            size_of::<NodeOfCopy>(),
            size_of::<DeviceResource>(),
        ];
        assert_eq!(sizes, [128, 200, 24, 40, 56, 56, 56, 72, 40, 56, 144, 104, 216, 144]);
        assert_eq!(std::mem::offset_of!(DeviceResource, sm_count), 96);
    }
}
