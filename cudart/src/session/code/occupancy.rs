//! How many blocks an SM holds: as NVIDIA's occupancy calculator has it (CUDA C++ Programming Guide, "Hardware Multithreading").

use crate::session::code::function;
use crate::session::code::loaded::Kernel;
use crate::session::connection::description;
use crate::session::order::launch::Configuration;
use balar_host::call::FunctionAttributes;
use balar_host::{CtaNeeds, CudaError, DeviceDescription, MAXIMUM_CLUSTER, PORTABLE_CLUSTER, SmResources};
use std::ffi::c_int;
use std::sync::PoisonError;

/// Threads of a warp.
const WARP: u32 = 32;
/// Threads that a block can have.
const MAXIMUM_THREADS: u32 = 1024;
/// `cudaOccupancyDisableCachingOverride`.
const DISABLE_CACHING_OVERRIDE: u32 = 1;

/// How many blocks of a kernel an SM holds.
fn blocks(device: &DeviceDescription, kernel: &FunctionAttributes, threads: u32, dynamic_bytes: u64) -> u32 {
    if threads == 0 || threads > kernel.maximum_threads || dynamic_bytes > kernel.maximum_dynamic_shared_bytes.into() {
        return 0;
    }
    let shared = u32::try_from(u64::from(kernel.shared_bytes) + dynamic_bytes).unwrap_or(u32::MAX);
    device.sm().room_for(&CtaNeeds::of_threads(threads, kernel.registers, shared), device.sm_ctas)
}

/// The dynamic shared memory that each of several blocks can have.
fn dynamic_shared_bytes(device: &DeviceDescription, kernel: &FunctionAttributes, blocks: u32) -> u64 {
    let SmResources { shared_unit, shared_reserved, .. } = device.sm();
    let unit = u64::from(shared_unit);
    let of_block = u64::from(device.sm_shared_bytes) / u64::from(blocks) / unit * unit;
    let used = u64::from(kernel.shared_bytes) + u64::from(shared_reserved);
    of_block.saturating_sub(used).min(kernel.maximum_dynamic_shared_bytes.into())
}

/// The device that runs the kernel, and the kernel's attributes there, which the simulator is asked for.
fn loaded(kernel: &Kernel) -> Result<(&'static DeviceDescription, FunctionAttributes), CudaError> {
    Ok((description::device(kernel.device())?, function::attributes(kernel)?))
}

/// How many blocks of so many threads of a kernel an SM holds.
pub fn active_blocks(kernel: &Kernel, threads: c_int, dynamic_bytes: usize, flags: u32) -> Result<c_int, CudaError> {
    if flags & !DISABLE_CACHING_OVERRIDE != 0 || threads <= 0 {
        return Err(CudaError::InvalidValue);
    }
    let (device, kernel) = loaded(kernel)?;
    Ok(blocks(device, &kernel, threads as u32, dynamic_bytes as u64) as c_int)
}

/// The number of threads of a block, `limit` at most where that is above zero, with which an SM holds most threads of a kernel; and how
/// many such blocks the device holds.
pub fn best_block(
    kernel: &Kernel,
    dynamic_bytes: impl Fn(c_int) -> usize,
    limit: c_int,
) -> Result<(c_int, c_int), CudaError> {
    let (device, kernel) = loaded(kernel)?;
    let (blocks, threads) = best_block_of(device, &kernel, |threads| dynamic_bytes(threads as c_int) as u64, limit);
    Ok(((blocks * device.sm_count) as c_int, threads as c_int))
}

/// Blocks of an SM, and threads of each.
fn best_block_of(
    device: &DeviceDescription,
    kernel: &FunctionAttributes,
    dynamic_bytes: impl Fn(u32) -> u64,
    limit: c_int,
) -> (u32, u32) {
    let most = kernel.maximum_threads.min(MAXIMUM_THREADS);
    let most = if limit > 0 { most.min(limit as u32) } else { most };
    let (mut best, mut threads_of_sm) = ((0, 0), 0);
    // The largest one first: of several that are as good it is that. It need not be a multiple of the warp's size.
    let mut threads = most;
    while threads > 0 {
        let held = blocks(device, kernel, threads, dynamic_bytes(threads));
        if held * threads > threads_of_sm {
            (best, threads_of_sm) = ((held, threads), held * threads);
        }
        threads = (threads - 1) / WARP * WARP;
    }
    best
}

/// Clusters of so many blocks that the device runs at once, where an SM holds so many blocks.
fn clusters(device: &DeviceDescription, blocks: u32, size: u32) -> u32 {
    device.cluster_groups.iter().map(|sms| sms * blocks / size.max(1)).sum()
}

/// What a configuration asks of an SM: the device, blocks of an SM, and blocks of a cluster.
fn asked(
    kernel: &Kernel,
    configuration: &Configuration,
) -> Result<(&'static DeviceDescription, u32, Option<u32>), CudaError> {
    let settings = *kernel.clusters.lock().unwrap_or_else(PoisonError::into_inner);
    let (device, attributes) = loaded(kernel)?;
    if device.cluster_groups.is_empty() {
        return Err(CudaError::NotSupported);
    }
    let named = settings.of_launch(configuration.cluster);
    let cluster = match (attributes.cluster, named) {
        (Some(required), Some(named)) if required != named => return Err(CudaError::InvalidClusterSize),
        (required, named) => required.or(named),
    };
    let block = configuration.block;
    let threads = [block.x, block.y, block.z].into_iter().fold(1, u32::saturating_mul);
    let blocks = blocks(device, &attributes, threads, configuration.shared_bytes as u64);
    let size = cluster.map(|cluster| cluster.into_iter().fold(1, u32::saturating_mul));
    Ok((device, blocks, size))
}

/// The clusters of a launch that the device runs at once.
pub fn active_clusters(kernel: &Kernel, configuration: &Configuration) -> Result<c_int, CudaError> {
    let (device, blocks, size) = asked(kernel, configuration)?;
    let size = size.unwrap_or(1);
    let most = if is_non_portable(kernel) { MAXIMUM_CLUSTER } else { PORTABLE_CLUSTER };
    if size > most {
        return Err(CudaError::InvalidClusterSize);
    }
    Ok(clusters(device, blocks, size) as c_int)
}

/// The blocks of the largest cluster with which the device could run a launch, a power of two.
pub fn largest_cluster(kernel: &Kernel, configuration: &Configuration) -> Result<c_int, CudaError> {
    let (device, blocks, _) = asked(kernel, configuration)?;
    let most = if is_non_portable(kernel) { MAXIMUM_CLUSTER } else { PORTABLE_CLUSTER };
    let sizes = std::iter::successors(Some(most), |size| Some(size / 2)).take_while(|size| *size > 0);
    Ok(sizes.into_iter().find(|&size| clusters(device, blocks, size) > 0).unwrap_or(0) as c_int)
}

/// Has the program allowed clusters that not every GPU with clusters runs?
fn is_non_portable(kernel: &Kernel) -> bool {
    kernel.clusters.lock().unwrap_or_else(PoisonError::into_inner).non_portable
}

/// The dynamic shared memory that each block can have where an SM holds so many.
pub fn available_shared_bytes(kernel: &Kernel, blocks: c_int, threads: c_int) -> Result<usize, CudaError> {
    if blocks <= 0 || threads <= 0 {
        return Err(CudaError::InvalidValue);
    }
    let (device, kernel) = loaded(kernel)?;
    if self::blocks(device, &kernel, threads as u32, 0) < blocks as u32 {
        return Err(CudaError::InvalidValue);
    }
    Ok(dynamic_shared_bytes(device, &kernel, blocks as u32) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Volta, Turing and Ampere.
    fn devices() -> [DeviceDescription; 3] {
        let device = |compute_capability, shared, optin, warps, ctas| DeviceDescription {
            compute_capability,
            sm_registers: 65_536,
            sm_threads: warps * WARP,
            sm_warps: warps,
            sm_ctas: ctas,
            sm_shared_bytes: shared,
            cta_shared_bytes_optin: optin,
            ..DeviceDescription::default()
        };
        [
            device((7, 0), 98_304, 98_304, 64, 32),
            device((7, 5), 65_536, 65_536, 32, 16),
            device((8, 0), 167_936, 166_912, 64, 32),
        ]
    }

    /// The results of `cudaOccMaxActiveBlocksPerMultiprocessor` of NVIDIA's `cuda_occupancy.h` (CUDA 12.6).
    #[test]
    fn blocks_are_as_many_as_the_calculator_says() {
        // Device; registers, threads, static and dynamic shared memory; blocks.
        let cases = [
            (0, 16, 32, 0, 65_536, 1),
            (0, 37, 96, 0, 0, 16),
            (0, 37, 96, 0, 3_000, 16),
            (0, 37, 96, 0, 49_152, 2),
            (0, 37, 96, 12_288, 0, 8),
            (0, 37, 96, 12_288, 3_000, 6),
            (0, 37, 96, 12_288, 49_152, 1),
            (0, 37, 1000, 0, 0, 1),
            (0, 37, 1000, 0, 3_000, 1),
            (0, 37, 1000, 0, 49_152, 1),
            (0, 37, 1000, 12_288, 0, 1),
            (0, 37, 1000, 12_288, 3_000, 1),
            (0, 37, 1000, 12_288, 49_152, 1),
            (0, 128, 512, 0, 0, 1),
            (0, 128, 1024, 0, 0, 0),
            (0, 255, 512, 0, 0, 0),
            (0, 255, 1024, 0, 0, 0),
            (1, 0, 32, 0, 0, 16),
            (1, 64, 192, 12_288, 3_000, 4),
            (2, 32, 64, 1_000, 0, 32),
            (2, 32, 64, 1_000, 49_152, 3),
            (2, 32, 128, 1_000, 0, 16),
            (2, 32, 128, 1_000, 49_152, 3),
        ];
        let devices = devices();
        for (index, registers, threads, shared_bytes, dynamic_bytes, expected) in cases {
            let device = &devices[index];
            let kernel = FunctionAttributes {
                registers,
                shared_bytes,
                maximum_threads: 1024,
                maximum_dynamic_shared_bytes: device.cta_shared_bytes_optin - shared_bytes,
                ..FunctionAttributes::default()
            };
            let found = blocks(device, &kernel, threads, dynamic_bytes);
            assert_eq!(found, expected, "{index} {registers} {threads} {shared_bytes} {dynamic_bytes}");
        }
    }

    #[test]
    fn the_best_block_fills_an_sm_with_most_threads() {
        // A warp of 37 registers takes 1280 of 16384 in its part of the SM: an SM holds 48 warps, as 2 blocks of 24 or more smaller ones.
        // At most 500 threads: 3 blocks of 500 leave nothing of the third, 16 warps each, while 4 of 12 warps have 1536 threads.
        let kernel = FunctionAttributes { registers: 37, maximum_threads: 1024, ..FunctionAttributes::default() };
        let volta = &devices()[0];
        assert_eq!(best_block_of(volta, &kernel, |_| 0, 0), (2, 768));
        assert_eq!(best_block_of(volta, &kernel, |_| 0, 500), (4, 384));
        // The shared memory of an SM holds one such block.
        let kernel = FunctionAttributes { registers: 16, maximum_dynamic_shared_bytes: 98_304, ..kernel };
        assert_eq!(best_block_of(volta, &kernel, |_| 60_000, 0), (1, 1024));
    }

    #[test]
    fn clusters_are_within_groups_of_sms() {
        let device = DeviceDescription { cluster_groups: vec![18, 16], ..devices()[2].clone() };
        assert_eq!([1, 2, 4, 16, 32].map(|size| clusters(&device, 1, size)), [34, 17, 8, 2, 0]);
        assert_eq!([4, 32].map(|size| clusters(&device, 2, size)), [17, 2]);
    }

    /// The results of `cudaOccAvailableDynamicSMemPerBlock` of the same header for two blocks.
    #[test]
    fn two_blocks_share_what_there_is() {
        let kernel = |shared_bytes| FunctionAttributes {
            shared_bytes,
            maximum_dynamic_shared_bytes: 98_304 - shared_bytes,
            ..FunctionAttributes::default()
        };
        let volta = &devices()[0];
        assert_eq!(dynamic_shared_bytes(volta, &kernel(0), 2), 49_152);
        assert_eq!(dynamic_shared_bytes(volta, &kernel(12_288), 2), 36_864);
    }
}
