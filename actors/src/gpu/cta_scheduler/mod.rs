//! The CTA scheduler of a GPU: the front end that takes kernel launches, and the distributor that gives their CTAs to SMs.
//!
//! Launches of one queue (a stream, or a chain of a graph) run one after another; launches of different queues run together, up to a limit.
//! The CTAs of kernels of higher priority are placed first, and among equal priorities the CTAs of the oldest kernel; younger ones fill the
//! remaining room, but no SM that has to become empty for the carve-out of an older one (`room.rs`). A CTA goes to the SM with the most
//! free warps, so a small grid spreads over all SMs before any of them gets its second CTA. A cluster of CTAs is placed as a whole, on SMs
//! of one GPC, when there is room for all of it.
//!
//! Kernels of different processes take turns (`turns.rs`), unless they share the GPU as by the Multi-Process Service.

mod device_launches;
mod endings;
mod functional;
mod kernels;
mod progress;
mod room;
mod sm_map;
mod spans;
#[cfg(test)]
mod tests;
mod timeline;
mod turns;

use crate::catalogue::bounds::{CLOCK, CYCLES, ENTRIES, TIME};
use crate::catalogue::timeline::Kept;
use crate::catalogue::{
    BuildContext, BuildError, Capability, CtaNeeds, ParameterProblem, ParameterSet, Peer, PortDefinition, Role,
    SmCapability, UnitDefinition,
};
use crate::engine::{
    CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, complete_device_work, complete_launch,
    restore_state, save_state,
};
use balar_protocol::cluster::{ClusterPlace, MAXIMUM_CLUSTER};
use balar_protocol::cta::{CtaCluster, CtaCompletion, CtaLaunch, CtaMessage};
use balar_protocol::cuda::{CudaMessage, FaultCause, KernelFault, KernelLaunch, LaunchId};
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::launches::{LaunchFacts, LaunchSink, Unreported};
use balar_protocol::statistics::{CtaCounters, StatisticSink};
use balar_protocol::{
    CarveOutPreference, Clock, ContextId, Frequency, MAXIMUM_REGISTER_FILES, MAXIMUM_SUB_CORES, Message, Payload,
    PortId, Protocol, SimTime,
};
use device_launches::DeviceLaunches;
use endings::facts_of;
use kernels::{EndingKernel, Queue, QueueId, ResidentKernel};
use progress::Progress;
use serde::{Deserialize, Serialize};
use sm_map::{CtaPlace, MAXIMUM_CTA_SLOTS, SmMap, SmMapState, WantedPlace};
use spans::LaunchSpans;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use timeline::SchedulerTimeline;
use turns::Turn;

/// The SM that the first CTA of a kernel goes to where no other runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FirstSm {
    /// The one behind the SM that has got the last CTA.
    Next,
    /// The one of the lowest number.
    Lowest,
}

crate::parameters! {
    /// The CTA scheduler of a GPU.
    pub struct CtaSchedulerParameters {
        /// clock of the scheduler, in whose cycles its latencies are; kernels are measured in those of the SMs
        #[range(CLOCK)]
        clock: Frequency,
        /// compute capability of the GPU, (major, minor)
        compute_capability: (u32, u32) = "(7, 0)",
        /// kernels that run at once (CUDA C++ Programming Guide, compute capability 6.0 and 7.0: 128)
        #[range(ENTRIES)]
        maximum_resident_kernels: u32 = "128",
        /// cycles from taking up a launch to its first CTA: front-end work (estimate; to be calibrated on small kernels)
        #[range(CYCLES)]
        launch_latency: u32 = "600",
        /// cycles from the end of the last CTA to the end of the kernel: write-back, semaphore (estimate; likewise)
        #[range(CYCLES)]
        completion_latency: u32 = "300",
        /// what a launch takes beside its cycles, whatever the clock
        #[range(TIME)]
        launch_time: SimTime = r#""0 ns""#,
        /// what an end takes beside its cycles, likewise
        #[range(TIME)]
        completion_time: SimTime = r#""0 ns""#,
        /// cycles from a launch by a kernel until it stands in its stream as one by the host does (GPGPU-Sim's configuration of a Quadro GV100, SM7_QV100: kernel_launch_latency 5000)
        #[range(CYCLES)]
        device_launch_latency: u32 = "5000",
        /// CTAs placed in a cycle (estimate)
        #[range(1..=1024)]
        ctas_per_cycle: u32 = "1",
        /// the SM that the first CTA of a kernel goes to where no other runs: Next, behind the last CTA's, or Lowest, the one of the lowest number
        first_sm: FirstSm = "Next",
        /// kernels of several processes run at once, as by the Multi-Process Service; otherwise processes take turns
        mps: bool = "false",
        /// how long the kernels of a process run while kernels of another process wait; CTAs that run by then run to their end (NVIDIA vGPU software: 2 ms where up to eight share a GPU)
        #[range(SimTime(1)..=TIME.end)]
        time_slice: SimTime = r#""2 ms""#,
        /// time from the last CTA of a process to the first one of the next (estimate)
        #[range(TIME)]
        context_switch: SimTime = r#""25 us""#,
    }
}

balar_protocol::counters! {
    /// The counters of the CTA scheduler.
    pub struct CtaSchedulerCounters {
        /// kernels taken from the host, and those that kernels have launched
        kernels_received: "kernel",
        /// kernels started
        kernels_launched: "kernel",
        /// kernels that ended as they should
        kernels_completed: "kernel",
        /// kernels that failed, or were refused after a failure
        kernels_failed: "kernel",
        /// CTAs sent to SMs
        ctas_launched: "CTA",
        /// CTAs that SMs reported as ended
        ctas_completed: "CTA",
        /// SM-clock cycles with at least one kernel resident
        cycles_active: "cycle",
        /// times that the SMs went from the kernels of a process to those of another
        context_switches: "switch",
        /// most kernels resident at once
        resident_kernels_maximum: "kernel" maximum,
    }
}

/// Compute capabilities: major numbers are below 100, minor ones have a digit.
const MOST_MAJOR: u32 = 99;
const MOST_MINOR: u32 = 9;

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "CtaScheduler",
    summary: "takes kernel launches and distributes their CTAs over the SMs",
    parameters: CtaSchedulerParameters::DEFINITIONS,
    check: CtaSchedulerParameters::check,
    ports: &[
        PortDefinition {
            name: "command",
            protocol: Protocol::Cuda,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "launches from the host, completions back",
        },
        PortDefinition {
            name: "sm",
            protocol: Protocol::Cta,
            role: Role::Client,
            indexed: true,
            required: true,
            meaning: "one SM each: CTAs to it, their ends back",
        },
    ],
    counters: CtaSchedulerCounters::DEFINITIONS,
    provides,
    weight: 2,
    build,
};

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: CtaSchedulerParameters = ron::from_str(text)?;
    let mut problems = parameters.range_problems();
    let (major, minor) = parameters.compute_capability;
    problems.check_range("compute_capability", major, 1..=MOST_MAJOR);
    problems.check_range("compute_capability", minor, ..=MOST_MINOR);
    let (sms, unfit) = sms_of(context);
    problems.extend(unfit);
    problems.into_result()?;
    let command = context.required_port("command")?;
    let mut scheduler = CtaScheduler::new(&parameters, context.part, command, sms);
    let groups = context.surroundings.gpu(context.part).and_then(|(_, gpu)| gpu.cluster_groups.clone());
    if let Some(groups) = groups {
        let number = |(_, port)| context.ports.peer(port).map_or(0, |peer| peer.index() as u16);
        let numbers = context.ports.row("sm").map(number).collect();
        scheduler.sms = scheduler.sms.with_network(numbers, &groups);
    }
    scheduler.progress = Progress::on(&context.surroundings.board, context.path);
    scheduler.ended = context.surroundings.watches_launches.then(Vec::new);
    scheduler.timeline = SchedulerTimeline::of(context);
    Ok(Box::new(scheduler))
}

fn provides(text: &str) -> Vec<Capability> {
    let parameters: Option<CtaSchedulerParameters> = ron::from_str(text).ok();
    // What is refused when the unit is built is never read as another GPU's.
    let bounded = |(major, minor): (u32, u32)| (major.min(MOST_MAJOR), minor.min(MOST_MINOR));
    let compute_capability = parameters.map(|parameters| bounded(parameters.compute_capability));
    compute_capability.map(|compute_capability| Capability::GpuFrontEnd { compute_capability }).into_iter().collect()
}

/// The capabilities of the SMs at the ports, and the first port without an SM that the scheduler can use.
fn sms_of(context: &BuildContext) -> (Vec<(PortId, SmCapability)>, Option<ParameterProblem>) {
    let (mut sms, mut unfit) = (Vec::new(), None);
    for (index, port) in context.ports.row("sm") {
        let peer = context.ports.peer(port);
        let (path, kind) = peer.map_or(("nothing", ""), |peer| (peer.path.as_str(), peer.kind));
        let problem = match peer.and_then(Peer::sm) {
            Some(sm) if !(1..=MAXIMUM_CTA_SLOTS).contains(&sm.cta_slots) => {
                format!("has {} CTA slots, expected 1 to {MAXIMUM_CTA_SLOTS}", sm.cta_slots)
            }
            Some(sm) if !(1..=MAXIMUM_SUB_CORES).contains(&(sm.resources.sub_cores as usize)) => {
                format!("has {} sub-cores, expected 1 to {MAXIMUM_SUB_CORES}", sm.resources.sub_cores)
            }
            Some(sm) if !(1..=MAXIMUM_REGISTER_FILES).contains(&(sm.resources.register_files as usize)) => {
                format!("has {} register files, expected 1 to {MAXIMUM_REGISTER_FILES}", sm.resources.register_files)
            }
            Some(sm) => {
                sms.push((port, sm));
                continue;
            }
            None => "declares no SM resources".to_owned(),
        };
        unfit.get_or_insert_with(|| {
            ParameterProblem::new("sm", format!("its port sm[{index}] leads to {path} ({kind}), which {problem}"))
        });
    }
    (sms, unfit)
}

/// Everything that changes, beside the map of the SMs.
#[derive(Serialize, Deserialize)]
struct State {
    arrivals: u64,
    queues: BTreeMap<QueueId, Queue>,
    /// Queues whose oldest launch could start, by its priority and its number in the order of arrival.
    ready: BTreeMap<(i32, u64), QueueId>,
    /// In order of priority, and then of arrival.
    resident: Vec<ResidentKernel>,
    /// In order of their ends.
    ending: VecDeque<EndingKernel>,
    /// The launches by kernels.
    device: DeviceLaunches,
    /// Next cycle in which CTAs may be placed, and how many that cycle has had.
    placement_cycle: u64,
    placed_in_cycle: u32,
    /// Nothing that waits can be placed before this cycle, unless a CTA ends or a kernel becomes resident.
    retry_cycle: u64,
    /// The SM that gets the first CTAs of the next kernel that is not timed.
    first_sm: u32,
    /// The faults that ended contexts.
    faults: BTreeMap<ContextId, KernelFault>,
    /// Whose kernels run.
    turn: Turn,
    active_since: Option<SimTime>,
    counters: CtaSchedulerCounters,
    records: KernelRecords,
    /// What CTAs did whose ends came after their launches had been broken off.
    late: Vec<Unreported>,
}

/// The unit.
struct CtaScheduler {
    clock: Clock,
    /// The SMs' clock, the fastest where they differ: kernels are measured in its cycles.
    sm_clock: Clock,
    first_sm: FirstSm,
    launch_latency: u64,
    launch_time: SimTime,
    completion_latency: u64,
    completion_time: SimTime,
    device_launch_latency: u64,
    ctas_per_cycle: u32,
    maximum_resident: usize,
    /// Do kernels of all processes run at once?
    is_shared: bool,
    time_slice: SimTime,
    context_switch: SimTime,
    part: Arc<str>,
    command: PortId,
    sms: SmMap,
    state: State,
    progress: Progress,
    /// Scratch: what the kernels want that come before one, and whose CTAs have no place.
    before: Vec<WantedPlace>,
    /// Launches that have ended since it was last asked for them, where the run is watched.
    ended: Option<Vec<LaunchFacts>>,
    /// Where to tell of kernels.
    timeline: Option<Kept<SchedulerTimeline>>,
    spans: LaunchSpans,
}

impl CtaScheduler {
    fn new(
        parameters: &CtaSchedulerParameters,
        part: &str,
        command: PortId,
        sms: impl IntoIterator<Item = (PortId, SmCapability)>,
    ) -> CtaScheduler {
        let sms: Vec<(PortId, SmCapability)> = sms.into_iter().collect();
        let sm_clock = sms.iter().map(|(_, sm)| sm.clock).max().unwrap_or(parameters.clock);
        CtaScheduler {
            clock: Clock::new(parameters.clock),
            sm_clock: Clock::new(sm_clock),
            first_sm: parameters.first_sm,
            launch_latency: u64::from(parameters.launch_latency),
            launch_time: parameters.launch_time,
            completion_latency: u64::from(parameters.completion_latency),
            completion_time: parameters.completion_time,
            device_launch_latency: u64::from(parameters.device_launch_latency),
            ctas_per_cycle: parameters.ctas_per_cycle,
            maximum_resident: parameters.maximum_resident_kernels as usize,
            is_shared: parameters.mps,
            time_slice: parameters.time_slice,
            context_switch: parameters.context_switch,
            part: part.into(),
            command,
            sms: SmMap::new(sms),
            state: State {
                arrivals: 0,
                queues: BTreeMap::new(),
                ready: BTreeMap::new(),
                resident: Vec::new(),
                ending: VecDeque::new(),
                device: DeviceLaunches::default(),
                placement_cycle: 0,
                placed_in_cycle: 0,
                retry_cycle: u64::MAX,
                first_sm: 0,
                faults: BTreeMap::new(),
                turn: Turn::default(),
                active_since: None,
                counters: CtaSchedulerCounters::default(),
                records: KernelRecords::default(),
                late: Vec::new(),
            },
            progress: Progress::default(),
            before: Vec::new(),
            ended: None,
            timeline: None,
            spans: LaunchSpans::default(),
        }
    }

    /// A launch arrives from the host.
    fn launch_received(&mut self, now: SimTime, launch: Arc<KernelLaunch>, out: &mut Outbox) {
        self.state.counters.kernels_received += 1;
        self.spans.received(now, &launch, &self.part);
        if self.state.faults.contains_key(&launch.context) {
            self.refuse(now, &launch, out);
            return;
        }
        if !self.has_room_when_empty(&launch) || launch.cta_count() == 0 {
            let cause = FaultCause::Unsupported(format!(
                "launch configuration: a cluster of {} CTAs of {} threads, {} registers a thread and {} bytes of shared memory in a grid of {:?} \
                 fits no SM of {}",
                launch.cluster_size(),
                launch.threads_per_cta(),
                launch.registers_per_thread,
                launch.shared_bytes,
                launch.grid,
                self.part
            ));
            let fault = KernelFault::of(&launch, [0; 3], [0; 3], cause, "its launch".to_owned());
            self.fail(now, launch.context, fault, out);
            self.refuse(now, &launch, out);
            return;
        }
        if let Some(timeline) = self.timeline.as_ref().filter(|_| launch.detail.is_timed()) {
            timeline.lock().received(now, launch.id);
        }
        let number = self.state.arrivals;
        self.state.arrivals += 1;
        let id = QueueId::of(&launch);
        let queue = self.state.queues.entry(id).or_default();
        if !queue.busy && queue.waiting.is_empty() {
            self.state.ready.insert((launch.priority, number), id);
        }
        queue.waiting.push_back((number, launch));
        self.take_turns(now);
        self.fill_residency(now);
    }

    /// Would the SMs run a cluster of a launch, most often one CTA, if they ran nothing else? Its clusters fill the grid.
    fn has_room_when_empty(&self, launch: &KernelLaunch) -> bool {
        let (needs, size) = (CtaNeeds::of_cta(launch), launch.cluster_size());
        let divides = (0..3).all(|axis| launch.grid[axis].is_multiple_of(launch.cluster_dimensions()[axis]));
        match size {
            1 => self.sms.has_room_when_empty(&needs),
            _ => size <= MAXIMUM_CLUSTER && divides && self.sms.has_room_for_cluster(&needs, size),
        }
    }

    /// A CTA has ended on the SM at `port`.
    fn cta_completed(&mut self, now: SimTime, port: PortId, completion: &CtaCompletion, out: &mut Outbox) {
        if !self.sms.release(port, completion.slot, completion.launch) {
            // Its launch has been broken off meanwhile.
            let late = Unreported::among(&mut self.state.late, completion.launch);
            return late.add_unfinished(&completion.counters);
        }
        self.state.counters.ctas_completed += 1;
        self.progress.ctas_ended(1);
        self.retry_placement(now);
        let Some(index) = self.resident(completion.launch) else { return };
        let kernel = &mut self.state.resident[index];
        self.progress.timed_cta_ended(&kernel.launch.name, completion.counters.inst_executed);
        if let Some(timeline) = &self.timeline {
            timeline.lock().ctas_change(now, -1, &kernel.launch);
        }
        kernel.counters.add(&completion.counters);
        kernel.running -= 1;
        kernel.storing += i64::from(completion.stores_under_way);
        if let Some(fault) = &completion.fault {
            let context = kernel.launch.context;
            self.fail(now, context, fault.clone(), out);
        } else if kernel.is_over() {
            self.end_kernel(now, index, out);
        }
        if self.take_turns(now) {
            self.fill_residency(now);
        }
    }

    /// The last store of a CTA is done that has ended.
    fn cta_stored(&mut self, now: SimTime, launch: LaunchId, out: &mut Outbox) {
        let Some(index) = self.resident(launch) else { return };
        let kernel = &mut self.state.resident[index];
        kernel.storing -= 1;
        if kernel.is_over() {
            self.end_kernel(now, index, out);
        }
        if self.take_turns(now) {
            self.fill_residency(now);
        }
    }

    /// Where a launch is among the resident kernels.
    fn resident(&self, launch: LaunchId) -> Option<usize> {
        self.state.resident.iter().position(|kernel| kernel.launch.id == launch)
    }

    /// A kernel's end has been signalled: its queue goes on.
    fn queue_released(&mut self, now: SimTime, id: QueueId) {
        if let Some(queue) = self.state.queues.get_mut(&id) {
            queue.busy = false;
            match queue.waiting.front() {
                Some((arrival, launch)) => {
                    self.state.ready.insert((launch.priority, *arrival), id);
                }
                None => {
                    self.state.queues.remove(&id);
                }
            }
        }
        self.take_turns(now);
        self.fill_residency(now);
        self.note_activity(now);
    }

    /// Makes the oldest launches resident that can be.
    fn fill_residency(&mut self, now: SimTime) {
        let mut resident = self.state.resident.iter().filter(|kernel| self.has_turn(kernel.launch.context)).count();
        while resident < self.maximum_resident {
            let ready = self.state.ready.iter().find(|(_, queue)| self.has_turn(queue.context));
            let Some((place, queue)) = ready.map(|(place, queue)| (*place, *queue)) else { break };
            self.state.ready.remove(&place);
            resident += 1;
            let Some(queue) = self.state.queues.get_mut(&queue) else { continue };
            let Some((_, launch)) = queue.waiting.pop_front() else { continue };
            queue.busy = true;
            self.progress.kernel_starts(&launch.name);
            if let Some(timeline) = self.timeline.as_ref().filter(|_| launch.detail.is_timed()) {
                timeline.lock().starts(now, &launch);
            }
            let (time, latency) =
                if launch.detail.is_timed() { (self.launch_time, self.launch_latency) } else { Default::default() };
            let first_cycle = self.clock.cycle_at_or_after(now + time) + latency;
            if self.first_sm == FirstSm::Lowest && self.state.resident.is_empty() {
                self.sms.begin_anew();
            }
            let place = self.state.resident.partition_point(|kernel| kernel.launch.priority <= launch.priority);
            let kernel = ResidentKernel {
                cta_needs: CtaNeeds::of_cta(&launch),
                start: now,
                first_cycle,
                next_cta: [0; 3],
                unplaced: launch.cta_count(),
                running: 0,
                storing: 0,
                of_sm: Vec::new(),
                until: now,
                counters: CtaCounters::default(),
                launch,
            };
            self.state.resident.insert(place, kernel);
            self.retry_placement(now);
            self.state.counters.kernels_launched += 1;
            self.state.counters.resident_kernels_maximum =
                self.state.counters.resident_kernels_maximum.max(self.state.resident.len() as u64);
        }
        self.note_activity(now);
    }

    /// Keeps the count of active cycles.
    fn note_activity(&mut self, now: SimTime) {
        let is_timed = |kernel: &ResidentKernel| kernel.launch.detail.is_timed();
        let active = self.state.resident.iter().chain(self.waiting_parents()).any(is_timed)
            || self.state.ending.iter().any(|kernel| kernel.is_timed);
        match (active, self.state.active_since) {
            (true, None) => self.state.active_since = Some(now),
            (false, Some(since)) => {
                self.state.counters.cycles_active += self.cycles_between(since, now);
                self.state.active_since = None;
            }
            _ => {}
        }
    }

    fn cycles_between(&self, start: SimTime, end: SimTime) -> u64 {
        self.sm_clock.cycle_at_or_after(end).saturating_sub(self.sm_clock.cycle_at_or_after(start))
    }

    /// When a CTA could next be placed.
    fn next_placement(&self) -> Option<SimTime> {
        if self.state.retry_cycle == u64::MAX {
            return None;
        }
        let waiting = self.state.resident.iter().filter(|kernel| kernel.unplaced > 0 && self.places(kernel));
        let first = waiting.map(|kernel| kernel.first_cycle).min()?;
        let first = first.max(self.state.turn.first_cycle);
        Some(self.clock.time_of(first.max(self.state.placement_cycle).max(self.state.retry_cycle)))
    }

    /// Places one CTA at `now`, an SM cycle that [`Self::next_placement`] named, beside those of kernels that are not timed.
    fn place(&mut self, now: SimTime, out: &mut Outbox) {
        let cycle = self.clock.cycle_at_or_after(now);
        self.place_functional(cycle, now, out);
        // Where nothing fits: the first cycle in which a kernel that is not yet under way may be placed.
        let mut retry_cycle = u64::MAX;
        // The CTAs of a cooperative kernel wait for each other, so they must not hold room that an older kernel waits for:
        // then they are placed when all older CTAs are, and those end whatever happens to these.
        let mut older_are_placed = true;
        let (turn, is_shared) = (self.state.turn, self.is_shared);
        self.before.clear();
        let is_placed = |kernel: &&mut ResidentKernel| {
            kernel.unplaced > 0 && (is_shared || turn.places(kernel.launch.context)) && kernel.launch.detail.is_timed()
        };
        for kernel in self.state.resident.iter_mut().filter(is_placed) {
            let may_be_placed = older_are_placed || !kernel.launch.is_cooperative();
            older_are_placed = false;
            if !may_be_placed {
                continue;
            }
            if kernel.first_cycle > cycle {
                retry_cycle = retry_cycle.min(kernel.first_cycle);
                continue;
            }
            let preference = CarveOutPreference::of(&kernel.launch);
            let wanted = WantedPlace { needs: kernel.cta_needs, preference };
            let (id, size) = (kernel.launch.id, kernel.launch.cluster_size());
            if size > 1 {
                let Some(places) = self.sms.place_cluster(id, &wanted, &self.before, size) else {
                    // Younger kernels leave it the room that it waits for: no end of one CTA makes enough.
                    break;
                };
                let number = kernel.take_cluster();
                let members: Arc<[ClusterPlace]> = places.iter().map(|(_, member)| *member).collect();
                for (rank, (place, _)) in (0..size).zip(places) {
                    let cluster = Some(CtaCluster { number, rank: rank as u8, members: Arc::clone(&members) });
                    let cta = kernel.launch.cta_of_cluster(number, rank);
                    send_cta(&kernel.launch, (cta, cluster), place, now, out);
                }
            } else {
                let Some(place) = self.sms.place(id, &wanted, &self.before) else {
                    self.before.push(wanted);
                    continue;
                };
                let cta = kernel.take_cta();
                send_cta(&kernel.launch, (cta, None), place, now, out);
            }
            if let Some(timeline) = &self.timeline {
                timeline.lock().ctas_change(now, i64::from(size), &kernel.launch);
            }
            self.state.counters.ctas_launched += u64::from(size);
            (0..size).for_each(|_| self.progress.timed_cta_begins(&kernel.launch.name));
            if cycle > self.state.placement_cycle {
                self.state.placement_cycle = cycle;
                self.state.placed_in_cycle = 0;
            }
            // The CTAs of a cluster come at one time, and take that of as many.
            self.state.placed_in_cycle += size;
            let cycles = self.state.placed_in_cycle / self.ctas_per_cycle;
            if cycles > 0 {
                self.state.placement_cycle = cycle + u64::from(cycles);
                self.state.placed_in_cycle = 0;
            }
            return;
        }
        self.state.retry_cycle = retry_cycle;
    }

    /// Something has changed that may let a CTA be placed.
    fn retry_placement(&mut self, now: SimTime) {
        self.state.retry_cycle = self.state.retry_cycle.min(self.clock.cycle_at_or_after(now));
    }

    fn handle(&mut self, message: Message, out: &mut Outbox) {
        match message.payload {
            Payload::Cuda(CudaMessage::Launch(launch)) => self.launch_received(message.time, launch, out),
            Payload::Cuda(CudaMessage::Reset(context)) => {
                self.state.faults.remove(&context);
            }
            Payload::Cuda(CudaMessage::Abort(context)) => self.end_context(message.time, context, out),
            Payload::Cta(CtaMessage::Completed(completion)) => {
                self.cta_completed(message.time, message.port, &completion, out);
            }
            Payload::Cta(CtaMessage::Stored(launch)) => self.cta_stored(message.time, launch, out),
            Payload::Cta(CtaMessage::DeviceWork(work)) => self.device_work_received(message.time, *work, out),
            Payload::Cta(CtaMessage::FunctionalEnd(end)) => {
                self.functional_ended(message.time, message.port, *end, out)
            }
            payload => payload.unexpected(if message.port == self.command { "command" } else { "sm[*]" }),
        }
    }
}

/// Sends a CTA to its place.
fn send_cta(
    launch: &Arc<KernelLaunch>,
    (cta, cluster): ([u32; 3], Option<CtaCluster>),
    place: CtaPlace,
    now: SimTime,
    out: &mut Outbox,
) {
    let CtaPlace { port, slot, sub_cores, carve_out } = place;
    let launch = CtaLaunch { launch: Arc::clone(launch), cta, slot, sub_cores, carve_out, cluster };
    out.send(port, now, Payload::Cta(CtaMessage::Launch(Box::new(launch))));
}

/// The next event, in the order of events at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    KernelEnd,
    Message,
    DeviceWork,
    SliceEnd,
    Placement,
}

impl Unit for CtaScheduler {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            let end = self.state.ending.front().map(|kernel| (kernel.end, Event::KernelEnd));
            let message = inbox.next_time().map(|time| (time, Event::Message));
            let placement = self.next_placement().map(|time| (time.max(window.start), Event::Placement));
            let device = self.next_device_work().map(|time| (time.max(window.start), Event::DeviceWork));
            let slice = self.next_slice_end().map(|time| (time.max(window.start), Event::SliceEnd));
            let Some((time, event)) = [end, message, device, slice, placement].into_iter().flatten().min() else {
                return NextWake::OnMessage;
            };
            if time >= window.until {
                return NextWake::At(time);
            }
            match event {
                Event::KernelEnd => {
                    if let Some(kernel) = self.state.ending.pop_front() {
                        self.queue_released(time, kernel.queue);
                        if kernel.launch.is_of_device() {
                            self.device_launch_done(time, kernel.launch, out);
                            self.note_activity(time);
                        }
                    }
                }
                Event::Message => {
                    if let Some(message) = inbox.take() {
                        self.handle(message, out);
                    }
                }
                Event::DeviceWork => self.next_device_work_comes(time, out),
                Event::SliceEnd => self.end_slice(time),
                Event::Placement => {
                    let cycle = self.clock.cycle_at_or_after(time);
                    let tick = self.clock.time_of(cycle);
                    if tick >= window.until {
                        return NextWake::At(tick);
                    }
                    self.place(tick, out);
                }
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let mut counters = self.state.counters;
        if let Some(since) = self.state.active_since {
            counters.cycles_active += self.cycles_between(since, sink.now);
        }
        counters.write(sink);
    }

    fn records(&self, sink: &mut StatisticSink) {
        sink.kernels.append(&self.state.records);
        // Those that still run, as far as they got.
        let end = sink.now;
        for kernel in self.state.resident.iter().chain(self.waiting_parents()) {
            sink.kernels.push(&self.record_of(kernel, end, false));
        }
        sink.unreported.extend_from_slice(&self.state.late);
    }

    fn counts_by_time(&self) -> bool {
        self.state.active_since.is_some()
    }

    fn launches(&mut self, sink: &mut LaunchSink) {
        let Some(ended) = &mut self.ended else { return };
        sink.begun.append(ended);
        // Launches that run for their values alone are in no time.
        let begun = self.state.resident.iter().chain(self.waiting_parents());
        let timed = begun.filter(|kernel| kernel.launch.detail.is_timed());
        sink.begun.extend(timed.map(|kernel| facts_of(kernel, &self.part, None)));
    }

    fn outstanding(&self) -> Option<String> {
        if let Some(kernel) = self.state.resident.first() {
            return Some(format!(
                "kernel {} (launch {}): {} CTAs running, {} not placed, {} ended that wait for their stores; {} kernels resident",
                kernel.launch.name,
                kernel.launch.id,
                kernel.running,
                kernel.unplaced,
                kernel.storing,
                self.state.resident.len()
            ));
        }
        if let Some(kernel) = self.waiting_parents().next() {
            let (name, launch) = (&kernel.launch.name, kernel.launch.id);
            return Some(format!("kernel {name} (launch {launch}) waits for the kernels that it has launched"));
        }
        let waiting: usize = self.state.queues.values().map(|queue| queue.waiting.len()).sum();
        (waiting > 0).then(|| format!("{waiting} kernels wait to start"))
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(&self.state, &self.sms.state))
    }

    /// The values on the live board are no state: the board goes on from where it is.
    fn restore(&mut self, state: &[u8], codes: &dyn CodeSource) -> Result<(), StateError> {
        let (mut state, sms): (State, SmMapState) = restore_state(state)?;
        if !self.sms.fits(&sms) {
            return Err(StateError::Mismatch("another number of SMs or of their CTA slots".to_owned()));
        }
        let waiting = state.queues.values_mut().flat_map(|queue| &mut queue.waiting).map(|(_, launch)| launch);
        let by_kernels = CtaScheduler::device_launches_mut(&mut state.device);
        for launch in state.resident.iter_mut().map(|kernel| &mut kernel.launch).chain(waiting).chain(by_kernels) {
            complete_launch(launch, codes)?;
        }
        for work in CtaScheduler::coming_mut(&mut state.device) {
            complete_device_work(work, codes)?;
        }
        (self.state, self.sms.state) = (state, sms);
        Ok(())
    }
}
