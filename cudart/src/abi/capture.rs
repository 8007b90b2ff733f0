//! The facts that programs are told about stream capture.

use super::arguments::Out;
use balar_host::CudaError;
use std::ffi::c_int;

/// Values of `cudaStreamCaptureStatus`.
pub mod capture_status {
    use std::ffi::c_int;

    /// `cudaStreamCaptureStatusNone`.
    pub const NONE: c_int = 0;
    /// `cudaStreamCaptureStatusActive`.
    pub const ACTIVE: c_int = 1;
    /// `cudaStreamCaptureStatusInvalidated`.
    pub const INVALIDATED: c_int = 2;
}

/// The state of a stream's capture as programs are told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureInfo {
    /// See [`capture_status`].
    pub status: c_int,
    /// The capture and its graph, if the capture can still give one.
    pub active: Option<ActiveCapture>,
}

/// A capture that can still give a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveCapture {
    /// Its number.
    pub number: u64,
    /// The graph's handle.
    pub graph: u64,
    /// The dependencies of the stream's next operation, if the program asked for them: addresses of the nodes and of the data of their
    /// edges, and their number.
    pub dependencies: Option<(u64, u64, usize)>,
}

/// Where the functions `cudaStreamGetCaptureInfo` and `cuStreamGetCaptureInfo` write their results.
#[derive(Clone, Copy, Debug)]
pub struct CaptureInfoPlaces {
    /// The status.
    pub status: Out<c_int>,
    /// The capture's number.
    pub number: Out<u64>,
    /// The graph.
    pub graph: Out<u64>,
    /// Address of the nodes.
    pub nodes: Out<u64>,
    /// Address of the edges' data.
    pub edges: Out<u64>,
    /// How many nodes there are.
    pub count: Out<usize>,
}

impl CaptureInfoPlaces {
    /// Places for the status and the number alone.
    pub fn new(status: Out<c_int>, number: Out<u64>) -> CaptureInfoPlaces {
        let (graph, nodes, edges) = (Out::nowhere(), Out::nowhere(), Out::nowhere());
        CaptureInfoPlaces { status, number, graph, nodes, edges, count: Out::nowhere() }
    }

    /// Does the program ask for the dependencies of the stream's next operation?
    pub fn want_dependencies(&self) -> bool {
        !(self.nodes.is_null() && self.edges.is_null() && self.count.is_null())
    }

    /// Writes the results.
    pub fn write(&self, info: &CaptureInfo) -> Result<(), CudaError> {
        self.status.set(info.status)?;
        let Some(active) = info.active else { return Ok(()) };
        self.number.set_if_wanted(active.number);
        self.graph.set_if_wanted(active.graph);
        if let Some((nodes, edges, count)) = active.dependencies {
            self.nodes.set_if_wanted(nodes);
            self.edges.set_if_wanted(edges);
            self.count.set_if_wanted(count);
        }
        Ok(())
    }
}
