//! The results of calls.

use super::management::{Activity, DeviceState};
use super::module::{FunctionAttributes, ModuleFunction, ModuleVariable};
use super::virtual_memory::MemoryAccess;
use crate::bytes::Bytes;
use crate::error::CudaError;
use balar_protocol::managed::HostPages;
use serde::{Deserialize, Serialize};

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallResult {
    /// No call has been made yet.
    Start,
    /// The call succeeded and gives no value.
    None,
    /// The address of an allocation.
    Pointer(u64),
    /// The number of an array, or the handle of a texture or surface object; not 0.
    Object(u64),
    /// The number of a new stream, not 0.
    Stream(u32),
    /// The number of a new event, not 0.
    Event(u32),
    /// A loaded module.
    Module {
        /// Its number, not 0.
        module: u32,
        /// Its kernels.
        functions: Vec<ModuleFunction>,
        /// Its variables.
        variables: Vec<ModuleVariable>,
    },
    /// A kernel's attributes.
    Attributes(FunctionAttributes),
    /// The bytes of a synchronous copy from the device.
    Data(Bytes),
    /// Simulated time.
    Time {
        /// Since the start of the simulation.
        picoseconds: u64,
    },
    /// Simulated time between two events.
    Elapsed {
        /// Negative where the end was before the start.
        picoseconds: i64,
    },
    /// Device memory.
    MemoryInfo {
        /// Bytes not allocated.
        free: u64,
        /// All bytes.
        total: u64,
    },
    /// A size in bytes.
    Size(u64),
    /// Facts about an address; `None` if it is in no allocation.
    PointerInfo(Option<PointerDescription>),
    /// The call failed, or reports that earlier work did.
    Error(CudaError),
    /// The device whose memory a handle of virtual memory management stands for.
    Owner(u32),
    /// The access that a device has to mapped memory.
    Access(MemoryAccess),
    /// The pages around a touched address that the host may access now; `None` where that has left the host again.
    HostPages(Option<HostPages>),
    /// The work and the contents of a device.
    DeviceState(DeviceState),
    /// Work of the process that has ended, in the order of the ends.
    Activity(Vec<Activity>),
}

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllocationKind {
    /// Device memory.
    Device,
    /// Pinned host memory.
    Host,
    /// Managed memory.
    Managed,
}

/// An allocation, as its addresses know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerDescription {
    /// Its kind.
    pub kind: AllocationKind,
    /// The device that was current when it was made.
    pub device: u32,
    /// Its first address.
    pub base: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A CUDA call that failed, as a host program reports it when it gives up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{call} failed: {error}")]
pub struct CallFailure {
    /// The function and its arguments.
    pub call: String,
    /// The error.
    pub error: CudaError,
}
