//! Nodes of any kind by one structure of parameters (`cudaGraphNodeParams`).

use crate::abi::arguments::{In, Out};
use crate::abi::graph::{EdgeData, GraphNodeParams};
use crate::runtime_api;
use crate::session::graph::parameters;
use crate::session::state::dependency::Dependency;
use balar_host::CudaError;

fn add(node: Out<u64>, graph: u64, after: &[Dependency], place: Out<GraphNodeParams>) -> Result<(), CudaError> {
    node.check()?;
    place.check()?;
    // SAFETY: a place that is not null holds the parameters.
    let mut filled = unsafe { place.pointer().read_unaligned() };
    // SAFETY: CUDA's contract.
    node.set(unsafe { parameters::add(graph, after, &mut filled)? })?;
    if parameters::is_written(filled.kind) { place.set(filled) } else { Ok(()) }
}

runtime_api! {
    fn cudaGraphAddNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: Out<GraphNodeParams>) {
        add(node, graph, &Dependency::list(after, In::absent(), count)?, parameters)
    }

    fn cudaGraphAddNode_v2(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        parameters: Out<GraphNodeParams>,
    ) {
        add(node, graph, &Dependency::list(after, edges, count)?, parameters)
    }

    fn cudaGraphAddNode_13(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        parameters: Out<GraphNodeParams>,
    ) {
        add(node, graph, &Dependency::list(after, edges, count)?, parameters)
    }

    fn cudaGraphNodeSetParams(node: u64, parameters: In<GraphNodeParams>) {
        // SAFETY: CUDA's contract.
        unsafe { parameters::set(node, &parameters.get()?) }
    }

    fn cudaGraphNodeGetParams(node: u64, parameters: Out<GraphNodeParams>) {
        parameters.check()?;
        parameters.set(parameters::get(node)?)
    }

    fn cudaGraphExecNodeSetParams(executable: u64, node: u64, parameters: In<GraphNodeParams>) {
        // SAFETY: CUDA's contract.
        unsafe { parameters::set_in_executable(executable, node, &parameters.get()?) }
    }
}
