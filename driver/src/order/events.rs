//! Events: when the operations that were asked of a stream are done.

use super::operations::Operations;
use crate::keys::OperationNumber;
use crate::outcome::Failure;
use balar_host::CudaError;
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Event {
    context: ContextId,
    timed: bool,
    record: Option<Record>,
    /// For an event that several processes know: the handle that its record is kept under.
    shared: Option<u64>,
}

/// The last record of an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub operation: OperationNumber,
    time: Option<SimTime>,
}

impl Record {
    /// The record of an operation that is not done.
    pub fn of(operation: OperationNumber) -> Record {
        Record { operation, time: None }
    }
}

/// All events of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Events {
    events: BTreeMap<u32, Event>,
    last: u32,
}

impl Events {
    /// A new event.
    pub fn create(&mut self, context: ContextId, timed: bool) -> u32 {
        self.last += 1;
        self.events.insert(self.last, Event { context, timed, record: None, shared: None });
        self.last
    }

    /// The event is known no more; gives the handle of a shared one.
    pub fn destroy(&mut self, event: u32) -> Result<Option<u64>, Failure> {
        self.events.remove(&event).map(|event| event.shared).ok_or_else(|| no_event(event))
    }

    /// A new event of the context that is the shared one with this handle.
    pub fn import(&mut self, context: ContextId, handle: u64) -> u32 {
        self.last += 1;
        self.events.insert(self.last, Event { context, timed: false, record: None, shared: Some(handle) });
        self.last
    }

    /// From now on other processes may know the event by this handle.
    pub fn set_shared(&mut self, event: u32, handle: u64) {
        if let Some(event) = self.events.get_mut(&event) {
            event.shared = Some(handle);
        }
    }

    /// Refuses to share an event that keeps times.
    pub fn check_shareable(&self, event: u32) -> Result<(), Failure> {
        let event = self.events.get(&event).filter(|event| event.timed);
        event.map_or(Ok(()), |_| {
            let text = "an event that processes share keeps no time".to_owned();
            Err((CudaError::InvalidResourceHandle, text))
        })
    }

    /// All events of a context end; gives the handles of shared ones.
    pub fn destroy_all(&mut self, context: ContextId) -> Vec<u64> {
        let mut shared = Vec::new();
        self.events.retain(|_, event| {
            let ends = event.context == context;
            shared.extend(event.shared.filter(|_| ends));
            !ends
        });
        shared
    }

    /// The number of the GPU that it is of.
    pub fn gpu(&self, event: u32) -> Result<usize, Failure> {
        self.events.get(&event).map(|event| event.context.gpu()).ok_or_else(|| no_event(event))
    }

    /// From now on the event stands for this operation. Gives the handle of a shared one, which that is kept under.
    pub fn record(&mut self, event: u32, operation: OperationNumber) -> Option<u64> {
        let event = self.events.get_mut(&event)?;
        if event.shared.is_none() {
            event.record = Some(Record::of(operation));
        }
        event.shared
    }

    /// The last record of an event, or the handle that it is kept under.
    pub fn record_of(&self, event: u32) -> Result<Result<Option<Record>, u64>, Failure> {
        let event = self.events.get(&event).ok_or_else(|| no_event(event))?;
        Ok(event.shared.map_or(Ok(event.record), Err))
    }

    /// The operation of a record is done. A record that a later one has replaced changes nothing.
    pub fn recorded(&mut self, event: u32, operation: OperationNumber, now: SimTime) {
        let record = self.events.get_mut(&event).and_then(|event| event.record.as_mut());
        if let Some(record) = record.filter(|record| record.operation == operation) {
            record.time = Some(now);
        }
    }

    /// Picoseconds from one event to another.
    pub fn elapsed(&self, start: u32, end: u32, operations: &Operations) -> Result<i64, Failure> {
        let mut times = [0; 2];
        let mut ready = true;
        for (time, number) in times.iter_mut().zip([start, end]) {
            let event = self.events.get(&number).ok_or_else(|| no_event(number))?;
            let problem = match event.record {
                _ if !event.timed => Some("keeps no time"),
                None => Some("has not been recorded"),
                Some(_) => None,
            };
            if let Some(problem) = problem {
                return Err((CudaError::InvalidResourceHandle, format!("event {number} {problem}")));
            }
            ready &= event.record.is_none_or(|record| !operations.is_pending(record.operation));
            *time = event.record.and_then(|record| record.time).map_or(0, SimTime::picoseconds) as i64;
        }
        if !ready {
            return Err((CudaError::NotReady, format!("event {start} or {end} is not done")));
        }
        Ok(times[1] - times[0])
    }
}

fn no_event(event: u32) -> Failure {
    (CudaError::InvalidResourceHandle, format!("there is no event {event}"))
}

#[cfg(test)]
mod tests {
    use super::super::operations::NewOperation;
    use super::super::work::Work;
    use super::*;

    #[test]
    fn times_are_those_of_the_last_records() {
        let mut operations = Operations::default();
        let mut add = || {
            operations
                .add(NewOperation { context: ContextId::first(0), stream: 0, priority: 0, work: Work::Nothing }, &[])
        };
        let numbers = [add(), add(), add()];
        let mut events = Events::default();
        let (a, b) = (events.create(ContextId::first(0), true), events.create(ContextId::first(0), true));
        let error = |events: &Events, start, end| events.elapsed(start, end, &Operations::default()).map_err(|e| e.0);
        assert_eq!(error(&events, a, b), Err(CudaError::InvalidResourceHandle));
        events.record(a, numbers[0]);
        events.record(b, numbers[1]);
        events.record(b, numbers[2]);
        assert_eq!(events.elapsed(a, b, &operations).map_err(|e| e.0), Err(CudaError::NotReady));
        for (event, number, time) in [(b, numbers[1], 5), (b, numbers[2], 10), (a, numbers[0], 17)] {
            operations.complete(number);
            events.recorded(event, number, SimTime(time));
        }
        assert_eq!(events.elapsed(a, b, &operations), Ok(-7));
        let untimed = events.create(ContextId::first(0), false);
        events.record(untimed, numbers[0]);
        assert_eq!(error(&events, a, untimed), Err(CudaError::InvalidResourceHandle));
        assert!(events.destroy(a).is_ok() && events.destroy(a).is_err());
    }
}
