//! Events: when the operations that were asked of a stream are done.

use super::operations::Operations;
use super::work::OperationNumber;
use balar_host::CudaError;
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

type Failure = (CudaError, String);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Event {
    device: usize,
    timed: bool,
    record: Option<Record>,
}

/// The last record of an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Record {
    operation: OperationNumber,
    time: Option<SimTime>,
}

/// All events of all devices.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Events {
    events: BTreeMap<u32, Event>,
    last: u32,
}

impl Events {
    /// A new event.
    pub fn create(&mut self, device: usize, timed: bool) -> u32 {
        self.last += 1;
        self.events.insert(self.last, Event { device, timed, record: None });
        self.last
    }

    /// The event is known no more.
    pub fn destroy(&mut self, event: u32) -> Result<(), Failure> {
        self.events.remove(&event).map(drop).ok_or_else(|| no_event(event))
    }

    /// All events of a device end.
    pub fn destroy_all(&mut self, device: usize) {
        self.events.retain(|_, event| event.device != device);
    }

    /// Whose event it is.
    pub fn device(&self, event: u32) -> Result<usize, Failure> {
        self.events.get(&event).map(|event| event.device).ok_or_else(|| no_event(event))
    }

    /// From now on the event stands for this operation.
    pub fn record(&mut self, event: u32, operation: OperationNumber) {
        if let Some(event) = self.events.get_mut(&event) {
            event.record = Some(Record { operation, time: None });
        }
    }

    /// The operation of a record is done. What a later record has replaced changes nothing.
    pub fn recorded(&mut self, event: u32, operation: OperationNumber, now: SimTime) {
        let record = self.events.get_mut(&event).and_then(|event| event.record.as_mut());
        if let Some(record) = record.filter(|record| record.operation == operation) {
            record.time = Some(now);
        }
    }

    /// The operation that the event stands for and that is not done; `None` where there is nothing to wait for.
    pub fn awaited(&self, event: u32, operations: &Operations) -> Result<Option<OperationNumber>, Failure> {
        let event = self.events.get(&event).ok_or_else(|| no_event(event))?;
        let operation = event.record.map(|record| record.operation);
        Ok(operation.filter(|&operation| operations.is_pending(operation)))
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
            ready &= self.awaited(number, operations)?.is_none();
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
        let mut operations = Operations::new(1);
        let mut add = || operations.add(NewOperation { device: 0, stream: 0, priority: 0, work: Work::Nothing }, &[]);
        let numbers = [add(), add(), add()];
        let mut events = Events::default();
        let (a, b) = (events.create(0, true), events.create(0, true));
        let error = |events: &Events, start, end| events.elapsed(start, end, &Operations::new(1)).map_err(|e| e.0);
        assert_eq!(error(&events, a, b), Err(CudaError::InvalidResourceHandle));
        events.record(a, numbers[0]);
        events.record(b, numbers[1]);
        events.record(b, numbers[2]);
        assert_eq!(events.elapsed(a, b, &operations).map_err(|e| e.0), Err(CudaError::NotReady));
        assert_eq!(events.awaited(b, &operations), Ok(Some(numbers[2])));
        for (event, number, time) in [(b, numbers[1], 5), (b, numbers[2], 10), (a, numbers[0], 17)] {
            operations.complete(number);
            events.recorded(event, number, SimTime(time));
        }
        assert_eq!(events.elapsed(a, b, &operations), Ok(-7));
        assert_eq!(events.awaited(b, &operations), Ok(None));
        let untimed = events.create(0, false);
        events.record(untimed, numbers[0]);
        assert_eq!(error(&events, a, untimed), Err(CudaError::InvalidResourceHandle));
        assert!(events.destroy(a).is_ok() && events.destroy(a).is_err());
    }
}
