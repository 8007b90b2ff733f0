//! Stream capture.

use crate::abi::arguments::{In, Out};
use crate::abi::capture::CaptureInfoPlaces;
use crate::abi::graph::EdgeData;
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::order::{capture, stream};
use crate::session::state::captures::{self, CaptureMode};
use crate::session::state::dependency::Dependency;
use balar_host::CudaError;
use std::ffi::c_int;

fn info(stream: StreamHandle, places: CaptureInfoPlaces) -> Result<(), CudaError> {
    places.status.check()?;
    places.write(&captures::info(&stream::resolve(stream)?, places.want_dependencies())?)
}

runtime_api! {
    stream fn cudaStreamBeginCapture(stream: StreamHandle, mode: c_int) {
        capture::begin(&stream::resolve(stream)?, CaptureMode::of_code(mode)?, None)
    }

    stream fn cudaStreamBeginCaptureToGraph(
        stream: StreamHandle,
        graph: u64,
        nodes: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        mode: c_int,
    ) {
        let into = (graph, Dependency::list(nodes, edges, count)?);
        capture::begin(&stream::resolve(stream)?, CaptureMode::of_code(mode)?, Some(into))
    }

    stream fn cudaStreamEndCapture(stream: StreamHandle, graph: Out<u64>) {
        capture::end_into(&stream::resolve(stream)?, graph)
    }

    stream fn cudaStreamIsCapturing(stream: StreamHandle, status: Out<c_int>) {
        status.check()?;
        status.set(captures::info(&stream::resolve(stream)?, false)?.status)
    }

    stream fn cudaStreamGetCaptureInfo(stream: StreamHandle, status: Out<c_int>, number: Out<u64>) {
        info(stream, CaptureInfoPlaces::new(status, number))
    }

    stream fn cudaStreamGetCaptureInfo_v2(
        stream: StreamHandle,
        status: Out<c_int>,
        number: Out<u64>,
        graph: Out<u64>,
        nodes: Out<u64>,
        count: Out<usize>,
    ) {
        info(stream, CaptureInfoPlaces { graph, nodes, count, ..CaptureInfoPlaces::new(status, number) })
    }

    stream fn cudaStreamGetCaptureInfo_v3(
        stream: StreamHandle,
        status: Out<c_int>,
        number: Out<u64>,
        graph: Out<u64>,
        nodes: Out<u64>,
        edges: Out<u64>,
        count: Out<usize>,
    ) {
        info(stream, CaptureInfoPlaces { status, number, graph, nodes, edges, count })
    }

    stream fn cudaStreamGetCaptureInfo_13(
        stream: StreamHandle,
        status: Out<c_int>,
        number: Out<u64>,
        graph: Out<u64>,
        nodes: Out<u64>,
        edges: Out<u64>,
        count: Out<usize>,
    ) {
        info(stream, CaptureInfoPlaces { status, number, graph, nodes, edges, count })
    }

    stream fn cudaStreamUpdateCaptureDependencies(stream: StreamHandle, nodes: In<u64>, count: usize, flags: u32) {
        capture::update_dependencies(&stream::resolve(stream)?, Dependency::list(nodes, In::absent(), count)?, flags)
    }

    stream fn cudaStreamUpdateCaptureDependencies_v2(
        stream: StreamHandle,
        nodes: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        flags: u32,
    ) {
        capture::update_dependencies(&stream::resolve(stream)?, Dependency::list(nodes, edges, count)?, flags)
    }

    stream fn cudaStreamUpdateCaptureDependencies_13(
        stream: StreamHandle,
        nodes: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        flags: u32,
    ) {
        capture::update_dependencies(&stream::resolve(stream)?, Dependency::list(nodes, edges, count)?, flags)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        mode.check()?;
        // SAFETY: a place that is not null holds the new mode.
        let new = unsafe { mode.pointer().read_unaligned() };
        mode.set(captures::exchange_mode(new)?)
    }
}
