//! Calls as CUDA names them.

use super::{Call, Launch};

impl Call {
    /// The name of the CUDA function, or of the act.
    pub fn name(&self) -> &'static str {
        match self {
            Call::Malloc { .. } => "cudaMalloc",
            Call::Free { .. } => "cudaFree",
            Call::MallocAsync { .. } => "cudaMallocAsync",
            Call::FreeAsync { .. } => "cudaFreeAsync",
            Call::MallocHost { .. } => "cudaMallocHost",
            Call::FreeHost { .. } => "cudaFreeHost",
            Call::MallocManaged { .. } => "cudaMallocManaged",
            Call::Prefetch { .. } => "cudaMemPrefetchAsync",
            Call::MemcpyHostToDevice { asynchronous: false, .. }
            | Call::MemcpyDeviceToHost { asynchronous: false, .. }
            | Call::MemcpyDeviceToDevice { asynchronous: false, .. } => "cudaMemcpy",
            Call::MemcpyHostToDevice { .. } | Call::MemcpyDeviceToHost { .. } | Call::MemcpyDeviceToDevice { .. } => {
                "cudaMemcpyAsync"
            }
            Call::Memset { asynchronous: false, .. } => "cudaMemset",
            Call::Memset { .. } => "cudaMemsetAsync",
            Call::MemoryInfo => "cudaMemGetInfo",
            Call::PointerInfo { .. } => "cudaPointerGetAttributes",
            Call::Launch(Launch { cooperative: true, .. }) => "cudaLaunchCooperativeKernel",
            Call::Launch(_) => "cudaLaunchKernel",
            Call::ModuleLoad { .. } => "cuModuleLoadData",
            Call::ModuleUnload { .. } => "cuModuleUnload",
            Call::FunctionAttributes { .. } => "cudaFuncGetAttributes",
            Call::SetDynamicSharedLimit { .. } => "cudaFuncSetAttribute",
            Call::ArrayCreate { .. } => "cudaMalloc3DArray",
            Call::ArrayDestroy { .. } => "cudaFreeArray",
            Call::Copy { asynchronous: false, .. } => "cudaMemcpy3D",
            Call::Copy { .. } => "cudaMemcpy3DAsync",
            Call::TextureCreate { .. } => "cudaCreateTextureObject",
            Call::SurfaceCreate { .. } => "cudaCreateSurfaceObject",
            Call::ImageDestroy { .. } => "cudaDestroyTextureObject",
            Call::TextureBind { .. } => "cudaBindTexture",
            Call::SurfaceBind { .. } => "cudaBindSurfaceToArray",
            Call::StreamCreate { .. } => "cudaStreamCreate",
            Call::StreamDestroy { .. } => "cudaStreamDestroy",
            Call::StreamSynchronize { .. } => "cudaStreamSynchronize",
            Call::StreamQuery { .. } => "cudaStreamQuery",
            Call::StreamWaitEvent { .. } => "cudaStreamWaitEvent",
            Call::HostFunction { .. } => "cudaLaunchHostFunc",
            Call::CallbackDone { .. } => "host function",
            Call::EventCreate { .. } => "cudaEventCreate",
            Call::EventDestroy { .. } => "cudaEventDestroy",
            Call::EventRecord { .. } => "cudaEventRecord",
            Call::EventSynchronize { .. } => "cudaEventSynchronize",
            Call::EventQuery { .. } => "cudaEventQuery",
            Call::EventElapsed { .. } => "cudaEventElapsedTime",
            Call::DeviceSynchronize => "cudaDeviceSynchronize",
            Call::DeviceReset => "cudaDeviceReset",
            Call::SetLimit { .. } => "cudaDeviceSetLimit",
            Call::GetLimit { .. } => "cudaDeviceGetLimit",
            Call::PeerAccess { enabled: true, .. } => "cudaDeviceEnablePeerAccess",
            Call::PeerAccess { .. } => "cudaDeviceDisablePeerAccess",
            Call::GraphLaunch { .. } => "cudaGraphLaunch",
            Call::NotImplemented { .. } => "a function that is not implemented",
            Call::Compute { .. } => "compute",
            Call::ReadClock => "read clock",
            Call::Exit { .. } => "exit",
            Call::VirtualMemory(call) => call.name(),
            Call::Ipc(call) => call.name(),
        }
    }
}
