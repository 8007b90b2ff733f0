//! `cudaDeviceProp`, in the layouts of CUDA 11, 12 and 13.

use bytemuck::Zeroable;

/// The layout of CUDA 11 and before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct DeviceProperties11 {
    /// `name`.
    pub name: [u8; 256],
    /// `uuid`.
    pub uuid: [u8; 16],
    /// `luid`.
    pub luid: [u8; 8],
    /// `luidDeviceNodeMask`.
    pub luid_device_node_mask: u32,
    /// `totalGlobalMem`.
    pub total_global_mem: usize,
    /// `sharedMemPerBlock`.
    pub shared_mem_per_block: usize,
    /// `regsPerBlock`.
    pub regs_per_block: i32,
    /// `warpSize`.
    pub warp_size: i32,
    /// `memPitch`.
    pub mem_pitch: usize,
    /// `maxThreadsPerBlock`.
    pub max_threads_per_block: i32,
    /// `maxThreadsDim`.
    pub max_threads_dim: [i32; 3],
    /// `maxGridSize`.
    pub max_grid_size: [i32; 3],
    /// `clockRate`.
    pub clock_rate: i32,
    /// `totalConstMem`.
    pub total_const_mem: usize,
    /// `major`.
    pub major: i32,
    /// `minor`.
    pub minor: i32,
    /// `textureAlignment`.
    pub texture_alignment: usize,
    /// `texturePitchAlignment`.
    pub texture_pitch_alignment: usize,
    /// `deviceOverlap`.
    pub device_overlap: i32,
    /// `multiProcessorCount`.
    pub multi_processor_count: i32,
    /// `kernelExecTimeoutEnabled`.
    pub kernel_exec_timeout_enabled: i32,
    /// `integrated`.
    pub integrated: i32,
    /// `canMapHostMemory`.
    pub can_map_host_memory: i32,
    /// `computeMode`.
    pub compute_mode: i32,
    /// `maxTexture1D`.
    pub max_texture_1d: i32,
    /// `maxTexture1DMipmap`.
    pub max_texture_1d_mipmap: i32,
    /// `maxTexture1DLinear`.
    pub max_texture_1d_linear: i32,
    /// `maxTexture2D`.
    pub max_texture_2d: [i32; 2],
    /// `maxTexture2DMipmap`.
    pub max_texture_2d_mipmap: [i32; 2],
    /// `maxTexture2DLinear`.
    pub max_texture_2d_linear: [i32; 3],
    /// `maxTexture2DGather`.
    pub max_texture_2d_gather: [i32; 2],
    /// `maxTexture3D`.
    pub max_texture_3d: [i32; 3],
    /// `maxTexture3DAlt`.
    pub max_texture_3d_alt: [i32; 3],
    /// `maxTextureCubemap`.
    pub max_texture_cubemap: i32,
    /// `maxTexture1DLayered`.
    pub max_texture_1d_layered: [i32; 2],
    /// `maxTexture2DLayered`.
    pub max_texture_2d_layered: [i32; 3],
    /// `maxTextureCubemapLayered`.
    pub max_texture_cubemap_layered: [i32; 2],
    /// `maxSurface1D`.
    pub max_surface_1d: i32,
    /// `maxSurface2D`.
    pub max_surface_2d: [i32; 2],
    /// `maxSurface3D`.
    pub max_surface_3d: [i32; 3],
    /// `maxSurface1DLayered`.
    pub max_surface_1d_layered: [i32; 2],
    /// `maxSurface2DLayered`.
    pub max_surface_2d_layered: [i32; 3],
    /// `maxSurfaceCubemap`.
    pub max_surface_cubemap: i32,
    /// `maxSurfaceCubemapLayered`.
    pub max_surface_cubemap_layered: [i32; 2],
    /// `surfaceAlignment`.
    pub surface_alignment: usize,
    /// `concurrentKernels`.
    pub concurrent_kernels: i32,
    /// `ECCEnabled`.
    pub ecc_enabled: i32,
    /// `pciBusID`.
    pub pci_bus_id: i32,
    /// `pciDeviceID`.
    pub pci_device_id: i32,
    /// `pciDomainID`.
    pub pci_domain_id: i32,
    /// `tccDriver`.
    pub tcc_driver: i32,
    /// `asyncEngineCount`.
    pub async_engine_count: i32,
    /// `unifiedAddressing`.
    pub unified_addressing: i32,
    /// `memoryClockRate`.
    pub memory_clock_rate: i32,
    /// `memoryBusWidth`.
    pub memory_bus_width: i32,
    /// `l2CacheSize`.
    pub l2_cache_size: i32,
    /// `persistingL2CacheMaxSize`.
    pub persisting_l2_cache_max_size: i32,
    /// `maxThreadsPerMultiProcessor`.
    pub max_threads_per_multi_processor: i32,
    /// `streamPrioritiesSupported`.
    pub stream_priorities_supported: i32,
    /// `globalL1CacheSupported`.
    pub global_l1_cache_supported: i32,
    /// `localL1CacheSupported`.
    pub local_l1_cache_supported: i32,
    /// `sharedMemPerMultiprocessor`.
    pub shared_mem_per_multiprocessor: usize,
    /// `regsPerMultiprocessor`.
    pub regs_per_multiprocessor: i32,
    /// `managedMemory`.
    pub managed_memory: i32,
    /// `isMultiGpuBoard`.
    pub is_multi_gpu_board: i32,
    /// `multiGpuBoardGroupID`.
    pub multi_gpu_board_group_id: i32,
    /// `hostNativeAtomicSupported`.
    pub host_native_atomic_supported: i32,
    /// `singleToDoublePrecisionPerfRatio`.
    pub single_to_double_precision_perf_ratio: i32,
    /// `pageableMemoryAccess`.
    pub pageable_memory_access: i32,
    /// `concurrentManagedAccess`.
    pub concurrent_managed_access: i32,
    /// `computePreemptionSupported`.
    pub compute_preemption_supported: i32,
    /// `canUseHostPointerForRegisteredMem`.
    pub can_use_host_pointer_for_registered_mem: i32,
    /// `cooperativeLaunch`.
    pub cooperative_launch: i32,
    /// `cooperativeMultiDeviceLaunch`.
    pub cooperative_multi_device_launch: i32,
    /// `sharedMemPerBlockOptin`.
    pub shared_mem_per_block_optin: usize,
    /// `pageableMemoryAccessUsesHostPageTables`.
    pub pageable_memory_access_uses_host_page_tables: i32,
    /// `directManagedMemAccessFromHost`.
    pub direct_managed_mem_access_from_host: i32,
    /// `maxBlocksPerMultiProcessor`.
    pub max_blocks_per_multi_processor: i32,
    /// `accessPolicyMaxWindowSize`.
    pub access_policy_max_window_size: i32,
    /// `reservedSharedMemPerBlock`.
    pub reserved_shared_mem_per_block: usize,
}

/// The layout of CUDA 12 (`cudaGetDeviceProperties_v2`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct DeviceProperties12 {
    /// What there was before.
    pub base: DeviceProperties11,
    /// `hostRegisterSupported`.
    pub host_register_supported: i32,
    /// `sparseCudaArraySupported`.
    pub sparse_cuda_array_supported: i32,
    /// `hostRegisterReadOnlySupported`.
    pub host_register_read_only_supported: i32,
    /// `timelineSemaphoreInteropSupported`.
    pub timeline_semaphore_interop_supported: i32,
    /// `memoryPoolsSupported`.
    pub memory_pools_supported: i32,
    /// `gpuDirectRDMASupported`.
    pub gpu_direct_rdma_supported: i32,
    /// `gpuDirectRDMAFlushWritesOptions`.
    pub gpu_direct_rdma_flush_writes_options: u32,
    /// `gpuDirectRDMAWritesOrdering`.
    pub gpu_direct_rdma_writes_ordering: i32,
    /// `memoryPoolSupportedHandleTypes`.
    pub memory_pool_supported_handle_types: u32,
    /// `deferredMappingCudaArraySupported`.
    pub deferred_mapping_cuda_array_supported: i32,
    /// `ipcEventSupported`.
    pub ipc_event_supported: i32,
    /// `clusterLaunch`.
    pub cluster_launch: i32,
    /// `unifiedFunctionPointers`.
    pub unified_function_pointers: i32,
    /// `reserved2`.
    pub reserved_2: [i32; 2],
    /// `reserved1`.
    pub reserved_1: [i32; 1],
    /// `reserved`.
    pub reserved: [i32; 60],
}

/// The layout of CUDA 13, without what had long been deprecated.
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct DeviceProperties13 {
    /// `name`.
    pub name: [u8; 256],
    /// `uuid`.
    pub uuid: [u8; 16],
    /// `luid`.
    pub luid: [u8; 8],
    /// `luidDeviceNodeMask`.
    pub luid_device_node_mask: u32,
    /// `totalGlobalMem`.
    pub total_global_mem: usize,
    /// `sharedMemPerBlock`.
    pub shared_mem_per_block: usize,
    /// `regsPerBlock`.
    pub regs_per_block: i32,
    /// `warpSize`.
    pub warp_size: i32,
    /// `memPitch`.
    pub mem_pitch: usize,
    /// `maxThreadsPerBlock`.
    pub max_threads_per_block: i32,
    /// `maxThreadsDim`.
    pub max_threads_dim: [i32; 3],
    /// `maxGridSize`.
    pub max_grid_size: [i32; 3],
    /// `totalConstMem`.
    pub total_const_mem: usize,
    /// `major`.
    pub major: i32,
    /// `minor`.
    pub minor: i32,
    /// `textureAlignment`.
    pub texture_alignment: usize,
    /// `texturePitchAlignment`.
    pub texture_pitch_alignment: usize,
    /// `multiProcessorCount`.
    pub multi_processor_count: i32,
    /// `integrated`.
    pub integrated: i32,
    /// `canMapHostMemory`.
    pub can_map_host_memory: i32,
    /// `maxTexture1D`.
    pub max_texture_1d: i32,
    /// `maxTexture1DMipmap`.
    pub max_texture_1d_mipmap: i32,
    /// `maxTexture2D`.
    pub max_texture_2d: [i32; 2],
    /// `maxTexture2DMipmap`.
    pub max_texture_2d_mipmap: [i32; 2],
    /// `maxTexture2DLinear`.
    pub max_texture_2d_linear: [i32; 3],
    /// `maxTexture2DGather`.
    pub max_texture_2d_gather: [i32; 2],
    /// `maxTexture3D`.
    pub max_texture_3d: [i32; 3],
    /// `maxTexture3DAlt`.
    pub max_texture_3d_alt: [i32; 3],
    /// `maxTextureCubemap`.
    pub max_texture_cubemap: i32,
    /// `maxTexture1DLayered`.
    pub max_texture_1d_layered: [i32; 2],
    /// `maxTexture2DLayered`.
    pub max_texture_2d_layered: [i32; 3],
    /// `maxTextureCubemapLayered`.
    pub max_texture_cubemap_layered: [i32; 2],
    /// `maxSurface1D`.
    pub max_surface_1d: i32,
    /// `maxSurface2D`.
    pub max_surface_2d: [i32; 2],
    /// `maxSurface3D`.
    pub max_surface_3d: [i32; 3],
    /// `maxSurface1DLayered`.
    pub max_surface_1d_layered: [i32; 2],
    /// `maxSurface2DLayered`.
    pub max_surface_2d_layered: [i32; 3],
    /// `maxSurfaceCubemap`.
    pub max_surface_cubemap: i32,
    /// `maxSurfaceCubemapLayered`.
    pub max_surface_cubemap_layered: [i32; 2],
    /// `surfaceAlignment`.
    pub surface_alignment: usize,
    /// `concurrentKernels`.
    pub concurrent_kernels: i32,
    /// `ECCEnabled`.
    pub ecc_enabled: i32,
    /// `pciBusID`.
    pub pci_bus_id: i32,
    /// `pciDeviceID`.
    pub pci_device_id: i32,
    /// `pciDomainID`.
    pub pci_domain_id: i32,
    /// `tccDriver`.
    pub tcc_driver: i32,
    /// `asyncEngineCount`.
    pub async_engine_count: i32,
    /// `unifiedAddressing`.
    pub unified_addressing: i32,
    /// `memoryBusWidth`.
    pub memory_bus_width: i32,
    /// `l2CacheSize`.
    pub l2_cache_size: i32,
    /// `persistingL2CacheMaxSize`.
    pub persisting_l2_cache_max_size: i32,
    /// `maxThreadsPerMultiProcessor`.
    pub max_threads_per_multi_processor: i32,
    /// `streamPrioritiesSupported`.
    pub stream_priorities_supported: i32,
    /// `globalL1CacheSupported`.
    pub global_l1_cache_supported: i32,
    /// `localL1CacheSupported`.
    pub local_l1_cache_supported: i32,
    /// `sharedMemPerMultiprocessor`.
    pub shared_mem_per_multiprocessor: usize,
    /// `regsPerMultiprocessor`.
    pub regs_per_multiprocessor: i32,
    /// `managedMemory`.
    pub managed_memory: i32,
    /// `isMultiGpuBoard`.
    pub is_multi_gpu_board: i32,
    /// `multiGpuBoardGroupID`.
    pub multi_gpu_board_group_id: i32,
    /// `hostNativeAtomicSupported`.
    pub host_native_atomic_supported: i32,
    /// `pageableMemoryAccess`.
    pub pageable_memory_access: i32,
    /// `concurrentManagedAccess`.
    pub concurrent_managed_access: i32,
    /// `computePreemptionSupported`.
    pub compute_preemption_supported: i32,
    /// `canUseHostPointerForRegisteredMem`.
    pub can_use_host_pointer_for_registered_mem: i32,
    /// `cooperativeLaunch`.
    pub cooperative_launch: i32,
    /// `sharedMemPerBlockOptin`.
    pub shared_mem_per_block_optin: usize,
    /// `pageableMemoryAccessUsesHostPageTables`.
    pub pageable_memory_access_uses_host_page_tables: i32,
    /// `directManagedMemAccessFromHost`.
    pub direct_managed_mem_access_from_host: i32,
    /// `maxBlocksPerMultiProcessor`.
    pub max_blocks_per_multi_processor: i32,
    /// `accessPolicyMaxWindowSize`.
    pub access_policy_max_window_size: i32,
    /// `reservedSharedMemPerBlock`.
    pub reserved_shared_mem_per_block: usize,
    /// `hostRegisterSupported`.
    pub host_register_supported: i32,
    /// `sparseCudaArraySupported`.
    pub sparse_cuda_array_supported: i32,
    /// `hostRegisterReadOnlySupported`.
    pub host_register_read_only_supported: i32,
    /// `timelineSemaphoreInteropSupported`.
    pub timeline_semaphore_interop_supported: i32,
    /// `memoryPoolsSupported`.
    pub memory_pools_supported: i32,
    /// `gpuDirectRDMASupported`.
    pub gpu_direct_rdma_supported: i32,
    /// `gpuDirectRDMAFlushWritesOptions`.
    pub gpu_direct_rdma_flush_writes_options: u32,
    /// `gpuDirectRDMAWritesOrdering`.
    pub gpu_direct_rdma_writes_ordering: i32,
    /// `memoryPoolSupportedHandleTypes`.
    pub memory_pool_supported_handle_types: u32,
    /// `deferredMappingCudaArraySupported`.
    pub deferred_mapping_cuda_array_supported: i32,
    /// `ipcEventSupported`.
    pub ipc_event_supported: i32,
    /// `clusterLaunch`.
    pub cluster_launch: i32,
    /// `unifiedFunctionPointers`.
    pub unified_function_pointers: i32,
    /// `deviceNumaConfig`.
    pub device_numa_config: i32,
    /// `deviceNumaId`.
    pub device_numa_id: i32,
    /// `mpsEnabled`.
    pub mps_enabled: i32,
    /// `hostNumaId`.
    pub host_numa_id: i32,
    /// `gpuPciDeviceID`.
    pub gpu_pci_device_id: u32,
    /// `gpuPciSubsystemID`.
    pub gpu_pci_subsystem_id: u32,
    /// `hostNumaMultinodeIpcSupported`.
    pub host_numa_multinode_ipc_supported: i32,
    /// `reserved`.
    pub reserved: [i32; 56],
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
}
