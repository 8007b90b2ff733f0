//! A span of tracing for each launch, from when the scheduler gets it to its end. Where no log wants them, nothing is kept.

use balar_protocol::SimTime;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::statistics::KernelRecord;
use std::collections::BTreeMap;
use tracing::field::{Empty, display};
use tracing::{Span, debug_span};

/// The spans of launches that have not ended. They are no part of the scheduler's state: a span is its process's alone.
#[derive(Debug, Default)]
pub(super) struct LaunchSpans(BTreeMap<LaunchId, Span>);

impl LaunchSpans {
    /// A launch comes, from the host or from a kernel.
    pub fn received(&mut self, now: SimTime, launch: &KernelLaunch, gpu: &str) {
        let span = debug_span!(
            "kernel_launch",
            kernel = &*launch.name,
            launch = %launch.id,
            process = launch.context.process().0,
            gpu,
            stream = launch.stream,
            launched_by = Empty,
            ctas = launch.cta_count(),
            detail = launch.detail.name(),
            received_picoseconds = now.0,
            begin_picoseconds = Empty,
            end_picoseconds = Empty,
            cycles = Empty,
            completed = Empty,
        );
        if span.is_disabled() {
            return;
        }
        if let Some(origin) = &launch.origin {
            span.record("launched_by", display(origin.parent));
        }
        self.0.insert(launch.id, span);
    }

    /// A launch ends that has run.
    pub fn ends(&mut self, record: &KernelRecord) {
        let Some(span) = self.0.remove(&record.launch) else { return };
        span.record("begin_picoseconds", record.start_ps);
        span.record("end_picoseconds", record.end_ps);
        span.record("cycles", record.cycles);
        span.record("completed", record.completed);
    }

    /// A launch is refused: it does not run.
    pub fn refused(&mut self, now: SimTime, launch: LaunchId) {
        let Some(span) = self.0.remove(&launch) else { return };
        span.record("end_picoseconds", now.0);
        span.record("completed", false);
    }
}
