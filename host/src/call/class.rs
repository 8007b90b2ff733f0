//! What kind of work a call is for the host: what it is charged for, and counted as.

use super::{Call, IpcCall, VirtualMemoryCall};

/// A kind of call. A node's host CPU gives each a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallClass {
    /// The program computes by itself for so long.
    Compute {
        /// Host time.
        nanoseconds: u64,
    },
    /// It reads the clock.
    Clock,
    /// A thread ends: no call of CUDA.
    Exit,
    /// A host function has run: no call of CUDA.
    CallBack,
    /// Memory is made.
    Allocation,
    /// Memory ends.
    Free,
    /// Other questions and changes of memory, textures and limits.
    Memory,
    /// A kernel is launched.
    Launch,
    /// A graph is launched.
    GraphLaunch,
    /// Streams are made and end.
    Stream,
    /// The program waits for work.
    Synchronisation,
    /// Copies and fills.
    Copy,
    /// Events, and questions about streams.
    Event,
    /// Modules and attributes of kernels.
    Module,
}

impl Call {
    /// What kind of call it is.
    pub fn class(&self) -> CallClass {
        match self {
            Call::Compute { nanoseconds } => CallClass::Compute { nanoseconds: *nanoseconds },
            Call::ReadClock => CallClass::Clock,
            Call::Exit { .. } => CallClass::Exit,
            Call::CallbackDone { .. } => CallClass::CallBack,
            Call::Malloc { .. } | Call::ArrayCreate { .. } | Call::MallocHost { .. } | Call::MallocManaged { .. } => {
                CallClass::Allocation
            }
            Call::Free { .. } | Call::ArrayDestroy { .. } | Call::FreeHost { .. } | Call::DeviceReset => {
                CallClass::Free
            }
            Call::VirtualMemory(call) => call.class(),
            Call::MallocAsync { .. }
            | Call::FreeAsync { .. }
            | Call::Prefetch { .. }
            | Call::MemoryInfo
            | Call::PointerInfo { .. }
            | Call::TextureCreate { .. }
            | Call::SurfaceCreate { .. }
            | Call::ImageDestroy { .. }
            | Call::TextureBind { .. }
            | Call::SurfaceBind { .. }
            | Call::SetLimit { .. }
            | Call::GetLimit { .. }
            | Call::PeerAccess { .. }
            | Call::HostFunction { .. }
            | Call::NotImplemented { .. } => CallClass::Memory,
            Call::Ipc(call) => call.class(),
            Call::Launch(_) => CallClass::Launch,
            Call::GraphLaunch { .. } => CallClass::GraphLaunch,
            Call::StreamCreate { .. } | Call::StreamDestroy { .. } => CallClass::Stream,
            Call::StreamSynchronize { .. } | Call::DeviceSynchronize | Call::EventSynchronize { .. } => {
                CallClass::Synchronisation
            }
            Call::MemcpyHostToDevice { .. }
            | Call::MemcpyDeviceToHost { .. }
            | Call::MemcpyDeviceToDevice { .. }
            | Call::Copy { .. }
            | Call::Memset { .. } => CallClass::Copy,
            Call::EventCreate { .. }
            | Call::EventDestroy { .. }
            | Call::EventRecord { .. }
            | Call::EventQuery { .. }
            | Call::EventElapsed { .. }
            | Call::StreamQuery { .. }
            | Call::StreamWaitEvent { .. } => CallClass::Event,
            Call::ModuleLoad { .. }
            | Call::ModuleUnload { .. }
            | Call::FunctionAttributes { .. }
            | Call::SetDynamicSharedLimit { .. } => CallClass::Module,
        }
    }
}

impl IpcCall {
    fn class(&self) -> CallClass {
        match self {
            IpcCall::MemoryHandle { .. } | IpcCall::OpenMemory { .. } => CallClass::Memory,
            IpcCall::CloseMemory { .. } => CallClass::Free,
            IpcCall::EventHandle { .. } | IpcCall::OpenEvent { .. } => CallClass::Event,
        }
    }
}

impl VirtualMemoryCall {
    fn class(&self) -> CallClass {
        match self {
            VirtualMemoryCall::Create { .. } => CallClass::Allocation,
            VirtualMemoryCall::Release { .. } | VirtualMemoryCall::Unmap { .. } => CallClass::Free,
            VirtualMemoryCall::Reserve { .. }
            | VirtualMemoryCall::Unreserve { .. }
            | VirtualMemoryCall::Retain { .. }
            | VirtualMemoryCall::Owner { .. }
            | VirtualMemoryCall::Map { .. }
            | VirtualMemoryCall::SetAccess { .. }
            | VirtualMemoryCall::GetAccess { .. } => CallClass::Memory,
        }
    }
}
