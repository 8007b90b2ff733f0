//! Kernel launches.

use crate::abi::arguments::{Dim3, In};
use crate::abi::launch::{LaunchConfiguration, LaunchParameters};
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::code::launch_parameters::pack;
use crate::session::code::registry;
use crate::session::connection::description;
use crate::session::order::launch::{Configuration, configuration_of, launch, record_events};
use crate::session::order::stream;
use crate::session::state::thread;
use balar_host::CudaError;
use std::ffi::c_void;

/// Launches the kernel that the program names by its host function, or by a handle.
///
/// # Safety
///
/// As [`pack`].
unsafe fn launch_named(
    name: usize,
    configuration: Configuration,
    arguments: *const *const c_void,
) -> Result<(), CudaError> {
    let kernel = registry::kernel(name)?.loaded()?;
    // SAFETY: the caller's promise.
    let parameters = unsafe { pack(&kernel, arguments)? };
    launch(&kernel, configuration, parameters)
}

/// Launches a cooperative kernel for each of several devices, that of its stream. Blocks of different devices do not wait for each
/// other.
///
/// # Safety
///
/// As [`pack`], for each launch.
unsafe fn launch_on_devices(launches: &[LaunchParameters]) -> Result<(), CudaError> {
    let current = thread::device();
    let mut outcome = Ok(());
    for launch in launches {
        let LaunchParameters { function, grid, block, arguments, shared_bytes, stream } = *launch;
        let device = stream::resolve(stream)?.device;
        thread::with(|thread| thread.device.set(device));
        let configuration =
            Configuration { grid, block, shared_bytes, stream, cooperative: true, cluster: None, access_policy: None };
        // SAFETY: the caller's promise.
        outcome = outcome.and_then(|()| unsafe { launch_named(function, configuration, arguments) });
    }
    thread::with(|thread| thread.device.set(current));
    outcome
}

runtime_api! {
    stream fn cudaLaunchKernel(
        function: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared_bytes: usize,
        stream: StreamHandle,
    ) {
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: false, cluster: None, access_policy: None };
        // SAFETY: CUDA's contract.
        unsafe { launch_named(function, configuration, arguments) }
    }

    stream fn __cudaLaunchKernel(
        kernel: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared_bytes: usize,
        stream: StreamHandle,
    ) {
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: false, cluster: None, access_policy: None };
        // SAFETY: CUDA's contract.
        unsafe { launch_named(kernel, configuration, arguments) }
    }

    stream fn cudaLaunchCooperativeKernel(
        function: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared_bytes: usize,
        stream: StreamHandle,
    ) {
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: true, cluster: None, access_policy: None };
        // SAFETY: CUDA's contract.
        unsafe { launch_named(function, configuration, arguments) }
    }

    stream fn cudaLaunchKernelExC(
        configuration: In<LaunchConfiguration>,
        function: usize,
        arguments: *const *const c_void,
    ) {
        let (configuration, events) = configuration_of(&configuration.get()?)?;
        // SAFETY: CUDA's contract.
        unsafe { launch_named(function, configuration, arguments)? };
        record_events(&events, configuration.stream)
    }

    fn cudaLaunchCooperativeKernelMultiDevice(launches: In<LaunchParameters>, count: u32, flags: u32) {
        if flags > 3 || count == 0 || count > description::device_count()? {
            return Err(CudaError::InvalidValue);
        }
        // SAFETY: CUDA's contract.
        unsafe { launch_on_devices(&launches.array(count as usize)?) }
    }
}
