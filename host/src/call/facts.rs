//! Facts about every call: its CUDA name, its cost class, the stream that it names, and the bulk data that comes with it.
//!
//! One row of [`facts!`] for each call, by topic. A call without a row does not compile.

use super::{Call, CallClass, CopyEnd, GraphNode, IpcCall, Launch, ProfilerCall, VirtualMemoryCall};
use crate::bytes::Bytes;

/// The table. `$use!(name, class; stream: s; bulk: b)` is the expansion of a row: `s` is the stream's number, `b` the field with bulk data.
macro_rules! facts {
    ($call:expr, $use:ident) => {
        match $call {
            // Memory.
            Call::Malloc { .. } => $use!("cudaMalloc", Allocation),
            Call::Free { .. } => $use!("cudaFree", Free),
            Call::MallocAsync { stream, .. } => $use!("cudaMallocAsync", Memory; stream: stream),
            Call::FreeAsync { stream, .. } => $use!("cudaFreeAsync", Memory; stream: stream),
            Call::MallocHost { .. } => $use!("cudaMallocHost", Allocation),
            Call::FreeHost { .. } => $use!("cudaFreeHost", Free),
            Call::MallocManaged { .. } => $use!("cudaMallocManaged", Allocation),
            Call::Prefetch { stream, .. } => $use!("cudaMemPrefetchAsync", Memory; stream: stream),
            Call::Advise { .. } => $use!("cudaMemAdvise", Advice),
            Call::MemoryInfo => $use!("cudaMemGetInfo", Memory),
            Call::PointerInfo { .. } => $use!("cudaPointerGetAttributes", Memory),
            Call::VirtualMemory(call) => $use!(call.name(), (call.class())),
            Call::Ipc(call) => $use!(call.name(), (call.class())),
            // Copies and fills.
            Call::Copy { destination, source, shape, stream, asynchronous, .. } => {
                $use!(copy_name(destination, source, shape.is_row(), *asynchronous), Copy; stream: stream; bulk: source)
            }
            Call::Memset { stream, asynchronous, .. } => {
                $use!(if *asynchronous { "cudaMemsetAsync" } else { "cudaMemset" }, Copy; stream: stream)
            }
            // Launches.
            Call::Launch(Launch { cooperative, stream, .. }) => {
                $use!(launch_name(*cooperative), Launch; stream: stream)
            }
            Call::GraphLaunch { nodes, stream, .. } => $use!("cudaGraphLaunch", GraphLaunch; stream: stream; bulk: nodes),
            // Modules.
            Call::ModuleLoad { images, .. } => $use!("cuModuleLoadData", Module; bulk: images),
            Call::ModuleUnload { .. } => $use!("cuModuleUnload", Module),
            Call::FunctionAttributes { .. } => $use!("cudaFuncGetAttributes", Module),
            Call::SetDynamicSharedLimit { .. } | Call::SetPreferredCarveOut { .. } => {
                $use!("cudaFuncSetAttribute", Module)
            }
            // Arrays, textures and surfaces.
            Call::ArrayCreate { .. } => $use!("cudaMalloc3DArray", Allocation),
            Call::ArrayDestroy { .. } => $use!("cudaFreeArray", Free),
            Call::TextureCreate { .. } => $use!("cudaCreateTextureObject", Memory),
            Call::SurfaceCreate { .. } => $use!("cudaCreateSurfaceObject", Memory),
            Call::ImageDestroy { .. } => $use!("cudaDestroyTextureObject", Memory),
            Call::TextureBind { .. } => $use!("cudaBindTexture", Memory),
            Call::SurfaceBind { .. } => $use!("cudaBindSurfaceToArray", Memory),
            // Streams and events. Some of these calls are about a stream, and not for one.
            Call::StreamCreate { .. } => $use!("cudaStreamCreate", Stream),
            Call::StreamDestroy { .. } => $use!("cudaStreamDestroy", Stream),
            Call::StreamSynchronize { .. } => $use!("cudaStreamSynchronize", Synchronisation),
            Call::StreamQuery { .. } => $use!("cudaStreamQuery", Event),
            Call::StreamWaitEvent { stream, .. } => $use!("cudaStreamWaitEvent", Event; stream: stream),
            Call::HostFunction { stream, .. } => $use!("cudaLaunchHostFunc", Memory; stream: stream),
            Call::CallbackDone { .. } => $use!("host function", CallBack),
            Call::EventCreate { .. } => $use!("cudaEventCreate", Event),
            Call::EventDestroy { .. } => $use!("cudaEventDestroy", Event),
            Call::EventRecord { stream, .. } => $use!("cudaEventRecord", Event; stream: stream),
            Call::EventSynchronize { .. } => $use!("cudaEventSynchronize", Synchronisation),
            Call::EventQuery { .. } => $use!("cudaEventQuery", Event),
            Call::EventElapsed { .. } => $use!("cudaEventElapsedTime", Event),
            // Devices.
            Call::DeviceSynchronize => $use!("cudaDeviceSynchronize", Synchronisation),
            Call::DeviceReset => $use!("cudaDeviceReset", Free),
            Call::SetLimit { .. } => $use!("cudaDeviceSetLimit", Memory),
            Call::GetLimit { .. } => $use!("cudaDeviceGetLimit", Memory),
            Call::ResetPersistingL2 => $use!("cudaCtxResetPersistingL2Cache", Memory),
            Call::PeerAccess { enabled, .. } => $use!(peer_name(*enabled), Memory),
            // Calls that CUDA does not have.
            Call::NotImplemented { .. } => $use!("a function that is not implemented", Memory),
            Call::Compute { nanoseconds } => $use!("compute", (compute(*nanoseconds))),
            Call::TouchManaged { .. } => $use!("touch of managed memory", Access),
            Call::WriteManaged { data, .. } => $use!("write to managed memory", Access; bulk: data),
            Call::ReadManaged { .. } => $use!("read of managed memory", Access),
            Call::AssumeHostAccesses => $use!("assumption about accesses to managed memory", Access),
            Call::Profiler(call) => $use!(profiler_name(call), Access),
            Call::Management(call) => $use!(call.name(), Management),
            Call::ReadClock => $use!("read clock", Clock),
            Call::Exit { .. } => $use!("exit", Exit),
        }
    };
}

/// The name of a row.
macro_rules! name {
    ($name:expr, ($class:expr)) => {{
        let _ = $class;
        $name
    }};
    ($name:expr, $class:tt $(; stream: $stream:ident)? $(; bulk: $bulk:ident)?) => {{
        $(let _ = $stream;)?
        $(let _ = $bulk;)?
        $name
    }};
}

/// The class of a row.
macro_rules! class {
    ($name:expr, ($class:expr) $(; stream: $stream:ident)? $(; bulk: $bulk:ident)?) => {{
        let _ = $name;
        $class
    }};
    ($name:expr, $class:ident $(; stream: $stream:ident)? $(; bulk: $bulk:ident)?) => {{
        let _ = $name;
        $(let _ = $stream;)?
        $(let _ = $bulk;)?
        CallClass::$class
    }};
}

/// The stream of a row.
macro_rules! stream {
    ($name:expr, ($class:expr)) => {{
        let _ = ($name, $class);
        None
    }};
    ($name:expr, $class:tt; stream: $stream:ident $(; bulk: $bulk:ident)?) => {{
        let _ = $name;
        $(let _ = $bulk;)?
        Some($stream)
    }};
    ($name:expr, $class:tt $(; bulk: $bulk:ident)?) => {{
        let _ = $name;
        $(let _ = $bulk;)?
        None
    }};
}

/// The field with the bulk data of a row.
macro_rules! bulk {
    ($name:expr, ($class:expr)) => {{
        let _ = ($name, $class);
        Vec::new()
    }};
    ($name:expr, $class:tt $(; stream: $stream:ident)?; bulk: $bulk:ident) => {{
        let _ = $name;
        $(let _ = $stream;)?
        $bulk.bulk()
    }};
    ($name:expr, $class:tt $(; stream: $stream:ident)?) => {{
        let _ = $name;
        $(let _ = $stream;)?
        Vec::new()
    }};
}

/// As [`bulk!`], to change the field.
macro_rules! bulk_mut {
    ($name:expr, ($class:expr)) => {{
        let _ = ($name, $class);
        Vec::new()
    }};
    ($name:expr, $class:tt $(; stream: $stream:ident)?; bulk: $bulk:ident) => {{
        let _ = $name;
        $(let _ = $stream;)?
        $bulk.bulk_mut()
    }};
    ($name:expr, $class:tt $(; stream: $stream:ident)?) => {{
        let _ = $name;
        $(let _ = $stream;)?
        Vec::new()
    }};
}

impl Call {
    /// The name of the CUDA function, or of the act.
    pub fn name(&self) -> &'static str {
        facts!(self, name)
    }

    /// Its class.
    pub fn class(&self) -> CallClass {
        facts!(self, class)
    }

    /// The stream that the call puts its work into.
    pub fn stream(&self) -> Option<u32> {
        facts!(self, stream).copied()
    }

    /// As [`Call::stream`], to name another stream.
    pub fn stream_mut(&mut self) -> Option<&mut u32> {
        facts!(self, stream)
    }

    /// The bulk data that comes with the call, in the order of its fields.
    pub fn payloads(&self) -> Vec<&Bytes> {
        facts!(self, bulk)
    }

    /// As [`Call::payloads`], to put the data in place.
    pub fn payloads_mut(&mut self) -> Vec<&mut Bytes> {
        facts!(self, bulk_mut)
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

fn copy_name(destination: &CopyEnd, source: &CopyEnd, is_row: bool, asynchronous: bool) -> &'static str {
    let is_array = |end: &CopyEnd| matches!(end, CopyEnd::Array { .. });
    match (is_row && !is_array(destination) && !is_array(source), asynchronous) {
        (true, false) => "cudaMemcpy",
        (true, true) => "cudaMemcpyAsync",
        (false, false) => "cudaMemcpy3D",
        (false, true) => "cudaMemcpy3DAsync",
    }
}

fn compute(nanoseconds: u64) -> CallClass {
    CallClass::Compute { nanoseconds }
}

/// The CUDA name of a message to profilers.
fn profiler_name(call: &ProfilerCall) -> &'static str {
    match call {
        ProfilerCall::Start => "cudaProfilerStart",
        ProfilerCall::Stop => "cudaProfilerStop",
        ProfilerCall::Begin(_) => "begin of a range",
        ProfilerCall::End(_) => "end of a range",
    }
}

fn launch_name(cooperative: bool) -> &'static str {
    if cooperative { "cudaLaunchCooperativeKernel" } else { "cudaLaunchKernel" }
}

fn peer_name(enabled: bool) -> &'static str {
    if enabled { "cudaDeviceEnablePeerAccess" } else { "cudaDeviceDisablePeerAccess" }
}

/// A type that holds bulk data.
trait Bulk {
    fn bulk(&self) -> Vec<&Bytes>;
    fn bulk_mut(&mut self) -> Vec<&mut Bytes>;
}

impl Bulk for Bytes {
    fn bulk(&self) -> Vec<&Bytes> {
        vec![self]
    }

    fn bulk_mut(&mut self) -> Vec<&mut Bytes> {
        vec![self]
    }
}

impl Bulk for CopyEnd {
    fn bulk(&self) -> Vec<&Bytes> {
        if let CopyEnd::Bytes(data) = self { vec![data] } else { Vec::new() }
    }

    fn bulk_mut(&mut self) -> Vec<&mut Bytes> {
        if let CopyEnd::Bytes(data) = self { vec![data] } else { Vec::new() }
    }
}

impl Bulk for Vec<Bytes> {
    fn bulk(&self) -> Vec<&Bytes> {
        self.iter().collect()
    }

    fn bulk_mut(&mut self) -> Vec<&mut Bytes> {
        self.iter_mut().collect()
    }
}

impl Bulk for Vec<GraphNode> {
    fn bulk(&self) -> Vec<&Bytes> {
        let mut all = Vec::new();
        for GraphNode { call, conditional, .. } in self {
            all.extend(call.as_deref().into_iter().flat_map(Call::payloads));
            let graphs = conditional.as_deref().into_iter().flat_map(|conditional| &conditional.graphs);
            all.extend(graphs.flat_map(Bulk::bulk));
        }
        all
    }

    fn bulk_mut(&mut self) -> Vec<&mut Bytes> {
        let mut all = Vec::new();
        for GraphNode { call, conditional, .. } in self {
            all.extend(call.as_deref_mut().into_iter().flat_map(Call::payloads_mut));
            let graphs = conditional.as_deref_mut().into_iter().flat_map(|conditional| &mut conditional.graphs);
            all.extend(graphs.flat_map(Bulk::bulk_mut));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_named_by_their_shape_and_have_their_sources_bytes() {
        let mut call = Call::copy_to_device(64, Bytes::from(vec![1, 2, 3]), 5, true);
        assert_eq!((call.name(), call.class(), call.stream()), ("cudaMemcpyAsync", CallClass::Copy, Some(5)));
        assert_eq!(call.payloads().iter().map(|data| data.len()).collect::<Vec<_>>(), [3]);
        if let Some(stream) = call.stream_mut() {
            *stream = 6;
        }
        assert_eq!(call.stream(), Some(6));
        let back = Call::copy_from_device(64, 3, 0, 0, false);
        assert_eq!((back.name(), back.payloads().len()), ("cudaMemcpy", 0), "what it brings comes with its result");
        let nodes = vec![GraphNode::of(Some(call), Vec::new())];
        let mut graph = Call::GraphLaunch { nodes, conditions: Vec::new(), stream: 2 };
        assert_eq!((graph.stream(), graph.payloads_mut().len()), (Some(2), 1));
        assert_eq!(Call::StreamSynchronize { stream: 4 }.stream(), None, "it puts nothing into its stream");
    }
}
