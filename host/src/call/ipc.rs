//! Memory and events that processes share.

use serde::{Deserialize, Serialize};

/// A call about memory or events of several processes (`cudaIpc*`, `cuIpc*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpcCall {
    /// `cudaIpcGetMemHandle`; gives [`CallResult::Object`](super::CallResult::Object): the handle of the allocation.
    MemoryHandle {
        /// An address in it.
        pointer: u64,
    },
    /// `cudaIpcOpenMemHandle`; gives [`CallResult::Pointer`](super::CallResult::Pointer): where the allocation begins.
    OpenMemory {
        /// The result of another process's `MemoryHandle`.
        handle: u64,
    },
    /// `cudaIpcCloseMemHandle`: waits for all work of the process on all devices.
    CloseMemory {
        /// The result of `OpenMemory`.
        pointer: u64,
    },
    /// `cudaIpcGetEventHandle`; gives [`CallResult::Object`](super::CallResult::Object): the handle of the event.
    EventHandle {
        /// An event without times.
        event: u32,
    },
    /// `cudaIpcOpenEventHandle`; gives [`CallResult::Event`](super::CallResult::Event).
    OpenEvent {
        /// The result of another process's `EventHandle`.
        handle: u64,
    },
}

impl IpcCall {
    /// The name of the CUDA function.
    pub fn name(&self) -> &'static str {
        match self {
            IpcCall::MemoryHandle { .. } => "cudaIpcGetMemHandle",
            IpcCall::OpenMemory { .. } => "cudaIpcOpenMemHandle",
            IpcCall::CloseMemory { .. } => "cudaIpcCloseMemHandle",
            IpcCall::EventHandle { .. } => "cudaIpcGetEventHandle",
            IpcCall::OpenEvent { .. } => "cudaIpcOpenEventHandle",
        }
    }
}
