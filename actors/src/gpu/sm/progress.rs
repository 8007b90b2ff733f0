//! The parts of an SM, and the progress of its warps: from one instruction to the cycle in which the next can issue.
//!
//! **Invariant:** this file calls only what lies below it: warps, front end, memory pipe, execution. Its callers lie above it: the effects
//! of instructions, arrivals, and the loop over cycles.

use super::bulk_queue::BulkCopies;
use super::counters::Stall;
use super::device_runtime::DeviceRuntimeCosts;
use super::execution::{Execution, Moment, Values};
use super::front_end::{ConstantLoad, FrontEnd, FrontEndSpecification, Need, Wanted, constant_address};
use super::functional::Functional;
use super::lane_memory::RecentRanges;
use super::memory_pipe::{Event, MemoryPipe, PipeSpecification, Ports};
use super::parameters::SmParameters;
use super::profile::Profile;
use super::remote_access::RemoteWait;
use super::timeline::SmTimeline;
use super::warps::Warps;
use super::warps::cta::Completion;
use super::warps::readiness::Ready;
use super::warps::slot::Status;
use super::warps::wheel::members;
use crate::catalogue::{BuildContext, InstructionProfiles, Peer, SmCapability};
use crate::engine::{Gauge, Outbox};
use crate::gpu::CachesBetweenKernels;
use crate::gpu::gauges::WARP_INSTRUCTIONS;
use crate::memory::{DeviceMemory, DeviceMemoryView, Writer};
use crate::slab::Slab;
use balar_isa::execution::Effect;
use balar_isa::program::Pipe;
use balar_protocol::cta::{CtaCompletion, CtaMessage};
use balar_protocol::cuda::{FaultCause, KernelFault, LaunchId};
use balar_protocol::{Clock, Payload, PortId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The topology's parameters of an SM that none of its parts has.
#[derive(Debug)]
pub(super) struct Specification {
    pub(super) front_end: FrontEndSpecification,
    pub(super) pipe: PipeSpecification,
    pub(super) barrier_latency: u64,
    pub(super) barrier_interval: u64,
    pub(super) constant_interval: u64,
    pub(super) cta_start_latency: u64,
    pub(super) device_runtime: DeviceRuntimeCosts,
    pub(super) operand_read_latency: u64,
    pub(super) store_read_latency: (u64, u64),
    pub(super) bulk_copy_latency: u64,
    pub(super) bulk_read_latency: u64,
    pub(super) check_hazards: bool,
    /// Are the caches of code and constants empty when a kernel begins?
    pub(super) flushes_caches: bool,
    pub(super) unified_memory: u64,
    pub(super) provides: SmCapability,
}

/// The place of an SM, and its wiring.
#[derive(Debug)]
pub(super) struct Wiring {
    /// The number of its GPU.
    pub(super) gpu: usize,
    pub(super) index: u32,
    pub(super) sm_count: u32,
    pub(super) memory: Arc<DeviceMemory>,
    pub(super) cta: PortId,
    pub(super) ports: Ports,
    /// The port to the network between SMs, where there is one.
    pub(super) cluster: Option<PortId>,
    /// The place for the counts of each instruction.
    pub(super) profiles: Option<Arc<InstructionProfiles>>,
    /// Where to tell of CTAs.
    pub(super) timeline: Option<SmTimeline>,
    /// Where to show the warp instructions so far.
    pub(super) shown_instructions: ShownInstructions,
}

/// The SM's gauge on the live board.
#[derive(Debug)]
pub(super) struct ShownInstructions {
    gauge: Gauge,
    /// Windows since it was set.
    windows: u32,
}

impl ShownInstructions {
    /// Windows that an SM runs between two times: to sum over its CTAs in each would cost more than most windows do.
    const WINDOWS: u32 = 256;

    fn of(context: &BuildContext) -> ShownInstructions {
        let gauge = context.surroundings.board.gauge(&format!("{}{WARP_INSTRUCTIONS}", context.path));
        ShownInstructions { gauge, windows: 0 }
    }

    /// Shows the instructions as they are now.
    fn show<P: Profile>(&mut self, warps: &Warps<P>) {
        self.windows = 0;
        self.gauge.set(warps.instructions());
    }

    /// A window has been run.
    #[inline]
    pub(super) fn after_window<P: Profile>(&mut self, warps: &Warps<P>) {
        self.windows += 1;
        if self.windows >= Self::WINDOWS {
            self.show(warps);
        }
    }
}

/// All that the SM's future depends on, with its open write log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct State<P: Profile> {
    pub(super) warps: Warps<P>,
    pub(super) pipe: MemoryPipe,
    pub(super) bulk: BulkCopies,
    pub(super) front_end: FrontEnd,
    /// The launch for which the L1 was set up last.
    pub(super) launch: LaunchId,
    /// The latest launches that it was set up for, by the host and by kernels.
    pub(super) latest_launches: [LaunchId; 2],
    /// The first cycle that has not been simulated.
    pub(super) cycle: u64,
    /// Messages that came after the last tick of a window: they belong to the next one, which is `late_cycle`.
    pub(super) late: Vec<Payload>,
    pub(super) late_cycle: u64,
    /// The first cycle in which the barrier unit can count an arrival.
    pub(super) barrier_unit_free: u64,
    /// The first cycle in which the constant cache can take a look-up of an indexed load.
    pub(super) constant_cache_free: u64,
    /// Frees of addresses that are no block of the device heap: key, lane, address. They are faults when they are answered.
    pub(super) wrong_frees: Vec<(u32, u8, u64)>,
    pub(super) recent: RecentRanges,
    /// Loads of constants that wait for lines.
    pub(super) constant_loads: Vec<ConstantLoad>,
    /// Accesses that are under way to the shared memory of other CTAs.
    pub(super) remote: Slab<RemoteWait>,
    /// CTAs that run for their values alone.
    pub(super) functional: Functional,
}

/// Lists that are empty between cycles.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) events: Vec<Event>,
    pub(super) wanted_lines: Wanted,
    pub(super) waiting: Vec<u16>,
}

/// A streaming multiprocessor, which keeps a profile of its instructions or none.
#[derive(Debug)]
pub struct Sm<P: Profile> {
    pub(super) specification: Specification,
    pub(super) wiring: Wiring,
    pub(super) state: State<P>,
    pub(super) writer: Writer,
    /// The writes of CTAs that run for their values alone.
    pub(super) functional_writer: Writer,
    pub(super) execution: Execution,
    pub(super) scratch: Scratch,
}

/// The state of the simulated cycle and of the window around it.
pub(super) struct Step<'a, 'b> {
    pub(super) view: &'a DeviceMemoryView<'b>,
    pub(super) out: &'a mut Outbox,
    pub(super) now: Moment,
}

impl<P: Profile> Sm<P> {
    /// An SM of a GPU.
    pub fn new(
        parameters: &SmParameters,
        context: &BuildContext,
        gpu: usize,
        (memory, writer): (Arc<DeviceMemory>, Writer),
    ) -> Self {
        let port = |name| context.ports.get(name).unwrap_or_default();
        let mut warps = Warps::new(parameters.warps, parameters.ctas);
        if context.surroundings.watches_launches {
            warps.keep_by_launch();
        }
        let (of_any, of_each) = parameters.store_read_latency;
        Self {
            specification: Specification {
                front_end: FrontEndSpecification::new(parameters),
                pipe: PipeSpecification::new(parameters),
                barrier_latency: u64::from(parameters.latencies.barrier.max(1)),
                barrier_interval: u64::from(parameters.initiation_intervals.barrier),
                constant_interval: u64::from(parameters.initiation_intervals.constant),
                cta_start_latency: u64::from(parameters.cta_start_latency),
                device_runtime: DeviceRuntimeCosts::new(parameters),
                operand_read_latency: u64::from(parameters.operand_read_latency),
                store_read_latency: (u64::from(of_any), u64::from(of_each)),
                bulk_copy_latency: u64::from(parameters.bulk_copy_latency),
                bulk_read_latency: u64::from(parameters.bulk_read_latency),
                check_hazards: parameters.check_hazards,
                flushes_caches: parameters.caches_between_kernels == CachesBetweenKernels::Flushed,
                unified_memory: parameters.unified_memory.0,
                provides: parameters.provides(),
            },
            wiring: Wiring {
                gpu,
                index: context.index,
                sm_count: context.row_length,
                memory: Arc::clone(&memory),
                cta: port("cta"),
                ports: Ports {
                    clock: Clock::new(parameters.clock),
                    memory: port("memory"),
                    translation: context.ports.get("translation"),
                    drains: context.ports.peer(port("memory")).is_some_and(Peer::holds_stores),
                },
                cluster: context.ports.get("cluster"),
                profiles: context.surroundings.instruction_profiles.clone(),
                timeline: SmTimeline::of(context, Clock::new(parameters.clock)),
                shown_instructions: ShownInstructions::of(context),
            },
            state: State {
                warps,
                pipe: MemoryPipe::new(parameters, context.ports.peer(port("memory")).map_or(0, |peer| peer.queues().0)),
                bulk: BulkCopies::default(),
                front_end: FrontEnd::new(parameters),
                launch: LaunchId(0),
                latest_launches: [LaunchId(0); 2],
                cycle: 0,
                late: Vec::new(),
                late_cycle: u64::MAX,
                barrier_unit_free: 0,
                constant_cache_free: 0,
                wrong_frees: Vec::new(),
                recent: RecentRanges::default(),
                constant_loads: Vec::new(),
                remote: Slab::default(),
                functional: Functional::default(),
            },
            functional_writer: memory.writer(context.unit),
            writer,
            execution: Execution::new(),
            scratch: Scratch::default(),
        }
    }

    /// The next cycle in which something happens by itself; `u64::MAX` where nothing will.
    #[inline]
    pub(super) fn next_event(&self) -> u64 {
        let State { warps, pipe, bulk, functional, late_cycle, .. } = &self.state;
        warps.next_ready().min(pipe.next_due()).min(bulk.due()).min(*late_cycle).min(functional.due())
    }

    /// A warp leaves its slot; the last one ends its CTA.
    pub(super) fn retire(&mut self, warp: usize, cycle: u64, out: &mut Outbox) {
        if self.state.warps.retire(warp, cycle) {
            self.end_cta(self.state.warps.cta_of(warp), None, cycle, out);
        }
    }

    /// A CTA ends, or is ended by a fault, and its slot is reported free.
    pub(super) fn end_cta(&mut self, cta: usize, fault: Option<KernelFault>, cycle: u64, out: &mut Outbox) {
        self.leave_cluster(cta, cycle, out);
        let ended = self.state.warps.end_cta(cta, fault.is_some(), cycle);
        let Some((launch, counters, stores_under_way)) = ended else { return };
        self.wiring.shown_instructions.show(&self.state.warps);
        if let Some(timeline) = &mut self.wiring.timeline {
            timeline.ends(cta as u16, cycle);
        }
        if fault.is_none() {
            self.state.warps.count_completed();
        }
        let completion = CtaCompletion { launch: launch.id, slot: cta as u16, counters, fault, stores_under_way };
        let message = Payload::Cta(CtaMessage::Completed(Box::new(completion)));
        let at = self.wiring.ports.clock.time_of(cycle);
        self.state.warps.cta(cta).end_is_heard = at + out.latency(self.wiring.cta);
        out.send(self.wiring.cta, at, message);
    }

    /// The warp's kernel cannot go on.
    pub(super) fn fail(&mut self, warp: usize, (pc, lane): (u32, u8), cause: FaultCause, cycle: u64, out: &mut Outbox) {
        let number = self.state.warps.cta_of(warp);
        let (slot, context, cta) = self.state.warps.all_of(warp);
        let Some(launch) = &cta.launch else { return };
        let program = context.program();
        let thread = slot.warp_in_cta * 32 + u32::from(lane);
        let [x, y, _] = launch.block;
        let thread = [thread % x, thread / x % y, thread / x / y];
        let fault = KernelFault::of(launch, cta.cta, thread, cause, program.describe(pc));
        self.end_cta(number, Some(fault), cycle, out);
    }

    /// Runs the meaning of the warp's next instruction. `cycle` is when it issues, which may be after this moment for an instruction that is
    /// folded into the next one.
    pub(super) fn step_warp(&mut self, warp: usize, cycle: u64, step: &mut Step) -> Effect {
        let State { warps, pipe, recent, .. } = &mut self.state;
        let (_, context, cta) = warps.all_of(warp);
        let time = step.now.time();
        let values = Values { view: step.view, log: &mut *self.writer, recent, token: pipe.next_key(), time };
        let active = context.state().active_mask();
        let effect = self.execution.step(context, cta, values, (cycle, time.0 / 1000));
        if P::IS_KEPT && !matches!(effect, Effect::Retry) {
            let executed = context.state().executed_mask();
            warps.profile.executed(warp, active, executed);
        }
        effect
    }

    /// The results of an instruction of the warp can be read from then on.
    #[inline]
    pub(super) fn set_results(&mut self, warp: usize, pc: u32, ready: Ready) {
        let (program, _, readiness) = self.state.warps.context(warp).parts();
        readiness.issued(program, program.timing(pc), ready);
        if self.specification.check_hazards && ready != Ready::PENDING {
            self.state.warps.context(warp).hazards.completed(pc, ready.cycle());
        }
    }

    /// An instruction of the warp leaves nothing in registers that the next one would wait for.
    pub(super) fn no_results(&mut self, warp: usize, pc: u32, cycle: u64) {
        self.set_results(warp, pc, Ready::at(cycle + 1, Stall::Wait));
    }

    /// A pending result of an instruction of the warp has come: it can be read from then on.
    pub(super) fn results_come(&mut self, warp: usize, pc: u32, ready: Ready) {
        let (program, _, readiness) = self.state.warps.context(warp).parts();
        readiness.completed(program, program.timing(pc), ready);
        if self.specification.check_hazards {
            self.state.warps.context(warp).hazards.completed(pc, ready.cycle());
        }
    }

    /// Finds out when the warp can issue next, `earliest` at the soonest, and puts it where it will be found then.
    /// Instructions that the GPU's own code folds into others are executed on the way.
    pub(super) fn schedule(&mut self, warp: usize, earliest: u64, step: &mut Step) {
        // Another warp of its CTA may have failed since.
        if self.state.warps.warp(warp).status == Status::Empty {
            return;
        }
        // The result that it waited for may have come before the last pass of its last instruction.
        let earliest = earliest.max(self.state.warps.warp(warp).charged_until);
        self.schedule_resident(warp, earliest, step);
    }

    /// As [`Self::schedule`], for a warp that is there and whose cycles before `earliest` are charged already, or will be to the wait.
    pub(super) fn schedule_resident(&mut self, warp: usize, mut earliest: u64, step: &mut Step) {
        loop {
            let (slot, context, profile) = self.state.warps.slot_and_context(warp);
            let fetched = slot.fetched;
            let (program, state, readiness) = context.parts();
            if state.is_blocked() {
                self.state.warps.wait(warp, Status::Barrier, Stall::Barrier, 0);
                return;
            }
            let pc = state.pc();
            profile.next_is(warp, pc);
            let timing = program.timing(pc);
            let pipe = timing.pipe;
            let ready = readiness.issue_cycle(program, timing);
            if ready != Ready::PENDING {
                state.prefetch(timing);
            }
            let is_there = pc.wrapping_sub(fetched) < self.state.front_end.line_length();
            let constant = timing.control.constant;
            if !is_there {
                match self.fetch(warp, pc, earliest, step) {
                    Some(from) => earliest = earliest.max(from),
                    None => return,
                }
            }
            if let Some(place) = constant.get() {
                match self.constant_operand(warp, place, earliest, step) {
                    Some(from) => earliest = earliest.max(from),
                    None => return,
                }
            }
            if ready == Ready::PENDING {
                self.state.warps.wait(warp, Status::Memory, Stall::LongScoreboard, earliest);
                return;
            }
            if pipe != Pipe::Free {
                self.state.warps.schedule(warp, earliest, ready, pipe);
                return;
            }
            let (_, context, cta) = self.state.warps.all_of(warp);
            let (program, state, readiness) = context.parts();
            let timing = program.timing(pc);
            if timing.is_plain {
                let active = state.active_mask();
                self.execution.run_plain(program, state, timing, &mut cta.counters);
                let executed = state.executed_mask();
                readiness.issued(program, timing, ready);
                self.state.warps.profile.executed(warp, active, executed);
                continue;
            }
            match self.step_warp(warp, earliest, step) {
                Effect::Fault { lane, cause } => {
                    self.fail(warp, (pc, lane), cause, earliest, step.out);
                    return;
                }
                Effect::Retry => {
                    self.state.warps.wait(warp, Status::Memory, Stall::LongScoreboard, earliest);
                    self.state.warps.wait_for_value(warp, self.execution.blocked_by, earliest);
                    return;
                }
                _ => self.set_results(warp, pc, ready),
            }
        }
    }

    /// The warp comes to another line of code: gives the cycle in which it is there. `None` where the warp waits for it, from `earliest` on.
    #[cold]
    fn fetch(&mut self, warp: usize, pc: u32, earliest: u64, step: &mut Step) -> Option<u64> {
        let State { warps, front_end, .. } = &mut self.state;
        let (slot, context, _, counters, _) = warps.parts_of(warp);
        let code = (slot.program_id, context.program().len());
        let waits_already = slot.awaits_line(Stall::NoInstruction);
        let wanted = &mut self.scratch.wanted_lines;
        let from = front_end.fetch(warp, code, pc, Need { cycle: step.now.cycle, waits_already, counters, wanted });
        if from.is_some() {
            slot.fetched = pc - pc % front_end.line_length();
        }
        self.supplied(warp, from, Stall::NoInstruction, earliest, step)
    }

    /// The warp's next instruction has an operand in a constant bank: gives the cycle in which it is there, as [`Self::fetch`] does.
    #[inline]
    fn constant_operand(&mut self, warp: usize, place: (u32, u32), earliest: u64, step: &mut Step) -> Option<u64> {
        let State { warps, front_end, .. } = &mut self.state;
        if front_end.has_no_constant_cache() {
            return Some(earliest);
        }
        let (slot, context, cta, counters, _) = warps.parts_of(warp);
        let launch = cta.launch.as_ref().map_or(LaunchId(0), |launch| launch.id);
        let address = constant_address(slot.program_id, launch, place, context.program().constant_bank_3());
        let waits_already = slot.awaits_line(Stall::ImcMiss);
        let wanted = &mut self.scratch.wanted_lines;
        let from = front_end.constant(warp, address, Need { cycle: step.now.cycle, waits_already, counters, wanted });
        if from.is_some_and(|from| from <= earliest) {
            return from;
        }
        self.supplied(warp, from, Stall::ImcMiss, earliest, step)
    }

    /// The code or the constants that a warp wants are there from the cycle `from` on, or the warp waits for them; missing lines are
    /// requested.
    #[cold]
    fn supplied(
        &mut self,
        warp: usize,
        from: Option<u64>,
        stall: Stall,
        earliest: u64,
        step: &mut Step,
    ) -> Option<u64> {
        if from.is_none_or(|from| from > earliest) {
            self.state.warps.wait(warp, Status::Fetch, stall, earliest);
        }
        for (number, address) in self.scratch.wanted_lines.drain(..) {
            self.state.pipe.request_code(
                (number, address),
                self.state.launch,
                step.now.cycle,
                &self.wiring.ports,
                step.out,
            );
        }
        from
    }

    /// The warps of a CTA that wait at a barrier go on from it at `resume`.
    pub(super) fn release_barrier(&mut self, cta: usize, completion: Completion, resume: u64, step: &mut Step) {
        for warp in members(self.state.warps.release_barrier(cta, completion, resume)) {
            self.schedule(warp, resume, step);
        }
    }

    /// The result that the warp waited for has come.
    pub(super) fn resume(&mut self, warp: usize, ready: u64, step: &mut Step) {
        self.state.warps.wake(warp, step.now.cycle);
        self.schedule(warp, ready, step);
    }
}
