//! Launches.

use crate::abi::arguments::{Dim3, In};
use crate::abi::driver::{LaunchConfig, LaunchParameters};
use crate::abi::launch::LaunchConfiguration;
use crate::abi::stream::StreamHandle;
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::{Kernel, function, launch_parameters};
use crate::session::order::launch::{self, Configuration};
use std::ffi::{c_int, c_void};

/// Launches a function.
///
/// # Safety
///
/// As [`launch_parameters::parameters`].
unsafe fn start(
    function: u64,
    configuration: Configuration,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Outcome {
    let kernel = Kernel::of_handle(function)?.loaded()?;
    // SAFETY: the caller's.
    let parameters = unsafe { launch_parameters::parameters(&kernel, arguments, extra)? };
    launch::launch(&kernel, configuration, parameters)
}

fn extents([x, y, z]: [u32; 3]) -> Dim3 {
    Dim3 { x, y, z }
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
            cluster: None,
            access_policy: None,
        };
        // SAFETY: CUDA's contract.
        unsafe { start(function, configuration, arguments, extra) }
    }

    stream fn cuLaunchKernelEx(
        config: In<LaunchConfig>, function: u64, arguments: *const *const c_void, extra: *const *const c_void,
    ) {
        let (configuration, events) = launch::configuration_of(&LaunchConfiguration::from(&config.get()?))?;
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
            cluster: None,
            access_policy: None,
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
                cluster: None,
                access_policy: None,
            };
            // SAFETY: CUDA's contract.
            unsafe { start(launch.function as u64, configuration, launch.arguments.cast(), std::ptr::null())? };
        }
        Ok(())
    }

    context fn cuFuncSetCacheConfig(function: u64, preference: c_int) {
        let kernel = Kernel::of_handle(function)?;
        function::set_cache(&kernel, kernel.device(), preference)
    }

    context fn cuFuncSetSharedMemConfig(function: u64, _banks: c_int) {
        // Since the Maxwell generation all banks have 4 bytes.
        Kernel::of_handle(function).map(|_| ())
    }
}
