//! Runs that end after so many launches.

use balar_host::call::{CallClass, CallResult};
use balar_host::{Host, Measurement, Next, ThreadId, Verification};
use balar_protocol::ProcessId;
use balar_record::ending::Ending;
use balar_record::result::RunRecord;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many launches a program may make, and whether it has made them.
#[derive(Clone, Debug, Default)]
pub struct LaunchLimit {
    most: Option<u32>,
    is_reached: Arc<AtomicBool>,
}

impl LaunchLimit {
    /// So many; any number without one.
    pub fn new(most: Option<u32>) -> LaunchLimit {
        LaunchLimit { most, is_reached: Arc::default() }
    }

    /// Puts the limit before a program: once its launches are made, it makes no further call, as though it had ended. What it has asked the
    /// devices for until then is done.
    pub fn around(&self, host: Box<dyn Host>) -> Box<dyn Host> {
        match self.most {
            None => host,
            Some(left) => {
                let is_reached = self.is_reached.clone();
                Box::new(LimitedHost { inner: host, left, launching: BTreeSet::new(), is_reached })
            }
        }
    }

    /// Notes in the record of a run that the limit has ended it.
    pub fn note_in(&self, record: &mut RunRecord) {
        if let Some(most) = self.most.filter(|_| self.is_reached.load(Ordering::Relaxed))
            && record.ending == Ending::Completed
        {
            record.ending = Ending::Launches(most);
        }
    }
}

/// A program that is not asked for more when its launches are made.
struct LimitedHost {
    inner: Box<dyn Host>,
    /// Launches that it may still make.
    left: u32,
    /// Threads in calls that launch.
    launching: BTreeSet<ThreadId>,
    is_reached: Arc<AtomicBool>,
}

impl LimitedHost {
    fn is_over(&self) -> bool {
        self.left == 0
    }
}

impl Host for LimitedHost {
    fn next(&mut self) -> Next {
        if self.is_over() {
            self.is_reached.store(true, Ordering::Relaxed);
            return Next::End { error: None };
        }
        let next = self.inner.next();
        if let Next::Call(request) = &next
            && matches!(request.call.class(), CallClass::Launch | CallClass::GraphLaunch)
        {
            self.launching.insert(request.thread);
        }
        next
    }

    fn expect_call_back(&mut self, expected: bool) {
        self.inner.expect_call_back(expected);
    }

    fn has_threads_outside(&self) -> bool {
        !self.is_over() && self.inner.has_threads_outside()
    }

    fn queue_room(&mut self, thread: ThreadId, operations: usize) {
        self.inner.queue_room(thread, operations);
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        if self.launching.remove(&thread) && !matches!(result, CallResult::Error(_)) {
            self.left = self.left.saturating_sub(1);
        }
        self.inner.complete(thread, result);
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.inner.call_back(process, function);
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.inner.receive(process, transfer, data);
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        self.inner.printed(process, text, error);
    }

    fn verification(&self) -> Verification {
        // What the program has not computed cannot be right.
        if self.is_over() { Verification::NotChecked } else { self.inner.verification() }
    }

    fn measurements(&self) -> Vec<Measurement> {
        if self.is_over() { Vec::new() } else { self.inner.measurements() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::{Call, Request};

    /// A program that launches empty graphs one after another, and whose second launch fails.
    #[derive(Default)]
    struct Launches(usize);

    impl Host for Launches {
        fn next(&mut self) -> Next {
            self.0 += 1;
            let call = Call::GraphLaunch { nodes: Vec::new(), conditions: Vec::new(), stream: 0 };
            let (thread, process) = (ThreadId(0), ProcessId::FIRST);
            Next::Call(Request { thread, process, device: 0, host_picoseconds: 0, call })
        }

        fn complete(&mut self, _: ThreadId, _: CallResult) {}

        fn call_back(&mut self, _: ProcessId, _: u64) {}

        fn receive(&mut self, _: ProcessId, _: u32, _: Arc<[u8]>) {}

        fn printed(&mut self, _: ProcessId, _: &[u8], _: &[u8]) {}

        fn verification(&self) -> Verification {
            Verification::Passed
        }

        fn measurements(&self) -> Vec<Measurement> {
            Vec::new()
        }
    }

    #[test]
    fn a_program_ends_when_its_launches_are_made() {
        let limit = LaunchLimit::new(Some(2));
        let mut host = limit.around(Box::new(Launches::default()));
        let results = [CallResult::None, CallResult::Error(balar_host::CudaError::InvalidValue), CallResult::None];
        for result in results {
            assert!(matches!(host.next(), Next::Call(_)));
            assert_eq!(host.verification(), Verification::Passed);
            host.complete(ThreadId(0), result);
        }
        // Two of three were made.
        assert!(!limit.is_reached.load(Ordering::Relaxed));
        assert_eq!(host.next(), Next::End { error: None });
        assert_eq!(host.verification(), Verification::NotChecked);
        let mut record = balar_record::sample::record();
        limit.note_in(&mut record);
        assert_eq!(record.ending, Ending::Launches(2));
    }

    #[test]
    fn a_program_without_a_limit_stays_as_it_is() {
        let limit = LaunchLimit::new(None);
        let mut host = limit.around(Box::new(Launches::default()));
        for _ in 0..9 {
            assert!(matches!(host.next(), Next::Call(_)));
            host.complete(ThreadId(0), CallResult::None);
        }
        let mut record = balar_record::sample::record();
        limit.note_in(&mut record);
        assert_eq!(record.ending, Ending::Completed);
    }
}
