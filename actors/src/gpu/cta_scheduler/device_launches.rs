//! Kernels that kernels launch (dynamic parallelism): streams of grids, and grids that wait for the kernels that they have launched.
//!
//! An operation that a thread puts into a stream of its grid comes here as a message. Launches of one stream go to a queue one after the
//! other, as launches of the host do. A grid whose CTAs have ended is done when all kernels that it has launched are; launches of its tail
//! stream begin one after the other when nothing else is left (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").

use super::CtaScheduler;
use super::kernels::ResidentKernel;
use crate::engine::Outbox;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::device_launch::{DeviceOperation, DeviceStream, DeviceWork};
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Queues of streams of grids have numbers from here on: those of the host's streams and graphs are below.
const FIRST_DEVICE_QUEUE: u32 = 3 << 30;

/// All grids that have launched something, and are not done.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct DeviceLaunches {
    families: BTreeMap<LaunchId, Family>,
    /// Launches that are under way to their streams, in the order in which they come there.
    coming: VecDeque<(SimTime, DeviceWork)>,
    /// The grid that has made a launch, and its stream, by launch.
    origins: BTreeMap<LaunchId, (LaunchId, DeviceStream)>,
    /// How many there have been.
    launches: u32,
    queues: u32,
}

/// A grid and its launches.
#[derive(Serialize, Deserialize)]
struct Family {
    context: ContextId,
    /// Launches that are not done.
    pending: u64,
    streams: BTreeMap<DeviceStream, GridStream>,
    events: BTreeMap<u64, GridEvent>,
    /// Launches that begin when all others are done.
    tail: VecDeque<Arc<KernelLaunch>>,
    /// The kernel, once all its CTAs have ended, and when it would be done by itself.
    ended: Option<(ResidentKernel, SimTime)>,
}

/// A stream of a grid.
#[derive(Default, Serialize, Deserialize)]
struct GridStream {
    queue: Option<u32>,
    /// A launch of it runs, or waits for room.
    busy: bool,
    waiting: VecDeque<Step>,
}

/// An operation that waits in a stream.
#[derive(Serialize, Deserialize)]
enum Step {
    Launch(Arc<KernelLaunch>),
    Record(u64),
    /// The event, and how often it must have been over.
    Wait(u64, u64),
}

/// An event of a grid.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct GridEvent {
    /// How often it was recorded, and how often it is over.
    recorded: u64,
    over: u64,
}

impl Family {
    fn new(context: ContextId) -> Family {
        let (streams, events, tail) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Family { context, pending: 0, streams, events, tail, ended: None }
    }

    /// The next launch of a stream that can go to its queue. Events on the way are over, or waited for.
    fn next_of(&mut self, key: DeviceStream) -> Option<Arc<KernelLaunch>> {
        let stream = self.streams.get_mut(&key)?;
        while !stream.busy {
            match stream.waiting.front()? {
                Step::Wait(event, times) => {
                    if self.events.get(event).is_some_and(|event| event.over < *times) {
                        return None;
                    }
                }
                Step::Record(event) => self.events.entry(*event).or_default().over += 1,
                Step::Launch(_) => stream.busy = true,
            }
            if let Some(Step::Launch(launch)) = stream.waiting.pop_front() {
                return Some(launch);
            }
        }
        None
    }

    fn has_work(&self) -> bool {
        self.streams.values().any(|stream| !stream.waiting.is_empty() || stream.busy)
    }
}

impl CtaScheduler {
    /// A thread has put something into a stream of its grid.
    pub(super) fn device_work_received(&mut self, now: SimTime, work: DeviceWork, out: &mut Outbox) {
        let Some(index) = self.resident(work.parent) else { return };
        let parent = &self.state.resident[index].launch;
        let is_timed = parent.detail.is_timed();
        let family = self.state.device.families.entry(work.parent);
        let family = family.or_insert_with(|| Family::new(parent.context));
        match &work.operation {
            DeviceOperation::Launch(_) => family.pending += 1,
            DeviceOperation::Record(event) => family.events.entry(*event).or_default().recorded += 1,
            DeviceOperation::Wait(_) => {}
        }
        if !is_timed {
            self.device_work_comes(now, work, out);
            return;
        }
        let at = self.clock.time_of(self.clock.cycle_at_or_after(now) + self.device_launch_latency);
        self.state.device.coming.push_back((at, work));
    }

    /// When the next launch that is under way comes to its stream.
    pub(super) fn next_device_work(&self) -> Option<SimTime> {
        self.state.device.coming.front().map(|(at, _)| *at)
    }

    /// It comes.
    pub(super) fn next_device_work_comes(&mut self, now: SimTime, out: &mut Outbox) {
        if let Some((_, work)) = self.state.device.coming.pop_front() {
            self.device_work_comes(now, work, out);
        }
    }

    fn device_work_comes(&mut self, now: SimTime, work: DeviceWork, out: &mut Outbox) {
        let DeviceWork { parent, stream: key, operation } = work;
        let Some(family) = self.state.device.families.get_mut(&parent) else { return };
        let step = match operation {
            DeviceOperation::Launch(mut launch) => {
                launch.id = LaunchId::of_device(launch.context.gpu(), self.state.device.launches);
                self.state.device.launches += 1;
                self.state.device.origins.insert(launch.id, (parent, key));
                if let Some(timeline) = self.timeline.as_ref().filter(|_| launch.detail.is_timed()) {
                    timeline.lock().launched_by(now, parent, launch.id);
                }
                let launch = Arc::new(*launch);
                match key {
                    DeviceStream::Tail => {
                        family.tail.push_back(launch);
                        return;
                    }
                    DeviceStream::Alone => {
                        self.device_launch_begins(now, parent, key, launch, out);
                        return;
                    }
                    _ => Step::Launch(launch),
                }
            }
            DeviceOperation::Record(event) => Step::Record(event),
            DeviceOperation::Wait(event) => {
                Step::Wait(event, family.events.get(&event).map_or(0, |event| event.recorded))
            }
        };
        family.streams.entry(key).or_default().waiting.push_back(step);
        self.streams_go_on(now, parent, out);
    }

    /// Launches go to their queues that nothing of their streams is before. An event may let other streams go on.
    fn streams_go_on(&mut self, now: SimTime, parent: LaunchId, out: &mut Outbox) {
        loop {
            let Some(family) = self.state.device.families.get_mut(&parent) else { return };
            let keys: Vec<DeviceStream> = family.streams.keys().copied().collect();
            let over = |family: &Family| family.events.values().map(|event| event.over).sum::<u64>();
            let before = over(family);
            let next: Vec<_> = keys.into_iter().filter_map(|key| Some((key, family.next_of(key)?))).collect();
            let goes_on = over(family) != before;
            for (key, launch) in next {
                self.device_launch_begins(now, parent, key, launch, out);
            }
            if !goes_on {
                return;
            }
        }
    }

    /// A launch goes to a queue.
    fn device_launch_begins(
        &mut self,
        now: SimTime,
        parent: LaunchId,
        key: DeviceStream,
        mut launch: Arc<KernelLaunch>,
        out: &mut Outbox,
    ) {
        let device = &mut self.state.device;
        let mut new_queue = || {
            let number = FIRST_DEVICE_QUEUE | device.queues & !FIRST_DEVICE_QUEUE;
            device.queues = device.queues.wrapping_add(1);
            number
        };
        let stream = device.families.get_mut(&parent).and_then(|family| family.streams.get_mut(&key));
        let queue = match stream {
            Some(stream) => *stream.queue.get_or_insert_with(new_queue),
            None => new_queue(),
        };
        Arc::make_mut(&mut launch).queue = queue;
        self.launch_received(now, launch, out);
    }

    /// The CTAs of a kernel have ended, and it would be done by itself at `end`. It is when all is that it has launched.
    pub(super) fn grid_ended(&mut self, now: SimTime, kernel: ResidentKernel, end: SimTime, out: &mut Outbox) {
        let launch = kernel.launch.id;
        match self.state.device.families.get_mut(&launch) {
            Some(family) => {
                family.ended = Some((kernel, end));
                self.family_goes_on(now, launch, out);
            }
            None => self.kernel_is_done(kernel, end, out),
        }
    }

    /// A launch is done: its stream goes on, and so does its grid's end.
    pub(super) fn device_launch_done(&mut self, now: SimTime, launch: LaunchId, out: &mut Outbox) {
        let Some((parent, key)) = self.state.device.origins.remove(&launch) else { return };
        let Some(family) = self.state.device.families.get_mut(&parent) else { return };
        family.pending -= 1;
        if let Some(stream) = family.streams.get_mut(&key) {
            stream.busy = false;
        }
        self.streams_go_on(now, parent, out);
        self.family_goes_on(now, parent, out);
    }

    /// A grid that has ended: its tail begins where nothing else is left, and without one it is done.
    fn family_goes_on(&mut self, now: SimTime, launch: LaunchId, out: &mut Outbox) {
        let Some(family) = self.state.device.families.get_mut(&launch) else { return };
        if family.ended.is_none() || family.pending > family.tail.len() as u64 || family.has_work() {
            return;
        }
        if let Some(next) = family.tail.pop_front() {
            self.device_launch_begins(now, launch, DeviceStream::Tail, next, out);
            return;
        }
        if family.pending == 0
            && let Some(Family { ended: Some((kernel, end)), .. }) = self.state.device.families.remove(&launch)
        {
            self.kernel_is_done(kernel, end.max(now), out);
        }
    }

    /// A context has failed, or ends: gives its kernels that wait for the kernels that they have launched.
    pub(super) fn drop_device_launches(&mut self, context: ContextId) -> Vec<ResidentKernel> {
        let DeviceLaunches { families, coming, origins, .. } = &mut self.state.device;
        let (dropped, kept) = std::mem::take(families).into_iter().partition(|(_, family)| family.context == context);
        let dropped: BTreeMap<_, Family> = dropped;
        *families = kept;
        coming.retain(|(_, work)| families.contains_key(&work.parent));
        origins.retain(|_, (parent, _)| families.contains_key(parent));
        dropped.into_values().filter_map(|family| family.ended).map(|(kernel, _)| kernel).collect()
    }

    /// The kernels whose CTAs have ended, and that wait for the kernels that they have launched.
    pub(super) fn waiting_parents(&self) -> impl Iterator<Item = &ResidentKernel> {
        self.state.device.families.values().filter_map(|family| family.ended.as_ref()).map(|(kernel, _)| kernel)
    }

    /// The launches that wait in streams of grids, and kernels that wait for them, to complete their codes.
    pub(super) fn device_launches_mut(device: &mut DeviceLaunches) -> impl Iterator<Item = &mut Arc<KernelLaunch>> {
        device.families.values_mut().flat_map(|family| {
            let waiting = family.streams.values_mut().flat_map(|stream| &mut stream.waiting);
            let waiting = waiting.filter_map(|step| match step {
                Step::Launch(launch) => Some(launch),
                Step::Record(_) | Step::Wait(..) => None,
            });
            let ended = family.ended.iter_mut().map(|(kernel, _)| &mut kernel.launch);
            waiting.chain(&mut family.tail).chain(ended)
        })
    }

    /// Messages with launches that are under way, to complete their codes.
    pub(super) fn coming_mut(device: &mut DeviceLaunches) -> impl Iterator<Item = &mut DeviceWork> {
        device.coming.iter_mut().map(|(_, work)| work)
    }
}
