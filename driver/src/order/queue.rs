//! All work that was asked for and is not done, and the waits for it.

use super::events::Events;
use super::graph::{GraphOrder, GraphQueues};
use super::operations::Operations;
use super::shared_events::SharedEvents;
use crate::keys::OperationNumber;
use crate::outcome::{CallOutcome, Failure, NOTHING, Outcome};
use crate::wait::{Then, Until, Wait};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};

/// Bytes of pageable memory that asynchronous copies of a context may keep at once (a choice: as much as a program's end of the tunnel
/// allows).
const MAXIMUM_KEPT_BYTES: u64 = 64 << 20;

/// The operations of all processes, and the events that several of them know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub operations: Operations,
    pub shared_events: SharedEvents,
    graph_queues: GraphQueues,
    /// Operations of a context that are not yet done beyond which a call that adds one waits.
    queue_depth: usize,
}

impl Order {
    /// Nothing was asked for.
    pub fn new(queue_depth: usize) -> Order {
        Order {
            operations: Operations::default(),
            shared_events: SharedEvents::default(),
            graph_queues: GraphQueues::default(),
            queue_depth,
        }
    }

    /// How many operations fit into the queue of a context.
    pub fn free_places(&self, context: ContextId) -> usize {
        let has_bytes = self.operations.kept_bytes(context) <= MAXIMUM_KEPT_BYTES;
        if has_bytes { self.queue_depth.saturating_sub(self.operations.count(context)) } else { 0 }
    }

    /// A call that has added to a stream returns when there is room for more.
    pub fn wait_for_room(&self, context: ContextId) -> CallOutcome {
        if self.free_places(context) > 0 {
            return NOTHING;
        }
        Ok(Outcome::Waits(Wait { until: Until::QueueRoom(context), then: Then::Nothing }))
    }

    /// The end of all that a context was asked for so far.
    pub fn end_of_context(&self, context: ContextId) -> Until {
        Until::ContextBefore { context, number: self.operations.next() }
    }

    /// The same of all contexts of a process.
    pub fn end_of_process(&self, process: ProcessId) -> Until {
        Until::ProcessBefore(process, self.operations.next())
    }

    /// The operation that an event of a process stands for and that is not done; `None` where there is nothing to wait for.
    pub fn awaited(&self, events: &Events, event: u32) -> Result<Option<OperationNumber>, Failure> {
        let record = match events.record_of(event)? {
            Ok(record) => record,
            Err(handle) => self.shared_events.record_of(handle),
        };
        let operation = record.map(|record| record.operation);
        Ok(operation.filter(|&operation| self.operations.is_pending(operation)))
    }

    /// The tables that the nodes of a graph are added to; they record events of this process.
    pub fn of_graph<'a>(&'a mut self, events: &'a mut Events) -> GraphOrder<'a> {
        let Order { operations, shared_events, graph_queues: queues, .. } = self;
        GraphOrder { operations, queues, events, shared_events }
    }
}
