//! The calls that host programs make of the simulated node, and their results.
//!
//! A call takes simulated time or changes the state of a device. A question that CUDA's runtime answers from the host alone (properties,
//! error texts, launch configurations) is no call.

mod class;
mod copy;
mod facts;
mod graph;
mod ipc;
mod management;
mod module;
mod result;
mod virtual_memory;

pub use balar_protocol::managed::{AdviceChange, HostPages};
pub use class::CallClass;
pub use copy::{CopyEnd, CopyShape};
pub use graph::{Conditional, ConditionalKind, GraphNode};
pub use ipc::IpcCall;
pub use management::{Activity, ActivityWork, CopyPlace, DeviceState, ManagementCall};
pub use module::{BUILT_IN_MODULE, Function, FunctionAttributes, Launch, ModuleFunction, ModuleVariable, VariableKind};
pub use result::{AllocationKind, CallFailure, CallResult, PointerDescription};
pub use virtual_memory::{GRANULARITY, MemoryAccess, VirtualMemoryCall};

use crate::bytes::Bytes;
use crate::image::{ArrayDescription, Resource, TextureDescription};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One CUDA call, or other act, of a host thread. It concerns the thread's current device unless it says otherwise.
///
/// Streams are numbered as [`CallResult::Stream`] gave them, over all devices; 0 is the legacy default stream of the current
/// device. Pointers are addresses of the node ([`memory`](crate::memory)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// `cudaMalloc`; gives [`CallResult::Pointer`].
    Malloc {
        /// Bytes wanted.
        bytes: u64,
    },
    /// `cudaFree`: waits for the device. Also ends managed memory.
    Free {
        /// An address from `Malloc` or `MallocManaged`.
        pointer: u64,
    },
    /// `cudaMallocAsync`: memory of the device, usable in the stream's order; gives [`CallResult::Pointer`] at once.
    MallocAsync {
        /// Bytes wanted.
        bytes: u64,
        /// Stream that orders it.
        stream: u32,
    },
    /// `cudaFreeAsync`: the memory ends when the stream gets there.
    FreeAsync {
        /// An address from `MallocAsync` or `Malloc`.
        pointer: u64,
        /// Stream that orders it.
        stream: u32,
    },
    /// `cudaMallocHost`, `cudaHostAlloc`, `cudaHostRegister`: a range of the host window; gives [`CallResult::Pointer`].
    MallocHost {
        /// Bytes wanted.
        bytes: u64,
    },
    /// `cudaFreeHost`, `cudaHostUnregister`: waits for all devices.
    FreeHost {
        /// An address from `MallocHost`.
        pointer: u64,
    },
    /// `cudaMallocManaged`: a range of the host window that lies, for timing, in device memory; gives [`CallResult::Pointer`].
    MallocManaged {
        /// Bytes wanted.
        bytes: u64,
    },
    /// `cudaMemPrefetchAsync`: ordered in the stream. It moves nothing on a node whose managed memory is always resident.
    Prefetch {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
        /// The device to bring them to; `None` for the host.
        device: Option<u32>,
        /// Stream that orders it.
        stream: u32,
    },
    /// `cudaMemAdvise`.
    Advise {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
        /// The advice.
        advice: AdviceChange,
    },
    /// The thread itself reads or writes managed memory, as a program does by a pointer: no call of CUDA. It is over when the range is
    /// where the host may access it; gives [`CallResult::HostPages`], or nothing on a node whose managed memory is always resident.
    TouchManaged {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
        /// Whether it writes.
        write: bool,
    },
    /// As [`Call::TouchManaged`]; then the thread writes these bytes. Later work finds them.
    WriteManaged {
        /// First address.
        pointer: u64,
        /// The bytes.
        data: Bytes,
    },
    /// As [`Call::TouchManaged`]; then the thread reads the bytes: gives [`CallResult::Data`].
    ReadManaged {
        /// First address.
        pointer: u64,
        /// Bytes.
        bytes: u64,
    },
    /// `cudaMemcpy`, `cudaMemcpy2D`, `cudaMemcpy3D` and their like: rows and slices, from and to memory, arrays or the program's own
    /// bytes. A synchronous one with [`CopyEnd::Bytes`] as its destination gives [`CallResult::Data`]; the bytes of an asynchronous one
    /// go to [`Host::receive`](crate::Host::receive).
    Copy {
        /// Where to.
        destination: CopyEnd,
        /// Where from.
        source: CopyEnd,
        /// Bytes of a row, rows, slices.
        shape: CopyShape,
        /// The program's own number for an asynchronous copy to [`CopyEnd::Bytes`].
        transfer: u32,
        /// Stream that orders the copy.
        stream: u32,
        /// Whether the call returns before the copy is done.
        asynchronous: bool,
    },
    /// `cudaMemset`, `cudaMemset2D`, `cudaMemset3D`, and the driver's `cuMemsetD16` and `cuMemsetD32`.
    Memset {
        /// Address of the first byte.
        pointer: u64,
        /// Bytes of a row, rows, slices.
        shape: CopyShape,
        /// Bytes from a row to the next, from a slice to the next.
        pitch: [u64; 2],
        /// The value of every element, in its low bytes.
        value: u32,
        /// Bytes of an element: 1, 2 or 4.
        element_bytes: u8,
        /// Stream that orders the operation.
        stream: u32,
        /// Whether the call returns before it is done.
        asynchronous: bool,
    },
    /// `cudaMemGetInfo`; gives [`CallResult::MemoryInfo`].
    MemoryInfo,
    /// The facts for `cudaPointerGetAttributes`; gives [`CallResult::PointerInfo`].
    PointerInfo {
        /// The address.
        pointer: u64,
    },
    /// Kernel launch: returns at once, unless the device's queue is full.
    Launch(Launch),
    /// Loads code on the current device; gives [`CallResult::Module`].
    ModuleLoad {
        /// A fatbin container, PTX text, or a cubin; several are linked with each other (separate compilation).
        images: Vec<Bytes>,
        /// Where it comes from, for messages.
        name: String,
    },
    /// `cuModuleUnload`: waits for the device.
    ModuleUnload {
        /// The module.
        module: u32,
    },
    /// `cudaFuncGetAttributes`; gives [`CallResult::Attributes`].
    FunctionAttributes {
        /// The kernel.
        function: Function,
    },
    /// `cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize)`: the most that launches of the kernel may ask for.
    SetDynamicSharedLimit {
        /// The kernel.
        function: Function,
        /// Bytes.
        bytes: u32,
    },
    /// `cudaMallocArray` or `cudaMalloc3DArray`; gives [`CallResult::Object`], the array's number.
    ArrayCreate {
        /// Its contents.
        description: ArrayDescription,
    },
    /// `cudaFreeArray`: waits for the device.
    ArrayDestroy {
        /// The array.
        array: u64,
    },
    /// `cudaCreateTextureObject`; gives [`CallResult::Object`], the handle that kernels take as a 64-bit parameter.
    TextureCreate {
        /// The memory that it reads.
        resource: Resource,
        /// How.
        description: TextureDescription,
    },
    /// `cudaCreateSurfaceObject`; gives [`CallResult::Object`], the handle that kernels take as a 64-bit parameter.
    SurfaceCreate {
        /// The array that it accesses.
        array: u64,
    },
    /// `cudaDestroyTextureObject` or `cudaDestroySurfaceObject`.
    ImageDestroy {
        /// The handle.
        object: u64,
    },
    /// `cudaBindTexture` and its like: gives a meaning to a `.texref` of a module.
    TextureBind {
        /// The module.
        module: u32,
        /// Its name in the PTX.
        name: Arc<str>,
        /// The memory that it reads.
        resource: Resource,
        /// How.
        description: TextureDescription,
    },
    /// `cudaBindSurfaceToArray`: gives a meaning to a `.surfref` of a module.
    SurfaceBind {
        /// The module.
        module: u32,
        /// Its name in the PTX.
        name: Arc<str>,
        /// The array that it accesses.
        array: u64,
    },
    /// `cudaStreamCreateWithPriority`; gives [`CallResult::Stream`].
    StreamCreate {
        /// Whether it does not wait for the legacy default stream, nor that for it.
        non_blocking: bool,
        /// Lower numbers go first; 0 by default.
        priority: i32,
    },
    /// `cudaStreamDestroy`: the stream ends when its work is done.
    StreamDestroy {
        /// The stream.
        stream: u32,
    },
    /// `cudaStreamSynchronize`: waits for everything in the stream.
    StreamSynchronize {
        /// The stream.
        stream: u32,
    },
    /// `cudaStreamQuery`: success, or [`CudaError::NotReady`](crate::CudaError::NotReady).
    StreamQuery {
        /// The stream.
        stream: u32,
    },
    /// `cudaStreamWaitEvent`: later work of the stream waits for the work that the event's last record waits for.
    StreamWaitEvent {
        /// The stream.
        stream: u32,
        /// The event.
        event: u32,
    },
    /// `cudaLaunchHostFunc`, `cudaStreamAddCallback`: the stream continues when the host has run the function and reported this with
    /// [`Call::CallbackDone`].
    HostFunction {
        /// The stream.
        stream: u32,
        /// The program's own number for the function, once for each call.
        function: u64,
    },
    /// A host thread has run the function that [`Host::call_back`](crate::Host::call_back) asked for.
    CallbackDone {
        /// Its number.
        function: u64,
    },
    /// `cudaEventCreateWithFlags`; gives [`CallResult::Event`].
    EventCreate {
        /// Whether it keeps the time (not `cudaEventDisableTiming`).
        timed: bool,
    },
    /// `cudaEventDestroy`.
    EventDestroy {
        /// The event.
        event: u32,
    },
    /// `cudaEventRecord`: the event stands for all work that has been queued in the stream so far.
    EventRecord {
        /// The event.
        event: u32,
        /// The stream.
        stream: u32,
    },
    /// `cudaEventSynchronize`: waits for the event's last record.
    EventSynchronize {
        /// The event.
        event: u32,
    },
    /// `cudaEventQuery`: success, or [`CudaError::NotReady`](crate::CudaError::NotReady).
    EventQuery {
        /// The event.
        event: u32,
    },
    /// `cudaEventElapsedTime`; gives [`CallResult::Elapsed`].
    EventElapsed {
        /// The earlier event.
        start: u32,
        /// The later event.
        end: u32,
    },
    /// `cudaDeviceSynchronize`: waits for everything on the device.
    DeviceSynchronize,
    /// `cudaDeviceReset`: waits for the device, then everything of the program on it ends; failed contexts work again.
    DeviceReset,
    /// `cudaDeviceSetLimit` of the sizes that the simulator has: see [`Limit`].
    SetLimit {
        /// Which.
        limit: Limit,
        /// Bytes.
        bytes: u64,
    },
    /// `cudaDeviceGetLimit`; gives [`CallResult::Size`].
    GetLimit {
        /// Which.
        limit: Limit,
    },
    /// `cudaCtxResetPersistingL2Cache`: no line of the L2 is persisting any more.
    ResetPersistingL2,
    /// `cudaDeviceEnablePeerAccess` and `cudaDeviceDisablePeerAccess`: whether the current device may access `peer`'s memory.
    PeerAccess {
        /// The other device.
        peer: u32,
        /// Enable or disable.
        enabled: bool,
    },
    /// `cudaGraphLaunch`: nodes that wait for each other, as one operation of the stream. Node `i` runs after those of lower index
    /// that it names.
    GraphLaunch {
        /// The nodes.
        nodes: Vec<GraphNode>,
        /// Words in device memory, by their addresses, that get values before any node begins: those that conditional nodes go by.
        conditions: Vec<(u64, u32)>,
        /// Stream that orders the graph.
        stream: u32,
    },
    /// A CUDA function that does not exist here; gives [`CudaError::NotSupported`](crate::CudaError::NotSupported).
    NotImplemented {
        /// Its name.
        function: String,
    },
    /// The host computes by itself for a while.
    Compute {
        /// Host time it takes.
        nanoseconds: u64,
    },
    /// Reads the host's clock, that is, simulated time; gives [`CallResult::Time`].
    ReadClock,
    /// The thread ends, and with the last one the program. `error` names the CUDA error that it gave up on, if any.
    Exit {
        /// The call that failed, and how.
        error: Option<CallFailure>,
    },
    /// A call of virtual memory management.
    VirtualMemory(VirtualMemoryCall),
    /// A call about memory and events of several processes.
    Ipc(IpcCall),
    /// The process cannot tell its own accesses of managed memory by [`Call::TouchManaged`]; this is no call of CUDA. From now on, the host
    /// is taken to access all of its managed memory whenever the process has waited for a device.
    AssumeHostAccesses,
    /// A message of the process to profilers.
    Profiler(ProfilerCall),
    /// A question of the process's tools about the node and its work.
    Management(ManagementCall),
    /// `cudaFuncSetAttribute(cudaFuncAttributePreferredSharedMemoryCarveout)` or `cudaFuncSetCacheConfig`: how much of the largest shared
    /// memory of an SM launches of the kernel would have.
    SetPreferredCarveOut {
        /// The kernel.
        function: Function,
        /// 0 to 100; nothing where the driver is to choose.
        percent: Option<u8>,
    },
}

/// A message of a process to profilers: which part of it is to be measured. It takes no time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProfilerCall {
    /// `cudaProfilerStart`: from now on, its work is of interest.
    Start,
    /// `cudaProfilerStop`: no longer.
    Stop,
    /// A range of this name begins (NVTX).
    Begin(String),
    /// A range of this name ends.
    End(String),
}

/// Sizes of a device that a program can set before it launches kernels (`cudaLimit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// `cudaLimitStackSize`: local stack of a thread.
    Stack,
    /// `cudaLimitPrintfFifoSize`: printed text that is not yet taken.
    PrintQueue,
    /// `cudaLimitMallocHeapSize`: the heap of kernels.
    Heap,
    /// `cudaLimitDevRuntimePendingLaunchCount`: launches of kernels that wait; not bytes but their number.
    PendingLaunches,
    /// `cudaLimitPersistingL2CacheSize`: the part of the L2 that is set aside for persisting lines.
    PersistingL2,
}

impl Call {
    /// A linear `cudaMemset`.
    pub fn memset(pointer: u64, value: u8, bytes: u64, stream: u32, asynchronous: bool) -> Call {
        Call::Memset {
            pointer,
            shape: CopyShape::linear(bytes),
            pitch: [bytes; 2],
            value: u32::from(value),
            element_bytes: 1,
            stream,
            asynchronous,
        }
    }

    /// A linear copy from the program's own memory: bytes as they are when the call is made.
    pub fn copy_to_device(destination: u64, data: Bytes, stream: u32, asynchronous: bool) -> Call {
        let shape = CopyShape::linear(data.len());
        let (destination, source) = (CopyEnd::linear(destination), CopyEnd::Bytes(data));
        Call::Copy { destination, source, shape, transfer: 0, stream, asynchronous }
    }

    /// A linear copy to the program's own memory; `transfer` is the program's number for an asynchronous one.
    pub fn copy_from_device(source: u64, bytes: u64, transfer: u32, stream: u32, asynchronous: bool) -> Call {
        let shape = CopyShape::linear(bytes);
        let (destination, source) = (CopyEnd::Bytes(Bytes::absent(bytes)), CopyEnd::linear(source));
        Call::Copy { destination, source, shape, transfer, stream, asynchronous }
    }

    /// A linear copy between two addresses of the node: within a device, between devices, from or to pinned or managed memory.
    pub fn copy_within(destination: u64, source: u64, bytes: u64, stream: u32, asynchronous: bool) -> Call {
        let shape = CopyShape::linear(bytes);
        let (destination, source) = (CopyEnd::linear(destination), CopyEnd::linear(source));
        Call::Copy { destination, source, shape, transfer: 0, stream, asynchronous }
    }
}
