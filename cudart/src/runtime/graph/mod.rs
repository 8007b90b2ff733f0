//! Graphs.

pub mod edges;
pub mod executable;
pub mod generic;
pub mod memory;
pub mod nodes;
pub mod user_object;

use crate::abi::arguments::{Out, Text};
use crate::runtime_api;
use crate::session::graph::{self, conditional, executable as executables};
use balar_host::CudaError;

runtime_api! {
    fn cudaGraphCreate(graph: Out<u64>, flags: u32) {
        graph.check()?;
        graph.set(graph::create_with_flags(flags)?)
    }

    fn cudaGraphDestroy(graph: u64) {
        graph::destroy(graph)
    }

    fn cudaGraphClone(copy: Out<u64>, graph: u64) {
        copy.check()?;
        copy.set(graph::copy(graph)?)
    }

    fn cudaGraphNodeFindInClone(node: Out<u64>, original: u64, copy: u64) {
        node.check()?;
        node.set(graph::find_in_copy(original, copy)?)
    }

    fn cudaGraphDestroyNode(node: u64) {
        graph::destroy_node(node)
    }

    fn cudaGraphGetId(graph: u64, number: Out<u32>) {
        number.set(graph::with(graph, |graph| Ok(graph.number))?)
    }

    fn cudaGraphExecGetId(executable: u64, number: Out<u32>) {
        number.set(executables::with(executable, |executable| Ok(executable.number))?)
    }

    fn cudaGraphNodeGetContainingGraph(node: u64, graph: Out<u64>) {
        graph.set(graph::graph_of(node)?)
    }

    fn cudaGraphNodeGetLocalId(node: u64, number: Out<u32>) {
        number.set(graph::with_node(node, |node| Ok(node.local_id))?)
    }

    fn cudaGraphNodeGetToolsId(node: u64, number: Out<u64>) {
        number.set(graph::tools_id(node)?)
    }

    fn cudaGraphNodeGetType(node: u64, kind: Out<u32>) {
        kind.set(graph::with_node(node, |node| Ok(node.work.kind()))?)
    }

    fn cudaGraphChildGraphNodeGetGraph(node: u64, child: Out<u64>) {
        child.set(graph::child_of(node)?)
    }

    fn cudaGraphDebugDotPrint(graph: u64, path: Text, flags: u32) {
        graph::print(graph, &path.get()?, flags)
    }

    fn cudaGraphConditionalHandleCreate(handle: Out<u64>, graph: u64, first_value: u32, flags: u32) {
        conditional::create_into(handle, graph, first_value, flags)
    }

    fn cudaGraphConditionalHandleCreate_v2(handle: Out<u64>, graph: u64, context: u64, first_value: u32, flags: u32) {
        // There are no contexts but those of devices.
        if context != 0 {
            return Err(CudaError::InvalidResourceHandle);
        }
        conditional::create_into(handle, graph, first_value, flags)
    }
}
