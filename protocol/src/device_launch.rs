//! Kernels that kernels launch (dynamic parallelism): what a launch needs to know of them, and what an SM tells the CTA scheduler.
//!
//! Source of the rules: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism" (the second version, since CUDA 12).

use crate::cuda::{Code, KernelLaunch, LaunchId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Launches of kernels that may wait by default (CUDA C++ Programming Guide, `cudaLimitDevRuntimePendingLaunchCount`: 2048).
pub const DEFAULT_PENDING_LAUNCHES: u64 = 2048;
/// Bytes that a context sets aside for each launch that may wait: a header, and the largest block of parameters before CUDA 12.1, 4 KB.
pub const BYTES_A_LAUNCH: u64 = 4096 + 256;

/// The numbers of launches by kernels begin here, above those that the host gives: 28 bits by GPU.
const FIRST_DEVICE_LAUNCH: u32 = 1 << 31;
const NUMBER_BITS: u32 = 28;

impl LaunchId {
    /// The launch of that number, counted from 0, that kernels of a GPU have made.
    pub const fn of_device(gpu: usize, number: u32) -> LaunchId {
        LaunchId(FIRST_DEVICE_LAUNCH | (gpu as u32 & 7) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1))
    }

    /// Whether a kernel has made the launch.
    pub const fn is_of_device(self) -> bool {
        self.0 >= FIRST_DEVICE_LAUNCH
    }

    /// Of such a launch: its number on its GPU, from 0.
    pub const fn device_number(self) -> u32 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

/// A kernel that kernels can launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceKernel {
    /// The address by which code names it.
    pub address: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Its code.
    pub code: Code,
    /// Bytes of its parameter block.
    pub parameter_bytes: u32,
    /// Static shared memory, bytes.
    pub shared_bytes: u32,
    /// Dynamic shared memory that launches may ask for, bytes.
    pub dynamic_shared_limit: u32,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// Threads that a block can have.
    pub maximum_threads: u32,
    /// What a block must be, where the code says so.
    pub required_block: Option<[u32; 3]>,
    /// Why it cannot run, if it cannot.
    pub refusal: Option<Arc<str>>,
}

/// Who has launched a kernel, where no host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOrigin {
    /// The launch whose kernel it was.
    pub parent: LaunchId,
    /// That kernel.
    pub kernel: Arc<str>,
    /// How many kernels stand between it and the host: 1 where its parent was launched by the host.
    pub depth: u32,
    /// The address of the buffer that its parameters were in, which others can have once it has begun; 0 where there was none.
    pub buffer: u64,
}

impl fmt::Display for LaunchOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "launched by kernel {} (launch {})", self.kernel, self.parent)
    }
}

/// A stream of a grid, into which its kernels launch. Launches of one stream run one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceStream {
    /// The stream without a name that the threads of a block share.
    Block(u64),
    /// That of a thread of a block alone (`cudaStreamPerThread`).
    Thread(u64, u32),
    /// One that a kernel has made, by its handle.
    Named(u64),
    /// Each launch in a stream of its own (`cudaStreamFireAndForget`).
    Alone,
    /// Launches that begin when the grid is done, and all that it has launched (`cudaStreamTailLaunch`).
    Tail,
}

/// What a kernel puts into a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum DeviceOperation {
    /// A launch. The CTA scheduler gives it its number and its queue.
    Launch(Box<KernelLaunch>),
    /// The event of a handle is over when all before it in the stream is.
    Record(u64),
    /// What follows waits for the event, as it was recorded last.
    Wait(u64),
}

/// Something that a thread has put into a stream of its grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceWork {
    /// The launch that its grid is.
    pub parent: LaunchId,
    /// The stream.
    pub stream: DeviceStream,
    /// What.
    pub operation: DeviceOperation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_kernels_have_numbers_of_their_own() {
        let launch = LaunchId::of_device(3, 17);
        assert!(launch.is_of_device() && launch > LaunchId(u32::MAX >> 1));
        assert_eq!((launch.device_number(), launch.to_string()), (17, "d17".to_owned()));
        assert!(!LaunchId(17).is_of_device());
        assert_ne!(launch, LaunchId::of_device(2, 17));
    }
}
