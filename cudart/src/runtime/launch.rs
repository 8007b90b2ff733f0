//! Kernel launches.

use crate::core::arguments::Dim3;
use crate::core::code::LoadedKernel;
use crate::core::operation::{self, Operation};
use crate::core::registry;
use crate::core::stream::StreamHandle;
use crate::cuda_api;
use balar_host::call::Launch;
use balar_host::{Call, CudaError};
use std::ffi::c_void;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// The stream.
    pub stream: StreamHandle,
    /// Whether all blocks run at once.
    pub cooperative: bool,
}

/// The values of a kernel's parameters, each at its offset.
///
/// # Safety
///
/// `arguments` points to as many pointers as the kernel has parameters, each to a value of that parameter's size.
pub unsafe fn pack(kernel: &LoadedKernel, arguments: *const *const c_void) -> Result<Vec<u8>, CudaError> {
    let parameters = &kernel.description().parameters;
    let bytes = parameters.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
    let mut block = vec![0; bytes as usize];
    if parameters.is_empty() {
        return Ok(block);
    }
    if arguments.is_null() {
        return Err(CudaError::InvalidValue);
    }
    for (index, &(offset, bytes)) in parameters.iter().enumerate() {
        // SAFETY: the caller's promise; the block reaches to the end of each parameter.
        unsafe {
            let argument = *arguments.add(index);
            if argument.is_null() {
                return Err(CudaError::InvalidValue);
            }
            std::ptr::copy_nonoverlapping(
                argument.cast::<u8>(),
                block.as_mut_ptr().add(offset as usize),
                bytes as usize,
            );
        }
    }
    Ok(block)
}

/// Launches a kernel with its packed parameters.
pub fn launch(kernel: &LoadedKernel, configuration: Configuration, parameters: Vec<u8>) -> Result<(), CudaError> {
    let Configuration { grid, block, shared_bytes, stream, cooperative } = configuration;
    let call = Call::Launch(Launch {
        function: kernel.function(),
        grid: grid.into(),
        block: block.into(),
        shared_memory_bytes: u32::try_from(shared_bytes).map_err(|_| CudaError::InvalidValue)?,
        stream: 0,
        parameters,
        cooperative,
    });
    operation::enqueue_on(kernel.device, stream, Operation::Call(call), true).map(|_| ())
}

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

cuda_api! {
    stream fn cudaLaunchKernel(
        function: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared_bytes: usize,
        stream: StreamHandle,
    ) {
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: false };
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
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: false };
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
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: true };
        // SAFETY: CUDA's contract.
        unsafe { launch_named(function, configuration, arguments) }
    }
}
