//! Functions: attributes and occupancy.

use crate::abi::arguments::{In, Out};
use crate::abi::driver::LaunchConfig;
use crate::abi::launch::LaunchConfiguration;
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::{Kernel, function, occupancy};
use crate::session::connection::description;
use crate::session::contexts::context;
use crate::session::order::launch;
use balar_host::CudaError;
use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Dynamic shared memory that a block of this many threads needs (`CUoccupancyB2DSize`).
type SharedBytesOfBlock = unsafe extern "C" fn(c_int) -> usize;

/// Reads a function's attribute (`CUfunction_attribute`).
fn attribute(place: Out<c_int>, attribute: c_int, function: u64) -> Outcome {
    place.check()?;
    let kernel = Kernel::of_handle(function)?;
    let attributes = function::attributes(&kernel)?;
    let settings = *kernel.clusters.lock().unwrap_or_else(PoisonError::into_inner);
    let value = match attribute {
        0 => attributes.maximum_threads,
        1 => attributes.shared_bytes,
        2 => attributes.constant_bytes,
        3 => attributes.local_bytes,
        4 => attributes.registers,
        5 => attributes.ptx_version,
        6 => attributes.binary_version,
        // Whether the code was compiled with cached global loads: not so.
        7 => 0,
        8 => attributes.maximum_dynamic_shared_bytes,
        9 => return place.set(kernel.carveout.load(Ordering::Relaxed)),
        10 => u32::from(attributes.cluster_must_be_set),
        11..=13 => {
            let set = settings.required[attribute as usize - 11];
            attributes.cluster.map_or(set, |cluster| cluster[attribute as usize - 11])
        }
        14 => u32::from(settings.non_portable),
        15 => settings.scheduling as u32,
        _ => return Err(CudaError::InvalidValue),
    };
    place.set(value as c_int)
}

/// Changes a function's attribute.
fn set_attribute(function: u64, attribute: c_int, value: c_int) -> Outcome {
    let kernel = Kernel::of_handle(function)?;
    function::set_attribute(&kernel, kernel.device(), attribute, value)
}

/// How many blocks of a function an SM holds.
fn blocks_of_sm(function: u64, threads: c_int, dynamic_bytes: usize, flags: u32) -> Result<c_int, CudaError> {
    occupancy::active_blocks(&*Kernel::of_handle(function)?, threads, dynamic_bytes, flags)
}

fn potential_block(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: u64,
    of_block: Option<SharedBytesOfBlock>,
    dynamic_bytes: usize,
    limit: c_int,
) -> Outcome {
    grid.check()?;
    block.check()?;
    let bytes = |threads| match of_block {
        // SAFETY: the program's own function.
        Some(of_block) => unsafe { of_block(threads) },
        None => dynamic_bytes,
    };
    let (blocks, threads) = occupancy::best_block(&*Kernel::of_handle(function)?, bytes, limit)?;
    grid.set(blocks)?;
    block.set(threads)
}

driver_api! {
    context fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>, function: u64, threads: c_int, dynamic_bytes: usize,
    ) {
        blocks.check()?;
        blocks.set(blocks_of_sm(function, threads, dynamic_bytes, 0)?)
    }

    context fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: u64, threads: c_int, dynamic_bytes: usize, flags: u32,
    ) {
        blocks.check()?;
        blocks.set(blocks_of_sm(function, threads, dynamic_bytes, flags)?)
    }

    context fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: u64, blocks: c_int, threads: c_int,
    ) {
        bytes.check()?;
        bytes.set(occupancy::available_shared_bytes(&*Kernel::of_handle(function)?, blocks, threads)?)
    }

    context fn cuFuncGetAttribute(place: Out<c_int>, attribute: c_int, function: u64) {
        self::attribute(place, attribute, function)
    }

    context fn cuFuncSetAttribute(function: u64, attribute: c_int, value: c_int) {
        set_attribute(function, attribute, value)
    }

    context fn cuKernelGetAttribute(place: Out<c_int>, attribute: c_int, kernel: u64, device: c_int) {
        description::device_of(device)?;
        context::with_device(device as u32, || self::attribute(place, attribute, kernel))
    }

    context fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: u64, device: c_int) {
        description::device_of(device)?;
        context::with_device(device as u32, || set_attribute(kernel, attribute, value))
    }

    context fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, function: u64, of_block: Option<SharedBytesOfBlock>, dynamic_bytes: usize,
        limit: c_int,
    ) {
        potential_block(grid, block, function, of_block, dynamic_bytes, limit)
    }

    context fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>, block: Out<c_int>, function: u64, of_block: Option<SharedBytesOfBlock>, dynamic_bytes: usize,
        limit: c_int, _flags: u32,
    ) {
        potential_block(grid, block, function, of_block, dynamic_bytes, limit)
    }

    context fn cuOccupancyMaxPotentialClusterSize(blocks: Out<c_int>, function: u64, config: In<LaunchConfig>) {
        blocks.check()?;
        let kernel = Kernel::of_handle(function)?;
        let (configuration, _) = launch::configuration_of(&LaunchConfiguration::from(&config.get()?))?;
        blocks.set(occupancy::largest_cluster(&kernel, &configuration)?)
    }

    context fn cuOccupancyMaxActiveClusters(clusters: Out<c_int>, function: u64, config: In<LaunchConfig>) {
        clusters.check()?;
        let kernel = Kernel::of_handle(function)?;
        let (configuration, _) = launch::configuration_of(&LaunchConfiguration::from(&config.get()?))?;
        clusters.set(occupancy::active_clusters(&kernel, &configuration)?)
    }
}
