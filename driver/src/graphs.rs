//! Graphs: operations whose order is their own, as one operation of a stream.
//!
//! A conditional node is an operation that begins when what it waits for is done: then the word that it goes by is read, the nodes of
//! the graph that it chooses become operations, and it is done when they are; or it reads the word again. One that waits for nothing
//! reads the word behind the kernels before it that wait for nothing either: NVIDIA's sample graphConditionalNodes has such a node, and
//! a kernel that sets its condition.

use crate::Driver;
use crate::calls::{CallOutcome, Caller};
use crate::effect::Effect;
use crate::order::operations::{Edge, NewOperation};
use crate::order::streams::StreamKey;
use crate::order::work::{ConditionalWork, Delivery, OperationNumber, Work};
use balar_host::call::{Conditional, ConditionalKind, CopyEnd, GraphNode};
use balar_host::{Call, CudaError};
use balar_protocol::ContextId;
use balar_protocol::ranges::RangePath;
use std::sync::Arc;

/// Queues of graphs' kernels have numbers from here on: those of streams are below.
pub(crate) const FIRST_GRAPH_QUEUE: u32 = 1 << 31;

/// A node that was checked, and whose operation is to be added.
struct Checked {
    work: Work,
    /// What it waits for beyond the nodes before it.
    edges: Vec<Edge>,
    dependencies: Vec<u32>,
    event: Option<u32>,
}

/// A node whose operation has been added.
#[derive(Clone, Copy)]
struct Added {
    number: OperationNumber,
    /// Of a kernel: its queue, which the next node that waits for it alone shares.
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

impl Driver {
    /// Launches a graph in a stream. The words of `conditions` get their values first.
    pub(crate) fn launch_graph(
        &mut self,
        caller: Caller,
        nodes: Vec<GraphNode>,
        conditions: Vec<(u64, u32)>,
        stream: u32,
    ) -> CallOutcome {
        let key = self.find_stream(caller.context, stream)?;
        let context = self.own(caller.context).streams.context(key);
        let range = self.range_of(caller);
        // All nodes are checked before any is added.
        for &(address, _) in &conditions {
            self.check_condition(context, address)?;
        }
        let checked = self.check_nodes(context, key, nodes, range.as_ref())?;
        let (streams, operations) = self.order(context);
        let mut before = streams.edges(key, false, operations);
        if !conditions.is_empty() {
            before = vec![Edge::Done(self.add_to(context, key, Work::Conditions(conditions), &before))];
        }
        let ends = self.add_nodes(context, key, checked, &before);
        let number = self.add_to(context, key, Work::Nothing, &ends);
        self.own(context).streams.set_end(key, number, Some(false));
        self.wait_for_room(context)
    }

    /// The word of a condition has been read: the node that goes by it has its nodes run, or is done.
    pub fn condition_read(&mut self, number: OperationNumber, value: u32) {
        let Some((context, Work::Conditional(work))) = self.state.operations.under_way(number) else { return };
        let (key, chosen, range) = (work.stream, work.node.chosen(value).cloned(), work.range.clone());
        let has_failed = self.context(context).sticky.is_some();
        let Some(nodes) = chosen.filter(|_| !has_failed) else {
            self.state.operations.complete(number);
            return;
        };
        match self.check_nodes(context, key, nodes, range.as_ref()) {
            Ok(checked) => {
                let ends = self.add_nodes(context, key, checked, &[]);
                self.add_to(context, key, Work::EndOfGraph(number), &ends);
            }
            Err((error, text)) => {
                self.state.operations.complete(number);
                self.fail_context(context, error, text, None);
            }
        }
    }

    /// The graph is done that a conditional node has chosen.
    pub(crate) fn chosen_graph_ended(&mut self, of: OperationNumber) {
        let Some((_, Work::Conditional(work))) = self.state.operations.under_way(of) else { return };
        if work.node.kind == ConditionalKind::While {
            let address = work.node.address;
            self.want(Effect::ReadCondition { operation: of, address });
        } else {
            self.state.operations.complete(of);
        }
    }

    /// Checks nodes, and finds out what they do: kernels are of the named range that the graph was launched in.
    fn check_nodes(
        &mut self,
        context: ContextId,
        key: StreamKey,
        nodes: Vec<GraphNode>,
        range: Option<&RangePath>,
    ) -> Result<Vec<Checked>, (CudaError, String)> {
        let mut checked = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.into_iter().enumerate() {
            let GraphNode { call, conditional, dependencies } = node;
            if let Some(before) = dependencies.iter().find(|before| **before as usize >= index) {
                let text = format!("node {index} of a graph waits for node {before}, which is not before it");
                return Err((CudaError::InvalidValue, text));
            }
            let event = match call.as_deref() {
                Some(Call::EventRecord { event, .. }) => Some(*event),
                _ => None,
            };
            let delivery = match call.as_deref() {
                Some(Call::Copy { destination: CopyEnd::Bytes(_), transfer, .. }) => {
                    Delivery::Transfer(context.process(), *transfer)
                }
                _ => Delivery::None,
            };
            let (work, edges) = match (call, conditional) {
                (Some(call), _) => self.work_of(context, key, delivery, *call)?,
                (None, Some(node)) => (self.conditional_work(context, key, *node)?, Vec::new()),
                (None, None) => (Work::Nothing, Vec::new()),
            };
            checked.push(Checked { work: work.in_range(range), edges, dependencies, event });
        }
        Ok(checked)
    }

    fn conditional_work(
        &mut self,
        context: ContextId,
        stream: StreamKey,
        node: Conditional,
    ) -> Result<Work, (CudaError, String)> {
        self.check_condition(context, node.address)?;
        Ok(Work::Conditional(Box::new(ConditionalWork { stream, node, range: None })))
    }

    /// Checks that a condition is a word that the process has.
    fn check_condition(&mut self, context: ContextId, address: u64) -> Result<(), (CudaError, String)> {
        if address.is_multiple_of(4) && self.is_allocated(context.process(), address, 4) {
            return Ok(());
        }
        Err((CudaError::InvalidValue, format!("there is no condition of a graph at {address:#x}")))
    }

    /// Adds the operations of nodes, of which the first wait for `before`; gives what the end of the last ones is.
    fn add_nodes(&mut self, context: ContextId, key: StreamKey, nodes: Vec<Checked>, before: &[Edge]) -> Vec<Edge> {
        let mut has_followers = vec![false; nodes.len()];
        for before in nodes.iter().flat_map(|node| &node.dependencies) {
            has_followers[*before as usize] = true;
        }
        let mut added: Vec<Added> = Vec::with_capacity(nodes.len());
        let mut ends = Vec::new();
        for (node, has_followers) in nodes.into_iter().zip(has_followers) {
            let Checked { mut work, mut edges, dependencies, event } = node;
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
                edges.extend_from_slice(before);
                if matches!(work, Work::Conditional(_)) {
                    edges.extend(added.iter().filter(|node| node.is_first && node.queue.is_some()).map(Added::done));
                }
            }
            let is_first = dependencies.is_empty();
            let number = self.add_to(context, key, work, &edges);
            if let Some(event) = event {
                self.record_event(context.process(), event, number);
            }
            if !has_followers {
                ends.push(Edge::Done(number));
            }
            added.push(Added { number, queue, has_heir: false, is_first });
        }
        if ends.is_empty() { before.to_vec() } else { ends }
    }

    /// Adds an operation that waits for these alone, as one of a stream.
    fn add_to(&mut self, context: ContextId, key: StreamKey, work: Work, edges: &[Edge]) -> OperationNumber {
        let priority = self.own(context).streams.priority(key);
        self.state.operations.add(NewOperation { context, stream: key.number(), priority, work }, edges)
    }

    fn new_queue(&mut self) -> u32 {
        let queue = self.state.next_graph_queue;
        self.state.next_graph_queue = queue.checked_add(1).unwrap_or(FIRST_GRAPH_QUEUE);
        queue
    }
}
