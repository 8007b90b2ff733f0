//! Graphs: operations whose order is their own, as one operation of a stream.
//!
//! A conditional node is an operation that begins when the operations that it waits for are done. Then its condition word is read, and the
//! nodes of the graph that it chooses become operations. When these are done, the node is done, or it reads the word again. A node that
//! waits for nothing reads the word after the kernels before it that wait for nothing either: NVIDIA's sample graphConditionalNodes has
//! such a node, and a kernel that sets its condition.

use super::events::Events;
use super::operations::{Edge, NewOperation, Operations};
use super::shared_events::SharedEvents;
use super::work::Work;
use crate::keys::{OperationNumber, StreamKey};
use balar_protocol::ContextId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Queues of graphs' kernels have numbers from here on: those of streams are below.
const FIRST_GRAPH_QUEUE: u32 = 1 << 31;

/// The queues of graphs' kernels: the number of the next one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GraphQueues {
    next: u32,
}

impl Default for GraphQueues {
    fn default() -> GraphQueues {
        GraphQueues { next: FIRST_GRAPH_QUEUE }
    }
}

impl GraphQueues {
    fn take(&mut self) -> u32 {
        let queue = self.next;
        self.next = queue.checked_add(1).unwrap_or(FIRST_GRAPH_QUEUE);
        queue
    }
}

/// The stream in which a graph runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamOfGraph {
    /// The stream's context.
    pub context: ContextId,
    pub key: StreamKey,
    /// Lower numbers go first.
    pub priority: i32,
}

impl StreamOfGraph {
    /// Adds an operation that waits for these alone, as one of the stream.
    pub fn add(self, work: Work, edges: &[Edge], operations: &mut Operations) -> OperationNumber {
        let StreamOfGraph { context, key, priority } = self;
        operations.add(NewOperation { context, stream: key.number(), priority, work }, edges)
    }
}

/// A node that was checked, and whose operation is to be added.
pub(crate) struct CheckedNode {
    pub work: Work,
    /// The operations that it waits for beyond the nodes before it.
    pub edges: Vec<Edge>,
    /// The nodes before it, by their places.
    pub dependencies: Vec<u32>,
    /// The event that it records.
    pub event: Option<u32>,
}

/// A node whose operation has been added.
#[derive(Clone, Copy)]
struct Added {
    number: OperationNumber,
    /// The queue of a kernel. The next node that waits for this kernel alone shares it.
    queue: Option<u32>,
    has_heir: bool,
    /// It waits for no other node.
    is_first: bool,
}

impl Added {
    fn done(&self) -> Edge {
        Edge::Done(self.number)
    }
}

/// The tables that the nodes of a graph are added to: all operations, the queues of kernels, and the events that nodes record.
pub(crate) struct GraphOrder<'a> {
    pub operations: &'a mut Operations,
    pub queues: &'a mut GraphQueues,
    pub events: &'a mut Events,
    pub shared_events: &'a mut SharedEvents,
}

impl GraphOrder<'_> {
    /// Adds the operations of nodes. The first of them wait for `before`; gives the end of the last ones.
    pub fn add_nodes(&mut self, stream: StreamOfGraph, nodes: Vec<CheckedNode>, before: &[Edge]) -> Vec<Edge> {
        let mut has_followers = vec![false; nodes.len()];
        for before in nodes.iter().flat_map(|node| &node.dependencies) {
            has_followers[*before as usize] = true;
        }
        let mut added: Vec<Added> = Vec::with_capacity(nodes.len());
        let mut ends = Vec::new();
        for (node, has_followers) in nodes.into_iter().zip(has_followers) {
            let CheckedNode { mut work, mut edges, dependencies, event } = node;
            let mut queue = None;
            if let Work::Kernel(launch) = &mut work {
                let inherited = inherit_queue(&dependencies, &mut added);
                edges.extend(inherited.map(|(parent, _)| Edge::Given(parent)));
                let number = inherited.map_or_else(|| self.queues.take(), |(_, queue)| queue);
                Arc::make_mut(launch).queue = number;
                queue = Some(number);
            }
            if edges.iter().all(|edge| matches!(edge, Edge::Done(_))) {
                edges.extend(dependencies.iter().map(|&node| Edge::Done(added[node as usize].number)));
            }
            if dependencies.is_empty() {
                edges.extend_from_slice(before);
                if matches!(work, Work::Conditional(_)) {
                    edges.extend(added.iter().filter(|node| node.is_first && node.queue.is_some()).map(Added::done));
                }
            }
            let is_first = dependencies.is_empty();
            let number = stream.add(work, &edges, self.operations);
            if let Some(event) = event {
                self.shared_events.record(event, number, self.events);
            }
            if !has_followers {
                ends.push(Edge::Done(number));
            }
            added.push(Added { number, queue, has_heir: false, is_first });
        }
        if ends.is_empty() { before.to_vec() } else { ends }
    }
}

/// The kernel whose queue a kernel shares, and that queue: the one that it waits for alone, unless another one shares it already.
fn inherit_queue(dependencies: &[u32], added: &mut [Added]) -> Option<(OperationNumber, u32)> {
    let &[only] = dependencies else { return None };
    let parent = added.get_mut(only as usize).filter(|only| !only.has_heir)?;
    let queue = parent.queue?;
    parent.has_heir = true;
    Some((parent.number, queue))
}
