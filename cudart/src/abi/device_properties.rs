//! `cudaDeviceProp`, in the layouts of CUDA 11, 12 and 13: one list of fields, each with the value that it shows.

use super::device_attribute as attribute;
use balar_host::DeviceDescription;

/// A device as programs see it.
#[derive(Clone, Copy, Debug)]
pub struct Device<'a> {
    /// The device.
    pub description: &'a DeviceDescription,
    /// The node's number of it.
    pub index: u32,
    /// Its identity.
    pub uuid: [u8; 16],
}

impl Device<'_> {
    fn attribute(&self, number: i32) -> i32 {
        attribute::driver_value(self.description, self.index, number).unwrap_or(0)
    }
}

/// A name of C: cut to its room, the rest zero.
fn name<const ROOM: usize>(text: &str) -> [u8; ROOM] {
    let mut name = [0; ROOM];
    let bytes = text.len().min(ROOM - 1);
    name[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
    name
}

/// The value of a field: an attribute, several attributes, or a value that no attribute has.
macro_rules! shown {
    ($device:ident, name) => { name(&$device.description.name) };
    ($device:ident, uuid) => { $device.uuid };
    ($device:ident, memory_bytes) => { $device.description.memory_bytes as usize };
    ($device:ident, zero) => { Default::default() };
    ($device:ident, [$($attribute:ident),*]) => { [$($device.attribute(attribute::$attribute)),*] };
    ($device:ident, $attribute:ident) => { $device.attribute(attribute::$attribute) as _ };
}

/// Defines the three layouts. Fields are in the order in which they lie in memory: `all` in every layout, `until_12` in those of
/// CUDA 11 and 12, `since_12` and `since_13` after all others.
macro_rules! layouts {
    (
        $(
            all { $($field:ident $name:literal: $type:ty = $value:tt;)* }
            until_12 { $($old:ident $old_name:literal: $old_type:ty = $old_value:tt;)* }
        )*
        since_12 { $($field_12:ident $name_12:literal: $type_12:ty = $value_12:tt;)* }
        since_13 { $($field_13:ident $name_13:literal: $type_13:ty = $value_13:tt;)* }
    ) => {
        /// The layout of CUDA 11 and before.
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct DeviceProperties11 {
            $(
                $(#[doc = concat!("`", $name, "`.")] pub $field: $type,)*
                $(#[doc = concat!("`", $old_name, "`.")] pub $old: $old_type,)*
            )*
        }

        /// The layout of CUDA 12 (`cudaGetDeviceProperties_v2`).
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct DeviceProperties12 {
            $(
                $(#[doc = concat!("`", $name, "`.")] pub $field: $type,)*
                $(#[doc = concat!("`", $old_name, "`.")] pub $old: $old_type,)*
            )*
            $(#[doc = concat!("`", $name_12, "`.")] pub $field_12: $type_12,)*
            reserved: [i32; 63],
        }

        /// The layout of CUDA 13, without fields that had long been deprecated.
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct DeviceProperties13 {
            $($(#[doc = concat!("`", $name, "`.")] pub $field: $type,)*)*
            $(#[doc = concat!("`", $name_12, "`.")] pub $field_12: $type_12,)*
            $(#[doc = concat!("`", $name_13, "`.")] pub $field_13: $type_13,)*
            reserved: [i32; 56],
        }

        impl DeviceProperties11 {
            /// The properties of a device.
            pub fn of(device: &Device<'_>) -> DeviceProperties11 {
                DeviceProperties11 {
                    $(
                        $($field: shown!(device, $value),)*
                        $($old: shown!(device, $old_value),)*
                    )*
                }
            }
        }

        impl DeviceProperties12 {
            /// The properties of a device.
            pub fn of(device: &Device<'_>) -> DeviceProperties12 {
                DeviceProperties12 {
                    $(
                        $($field: shown!(device, $value),)*
                        $($old: shown!(device, $old_value),)*
                    )*
                    $($field_12: shown!(device, $value_12),)*
                    reserved: [0; 63],
                }
            }
        }

        impl DeviceProperties13 {
            /// The properties of a device.
            pub fn of(device: &Device<'_>) -> DeviceProperties13 {
                DeviceProperties13 {
                    $($($field: shown!(device, $value),)*)*
                    $($field_12: shown!(device, $value_12),)*
                    $($field_13: shown!(device, $value_13),)*
                    reserved: [0; 56],
                }
            }
        }
    };
}

layouts! {
    all {
        name "name": [u8; 256] = name;
        uuid "uuid": [u8; 16] = uuid;
        luid "luid": [u8; 8] = zero;
        luid_device_node_mask "luidDeviceNodeMask": u32 = zero;
        total_global_mem "totalGlobalMem": usize = memory_bytes;
        shared_mem_per_block "sharedMemPerBlock": usize = MAX_SHARED_MEMORY_PER_BLOCK;
        regs_per_block "regsPerBlock": i32 = MAX_REGISTERS_PER_BLOCK;
        warp_size "warpSize": i32 = WARP_SIZE;
        mem_pitch "memPitch": usize = MAX_PITCH;
        max_threads_per_block "maxThreadsPerBlock": i32 = MAX_THREADS_PER_BLOCK;
        max_threads_dim "maxThreadsDim": [i32; 3] = [MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z];
        max_grid_size "maxGridSize": [i32; 3] = [MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z];
    }
    until_12 {
        clock_rate "clockRate": i32 = CLOCK_RATE;
    }
    all {
        total_const_mem "totalConstMem": usize = TOTAL_CONSTANT_MEMORY;
        major "major": i32 = COMPUTE_CAPABILITY_MAJOR;
        minor "minor": i32 = COMPUTE_CAPABILITY_MINOR;
        texture_alignment "textureAlignment": usize = TEXTURE_ALIGNMENT;
        texture_pitch_alignment "texturePitchAlignment": usize = TEXTURE_PITCH_ALIGNMENT;
    }
    until_12 {
        device_overlap "deviceOverlap": i32 = GPU_OVERLAP;
    }
    all {
        multi_processor_count "multiProcessorCount": i32 = MULTI_PROCESSOR_COUNT;
    }
    until_12 {
        kernel_exec_timeout_enabled "kernelExecTimeoutEnabled": i32 = KERNEL_EXEC_TIMEOUT;
    }
    all {
        integrated "integrated": i32 = INTEGRATED;
        can_map_host_memory "canMapHostMemory": i32 = CAN_MAP_HOST_MEMORY;
    }
    until_12 {
        compute_mode "computeMode": i32 = COMPUTE_MODE;
    }
    all {
        max_texture_1d "maxTexture1D": i32 = MAX_TEXTURE_1D_WIDTH;
        max_texture_1d_mipmap "maxTexture1DMipmap": i32 = MAX_TEXTURE_1D_MIPMAPPED_WIDTH;
    }
    until_12 {
        max_texture_1d_linear "maxTexture1DLinear": i32 = MAX_TEXTURE_1D_LINEAR_WIDTH;
    }
    all {
        max_texture_2d "maxTexture2D": [i32; 2] = [MAX_TEXTURE_2D_WIDTH, MAX_TEXTURE_2D_HEIGHT];
        max_texture_2d_mipmap "maxTexture2DMipmap": [i32; 2] = [MAX_TEXTURE_2D_MIPMAPPED_WIDTH, MAX_TEXTURE_2D_MIPMAPPED_HEIGHT];
        max_texture_2d_linear "maxTexture2DLinear": [i32; 3] = [MAX_TEXTURE_2D_LINEAR_WIDTH, MAX_TEXTURE_2D_LINEAR_HEIGHT, MAX_TEXTURE_2D_LINEAR_PITCH];
        max_texture_2d_gather "maxTexture2DGather": [i32; 2] = [MAX_TEXTURE_2D_GATHER_WIDTH, MAX_TEXTURE_2D_GATHER_HEIGHT];
        max_texture_3d "maxTexture3D": [i32; 3] = [MAX_TEXTURE_3D_WIDTH, MAX_TEXTURE_3D_HEIGHT, MAX_TEXTURE_3D_DEPTH];
        max_texture_3d_alt "maxTexture3DAlt": [i32; 3] = [MAX_TEXTURE_3D_WIDTH_ALT, MAX_TEXTURE_3D_HEIGHT_ALT, MAX_TEXTURE_3D_DEPTH_ALT];
        max_texture_cubemap "maxTextureCubemap": i32 = MAX_TEXTURE_CUBEMAP_WIDTH;
        max_texture_1d_layered "maxTexture1DLayered": [i32; 2] = [MAX_TEXTURE_1D_LAYERED_WIDTH, MAX_TEXTURE_1D_LAYERED_LAYERS];
        max_texture_2d_layered "maxTexture2DLayered": [i32; 3] = [MAX_TEXTURE_2D_LAYERED_WIDTH, MAX_TEXTURE_2D_LAYERED_HEIGHT, MAX_TEXTURE_2D_LAYERED_LAYERS];
        max_texture_cubemap_layered "maxTextureCubemapLayered": [i32; 2] = [MAX_TEXTURE_CUBEMAP_LAYERED_WIDTH, MAX_TEXTURE_CUBEMAP_LAYERED_LAYERS];
        max_surface_1d "maxSurface1D": i32 = MAX_SURFACE_1D_WIDTH;
        max_surface_2d "maxSurface2D": [i32; 2] = [MAX_SURFACE_2D_WIDTH, MAX_SURFACE_2D_HEIGHT];
        max_surface_3d "maxSurface3D": [i32; 3] = [MAX_SURFACE_3D_WIDTH, MAX_SURFACE_3D_HEIGHT, MAX_SURFACE_3D_DEPTH];
        max_surface_1d_layered "maxSurface1DLayered": [i32; 2] = [MAX_SURFACE_1D_LAYERED_WIDTH, MAX_SURFACE_1D_LAYERED_LAYERS];
        max_surface_2d_layered "maxSurface2DLayered": [i32; 3] = [MAX_SURFACE_2D_LAYERED_WIDTH, MAX_SURFACE_2D_LAYERED_HEIGHT, MAX_SURFACE_2D_LAYERED_LAYERS];
        max_surface_cubemap "maxSurfaceCubemap": i32 = MAX_SURFACE_CUBEMAP_WIDTH;
        max_surface_cubemap_layered "maxSurfaceCubemapLayered": [i32; 2] = [MAX_SURFACE_CUBEMAP_LAYERED_WIDTH, MAX_SURFACE_CUBEMAP_LAYERED_LAYERS];
        surface_alignment "surfaceAlignment": usize = SURFACE_ALIGNMENT;
        concurrent_kernels "concurrentKernels": i32 = CONCURRENT_KERNELS;
        ecc_enabled "ECCEnabled": i32 = ECC_ENABLED;
        pci_bus_id "pciBusID": i32 = PCI_BUS_ID;
        pci_device_id "pciDeviceID": i32 = PCI_DEVICE_ID;
        pci_domain_id "pciDomainID": i32 = PCI_DOMAIN_ID;
        tcc_driver "tccDriver": i32 = TCC_DRIVER;
        async_engine_count "asyncEngineCount": i32 = ASYNC_ENGINE_COUNT;
        unified_addressing "unifiedAddressing": i32 = UNIFIED_ADDRESSING;
    }
    until_12 {
        memory_clock_rate "memoryClockRate": i32 = MEMORY_CLOCK_RATE;
    }
    all {
        memory_bus_width "memoryBusWidth": i32 = GLOBAL_MEMORY_BUS_WIDTH;
        l2_cache_size "l2CacheSize": i32 = L2_CACHE_SIZE;
        persisting_l2_cache_max_size "persistingL2CacheMaxSize": i32 = MAX_PERSISTING_L2_CACHE_SIZE;
        max_threads_per_multi_processor "maxThreadsPerMultiProcessor": i32 = MAX_THREADS_PER_MULTI_PROCESSOR;
        stream_priorities_supported "streamPrioritiesSupported": i32 = STREAM_PRIORITIES_SUPPORTED;
        global_l1_cache_supported "globalL1CacheSupported": i32 = GLOBAL_L1_CACHE_SUPPORTED;
        local_l1_cache_supported "localL1CacheSupported": i32 = LOCAL_L1_CACHE_SUPPORTED;
        shared_mem_per_multiprocessor "sharedMemPerMultiprocessor": usize = MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
        regs_per_multiprocessor "regsPerMultiprocessor": i32 = MAX_REGISTERS_PER_MULTIPROCESSOR;
        managed_memory "managedMemory": i32 = MANAGED_MEMORY;
        is_multi_gpu_board "isMultiGpuBoard": i32 = IS_MULTI_GPU_BOARD;
        multi_gpu_board_group_id "multiGpuBoardGroupID": i32 = MULTI_GPU_BOARD_GROUP_ID;
        host_native_atomic_supported "hostNativeAtomicSupported": i32 = HOST_NATIVE_ATOMIC_SUPPORTED;
    }
    until_12 {
        single_to_double_precision_perf_ratio "singleToDoublePrecisionPerfRatio": i32 = SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
    }
    all {
        pageable_memory_access "pageableMemoryAccess": i32 = PAGEABLE_MEMORY_ACCESS;
        concurrent_managed_access "concurrentManagedAccess": i32 = CONCURRENT_MANAGED_ACCESS;
        compute_preemption_supported "computePreemptionSupported": i32 = COMPUTE_PREEMPTION_SUPPORTED;
        can_use_host_pointer_for_registered_mem "canUseHostPointerForRegisteredMem": i32 = CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
        cooperative_launch "cooperativeLaunch": i32 = COOPERATIVE_LAUNCH;
    }
    until_12 {
        cooperative_multi_device_launch "cooperativeMultiDeviceLaunch": i32 = COOPERATIVE_MULTI_DEVICE_LAUNCH;
    }
    all {
        shared_mem_per_block_optin "sharedMemPerBlockOptin": usize = MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        pageable_memory_access_uses_host_page_tables "pageableMemoryAccessUsesHostPageTables": i32 = PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
        direct_managed_mem_access_from_host "directManagedMemAccessFromHost": i32 = DIRECT_MANAGED_MEM_ACCESS_FROM_HOST;
        max_blocks_per_multi_processor "maxBlocksPerMultiProcessor": i32 = MAX_BLOCKS_PER_MULTIPROCESSOR;
        access_policy_max_window_size "accessPolicyMaxWindowSize": i32 = MAX_ACCESS_POLICY_WINDOW_SIZE;
        reserved_shared_mem_per_block "reservedSharedMemPerBlock": usize = RESERVED_SHARED_MEMORY_PER_BLOCK;
    }
    until_12 {}
    since_12 {
        host_register_supported "hostRegisterSupported": i32 = HOST_REGISTER_SUPPORTED;
        sparse_cuda_array_supported "sparseCudaArraySupported": i32 = SPARSE_CUDA_ARRAY_SUPPORTED;
        host_register_read_only_supported "hostRegisterReadOnlySupported": i32 = HOST_REGISTER_READ_ONLY_SUPPORTED;
        timeline_semaphore_interop_supported "timelineSemaphoreInteropSupported": i32 = TIMELINE_SEMAPHORE_INTEROP_SUPPORTED;
        memory_pools_supported "memoryPoolsSupported": i32 = MEMORY_POOLS_SUPPORTED;
        gpu_direct_rdma_supported "gpuDirectRDMASupported": i32 = GPU_DIRECT_RDMA_SUPPORTED;
        gpu_direct_rdma_flush_writes_options "gpuDirectRDMAFlushWritesOptions": u32 = GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS;
        gpu_direct_rdma_writes_ordering "gpuDirectRDMAWritesOrdering": i32 = GPU_DIRECT_RDMA_WRITES_ORDERING;
        memory_pool_supported_handle_types "memoryPoolSupportedHandleTypes": u32 = MEMORY_POOL_SUPPORTED_HANDLE_TYPES;
        deferred_mapping_cuda_array_supported "deferredMappingCudaArraySupported": i32 = DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED;
        ipc_event_supported "ipcEventSupported": i32 = IPC_EVENT_SUPPORT;
        cluster_launch "clusterLaunch": i32 = CLUSTER_LAUNCH;
        unified_function_pointers "unifiedFunctionPointers": i32 = UNIFIED_FUNCTION_POINTERS;
    }
    since_13 {
        device_numa_config "deviceNumaConfig": i32 = NUMA_CONFIG;
        device_numa_id "deviceNumaId": i32 = NUMA_ID;
        mps_enabled "mpsEnabled": i32 = MPS_ENABLED;
        host_numa_id "hostNumaId": i32 = HOST_NUMA_ID;
        gpu_pci_device_id "gpuPciDeviceID": u32 = GPU_PCI_DEVICE_ID;
        gpu_pci_subsystem_id "gpuPciSubsystemID": u32 = GPU_PCI_SUBSYSTEM_ID;
        host_numa_multinode_ipc_supported "hostNumaMultinodeIpcSupported": i32 = HOST_NUMA_MULTINODE_IPC_SUPPORTED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    /// Sizes and offsets by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        use DeviceProperties11 as P11;
        use DeviceProperties12 as P12;
        use DeviceProperties13 as P13;
        check::<P11>(728, 8);
        check::<P12>(1032, 8);
        check::<P13>(1008, 8);
        assert_eq!(offset_of!(P11, total_global_mem), 288);
        assert_eq!(offset_of!(P11, total_const_mem), 352);
        assert_eq!(offset_of!(P11, multi_processor_count), 388);
        assert_eq!(offset_of!(P11, max_texture_1d), 408);
        assert_eq!(offset_of!(P11, surface_alignment), 568);
        assert_eq!(offset_of!(P11, memory_bus_width), 612);
        assert_eq!(offset_of!(P11, shared_mem_per_multiprocessor), 640);
        assert_eq!(offset_of!(P11, shared_mem_per_block_optin), 696);
        assert_eq!(offset_of!(P11, reserved_shared_mem_per_block), 720);
        assert_eq!(offset_of!(P12, host_register_supported), 728);
        assert_eq!(offset_of!(P12, cluster_launch), 772);
        assert_eq!(offset_of!(P12, unified_function_pointers), 776);
        assert_eq!(offset_of!(P13, total_const_mem), 352);
        assert_eq!(offset_of!(P13, multi_processor_count), 384);
        assert_eq!(offset_of!(P13, surface_alignment), 552);
        assert_eq!(offset_of!(P13, memory_bus_width), 592);
        assert_eq!(offset_of!(P13, cooperative_launch), 668);
        assert_eq!(offset_of!(P13, reserved_shared_mem_per_block), 696);
        assert_eq!(offset_of!(P13, cluster_launch), 748);
        assert_eq!(offset_of!(P13, device_numa_config), 756);
        assert_eq!(offset_of!(P13, host_numa_multinode_ipc_supported), 780);
    }

    fn description() -> DeviceDescription {
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
        let description = description();
        let device = Device { description: &description, index: 1, uuid: [7; 16] };
        let (eleven, twelve, thirteen) =
            (DeviceProperties11::of(&device), DeviceProperties12::of(&device), DeviceProperties13::of(&device));
        assert_eq!(&eleven.name[..14], b"Simulated GPU\0");
        assert_eq!((eleven.major, eleven.minor, eleven.multi_processor_count), (7, 0, 80));
        assert_eq!(eleven.max_grid_size, [i32::MAX, 65_535, 65_535]);
        assert_eq!((eleven.shared_mem_per_block, eleven.shared_mem_per_block_optin), (48 << 10, 96 << 10));
        assert_eq!(twelve.total_global_mem, 16 << 30);
        assert_eq!(twelve.memory_pools_supported, 1);
        assert_eq!(thirteen.max_grid_size, eleven.max_grid_size);
        assert_eq!(thirteen.memory_bus_width, 4096);
        assert_eq!((eleven.uuid, twelve.uuid, thirteen.uuid), ([7; 16], [7; 16], [7; 16]));
        assert_eq!([eleven.pci_bus_id, twelve.pci_bus_id, thirteen.pci_bus_id], [2; 3]);
    }
}
