//! Records the conversation of a program and the simulated host CPU.

use super::CodeFile;
use super::error::TraceError;
use super::event::Event;
use super::shared_memory::{HostWindow, SharedMemory};
use super::writer::TraceWriter;
use crate::Verification;
use crate::call::{Call, CallResult};
use crate::program::{Host, Measurement, Next, Request, ThreadId};
use balar_protocol::ProcessId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a recording goes well: for the code that started it, while and after it goes on.
#[derive(Clone, Debug, Default)]
pub struct RecordingState(Arc<Mutex<Option<TraceError>>>);

impl RecordingState {
    /// Why the recording was given up, once; `None` where it was not.
    pub fn take_error(&self) -> Option<TraceError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: TraceError) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// A thread of the program, between two calls or in one.
enum Thread {
    InCall(Box<Call>),
    Running,
    Exited,
}

impl Thread {
    /// Can the program end while the thread is there? One that runs host functions has no end of its own.
    fn is_over(&self) -> bool {
        match self {
            Thread::Exited => true,
            Thread::InCall(call) => matches!(**call, Call::CallbackDone { .. }),
            Thread::Running => false,
        }
    }
}

/// A host whose conversation with the simulated host CPU is recorded.
///
/// A trace that cannot be written any further is given up, and stays unfinished; the program goes on.
pub struct Recorder {
    inner: Box<dyn Host>,
    writer: Option<TraceWriter>,
    state: RecordingState,
    memory: SharedMemory,
    threads: BTreeMap<ThreadId, Thread>,
    processes: BTreeMap<ThreadId, ProcessId>,
    /// Whether the copy of the shared memory is that of when the program began to run: since then, only the program has written.
    program_runs: bool,
    /// Whether the program's recent writes are to be recorded with a later event. That is so while all its calls are touches, which read
    /// nothing and are many. Writes of devices meanwhile are recorded as the program's: a replay finds the same bytes there already.
    writes_wait: bool,
    /// Answers "waiting" since the program was told something.
    waited: u32,
    /// Whether the program has said that it ended.
    ended: bool,
}

impl Recorder {
    /// Records `inner` with `writer`. `code` is the code that is loaded for each device from the start, as (file name, PTX or a cubin);
    /// `window` is the pinned and managed memory that the program shares with the simulator.
    pub fn new(
        inner: Box<dyn Host>,
        writer: TraceWriter,
        code: &[Vec<CodeFile>],
        window: Option<HostWindow>,
    ) -> (Recorder, RecordingState) {
        let state = RecordingState::default();
        let mut recorder = Recorder {
            inner,
            writer: Some(writer),
            state: state.clone(),
            memory: SharedMemory::new(window),
            threads: BTreeMap::new(),
            processes: BTreeMap::new(),
            program_runs: false,
            writes_wait: false,
            waited: 0,
            ended: false,
        };
        for (device, texts) in code.iter().enumerate() {
            for (name, bytes) in texts {
                recorder.record(|writer| {
                    let text = writer.payload(bytes)?;
                    Ok(Event::Code { device: device as u32, name: name.clone(), text })
                });
            }
        }
        (recorder, state)
    }

    /// Writes an event, unless the recording was given up.
    fn record(&mut self, event: impl FnOnce(&mut TraceWriter) -> Result<Event, TraceError>) {
        let Some(writer) = &mut self.writer else { return };
        let over = self.ended || (!self.threads.is_empty() && self.threads.values().all(Thread::is_over));
        let written = event(writer).and_then(|event| {
            writer.event(&event)?;
            if over { writer.finish() } else { Ok(()) }
        });
        if let Err(error) = written {
            self.state.set(error);
            self.writer = None;
        }
    }

    fn flush(&mut self) {
        if let Some(Err(error)) = self.writer.as_mut().map(TraceWriter::flush) {
            self.state.set(error);
            self.writer = None;
        }
    }

    /// The program is about to be told something, and to run: bytes that it finds in the shared memory are not its own writes.
    fn program_begins(&mut self) {
        self.waited = 0;
        if !self.program_runs && !self.writes_wait && !self.memory.is_empty() {
            self.memory.refresh();
        }
        self.program_runs = true;
    }

    /// Is no other call under way than touches of managed memory?
    fn only_touches(&self) -> bool {
        self.threads.values().all(|thread| match thread {
            Thread::InCall(call) => matches!(**call, Call::TouchManaged { .. }),
            Thread::Running | Thread::Exited => true,
        })
    }

    /// Records the program's writes to shared memory.
    fn record_writes(&mut self) {
        self.writes_wait = false;
        if self.memory.is_empty() || self.writer.is_none() {
            return;
        }
        let changes = self.memory.changes();
        if !changes.ranges.is_empty() {
            self.record(|writer| {
                let data = writer.payload(&changes.data)?;
                Ok(Event::HostWrite { ranges: changes.ranges, data })
            });
        }
    }

    fn record_request(&mut self, request: &Request) {
        let times = std::mem::take(&mut self.waited);
        if times > 0 {
            self.record(|_| Ok(Event::Waited { times }));
        }
        let thread = match &request.call {
            Call::Exit { .. } => Thread::Exited,
            call => Thread::InCall(Box::new(without_data(call))),
        };
        self.threads.insert(request.thread, thread);
        self.processes.insert(request.thread, request.process);
        self.program_runs = self.threads.values().any(|thread| matches!(thread, Thread::Running));
        self.record(|writer| {
            let mut payloads = Vec::new();
            for bytes in request.call.payloads() {
                payloads.push(match bytes.data() {
                    Some(data) => writer.payload(data)?,
                    None => writer.payload(&vec![0; usize::try_from(bytes.len()).unwrap_or(0)])?,
                });
            }
            Ok(Event::Request { request: request.clone(), payloads })
        });
        // Events before a call are there even if the simulator is killed in it.
        self.flush();
    }
}

/// A call without its bulk data, which may be large.
fn without_data(call: &Call) -> Call {
    match call {
        Call::Copy { .. } | Call::GraphLaunch { .. } | Call::WriteManaged { .. } => Call::MemoryInfo,
        Call::ModuleLoad { name, .. } => Call::ModuleLoad { images: Vec::new(), name: name.clone() },
        other => other.clone(),
    }
}

/// Does a call wait until a device has done the work that it was asked for, so that its memory holds a result?
pub(super) fn waits_for_device(call: &Call) -> bool {
    matches!(call, Call::DeviceSynchronize | Call::StreamSynchronize { .. } | Call::EventSynchronize { .. })
}

impl Host for Recorder {
    fn next(&mut self) -> Next {
        let next = self.inner.next();
        match &next {
            Next::Call(request) => {
                if matches!(request.call, Call::TouchManaged { .. }) && self.only_touches() {
                    self.writes_wait = true;
                } else {
                    self.record_writes();
                }
                self.record_request(request);
            }
            Next::Waiting => {
                if !self.writes_wait || !self.only_touches() {
                    self.record_writes();
                }
                self.waited = self.waited.saturating_add(1);
                self.program_runs = false;
            }
            &Next::ProcessEnds { process, was_killed } => {
                self.record_writes();
                for (thread, state) in &mut self.threads {
                    if self.processes.get(thread) == Some(&process) {
                        *state = Thread::Exited;
                    }
                }
                self.record(|_| Ok(Event::ProcessEnds { process, was_killed }));
            }
            Next::End { error } => {
                self.ended = true;
                self.record(|_| Ok(Event::End { error: error.clone() }));
            }
        }
        next
    }

    fn expect_call_back(&mut self, expected: bool) {
        self.inner.expect_call_back(expected);
    }

    fn has_threads_outside(&self) -> bool {
        self.inner.has_threads_outside()
    }

    fn queue_room(&mut self, _: ThreadId, _: usize) {
        // A program that is told of no room waits for each of its calls. What it writes to the shared memory can be told from what
        // devices write, because it does not run while simulated time passes.
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        let others_run = self.program_runs;
        let call = match self.threads.insert(thread, Thread::Running) {
            Some(Thread::InCall(call)) => Some(call),
            // The end of a thread stays its end.
            Some(Thread::Exited) => {
                self.threads.insert(thread, Thread::Exited);
                None
            }
            _ => None,
        };
        if let Some(call) = &call {
            self.memory.called(call, &result);
        }
        self.program_begins();
        let is_result = call.as_deref().is_some_and(waits_for_device) && result == CallResult::None;
        // Another process writes whenever it likes.
        let is_alone = self.processes.values().all(|process| *process == ProcessId::FIRST);
        let checked = is_result && !others_run && is_alone && !self.memory.is_empty();
        let shared_memory = checked.then(|| self.memory.checksum());
        self.record(|writer| {
            let data = match &result {
                CallResult::Data(bytes) => Some(writer.payload(bytes.data().map_or(&[], |data| data))?),
                _ => None,
            };
            Ok(Event::Result { thread, result: result.clone(), data, shared_memory })
        });
        self.inner.complete(thread, result);
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.program_begins();
        self.record(|_| Ok(Event::CallBack { process, function }));
        self.inner.call_back(process, function);
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.record(|writer| Ok(Event::Receive { process, transfer, data: writer.payload(&data)? }));
        self.inner.receive(process, transfer, data);
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        self.record(|writer| {
            Ok(Event::Printed { process, text: writer.payload(text)?, error: writer.payload(error)? })
        });
        self.inner.printed(process, text, error);
    }

    fn verification(&self) -> Verification {
        self.inner.verification()
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.inner.measurements()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}
