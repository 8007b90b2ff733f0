//! Streams, events, capture, and functions of the host in streams.

use crate::abi::arguments::{In, Out};
use crate::abi::capture::CaptureInfoPlaces;
use crate::abi::driver::DeviceResource;
use crate::abi::graph::{EdgeData, HostNodeParams};
use crate::abi::stream::{AttributeValue, StreamCallback, StreamHandle};
use crate::session::api::Outcome;
use crate::session::connection::description;
use crate::session::contexts::context;
use crate::session::devices::device;
use crate::session::order::{capture, event, stream};
use crate::session::state::captures::{self, CaptureMode};
use crate::session::state::dependency::Dependency;
use crate::session::tools::profiler;
use crate::{driver_api, forwards};
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

/// The context of a stream: the current one, if it is on the stream's device.
fn context_of(handle: StreamHandle) -> Result<u64, CudaError> {
    let stream = stream::resolve(handle)?;
    let (current, device) = context::current()?;
    Ok(if device == stream.device { current } else { context::primary(stream.device) })
}

fn create(place: Out<u64>, flags: u32, priority: c_int) -> Outcome {
    place.check()?;
    place.set(stream::create(flags, priority)?)
}

fn begin_capture(handle: StreamHandle, mode: CaptureMode, into: Option<(u64, Vec<Dependency>)>) -> Outcome {
    capture::begin(&stream::resolve(handle)?, mode, into)
}

fn capture_info(handle: StreamHandle, places: CaptureInfoPlaces) -> Outcome {
    places.status.check()?;
    places.write(&captures::info(&stream::resolve(handle)?, places.want_dependencies())?)
}

fn elapsed(milliseconds: Out<f32>, start: u64, end: u64) -> Outcome {
    milliseconds.check()?;
    milliseconds.set(event::elapsed(start, end)?)
}

forwards! {
    context fn cuStreamDestroy(stream: StreamHandle) => order::stream::destroy;
    context fn cuStreamDestroy_v2(stream: StreamHandle) => order::stream::destroy;
    stream fn cuStreamSynchronize(stream: StreamHandle) => order::stream::synchronize;
    stream fn cuStreamQuery(stream: StreamHandle) => order::stream::query;
    stream fn cuStreamWaitEvent(stream: StreamHandle, event: u64, flags: u32) => order::stream::wait_event;
    stream fn cuStreamAttachMemAsync(stream: StreamHandle, pointer: u64, bytes: usize, flags: u32) => order::stream::attach;
    stream fn cuStreamAddCallback(
        stream: StreamHandle, function: Option<StreamCallback>, data: u64, flags: u32,
    ) => order::stream::add_callback;

    context fn cuEventDestroy(event: u64) => order::event::destroy;
    context fn cuEventDestroy_v2(event: u64) => order::event::destroy;
    stream fn cuEventRecordWithFlags(event: u64, stream: StreamHandle, flags: u32) => order::event::record;
    context fn cuEventQuery(event: u64) => order::event::query;
    context fn cuEventSynchronize(event: u64) => order::event::synchronize;
}

driver_api! {
    context fn cuStreamCreate(stream: Out<u64>, flags: u32) {
        create(stream, flags, 0)
    }

    context fn cuStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: c_int) {
        create(stream, flags, priority)
    }

    stream fn cuStreamGetPriority(stream: StreamHandle, priority: Out<c_int>) {
        priority.set(stream::resolve(stream)?.priority)
    }

    stream fn cuStreamGetFlags(stream: StreamHandle, flags: Out<u32>) {
        flags.set(stream::resolve(stream)?.flags)
    }

    stream fn cuStreamGetId(stream: StreamHandle, number: Out<u64>) {
        number.set(stream::id(&stream::resolve(stream)?))
    }

    stream fn cuStreamGetDevice(stream: StreamHandle, device: Out<c_int>) {
        device.set(stream::resolve(stream)?.device as c_int)
    }

    stream fn cuStreamGetDevResource(stream: StreamHandle, resource: Out<DeviceResource>, kind: u32) {
        resource.check()?;
        resource.set(device::resource(stream::resolve(stream)?.device as c_int, kind)?)
    }

    stream fn cuStreamGetAttribute(stream: StreamHandle, attribute: u32, value: Out<AttributeValue>) {
        value.set(stream::get_attribute(&stream::resolve(stream)?, attribute)?)
    }

    stream fn cuStreamSetAttribute(stream: StreamHandle, attribute: u32, value: In<AttributeValue>) {
        stream::set_attribute(&stream::resolve(stream)?, attribute, value.get()?)
    }

    stream fn cuStreamCopyAttributes(destination: StreamHandle, source: StreamHandle) {
        stream::copy_attributes(&stream::resolve(destination)?, &stream::resolve(source)?);
        Ok(())
    }

    stream fn cuLaunchHostFunc(stream: StreamHandle, function: u64, data: u64) {
        stream::launch_host_function(stream, HostNodeParams { function, data })
    }

    stream fn cuLaunchHostFunc_v2(stream: StreamHandle, function: u64, data: u64, mode: u32) {
        stream::launch_host_function_in(stream, HostNodeParams { function, data }, mode)
    }

    context fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        description::description()?;
        least.set_if_wanted(stream::LOWEST_PRIORITY);
        greatest.set_if_wanted(stream::HIGHEST_PRIORITY);
        Ok(())
    }

    context fn cuCtxResetPersistingL2Cache() {
        device::reset_persisting_l2()
    }

    stream fn cuStreamGetCtx(stream: StreamHandle, place: Out<u64>) {
        place.set(context_of(stream)?)
    }

    stream fn cuStreamGetCtx_v2(stream: StreamHandle, place: Out<u64>, green: Out<u64>) {
        place.set(context_of(stream)?)?;
        green.set_if_wanted(0);
        Ok(())
    }

    context fn cuStreamGetGreenCtx(stream: StreamHandle, green: Out<u64>) {
        // There are no green contexts.
        stream::resolve(stream)?;
        green.set(0)
    }

    context fn cuEventCreate(event: Out<u64>, flags: u32) {
        event.check()?;
        event.set(event::create(flags)?)
    }

    stream fn cuEventRecord(event: u64, stream: StreamHandle) {
        event::record(event, stream, 0)
    }

    context fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) {
        elapsed(milliseconds, start, end)
    }

    context fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) {
        elapsed(milliseconds, start, end)
    }

    stream fn cuStreamBeginCapture(stream: StreamHandle) {
        // Before CUDA 10.1 there was only this mode.
        begin_capture(stream, CaptureMode::Global, None)
    }

    stream fn cuStreamBeginCapture_v2(stream: StreamHandle, mode: c_int) {
        begin_capture(stream, CaptureMode::of_code(mode)?, None)
    }

    stream fn cuStreamBeginCaptureToGraph(
        stream: StreamHandle, graph: u64, nodes: In<u64>, edges: In<EdgeData>, count: usize, mode: c_int,
    ) {
        let into = (graph, Dependency::list(nodes, edges, count)?);
        begin_capture(stream, CaptureMode::of_code(mode)?, Some(into))
    }

    stream fn cuStreamEndCapture(stream: StreamHandle, graph: Out<u64>) {
        capture::end_into(&stream::resolve(stream)?, graph)
    }

    stream fn cuStreamIsCapturing(stream: StreamHandle, status: Out<c_int>) {
        status.check()?;
        status.set(captures::info(&stream::resolve(stream)?, false)?.status)
    }

    stream fn cuStreamGetCaptureInfo(stream: StreamHandle, status: Out<c_int>, number: Out<u64>) {
        capture_info(stream, CaptureInfoPlaces::new(status, number))
    }

    stream fn cuStreamGetCaptureInfo_v2(
        stream: StreamHandle, status: Out<c_int>, number: Out<u64>, graph: Out<u64>, nodes: Out<u64>, count: Out<usize>,
    ) {
        capture_info(stream, CaptureInfoPlaces { graph, nodes, count, ..CaptureInfoPlaces::new(status, number) })
    }

    stream fn cuStreamGetCaptureInfo_v3(
        stream: StreamHandle, status: Out<c_int>, number: Out<u64>, graph: Out<u64>, nodes: Out<u64>, edges: Out<u64>,
        count: Out<usize>,
    ) {
        capture_info(stream, CaptureInfoPlaces { status, number, graph, nodes, edges, count })
    }

    stream fn cuStreamUpdateCaptureDependencies(stream: StreamHandle, nodes: In<u64>, count: usize, flags: u32) {
        let new = Dependency::list(nodes, In::absent(), count)?;
        capture::update_dependencies(&stream::resolve(stream)?, new, flags)
    }

    stream fn cuStreamUpdateCaptureDependencies_v2(
        stream: StreamHandle, nodes: In<u64>, edges: In<EdgeData>, count: usize, flags: u32,
    ) {
        capture::update_dependencies(&stream::resolve(stream)?, Dependency::list(nodes, edges, count)?, flags)
    }

    context fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        mode.check()?;
        // SAFETY: a place that is not null holds the new mode.
        let new = unsafe { mode.pointer().read_unaligned() };
        mode.set(captures::exchange_mode(new)?)
    }

    early fn cuProfilerInitialize(_configuration: *const c_void, _output: *const c_void, _mode: c_int) {
        // CUDA 11 removed it.
        Err(CudaError::NotSupported)
    }

    context fn cuProfilerStart() {
        profiler::start()
    }

    context fn cuProfilerStop() {
        profiler::stop()
    }
}
