//! `cudaGetDeviceProperties`, in three layouts.

use super::attributes;
use crate::abi::arguments::{In, Out};
use crate::abi::device_attribute as attribute;
use crate::abi::device_properties::{DeviceProperties11, DeviceProperties12, DeviceProperties13};
use crate::cuda_api;
use crate::session::devices::{self, uuid};
use crate::session::process;
use balar_host::{CudaError, DeviceDescription};
use bytemuck::Zeroable;
use std::ffi::c_int;

/// Sets fields to the values of attributes.
macro_rules! fill {
    ($properties:expr, $value:expr; $($field:ident: $attribute:ident,)*;
     $($array:ident: [$($element:ident),* $(,)?],)*) => {
        $($properties.$field = $value(attribute::$attribute) as _;)*
        $($properties.$array = [$($value(attribute::$element)),*];)*
    };
}

/// What all layouts have.
macro_rules! fill_common {
    ($properties:expr, $value:expr) => {
        fill! { $properties, $value;
            shared_mem_per_block: MAX_SHARED_MEMORY_PER_BLOCK,
            regs_per_block: MAX_REGISTERS_PER_BLOCK,
            warp_size: WARP_SIZE,
            mem_pitch: MAX_PITCH,
            max_threads_per_block: MAX_THREADS_PER_BLOCK,
            total_const_mem: TOTAL_CONSTANT_MEMORY,
            major: COMPUTE_CAPABILITY_MAJOR,
            minor: COMPUTE_CAPABILITY_MINOR,
            texture_alignment: TEXTURE_ALIGNMENT,
            texture_pitch_alignment: TEXTURE_PITCH_ALIGNMENT,
            multi_processor_count: MULTI_PROCESSOR_COUNT,
            integrated: INTEGRATED,
            can_map_host_memory: CAN_MAP_HOST_MEMORY,
            max_texture_1d: MAX_TEXTURE_1D_WIDTH,
            max_texture_1d_mipmap: MAX_TEXTURE_1D_MIPMAPPED_WIDTH,
            max_texture_cubemap: MAX_TEXTURE_CUBEMAP_WIDTH,
            max_surface_1d: MAX_SURFACE_1D_WIDTH,
            max_surface_cubemap: MAX_SURFACE_CUBEMAP_WIDTH,
            surface_alignment: SURFACE_ALIGNMENT,
            concurrent_kernels: CONCURRENT_KERNELS,
            ecc_enabled: ECC_ENABLED,
            pci_bus_id: PCI_BUS_ID,
            pci_device_id: PCI_DEVICE_ID,
            pci_domain_id: PCI_DOMAIN_ID,
            tcc_driver: TCC_DRIVER,
            async_engine_count: ASYNC_ENGINE_COUNT,
            unified_addressing: UNIFIED_ADDRESSING,
            memory_bus_width: GLOBAL_MEMORY_BUS_WIDTH,
            l2_cache_size: L2_CACHE_SIZE,
            persisting_l2_cache_max_size: MAX_PERSISTING_L2_CACHE_SIZE,
            max_threads_per_multi_processor: MAX_THREADS_PER_MULTI_PROCESSOR,
            stream_priorities_supported: STREAM_PRIORITIES_SUPPORTED,
            global_l1_cache_supported: GLOBAL_L1_CACHE_SUPPORTED,
            local_l1_cache_supported: LOCAL_L1_CACHE_SUPPORTED,
            shared_mem_per_multiprocessor: MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            regs_per_multiprocessor: MAX_REGISTERS_PER_MULTIPROCESSOR,
            managed_memory: MANAGED_MEMORY,
            is_multi_gpu_board: IS_MULTI_GPU_BOARD,
            multi_gpu_board_group_id: MULTI_GPU_BOARD_GROUP_ID,
            host_native_atomic_supported: HOST_NATIVE_ATOMIC_SUPPORTED,
            pageable_memory_access: PAGEABLE_MEMORY_ACCESS,
            concurrent_managed_access: CONCURRENT_MANAGED_ACCESS,
            compute_preemption_supported: COMPUTE_PREEMPTION_SUPPORTED,
            can_use_host_pointer_for_registered_mem: CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
            cooperative_launch: COOPERATIVE_LAUNCH,
            shared_mem_per_block_optin: MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            pageable_memory_access_uses_host_page_tables: PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
            direct_managed_mem_access_from_host: DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
            max_blocks_per_multi_processor: MAX_BLOCKS_PER_MULTIPROCESSOR,
            access_policy_max_window_size: MAX_ACCESS_POLICY_WINDOW_SIZE,
            reserved_shared_mem_per_block: RESERVED_SHARED_MEMORY_PER_BLOCK,
            ;
            max_threads_dim: [MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z],
            max_grid_size: [MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z],
            max_texture_2d: [MAX_TEXTURE_2D_WIDTH, MAX_TEXTURE_2D_HEIGHT],
            max_texture_2d_mipmap: [MAX_TEXTURE_2D_MIPMAPPED_WIDTH, MAX_TEXTURE_2D_MIPMAPPED_HEIGHT],
            max_texture_2d_linear: [
                MAX_TEXTURE_2D_LINEAR_WIDTH,
                MAX_TEXTURE_2D_LINEAR_HEIGHT,
                MAX_TEXTURE_2D_LINEAR_PITCH,
            ],
            max_texture_2d_gather: [MAX_TEXTURE_2D_GATHER_WIDTH, MAX_TEXTURE_2D_GATHER_HEIGHT],
            max_texture_3d: [MAX_TEXTURE_3D_WIDTH, MAX_TEXTURE_3D_HEIGHT, MAX_TEXTURE_3D_DEPTH],
            max_texture_3d_alt: [MAX_TEXTURE_3D_WIDTH_ALT, MAX_TEXTURE_3D_HEIGHT_ALT, MAX_TEXTURE_3D_DEPTH_ALT],
            max_texture_1d_layered: [MAX_TEXTURE_1D_LAYERED_WIDTH, MAX_TEXTURE_1D_LAYERED_LAYERS],
            max_texture_2d_layered: [
                MAX_TEXTURE_2D_LAYERED_WIDTH,
                MAX_TEXTURE_2D_LAYERED_HEIGHT,
                MAX_TEXTURE_2D_LAYERED_LAYERS,
            ],
            max_texture_cubemap_layered: [MAX_TEXTURE_CUBEMAP_LAYERED_WIDTH, MAX_TEXTURE_CUBEMAP_LAYERED_LAYERS],
            max_surface_2d: [MAX_SURFACE_2D_WIDTH, MAX_SURFACE_2D_HEIGHT],
            max_surface_3d: [MAX_SURFACE_3D_WIDTH, MAX_SURFACE_3D_HEIGHT, MAX_SURFACE_3D_DEPTH],
            max_surface_1d_layered: [MAX_SURFACE_1D_LAYERED_WIDTH, MAX_SURFACE_1D_LAYERED_LAYERS],
            max_surface_2d_layered: [
                MAX_SURFACE_2D_LAYERED_WIDTH,
                MAX_SURFACE_2D_LAYERED_HEIGHT,
                MAX_SURFACE_2D_LAYERED_LAYERS,
            ],
            max_surface_cubemap_layered: [MAX_SURFACE_CUBEMAP_LAYERED_WIDTH, MAX_SURFACE_CUBEMAP_LAYERED_LAYERS],
        }
    };
}

/// What CUDA 13 has no longer.
macro_rules! fill_11 {
    ($properties:expr, $value:expr) => {
        fill! { $properties, $value;
            clock_rate: CLOCK_RATE,
            device_overlap: GPU_OVERLAP,
            kernel_exec_timeout_enabled: KERNEL_EXEC_TIMEOUT,
            compute_mode: COMPUTE_MODE,
            max_texture_1d_linear: MAX_TEXTURE_1D_LINEAR_WIDTH,
            memory_clock_rate: MEMORY_CLOCK_RATE,
            single_to_double_precision_perf_ratio: SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
            cooperative_multi_device_launch: COOPERATIVE_MULTI_DEVICE_LAUNCH,
            ;
        }
    };
}

/// What CUDA 12 has added.
macro_rules! fill_12 {
    ($properties:expr, $value:expr) => {
        fill! { $properties, $value;
            host_register_supported: HOST_REGISTER_SUPPORTED,
            sparse_cuda_array_supported: SPARSE_CUDA_ARRAY_SUPPORTED,
            host_register_read_only_supported: HOST_REGISTER_READ_ONLY_SUPPORTED,
            timeline_semaphore_interop_supported: TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
            memory_pools_supported: MEMORY_POOLS_SUPPORTED,
            gpu_direct_rdma_supported: GPU_DIRECT_RDMA_SUPPORTED,
            gpu_direct_rdma_flush_writes_options: GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
            gpu_direct_rdma_writes_ordering: GPU_DIRECT_RDMA_WRITES_ORDERING,
            memory_pool_supported_handle_types: MEMORY_POOL_SUPPORTED_HANDLE_TYPES,
            deferred_mapping_cuda_array_supported: DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
            ipc_event_supported: IPC_EVENT_SUPPORT,
            cluster_launch: CLUSTER_LAUNCH,
            ;
        }
    };
}

/// What CUDA 13 has added.
macro_rules! fill_13 {
    ($properties:expr, $value:expr) => {
        fill! { $properties, $value;
            device_numa_config: NUMA_CONFIG,
            device_numa_id: NUMA_ID,
            mps_enabled: MPS_ENABLED,
            host_numa_id: HOST_NUMA_ID,
            gpu_pci_device_id: GPU_PCI_DEVICE_ID,
            gpu_pci_subsystem_id: GPU_PCI_SUBSYSTEM_ID,
            host_numa_multinode_ipc_supported: HOST_NUMA_MULTINODE_IPC_SUPPORTED,
            ;
        }
    };
}

/// A name of C: cut to its room, the rest zero.
fn name<const ROOM: usize>(text: &str) -> [u8; ROOM] {
    let mut name = [0; ROOM];
    let bytes = text.len().min(ROOM - 1);
    name[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
    name
}

/// `index` is the node's number.
fn properties_11(device: &DeviceDescription, index: u32) -> DeviceProperties11 {
    let mut properties = DeviceProperties11::zeroed();
    let value = |number| attributes::value(device, index, number).unwrap_or(0);
    properties.name = name(&device.name);
    properties.uuid = uuid(index);
    properties.total_global_mem = device.memory_bytes as usize;
    fill_common!(properties, value);
    fill_11!(properties, value);
    properties
}

fn properties_12(device: &DeviceDescription, index: u32) -> DeviceProperties12 {
    let mut properties = DeviceProperties12::zeroed();
    let value = |number| attributes::value(device, index, number).unwrap_or(0);
    properties.base = properties_11(device, index);
    fill_12!(properties, value);
    properties
}

fn properties_13(device: &DeviceDescription, index: u32) -> DeviceProperties13 {
    let mut properties = DeviceProperties13::zeroed();
    let value = |number| attributes::value(device, index, number).unwrap_or(0);
    properties.name = name(&device.name);
    properties.uuid = uuid(index);
    properties.total_global_mem = device.memory_bytes as usize;
    fill_common!(properties, value);
    fill_12!(properties, value);
    fill_13!(properties, value);
    properties
}

/// What a program wants of a device (`cudaChooseDevice`), as far as devices differ in it; 0 is any.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    major: i32,
    minor: i32,
    memory_bytes: usize,
    multiprocessors: i32,
}

/// The device that has most of what is wished.
fn choose(wish: Wish) -> Result<c_int, CudaError> {
    let devices = &process::description()?.devices;
    let fits = |device: &DeviceDescription| {
        let (major, minor) = device.compute_capability;
        u32::from((major as i32, minor as i32) >= (wish.major, wish.minor))
            + u32::from(device.memory_bytes as usize >= wish.memory_bytes)
            + u32::from(device.sm_count as i32 >= wish.multiprocessors)
    };
    // The first of the best.
    let best = devices.iter().enumerate().rev().max_by_key(|(_, device)| fits(device));
    best.map(|(index, _)| index as c_int).ok_or(CudaError::NoDevice)
}

cuda_api! {
    /// The layout that had this name before CUDA 13.
    fn cudaGetDeviceProperties(properties: Out<DeviceProperties11>, device: c_int) {
        properties.set(properties_11(process::device_of(device)?, devices::of_node(device as u32)?))
    }

    fn cudaGetDeviceProperties_v2(properties: Out<DeviceProperties12>, device: c_int) {
        properties.set(properties_12(process::device_of(device)?, devices::of_node(device as u32)?))
    }

    fn cudaGetDeviceProperties_13(properties: Out<DeviceProperties13>, device: c_int) {
        properties.set(properties_13(process::device_of(device)?, devices::of_node(device as u32)?))
    }

    /// The layouts of CUDA 11 and 12 begin alike.
    fn cudaChooseDevice(device: Out<c_int>, wish: In<DeviceProperties11>) {
        let wish = wish.get()?;
        device.set(choose(Wish {
            major: wish.major,
            minor: wish.minor,
            memory_bytes: wish.total_global_mem,
            multiprocessors: wish.multi_processor_count,
        })?)
    }

    fn cudaChooseDevice_13(device: Out<c_int>, wish: In<DeviceProperties13>) {
        let wish = wish.get()?;
        device.set(choose(Wish {
            major: wish.major,
            minor: wish.minor,
            memory_bytes: wish.total_global_mem,
            multiprocessors: wish.multi_processor_count,
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> DeviceDescription {
        DeviceDescription {
            name: "Simulated GPU".to_owned(),
            compute_capability: (7, 0),
            sm_count: 80,
            memory_bytes: 16 << 30,
            memory_bus_bits: 4096,
            sm_registers: 65_536,
            sm_shared_bytes: 96 << 10,
            cta_shared_bytes_optin: 96 << 10,
            ..DeviceDescription::default()
        }
    }

    #[test]
    fn all_layouts_say_the_same() {
        let (eleven, twelve, thirteen) =
            (properties_11(&device(), 1), properties_12(&device(), 1), properties_13(&device(), 1));
        assert_eq!(&eleven.name[..14], b"Simulated GPU\0");
        assert_eq!((eleven.major, eleven.minor, eleven.multi_processor_count), (7, 0, 80));
        assert_eq!(eleven.max_grid_size, [i32::MAX, 65_535, 65_535]);
        assert_eq!((eleven.shared_mem_per_block, eleven.shared_mem_per_block_optin), (48 << 10, 96 << 10));
        assert_eq!(twelve.base.total_global_mem, 16 << 30);
        assert_eq!(twelve.memory_pools_supported, 1);
        assert_eq!(thirteen.max_grid_size, eleven.max_grid_size);
        assert_eq!(thirteen.memory_bus_width, 4096);
        assert_eq!(thirteen.uuid, eleven.uuid);
        assert_ne!(thirteen.uuid, properties_13(&device(), 0).uuid);
    }
}
