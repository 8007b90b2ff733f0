//! How kernels end: completed, refused, or broken off with their context.

use super::CtaScheduler;
use super::kernels::{EndingKernel, QueueId, ResidentKernel};
use crate::engine::Outbox;
use balar_protocol::cta::CtaMessage;
use balar_protocol::cuda::{CudaMessage, KernelFault, KernelLaunch};
use balar_protocol::launches::LaunchFacts;
use balar_protocol::statistics::{KernelCounters, KernelRecord};
use balar_protocol::{ContextId, Payload, SimTime};
use std::sync::Arc;

/// The facts about a kernel for a watcher of the run.
pub(super) fn facts_of(kernel: &ResidentKernel, gpu: &Arc<str>, end: Option<SimTime>) -> LaunchFacts {
    let launch = &kernel.launch;
    let ctas = launch.cta_count();
    LaunchFacts {
        launch: launch.id,
        name: Arc::clone(&launch.name),
        context: launch.context,
        stream: launch.stream,
        gpu: Arc::clone(gpu),
        ctas,
        ctas_ended: ctas - kernel.unplaced - kernel.running,
        start: kernel.start,
        end,
    }
}

impl CtaScheduler {
    /// The last CTA of the resident kernel `index` has ended, and its last store is done.
    pub(super) fn end_kernel(&mut self, now: SimTime, index: usize, out: &mut Outbox) {
        let kernel = self.state.resident.remove(index);
        let is_timed = kernel.launch.detail.is_timed();
        let (last, latency) =
            if is_timed { (now + self.completion_time, self.completion_latency) } else { (now.max(kernel.until), 0) };
        let end = self.clock.time_of(self.clock.cycle_at_or_after(last) + latency);
        self.grid_ended(now, kernel, end, out);
    }

    /// A kernel is done at `end`, with all that it has launched.
    pub(super) fn kernel_is_done(&mut self, kernel: ResidentKernel, end: SimTime, out: &mut Outbox) {
        self.state.counters.kernels_completed += 1;
        let (launch, is_timed) = (kernel.launch.id, kernel.launch.detail.is_timed());
        let ran = Some(Box::new((kernel.start, end)));
        let place = self.state.ending.partition_point(|kernel| kernel.end <= end);
        self.state.ending.insert(place, EndingKernel { end, queue: QueueId::of(&kernel.launch), launch, is_timed });
        self.record(kernel, end, true);
        if !launch.is_of_device() {
            out.send(self.command, end, Payload::Cuda(CudaMessage::LaunchCompleted { launch, fault: None, ran }));
        }
    }

    /// A context fails: all its running and waiting work ends with `fault`, and later work, too. Contexts that share the GPU fail together
    /// (NVIDIA Multi-Process Service, "Memory Protection and Error Containment").
    pub(super) fn fail(&mut self, now: SimTime, context: ContextId, fault: KernelFault, out: &mut Outbox) {
        let mut contexts = vec![context];
        if self.is_shared {
            contexts.extend(self.state.queues.keys().map(|queue| queue.context).filter(|other| *other != context));
            contexts.dedup();
        }
        for context in contexts {
            self.state.faults.insert(context, fault.clone());
            self.end_context(now, context, out);
        }
    }

    /// Everything of a context that runs or waits ends.
    pub(super) fn end_context(&mut self, now: SimTime, context: ContextId, out: &mut Outbox) {
        for kernel in self.state.resident.extract_if(.., |kernel| kernel.launch.context == context).collect::<Vec<_>>()
        {
            for port in self.sms.ports() {
                out.send(port, now, Payload::Cta(CtaMessage::Abort(kernel.launch.id)));
            }
            self.sms.release_all(kernel.launch.id);
            self.state.counters.kernels_failed += 1;
            self.send_failure(now, &kernel.launch, Some((kernel.start, now)), out);
            self.record(kernel, now, false);
        }
        for kernel in self.drop_device_launches(context) {
            self.state.counters.kernels_failed += 1;
            self.send_failure(now, &kernel.launch, Some((kernel.start, now)), out);
            self.record(kernel, now, false);
        }
        self.state.ready.retain(|_, queue| queue.context != context);
        let mut dropped = Vec::new();
        self.state.queues.retain(|id, queue| {
            if id.context == context {
                dropped.extend(queue.waiting.drain(..));
            }
            id.context != context
        });
        dropped.sort_by_key(|(number, _)| *number);
        for (_, launch) in dropped {
            self.refuse(now, &launch, out);
        }
        self.take_turns(now);
        self.fill_residency(now);
        self.retry_placement(now);
    }

    /// A launch ends before it began, for the context has failed.
    pub(super) fn refuse(&mut self, now: SimTime, launch: &KernelLaunch, out: &mut Outbox) {
        self.state.counters.kernels_failed += 1;
        if let Some(timeline) = self.timeline.as_ref().filter(|_| launch.detail.is_timed()) {
            timeline.lock().refused(now, launch.id);
        }
        self.spans.refused(now, launch.id);
        self.send_failure(now, launch, None, out);
    }

    pub(super) fn send_failure(
        &self,
        now: SimTime,
        launch: &KernelLaunch,
        ran: Option<(SimTime, SimTime)>,
        out: &mut Outbox,
    ) {
        // The host knows nothing of launches by kernels.
        if launch.id.is_of_device() {
            return;
        }
        let (fault, launch) = (self.state.faults.get(&launch.context).cloned().map(Box::new), launch.id);
        out.send(
            self.command,
            now,
            Payload::Cuda(CudaMessage::LaunchCompleted { launch, fault, ran: ran.map(Box::new) }),
        );
    }

    pub(super) fn record(&mut self, kernel: ResidentKernel, end: SimTime, completed: bool) {
        let record = self.record_of(&kernel, end, completed);
        self.state.records.push(&record);
        self.spans.ends(&record);
        if !kernel.launch.detail.is_timed() {
            return;
        }
        if let Some(timeline) = &self.timeline {
            timeline.lock().ends(end, &kernel, record.cycles, completed);
        }
        if let Some(ended) = &mut self.ended {
            ended.push(facts_of(&kernel, &self.part, Some(end)));
        }
    }

    pub(super) fn record_of(&self, kernel: &ResidentKernel, end: SimTime, completed: bool) -> KernelRecord {
        let launch = &kernel.launch;
        let is_timed = launch.detail.is_timed();
        KernelRecord {
            launch: launch.id,
            process: launch.context.process(),
            name: Arc::clone(&launch.name),
            stream: launch.stream,
            gpu: Arc::clone(&self.part),
            grid: launch.grid,
            block: launch.block,
            registers_per_thread: launch.registers_per_thread,
            shared_bytes: launch.shared_bytes,
            detail: launch.detail,
            is_profiled: launch.is_profiled,
            range: launch.range.clone(),
            parent: launch.origin.as_ref().map(|origin| origin.parent),
            start_ps: kernel.start.0,
            end_ps: end.0,
            cycles: if is_timed { self.cycles_between(kernel.start, end) } else { 0 },
            completed,
            counters: KernelCounters { ctas: kernel.counters, ..KernelCounters::default() },
            ctas_unfinished: 0,
        }
    }
}
