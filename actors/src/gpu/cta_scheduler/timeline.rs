//! The timeline of a CTA scheduler, where a run asks for it: a slice for each kernel on a track for its stream, how many launches wait, how
//! many CTAs and warps are resident, and when the GPU goes from one process to another.

use super::kernels::ResidentKernel;
use crate::catalogue::BuildContext;
use crate::catalogue::timeline::{
    Argument, Category, Kept, Label, Section, TimelineLog, Track, TrackGroup, TrackPlace, ValueKind, launch_flow,
};
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::{ContextId, SimTime};
use std::collections::BTreeMap;

/// The values that come with a kernel, and these before them.
macro_rules! of_kernel {
    ($($first:literal),*) => {
        &[
            $(($first, ValueKind::Number),)*
            ("stream", ValueKind::Number),
            ("process", ValueKind::Number),
            ("grid_x", ValueKind::Number),
            ("grid_y", ValueKind::Number),
            ("grid_z", ValueKind::Number),
            ("block_x", ValueKind::Number),
            ("block_y", ValueKind::Number),
            ("block_z", ValueKind::Number),
            ("registers_per_thread", ValueKind::Number),
            ("shared_bytes", ValueKind::Number),
            ("received_ps", ValueKind::Number),
            ("start_ps", ValueKind::Number),
            ("queued_ps", ValueKind::Number),
        ]
    };
}

/// Values of a kernel that the host has launched.
const KERNEL: &[Argument] = of_kernel!("launch");
/// Values of a kernel that a kernel of the host's has launched: its number among these, and the launch of its parent.
const CHILD: &[Argument] = of_kernel!("device_launch", "parent");
/// Values of a kernel that such a kernel has launched.
const GRANDCHILD: &[Argument] = of_kernel!("device_launch", "parent_device_launch");

/// The values that come with its end.
const KERNEL_END: &[Argument] =
    &[("end_ps", ValueKind::Number), ("cycles", ValueKind::Number), ("completed", ValueKind::Number)];

/// The values that come with a launch by a kernel.
const LAUNCH: &[Argument] = &[("device_launch", ValueKind::Number)];

const SWITCH: &[Argument] = &[("to_process", ValueKind::Number)];

/// The state that a scheduler needs to record its kernels.
pub(super) struct SchedulerTimeline {
    log: TimelineLog,
    gpu: TrackGroup,
    waiting_launches: Track,
    resident_ctas: Track,
    resident_warps: Track,
    ends: Label,
    /// When launches came that wait.
    received: BTreeMap<LaunchId, SimTime>,
    /// The last launch on each track of a stream, and its end. Chains of a graph run at once.
    lanes: BTreeMap<(ContextId, u32), Vec<(LaunchId, SimTime)>>,
    ctas: u64,
    warps: u64,
}

impl SchedulerTimeline {
    /// The timeline of the scheduler that is built, where the run asks for it.
    pub fn of(context: &BuildContext) -> Option<Kept<SchedulerTimeline>> {
        let timeline = context.surroundings.timeline.as_ref()?;
        Some(timeline.keep(context.unit, |log| SchedulerTimeline::new(log, context.gpu_tracks())))
    }

    fn new(log: TimelineLog, gpu: TrackGroup) -> SchedulerTimeline {
        let counter = |rank, name, unit| log.track(TrackPlace::counter(gpu.clone(), rank, name, unit));
        SchedulerTimeline {
            waiting_launches: counter(0, "launches waiting", "kernel"),
            resident_ctas: counter(1, "CTAs resident", "CTA"),
            resident_warps: counter(2, "warps resident", "warp"),
            ends: log.label(Category::Kernel, "", KERNEL_END),
            received: BTreeMap::new(),
            lanes: BTreeMap::new(),
            ctas: 0,
            warps: 0,
            gpu,
            log,
        }
    }

    /// A launch comes, and waits until its kernel starts.
    pub fn received(&mut self, now: SimTime, launch: LaunchId) {
        self.received.insert(launch, now);
        self.log.count(now, self.waiting_launches, self.received.len() as u64);
    }

    /// A launch is refused.
    pub fn refused(&mut self, now: SimTime, launch: LaunchId) {
        if self.received.remove(&launch).is_some() {
            self.log.count(now, self.waiting_launches, self.received.len() as u64);
        }
    }

    /// A kernel starts.
    pub fn starts(&mut self, now: SimTime, launch: &KernelLaunch) {
        let received = self.received.remove(&launch.id).unwrap_or(now);
        self.log.count(now, self.waiting_launches, self.received.len() as u64);
        let lanes = self.lanes.entry((launch.context, launch.stream)).or_default();
        let lane = lanes.iter().position(|(_, until)| *until <= now).unwrap_or(lanes.len());
        lanes.resize(lanes.len().max(lane + 1), (launch.id, SimTime::ZERO));
        lanes[lane] = (launch.id, SimTime(u64::MAX));
        let track = self.track(launch.context, launch.stream, lane);
        let (arguments, mut values) = match launch.origin.as_ref().map(|origin| origin.parent) {
            None => (KERNEL, vec![launch.id.0.saturating_sub(1)]),
            Some(parent) if parent.is_of_device() => {
                (GRANDCHILD, [launch.id, parent].map(LaunchId::device_number).to_vec())
            }
            Some(parent) => (CHILD, vec![launch.id.device_number(), parent.0.saturating_sub(1)]),
        };
        let label = self.log.label(Category::Kernel, &launch.name, arguments);
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (launch.grid, launch.block);
        let (registers, process) = (launch.registers_per_thread, launch.context.process().0);
        values.extend([launch.stream, process, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers]);
        let mut values: Vec<u64> = values.into_iter().map(u64::from).collect();
        values.extend([u64::from(launch.shared_bytes), received.0, now.0, (now - received).0]);
        let event = self.log.begin(now, track, label, &values);
        self.log.flow(event, launch_flow(launch.id.0));
    }

    /// A kernel has launched another one.
    pub fn launched_by(&self, now: SimTime, parent: LaunchId, launch: LaunchId) {
        let found = self.lanes.iter().find_map(|(key, lanes)| {
            let lane = lanes.iter().position(|(shown, until)| *shown == parent && until.0 == u64::MAX)?;
            Some((*key, lane))
        });
        let Some(((context, stream), lane)) = found else { return };
        let label = self.log.label(Category::Kernel, "launch", LAUNCH);
        let event = self.log.instant(now, self.track(context, stream, lane), label, &[launch.device_number().into()]);
        self.log.flow(event, launch_flow(launch.0));
    }

    /// A kernel ends: its CTAs that run are dropped.
    pub fn ends(&mut self, end: SimTime, kernel: &ResidentKernel, cycles: u64, completed: bool) {
        let launch = &kernel.launch;
        let key = (launch.context, launch.stream);
        let lanes = self.lanes.entry(key).or_default();
        if let Some(lane) = lanes.iter().position(|(shown, _)| *shown == launch.id) {
            lanes[lane].1 = end;
            let track = self.track(launch.context, launch.stream, lane);
            self.log.end_with(end, track, self.ends, &[end.0, cycles, completed.into()]);
        }
        if kernel.running > 0 {
            self.ctas_change(end, -(kernel.running as i64), launch);
        }
    }

    /// CTAs of a launch have been placed, or have ended.
    pub fn ctas_change(&mut self, now: SimTime, by: i64, launch: &KernelLaunch) {
        self.ctas = self.ctas.saturating_add_signed(by);
        self.warps = self.warps.saturating_add_signed(by * i64::from(launch.warps_per_cta()));
        self.log.count(now, self.resident_ctas, self.ctas);
        self.log.count(now, self.resident_warps, self.warps);
    }

    /// The GPU goes to another process.
    pub fn switches(&self, (start, end): (SimTime, SimTime), to: ContextId) {
        let track = self.log.track(TrackPlace::slices(self.gpu.clone(), vec![Section::ContextSwitches.name()]));
        let label = self.log.label(Category::ContextSwitch, "context switch", SWITCH);
        self.log.begin(start, track, label, &[to.process().0.into()]);
        self.log.end(end, track);
    }

    fn track(&self, context: ContextId, stream: u32, lane: usize) -> Track {
        let process = context.process().0;
        let name = match process {
            0 => format!("stream {stream}"),
            _ => format!("stream {stream} of process {process}"),
        };
        // Streams are numbered over all processes; each has a default stream 0.
        let rank = if stream == 0 { process } else { stream.saturating_add(u32::from(u16::MAX)) };
        let path = vec![Section::Kernels.name(), (rank, name.into())];
        let place = TrackPlace::slices(self.gpu.clone(), path);
        self.log.track(TrackPlace { lane: lane as u32, ..place })
    }
}
