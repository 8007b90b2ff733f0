//! Device attributes.

use crate::abi::arguments::Out;
use crate::abi::device_attribute::*;
use crate::cuda_api;
use crate::session::{devices, process};
use balar_host::{CudaError, DeviceDescription};
use std::ffi::c_int;

/// Shared memory that a block has without asking for more, bytes (CUDA C++ Programming Guide, table of compute capabilities).
pub const SHARED_BYTES_OF_BLOCK: u32 = 48 << 10;
/// Registers that a block can have (there).
const BLOCK_REGISTERS: u32 = 65_536;

/// Shared memory of a block that is the system's own, bytes: from compute capability 8.0 on (CUDA C++ Programming Guide).
pub fn reserved_shared_bytes(device: &DeviceDescription) -> u32 {
    if device.compute_capability.0 >= 8 { 1024 } else { 0 }
}

/// The value of an attribute; `None` where there is no such attribute. `index` is the node's number of the device. Limits that the description does not have are those of
/// the compute capability, in the tables of the CUDA C++ Programming Guide.
pub fn value(device: &DeviceDescription, index: u32, attribute: i32) -> Option<i32> {
    let int = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
    let (major, minor) = device.compute_capability;
    let value = match attribute {
        MAX_THREADS_PER_BLOCK | MAX_BLOCK_DIM_X | MAX_BLOCK_DIM_Y => 1024,
        MAX_BLOCK_DIM_Z => 64,
        MAX_GRID_DIM_X => i32::MAX,
        MAX_GRID_DIM_Y | MAX_GRID_DIM_Z => 65_535,
        MAX_SHARED_MEMORY_PER_BLOCK => int(u64::from(SHARED_BYTES_OF_BLOCK.min(device.cta_shared_bytes_optin))),
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => int(device.cta_shared_bytes_optin.into()),
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => int(device.sm_shared_bytes.into()),
        RESERVED_SHARED_MEMORY_PER_BLOCK => int(reserved_shared_bytes(device).into()),
        TOTAL_CONSTANT_MEMORY => 65_536,
        WARP_SIZE => 32,
        MAX_PITCH => i32::MAX,
        MAX_REGISTERS_PER_BLOCK => int(device.sm_registers.min(BLOCK_REGISTERS).into()),
        MAX_REGISTERS_PER_MULTIPROCESSOR => int(device.sm_registers.into()),
        MAX_THREADS_PER_MULTI_PROCESSOR => int(device.sm_threads.into()),
        MAX_BLOCKS_PER_MULTIPROCESSOR => int(device.sm_ctas.into()),
        CLOCK_RATE => int(device.clock_khz.into()),
        MEMORY_CLOCK_RATE => int(device.memory_clock_khz.into()),
        GLOBAL_MEMORY_BUS_WIDTH => int(device.memory_bus_bits.into()),
        L2_CACHE_SIZE => int(device.l2_bytes),
        MULTI_PROCESSOR_COUNT => int(device.sm_count.into()),
        COMPUTE_CAPABILITY_MAJOR => int(major.into()),
        COMPUTE_CAPABILITY_MINOR => int(minor.into()),
        SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => match (major, minor) {
            (6 | 8, 0) | (7, 0..=2) | (9.., _) => 2,
            _ => 32,
        },
        GPU_OVERLAP
        | CAN_MAP_HOST_MEMORY
        | CONCURRENT_KERNELS
        | UNIFIED_ADDRESSING
        | STREAM_PRIORITIES_SUPPORTED
        | GLOBAL_L1_CACHE_SUPPORTED
        | LOCAL_L1_CACHE_SUPPORTED
        | MANAGED_MEMORY
        | CONCURRENT_MANAGED_ACCESS
        | COMPUTE_PREEMPTION_SUPPORTED
        | COOPERATIVE_LAUNCH
        | HOST_REGISTER_SUPPORTED
        | MEMORY_POOLS_SUPPORTED => 1,
        // One copy engine for each direction.
        ASYNC_ENGINE_COUNT => 2,
        MEM_SYNC_DOMAIN_COUNT | LOCALITY_DOMAIN_COUNT => 1,
        LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT => int(device.sm_count.into()),
        NUMA_ID | HOST_NUMA_ID => -1,
        TENSOR_MAP_LARGE_TENSOR_MIN_SIZE => i32::MAX,
        PCI_BUS_ID => int(u64::from(index) + 1),
        MULTI_GPU_BOARD_GROUP_ID => int(index.into()),
        TEXTURE_ALIGNMENT | SURFACE_ALIGNMENT => 512,
        TEXTURE_PITCH_ALIGNMENT => 32,
        other => return image_limit(other).or_else(|| ALL.contains(&other).then_some(0)),
    };
    Some(value)
}

/// Limits of textures and surfaces: those of compute capability 7.0.
fn image_limit(attribute: i32) -> Option<i32> {
    let limit = match attribute {
        MAX_TEXTURE_1D_WIDTH | MAX_TEXTURE_2D_WIDTH | MAX_TEXTURE_2D_LINEAR_WIDTH | MAX_SURFACE_2D_WIDTH => 131_072,
        MAX_TEXTURE_2D_HEIGHT | MAX_SURFACE_2D_HEIGHT => 65_536,
        MAX_TEXTURE_2D_LINEAR_HEIGHT => 65_000,
        MAX_TEXTURE_2D_LINEAR_PITCH => 2_097_120,
        MAX_TEXTURE_1D_LINEAR_WIDTH => 268_435_456,
        MAX_TEXTURE_3D_WIDTH
        | MAX_TEXTURE_3D_HEIGHT
        | MAX_TEXTURE_3D_DEPTH
        | MAX_SURFACE_3D_WIDTH
        | MAX_SURFACE_3D_HEIGHT
        | MAX_SURFACE_3D_DEPTH => 16_384,
        MAX_TEXTURE_3D_WIDTH_ALT | MAX_TEXTURE_3D_HEIGHT_ALT => 8192,
        MAX_TEXTURE_3D_DEPTH_ALT
        | MAX_TEXTURE_1D_MIPMAPPED_WIDTH
        | MAX_TEXTURE_2D_MIPMAPPED_WIDTH
        | MAX_TEXTURE_2D_MIPMAPPED_HEIGHT
        | MAX_TEXTURE_2D_GATHER_WIDTH
        | MAX_TEXTURE_2D_GATHER_HEIGHT
        | MAX_TEXTURE_CUBEMAP_WIDTH
        | MAX_TEXTURE_CUBEMAP_LAYERED_WIDTH
        | MAX_TEXTURE_1D_LAYERED_WIDTH
        | MAX_TEXTURE_2D_LAYERED_WIDTH
        | MAX_TEXTURE_2D_LAYERED_HEIGHT
        | MAX_SURFACE_1D_WIDTH
        | MAX_SURFACE_CUBEMAP_WIDTH
        | MAX_SURFACE_CUBEMAP_LAYERED_WIDTH
        | MAX_SURFACE_1D_LAYERED_WIDTH
        | MAX_SURFACE_2D_LAYERED_WIDTH
        | MAX_SURFACE_2D_LAYERED_HEIGHT => 32_768,
        MAX_TEXTURE_1D_LAYERED_LAYERS
        | MAX_TEXTURE_2D_LAYERED_LAYERS
        | MAX_SURFACE_1D_LAYERED_LAYERS
        | MAX_SURFACE_2D_LAYERED_LAYERS => 2048,
        MAX_TEXTURE_CUBEMAP_LAYERED_LAYERS | MAX_SURFACE_CUBEMAP_LAYERED_LAYERS => 2046,
        _ => return None,
    };
    Some(limit)
}

cuda_api! {
    fn cudaDeviceGetAttribute(result: Out<c_int>, attribute: c_int, device: c_int) {
        result.check()?;
        let description = process::device_of(device)?;
        result.set(value(description, devices::of_node(device as u32)?, attribute).ok_or(CudaError::InvalidValue)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_has_a_value_and_no_other_number() {
        let device = DeviceDescription::default();
        assert!(ALL.iter().all(|attribute| value(&device, 0, *attribute).is_some()));
        assert_eq!(value(&device, 0, 0), None);
        assert_eq!(value(&device, 0, 100_000), None);
    }

    #[test]
    fn attributes_are_those_of_the_device() {
        let device = DeviceDescription {
            compute_capability: (7, 5),
            sm_registers: 65_536,
            cta_shared_bytes_optin: 64 << 10,
            l2_bytes: 1 << 40,
            ..DeviceDescription::default()
        };
        assert_eq!(value(&device, 0, MAX_SHARED_MEMORY_PER_BLOCK), Some(49_152));
        assert_eq!(value(&device, 0, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), Some(65_536));
        assert_eq!(value(&device, 0, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO), Some(32));
        assert_eq!(value(&device, 0, L2_CACHE_SIZE), Some(i32::MAX));
        assert_eq!(value(&device, 3, PCI_BUS_ID), Some(4));
    }
}
