//! Streams, events, capture, and functions of the host in streams: those of the runtime.

use super::context;
use crate::abi::arguments::{In, Out};
use crate::abi::graph::EdgeData;
use crate::runtime::stream::{AttributeValue, StreamCallback};
use crate::session::stream::{self, StreamHandle};
use crate::{driver_api, forwards, runtime};
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

forwards! {
    context cuStreamCreate(stream: Out<u64>, flags: u32) => stream::cudaStreamCreateWithFlags;
    context cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: c_int) => stream::cudaStreamCreateWithPriority;
    context cuStreamDestroy(stream: StreamHandle) => stream::cudaStreamDestroy;
    context cuStreamDestroy_v2(stream: StreamHandle) => stream::cudaStreamDestroy;
    stream cuStreamSynchronize(stream: StreamHandle) => stream::cudaStreamSynchronize;
    stream cuStreamQuery(stream: StreamHandle) => stream::cudaStreamQuery;
    stream cuStreamWaitEvent(stream: StreamHandle, event: u64, flags: u32) => stream::cudaStreamWaitEvent;
    stream cuStreamGetPriority(stream: StreamHandle, priority: Out<c_int>) => stream::cudaStreamGetPriority;
    stream cuStreamGetFlags(stream: StreamHandle, flags: Out<u32>) => stream::cudaStreamGetFlags;
    stream cuStreamGetId(stream: StreamHandle, identifier: Out<u64>) => stream::cudaStreamGetId;
    stream cuStreamGetDevice(stream: StreamHandle, device: Out<c_int>) => stream::cudaStreamGetDevice;
    stream cuStreamGetAttribute(stream: StreamHandle, attribute: u32, value: Out<AttributeValue>) => stream::cudaStreamGetAttribute;
    stream cuStreamSetAttribute(stream: StreamHandle, attribute: u32, value: In<AttributeValue>) => stream::cudaStreamSetAttribute;
    stream cuStreamCopyAttributes(to: StreamHandle, from: StreamHandle) => stream::cudaStreamCopyAttributes;
    stream cuStreamAttachMemAsync(stream: StreamHandle, pointer: u64, bytes: usize, flags: u32) => stream::cudaStreamAttachMemAsync;
    stream cuStreamAddCallback(stream: StreamHandle, function: Option<StreamCallback>, data: u64, flags: u32) => stream::cudaStreamAddCallback;
    stream cuLaunchHostFunc(stream: StreamHandle, function: u64, data: u64) => stream::cudaLaunchHostFunc;
    stream cuLaunchHostFunc_v2(stream: StreamHandle, function: u64, data: u64, mode: u32) => stream::cudaLaunchHostFunc_v2;
    context cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) => stream::cudaDeviceGetStreamPriorityRange;
    context cuCtxResetPersistingL2Cache() => stream::cudaCtxResetPersistingL2Cache;

    context cuEventCreate(event: Out<u64>, flags: u32) => event::cudaEventCreateWithFlags;
    context cuEventDestroy(event: u64) => event::cudaEventDestroy;
    context cuEventDestroy_v2(event: u64) => event::cudaEventDestroy;
    stream cuEventRecord(event: u64, stream: StreamHandle) => event::cudaEventRecord;
    stream cuEventRecordWithFlags(event: u64, stream: StreamHandle, flags: u32) => event::cudaEventRecordWithFlags;
    context cuEventQuery(event: u64) => event::cudaEventQuery;
    context cuEventSynchronize(event: u64) => event::cudaEventSynchronize;
    context cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) => event::cudaEventElapsedTime;
    context cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) => event::cudaEventElapsedTime_v2;

    stream cuStreamBeginCapture_v2(stream: StreamHandle, mode: c_int) => capture::cudaStreamBeginCapture;
    stream cuStreamBeginCaptureToGraph(
        stream: StreamHandle, graph: u64, nodes: In<u64>, edges: In<EdgeData>, count: usize, mode: c_int,
    ) => capture::cudaStreamBeginCaptureToGraph;
    stream cuStreamEndCapture(stream: StreamHandle, graph: Out<u64>) => capture::cudaStreamEndCapture;
    stream cuStreamIsCapturing(stream: StreamHandle, status: Out<c_int>) => capture::cudaStreamIsCapturing;
    stream cuStreamGetCaptureInfo(stream: StreamHandle, status: Out<c_int>, number: Out<u64>) => capture::cudaStreamGetCaptureInfo;
    stream cuStreamGetCaptureInfo_v2(
        stream: StreamHandle, status: Out<c_int>, number: Out<u64>, graph: Out<u64>, nodes: Out<u64>, count: Out<usize>,
    ) => capture::cudaStreamGetCaptureInfo_v2;
    stream cuStreamGetCaptureInfo_v3(
        stream: StreamHandle, status: Out<c_int>, number: Out<u64>, graph: Out<u64>, nodes: Out<u64>, edges: Out<u64>, count: Out<usize>,
    ) => capture::cudaStreamGetCaptureInfo_v3;
    stream cuStreamUpdateCaptureDependencies(
        stream: StreamHandle, nodes: In<u64>, count: usize, flags: u32,
    ) => capture::cudaStreamUpdateCaptureDependencies;
    stream cuStreamUpdateCaptureDependencies_v2(
        stream: StreamHandle, nodes: In<u64>, edges: In<EdgeData>, count: usize, flags: u32,
    ) => capture::cudaStreamUpdateCaptureDependencies_v2;
    context cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) => capture::cudaThreadExchangeStreamCaptureMode;
}

driver_api! {
    stream fn cuStreamBeginCapture(stream: StreamHandle) {
        // Before CUDA 10.1 there was one mode.
        const GLOBAL: c_int = 0;
        runtime!(capture::cudaStreamBeginCapture(stream, GLOBAL))
    }

    stream fn cuStreamGetCtx(stream: StreamHandle, place: Out<u64>) {
        place.set(context_of(stream)?)
    }

    stream fn cuStreamGetCtx_v2(stream: StreamHandle, place: Out<u64>, green: Out<u64>) {
        place.set(context_of(stream)?)?;
        green.set_if_wanted(0);
        Ok(())
    }

    early fn cuProfilerInitialize(_configuration: *const c_void, _output: *const c_void, _mode: c_int) {
        // Gone since CUDA 11.
        Err(CudaError::NotSupported)
    }

    context fn cuProfilerStart() {
        Ok(())
    }

    context fn cuProfilerStop() {
        Ok(())
    }
}

/// The context of a stream: the current one, if that is of the stream's device.
fn context_of(handle: StreamHandle) -> Result<u64, CudaError> {
    let stream = stream::resolve(handle)?;
    let (current, device) = context::current()?;
    Ok(if device == stream.device { current } else { context::primary(stream.device) })
}
