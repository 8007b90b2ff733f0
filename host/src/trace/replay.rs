//! A recorded program: it makes the recorded calls in their order, and compares their results with the recorded ones.

use super::comparison::{call_in_words, compare, compare_bytes};
use super::error::TraceError;
use super::event::Event;
use super::payloads::PayloadId;
use super::reader::Trace;
use super::recorder::waits_for_device;
use super::shared_memory::{HostWindow, SharedMemory};
use crate::Verification;
use crate::call::{Call, CallResult};
use crate::program::{Host, Measurement, Next, Request, ThreadId};
use balar_protocol::ProcessId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// A thread of the recorded program.
#[derive(Default)]
struct Thread {
    /// The event of the call under way.
    request: Option<usize>,
    /// The events of the results that are still to come.
    results: VecDeque<usize>,
    /// Results that have come, and that the order of events has not reached.
    returned: usize,
}

/// Replays a trace.
///
/// A call is made when all that the program had been told before it, as it was recorded, has happened again: on the recorded
/// topology that is at the same times.
pub struct Replay {
    trace: Trace,
    /// The next event.
    cursor: usize,
    memory: SharedMemory,
    threads: BTreeMap<ThreadId, Thread>,
    /// Host functions that were asked for, and that the order of events has not reached.
    called_back: BTreeMap<(ProcessId, u64), usize>,
    /// The events of the asynchronous copies that are still to come.
    transfers: BTreeMap<(ProcessId, u32), VecDeque<usize>>,
    /// Answers "waiting" at the present event.
    waited: u32,
    /// Text for the standard output and for the standard error stream, by process.
    printed: BTreeMap<ProcessId, [Printed; 2]>,
    /// Whether values are compared, not only addresses and errors.
    compares_data: bool,
    /// The node, where it is another than that of the recording.
    elsewhere: Option<String>,
    /// The first difference there.
    first_elsewhere: Arc<OnceLock<String>>,
    /// Whether the replay could not go on on that node.
    broken_off: bool,
    last_kernel: Option<String>,
    /// The first difference, and how many there were.
    different: Option<String>,
    differences: u64,
    compared: bool,
    /// Whether nothing more is played: the trace has come to its end, or the replay cannot go on.
    ended: bool,
    end_error: Option<String>,
}

/// Text that kernels print: the recorded text that has not been printed again.
#[derive(Default)]
struct Printed {
    expected: VecDeque<u8>,
    done: usize,
    differs: bool,
}

impl Replay {
    /// Replays `trace`. `window` is the pinned and managed memory of the node that it is replayed on; without `compares_data`, the replay
    /// compares only values that later calls depend on.
    ///
    /// # Errors
    ///
    /// Where the trace has changed since it was opened.
    pub fn new(trace: Trace, window: Option<HostWindow>, compares_data: bool) -> Result<Replay, TraceError> {
        let mut threads: BTreeMap<ThreadId, Thread> = BTreeMap::new();
        let mut transfers: BTreeMap<(ProcessId, u32), VecDeque<usize>> = BTreeMap::new();
        let mut printed: BTreeMap<ProcessId, [Printed; 2]> = BTreeMap::new();
        for (index, event) in trace.events.iter().enumerate() {
            match event {
                Event::Result { thread, .. } => threads.entry(*thread).or_default().results.push_back(index),
                &Event::Receive { process, transfer, .. } => {
                    transfers.entry((process, transfer)).or_default().push_back(index);
                }
                Event::Printed { process, text, error } => {
                    let printed = printed.entry(*process).or_default();
                    for (printed, &id) in printed.iter_mut().zip([text, error]) {
                        printed.expected.extend(trace.payload(id)?.iter());
                    }
                }
                _ => {}
            }
        }
        Ok(Replay {
            trace,
            cursor: 0,
            memory: SharedMemory::new(window),
            threads,
            called_back: BTreeMap::new(),
            transfers,
            waited: 0,
            printed,
            compares_data,
            elsewhere: None,
            first_elsewhere: Arc::default(),
            broken_off: false,
            last_kernel: None,
            different: None,
            differences: 0,
            compared: false,
            ended: false,
            end_error: None,
        })
    }

    /// The replay is on this node. Where that is another than the recording's, other results are no wrong ones: atomics add up in another
    /// order, and kernels print in another order, which is not compared. What later calls depend on may differ, too: then the replay ends
    /// with an error.
    pub fn on(mut self, node: &str) -> Replay {
        self.elsewhere = Some(node.to_owned()).filter(|node| *node != self.trace.header.topology);
        self
    }

    /// On another node: the first difference from the recording, once there is one.
    pub fn first_difference(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.first_elsewhere)
    }

    /// Does it compare what kernels print?
    fn compares_text(&self) -> bool {
        self.compares_data && self.elsewhere.is_none()
    }

    /// Notes a difference; the first is the one to show.
    fn differs(&mut self, text: String) {
        self.differences += 1;
        if self.elsewhere.is_some() {
            self.first_elsewhere.get_or_init(|| text);
        } else {
            self.different.get_or_insert(text);
        }
    }

    /// Ends the replay: from here on it would differ from the recorded run.
    fn stop(&mut self, text: String) {
        self.differences += 1;
        self.different.get_or_insert(format!("{text}; the replay ends here"));
        self.ended = true;
    }

    /// Ends the replay where what comes next depends on something that is otherwise than it was.
    fn cannot_go_on(&mut self, text: String) {
        let Some(node) = &self.elsewhere else { return self.stop(text) };
        let recorded = &self.trace.header.topology;
        self.end_error =
            Some(format!("the trace was recorded on {recorded}, and its replay on {node} cannot go on: {text}"));
        (self.ended, self.broken_off) = (true, true);
    }

    /// The recorded call number `index`, in words.
    fn place(&self, index: usize) -> String {
        let Some(Event::Request { request, .. }) = self.trace.events.get(index) else { return "a call".to_owned() };
        let number = self.trace.events[..index].iter().filter(|event| matches!(event, Event::Request { .. })).count();
        let kernel = match (&self.last_kernel, &request.call) {
            (Some(kernel), call) if !matches!(call, Call::Launch(_)) => format!(", after the kernel {kernel}"),
            _ => String::new(),
        };
        format!("call {number} ({}, thread {}{kernel})", call_in_words(&request.call), request.thread.0)
    }

    /// The bytes of a payload; stops the replay where they are gone.
    fn payload(&mut self, id: PayloadId) -> Option<std::sync::Arc<[u8]>> {
        match self.trace.payload(id) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.stop(error.to_string());
                None
            }
        }
    }

    /// The request at an event, with its bulk data.
    fn request(&mut self, index: usize) -> Option<Request> {
        let Event::Request { request, payloads } = self.trace.events.get(index)? else { return None };
        let (mut request, payloads) = (request.clone(), payloads.clone());
        for (number, id) in payloads.into_iter().enumerate() {
            let data = self.payload(id)?;
            if let Some(bytes) = request.call.payloads_mut().into_iter().nth(number) {
                bytes.fill(data);
            }
        }
        if let Call::Launch(launch) = &request.call {
            self.last_kernel = Some(launch.function.name.to_string());
        }
        self.threads.entry(request.thread).or_default().request = Some(index);
        Some(request)
    }

    fn write_memory(&mut self, index: usize) {
        let Some(Event::HostWrite { ranges, data }) = self.trace.events.get(index) else { return };
        let (ranges, data) = (ranges.clone(), *data);
        let Some(bytes) = self.payload(data) else { return };
        if let Err(problem) = self.memory.write(&ranges, &bytes) {
            self.stop(format!("the program's writes to memory cannot be repeated: {problem}"));
        }
    }

    /// Is any call under way, or any host function still to be asked for?
    fn waits(&self) -> bool {
        self.threads.values().any(|thread| thread.request.is_some())
    }

    /// Calls under way of a process that has ended return no more.
    fn forget_calls_of(&mut self, process: ProcessId) {
        for thread in self.threads.values_mut() {
            let event = thread.request.and_then(|index| self.trace.events.get(index));
            if matches!(event, Some(Event::Request { request, .. }) if request.process == process) {
                thread.request = None;
            }
        }
    }

    fn compare_result(&mut self, index: usize, request: usize, found: &CallResult) {
        let Some(Event::Result { result, data, shared_memory, .. }) = self.trace.events.get(index) else { return };
        let (recorded, data, shared_memory) = (result.clone(), *data, *shared_memory);
        let Some(Event::Request { request: Request { call, .. }, .. }) = self.trace.events.get(request) else { return };
        let call = call.clone();
        if let Some(difference) = compare(&call, &recorded, found) {
            let place = self.place(request);
            self.cannot_go_on(format!("{place}: {difference}"));
            return;
        }
        if !self.compares_data {
            return;
        }
        if let (CallResult::Data(found), Some(id)) = (found, data) {
            self.compared = true;
            let Some(expected) = self.payload(id) else { return };
            if let Some(text) = compare_bytes(&expected, found.data().map_or(&[][..], |data| data)) {
                let place = self.place(request);
                self.differs(format!("{place}: {text}"));
            }
        }
        if let Some(expected) = shared_memory.filter(|_| waits_for_device(&call) && !self.memory.is_empty()) {
            self.compared = true;
            if self.memory.checksum() != expected {
                let place = self.place(request);
                self.differs(format!("{place}: pinned or managed memory holds other bytes than it did"));
            }
        }
    }
}

impl Host for Replay {
    fn next(&mut self) -> Next {
        loop {
            if self.ended {
                return Next::End { error: self.end_error.clone() };
            }
            match self.trace.events.get(self.cursor) {
                None => {
                    if self.waits() && self.trace.header.finished.is_none() {
                        // An unfinished trace: work that is under way is simulated to its end.
                        return Next::Waiting;
                    }
                    self.ended = true;
                }
                Some(Event::Code { .. } | Event::Receive { .. } | Event::Printed { .. }) => self.cursor += 1,
                Some(Event::HostWrite { .. }) => {
                    self.write_memory(self.cursor);
                    self.cursor += 1;
                }
                Some(Event::Result { thread, .. }) => match self.threads.get_mut(thread) {
                    Some(thread) if thread.returned > 0 => {
                        thread.returned -= 1;
                        self.cursor += 1;
                    }
                    _ => return Next::Waiting,
                },
                Some(&Event::CallBack { process, function }) => match self.called_back.get_mut(&(process, function)) {
                    Some(asked) if *asked > 0 => {
                        *asked -= 1;
                        self.cursor += 1;
                    }
                    _ => return Next::Waiting,
                },
                Some(&Event::ProcessEnds { process, was_killed }) => {
                    self.cursor += 1;
                    self.forget_calls_of(process);
                    return Next::ProcessEnds { process, was_killed };
                }
                Some(Event::Waited { times }) => {
                    // Where nothing is under way, nobody would ask again.
                    if self.waited < *times && self.waits() {
                        self.waited += 1;
                        return Next::Waiting;
                    }
                    self.waited = 0;
                    self.cursor += 1;
                }
                Some(Event::Request { .. }) => {
                    let index = self.cursor;
                    self.cursor += 1;
                    if let Some(request) = self.request(index) {
                        if matches!(request.call, Call::Exit { .. } | Call::CallbackDone { .. })
                            && let Some(thread) = self.threads.get_mut(&request.thread)
                            && thread.results.is_empty()
                        {
                            thread.request = None;
                        }
                        return Next::Call(request);
                    }
                }
                Some(Event::End { error }) => {
                    self.end_error = error.clone();
                    self.ended = true;
                }
            }
        }
    }

    fn has_threads_outside(&self) -> bool {
        matches!(self.trace.events.get(self.cursor), Some(Event::Waited { .. }))
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        let state = self.threads.entry(thread).or_default();
        let (request, recorded) = (state.request.take(), state.results.pop_front());
        state.returned += 1;
        let Some(request) = request else { return };
        if let Some(Event::Request { request: Request { call, .. }, .. }) = self.trace.events.get(request) {
            self.memory.called(call, &result);
        }
        // The last calls of an unfinished trace have no result to compare with.
        if let Some(recorded) = recorded {
            self.compare_result(recorded, request, &result);
        }
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        *self.called_back.entry((process, function)).or_default() += 1;
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        let index = self.transfers.get_mut(&(process, transfer)).and_then(VecDeque::pop_front);
        let Some(&Event::Receive { data: id, .. }) = index.and_then(|index| self.trace.events.get(index)) else {
            return;
        };
        if !self.compares_data {
            return;
        }
        self.compared = true;
        let Some(expected) = self.payload(id) else { return };
        if let Some(text) = compare_bytes(&expected, &data) {
            let kernel =
                self.last_kernel.as_deref().map_or(String::new(), |kernel| format!(", after the kernel {kernel}"));
            self.differs(format!("asynchronous copy {transfer} from the device{kernel}: {text}"));
        }
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        if !self.compares_text() {
            return;
        }
        let finished = self.trace.header.finished.is_some();
        for (stream, text) in [text, error].into_iter().enumerate() {
            // The calls at the end of an unfinished trace may print what it has no more room for.
            let printed = &mut self.printed.entry(process).or_default()[stream];
            let known = printed.expected.len();
            let text = if finished { text } else { &text[..text.len().min(known)] };
            if let Some(at) = printed.take(text) {
                let kernel = self.last_kernel.as_deref().unwrap_or("(none)");
                self.differs(format!(
                    "kernels print other text than they did, from byte {at} on; the last kernel is {kernel}"
                ));
            }
        }
    }

    fn verification(&self) -> Verification {
        let missing = self.printed.values().flatten().find(|printed| !printed.expected.is_empty() && !printed.differs);
        let finished = self.trace.header.finished.is_some();
        match (&self.different, missing) {
            (Some(text), _) => {
                let more = match self.differences {
                    0 | 1 => String::new(),
                    count => format!("; {} more differences", count - 1),
                };
                Verification::Failed(format!("the replay differs from the recording: {text}{more}"))
            }
            (None, _) if self.broken_off || self.first_elsewhere.get().is_some() => Verification::NotChecked,
            (None, Some(printed)) if self.compares_text() && finished => {
                let message = format!(
                    "the replay differs from the recording: kernels print {} bytes, {} were recorded",
                    printed.done,
                    printed.done + printed.expected.len()
                );
                Verification::Failed(message)
            }
            _ if self.compared => Verification::Passed,
            _ => Verification::NotChecked,
        }
    }

    fn measurements(&self) -> Vec<Measurement> {
        let name = "results that differ from the recording";
        let differ = Measurement { name, value: self.differences as f64, unit: "result" };
        Some(differ).filter(|_| self.elsewhere.is_some() && self.compared).into_iter().collect()
    }
}

impl Printed {
    /// Takes printed text; the place of the first byte that differs, the first time.
    fn take(&mut self, text: &[u8]) -> Option<usize> {
        for &byte in text {
            if self.differs {
                return None;
            }
            if self.expected.pop_front() != Some(byte) {
                self.differs = true;
                return Some(self.done);
            }
            self.done += 1;
        }
        None
    }
}
