//! Launches, and what is asked of and about functions.

use crate::abi::arguments::{Dim3, In};
use crate::abi::driver::{LaunchConfig, LaunchParameters};
use crate::abi::stream::StreamHandle;
use crate::driver_api;
use crate::runtime::launch::{self, Configuration, LaunchConfiguration};
use crate::session::api::Outcome;
use crate::session::code::{Kernel, LoadedKernel};
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

/// Ends the list of a launch's `extra`.
const EXTRA_END: usize = 0;
/// The next entry of `extra` is the address of all arguments in one buffer.
const EXTRA_BUFFER: usize = 1;
/// The next entry is the address of the buffer's size.
const EXTRA_BYTES: usize = 2;

/// The values of a kernel's parameters, from `arguments` or from `extra`.
///
/// # Safety
///
/// The two are what `cuLaunchKernel` wants for this kernel.
pub(super) unsafe fn parameters(
    kernel: &LoadedKernel,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Result<Vec<u8>, CudaError> {
    if !arguments.is_null() && !extra.is_null() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: the caller's.
    unsafe { if extra.is_null() { launch::pack(kernel, arguments) } else { buffer(kernel, extra) } }
}

/// The arguments in the one buffer that `extra` names.
///
/// # Safety
///
/// `extra` is a list of names and values that ends with [`EXTRA_END`].
unsafe fn buffer(kernel: &LoadedKernel, mut extra: *const *const c_void) -> Result<Vec<u8>, CudaError> {
    let (mut address, mut bytes) = (std::ptr::null::<u8>(), 0);
    // SAFETY: the caller's list; the buffer has as many bytes as it says.
    unsafe {
        loop {
            match extra.read() as usize {
                EXTRA_END => break,
                EXTRA_BUFFER => address = extra.add(1).read().cast(),
                EXTRA_BYTES => bytes = extra.add(1).read().cast::<usize>().read_unaligned(),
                _ => return Err(CudaError::InvalidValue),
            }
            extra = extra.add(2);
        }
        let wanted = kernel.description().parameters.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
        if bytes < wanted as usize || (address.is_null() && wanted > 0) {
            return Err(CudaError::InvalidValue);
        }
        if wanted == 0 {
            return Ok(Vec::new());
        }
        Ok(std::slice::from_raw_parts(address, wanted as usize).to_vec())
    }
}

/// Launches a function.
///
/// # Safety
///
/// As [`parameters`].
unsafe fn start(
    function: u64,
    configuration: Configuration,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome {
    let kernel = Kernel::of_handle(function)?.loaded()?;
    // SAFETY: the caller's.
    let parameters = unsafe { parameters(&kernel, arguments, extra)? };
    launch::launch(&kernel, configuration, parameters)
}

pub(super) fn extents([x, y, z]: [u32; 3]) -> Dim3 {
    Dim3 { x, y, z }
}

/// What a structure of the driver asks for, as the runtime has it.
fn of_runtime(config: &LaunchConfig) -> LaunchConfiguration {
    LaunchConfiguration {
        grid: extents(config.grid),
        block: extents(config.block),
        shared_bytes: config.shared_bytes as usize,
        stream: StreamHandle(config.stream as u64),
        attributes: config.attributes,
        attribute_count: config.attribute_count,
    }
}

driver_api! {
    stream fn cuLaunchKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: StreamHandle, arguments: *const *const c_void, extra: *const *const c_void,
    ) {
        let configuration = Configuration {
            grid: extents([grid_x, grid_y, grid_z]),
            block: extents([block_x, block_y, block_z]),
            shared_bytes: shared_bytes as usize,
            stream,
            cooperative: false,
        };
        // SAFETY: CUDA's contract.
        unsafe { start(function, configuration, arguments, extra) }
    }

    stream fn cuLaunchKernelEx(
        config: In<LaunchConfig>, function: u64, arguments: *const *const c_void, extra: *const *const c_void,
    ) {
        let (configuration, events) = launch::configuration_of(&of_runtime(&config.get()?))?;
        // SAFETY: CUDA's contract.
        unsafe { start(function, configuration, arguments, extra)? };
        launch::record_events(&events, configuration.stream)
    }

    stream fn cuLaunchCooperativeKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: StreamHandle, arguments: *const *const c_void,
    ) {
        let configuration = Configuration {
            grid: extents([grid_x, grid_y, grid_z]),
            block: extents([block_x, block_y, block_z]),
            shared_bytes: shared_bytes as usize,
            stream,
            cooperative: true,
        };
        // SAFETY: CUDA's contract.
        unsafe { start(function, configuration, arguments, std::ptr::null()) }
    }

    context fn cuLaunchCooperativeKernelMultiDevice(launches: In<LaunchParameters>, count: u32, _flags: u32) {
        for launch in launches.array(count as usize)? {
            let configuration = Configuration {
                grid: extents(launch.grid),
                block: extents(launch.block),
                shared_bytes: launch.shared_bytes as usize,
                stream: StreamHandle(launch.stream as u64),
                cooperative: true,
            };
            // SAFETY: CUDA's contract.
            unsafe { start(launch.function as u64, configuration, launch.arguments.cast(), std::ptr::null())? };
        }
        Ok(())
    }

    context fn cuFuncSetCacheConfig(function: u64, _preference: c_int) {
        // A hint.
        Kernel::of_handle(function).map(|_| ())
    }

    context fn cuFuncSetSharedMemConfig(function: u64, _banks: c_int) {
        // Banks of 4 bytes are all there is since the Maxwell generation.
        Kernel::of_handle(function).map(|_| ())
    }
}
