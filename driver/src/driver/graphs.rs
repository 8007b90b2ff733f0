//! Graphs that are launched, and the words that conditional nodes go by.

use super::parts::{Driver, DriverState};
use crate::keys::{OperationNumber, StreamKey};
use crate::order::graph::{CheckedNode, StreamOfGraph};
use crate::order::operations::Edge;
use crate::order::work::{ConditionalWork, Delivery, Work};
use crate::outcome::{CallOutcome, Caller, Failure, invalid};
use crate::process::context::ContextFailure;
use balar_host::Call;
use balar_host::call::{Conditional, CopyEnd, GraphNode};
use balar_protocol::ContextId;
use balar_protocol::ranges::RangePath;

impl Driver {
    /// Launches a graph in a stream. The words of `conditions` get their values first.
    pub(super) fn launch_graph(
        &mut self,
        caller: Caller,
        nodes: Vec<GraphNode>,
        conditions: Vec<(u64, u32)>,
        stream: u32,
    ) -> CallOutcome {
        let own = self.state.processes.own(caller.context);
        let key = own.find_stream(caller.context, stream)?;
        let context = own.streams.context(key);
        let range = self.state.processes.range_of(caller);
        // All nodes are checked before any is added.
        for &(address, _) in &conditions {
            self.check_condition(context, address)?;
        }
        let checked = self.check_nodes(context, key, nodes, range.as_ref())?;
        let DriverState { processes, order, .. } = &mut self.state;
        let own = processes.own(context);
        let stream = StreamOfGraph { context, key, priority: own.streams.priority(key) };
        let mut before = own.streams.edges(key, false, &order.operations);
        if !conditions.is_empty() {
            let values = stream.add(Work::Conditions(conditions), &before, &mut order.operations);
            before = vec![Edge::Done(values)];
        }
        let ends = order.of_graph(&mut own.events).add_nodes(stream, checked, &before);
        let number = stream.add(Work::Nothing, &ends, &mut order.operations);
        own.streams.set_end(key, number, Some(false));
        order.wait_for_room(context)
    }

    /// The word of a condition has been read: the node that goes by it has its nodes run, or is done.
    pub fn condition_read(&mut self, number: OperationNumber, value: u32) {
        let DriverState { processes, order, .. } = &mut self.state;
        let Some((context, Work::Conditional(work))) = order.operations.under_way(number) else { return };
        let (key, chosen, range) = (work.stream, work.node.chosen(value).cloned(), work.range.clone());
        let Some(nodes) = chosen.filter(|_| !processes.has_failed(context)) else {
            order.operations.complete(number);
            return;
        };
        let checked = self.check_nodes(context, key, nodes, range.as_ref());
        let DriverState { processes, memory, order, .. } = &mut self.state;
        match checked {
            Ok(checked) => {
                let own = processes.own(context);
                let stream = StreamOfGraph { context, key, priority: own.streams.priority(key) };
                let ends = order.of_graph(&mut own.events).add_nodes(stream, checked, &[]);
                stream.add(Work::EndOfGraph(number), &ends, &mut order.operations);
            }
            Err((error, text)) => {
                order.operations.complete(number);
                processes.fail(context, ContextFailure::new(error, text, None), &mut order.operations, memory);
            }
        }
    }

    /// Checks nodes, and finds out their work. Kernels belong to the named range that the graph was launched in.
    fn check_nodes(
        &mut self,
        context: ContextId,
        key: StreamKey,
        nodes: Vec<GraphNode>,
        range: Option<&RangePath>,
    ) -> Result<Vec<CheckedNode>, Failure> {
        let mut checked = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.into_iter().enumerate() {
            let GraphNode { call, conditional, dependencies } = node;
            if let Some(before) = dependencies.iter().find(|before| **before as usize >= index) {
                let text = format!("node {index} of a graph waits for node {before}, which is not before it");
                return Err(invalid(text));
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
            checked.push(CheckedNode { work: work.in_range(range), edges, dependencies, event });
        }
        Ok(checked)
    }

    fn conditional_work(&self, context: ContextId, stream: StreamKey, node: Conditional) -> Result<Work, Failure> {
        self.check_condition(context, node.address)?;
        Ok(Work::Conditional(Box::new(ConditionalWork { stream, node, range: None })))
    }

    /// Checks that a condition is a word that the process has.
    fn check_condition(&self, context: ContextId, address: u64) -> Result<(), Failure> {
        let memory = &self.state.memory;
        let is_word = address.is_multiple_of(4);
        if is_word && memory.is_allocated(context.process(), address, 4, &self.code.symbols) {
            return Ok(());
        }
        Err(invalid(format!("there is no condition of a graph at {address:#x}")))
    }
}
