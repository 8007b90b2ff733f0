//! The program's threads: each is in a call, waits in one, or is outside.

use super::HostCpu;
use crate::engine::Outbox;
use balar_driver::{Caller, Outcome, Then, Wait, readable_names};
use balar_host::call::{CallClass, Launch};
use balar_host::{Bytes, Call, CallResult, CudaError, Next, Request, ThreadId};
use balar_protocol::{ContextId, ProcessId, SimTime};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// While threads compute and others wait for the GPU, the program is asked at least this often for its next act.
const POLL: SimTime = SimTime(20_000_000);

/// Where a thread stands.
#[derive(Debug)]
enum State {
    /// In no call.
    Outside,
    /// In a call, or computing before it, until this time.
    Calling { until: SimTime, call: Call },
    /// In a call that waits for the GPU.
    Waiting { since: SimTime, call: &'static str, wait: Wait },
    /// Its call returns at this time.
    Returning { at: SimTime, result: CallResult },
}

#[derive(Debug)]
struct Thread {
    state: State,
    /// The context that its call is made in, which its device may not have.
    context: ContextId,
    /// The bytes that a synchronous copy from the device brought.
    received: Option<Arc<[u8]>>,
}

/// All threads that have made a call and not ended.
#[derive(Debug, Default)]
pub(super) struct Threads {
    threads: BTreeMap<ThreadId, Thread>,
}

impl Threads {
    /// The bytes for a thread's call.
    pub fn receive(&mut self, thread: ThreadId, data: Arc<[u8]>) {
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.received = Some(data);
        }
    }

    /// When a thread next does something by itself, and which.
    pub fn next(&self) -> Option<(SimTime, ThreadId)> {
        let times = self.threads.iter().filter_map(|(id, thread)| match thread.state {
            State::Calling { until, .. } => Some((until, *id)),
            State::Returning { at, .. } => Some((at, *id)),
            State::Outside | State::Waiting { .. } => None,
        });
        times.min()
    }

    /// Is a thread in a call?
    fn is_any_in_call(&self) -> bool {
        self.threads.values().any(|thread| !matches!(thread.state, State::Outside))
    }

    /// The first thread that waits for the GPU: the name of its call.
    pub fn waiting(&self) -> Option<&'static str> {
        self.threads.values().find_map(|thread| match thread.state {
            State::Waiting { call, .. } => Some(call),
            _ => None,
        })
    }
}

impl HostCpu {
    /// Asks the program for its next acts, until it waits.
    pub(super) fn ask(&mut self, now: SimTime) {
        self.ask_at = None;
        while let Some(host) = &mut self.host {
            let functions_to_come = self.driver.has_functions_to_come();
            host.expect_call_back(functions_to_come);
            match host.next() {
                Next::Call(request) => self.begin_call(now, request),
                Next::Waiting => {
                    if host.has_threads_outside() && (functions_to_come || self.threads.is_any_in_call()) {
                        self.ask_at = Some(now.saturating_add(POLL));
                    }
                    return;
                }
                Next::ProcessEnds { process, was_killed } => self.end_process(now, process, was_killed),
                Next::End { error } => {
                    self.take_printed();
                    self.ended = true;
                    self.exit_error = self.exit_error.take().or(error);
                    self.threads.threads.clear();
                    self.spans.program_ends();
                    self.driver.program_ended();
                    return;
                }
            }
        }
    }

    /// A process has ended, and with it its threads' calls.
    fn end_process(&mut self, now: SimTime, process: ProcessId, was_killed: bool) {
        self.take_printed();
        if let Some(timeline) = &mut self.timeline {
            timeline.process_ends(now, process);
        }
        self.threads.threads.retain(|_, thread| thread.context.process() != process);
        self.activity.process_ends(process);
        self.spans.process_ends(process);
        self.driver.end_process(process, was_killed);
        self.work_ended = true;
    }

    /// A thread makes a call.
    fn begin_call(&mut self, now: SimTime, request: Request) {
        let Request { thread, process, device, host_picoseconds, call } = request;
        if let Call::Exit { error } = &call {
            self.take_printed();
            let in_words = |failure: &balar_host::CallFailure| match self.driver.last_error(process) {
                Some((error, text)) if *error == failure.error => format!("{failure}: {text}"),
                _ => failure.to_string(),
            };
            let error = error.as_ref().map(in_words);
            self.exit_error = self.exit_error.take().or(error);
            self.threads.threads.remove(&thread);
            return;
        }
        let start = now.saturating_add(self.costs.host_time.span(host_picoseconds, self.costs.clock));
        let until = self.call_ends(start, &call);
        self.activity.call_begins(thread);
        self.spans.call_begins(start, (process, thread), &call);
        if let Some(timeline) = &mut self.timeline
            && call.class() != CallClass::Management
        {
            timeline.call_begins(start, (process, thread), &call);
        }
        self.counters.cycles_busy += self.cycles(now, until);
        let state = State::Calling { until, call };
        let context = ContextId::new(process, (device as usize).min(ContextId::GPUS - 1));
        self.threads.threads.insert(thread, Thread { state, context, received: None });
    }

    /// Performs the act of a thread at this time.
    pub(super) fn step_thread(&mut self, now: SimTime, id: ThreadId, out: &mut Outbox) {
        let Some(thread) = self.threads.threads.get_mut(&id) else { return };
        let caller = Caller { thread: id, context: thread.context };
        match std::mem::replace(&mut thread.state, State::Outside) {
            State::Returning { result, .. } => {
                if let Some(timeline) = &mut self.timeline {
                    timeline.call_returns(now, id, &result);
                }
                self.spans.call_returns(now, id, &result);
                if matches!(result, CallResult::Error(error) if error != CudaError::NotReady) {
                    self.counters.calls_failed += 1;
                }
                if let Some(host) = &mut self.host {
                    host.queue_room(id, self.driver.queue_room(caller.context));
                    host.complete(id, result);
                }
                self.ask(now);
            }
            State::Calling { call, .. } => self.end_call(now, caller, call, out),
            other => thread.state = other,
        }
    }

    /// The host part of a thread's call is over.
    fn end_call(&mut self, now: SimTime, caller: Caller, call: Call, out: &mut Outbox) {
        let thread = caller.thread;
        let name = call.name();
        let outcome = match call {
            Call::Compute { .. } | Call::Exit { .. } => Ok(Outcome::Returns(CallResult::None)),
            Call::Management(call) => Ok(Outcome::Returns(self.manage(now, caller.context, call))),
            Call::ReadClock => Ok(Outcome::Returns(CallResult::Time { picoseconds: now.picoseconds() })),
            call => {
                match &call {
                    Call::Launch(_) | Call::GraphLaunch { .. } => self.take_printed(),
                    Call::NotImplemented { function } => {
                        *self.not_implemented.entry(function.clone()).or_default() += 1;
                    }
                    _ => {}
                }
                let launched = AskedLaunch::of(&call);
                let ends_work = matches!(call, Call::CallbackDone { .. });
                let issued = self.driver.issued();
                let first = self.driver.next_operation();
                let outcome = self.driver.call(caller, call);
                self.activity.work_is_asked_for(now, caller, first..self.driver.next_operation());
                self.begin_work(now, out);
                if let Some(timeline) = &self.timeline {
                    timeline.work_is_given(thread, issued, self.driver.issued());
                }
                if ends_work {
                    self.wake_threads(now, out);
                }
                if let (Some(launched), Err(error)) = (launched, &outcome) {
                    self.launch_refused(caller, &launched, *error);
                }
                outcome
            }
        };
        match outcome {
            Ok(Outcome::Waits(wait)) if self.driver.is_over(&wait.until) => {
                if wait.then.is_access() {
                    self.end_access(now, caller, wait.then);
                    return self.carry_out(now, out);
                }
                self.take_printed();
                if wait.then.goes_on() {
                    self.go_on(now, caller, name, wait.then);
                    return self.carry_out(now, out);
                }
                self.driver.finish(caller.context, wait.then);
                self.carry_out(now, out);
                self.call_returns(now, thread, CallResult::None);
            }
            outcome => self.call_goes_on(now, thread, name, outcome),
        }
    }

    /// CUDA has refused a launch. Of a context that has failed before, that failure is told.
    fn launch_refused(&mut self, caller: Caller, launched: &AskedLaunch, error: CudaError) {
        if self.driver.failure().is_some() {
            return;
        }
        let why = match self.driver.last_error(caller.context.process()) {
            Some((last, text)) if *last == error => format!(": {text}"),
            _ => String::new(),
        };
        self.refused.0 += 1;
        let text = || readable_names(&format!("{launched} was refused: {error}{why}"));
        self.refused.1.get_or_insert_with(text);
    }

    /// A call that has waited goes on, at no cost.
    fn go_on(&mut self, now: SimTime, caller: Caller, name: &'static str, then: Then) {
        let first = self.driver.next_operation();
        let outcome = self.driver.goes_on(caller, then);
        self.activity.work_is_asked_for(now, caller, first..self.driver.next_operation());
        self.call_goes_on(now, caller.thread, name, outcome);
    }

    /// The program's own access to managed memory happens, and it goes on at once; after a write when everybody sees it.
    fn end_access(&mut self, now: SimTime, caller: Caller, then: Then) {
        let at = if matches!(then, Then::Write(..)) { self.writer.visible_at(now) } else { now };
        let (mut read, mut touched) = (None, None);
        match then {
            Then::Read(address, bytes) => read = Some((address, bytes)),
            Then::Touched(touch) => touched = self.driver.take_touched(touch),
            _ => {}
        }
        let result = match (self.driver.finish(caller.context, then), read, touched) {
            (Some(error), ..) => error,
            (None, Some((address, bytes)), _) => CallResult::Data(self.read(address, bytes)),
            (None, None, Some(pages)) => CallResult::HostPages(pages),
            (None, None, None) => CallResult::None,
        };
        self.call_returns(at, caller.thread, result);
    }

    /// Bytes of the node's memory as they are now; the driver has checked the addresses. Kernels and copies whose ends are known here
    /// ended an epoch ago and more: all that they have written is there.
    fn read(&self, address: u64, bytes: u64) -> Bytes {
        let mut data = balar_host::zeroed(usize::try_from(bytes).unwrap_or(0));
        if let Some(data) = Arc::get_mut(&mut data) {
            self.memory.view().read(address, data);
        }
        Bytes::from(data)
    }

    /// A call returns now or waits.
    fn call_goes_on(
        &mut self,
        now: SimTime,
        thread: ThreadId,
        name: &'static str,
        outcome: Result<Outcome, CudaError>,
    ) {
        match outcome {
            // The program may read its managed variables at once: their initial values must be there.
            Ok(Outcome::Returns(result @ CallResult::Module { .. })) => {
                self.call_returns(self.writer.visible_at(now), thread, result);
            }
            Ok(Outcome::Returns(result)) => self.call_returns(now, thread, result),
            Ok(Outcome::Waits(wait)) => self.call_waits(now, thread, name, wait),
            Err(error) => self.call_returns(now, thread, CallResult::Error(error)),
        }
    }

    /// A thread's call returns now.
    fn call_returns(&mut self, now: SimTime, id: ThreadId, result: CallResult) {
        if let Some(thread) = self.threads.threads.get_mut(&id) {
            thread.state = State::Returning { at: now, result };
        }
    }

    /// A thread's call waits.
    fn call_waits(&mut self, now: SimTime, id: ThreadId, call: &'static str, wait: Wait) {
        if let Some(timeline) = &mut self.timeline {
            timeline.wait_begins(now, id, &wait.until);
        }
        if let Some(thread) = self.threads.threads.get_mut(&id) {
            thread.state = State::Waiting { since: now, call, wait };
        }
    }

    /// Something is done: calls that waited for it go on.
    pub(super) fn wake_threads(&mut self, now: SimTime, out: &mut Outbox) {
        let over = |(id, thread): (&ThreadId, &Thread)| match &thread.state {
            State::Waiting { wait, .. } if self.driver.is_over(&wait.until) => Some(*id),
            _ => None,
        };
        let over: Vec<ThreadId> = self.threads.threads.iter().filter_map(over).collect();
        for id in over {
            self.wake(now, id);
        }
        self.carry_out(now, out);
    }

    fn wake(&mut self, now: SimTime, id: ThreadId) {
        let Some(thread) = self.threads.threads.get_mut(&id) else { return };
        let (context, received) = (thread.context, thread.received.take());
        let State::Waiting { since, call, wait } = std::mem::replace(&mut thread.state, State::Outside) else { return };
        let caller = Caller { thread: id, context };
        if let Some(timeline) = &mut self.timeline {
            timeline.wait_ends(now, id);
        }
        if wait.then.is_access() {
            self.counters.cycles_waiting += self.cycles(since, now);
            return self.end_access(now, caller, wait.then);
        }
        // Before the call returns, whatever it returns.
        self.take_printed();
        let mut returned = self.after(now, self.costs.synchronize_cost);
        self.counters.cycles_waiting += self.cycles(since, returned);
        if wait.then.goes_on() {
            self.counters.cycles_waiting -= self.cycles(now, returned);
            return self.go_on(now, caller, call, wait.then);
        }
        let result = match (self.driver.finish(context, wait.then), received) {
            (Some(error), _) => error,
            (None, Some(data)) => {
                // They are in page-locked memory now, and the driver copies them to the program's.
                let waited = returned;
                returned = waited.saturating_add(self.costs.pageable_copies.time_for(data.len() as u64));
                self.counters.cycles_busy += self.cycles(waited, returned);
                CallResult::Data(Bytes::from(data))
            }
            (None, None) => CallResult::None,
        };
        self.call_returns(returned, id, result);
    }
}

/// A launch as it was asked for.
struct AskedLaunch {
    kernel: Arc<str>,
    grid: [u32; 3],
    block: [u32; 3],
}

impl AskedLaunch {
    /// `None` of another call.
    fn of(call: &Call) -> Option<AskedLaunch> {
        let Call::Launch(Launch { function, grid, block, .. }) = call else { return None };
        Some(AskedLaunch { kernel: Arc::clone(&function.name), grid: *grid, block: *block })
    }
}

impl fmt::Display for AskedLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        let kernel = &self.kernel;
        write!(f, "the launch of kernel {kernel} with {gx} x {gy} x {gz} blocks of {bx} x {by} x {bz} threads")
    }
}
