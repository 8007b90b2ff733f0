//! Launches.

use super::arguments::{Dim3, In};
use super::driver::LaunchConfig;
use super::stream::StreamHandle;
use std::ffi::c_void;

/// `cudaLaunchAttribute`, `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    /// `cudaLaunchAttributeID`.
    pub kind: u32,
    padding: u32,
    /// Its value, whose meaning depends on `kind`: 64 bytes.
    pub value: [u64; 8],
}

/// Values of [`LaunchAttribute::kind`]: those that are more than hints.
pub mod attribute {
    /// A window of memory whose accesses have a property in the L2.
    pub const ACCESS_POLICY_WINDOW: u32 = 1;
    /// All blocks run at once.
    pub const COOPERATIVE: u32 = 2;
    /// Blocks of a cluster, by extent.
    pub const CLUSTER: u32 = 4;
    /// An event that the kernel triggers.
    pub const PROGRAMMATIC_EVENT: u32 = 7;
    /// An event to record when the launch is complete.
    pub const COMPLETION_EVENT: u32 = 12;
    /// The first number that no attribute has.
    pub const END: u32 = 19;
}

impl LaunchAttribute {
    /// An attribute with a value.
    pub fn new(kind: u32, value: [u64; 8]) -> LaunchAttribute {
        LaunchAttribute { kind, padding: 0, value }
    }

    /// A 32-bit part of the value.
    pub fn word(&self, index: usize) -> u32 {
        (self.value[index / 2] >> (index % 2 * 32)) as u32
    }
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
    /// Its attributes.
    pub attributes: In<LaunchAttribute>,
    /// The number of attributes.
    pub attribute_count: u32,
}

impl From<&LaunchConfig> for LaunchConfiguration {
    fn from(config: &LaunchConfig) -> LaunchConfiguration {
        let extents = |[x, y, z]: [u32; 3]| Dim3 { x, y, z };
        LaunchConfiguration {
            grid: extents(config.grid),
            block: extents(config.block),
            shared_bytes: config.shared_bytes as usize,
            stream: StreamHandle(config.stream as u64),
            attributes: config.attributes,
            attribute_count: config.attribute_count,
        }
    }
}

/// `cudaLaunchParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchParameters {
    /// The kernel.
    pub function: usize,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Addresses of the arguments.
    pub arguments: *const *const c_void,
    /// Dynamic shared memory of a block.
    pub shared_bytes: usize,
    /// The stream.
    pub stream: StreamHandle,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<LaunchAttribute>(72, 8);
        check::<LaunchConfiguration>(56, 8);
        check::<LaunchParameters>(56, 8);
        assert_eq!(std::mem::offset_of!(LaunchConfiguration, attributes), 40);
        assert_eq!(std::mem::offset_of!(LaunchParameters, arguments), 32);
        assert_eq!(std::mem::offset_of!(LaunchAttribute, value), 8);
    }
}
