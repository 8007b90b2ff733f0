//! Attributes of devices, by number: `cudaDeviceAttr` and `CUdevice_attribute`, which has the same numbers. `cudaDeviceGetAttribute`,
//! `cuDeviceGetAttribute` and `cudaDeviceProp` all take their values from the table of this file.

use balar_host::{DeviceDescription, most_access_policy_window, most_persisting_l2};

/// Shared memory that a block has without asking for more, bytes (CUDA C++ Programming Guide, table of compute capabilities).
const SHARED_BYTES_OF_BLOCK: u32 = 48 << 10;
/// Registers that a block can have (ibid.).
const BLOCK_REGISTERS: u32 = 65_536;

/// How much slower a GPU computes with doubles than with floats (CUDA C++ Programming Guide, arithmetic throughput).
fn slowdown_of_doubles(device: &DeviceDescription) -> u32 {
    match device.compute_capability {
        (6 | 8, 0) | (7, 0..=2) | (9.., _) => 2,
        _ => 32,
    }
}

/// A value as C has it: as much of it as fits.
fn int(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

macro_rules! attributes {
    (
        $device:ident, $index:ident;
        both { $($name:ident = $number:literal, $c_name:literal: $value:expr;)* }
        driver { $($driver_name:ident = $driver_number:literal: $driver_value:literal;)* }
    ) => {
        $(
            #[doc = concat!("`cudaDevAttr", $c_name, "`.")]
            pub const $name: i32 = $number;
        )*
        $(
            #[doc = concat!("`CU_DEVICE_ATTRIBUTE_", stringify!($driver_name), "`.")]
            pub const $driver_name: i32 = $driver_number;
        )*

        /// The value of an attribute that both APIs know; `None` where there is no such attribute. `index` is the node's number of
        /// the device.
        pub fn value($device: &DeviceDescription, $index: u32, attribute: i32) -> Option<i32> {
            match attribute {
                $($name => Some(int($value)),)*
                _ => None,
            }
        }

        /// The value of an attribute that the driver alone knows.
        fn value_for_driver(attribute: i32) -> Option<i32> {
            match attribute {
                $($driver_name => Some($driver_value),)*
                _ => None,
            }
        }
    };
}

/// The value of an attribute that the driver knows; `None` where there is no such attribute. `index` is the node's number of the
/// device.
pub fn driver_value(device: &DeviceDescription, index: u32, attribute: i32) -> Option<i32> {
    value(device, index, attribute).or_else(|| value_for_driver(attribute))
}

// Limits that the description does not have are those of the compute capability, in the tables of the CUDA C++ Programming Guide;
// those of textures and surfaces are those of compute capability 7.0.
attributes! {
    device, index;
    both {
        MAX_THREADS_PER_BLOCK = 1, "MaxThreadsPerBlock": 1024;
        MAX_BLOCK_DIM_X = 2, "MaxBlockDimX": 1024;
        MAX_BLOCK_DIM_Y = 3, "MaxBlockDimY": 1024;
        MAX_BLOCK_DIM_Z = 4, "MaxBlockDimZ": 64;
        MAX_GRID_DIM_X = 5, "MaxGridDimX": i32::MAX;
        MAX_GRID_DIM_Y = 6, "MaxGridDimY": 65_535;
        MAX_GRID_DIM_Z = 7, "MaxGridDimZ": 65_535;
        MAX_SHARED_MEMORY_PER_BLOCK = 8, "MaxSharedMemoryPerBlock": SHARED_BYTES_OF_BLOCK.min(device.cta_shared_bytes_optin);
        TOTAL_CONSTANT_MEMORY = 9, "TotalConstantMemory": 65_536;
        WARP_SIZE = 10, "WarpSize": 32;
        MAX_PITCH = 11, "MaxPitch": i32::MAX;
        MAX_REGISTERS_PER_BLOCK = 12, "MaxRegistersPerBlock": device.sm_registers.min(BLOCK_REGISTERS);
        CLOCK_RATE = 13, "ClockRate": device.clock_khz;
        TEXTURE_ALIGNMENT = 14, "TextureAlignment": 512;
        GPU_OVERLAP = 15, "GpuOverlap": 1;
        MULTI_PROCESSOR_COUNT = 16, "MultiProcessorCount": device.sm_count;
        KERNEL_EXEC_TIMEOUT = 17, "KernelExecTimeout": 0;
        INTEGRATED = 18, "Integrated": 0;
        CAN_MAP_HOST_MEMORY = 19, "CanMapHostMemory": 1;
        COMPUTE_MODE = 20, "ComputeMode": 0;
        MAX_TEXTURE_1D_WIDTH = 21, "MaxTexture1DWidth": 131_072;
        MAX_TEXTURE_2D_WIDTH = 22, "MaxTexture2DWidth": 131_072;
        MAX_TEXTURE_2D_HEIGHT = 23, "MaxTexture2DHeight": 65_536;
        MAX_TEXTURE_3D_WIDTH = 24, "MaxTexture3DWidth": 16_384;
        MAX_TEXTURE_3D_HEIGHT = 25, "MaxTexture3DHeight": 16_384;
        MAX_TEXTURE_3D_DEPTH = 26, "MaxTexture3DDepth": 16_384;
        MAX_TEXTURE_2D_LAYERED_WIDTH = 27, "MaxTexture2DLayeredWidth": 32_768;
        MAX_TEXTURE_2D_LAYERED_HEIGHT = 28, "MaxTexture2DLayeredHeight": 32_768;
        MAX_TEXTURE_2D_LAYERED_LAYERS = 29, "MaxTexture2DLayeredLayers": 2048;
        SURFACE_ALIGNMENT = 30, "SurfaceAlignment": 512;
        CONCURRENT_KERNELS = 31, "ConcurrentKernels": 1;
        ECC_ENABLED = 32, "EccEnabled": 0;
        PCI_BUS_ID = 33, "PciBusId": index + 1;
        PCI_DEVICE_ID = 34, "PciDeviceId": 0;
        TCC_DRIVER = 35, "TccDriver": 0;
        MEMORY_CLOCK_RATE = 36, "MemoryClockRate": device.memory_clock_khz;
        GLOBAL_MEMORY_BUS_WIDTH = 37, "GlobalMemoryBusWidth": device.memory_bus_bits;
        L2_CACHE_SIZE = 38, "L2CacheSize": device.l2_bytes;
        MAX_THREADS_PER_MULTI_PROCESSOR = 39, "MaxThreadsPerMultiProcessor": device.sm_threads;
        // One copy engine for each direction.
        ASYNC_ENGINE_COUNT = 40, "AsyncEngineCount": 2;
        UNIFIED_ADDRESSING = 41, "UnifiedAddressing": 1;
        MAX_TEXTURE_1D_LAYERED_WIDTH = 42, "MaxTexture1DLayeredWidth": 32_768;
        MAX_TEXTURE_1D_LAYERED_LAYERS = 43, "MaxTexture1DLayeredLayers": 2048;
        MAX_TEXTURE_2D_GATHER_WIDTH = 45, "MaxTexture2DGatherWidth": 32_768;
        MAX_TEXTURE_2D_GATHER_HEIGHT = 46, "MaxTexture2DGatherHeight": 32_768;
        MAX_TEXTURE_3D_WIDTH_ALT = 47, "MaxTexture3DWidthAlt": 8192;
        MAX_TEXTURE_3D_HEIGHT_ALT = 48, "MaxTexture3DHeightAlt": 8192;
        MAX_TEXTURE_3D_DEPTH_ALT = 49, "MaxTexture3DDepthAlt": 32_768;
        PCI_DOMAIN_ID = 50, "PciDomainId": 0;
        TEXTURE_PITCH_ALIGNMENT = 51, "TexturePitchAlignment": 32;
        MAX_TEXTURE_CUBEMAP_WIDTH = 52, "MaxTextureCubemapWidth": 32_768;
        MAX_TEXTURE_CUBEMAP_LAYERED_WIDTH = 53, "MaxTextureCubemapLayeredWidth": 32_768;
        MAX_TEXTURE_CUBEMAP_LAYERED_LAYERS = 54, "MaxTextureCubemapLayeredLayers": 2046;
        MAX_SURFACE_1D_WIDTH = 55, "MaxSurface1DWidth": 32_768;
        MAX_SURFACE_2D_WIDTH = 56, "MaxSurface2DWidth": 131_072;
        MAX_SURFACE_2D_HEIGHT = 57, "MaxSurface2DHeight": 65_536;
        MAX_SURFACE_3D_WIDTH = 58, "MaxSurface3DWidth": 16_384;
        MAX_SURFACE_3D_HEIGHT = 59, "MaxSurface3DHeight": 16_384;
        MAX_SURFACE_3D_DEPTH = 60, "MaxSurface3DDepth": 16_384;
        MAX_SURFACE_1D_LAYERED_WIDTH = 61, "MaxSurface1DLayeredWidth": 32_768;
        MAX_SURFACE_1D_LAYERED_LAYERS = 62, "MaxSurface1DLayeredLayers": 2048;
        MAX_SURFACE_2D_LAYERED_WIDTH = 63, "MaxSurface2DLayeredWidth": 32_768;
        MAX_SURFACE_2D_LAYERED_HEIGHT = 64, "MaxSurface2DLayeredHeight": 32_768;
        MAX_SURFACE_2D_LAYERED_LAYERS = 65, "MaxSurface2DLayeredLayers": 2048;
        MAX_SURFACE_CUBEMAP_WIDTH = 66, "MaxSurfaceCubemapWidth": 32_768;
        MAX_SURFACE_CUBEMAP_LAYERED_WIDTH = 67, "MaxSurfaceCubemapLayeredWidth": 32_768;
        MAX_SURFACE_CUBEMAP_LAYERED_LAYERS = 68, "MaxSurfaceCubemapLayeredLayers": 2046;
        MAX_TEXTURE_1D_LINEAR_WIDTH = 69, "MaxTexture1DLinearWidth": 268_435_456;
        MAX_TEXTURE_2D_LINEAR_WIDTH = 70, "MaxTexture2DLinearWidth": 131_072;
        MAX_TEXTURE_2D_LINEAR_HEIGHT = 71, "MaxTexture2DLinearHeight": 65_000;
        MAX_TEXTURE_2D_LINEAR_PITCH = 72, "MaxTexture2DLinearPitch": 2_097_120;
        MAX_TEXTURE_2D_MIPMAPPED_WIDTH = 73, "MaxTexture2DMipmappedWidth": 32_768;
        MAX_TEXTURE_2D_MIPMAPPED_HEIGHT = 74, "MaxTexture2DMipmappedHeight": 32_768;
        COMPUTE_CAPABILITY_MAJOR = 75, "ComputeCapabilityMajor": device.compute_capability.0;
        COMPUTE_CAPABILITY_MINOR = 76, "ComputeCapabilityMinor": device.compute_capability.1;
        MAX_TEXTURE_1D_MIPMAPPED_WIDTH = 77, "MaxTexture1DMipmappedWidth": 32_768;
        STREAM_PRIORITIES_SUPPORTED = 78, "StreamPrioritiesSupported": 1;
        GLOBAL_L1_CACHE_SUPPORTED = 79, "GlobalL1CacheSupported": 1;
        LOCAL_L1_CACHE_SUPPORTED = 80, "LocalL1CacheSupported": 1;
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81, "MaxSharedMemoryPerMultiprocessor": device.sm_shared_bytes;
        MAX_REGISTERS_PER_MULTIPROCESSOR = 82, "MaxRegistersPerMultiprocessor": device.sm_registers;
        MANAGED_MEMORY = 83, "ManagedMemory": 1;
        IS_MULTI_GPU_BOARD = 84, "IsMultiGpuBoard": 0;
        MULTI_GPU_BOARD_GROUP_ID = 85, "MultiGpuBoardGroupID": index;
        HOST_NATIVE_ATOMIC_SUPPORTED = 86, "HostNativeAtomicSupported": 0;
        SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87, "SingleToDoublePrecisionPerfRatio": slowdown_of_doubles(device);
        PAGEABLE_MEMORY_ACCESS = 88, "PageableMemoryAccess": 0;
        CONCURRENT_MANAGED_ACCESS = 89, "ConcurrentManagedAccess": 1;
        COMPUTE_PREEMPTION_SUPPORTED = 90, "ComputePreemptionSupported": 1;
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91, "CanUseHostPointerForRegisteredMem": 0;
        COOPERATIVE_LAUNCH = 95, "CooperativeLaunch": 1;
        COOPERATIVE_MULTI_DEVICE_LAUNCH = 96, "CooperativeMultiDeviceLaunch": 0;
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97, "MaxSharedMemoryPerBlockOptin": device.cta_shared_bytes_optin;
        CAN_FLUSH_REMOTE_WRITES = 98, "CanFlushRemoteWrites": 0;
        HOST_REGISTER_SUPPORTED = 99, "HostRegisterSupported": 1;
        PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100, "PageableMemoryAccessUsesHostPageTables": 0;
        DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101, "DirectManagedMemAccessFromHost": 0;
        MAX_BLOCKS_PER_MULTIPROCESSOR = 106, "MaxBlocksPerMultiprocessor": device.sm_ctas;
        MAX_PERSISTING_L2_CACHE_SIZE = 108, "MaxPersistingL2CacheSize": most_persisting_l2(device.compute_capability, device.l2_bytes);
        MAX_ACCESS_POLICY_WINDOW_SIZE = 109, "MaxAccessPolicyWindowSize": most_access_policy_window(device.compute_capability);
        RESERVED_SHARED_MEMORY_PER_BLOCK = 111, "ReservedSharedMemoryPerBlock": device.sm().shared_reserved;
        SPARSE_CUDA_ARRAY_SUPPORTED = 112, "SparseCudaArraySupported": 0;
        HOST_REGISTER_READ_ONLY_SUPPORTED = 113, "HostRegisterReadOnlySupported": 0;
        TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114, "TimelineSemaphoreInteropSupported": 0;
        MEMORY_POOLS_SUPPORTED = 115, "MemoryPoolsSupported": 1;
        GPU_DIRECT_RDMA_SUPPORTED = 116, "GPUDirectRDMASupported": 0;
        GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117, "GPUDirectRDMAFlushWritesOptions": 0;
        GPU_DIRECT_RDMA_WRITES_ORDERING = 118, "GPUDirectRDMAWritesOrdering": 0;
        MEMORY_POOL_SUPPORTED_HANDLE_TYPES = 119, "MemoryPoolSupportedHandleTypes": 0;
        CLUSTER_LAUNCH = 120, "ClusterLaunch": u32::from(!device.cluster_groups.is_empty());
        DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121, "DeferredMappingCudaArraySupported": 0;
        IPC_EVENT_SUPPORT = 125, "IpcEventSupport": 1;
        MEM_SYNC_DOMAIN_COUNT = 126, "MemSyncDomainCount": 1;
        NUMA_CONFIG = 130, "NumaConfig": 0;
        NUMA_ID = 131, "NumaId": -1;
        MPS_ENABLED = 133, "MpsEnabled": 0;
        HOST_NUMA_ID = 134, "HostNumaId": -1;
        D3D12_CIG_SUPPORTED = 135, "D3D12CigSupported": 0;
        VULKAN_CIG_SUPPORTED = 138, "VulkanCigSupported": 0;
        GPU_PCI_DEVICE_ID = 139, "GpuPciDeviceId": 0;
        GPU_PCI_SUBSYSTEM_ID = 140, "GpuPciSubsystemId": 0;
        HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142, "HostNumaMemoryPoolsSupported": 0;
        HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143, "HostNumaMultinodeIpcSupported": 0;
        HOST_MEMORY_POOLS_SUPPORTED = 144, "HostMemoryPoolsSupported": 0;
        ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = 147, "OnlyPartialHostNativeAtomicSupported": 0;
        ATOMIC_REDUCTION_SUPPORTED = 148, "AtomicReductionSupported": 0;
        LOCALITY_DOMAIN_COUNT = 149, "LocalityDomainCount": 1;
        OVERSIZED_SHARED_MEMORY_PER_BLOCK = 150, "OversizedSharedMemoryPerBlock": 0;
        CIG_STREAMS_SUPPORTED = 151, "CigStreamsSupported": 0;
        LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT = 157, "LocalityDomainMultiprocessorCount": device.sm_count;
        TENSOR_MAP_LARGE_TENSOR_MIN_SIZE = 160, "TensorMapLargeTensorMinSize": i32::MAX;
    }
    driver {
        CAN_TEX2D_GATHER = 44: 1;
        CAN_USE_STREAM_MEM_OPS_V1 = 92: 0;
        CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93: 0;
        CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94: 0;
        VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102: 1;
        HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103: 0;
        HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104: 0;
        HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105: 0;
        GENERIC_COMPRESSION_SUPPORTED = 107: 0;
        GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110: 0;
        CAN_USE_64_BIT_STREAM_MEM_OPS = 122: 0;
        CAN_USE_STREAM_WAIT_VALUE_NOR = 123: 0;
        DMA_BUF_SUPPORTED = 124: 0;
        TENSOR_MAP_ACCESS_SUPPORTED = 127: 0;
        HANDLE_TYPE_FABRIC_SUPPORTED = 128: 0;
        UNIFIED_FUNCTION_POINTERS = 129: 0;
        MULTICAST_SUPPORTED = 132: 0;
        MEM_DECOMPRESS_ALGORITHM_MASK = 136: 0;
        MEM_DECOMPRESS_MAXIMUM_LENGTH = 137: 0;
        HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141: 0;
        HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145: 0;
        HOST_ALLOC_DMA_BUF_SUPPORTED = 146: 0;
        DMA_BUF_MMAP_SUPPORTED = 152: 0;
        LOGICAL_ENDPOINT_UNICAST_SUPPORTED = 153: 0;
        LOGICAL_ENDPOINT_MULTICAST_SUPPORTED = 154: 0;
        LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED = 155: 0;
        LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED = 156: 0;
        LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES = 158: 0;
        VULKAN_CIG_STREAMS_SUPPORTED = 159: 0;
        GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED = 161: 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_knows_more_attributes_than_the_runtime() {
        let device = DeviceDescription::default();
        assert_eq!([0, 100_000].map(|attribute| driver_value(&device, 0, attribute)), [None; 2]);
        assert_eq!(value(&device, 0, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), None);
        assert_eq!(driver_value(&device, 0, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), Some(1));
        assert_eq!(driver_value(&device, 0, MULTICAST_SUPPORTED), Some(0));
        assert_eq!(driver_value(&device, 0, WARP_SIZE), value(&device, 0, WARP_SIZE));
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
