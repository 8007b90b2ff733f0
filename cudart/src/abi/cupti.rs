//! The structures and numbers of `cupti_activity.h`. Those of CUDA 11.8, 12.9 and 13.5 begin alike: later ones have more at their ends.

use bytemuck::{Pod, Zeroable};
use std::ffi::CStr;

/// A failure, as `CUptiResult` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum CuptiError {
    /// An argument is invalid.
    InvalidParameter = 1,
    /// There is no such context.
    InvalidContext = 3,
    /// It cannot be done now.
    InvalidOperation = 7,
    /// There is no further record.
    MaxLimitReached = 12,
    /// Nothing was pushed.
    QueueEmpty = 18,
    /// There is no such kind of record.
    InvalidKind = 21,
    /// A simulated device does not have it.
    NotSupported = 27,
    /// There is one already.
    MultipleSubscribers = 39,
    /// Anything else.
    Unknown = 999,
}

/// `CUPTI_API_VERSION` of CUDA 11.8, 12.9 and 13.5.
pub const API_VERSIONS: [(u32, u32); 3] = [(11, 18), (12, 28), (13, 130_500)];

/// Kinds of records (`CUpti_ActivityKind`).
pub mod kind {
    /// A copy.
    pub const MEMCPY: u32 = 1;
    /// A fill.
    pub const MEMSET: u32 = 2;
    /// A kernel, for profilers that want one kernel at a time.
    pub const KERNEL: u32 = 3;
    /// A call of the runtime.
    pub const RUNTIME: u32 = 5;
    /// A kernel.
    pub const CONCURRENT_KERNEL: u32 = 10;
    /// A call that waits.
    pub const SYNCHRONIZATION: u32 = 38;
    /// The program's own number for a call.
    pub const EXTERNAL_CORRELATION: u32 = 39;
    /// The highest.
    pub const LAST: u32 = 59;
}

/// `CUpti_ActivityKernel8` and its successors, the beginning.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Kernel {
    /// [`kind::CONCURRENT_KERNEL`] or [`kind::KERNEL`].
    pub kind: u32,
    /// Preferences.
    pub configuration: [u8; 2],
    /// Registers of a thread.
    pub registers: u16,
    /// Partitions of the cache.
    pub partitioned: [u32; 2],
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    /// Nanoseconds: the end with the kernels that it launched; there are none.
    pub completed: u64,
    /// The device.
    pub device: u32,
    /// Its context.
    pub context: u32,
    /// Its stream.
    pub stream: u32,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of a block.
    pub static_shared: u32,
    /// Bytes of a block.
    pub dynamic_shared: u32,
    /// Bytes of a thread.
    pub local: u32,
    /// Bytes of all.
    pub local_total: u32,
    /// The number of the call.
    pub correlation: u32,
    /// The launch.
    pub grid_id: i64,
    /// Address of its name.
    pub name: u64,
    /// Nothing.
    pub reserved: u64,
    /// Nanoseconds; 0 for unknown.
    pub queued: u64,
    /// Nanoseconds; 0 for unknown.
    pub submitted: u64,
    /// How it was launched, and the share of shared memory that it wants.
    pub launch: [u8; 4],
    /// Shared memory of the SM, bytes.
    pub shared_executed: u32,
    /// The node of a graph.
    pub graph_node: u64,
    /// Nothing.
    pub shared_limit: u32,
    /// The graph.
    pub graph: u32,
    /// Nothing.
    pub access_policy: u64,
    /// Nothing.
    pub channel: [u32; 2],
    /// Nothing.
    pub cluster: [u32; 4],
    /// Bytes of all.
    pub local_total_long: u64,
}

/// `CUpti_ActivityMemcpy5` and its successors, the beginning.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Copy {
    /// [`kind::MEMCPY`].
    pub kind: u32,
    /// From where to where: see [`copy_kind`].
    pub copy_kind: u8,
    /// See [`memory_kind`].
    pub source: u8,
    /// See [`memory_kind`].
    pub destination: u8,
    /// 1 where the call did not wait.
    pub flags: u8,
    /// Bytes.
    pub bytes: u64,
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    /// The device.
    pub device: u32,
    /// Its context.
    pub context: u32,
    /// Its stream.
    pub stream: u32,
    /// The number of the call.
    pub correlation: u32,
    /// Nothing.
    pub runtime_correlation: [u32; 2],
    /// Nothing.
    pub reserved: u64,
    /// The node of a graph.
    pub graph_node: u64,
    /// The graph.
    pub graph: [u32; 2],
    /// Nothing.
    pub channel: [u32; 2],
}

/// `CUpti_ActivityMemcpyKind`.
pub mod copy_kind {
    /// Host to device.
    pub const HOST_TO_DEVICE: u8 = 1;
    /// Device to host.
    pub const DEVICE_TO_HOST: u8 = 2;
    /// Within a device.
    pub const DEVICE_TO_DEVICE: u8 = 8;
    /// Within the host.
    pub const HOST_TO_HOST: u8 = 9;
    /// Between two devices.
    pub const PEER_TO_PEER: u8 = 10;
}

/// `CUpti_ActivityMemoryKind`.
pub mod memory_kind {
    /// The program's own memory.
    pub const PAGEABLE: u8 = 1;
    /// Pinned memory.
    pub const PINNED: u8 = 2;
    /// Memory of a device.
    pub const DEVICE: u8 = 3;
    /// Managed memory.
    pub const MANAGED: u8 = 5;
}

/// `CUpti_ActivityMemset4` and its successors, the beginning.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Fill {
    /// [`kind::MEMSET`].
    pub kind: u32,
    /// The value.
    pub value: u32,
    /// Bytes.
    pub bytes: u64,
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    /// The device.
    pub device: u32,
    /// Its context.
    pub context: u32,
    /// Its stream.
    pub stream: u32,
    /// The number of the call.
    pub correlation: u32,
    /// 1 where the call did not wait.
    pub flags: u16,
    /// See [`memory_kind`].
    pub memory: u16,
    /// Nothing.
    pub padding: u32,
    /// Nothing.
    pub reserved: u64,
    /// The node of a graph.
    pub graph_node: u64,
    /// The graph.
    pub graph: [u32; 2],
    /// Nothing.
    pub channel: [u32; 2],
}

/// `CUpti_ActivityAPI`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Api {
    /// [`kind::RUNTIME`].
    pub kind: u32,
    /// The function: see [`function_number`].
    pub function: u32,
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The number of the call.
    pub correlation: u32,
    /// The value that it returned.
    pub result: u32,
}

/// `CUpti_ActivityExternalCorrelation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ExternalCorrelation {
    /// [`kind::EXTERNAL_CORRELATION`].
    pub kind: u32,
    /// Whose number it is.
    pub external_kind: u32,
    /// The number.
    pub external: u64,
    /// The number of the call.
    pub correlation: u32,
    /// Nothing.
    pub reserved: u32,
}

/// `CUpti_ActivitySynchronization`, the beginning of its successor.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Synchronization {
    /// [`kind::SYNCHRONIZATION`].
    pub kind: u32,
    /// See [`synchronization_type`].
    pub synchronization: u32,
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    /// The number of the call.
    pub correlation: u32,
    /// The context.
    pub context: u32,
    /// The stream; all ones for none.
    pub stream: u32,
    /// The event; all ones for none.
    pub event: u32,
}

/// `CUpti_ActivitySynchronizationType` of a call that waits.
pub fn synchronization_type(name: &str) -> u32 {
    match name {
        "cudaEventSynchronize" => 1,
        "cudaStreamSynchronize" => 3,
        "cudaDeviceSynchronize" => 4,
        _ => 0,
    }
}

/// Bytes of a record of a kind in CUPTI of this major version of CUDA.
pub fn record_bytes(kind: u32, major: u32) -> Option<usize> {
    let of = |bytes: [usize; 3]| {
        Some(match major {
            11 => bytes[0],
            12 => bytes[1],
            _ => bytes[2],
        })
    };
    match kind {
        kind::KERNEL | kind::CONCURRENT_KERNEL => of([200, 208, 248]),
        kind::MEMCPY => of([88, 96, 112]),
        kind::MEMSET => of([88, 88, 104]),
        kind::RUNTIME => Some(40),
        kind::EXTERNAL_CORRELATION => Some(24),
        kind::SYNCHRONIZATION => of([40, 56, 56]),
        _ => None,
    }
}

/// Functions of the runtime as calls name them, with their numbers (`CUpti_runtime_api_trace_cbid`) and the names that CUPTI has for them, which
/// end with the version of CUDA that they are of.
const FUNCTIONS: &[(&str, u32, &CStr)] = &[
    ("cudaMalloc", 20, c"cudaMalloc_v3020"),
    ("cudaFree", 22, c"cudaFree_v3020"),
    ("cudaMallocHost", 25, c"cudaMallocHost_v3020"),
    ("cudaFreeHost", 26, c"cudaFreeHost_v3020"),
    ("cudaMemcpy", 31, c"cudaMemcpy_v3020"),
    ("cudaMemcpyAsync", 41, c"cudaMemcpyAsync_v3020"),
    ("cudaMemset", 49, c"cudaMemset_v3020"),
    ("cudaMemsetAsync", 51, c"cudaMemsetAsync_v3020"),
    ("cudaStreamCreate", 129, c"cudaStreamCreate_v3020"),
    ("cudaStreamSynchronize", 131, c"cudaStreamSynchronize_v3020"),
    ("cudaStreamQuery", 132, c"cudaStreamQuery_v3020"),
    ("cudaEventCreate", 134, c"cudaEventCreateWithFlags_v3020"),
    ("cudaEventRecord", 135, c"cudaEventRecord_v3020"),
    ("cudaEventDestroy", 136, c"cudaEventDestroy_v3020"),
    ("cudaEventSynchronize", 137, c"cudaEventSynchronize_v3020"),
    ("cudaEventQuery", 138, c"cudaEventQuery_v3020"),
    ("cudaEventElapsedTime", 139, c"cudaEventElapsedTime_v3020"),
    ("cudaMemcpy3D", 144, c"cudaMemcpy3D_v3020"),
    ("cudaMemcpy3DAsync", 145, c"cudaMemcpy3DAsync_v3020"),
    ("cudaStreamWaitEvent", 147, c"cudaStreamWaitEvent_v3020"),
    ("cudaDeviceSynchronize", 165, c"cudaDeviceSynchronize_v3020"),
    ("cudaLaunchKernel", 211, c"cudaLaunchKernel_v7000"),
    ("cudaLaunchCooperativeKernel", 269, c"cudaLaunchCooperativeKernel_v9000"),
    ("cudaGraphLaunch", 311, c"cudaGraphLaunch_v10000"),
    ("cudaMallocAsync", 373, c"cudaMallocAsync_v11020"),
    ("cudaFreeAsync", 375, c"cudaFreeAsync_v11020"),
];

/// The number of a function of the runtime; `None` of others.
pub fn function_number(name: &str) -> Option<u32> {
    FUNCTIONS.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// The name of the function of the runtime with this number.
pub fn function_name(number: u32) -> Option<&'static CStr> {
    FUNCTIONS.iter().find(|row| row.1 == number).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    #[test]
    fn functions_have_numbers_and_names() {
        assert_eq!(function_number("cudaLaunchKernel").and_then(function_name), Some(c"cudaLaunchKernel_v7000"));
        assert_eq!((function_number("cudaLaunch"), function_name(1)), (None, None));
    }

    /// By a C compiler, with the headers of CUDA 11.8, 12.9 and 13.5.
    #[test]
    fn records_begin_as_those_of_the_headers() {
        check::<Kernel>(200, 8);
        check::<Copy>(88, 8);
        check::<Fill>(88, 8);
        check::<Api>(40, 8);
        check::<ExternalCorrelation>(24, 8);
        check::<Synchronization>(40, 8);
        let kernel = [offset_of!(Kernel, device), offset_of!(Kernel, correlation), offset_of!(Kernel, name)];
        assert_eq!(kernel, [40, 92, 104]);
        assert_eq!([offset_of!(Kernel, shared_executed), offset_of!(Kernel, local_total_long)], [140, 192]);
        assert_eq!([offset_of!(Copy, correlation), offset_of!(Copy, graph)], [44, 72]);
        assert_eq!([offset_of!(Fill, flags), offset_of!(Fill, memory), offset_of!(Fill, graph)], [48, 50, 72]);
        for major in [11, 12, 13] {
            for (kind, least) in [(kind::CONCURRENT_KERNEL, 200), (kind::MEMCPY, 88), (kind::SYNCHRONIZATION, 40)] {
                let bytes = record_bytes(kind, major).unwrap_or(0);
                assert!(bytes >= least && bytes.is_multiple_of(8), "{kind} of {major}");
            }
        }
    }
}
