//! Stream capture.

use crate::abi::arguments::{In, Out};
use crate::abi::graph::EdgeData;
use crate::cuda_api;
use crate::session::capture::{self, Mode};
use crate::session::graph::Dependency;
use crate::session::stream::{self, StreamHandle};
use crate::session::thread;
use balar_host::CudaError;
use std::ffi::c_int;

/// Values of `cudaStreamCaptureStatus`.
mod status {
    pub const NONE: c_int = 0;
    pub const ACTIVE: c_int = 1;
    pub const INVALIDATED: c_int = 2;
    use std::ffi::c_int;
}

/// Dependencies as C has them: arrays of nodes and, where given, of the edges to them.
pub fn dependencies(nodes: In<u64>, edges: In<EdgeData>, count: usize) -> Result<Vec<Dependency>, CudaError> {
    let nodes = nodes.array(count)?;
    let edges = if edges.is_null() { vec![EdgeData::default(); count] } else { edges.array(count)? };
    Ok(nodes.into_iter().zip(edges).map(|(node, edge)| Dependency { node, edge }).collect())
}

fn status_code(status: Option<capture::Status>) -> c_int {
    match status {
        None => status::NONE,
        Some(status) if status.is_valid => status::ACTIVE,
        Some(_) => status::INVALIDATED,
    }
}

/// Where what a program asks of a capture goes.
struct Answers {
    status: Out<c_int>,
    number: Out<u64>,
    graph: Out<u64>,
    nodes: Out<u64>,
    edges: Out<u64>,
    count: Out<usize>,
}

fn info(stream: StreamHandle, answers: &Answers) -> Result<(), CudaError> {
    answers.status.check()?;
    let stream = stream::resolve(stream)?;
    let status = capture::status(&stream)?;
    answers.status.set(status_code(status))?;
    let Some(status) = status.filter(|status| status.is_valid) else { return Ok(()) };
    answers.number.set_if_wanted(status.capture);
    answers.graph.set_if_wanted(status.graph);
    if answers.nodes.is_null() && answers.edges.is_null() && answers.count.is_null() {
        return Ok(());
    }
    if let Some((nodes, edges, count)) = capture::show_dependencies(&stream) {
        answers.nodes.set_if_wanted(nodes);
        answers.edges.set_if_wanted(edges);
        answers.count.set_if_wanted(count as usize);
    }
    Ok(())
}

fn update(stream: StreamHandle, new: Vec<Dependency>, flags: u32) -> Result<(), CudaError> {
    // `cudaStreamAddCaptureDependencies`, `cudaStreamSetCaptureDependencies`.
    let replaces = match flags {
        0 => false,
        1 => true,
        _ => return Err(CudaError::InvalidValue),
    };
    capture::update_dependencies(&stream::resolve(stream)?, new, replaces)
}

cuda_api! {
    stream fn cudaStreamBeginCapture(stream: StreamHandle, mode: c_int) {
        capture::begin(&stream::resolve(stream)?, Mode::of_code(mode)?, None)
    }

    stream fn cudaStreamBeginCaptureToGraph(
        stream: StreamHandle,
        graph: u64,
        nodes: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        mode: c_int,
    ) {
        let into = (graph, dependencies(nodes, edges, count)?);
        capture::begin(&stream::resolve(stream)?, Mode::of_code(mode)?, Some(into))
    }

    stream fn cudaStreamEndCapture(stream: StreamHandle, graph: Out<u64>) {
        let captured = capture::end(&stream::resolve(stream)?);
        graph.set_if_wanted(*captured.as_ref().unwrap_or(&0));
        captured?;
        graph.check()
    }

    stream fn cudaStreamIsCapturing(stream: StreamHandle, status: Out<c_int>) {
        status.check()?;
        status.set(status_code(capture::status(&stream::resolve(stream)?)?))
    }

    stream fn cudaStreamGetCaptureInfo(stream: StreamHandle, status: Out<c_int>, number: Out<u64>) {
        let graph = Out::nowhere();
        info(stream, &Answers { status, number, graph, nodes: Out::nowhere(), edges: Out::nowhere(), count: Out::nowhere() })
    }

    stream fn cudaStreamGetCaptureInfo_v2(
        stream: StreamHandle,
        status: Out<c_int>,
        number: Out<u64>,
        graph: Out<u64>,
        nodes: Out<u64>,
        count: Out<usize>,
    ) {
        info(stream, &Answers { status, number, graph, nodes, edges: Out::nowhere(), count })
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
        info(stream, &Answers { status, number, graph, nodes, edges, count })
    }

    stream fn cudaStreamUpdateCaptureDependencies(stream: StreamHandle, nodes: In<u64>, count: usize, flags: u32) {
        update(stream, dependencies(nodes, In::absent(), count)?, flags)
    }

    stream fn cudaStreamUpdateCaptureDependencies_v2(
        stream: StreamHandle,
        nodes: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        flags: u32,
    ) {
        update(stream, dependencies(nodes, edges, count)?, flags)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        mode.check()?;
        // SAFETY: a place that is not null holds the new mode.
        let new = unsafe { mode.pointer().read_unaligned() };
        Mode::of_code(new)?;
        mode.set(thread::with(|thread| thread.capture_mode.replace(new)))
    }
}
