//! Spans of tracing: one for each CUDA call, and one for each copy or fill. Where no log wants them, nothing is kept.

use balar_driver::CopyUnderWay;
use balar_host::call::CallClass;
use balar_host::{Call, CallResult, ThreadId};
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::{ProcessId, SimTime};
use std::collections::BTreeMap;
use tracing::field::{Empty, display};
use tracing::{Span, debug_span};

/// The spans of what has not ended.
#[derive(Debug, Default)]
pub(super) struct Spans {
    calls: BTreeMap<ThreadId, (ProcessId, Span)>,
    copies: BTreeMap<CopyId, Span>,
}

impl Spans {
    /// A thread makes a call. What programs do beside calls of CUDA has no span.
    pub fn call_begins(&mut self, at: SimTime, (process, thread): (ProcessId, ThreadId), call: &Call) {
        if !is_of_cuda(call) {
            return;
        }
        let span = debug_span!(
            "cuda_call",
            call = call.name(),
            process = process.0,
            thread = thread.0,
            stream = call.stream(),
            kernel = Empty,
            bytes = Empty,
            begin_picoseconds = at.0,
            end_picoseconds = Empty,
            error = Empty,
        );
        if span.is_disabled() {
            return;
        }
        match call {
            Call::Launch(launch) => {
                span.record("kernel", &*launch.function.name);
            }
            Call::Copy { shape, .. } | Call::Memset { shape, .. } => {
                span.record("bytes", shape.bytes());
            }
            Call::Malloc { bytes }
            | Call::MallocAsync { bytes, .. }
            | Call::MallocHost { bytes }
            | Call::MallocManaged { bytes }
            | Call::Prefetch { bytes, .. } => {
                span.record("bytes", *bytes);
            }
            _ => {}
        }
        self.calls.insert(thread, (process, span));
    }

    /// A thread's call returns.
    pub fn call_returns(&mut self, at: SimTime, thread: ThreadId, result: &CallResult) {
        let Some((_, span)) = self.calls.remove(&thread) else { return };
        span.record("end_picoseconds", at.0);
        if let CallResult::Error(error) = result {
            span.record("error", display(error));
        }
    }

    /// A process has ended, and its threads' calls with it.
    pub fn process_ends(&mut self, process: ProcessId) {
        self.calls.retain(|_, (of, _)| *of != process);
    }

    /// The program has ended.
    pub fn program_ends(&mut self) {
        self.calls.clear();
    }

    /// A copy or fill is given to the copy engine of a GPU, or made at once where it is not timed. Copies are numbered from 0, as launches are
    /// in every table.
    pub fn copy_begins(&mut self, now: SimTime, (gpu, id): (usize, CopyId), copy: &CopyUnderWay, of: &CopyOperation) {
        let span = debug_span!(
            "copy",
            copy = id.0.saturating_sub(1),
            direction = direction(copy, of),
            process = copy.context.process().0,
            gpu,
            bytes = copy.bytes,
            begin_picoseconds = now.0,
            end_picoseconds = Empty,
            error = Empty,
        );
        if !span.is_disabled() {
            self.copies.insert(id, span);
        }
    }

    /// A copy or fill is done.
    pub fn copy_ends(&mut self, now: SimTime, id: CopyId, error: Option<&str>) {
        let Some(span) = self.copies.remove(&id) else { return };
        span.record("end_picoseconds", now.0);
        if let Some(error) = error {
            span.record("error", error);
        }
    }
}

/// Is it a call of CUDA? Those are what the counter `calls` counts, and advice that nobody takes.
fn is_of_cuda(call: &Call) -> bool {
    !matches!(
        call.class(),
        CallClass::Compute { .. }
            | CallClass::Clock
            | CallClass::Exit
            | CallClass::Access
            | CallClass::Management
            | CallClass::CallBack
    )
}

/// Between which memories a copy goes.
fn direction(copy: &CopyUnderWay, operation: &CopyOperation) -> &'static str {
    if matches!(operation, CopyOperation::Fill { .. }) {
        return "fill";
    }
    match (copy.reads_host, copy.writes_host) {
        (true, true) => "host to host",
        (true, false) => "host to device",
        (false, true) => "device to host",
        (false, false) => "device to device",
    }
}
