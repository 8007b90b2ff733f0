//! Events that several processes know (`cudaIpc*`).

use super::events::{Events, Record};
use crate::keys::OperationNumber;
use crate::outcome::{Failure, own_handle};
use balar_host::CudaError;
use balar_protocol::ContextId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Events that several processes may know, by handle.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SharedEvents {
    events: BTreeMap<u64, SharedEvent>,
    last: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct SharedEvent {
    /// Whose it was first.
    context: ContextId,
    record: Option<Record>,
    /// Processes' events that are this one.
    references: u32,
}

impl SharedEvents {
    /// The last record of an event.
    pub fn record_of(&self, handle: u64) -> Option<Record> {
        self.events.get(&handle)?.record
    }

    /// From now on an event of a process stands for this operation.
    pub fn record(&mut self, event: u32, operation: OperationNumber, events: &mut Events) {
        if let Some(handle) = events.record(event, operation)
            && let Some(shared) = self.events.get_mut(&handle)
        {
            shared.record = Some(Record::of(operation));
        }
    }

    /// The handle of a process's event, by which others can open it.
    pub fn handle_of(&mut self, context: ContextId, event: u32, events: &mut Events) -> Result<u64, Failure> {
        let record = match events.record_of(event)? {
            Err(handle) => return Ok(handle),
            Ok(record) => record,
        };
        events.check_shareable(event)?;
        let handle = self.add(context, record);
        events.set_shared(event, handle);
        Ok(handle)
    }

    fn add(&mut self, context: ContextId, record: Option<Record>) -> u64 {
        self.last += 1;
        self.events.insert(self.last, SharedEvent { context, record, references: 1 });
        self.last
    }

    /// A process opens the event of another one. Gives its own number of it.
    pub fn open(&mut self, context: ContextId, handle: u64, events: &mut Events) -> Result<u32, Failure> {
        let Some(shared) = self.events.get_mut(&handle) else {
            return Err((CudaError::InvalidResourceHandle, format!("no event has the handle {handle}")));
        };
        if shared.context.process() == context.process() {
            return Err(own_handle());
        }
        shared.references += 1;
        let of = ContextId::new(context.process(), shared.context.gpu());
        Ok(events.import(of, handle))
    }

    /// Processes' events that were these have ended.
    pub fn release(&mut self, handles: impl IntoIterator<Item = u64>) {
        for handle in handles {
            if let Some(event) = self.events.get_mut(&handle) {
                event.references -= 1;
                if event.references == 0 {
                    self.events.remove(&handle);
                }
            }
        }
    }
}
