//! Kernels that kernels launch (dynamic parallelism): what a launch needs to know of them, and what an SM tells the CTA scheduler.
//!
//! Source of the rules: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism" (the second version, since CUDA 12).

pub use crate::launch::{DeviceKernel, LaunchOrigin};

use crate::launch::{KernelLaunch, LaunchId};
use serde::{Deserialize, Serialize};

/// Launches of kernels that may wait by default (CUDA C++ Programming Guide, `cudaLimitDevRuntimePendingLaunchCount`: 2048).
pub const DEFAULT_PENDING_LAUNCHES: u64 = 2048;
/// Bytes that a context sets aside for each launch that may wait: a header, and the largest block of parameters before CUDA 12.1, 4 KB.
pub const BYTES_A_LAUNCH: u64 = 4096 + 256;

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
