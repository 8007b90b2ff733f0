//! Graphs: operations whose order is their own, as one operation of a stream.

use crate::Driver;
use crate::calls::CallOutcome;
use crate::order::operations::{Edge, NewOperation};
use crate::order::work::Delivery;
use crate::order::work::{OperationNumber, Work};
use balar_host::call::{CopyEnd, GraphNode};
use balar_host::{Call, CudaError};
use balar_protocol::ContextId;
use std::sync::Arc;

/// Queues of graphs' kernels have numbers from here on: those of streams are below.
pub(crate) const FIRST_GRAPH_QUEUE: u32 = 1 << 31;

/// A node whose operation has been added.
#[derive(Clone, Copy)]
struct Added {
    number: OperationNumber,
    /// Of a kernel: its queue, which the next node that waits for it alone shares.
    queue: Option<u32>,
    has_heir: bool,
}

impl Driver {
    pub(crate) fn launch_graph(&mut self, context: ContextId, nodes: Vec<GraphNode>, stream: u32) -> CallOutcome {
        let key = self.find_stream(context, stream)?;
        let context = self.own(context).streams.context(key);
        // All nodes are checked before any is added.
        let mut works = Vec::with_capacity(nodes.len());
        let mut has_followers = vec![false; nodes.len()];
        for (index, node) in nodes.into_iter().enumerate() {
            for &before in &node.dependencies {
                if before as usize >= index {
                    let text = format!("node {index} of a graph waits for node {before}, which is not before it");
                    return Err((CudaError::InvalidValue, text));
                }
                has_followers[before as usize] = true;
            }
            let event = match node.call.as_deref() {
                Some(Call::EventRecord { event, .. }) => Some(*event),
                _ => None,
            };
            let delivery = match node.call.as_deref() {
                Some(Call::Copy { destination: CopyEnd::Bytes(_), transfer, .. }) => {
                    Delivery::Transfer(context.process(), *transfer)
                }
                _ => Delivery::None,
            };
            let (work, extra) = match node.call {
                Some(call) => self.work_of(context, key, delivery, *call)?,
                None => (Work::Nothing, Vec::new()),
            };
            works.push((work, extra, node.dependencies, event));
        }
        let (streams, operations) = self.order(context);
        let before = streams.edges(key, false, operations);
        let (priority, stream) = (streams.priority(key), key.number());
        let mut added: Vec<Added> = Vec::with_capacity(works.len());
        let mut ends = Vec::new();
        for (index, (mut work, mut edges, dependencies, event)) in works.into_iter().enumerate() {
            let mut queue = None;
            if let Work::Kernel(launch) = &mut work {
                let heir = match dependencies[..] {
                    [only] => added.get_mut(only as usize).filter(|only| only.queue.is_some() && !only.has_heir),
                    _ => None,
                };
                let number = match heir {
                    Some(parent) => {
                        parent.has_heir = true;
                        edges.push(Edge::Given(parent.number));
                        parent.queue
                    }
                    None => None,
                };
                queue = Some(number.unwrap_or_else(|| self.new_queue()));
                Arc::make_mut(launch).queue = queue.unwrap_or_default();
            }
            if edges.iter().all(|edge| matches!(edge, Edge::Done(_))) {
                edges.extend(dependencies.iter().map(|&node| Edge::Done(added[node as usize].number)));
            }
            if dependencies.is_empty() {
                edges.extend_from_slice(&before);
            }
            let number = self.state.operations.add(NewOperation { context, stream, priority, work }, &edges);
            if let Some(event) = event {
                self.record_event(context.process(), event, number);
            }
            if !has_followers[index] {
                ends.push(Edge::Done(number));
            }
            added.push(Added { number, queue, has_heir: false });
        }
        if ends.is_empty() {
            ends = before;
        }
        let end = NewOperation { context, stream, priority, work: Work::Nothing };
        let number = self.state.operations.add(end, &ends);
        self.own(context).streams.set_end(key, number, Some(false));
        self.wait_for_room(context)
    }

    fn new_queue(&mut self) -> u32 {
        let queue = self.state.next_graph_queue;
        self.state.next_graph_queue = queue.checked_add(1).unwrap_or(FIRST_GRAPH_QUEUE);
        queue
    }
}
