//! Functions about things that a simulated node does not have: memory and semaphores of other interfaces, graphics, green contexts. They
//! refuse as CUDA does on a system without these things; functions that work on handles find none.

use crate::abi::arguments::Out;
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::connection::description;
use crate::session::graph;
use crate::session::order::stream;
use crate::session::state::events;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

/// A handle of something that was never made.
fn no_such_handle() -> Result<(), CudaError> {
    description::description()?;
    Err(CudaError::InvalidResourceHandle)
}

fn not_supported() -> Result<(), CudaError> {
    description::description()?;
    Err(CudaError::NotSupported)
}

/// A node of a kind that no graph has.
fn no_such_node(node: u64) -> Result<(), CudaError> {
    graph::graph_of(node)?;
    Err(CudaError::InvalidValue)
}

runtime_api! {
    fn cudaImportExternalMemory(memory: Out<u64>, _description: *const c_void) {
        memory.check()?;
        not_supported()
    }

    fn cudaExternalMemoryGetMappedBuffer(_pointer: Out<u64>, _memory: u64, _description: *const c_void) {
        no_such_handle()
    }

    fn cudaExternalMemoryGetMappedMipmappedArray(_array: Out<u64>, _memory: u64, _description: *const c_void) {
        no_such_handle()
    }

    fn cudaDestroyExternalMemory(_memory: u64) {
        no_such_handle()
    }

    fn cudaImportExternalSemaphore(semaphore: Out<u64>, _description: *const c_void) {
        semaphore.check()?;
        not_supported()
    }

    fn cudaDestroyExternalSemaphore(_semaphore: u64) {
        no_such_handle()
    }

    stream fn cudaSignalExternalSemaphoresAsync(_list: *const u64, _values: *const c_void, count: u32, stream: StreamHandle) {
        stream::resolve(stream)?;
        if count == 0 { Ok(()) } else { no_such_handle() }
    }

    stream fn cudaSignalExternalSemaphoresAsync_v2(
        _list: *const u64,
        _values: *const c_void,
        count: u32,
        stream: StreamHandle,
    ) {
        stream::resolve(stream)?;
        if count == 0 { Ok(()) } else { no_such_handle() }
    }

    stream fn cudaWaitExternalSemaphoresAsync(_list: *const u64, _values: *const c_void, count: u32, stream: StreamHandle) {
        stream::resolve(stream)?;
        if count == 0 { Ok(()) } else { no_such_handle() }
    }

    stream fn cudaWaitExternalSemaphoresAsync_v2(
        _list: *const u64,
        _values: *const c_void,
        count: u32,
        stream: StreamHandle,
    ) {
        stream::resolve(stream)?;
        if count == 0 { Ok(()) } else { no_such_handle() }
    }

    fn cudaGraphAddExternalSemaphoresSignalNode(_node: Out<u64>, graph: u64) {
        graph::with(graph, |_| Err(CudaError::NotSupported))
    }

    fn cudaGraphAddExternalSemaphoresWaitNode(_node: Out<u64>, graph: u64) {
        graph::with(graph, |_| Err(CudaError::NotSupported))
    }

    fn cudaGraphExternalSemaphoresSignalNodeGetParams(node: u64, _parameters: *mut c_void) {
        no_such_node(node)
    }

    fn cudaGraphExternalSemaphoresSignalNodeSetParams(node: u64, _parameters: *const c_void) {
        no_such_node(node)
    }

    fn cudaGraphExternalSemaphoresWaitNodeGetParams(node: u64, _parameters: *mut c_void) {
        no_such_node(node)
    }

    fn cudaGraphExternalSemaphoresWaitNodeSetParams(node: u64, _parameters: *const c_void) {
        no_such_node(node)
    }

    fn cudaGraphExecExternalSemaphoresSignalNodeSetParams(_executable: u64, node: u64, _parameters: *const c_void) {
        no_such_node(node)
    }

    fn cudaGraphExecExternalSemaphoresWaitNodeSetParams(_executable: u64, node: u64, _parameters: *const c_void) {
        no_such_node(node)
    }

    fn cudaGraphicsMapResources(count: c_int, _resources: *mut u64, stream: StreamHandle) {
        stream::resolve(stream)?;
        if count == 0 { Err(CudaError::InvalidValue) } else { no_such_handle() }
    }

    fn cudaGraphicsUnmapResources(count: c_int, _resources: *mut u64, stream: StreamHandle) {
        stream::resolve(stream)?;
        if count == 0 { Err(CudaError::InvalidValue) } else { no_such_handle() }
    }

    fn cudaGraphicsResourceGetMappedPointer(_pointer: Out<u64>, _bytes: Out<usize>, _resource: u64) {
        no_such_handle()
    }

    fn cudaGraphicsSubResourceGetMappedArray(_array: Out<u64>, _resource: u64, _index: u32, _level: u32) {
        no_such_handle()
    }

    fn cudaGraphicsResourceGetMappedMipmappedArray(_array: Out<u64>, _resource: u64) {
        no_such_handle()
    }

    fn cudaGraphicsResourceSetMapFlags(_resource: u64, _flags: u32) {
        no_such_handle()
    }

    fn cudaGraphicsUnregisterResource(_resource: u64) {
        no_such_handle()
    }

    fn cudaGLGetDevices(count: Out<u32>, _devices: Out<c_int>, _most: u32, _list: u32) {
        // No device of the node has a display.
        description::description()?;
        count.set_if_wanted(0);
        Err(CudaError::NoDevice)
    }

    fn cudaGraphicsGLRegisterBuffer(_resource: Out<u64>, _buffer: u32, _flags: u32) {
        description::description()?;
        Err(CudaError::InvalidGraphicsContext)
    }

    fn cudaGraphicsGLRegisterImage(_resource: Out<u64>, _image: u32, _target: u32, _flags: u32) {
        description::description()?;
        Err(CudaError::InvalidGraphicsContext)
    }

    fn cudaEventCreateFromEGLSync(_event: Out<u64>, _sync: u64, _flags: u32) {
        not_supported()
    }

    stream fn cudaStreamBeginRecaptureToGraph(stream: StreamHandle, _mode: c_int, graph: u64, _callback: *const c_void) {
        stream::resolve(stream)?;
        graph::with(graph, |_| Err(CudaError::NotSupported))
    }

    fn cudaGreenCtxCreate(_context: Out<u64>, _description: u64, device: c_int, _flags: u32) {
        description::device_of(device)?;
        not_supported()
    }

    fn cudaExecutionCtxDestroy(_context: u64) {
        no_such_handle()
    }

    fn cudaExecutionCtxGetDevice(_device: Out<c_int>, _context: u64) {
        no_such_handle()
    }

    fn cudaExecutionCtxGetId(_context: u64, _number: Out<u64>) {
        no_such_handle()
    }

    fn cudaExecutionCtxGetDevResource(_context: u64, _resource: *mut c_void, _kind: u32) {
        no_such_handle()
    }

    fn cudaExecutionCtxRecordEvent(_context: u64, event: u64) {
        events::number(event)?;
        no_such_handle()
    }

    fn cudaExecutionCtxWaitEvent(_context: u64, event: u64) {
        events::number(event)?;
        no_such_handle()
    }

    fn cudaExecutionCtxStreamCreate(_stream: Out<u64>, _context: u64, _flags: u32, _priority: c_int) {
        no_such_handle()
    }

    fn cudaExecutionCtxSynchronize(_context: u64) {
        no_such_handle()
    }

    fn cudaDeviceGetExecutionCtx(_context: Out<u64>, device: c_int) {
        description::device_of(device)?;
        not_supported()
    }

    fn cudaDeviceRegisterAsyncNotification(
        device: c_int,
        _function: *const c_void,
        _data: *mut c_void,
        _handle: Out<u64>,
    ) {
        description::device_of(device)?;
        not_supported()
    }

    fn cudaDeviceUnregisterAsyncNotification(device: c_int, _handle: u64) {
        description::device_of(device)?;
        no_such_handle()
    }

    fn cudaDeviceGetNvSciSyncAttributes(_list: *mut c_void, device: c_int, _flags: c_int) {
        description::device_of(device)?;
        not_supported()
    }
}
