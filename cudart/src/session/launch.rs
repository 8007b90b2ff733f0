//! Kernel launches.

use super::code::LoadedKernel;
use super::event;
use super::operation::{self, Operation};
use crate::abi::arguments::Dim3;
use crate::abi::launch::{LaunchConfiguration, attribute};
use crate::abi::stream::StreamHandle;
use balar_host::call::Launch;
use balar_host::{Call, CudaError};
use std::ffi::c_void;

/// Ends the list of a launch's `extra`.
const EXTRA_END: usize = 0;
/// The next entry of `extra` is the address of all arguments in one buffer.
const EXTRA_BUFFER: usize = 1;
/// The next entry is the address of the buffer's size.
const EXTRA_BYTES: usize = 2;

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

/// The values of a kernel's parameters, from `arguments` or from `extra`.
///
/// # Safety
///
/// The two are what `cuLaunchKernel` wants for this kernel.
pub unsafe fn parameters(
    kernel: &LoadedKernel,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Result<Vec<u8>, CudaError> {
    if !arguments.is_null() && !extra.is_null() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: the caller's.
    unsafe { if extra.is_null() { pack(kernel, arguments) } else { buffer(kernel, extra) } }
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
            // Hints, and permissions to start earlier, which are not used.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::arguments::In;
    use crate::abi::launch::LaunchAttribute;

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
