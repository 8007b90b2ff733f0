//! Stream capture: operations that go into a graph instead of a stream.

use crate::abi::arguments::Out;
use crate::session::graph::node::{CopyWork, KernelWork};
use crate::session::graph::{self, Work};
use crate::session::order::operation::Operation;
use crate::session::state::captures::{
    Capture, CaptureMode, CapturedStream, Captures, count_begun, count_ended, lock, none, this_thread,
};
use crate::session::state::dependency::Dependency;
use crate::session::state::streams::Stream;
use balar_host::{Call, CudaError};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the operation unless the stream captures it. One that waits (not `asynchronous`) is refused while capture forbids it.
pub fn take(stream: &Stream, operation: Operation, asynchronous: bool) -> Result<Option<Operation>, CudaError> {
    if none() {
        return Ok(Some(operation));
    }
    let mut captures = lock();
    if !captures.is_captured(stream)? {
        return Ok(Some(operation));
    }
    let work = if asynchronous { work_of(stream.device, operation) } else { Err(CudaError::StreamCaptureUnsupported) };
    let added = work.and_then(|work| append(&mut captures, stream.number, work));
    captures.or_invalid(stream.number, added).map(|_| None)
}

/// Makes a node of the result of `work` if the stream is captured; returns the node.
pub fn take_work(stream: &Stream, work: impl FnOnce() -> Result<Work, CudaError>) -> Result<Option<u64>, CudaError> {
    if none() || !lock().is_captured(stream)? {
        return Ok(None);
    }
    // May ask the simulator for something: nothing is locked.
    let work = work();
    let mut captures = lock();
    let added = work.and_then(|work| append(&mut captures, stream.number, work));
    captures.or_invalid(stream.number, added).map(Some)
}

/// Begins the capture of a stream into a graph, or into a new one.
pub fn begin(stream: &Stream, mode: CaptureMode, into: Option<(u64, Vec<Dependency>)>) -> Result<(), CudaError> {
    if stream.number == 0 {
        return Err(CudaError::StreamCaptureUnsupported);
    }
    let mut captures = lock();
    if captures.streams.contains_key(&stream.number) {
        return captures.or_invalid(stream.number, Err(CudaError::IllegalState));
    }
    let owns_graph = into.is_none();
    let (graph, dependencies) = match into {
        Some((graph, dependencies)) => {
            graph::with(graph, |graph| {
                let are_there = dependencies.iter().all(|dependency| graph.nodes.contains_key(&dependency.node));
                if are_there { Ok(()) } else { Err(CudaError::InvalidValue) }
            })?;
            (graph, dependencies)
        }
        None => (graph::create(), Vec::new()),
    };
    captures.last += 1;
    let capture = captures.last;
    let origin = stream.number;
    let begun = Capture { graph, owns_graph, origin, mode, thread: this_thread(), is_valid: true, left: Vec::new() };
    captures.captures.insert(capture, begun);
    captures.join(stream, capture, dependencies);
    count_begun();
    Ok(())
}

/// Ends the capture that began with the stream; the graph goes to its place, which need not be there where the program has brought the
/// graph.
pub fn end_into(stream: &Stream, place: Out<u64>) -> Result<(), CudaError> {
    let ended = end(stream);
    place.set_if_wanted(ended.map_or(0, |(graph, _)| graph));
    let (_, is_new) = ended?;
    if is_new { place.check() } else { Ok(()) }
}

/// Ends the capture that began with the stream; returns the graph, and whether the capture has made it.
fn end(stream: &Stream) -> Result<(u64, bool), CudaError> {
    let mut captures = lock();
    let Some(number) = captures.streams.get(&stream.number).map(|stream| stream.capture) else {
        return Err(CudaError::IllegalState);
    };
    let capture = captures.captures.get(&number).ok_or(CudaError::Unknown)?;
    if capture.origin != stream.number {
        return captures.or_invalid(stream.number, Err(CudaError::StreamCaptureUnmatched));
    }
    if capture.mode != CaptureMode::Relaxed && capture.thread != this_thread() {
        return Err(CudaError::StreamCaptureWrongThread);
    }
    let (graph, owns_graph, is_valid) = (capture.graph, capture.owns_graph, capture.is_valid);
    let outcome = if !is_valid {
        Err(CudaError::StreamCaptureInvalidated)
    } else if has_unjoined(&captures, number, graph)? {
        Err(CudaError::StreamCaptureUnjoined)
    } else {
        Ok((graph, owns_graph))
    };
    captures.captures.remove(&number);
    captures.streams.retain(|_, stream| stream.capture != number);
    count_ended();
    drop(captures);
    if outcome.is_err() && owns_graph {
        graph::destroy(graph)?;
    }
    outcome
}

/// Changes the dependencies of the stream's next operation, as `flags` say: adds to them, or replaces them.
pub fn update_dependencies(stream: &Stream, new: Vec<Dependency>, flags: u32) -> Result<(), CudaError> {
    /// `cudaStreamAddCaptureDependencies`.
    const ADD: u32 = 0;
    /// `cudaStreamSetCaptureDependencies`.
    const SET: u32 = 1;
    if !matches!(flags, ADD | SET) {
        return Err(CudaError::InvalidValue);
    }
    let mut captures = lock();
    if !captures.streams.contains_key(&stream.number) || !captures.is_captured(stream)? {
        return Err(CudaError::IllegalState);
    }
    let capture = captures.streams[&stream.number].capture;
    let graph = captures.captures[&capture].graph;
    graph::with(graph, |graph| {
        let are_there = new.iter().all(|dependency| graph.nodes.contains_key(&dependency.node));
        if are_there { Ok(()) } else { Err(CudaError::InvalidValue) }
    })?;
    if let Some(stream) = captures.streams.get_mut(&stream.number) {
        if flags == SET {
            stream.dependencies.clear();
        }
        stream.wait_for(new);
    }
    Ok(())
}

/// Adds a node after the captured work of a stream so far.
fn append(captures: &mut Captures, stream: u32, work: Work) -> Result<u64, CudaError> {
    let stream = captures.streams.get_mut(&stream).ok_or(CudaError::StreamCaptureInvalidated)?;
    let capture = captures.captures.get(&stream.capture).ok_or(CudaError::StreamCaptureInvalidated)?;
    let node = graph::add(capture.graph, &stream.dependencies, work)?;
    stream.dependencies = vec![Dependency::on(node)];
    Ok(node)
}

/// Has a stream of the capture done something that the first stream does not wait for?
fn has_unjoined(captures: &Captures, capture: u64, graph: u64) -> Result<bool, CudaError> {
    let Some(Capture { origin, left, .. }) = captures.captures.get(&capture) else { return Ok(false) };
    let nodes = |stream: &CapturedStream| -> Vec<u64> {
        stream.dependencies.iter().map(|dependency| dependency.node).collect()
    };
    let ends = captures.streams.get(origin).map_or(Vec::new(), nodes);
    let joined: BTreeSet<u64> = graph::with(graph, |graph| Ok(graph.with_predecessors(ends)))?;
    let others = captures.streams.iter().filter(|(number, stream)| stream.capture == capture && *number != origin);
    let mut nodes = others.flat_map(|(_, stream)| nodes(stream)).chain(left.iter().copied());
    Ok(nodes.any(|node| !joined.contains(&node)))
}

/// The work of a captured operation; an error if graphs do not support it.
fn work_of(device: u32, operation: Operation) -> Result<Work, CudaError> {
    match operation {
        Operation::Copy(copy) => Ok(Work::Copy(Box::new(CopyWork { copy, parameters: None }))),
        Operation::Call(Call::Launch(launch)) => Ok(Work::Kernel(Box::new(KernelWork {
            name: None,
            device,
            launch,
            attributes: BTreeMap::new(),
            shown: Vec::new(),
        }))),
        Operation::Call(call @ Call::Memset { .. }) => Ok(Work::Memset(Box::new(call))),
        Operation::Call(_) => Err(CudaError::StreamCaptureUnsupported),
    }
}
