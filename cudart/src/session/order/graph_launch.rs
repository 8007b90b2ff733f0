//! Executable graphs in the order of a stream.

use crate::abi::stream::StreamHandle;
use crate::session::graph::executable::with;
use crate::session::graph::{self, Work};
use crate::session::order::{capture, stream};
use crate::session::state::captures;
use balar_host::CudaError;

/// Launches an executable graph, or makes a child graph of it where the stream is captured.
pub fn launch(handle: u64, stream: StreamHandle) -> Result<(), CudaError> {
    let stream = stream::resolve(stream)?;
    let as_graph = || with(handle, |executable| executable.as_graph()).map(Work::Graph);
    let mut child = None;
    let taken = capture::take_work(&stream, || {
        let work = as_graph()?;
        if let Work::Graph(graph) = work {
            child = Some(graph);
        }
        Ok(work)
    });
    // The node has a copy.
    if let Some(child) = child {
        graph::destroy(child)?;
    }
    if taken?.is_some() {
        return Ok(());
    }
    graph::launch::launch(handle, stream.device, stream.number)
}

/// Checks that an executable graph can be uploaded, and does no more: a launch carries all that it needs.
pub fn upload(handle: u64, stream: StreamHandle) -> Result<(), CudaError> {
    captures::forbid(&stream::resolve(stream)?)?;
    with(handle, |_| Ok(()))
}
