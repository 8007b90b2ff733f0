//! The streaming multiprocessor: sub-cores that issue warps, the memory pipe with L1 and shared memory, and the CTA slots.
//!
//! ```text
//!   cta port ──► CTA slots ──► warp slots ──► sub-cores (scheduler, pipes) ──► memory pipe ──► L1 ──► TLBs ──► memory port
//! ```
//!
//! An instruction's meaning is executed when it issues; its timing follows: a result's cycle goes to the warp's scoreboard, a
//! memory access goes through the pipe, and misses travel to the crossbar as requests. Between the cycles in which something can
//! happen the SM sleeps.

mod coalescer;
mod copies;
mod counters;
mod cta;
mod instruction_cache;
mod issue;
mod l1_cache;
mod lane_memory;
mod memory_pipe;
mod parameters;
mod runtime;
mod sub_core;
mod tlb;
mod warp_slot;

use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use crate::memory::{DeviceMemory, LoggedKind, Writer};
use balar_isa::execution::MemoryAccess;
use balar_isa::interpreter::{StepFunction, step_function};
use balar_isa::program::{LatencyClass, Pipe, Program};
use balar_isa::warp::{WarpShape, WarpState};
use balar_protocol::cta::{CtaCompletion, CtaLaunch, CtaMessage};
use balar_protocol::cuda::{FaultCause, KernelFault, KernelLaunch, LaunchId};
use balar_protocol::memory::MemoryMessage;
use balar_protocol::statistics::{KernelCounters, StatisticSink};
use balar_protocol::{Clock, Payload, PortId, Protocol, SimTime};
use coalescer::Lines;
use copies::Arrivals;
use counters::{SmCounters, Stall};
use cta::CtaSlot;
use instruction_cache::InstructionCache;
use issue::Step;
use l1_cache::L1Cache;
use memory_pipe::Outstanding;
pub use parameters::{InitiationIntervals, Latencies, SchedulerPolicy, SmParameters, TlbParameters};
use std::sync::Arc;
use sub_core::SubCore;
use tlb::Tlb;
use warp_slot::{Ready, Status, WarpSlot};

/// Bytes of a thread's local memory that it has from its start; what lies beyond comes when it is used.
const LOCAL_AT_ONCE: usize = 4096;

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "StreamingMultiprocessor",
    summary: "executes CTAs: warp schedulers, pipes, L1 and shared memory, first TLB levels",
    parameters: SmParameters::DEFINITIONS,
    check: SmParameters::check,
    ports: &[
        PortDefinition {
            name: "cta",
            protocol: Protocol::Cta,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "CTAs from the scheduler",
        },
        PortDefinition {
            name: "memory",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: true,
            meaning: "requests below the L1",
        },
        PortDefinition {
            name: "translation",
            protocol: Protocol::Translation,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "pages that miss in the SM's TLBs",
        },
    ],
    counters: &COUNTERS,
    provides,
    weight: 16,
    build,
};

const COUNTERS: [balar_protocol::statistics::StatisticDefinition;
    SmCounters::DEFINITIONS.len() + KernelCounters::DEFINITIONS.len()] = {
    let mut all = [SmCounters::DEFINITIONS[0]; SmCounters::DEFINITIONS.len() + KernelCounters::DEFINITIONS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < SmCounters::DEFINITIONS.len() {
            SmCounters::DEFINITIONS[at]
        } else {
            KernelCounters::DEFINITIONS[at - SmCounters::DEFINITIONS.len()]
        };
        at += 1;
    }
    all
};

/// The TLB levels inside the SM.
#[derive(Debug)]
struct Tlbs {
    first: Tlb,
    second: Tlb,
    page_bytes: u64,
    second_level_latency: u64,
}

impl Tlbs {
    fn insert(&mut self, address: u64) {
        self.first.insert(address);
        self.second.insert(address);
    }

    fn invalidate(&mut self, address: u64, bytes: u64) {
        self.first.invalidate(address, bytes);
        self.second.invalidate(address, bytes);
    }
}

/// A streaming multiprocessor.
pub struct Sm {
    clock: Clock,
    /// The number of its GPU.
    gpu: usize,
    index: u32,
    sm_count: u32,
    policy: SchedulerPolicy,
    active_warps: u32,
    sub_cores: Vec<SubCore>,
    warps: Vec<WarpSlot>,
    ctas: Vec<CtaSlot>,
    resident_ctas: u32,
    resident_since: u64,
    next_age: u64,
    latencies: [u32; LatencyClass::COUNT],
    intervals: [u32; Pipe::ALL.len()],
    barrier_latency: u32,
    cta_start_latency: u64,
    shared_latency: u64,
    l1_hit_latency: u64,
    l1_miss_latency: u64,
    l1_fill_latency: u64,
    l1_caches_global_loads: bool,
    l1_tags_per_cycle: u64,
    l1_sectors_per_cycle: u64,
    l1_mshrs: u32,
    memory_queue_cycles: u64,
    store_queue: u32,
    registers: u64,
    unified_memory: u64,
    carve_outs: Vec<u64>,
    l1_size: u64,
    l1: L1Cache,
    l1_launch: LaunchId,
    tlbs: Tlbs,
    memory_pipe_free: u64,
    inject_free: u64,
    outstanding: Outstanding,
    instruction_cache: InstructionCache,
    /// Warps that wait for a line of code.
    fetching: Vec<u16>,
    /// Scratch: lines of code to request.
    wanted_lines: Vec<(u32, u64)>,
    throttled: Vec<u16>,
    /// Arrivals at `mbarrier` objects that wait for copies.
    arrivals: Arrivals,
    /// Atomics of this window: (warp, generation, instruction whose destination gets the old values).
    deferred: Vec<(u16, u32, Option<u32>)>,
    recent_range: (u64, u64),
    access: MemoryAccess,
    /// Accesses of the instruction that issues beyond `access`.
    further: Vec<MemoryAccess>,
    lines: Lines,
    step: StepFunction,
    memory: Arc<DeviceMemory>,
    writer: Writer,
    cta_port: PortId,
    memory_port: PortId,
    translation_port: Option<PortId>,
    counters: SmCounters,
    completed: KernelCounters,
    /// First cycle that has not been simulated.
    cycle: u64,
    /// When the cycle that is being simulated begins.
    now: SimTime,
    /// The same in nanoseconds.
    now_nanoseconds: u64,
}

fn provides(text: &str) -> Vec<Capability> {
    let parameters: Option<SmParameters> = ron::from_str(text).ok();
    parameters.map(|parameters| Capability::Sm(parameters.provides())).into_iter().collect()
}

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: SmParameters = ron::from_str(text)?;
    let mut problems = parameters.problems();
    let gpu = context.surroundings.gpu(context.part);
    if gpu.is_none() {
        problems.push(ParameterProblem::new(
            "clock",
            "an SM belongs to a part that has a GPU front end, such as a CtaScheduler",
        ));
    }
    if let (Some((index, _)), true) = (gpu, problems.is_empty()) {
        return Ok(Box::new(Sm::new(&parameters, context, index, (context.memory()?, context.writer()?))));
    }
    Err(BuildError::Parameters(problems))
}

impl Sm {
    fn new(
        parameters: &SmParameters,
        context: &BuildContext,
        gpu: usize,
        (memory, writer): (Arc<DeviceMemory>, Writer),
    ) -> Sm {
        let port = |name| context.ports.get(name).unwrap_or_default();
        let l1_size = parameters.unified_memory.0;
        Sm {
            clock: Clock::new(parameters.clock),
            gpu,
            index: context.index,
            sm_count: context.row_length,
            policy: parameters.scheduler,
            active_warps: parameters.active_warps,
            sub_cores: (0..parameters.sub_cores).map(|_| SubCore::default()).collect(),
            warps: (0..parameters.warps).map(|_| WarpSlot::default()).collect(),
            ctas: (0..parameters.ctas).map(|_| CtaSlot::default()).collect(),
            resident_ctas: 0,
            resident_since: 0,
            next_age: 0,
            latencies: parameters.latencies.table(),
            intervals: parameters.initiation_intervals.table(),
            barrier_latency: parameters.latencies.barrier,
            cta_start_latency: u64::from(parameters.cta_start_latency),
            shared_latency: u64::from(parameters.shared_latency),
            l1_hit_latency: u64::from(parameters.l1_hit_latency),
            l1_miss_latency: u64::from(parameters.l1_miss_latency),
            l1_fill_latency: u64::from(parameters.l1_fill_latency),
            l1_caches_global_loads: parameters.l1_caches_global_loads,
            l1_tags_per_cycle: u64::from(parameters.l1_tags_per_cycle),
            l1_sectors_per_cycle: u64::from(parameters.l1_sectors_per_cycle),
            l1_mshrs: parameters.l1_mshrs,
            memory_queue_cycles: u64::from(parameters.memory_queue_cycles),
            store_queue: parameters.store_queue,
            registers: u64::from(parameters.registers),
            unified_memory: parameters.unified_memory.0,
            carve_outs: {
                let mut sizes: Vec<u64> = parameters.shared_carve_outs.iter().map(|size| size.0).collect();
                sizes.sort_unstable();
                sizes
            },
            l1_size,
            l1: L1Cache::new(l1_size, parameters.l1_sets),
            l1_launch: LaunchId(0),
            tlbs: Tlbs {
                first: Tlb::new(parameters.tlb.page.0, parameters.tlb.entries),
                second: Tlb::new(parameters.tlb.second_level_page.0, parameters.tlb.second_level_entries),
                page_bytes: parameters.tlb.page.0,
                second_level_latency: u64::from(parameters.tlb.second_level_latency),
            },
            memory_pipe_free: 0,
            inject_free: 0,
            outstanding: Outstanding::default(),
            instruction_cache: InstructionCache::new(
                parameters.instruction_cache.0,
                parameters.instruction_bytes,
                parameters.instruction_prefetch,
            ),
            fetching: Vec::new(),
            wanted_lines: Vec::new(),
            throttled: Vec::new(),
            arrivals: Arrivals::default(),
            deferred: Vec::new(),
            recent_range: (0, 0),
            access: MemoryAccess::default(),
            further: Vec::new(),
            lines: Lines::default(),
            step: step_function(),
            memory,
            writer,
            cta_port: port("cta"),
            memory_port: port("memory"),
            translation_port: context.ports.get("translation"),
            counters: SmCounters::default(),
            completed: KernelCounters::default(),
            cycle: 0,
            now: SimTime::ZERO,
            now_nanoseconds: 0,
        }
    }

    /// The sub-core of a warp slot, and the warp's number in it.
    #[inline]
    fn place(&self, warp: usize) -> (usize, u8) {
        (warp % self.sub_cores.len(), (warp / self.sub_cores.len()) as u8)
    }

    /// The scheduler has placed a CTA here.
    fn launch(&mut self, command: CtaLaunch, cycle: u64, step: &mut Step) {
        let CtaLaunch { launch, cta, slot } = command;
        let Some(program) = launch.code.program::<Program>() else {
            let cause = FaultCause::Unsupported(format!("kernel {} is not loaded", launch.name));
            let fault = KernelFault {
                cause,
                kernel: launch.name.clone(),
                launch: launch.id,
                cta,
                thread: [0; 3],
                instruction: String::new(),
            };
            self.ctas[usize::from(slot)].start(launch, cta);
            self.resident_ctas += 1;
            self.end_cta(usize::from(slot), Some(fault), cycle, step.out);
            return;
        };
        if self.resident_ctas == 0 {
            self.resident_since = cycle;
        }
        self.resident_ctas += 1;
        if launch.id > self.l1_launch {
            self.l1_launch = launch.id;
            // What was legal for an earlier kernel may have been freed since.
            self.recent_range = (0, 0);
            self.configure_l1(&launch);
        }
        self.ctas[usize::from(slot)].start(Arc::clone(&launch), cta);
        let warps = launch.warps_per_cta();
        let mut free = 0;
        for warp_in_cta in 0..warps {
            while free < self.warps.len() && self.warps[free].status != Status::Empty {
                free += 1;
            }
            assert!(free < self.warps.len(), "the scheduler placed a CTA of {warps} warps where no slots are free");
            self.ctas[usize::from(slot)].warps.push(free as u16);
            let shape = WarpShape {
                block: launch.block,
                grid: launch.grid,
                cta,
                warp_in_cta,
                sm: self.index,
                sm_count: self.sm_count,
                warp_slot: free as u32,
                warp_slots: self.warps.len() as u32,
                grid_id: u64::from(launch.id.0),
                dynamic_shared_bytes: launch.dynamic_shared_bytes,
                shared_bytes: launch.shared_bytes,
                grid_workspace: launch.grid_workspace,
                parameters: Arc::clone(&launch.parameters),
            };
            let age = self.next_age;
            self.next_age += 1;
            let (sub_core, local) = self.place(free);
            self.sub_cores[sub_core].set_age(local, age);
            let warp = &mut self.warps[free];
            match &mut warp.state {
                Some(state) => state.reset(&program, shape),
                None => warp.state = Some(WarpState::new(&program, shape)),
            }
            warp.scoreboard.clear();
            warp.scoreboard.resize(program.scoreboard_size(), Ready::default());
            warp.local.clear();
            // A stack for recursion is large, and rarely used in full: it grows.
            let local_bytes = (program.resources().local_bytes as usize).min(LOCAL_AT_ONCE);
            lane_memory::reserve_local(&mut warp.local, local_bytes);
            warp.program = Some(Arc::clone(&program));
            warp.program_id = launch.code.id();
            warp.fetched_line = u32::MAX;
            warp.cta = slot;
            warp.warp_in_cta = warp_in_cta;
            warp.generation = warp.generation.wrapping_add(1);
            warp.outstanding = 0;
            let arrivals = &mut self.arrivals;
            warp.copies.clear(|arrival| {
                arrivals.take(arrival);
            });
            warp.stall = Stall::NoInstruction;
            warp.charged_until = cycle;
            warp.start_cycle = cycle;
            self.schedule(free, cycle + self.cta_start_latency, step);
        }
    }

    /// Shared memory takes the smallest carve-out in which as many CTAs fit as the SM's other limits allow; the L1 has the rest,
    /// and starts empty, as it does between kernels.
    fn configure_l1(&mut self, launch: &KernelLaunch) {
        let by_warps = self.warps.len() as u64 / u64::from(launch.warps_per_cta().max(1));
        let by_registers = self.registers / u64::from((launch.registers_per_thread * launch.threads_per_cta()).max(1));
        let resident = by_warps.min(by_registers).min(self.ctas.len() as u64).max(1);
        let wanted = u64::from(launch.shared_bytes) * resident;
        let largest = self.carve_outs.last().copied().unwrap_or(0);
        let carve_out = self.carve_outs.iter().copied().find(|&size| size >= wanted).unwrap_or(largest);
        let size = self.unified_memory - carve_out;
        if size == self.l1_size {
            self.l1.invalidate();
        } else {
            self.l1_size = size;
            self.l1.resize(size);
        }
    }

    /// A warp leaves its slot; the last one ends its CTA.
    fn retire(&mut self, warp: usize, cycle: u64, out: &mut Outbox) {
        self.release_warp(warp, cycle);
        let cta = usize::from(self.warps[warp].cta);
        self.ctas[cta].live_warps -= 1;
        if self.ctas[cta].live_warps == 0 {
            self.end_cta(cta, None, cycle, out);
        }
    }

    fn release_warp(&mut self, warp: usize, cycle: u64) {
        let slot = &mut self.warps[warp];
        slot.charge_until(cycle, &mut self.counters);
        self.counters.warp_cycles_active += slot.charged_until - slot.start_cycle;
        slot.status = Status::Empty;
        slot.generation = slot.generation.wrapping_add(1);
    }

    /// A CTA ends, or is ended by a fault, and its slot is reported free.
    fn end_cta(&mut self, cta: usize, fault: Option<KernelFault>, cycle: u64, out: &mut Outbox) {
        self.drop_warps(cta, cycle);
        let slot = &mut self.ctas[cta];
        let Some(launch) = slot.launch.take() else { return };
        self.counters.ctas_completed += u64::from(fault.is_none());
        self.completed.add(&slot.counters);
        let completion = CtaCompletion { launch: launch.id, slot: cta as u16, counters: slot.counters, fault };
        self.leave(cycle);
        let message = Payload::Cta(CtaMessage::Completed(Box::new(completion)));
        out.send(self.cta_port, self.clock.time_of(cycle), message);
    }

    /// The launch has failed elsewhere: its CTAs are dropped without a word.
    fn abort(&mut self, launch: LaunchId, cycle: u64) {
        for cta in 0..self.ctas.len() {
            if self.ctas[cta].launch.as_ref().is_some_and(|running| running.id == launch) {
                self.drop_warps(cta, cycle);
                self.completed.add(&self.ctas[cta].counters);
                self.ctas[cta].launch = None;
                self.leave(cycle);
            }
        }
    }

    fn drop_warps(&mut self, cta: usize, cycle: u64) {
        for index in 0..self.ctas[cta].warps.len() {
            let warp = usize::from(self.ctas[cta].warps[index]);
            let slot = &self.warps[warp];
            if slot.status != Status::Empty && usize::from(slot.cta) == cta {
                let (sub_core, local) = self.place(warp);
                self.sub_cores[sub_core].remove(local);
                self.release_warp(warp, cycle);
            }
        }
        self.ctas[cta].warps.clear();
    }

    fn leave(&mut self, cycle: u64) {
        self.resident_ctas -= 1;
        if self.resident_ctas == 0 {
            self.counters.cycles_active += cycle.saturating_sub(self.resident_since);
        }
    }

    fn receive(&mut self, payload: Payload, cycle: u64, step: &mut Step) {
        match payload {
            Payload::Memory(MemoryMessage::Response(response)) => self.response(&response, cycle, step),
            Payload::Cta(CtaMessage::Launch(launch)) => self.launch(*launch, cycle, step),
            Payload::Cta(CtaMessage::Abort(launch)) => self.abort(launch, cycle),
            Payload::Translation(message) => self.translated(&message, cycle, step.out),
            _ => {}
        }
    }

    /// Old values of the atomics of the last epoch go to their registers. Nobody reads these before the responses arrive.
    /// Gives the warps that freed what is no block of the device heap: (warp, instruction, lane, address).
    fn take_atomic_results(&mut self) -> Vec<(usize, u32, u8, u64)> {
        let mut wrong_frees = Vec::new();
        let (warps, deferred) = (&mut self.warps, &mut self.deferred);
        self.writer.open(|log| {
            for result in log.atomic_results() {
                let Some(&(warp, generation, Some(pc))) = deferred.get(result.token as usize) else { continue };
                let slot = &mut warps[usize::from(warp)];
                let (true, Some(state), Some(program)) =
                    (slot.generation == generation, &mut slot.state, &slot.program)
                else {
                    continue;
                };
                if result.kind == LoggedKind::Release {
                    wrong_frees
                        .extend(result.first_zero().map(|(lane, address)| (usize::from(warp), pc, lane, address)));
                } else {
                    state.write_atomic_result(program, pc, &result.values(), result.mask);
                }
            }
            deferred.clear();
        });
        wrong_frees
    }
}

impl Unit for Sm {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        let wrong_frees = self.take_atomic_results();
        let memory = Arc::clone(&self.memory);
        let view = memory.view();
        let end_cycle = self.clock.cycle_at_or_after(window.until);
        let mut step = Step { view: &view, out, end_cycle };
        let first_cycle = self.clock.cycle_at_or_after(window.start).max(self.cycle);
        for (warp, pc, lane, address) in wrong_frees {
            // Of a CTA that several warps end, the first report counts.
            if self.warps[warp].status != Status::Empty {
                self.fail(warp, pc, lane, FaultCause::InvalidFree { address }, first_cycle, &mut step);
            }
        }
        let arrival = |clock: Clock, inbox: &Inbox| inbox.next_time().map_or(u64::MAX, |t| clock.cycle_at_or_after(t));
        let mut next_message = arrival(self.clock, inbox);
        loop {
            let wake = self.sub_cores.iter().map(SubCore::next_ready).fold(u64::MAX, u64::min);
            let cycle = wake.min(next_message).max(self.cycle);
            if cycle >= end_cycle {
                break;
            }
            self.now = self.clock.time_of(cycle);
            self.now_nanoseconds = self.now.0 / 1000;
            for sub_core in &mut self.sub_cores {
                sub_core.advance_to(cycle);
            }
            while next_message <= cycle {
                if let Some(message) = inbox.take() {
                    self.receive(message.payload, cycle, &mut step);
                }
                next_message = arrival(self.clock, inbox);
            }
            for sub_core in 0..self.sub_cores.len() {
                if self.sub_cores[sub_core].has_ready() {
                    self.issue(sub_core, cycle, &mut step);
                }
            }
            self.cycle = cycle + 1;
        }
        // What arrives after the last tick of the window belongs to the next tick.
        self.now = self.clock.time_of(end_cycle);
        self.now_nanoseconds = self.now.0 / 1000;
        while let Some(message) = inbox.take() {
            self.receive(message.payload, end_cycle, &mut step);
        }
        self.writer.close();
        let wake = self.sub_cores.iter().map(SubCore::next_ready).fold(u64::MAX, u64::min);
        if wake == u64::MAX { NextWake::OnMessage } else { NextWake::At(self.clock.time_of(wake.max(end_cycle))) }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let mut counters = self.counters;
        let mut kernels = self.completed;
        if self.resident_ctas > 0 {
            counters.cycles_active += self.cycle.saturating_sub(self.resident_since);
        }
        for cta in self.ctas.iter().filter(|cta| cta.launch.is_some()) {
            kernels.add(&cta.counters);
        }
        counters.write(sink);
        kernels.write(sink);
    }

    fn outstanding(&self) -> Option<String> {
        let waiting = |status| self.warps.iter().filter(|warp| warp.status == status).count();
        let fetches = self.instruction_cache.under_way();
        if self.resident_ctas == 0 && self.outstanding.lines() == 0 && self.outstanding.writes == 0 && fetches == 0 {
            return None;
        }
        Some(format!(
            "{} CTAs resident; warps waiting: {} for memory, {} at barriers ({} threads have arrived), {} at fences, {} for stores; \
             {} lines, {} stores and {fetches} lines of code under way",
            self.resident_ctas,
            waiting(Status::Memory) + waiting(Status::Throttled) + waiting(Status::Fetch) + waiting(Status::Copies),
            waiting(Status::Barrier),
            self.ctas.iter().filter(|cta| cta.launch.is_some()).map(CtaSlot::waiting_at_barriers).sum::<u32>(),
            waiting(Status::Fence),
            waiting(Status::Draining),
            self.outstanding.lines(),
            self.outstanding.writes,
        ))
    }
}
