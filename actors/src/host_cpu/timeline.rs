//! The timeline of the program's calls, where a run asks for it: a slice for each call on the track of its thread, and inside of it one for
//! the wait of the call. Around them are the named ranges of the thread.

use crate::catalogue::BuildContext;
use crate::catalogue::timeline::{
    Argument, Category, EventNumber, Label, TimelineLog, Track, TrackGroup, TrackKind, TrackPlace, ValueKind,
    copy_flow, launch_flow,
};
use balar_driver::{Issued, Until};
use balar_host::call::ProfilerCall;
use balar_host::{Call, CallResult, ThreadId};
use balar_protocol::ranges::range_name;
use balar_protocol::{ProcessId, SimTime};
use std::collections::BTreeMap;

const STREAM: Argument = ("stream", ValueKind::Number);
const BYTES: Argument = ("bytes", ValueKind::Number);
const LAUNCH: &[Argument] = &[
    STREAM,
    ("kernel", ValueKind::Kernel),
    ("grid_x", ValueKind::Number),
    ("grid_y", ValueKind::Number),
    ("grid_z", ValueKind::Number),
    ("block_x", ValueKind::Number),
    ("block_y", ValueKind::Number),
    ("block_z", ValueKind::Number),
];
const FUNCTION: &[Argument] = &[("function", ValueKind::Text)];
const FAILED: &[Argument] = &[("error", ValueKind::Text)];

/// A thread of the program as the timeline shows it.
#[derive(Debug)]
struct Shown {
    track: Track,
    process: ProcessId,
    /// Its present call, and whether that waits; `None` outside of calls.
    call: Option<(EventNumber, bool)>,
    /// The named ranges that it has begun, the innermost last.
    ranges: Vec<ShownRange>,
}

/// A named range whose slice has not ended.
#[derive(Debug)]
struct ShownRange {
    name: String,
    /// It has ended, but one that began later has not: slices of a track end from the inside out.
    has_ended: bool,
}

/// The state that the host CPU needs to record calls.
#[derive(Debug)]
pub(super) struct HostTimeline {
    log: TimelineLog,
    threads: BTreeMap<ThreadId, Shown>,
    fails: Label,
}

impl HostTimeline {
    /// The timeline of the host CPU that is built, where the run asks for it.
    pub fn of(context: &BuildContext) -> Option<HostTimeline> {
        let log = context.timeline()?;
        Some(HostTimeline { fails: log.label(Category::Call, "", FAILED), threads: BTreeMap::new(), log })
    }

    /// A thread makes a call.
    pub fn call_begins(&mut self, at: SimTime, (process, thread): (ProcessId, ThreadId), call: &Call) {
        let log = &self.log;
        let track = self.threads.entry(thread).or_insert_with(|| {
            let track = log.track(TrackPlace {
                group: TrackGroup::Host(process.0),
                path: vec![(thread.0, format!("thread {}", thread.0).into())],
                lane: 0,
                kind: TrackKind::Thread(thread.0),
            });
            Shown { track, process, call: None, ranges: Vec::new() }
        });
        match call {
            Call::Profiler(ProfilerCall::Begin(name)) => {
                let name = range_name(name).to_owned();
                log.begin(at, track.track, log.label(Category::Range, &name, &[]), &[]);
                track.ranges.push(ShownRange { name, has_ended: false });
            }
            Call::Profiler(ProfilerCall::End(name)) => self.range_ends(at, thread, range_name(name)),
            call => {
                let track = track.track;
                let (arguments, values) = self.arguments(call);
                let label = self.log.label(Category::Call, call.name(), arguments);
                let event = self.log.begin(at, track, label, &values);
                if let Some(shown) = self.threads.get_mut(&thread) {
                    shown.call = Some((event, false));
                }
            }
        }
    }

    /// A thread ends a range, its own or another thread's.
    fn range_ends(&mut self, at: SimTime, thread: ThreadId, name: &str) {
        let is_open = |shown: &Shown| shown.ranges.iter().any(|range| range.name == name && !range.has_ended);
        let own = self.threads.get(&thread).is_some_and(is_open).then_some(thread);
        let any = || self.threads.iter().find(|(_, shown)| is_open(shown)).map(|(thread, _)| *thread);
        let Some(shown) = own.or_else(any).and_then(|thread| self.threads.get_mut(&thread)) else { return };
        if let Some(range) = shown.ranges.iter_mut().rfind(|range| range.name == name && !range.has_ended) {
            range.has_ended = true;
        }
        // A call of the thread may be under way, inside of its ranges.
        if shown.call.is_none() {
            end_ranges(&self.log, at, shown);
        }
    }

    /// The values that come with a call.
    fn arguments(&self, call: &Call) -> (&'static [Argument], Vec<u64>) {
        let stream = call.stream().map(u64::from);
        let bytes = match call {
            Call::Copy { shape, .. } | Call::Memset { shape, .. } => Some(shape.bytes()),
            Call::Malloc { bytes }
            | Call::MallocAsync { bytes, .. }
            | Call::MallocHost { bytes }
            | Call::MallocManaged { bytes }
            | Call::Prefetch { bytes, .. }
            | Call::TouchManaged { bytes, .. }
            | Call::ReadManaged { bytes, .. } => Some(*bytes),
            Call::WriteManaged { data, .. } => Some(data.len()),
            Call::Launch(launch) => {
                let kernel = self.log.text(&launch.function.name);
                let extents = launch.grid.into_iter().chain(launch.block).map(u64::from);
                return (LAUNCH, [launch.stream.into(), kernel].into_iter().chain(extents).collect());
            }
            Call::NotImplemented { function } => return (FUNCTION, vec![self.log.text(function)]),
            _ => None,
        };
        match (stream, bytes) {
            (Some(stream), Some(bytes)) => (&[STREAM, BYTES], vec![stream, bytes]),
            (Some(stream), None) => (&[STREAM], vec![stream]),
            (None, Some(bytes)) => (&[BYTES], vec![bytes]),
            (None, None) => (&[], Vec::new()),
        }
    }

    /// A thread's call has given work to GPUs: the work that had been given before, and the work that has been now.
    pub fn work_is_given(&self, thread: ThreadId, before: Issued, now: Issued) {
        let Some((event, _)) = self.threads.get(&thread).and_then(|shown| shown.call) else { return };
        let launches = (before.launches..now.launches).map(launch_flow);
        let copies = (before.copies..now.copies).map(copy_flow);
        launches.chain(copies).for_each(|flow| self.log.flow(event, flow));
    }

    /// A thread's call waits.
    pub fn wait_begins(&mut self, at: SimTime, thread: ThreadId, until: &Until) {
        let Some(Shown { track, call: Some((_, waits)), .. }) = self.threads.get_mut(&thread) else { return };
        let name = match until {
            Until::Operations(_) => "wait for operations",
            Until::ContextBefore { .. } => "wait for the GPU",
            Until::ProcessBefore(..) => "wait for all GPUs",
            Until::QueueRoom(_) => "wait for room in the queue",
            Until::EndedProcesses => "wait for processes that have ended",
            Until::Managed(_) => "wait for unified memory",
        };
        if !std::mem::replace(waits, true) {
            let label = self.log.label(Category::Wait, name, &[]);
            self.log.begin(at, *track, label, &[]);
        }
    }

    /// The wait of a thread's call has ended.
    pub fn wait_ends(&mut self, at: SimTime, thread: ThreadId) {
        if let Some(Shown { track, call: Some((_, waits)), .. }) = self.threads.get_mut(&thread)
            && std::mem::replace(waits, false)
        {
            self.log.end(at, *track);
        }
    }

    /// A thread's call returns.
    pub fn call_returns(&mut self, at: SimTime, thread: ThreadId, result: &CallResult) {
        self.wait_ends(at, thread);
        let Some(Shown { track, call, .. }) = self.threads.get_mut(&thread) else { return };
        if call.take().is_none() {
            return;
        }
        match result {
            CallResult::Error(error) => {
                self.log.end_with(at, *track, self.fails, &[self.log.text(&error.to_string())]);
            }
            _ => self.log.end(at, *track),
        }
        if let Some(shown) = self.threads.get_mut(&thread) {
            end_ranges(&self.log, at, shown);
        }
    }

    /// A process has ended, and its threads with it.
    pub fn process_ends(&mut self, at: SimTime, process: ProcessId) {
        let threads = self.threads.iter().filter(|(_, shown)| shown.process == process);
        for thread in threads.map(|(thread, _)| *thread).collect::<Vec<_>>() {
            self.call_returns(at, thread, &CallResult::None);
            if let Some(mut shown) = self.threads.remove(&thread) {
                shown.ranges.iter_mut().for_each(|range| range.has_ended = true);
                end_ranges(&self.log, at, &mut shown);
            }
        }
    }
}

/// The slices of ranges end that have ended, from the innermost out.
fn end_ranges(log: &TimelineLog, at: SimTime, shown: &mut Shown) {
    while shown.ranges.pop_if(|range| range.has_ended).is_some() {
        log.end(at, shown.track);
    }
}
