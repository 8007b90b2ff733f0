//! Nodes and edges of graphs, as lists.

use crate::abi::arguments::{In, Out};
use crate::abi::graph::EdgeData;
use crate::cuda_api;
use crate::session::graph::{self, Edge};
use balar_host::CudaError;

/// Gives a list as CUDA does: where there is no place for elements their number alone, else as many as there is place for. The
/// places that are left are zero.
fn give<T: Copy + Default>(values: &[T], into: Out<T>, count: Out<usize>) -> Result<(), CudaError> {
    count.check()?;
    if into.is_null() {
        return count.set(values.len());
    }
    // SAFETY: a place that is not null holds the number of elements that there is place for.
    let places = unsafe { count.pointer().read_unaligned() };
    for place in 0..places {
        // SAFETY: the caller says that there are so many places.
        unsafe { into.pointer().add(place).write_unaligned(values.get(place).copied().unwrap_or_default()) };
    }
    count.set(values.len().min(places))
}

/// Gives edges' data beside a list that is given. Refused where the program does not ask for it and would miss something.
fn give_data(data: &[EdgeData], into: Out<EdgeData>, is_asked: bool, count: Out<usize>) -> Result<(), CudaError> {
    if !into.is_null() {
        return if is_asked { give(data, into, count) } else { Err(CudaError::InvalidValue) };
    }
    let would_miss = is_asked && data.iter().any(|data| *data != EdgeData::default());
    if would_miss { Err(CudaError::LossyQuery) } else { Ok(()) }
}

fn edges(graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>) -> Result<(), CudaError> {
    if from.is_null() != to.is_null() {
        return Err(CudaError::InvalidValue);
    }
    let edges = graph::with(graph, |graph| Ok(graph.edges()))?;
    let firsts: Vec<u64> = edges.iter().map(|edge| edge.from).collect();
    let seconds: Vec<u64> = edges.iter().map(|edge| edge.to).collect();
    let all_data: Vec<EdgeData> = edges.iter().map(|edge| edge.data).collect();
    give_lists(&[(&firsts, from), (&seconds, to)], &all_data, data, count)
}

/// Gives several lists of the same length, and the edges' data.
fn give_lists(
    lists: &[(&[u64], Out<u64>)],
    all_data: &[EdgeData],
    data: Out<EdgeData>,
    count: Out<usize>,
) -> Result<(), CudaError> {
    count.check()?;
    // SAFETY: a place that is not null holds a number.
    let places = unsafe { count.pointer().read_unaligned() };
    let is_asked = lists.iter().all(|(_, into)| !into.is_null());
    give_data(all_data, data, is_asked, count)?;
    for (list, into) in lists {
        count.set(places)?;
        give(list, *into, count)?;
    }
    Ok(())
}

fn dependencies(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) -> Result<(), CudaError> {
    let dependencies = graph::with_node(node, |node| Ok(node.dependencies.clone()))?;
    let (before, all_data): (Vec<u64>, Vec<EdgeData>) =
        dependencies.iter().map(|dependency| (dependency.node, dependency.edge)).unzip();
    give_lists(&[(&before, nodes)], &all_data, data, count)
}

fn dependents(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) -> Result<(), CudaError> {
    let edges = graph::with(graph::graph_of(node)?, |graph| Ok(graph.edges()))?;
    let (after, all_data): (Vec<u64>, Vec<EdgeData>) =
        edges.iter().filter(|edge| edge.from == node).map(|edge| (edge.to, edge.data)).unzip();
    give_lists(&[(&after, nodes)], &all_data, data, count)
}

/// Adds or removes edges.
fn change(
    graph: u64,
    from: In<u64>,
    to: In<u64>,
    data: In<EdgeData>,
    count: usize,
    change: impl Fn(&mut graph::Graph, Edge) -> Result<(), CudaError>,
) -> Result<(), CudaError> {
    let (from, to) = (from.array(count)?, to.array(count)?);
    let data = if data.is_null() { vec![EdgeData::default(); count] } else { data.array(count)? };
    graph::with(graph, |graph| {
        for ((from, to), data) in from.into_iter().zip(to).zip(data) {
            change(graph, Edge { from, to, data })?;
        }
        Ok(())
    })
}

cuda_api! {
    fn cudaGraphGetNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) {
        let all: Vec<u64> = graph::with(graph, |graph| Ok(graph.nodes.keys().copied().collect()))?;
        give(&all, nodes, count)
    }

    fn cudaGraphGetRootNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) {
        let roots: Vec<u64> = graph::with(graph, |graph| {
            let roots = graph.nodes.iter().filter(|(_, node)| node.dependencies.is_empty());
            Ok(roots.map(|(handle, _)| *handle).collect())
        })?;
        give(&roots, nodes, count)
    }

    fn cudaGraphGetEdges(graph: u64, from: Out<u64>, to: Out<u64>, count: Out<usize>) {
        edges(graph, from, to, Out::nowhere(), count)
    }

    fn cudaGraphGetEdges_v2(graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        edges(graph, from, to, data, count)
    }

    fn cudaGraphGetEdges_13(graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        edges(graph, from, to, data, count)
    }

    fn cudaGraphNodeGetDependencies(node: u64, nodes: Out<u64>, count: Out<usize>) {
        dependencies(node, nodes, Out::nowhere(), count)
    }

    fn cudaGraphNodeGetDependencies_v2(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        dependencies(node, nodes, data, count)
    }

    fn cudaGraphNodeGetDependencies_13(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        dependencies(node, nodes, data, count)
    }

    fn cudaGraphNodeGetDependentNodes(node: u64, nodes: Out<u64>, count: Out<usize>) {
        dependents(node, nodes, Out::nowhere(), count)
    }

    fn cudaGraphNodeGetDependentNodes_v2(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        dependents(node, nodes, data, count)
    }

    fn cudaGraphNodeGetDependentNodes_13(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        dependents(node, nodes, data, count)
    }

    fn cudaGraphAddDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) {
        change(graph, from, to, In::absent(), count, graph::Graph::add_edge)
    }

    fn cudaGraphAddDependencies_v2(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        change(graph, from, to, data, count, graph::Graph::add_edge)
    }

    fn cudaGraphAddDependencies_13(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        change(graph, from, to, data, count, graph::Graph::add_edge)
    }

    fn cudaGraphRemoveDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) {
        change(graph, from, to, In::absent(), count, graph::Graph::remove_edge)
    }

    fn cudaGraphRemoveDependencies_v2(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        change(graph, from, to, data, count, graph::Graph::remove_edge)
    }

    fn cudaGraphRemoveDependencies_13(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) {
        change(graph, from, to, data, count, graph::Graph::remove_edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_given_as_far_as_there_is_place() {
        let values = [5_u64, 6, 7];
        let mut count = 0_usize;
        // SAFETY: the places outlive their use.
        let place = unsafe { Out::new(&raw mut count) };
        assert_eq!(give(&values, Out::nowhere(), place), Ok(()));
        assert_eq!(count, 3);
        for (places, expected, given) in [(2, [5, 6, 9, 9], 2), (4, [5, 6, 7, 0], 3)] {
            let mut list = [9_u64; 4];
            let mut count: usize = places;
            // SAFETY: the places outlive their use.
            let outcome = unsafe { give(&values, Out::new(list.as_mut_ptr()), Out::new(&raw mut count)) };
            assert_eq!((outcome, list, count), (Ok(()), expected, given));
        }
    }
}
