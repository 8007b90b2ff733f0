//! Streams, events, and functions of the host in streams: those of the runtime.

use super::context;
use crate::core::arguments::Out;
use crate::core::stream::{self, StreamHandle};
use crate::driver_api;
use crate::runtime;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

driver_api! {
    context fn cuStreamCreate(stream: Out<u64>, flags: u32) {
        runtime!(stream::cudaStreamCreateWithFlags(stream, flags))
    }

    context fn cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: c_int) {
        runtime!(stream::cudaStreamCreateWithPriority(stream, flags, priority))
    }

    context fn cuStreamDestroy(stream: StreamHandle) {
        runtime!(stream::cudaStreamDestroy(stream))
    }

    context fn cuStreamDestroy_v2(stream: StreamHandle) {
        runtime!(stream::cudaStreamDestroy(stream))
    }

    stream fn cuStreamSynchronize(stream: StreamHandle) {
        runtime!(stream::cudaStreamSynchronize(stream))
    }

    stream fn cuStreamQuery(stream: StreamHandle) {
        runtime!(stream::cudaStreamQuery(stream))
    }

    stream fn cuStreamWaitEvent(stream: StreamHandle, event: u64, flags: u32) {
        runtime!(stream::cudaStreamWaitEvent(stream, event, flags))
    }

    stream fn cuStreamGetPriority(stream: StreamHandle, priority: Out<c_int>) {
        runtime!(stream::cudaStreamGetPriority(stream, priority))
    }

    stream fn cuStreamGetFlags(stream: StreamHandle, flags: Out<u32>) {
        runtime!(stream::cudaStreamGetFlags(stream, flags))
    }

    stream fn cuStreamGetId(stream: StreamHandle, identifier: Out<u64>) {
        runtime!(stream::cudaStreamGetId(stream, identifier))
    }

    stream fn cuStreamGetDevice(stream: StreamHandle, device: Out<c_int>) {
        runtime!(stream::cudaStreamGetDevice(stream, device))
    }

    stream fn cuStreamGetCtx(stream: StreamHandle, place: Out<u64>) {
        place.set(context_of(stream)?)
    }

    stream fn cuStreamGetCtx_v2(stream: StreamHandle, place: Out<u64>, green: Out<u64>) {
        place.set(context_of(stream)?)?;
        green.set_if_wanted(0);
        Ok(())
    }

    stream fn cuStreamAddCallback(stream: StreamHandle, function: *const c_void, data: *mut c_void, flags: u32) {
        runtime!(callback::cudaStreamAddCallback(stream, function, data, flags))
    }

    stream fn cuLaunchHostFunc(stream: StreamHandle, function: *const c_void, data: *mut c_void) {
        runtime!(callback::cudaLaunchHostFunc(stream, function, data))
    }

    stream fn cuStreamCopyAttributes(to: StreamHandle, from: StreamHandle) {
        runtime!(stream::cudaStreamCopyAttributes(to, from))
    }

    stream fn cuStreamGetAttribute(stream: StreamHandle, attribute: c_int, value: *mut c_void) {
        runtime!(stream::cudaStreamGetAttribute(stream, attribute, value))
    }

    stream fn cuStreamSetAttribute(stream: StreamHandle, attribute: c_int, value: *const c_void) {
        runtime!(stream::cudaStreamSetAttribute(stream, attribute, value))
    }

    context fn cuEventCreate(event: Out<u64>, flags: u32) {
        runtime!(event::cudaEventCreateWithFlags(event, flags))
    }

    context fn cuEventDestroy(event: u64) {
        runtime!(event::cudaEventDestroy(event))
    }

    context fn cuEventDestroy_v2(event: u64) {
        runtime!(event::cudaEventDestroy(event))
    }

    stream fn cuEventRecord(event: u64, stream: StreamHandle) {
        runtime!(event::cudaEventRecord(event, stream))
    }

    stream fn cuEventRecordWithFlags(event: u64, stream: StreamHandle, flags: u32) {
        runtime!(event::cudaEventRecordWithFlags(event, stream, flags))
    }

    context fn cuEventQuery(event: u64) {
        runtime!(event::cudaEventQuery(event))
    }

    context fn cuEventSynchronize(event: u64) {
        runtime!(event::cudaEventSynchronize(event))
    }

    context fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) {
        runtime!(event::cudaEventElapsedTime(milliseconds, start, end))
    }

    context fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) {
        runtime!(event::cudaEventElapsedTime(milliseconds, start, end))
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
