//! Questions of tools about the node and about the work of their process: they are no calls of CUDA, and take no time.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A question of a management tool (NVML) or of a profiler (CUPTI).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManagementCall {
    /// The work and the contents of the device; gives [`CallResult::DeviceState`](super::CallResult::DeviceState).
    DeviceState,
    /// Whether the times of the process's work are kept from now on.
    RecordActivity(bool),
    /// Work that has ended since this was asked before, as much as an answer takes: asked again, it gives the rest. Gives [`CallResult::Activity`](super::CallResult::Activity).
    TakeActivity,
}

impl ManagementCall {
    /// Its subject, in words.
    pub fn name(&self) -> &'static str {
        match self {
            ManagementCall::DeviceState => "question about a device",
            ManagementCall::RecordActivity(_) => "setting of a profiler",
            ManagementCall::TakeActivity => "question of a profiler",
        }
    }
}

/// The work of a device since the start of the run, and its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// Simulated time, picoseconds.
    pub now: u64,
    /// Time in which kernels ran that had been given to the device, picoseconds.
    pub kernels: u64,
    /// Time in which kernels, copies or fills were under way, picoseconds.
    pub busy: u64,
    /// Bytes of its memory that are not allocated.
    pub free: u64,
    /// All bytes of its memory.
    pub total: u64,
}

/// An operation of a device that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The thread that has asked for it, as its welcome numbers it.
    pub thread: u32,
    /// The number of the process's call that asked for it, counted from 0.
    pub call: u64,
    /// The device.
    pub device: u32,
    /// When that call had asked for it, picoseconds of simulated time.
    pub asked: u64,
    /// When it began, picoseconds.
    pub start: u64,
    /// When it ended, picoseconds.
    pub end: u64,
    /// The work.
    pub work: ActivityWork,
}

/// A piece of work of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActivityWork {
    /// A kernel has run.
    Kernel {
        /// Its name in the PTX.
        name: Arc<str>,
        /// Thread blocks in x, y and z.
        grid: [u32; 3],
        /// Threads of a block in x, y and z.
        block: [u32; 3],
        /// Registers of a thread.
        registers: u32,
        /// Static shared memory of a block, bytes.
        static_shared_bytes: u32,
        /// Dynamic shared memory of a block, bytes.
        dynamic_shared_bytes: u32,
        /// Local memory of a thread, bytes.
        local_bytes: u32,
    },
    /// Bytes were copied.
    Copy {
        /// Bytes.
        bytes: u64,
        /// Where from.
        source: CopyPlace,
        /// Where to.
        destination: CopyPlace,
    },
    /// Memory was filled.
    Fill {
        /// Bytes.
        bytes: u64,
        /// The value of every element.
        value: u32,
    },
}

/// Where an end of a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyPlace {
    /// The program's own memory.
    Pageable,
    /// An address of the node.
    Node(u64),
}
