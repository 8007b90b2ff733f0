//! The waits for a node of a graph: by another node, or by a stream that is captured.

use crate::abi::arguments::In;
use crate::abi::graph::EdgeData;
use balar_host::CudaError;

/// A node that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The node.
    pub node: u64,
    /// The part of it that the dependency is on.
    pub edge: EdgeData,
}

impl Dependency {
    /// All of a node.
    pub fn on(node: u64) -> Dependency {
        Dependency { node, edge: EdgeData::default() }
    }

    /// Dependencies in C's form: arrays of nodes and, where given, of the edges to them.
    pub fn list(nodes: In<u64>, edges: In<EdgeData>, count: usize) -> Result<Vec<Dependency>, CudaError> {
        let nodes = nodes.array(count)?;
        let edges = if edges.is_null() { vec![EdgeData::default(); count] } else { edges.array(count)? };
        Ok(nodes.into_iter().zip(edges).map(|(node, edge)| Dependency { node, edge }).collect())
    }
}
