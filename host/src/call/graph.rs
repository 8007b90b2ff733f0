//! Graphs of a launch: nodes that wait for each other. Conditional nodes run graphs of their own.

use super::Call;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::cell::Cell;

/// A node of a graph: an asynchronous call, whose own stream says nothing, or graphs that run as a condition says, and the nodes it
/// waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphNode {
    /// A launch, copy, fill, host function, event record or wait; `None` of an empty or a conditional node.
    #[serde(deserialize_with = "call_of_node")]
    pub call: Option<Box<Call>>,
    /// For a conditional node: its condition, and its graphs.
    pub conditional: Option<Box<Conditional>>,
    /// Indices of earlier nodes.
    pub dependencies: Vec<u32>,
}

impl GraphNode {
    /// One that makes a call, or does nothing.
    pub fn of(call: Option<Call>, dependencies: Vec<u32>) -> GraphNode {
        GraphNode { call: call.map(Box::new), conditional: None, dependencies }
    }
}

/// A conditional node. A word in device memory tells which of its graphs run: kernels write it (`cudaGraphSetConditional`), and it is read
/// when the node is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditional {
    /// How it is told.
    pub kind: ConditionalKind,
    /// The address of the word.
    pub address: u64,
    /// The graphs.
    #[serde(deserialize_with = "nested_graphs")]
    pub graphs: Vec<Vec<GraphNode>>,
}

/// How a condition chooses among the graphs of a node (`cudaGraphConditionalNodeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionalKind {
    /// The first where it is not 0, else the second, if there is one.
    If,
    /// The first, again and again until it is 0.
    While,
    /// The one of that number, if there is one.
    Switch,
}

impl Conditional {
    /// The graph that runs where the word has this value.
    pub fn chosen(&self, value: u32) -> Option<&Vec<GraphNode>> {
        let place = match (self.kind, value) {
            (ConditionalKind::Switch, number) => number,
            (ConditionalKind::While, 0) => return None,
            (ConditionalKind::If, 0) => 1,
            (ConditionalKind::If | ConditionalKind::While, _) => 0,
        };
        self.graphs.get(usize::try_from(place).ok()?)
    }
}

/// Graphs within graphs that are read: no program needs more, and reading them ends no stack.
const DEEPEST: u32 = 32;

thread_local! {
    /// A call of a node is being read.
    static WITHIN_CALL: Cell<bool> = const { Cell::new(false) };
    /// The number of conditional nodes around the one that is being read.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Reads the call of a node, which is no graph: a graph within a graph within a graph ends no stack.
fn call_of_node<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Call>>, D::Error> {
    if WITHIN_CALL.replace(true) {
        return Err(D::Error::custom("a graph within a node of a graph"));
    }
    let call = Option::deserialize(deserializer);
    WITHIN_CALL.set(false);
    call
}

/// Reads the graphs of a conditional node.
fn nested_graphs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<GraphNode>>, D::Error> {
    let depth = DEPTH.get();
    if depth == DEEPEST {
        return Err(D::Error::custom("conditional nodes nested too deep"));
    }
    DEPTH.set(depth + 1);
    let graphs = Vec::deserialize(deserializer);
    DEPTH.set(depth);
    graphs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_chooses_as_cuda_says() {
        let graph = |number| vec![GraphNode::of(None, vec![number])];
        let node = |kind, graphs: u32| Conditional { kind, address: 0, graphs: (0..graphs).map(graph).collect() };
        let chosen = |node: &Conditional| [0, 1, 2, 7].map(|value| node.chosen(value).map(|it| it[0].dependencies[0]));
        assert_eq!(chosen(&node(ConditionalKind::If, 1)), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(chosen(&node(ConditionalKind::If, 2)), [Some(1), Some(0), Some(0), Some(0)]);
        assert_eq!(chosen(&node(ConditionalKind::While, 1)), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(chosen(&node(ConditionalKind::Switch, 3)), [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn nodes_nested_without_end_are_refused() {
        let mut graph = vec![GraphNode::of(None, Vec::new())];
        for _ in 0..100 {
            let conditional = Conditional { kind: ConditionalKind::If, address: 0, graphs: vec![graph] };
            graph = vec![GraphNode { call: None, conditional: Some(Box::new(conditional)), dependencies: Vec::new() }];
        }
        let bytes = postcard::to_stdvec(&graph).expect("short");
        assert!(postcard::from_bytes::<Vec<GraphNode>>(&bytes).is_err());
        let inner = &graph[0].conditional.as_ref().expect("a conditional node").graphs[0];
        assert!(postcard::from_bytes::<Vec<GraphNode>>(&postcard::to_stdvec(inner).expect("short")).is_err());
        let flat = vec![GraphNode::of(None, Vec::new())];
        let bytes = postcard::to_stdvec(&flat).expect("short");
        assert_eq!(
            postcard::from_bytes::<Vec<GraphNode>>(&bytes),
            Ok(flat),
            "the failure before leaves nothing behind"
        );
    }
}
