//! What is asked of and about functions: attributes and occupancy.

use crate::abi::arguments::{In, Out};
use crate::abi::device_attribute as attribute;
use crate::abi::driver::LaunchConfig;
use crate::session::api::Outcome;
use crate::session::code::Kernel;
use crate::session::{context, device, process};
use crate::{driver_api, forwards_to_runtime, runtime};
use balar_host::CudaError;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

/// Dynamic shared memory that a block of this many threads needs (`CUoccupancyB2DSize`).
type SharedBytesOfBlock = unsafe extern "C" fn(c_int) -> usize;

/// Reads a function's attribute (`CUfunction_attribute`).
fn attribute(place: Out<c_int>, attribute: c_int, function: u64) -> Outcome {
    place.check()?;
    let kernel = Kernel::of_handle(function)?;
    let attributes = crate::runtime::function::attributes(&kernel)?;
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
        // Clusters: not required, none set, no size but the portable ones, no preference.
        10..=15 => 0,
        _ => return Err(CudaError::InvalidValue),
    };
    place.set(value as c_int)
}

/// Changes a function's attribute.
fn set_attribute(function: u64, attribute: c_int, value: c_int) -> Outcome {
    Kernel::of_handle(function)?;
    // The runtime has the same numbers for what can be set.
    let function = function as usize;
    runtime!(function::cudaFuncSetAttribute(function, attribute, value))
}

/// How many blocks of a function an SM holds.
fn blocks_of_sm(function: u64, threads: c_int, dynamic_bytes: usize) -> Result<c_int, CudaError> {
    let mut blocks = 0;
    // SAFETY: the argument is used while `blocks` is there.
    let place = unsafe { Out::new(&raw mut blocks) };
    let function = function as usize;
    runtime!(occupancy::cudaOccupancyMaxActiveBlocksPerMultiprocessor(place, function, threads, dynamic_bytes))?;
    Ok(blocks)
}

/// The number of threads of a block with which an SM holds most threads, and the blocks that fill the device then.
fn best_block(
    function: u64,
    dynamic_bytes: impl Fn(c_int) -> usize,
    limit: c_int,
) -> Result<(c_int, c_int), CudaError> {
    let (_, of_device) = context::current()?;
    let number = |attribute| device::driver_attribute(attribute, of_device as c_int);
    let kernel = Kernel::of_handle(function)?;
    let kernel = crate::runtime::function::attributes(&kernel)?;
    let warp = number(attribute::WARP_SIZE)?;
    let most = number(attribute::MAX_THREADS_PER_BLOCK)?.min(kernel.maximum_threads as c_int);
    let most = if limit > 0 { most.min(limit) } else { most };
    let (mut best, mut threads_of_sm, mut blocks) = (0, 0, 0);
    // The largest one first: of several that are as good it is that. It need not be a multiple of the warp's size.
    let mut threads = most;
    while threads > 0 {
        let held = blocks_of_sm(function, threads, dynamic_bytes(threads))?;
        if held * threads > threads_of_sm {
            (best, threads_of_sm, blocks) = (threads, held * threads, held);
        }
        threads = (threads - 1) / warp * warp;
    }
    Ok((blocks * number(attribute::MULTI_PROCESSOR_COUNT)?, best))
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
    let (blocks, threads) = best_block(function, bytes, limit)?;
    grid.set(blocks)?;
    block.set(threads)
}

forwards_to_runtime! {
    context cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>, function: usize, threads: c_int, dynamic_bytes: usize,
    ) => occupancy::cudaOccupancyMaxActiveBlocksPerMultiprocessor;
    context cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: usize, threads: c_int, dynamic_bytes: usize, flags: u32,
    ) => occupancy::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
    context cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: usize, blocks: c_int, threads: c_int,
    ) => occupancy::cudaOccupancyAvailableDynamicSMemPerBlock;
}

driver_api! {
    context fn cuFuncGetAttribute(place: Out<c_int>, attribute: c_int, function: u64) {
        self::attribute(place, attribute, function)
    }

    context fn cuFuncSetAttribute(function: u64, attribute: c_int, value: c_int) {
        set_attribute(function, attribute, value)
    }

    context fn cuKernelGetAttribute(place: Out<c_int>, attribute: c_int, kernel: u64, device: c_int) {
        process::device_of(device)?;
        context::with_device(device as u32, || self::attribute(place, attribute, kernel))
    }

    context fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: u64, device: c_int) {
        process::device_of(device)?;
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

    context fn cuOccupancyMaxPotentialClusterSize(_blocks: Out<c_int>, function: u64, _config: In<LaunchConfig>) {
        // The devices have no clusters of blocks.
        Kernel::of_handle(function)?;
        Err(CudaError::NotSupported)
    }

    context fn cuOccupancyMaxActiveClusters(_clusters: Out<c_int>, function: u64, _config: In<LaunchConfig>) {
        Kernel::of_handle(function)?;
        Err(CudaError::NotSupported)
    }
}
