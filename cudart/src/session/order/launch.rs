//! Kernel launches.

use crate::abi::arguments::Dim3;
use crate::abi::launch::{LaunchConfiguration, attribute};
use crate::abi::stream::{AttributeValue, StreamHandle};
use crate::session::code::LoadedKernel;
use crate::session::order::operation::Operation;
use crate::session::order::{access_policy, enqueue, stream};
use crate::session::state::events;
use balar_host::call::Launch;
use balar_host::{Call, CudaError};

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
    /// Blocks of a cluster, where the launch says so.
    pub cluster: Option<[u32; 3]>,
    /// The window of memory whose accesses have a property; `None`: that of the stream.
    pub access_policy: Option<AttributeValue>,
}

/// Launches a kernel with its packed parameters.
pub fn launch(kernel: &LoadedKernel, configuration: Configuration, parameters: Vec<u8>) -> Result<(), CudaError> {
    let Configuration { grid, block, shared_bytes, stream, cooperative, cluster, access_policy } = configuration;
    let access_policy = match access_policy {
        Some(value) => access_policy::window_of(&value, kernel.device)?,
        None => stream::access_policy(&stream::resolve(stream)?)?,
    };
    let call = Call::Launch(Launch {
        function: kernel.function(),
        grid: grid.into(),
        block: block.into(),
        shared_memory_bytes: u32::try_from(shared_bytes).map_err(|_| CudaError::InvalidValue)?,
        stream: 0,
        parameters,
        cooperative,
        cluster: kernel.clusters.of_launch(cluster),
        non_portable_cluster: kernel.clusters.non_portable,
        access_policy,
    });
    enqueue::enqueue_on(kernel.device, stream, Operation::Call(call), true).map(|_| ())
}

/// The launch that a configuration and its attributes ask for, and the simulator's numbers of events to record after it.
pub fn configuration_of(asked: &LaunchConfiguration) -> Result<(Configuration, Vec<u32>), CudaError> {
    let (mut cooperative, mut cluster, mut access_policy, mut events) = (false, None, None, Vec::new());
    for attribute in asked.attributes.array(asked.attribute_count as usize)? {
        match attribute.kind {
            attribute::ACCESS_POLICY_WINDOW => access_policy = Some(attribute.value),
            attribute::COOPERATIVE => cooperative = attribute.word(0) != 0,
            attribute::CLUSTER => {
                let extents = [0, 1, 2].map(|index| attribute.word(index));
                if extents.contains(&0) {
                    return Err(CudaError::InvalidClusterSize);
                }
                cluster = Some(extents);
            }
            attribute::PROGRAMMATIC_EVENT | attribute::COMPLETION_EVENT => {
                events.push(events::number(attribute.value[0])?);
            }
            attribute::END.. => return Err(CudaError::InvalidValue),
            // Hints, and permissions to start earlier, which are not used.
            _ => {}
        }
    }
    let LaunchConfiguration { grid, block, shared_bytes, stream, .. } = *asked;
    Ok((Configuration { grid, block, shared_bytes, stream, cooperative, cluster, access_policy }, events))
}

/// Records the events that a launch has asked for.
pub fn record_events(events: &[u32], stream: StreamHandle) -> Result<(), CudaError> {
    for &event in events {
        enqueue::enqueue(stream, Operation::Call(Call::EventRecord { event, stream: 0 }), true)?;
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

    fn parse(attributes: &[LaunchAttribute]) -> Result<(bool, Option<[u32; 3]>), CudaError> {
        let configuration = LaunchConfiguration {
            grid: Dim3::default(),
            block: Dim3::default(),
            shared_bytes: 0,
            stream: StreamHandle(0),
            // SAFETY: the attributes outlive the call.
            attributes: unsafe { In::new(attributes.as_ptr()) },
            attribute_count: attributes.len() as u32,
        };
        configuration_of(&configuration).map(|(configuration, _)| (configuration.cooperative, configuration.cluster))
    }

    #[test]
    fn attributes_are_wishes_or_more() {
        let cluster = |x: u64, y: u64| attribute(attribute::CLUSTER, x | y << 32);
        assert_eq!(parse(&[]), Ok((false, None)));
        assert_eq!(parse(&[attribute(attribute::COOPERATIVE, 1), cluster(1, 1)]), Ok((true, Some([1; 3]))));
        assert_eq!(parse(&[cluster(2, 4)]), Ok((false, Some([2, 4, 1]))));
        assert_eq!(parse(&[cluster(0, 1)]), Err(CudaError::InvalidClusterSize));
        // A priority is a wish; no attribute has the number 19; no event has the handle 0.
        assert_eq!(parse(&[attribute(8, 3)]), Ok((false, None)));
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
