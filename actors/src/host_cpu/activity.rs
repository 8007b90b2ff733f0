//! The present and past work of devices, for tools that ask: how long each was in use, and when the work of a profiled process ran.
//!
//! The times of kernels are those of the GPU, those of copies and fills are the host's: from when the engine is told to when it has said
//! that it is done.

use super::HostCpu;
use balar_driver::{Caller, OperationNumber};
use balar_host::call::{Activity, ActivityWork, CopyPlace, DeviceState, ManagementCall};
use balar_host::{CallResult, ThreadId};
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::{ContextId, ProcessId, SimTime};
use std::collections::BTreeMap;
use std::ops::Range;

/// Who has asked for an operation, and when: a process, its thread, and which call of the thread.
#[derive(Clone, Copy, Debug)]
struct Cause {
    process: ProcessId,
    thread: ThreadId,
    call: u64,
    at: SimTime,
}

/// Operations of a process that are kept until it asks: older ones are forgotten.
const MAXIMUM_KEPT: usize = 1 << 20;
/// As many as an answer takes: it is a frame of the tunnel.
const MAXIMUM_TOLD: usize = 1 << 16;

/// For how long something was under way.
#[derive(Clone, Copy, Debug, Default)]
struct BusyTime {
    under_way: u32,
    since: SimTime,
    total: SimTime,
}

impl BusyTime {
    fn begins(&mut self, now: SimTime) {
        if self.under_way == 0 {
            self.since = now;
        }
        self.under_way += 1;
    }

    fn ends(&mut self, now: SimTime) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way == 0 {
            self.total = self.total.saturating_add(now - self.since);
        }
    }

    fn until(&self, now: SimTime) -> SimTime {
        if self.under_way == 0 { self.total } else { self.total.saturating_add(now - self.since) }
    }
}

/// An operation that is under way.
#[derive(Debug)]
struct Begun {
    gpu: usize,
    at: SimTime,
    /// The record of it; `None` for a process that is not profiled.
    told: Option<(ProcessId, Activity)>,
}

/// The host CPU's record of its devices' work.
#[derive(Debug)]
pub(super) struct ActivityLog {
    /// The time of kernels, and of all work, by GPU.
    busy: Vec<(BusyTime, BusyTime)>,
    /// Calls of each thread so far.
    calls: BTreeMap<ThreadId, u64>,
    /// The ended work of profiled processes.
    kept: BTreeMap<ProcessId, Vec<Activity>>,
    /// The process, the thread and the call that asked for an operation, for operations of profiled processes that have not begun.
    causes: BTreeMap<OperationNumber, Cause>,
    kernels: BTreeMap<LaunchId, Begun>,
    copies: BTreeMap<CopyId, Begun>,
}

impl ActivityLog {
    pub fn new(gpus: usize) -> ActivityLog {
        ActivityLog {
            busy: vec![Default::default(); gpus],
            calls: BTreeMap::new(),
            kept: BTreeMap::new(),
            causes: BTreeMap::new(),
            kernels: BTreeMap::new(),
            copies: BTreeMap::new(),
        }
    }

    /// A thread makes a call.
    pub fn call_begins(&mut self, thread: ThreadId) {
        *self.calls.entry(thread).or_default() += 1;
    }

    /// A thread's call has asked for these operations.
    pub fn work_is_asked_for(&mut self, at: SimTime, caller: Caller, operations: Range<OperationNumber>) {
        let process = caller.context.process();
        if !self.kept.contains_key(&process) {
            return;
        }
        let call = self.calls.get(&caller.thread).map_or(0, |calls| calls - 1);
        let cause = Cause { process, thread: caller.thread, call, at };
        self.causes.extend(operations.map(|operation| (operation, cause)));
    }

    /// A kernel is given to its GPU.
    pub fn kernel_begins(&mut self, now: SimTime, operation: Option<OperationNumber>, launch: &KernelLaunch) {
        let gpu = launch.context.gpu();
        let work = || ActivityWork::Kernel {
            name: launch.name.clone(),
            grid: launch.grid,
            block: launch.block,
            registers: launch.registers_per_thread,
            static_shared_bytes: launch.shared_bytes.saturating_sub(launch.dynamic_shared_bytes),
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            local_bytes: launch.local_bytes,
        };
        let cause = operation.and_then(|operation| self.causes.remove(&operation));
        let told = cause.map(|cause| told(cause, gpu, now, work()));
        self.kernels.insert(launch.id, Begun { gpu, at: now, told });
        if let Some((kernels, all)) = self.busy.get_mut(gpu) {
            kernels.begins(now);
            all.begins(now);
        }
    }

    /// A kernel has ended; it `ran` on the GPU from then to then, if it did.
    pub fn kernel_ends(&mut self, now: SimTime, launch: LaunchId, ran: Option<Box<(SimTime, SimTime)>>) {
        let Some(begun) = self.kernels.remove(&launch) else { return };
        if let Some((kernels, all)) = self.busy.get_mut(begun.gpu) {
            kernels.ends(now);
            all.ends(now);
        }
        let (start, end) = ran.map_or((begun.at, now), |ran| *ran);
        self.keep(begun, start, end);
    }

    /// A copy or fill is given to an engine of the GPU.
    pub fn copy_begins(
        &mut self,
        now: SimTime,
        (gpu, copy): (usize, CopyId),
        number: Option<OperationNumber>,
        operation: &CopyOperation,
    ) {
        let cause = number.and_then(|number| self.causes.remove(&number));
        let told = cause.map(|cause| told(cause, gpu, now, work_of(operation)));
        self.copies.insert(copy, Begun { gpu, at: now, told });
        if let Some((_, all)) = self.busy.get_mut(gpu) {
            all.begins(now);
        }
    }

    /// A copy or fill is done.
    pub fn copy_ends(&mut self, now: SimTime, copy: CopyId) {
        let Some(begun) = self.copies.remove(&copy) else { return };
        if let Some((_, all)) = self.busy.get_mut(begun.gpu) {
            all.ends(now);
        }
        let start = begun.at;
        self.keep(begun, start, now);
    }

    fn keep(&mut self, begun: Begun, start: SimTime, end: SimTime) {
        let Some((process, activity)) = begun.told else { return };
        if let Some(kept) = self.kept.get_mut(&process).filter(|kept| kept.len() < MAXIMUM_KEPT) {
            kept.push(Activity { start: start.0, end: end.0, ..activity });
        }
    }

    /// A process has ended: nobody asks about its work any longer.
    pub fn process_ends(&mut self, process: ProcessId) {
        self.kept.remove(&process);
        self.causes.retain(|_, cause| cause.process != process);
    }
}

/// The record of work that begins.
fn told(cause: Cause, gpu: usize, now: SimTime, work: ActivityWork) -> (ProcessId, Activity) {
    let Cause { process, thread: ThreadId(thread), call, at } = cause;
    (process, Activity { thread, call, device: gpu as u32, asked: at.0, start: now.0, end: now.0, work })
}

fn work_of(operation: &CopyOperation) -> ActivityWork {
    let bytes = operation.bytes();
    if let CopyOperation::Fill { value, .. } = operation {
        return ActivityWork::Fill { bytes, value: *value };
    }
    let place = |rows: Option<&balar_protocol::copy::Rows>| {
        rows.map_or(CopyPlace::Pageable, |rows| CopyPlace::Node(rows.address))
    };
    ActivityWork::Copy { bytes, source: place(operation.source()), destination: place(operation.destination()) }
}

impl HostCpu {
    /// Answers a tool.
    pub(super) fn manage(&mut self, now: SimTime, context: ContextId, call: ManagementCall) -> CallResult {
        let (log, process) = (&mut self.activity, context.process());
        match call {
            ManagementCall::DeviceState => {
                let (free, total) = self.driver.memory_of_gpu(context.gpu());
                let (kernels, all) = log.busy.get(context.gpu()).copied().unwrap_or_default();
                let (kernels, busy) = (kernels.until(now).0, all.until(now).0);
                CallResult::DeviceState(DeviceState { now: now.0, kernels, busy, free, total })
            }
            ManagementCall::RecordActivity(true) => {
                log.kept.entry(process).or_default();
                CallResult::None
            }
            ManagementCall::RecordActivity(false) => {
                log.process_ends(process);
                CallResult::None
            }
            ManagementCall::TakeActivity => {
                log.causes.retain(|operation, _| self.driver.is_pending(*operation));
                let kept = log.kept.get_mut(&process);
                CallResult::Activity(
                    kept.map_or_else(Vec::new, |kept| kept.drain(..kept.len().min(MAXIMUM_TOLD)).collect()),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_use_is_that_in_which_anything_is_under_way() {
        let mut busy = BusyTime::default();
        // 2 to 5 and 3 to 7 together, then 10 to 11.
        busy.begins(SimTime(2));
        busy.begins(SimTime(3));
        assert_eq!(busy.until(SimTime(4)), SimTime(2));
        busy.ends(SimTime(5));
        busy.ends(SimTime(7));
        busy.begins(SimTime(10));
        busy.ends(SimTime(11));
        assert_eq!(busy.until(SimTime(20)), SimTime(6));
    }

    #[test]
    fn work_is_told_to_the_process_that_asked_for_it() {
        let mut log = ActivityLog::new(1);
        let of = |thread| Caller { thread: ThreadId(thread), context: ContextId::first(0) };
        let fill = CopyOperation::Fill {
            destination: balar_protocol::copy::Rows::linear(0x100, 8),
            value: 7,
            element_bytes: 1,
        };
        // Before anybody wants to know, and after.
        log.call_begins(ThreadId(4));
        log.work_is_asked_for(SimTime(1), of(4), 1..2);
        log.kept.entry(ProcessId::FIRST).or_default();
        for _ in 0..2 {
            log.call_begins(ThreadId(4));
        }
        log.work_is_asked_for(SimTime(5), of(4), 2..3);
        for copy in [1, 2] {
            log.copy_begins(SimTime(10), (0, CopyId(copy)), Some(u64::from(copy)), &fill);
        }
        for copy in [1, 2] {
            log.copy_ends(SimTime(20), CopyId(copy));
        }
        let work = ActivityWork::Fill { bytes: 8, value: 7 };
        let expected = Activity { thread: 4, call: 2, device: 0, asked: 5, start: 10, end: 20, work };
        assert_eq!(log.kept.remove(&ProcessId::FIRST), Some(vec![expected]));
        assert_eq!(log.busy[0].1.until(SimTime(30)), SimTime(10));
    }
}
