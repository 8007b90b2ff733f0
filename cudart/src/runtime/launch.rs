//! Kernel launches.

use crate::abi::arguments::{Dim3, In};
use crate::abi::launch::{LaunchAttribute, attribute};
use crate::abi::stream::StreamHandle;
use crate::cuda_api;
use crate::session::code::LoadedKernel;
use crate::session::operation::{self, Operation};
use crate::session::{event, process, registry, thread};
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

/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfiguration {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// The stream.
    pub stream: StreamHandle,
    /// Further wishes.
    pub attributes: In<LaunchAttribute>,
    /// How many.
    pub attribute_count: u32,
}

/// What a configuration and its attributes ask for: the launch, and the simulator's numbers of events to record after it.
pub fn configuration_of(asked: &LaunchConfiguration) -> Result<(Configuration, Vec<u32>), CudaError> {
    let (mut cooperative, mut events) = (false, Vec::new());
    for attribute in asked.attributes.array(asked.attribute_count as usize)? {
        match attribute.kind {
            attribute::COOPERATIVE => cooperative = attribute.word(0) != 0,
            // The devices have no clusters of blocks.
            attribute::CLUSTER if [0, 1, 2].map(|index| attribute.word(index)) != [1, 1, 1] => {
                return Err(CudaError::InvalidClusterSize);
            }
            attribute::PROGRAMMATIC_EVENT | attribute::COMPLETION_EVENT => {
                events.push(event::number(attribute.value[0])?);
            }
            attribute::END.. => return Err(CudaError::InvalidValue),
            // Hints, and permissions to start earlier, of which no use is made.
            _ => {}
        }
    }
    let LaunchConfiguration { grid, block, shared_bytes, stream, .. } = *asked;
    Ok((Configuration { grid, block, shared_bytes, stream, cooperative }, events))
}

/// Records the events that a launch has asked for.
pub fn record_events(events: &[u32], stream: StreamHandle) -> Result<(), CudaError> {
    for &event in events {
        operation::enqueue(stream, Operation::Call(Call::EventRecord { event, stream: 0 }), true)?;
    }
    Ok(())
}

/// `cudaLaunchParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchParameters {
    function: usize,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared_bytes: usize,
    stream: StreamHandle,
}

/// Launches a cooperative kernel for each of several devices, that of its stream. Blocks of different devices do not wait for each
/// other.
///
/// # Safety
///
/// As [`pack`], for each.
unsafe fn launch_on_devices(launches: &[LaunchParameters]) -> Result<(), CudaError> {
    let current = thread::device();
    let mut outcome = Ok(());
    for launch in launches {
        let LaunchParameters { function, grid, block, arguments, shared_bytes, stream } = *launch;
        let device = crate::session::stream::resolve(stream)?.device;
        thread::with(|thread| thread.device.set(device));
        let configuration = Configuration { grid, block, shared_bytes, stream, cooperative: true };
        // SAFETY: the caller's promise.
        outcome = outcome.and_then(|()| unsafe { launch_named(function, configuration, arguments) });
    }
    thread::with(|thread| thread.device.set(current));
    outcome
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
        if flags > 3 || count == 0 || count > process::device_count()? {
            return Err(CudaError::InvalidValue);
        }
        // SAFETY: CUDA's contract.
        unsafe { launch_on_devices(&launches.array(count as usize)?) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<LaunchConfiguration>(56, 8);
        check::<LaunchParameters>(56, 8);
        assert_eq!(offset_of!(LaunchConfiguration, attributes), 40);
        assert_eq!(offset_of!(LaunchParameters, arguments), 32);
    }
    fn attribute(kind: u32, value: u64) -> LaunchAttribute {
        LaunchAttribute::new(kind, [value, 1, 0, 0, 0, 0, 0, 0])
    }

    fn parse(attributes: &[LaunchAttribute]) -> Result<bool, CudaError> {
        let configuration = LaunchConfiguration {
            grid: Dim3::default(),
            block: Dim3::default(),
            shared_bytes: 0,
            stream: StreamHandle(0),
            // SAFETY: the attributes outlive the call.
            attributes: unsafe { In::new(attributes.as_ptr()) },
            attribute_count: attributes.len() as u32,
        };
        configuration_of(&configuration).map(|(configuration, _)| configuration.cooperative)
    }

    #[test]
    fn attributes_are_wishes_or_more() {
        let cluster = |x: u64, y: u64| attribute(attribute::CLUSTER, x | y << 32);
        assert_eq!(parse(&[]), Ok(false));
        assert_eq!(parse(&[attribute(attribute::COOPERATIVE, 1), cluster(1, 1)]), Ok(true));
        assert_eq!(parse(&[cluster(2, 1)]), Err(CudaError::InvalidClusterSize));
        // A priority is a wish; no attribute has the number 19; no event has the handle 0.
        assert_eq!(parse(&[attribute(8, 3)]), Ok(false));
        assert_eq!(parse(&[attribute(attribute::END, 0)]), Err(CudaError::InvalidValue));
        assert_eq!(parse(&[attribute(attribute::COMPLETION_EVENT, 0)]), Err(CudaError::InvalidResourceHandle));
    }

    #[test]
    fn attributes_that_are_not_there_are_refused() {
        let configuration = LaunchConfiguration {
            grid: Dim3::default(),
            block: Dim3::default(),
            shared_bytes: 0,
            stream: StreamHandle(0),
            attributes: In::absent(),
            attribute_count: 1,
        };
        assert_eq!(configuration_of(&configuration).map(|_| ()), Err(CudaError::InvalidValue));
    }
}
