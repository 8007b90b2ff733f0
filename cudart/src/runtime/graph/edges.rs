//! Nodes and edges of graphs, as lists.

use crate::abi::arguments::{In, Out};
use crate::abi::graph::EdgeData;
use crate::abi::lists::{EdgePlaces, NodePlaces, give};
use crate::runtime_api;
use crate::session::graph;
use balar_host::CudaError;

fn edges(graph: u64, places: EdgePlaces) -> Result<(), CudaError> {
    places.check()?;
    places.write(&graph::edges(graph)?)
}

runtime_api! {
    fn cudaGraphGetNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) {
        give(&graph::nodes(graph)?, nodes, count)
    }

    fn cudaGraphGetRootNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) {
        give(&graph::roots(graph)?, nodes, count)
    }

    fn cudaGraphGetEdges(graph: u64, from: Out<u64>, to: Out<u64>, count: Out<usize>) {
        edges(graph, EdgePlaces { from, to, data: Out::nowhere(), count })
    }

    fn cudaGraphGetEdges_v2(graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        edges(graph, EdgePlaces { from, to, data, count })
    }

    fn cudaGraphGetEdges_13(graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        edges(graph, EdgePlaces { from, to, data, count })
    }

    fn cudaGraphNodeGetDependencies(node: u64, nodes: Out<u64>, count: Out<usize>) {
        NodePlaces { nodes, data: Out::nowhere(), count }.write(&graph::dependencies(node)?)
    }

    fn cudaGraphNodeGetDependencies_v2(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        NodePlaces { nodes, data, count }.write(&graph::dependencies(node)?)
    }

    fn cudaGraphNodeGetDependencies_13(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        NodePlaces { nodes, data, count }.write(&graph::dependencies(node)?)
    }

    fn cudaGraphNodeGetDependentNodes(node: u64, nodes: Out<u64>, count: Out<usize>) {
        NodePlaces { nodes, data: Out::nowhere(), count }.write(&graph::dependents(node)?)
    }

    fn cudaGraphNodeGetDependentNodes_v2(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        NodePlaces { nodes, data, count }.write(&graph::dependents(node)?)
    }

    fn cudaGraphNodeGetDependentNodes_13(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        NodePlaces { nodes, data, count }.write(&graph::dependents(node)?)
    }

    fn cudaGraphAddDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) {
        graph::add_edges(graph, from, to, In::absent(), count)
    }

    fn cudaGraphAddDependencies_v2(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        graph::add_edges(graph, from, to, data, count)
    }

    fn cudaGraphAddDependencies_13(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        graph::add_edges(graph, from, to, data, count)
    }

    fn cudaGraphRemoveDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) {
        graph::remove_edges(graph, from, to, In::absent(), count)
    }

    fn cudaGraphRemoveDependencies_v2(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        graph::remove_edges(graph, from, to, data, count)
    }

    fn cudaGraphRemoveDependencies_13(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        graph::remove_edges(graph, from, to, data, count)
    }
}
