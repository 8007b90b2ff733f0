//! Issuing: which instruction of which warp goes to its pipe, and what follows from it.

use super::Sm;
use super::copies::End;
use super::counters::Stall;
use super::lane_memory::SmMemory;
use super::warp_slot::{Ready, Status};
use crate::engine::Outbox;
use crate::memory::DeviceMemoryView;
use balar_isa::execution::{AccessKind, BarrierKind, Effect, Space, StepContext};
use balar_isa::program::{CountClass, LatencyClass, Pipe, Timing};
use balar_protocol::cuda::{FaultCause, KernelFault};
use balar_protocol::statistics::KernelCounters;

/// What a step needs of the window it happens in.
pub struct Step<'a, 'b> {
    /// Device memory at the start of the window.
    pub view: &'a DeviceMemoryView<'b>,
    /// Where messages and writes go.
    pub out: &'a mut Outbox,
    /// First cycle after the window.
    pub end_cycle: u64,
}

impl Sm {
    /// One cycle of one sub-core: at most one instruction goes to a pipe.
    pub(super) fn issue(&mut self, sub_core: usize, cycle: u64, step: &mut Step) {
        while let Some(local) = self.sub_cores[sub_core].choose(self.policy, self.active_warps) {
            let warp = usize::from(local) * self.sub_cores.len() + sub_core;
            let slot = &self.warps[warp];
            let (Some(program), Some(state)) = (&slot.program, &slot.state) else {
                self.sub_cores[sub_core].take(local);
                continue;
            };
            let timing = program.timing(state.pc());
            let pipe = timing.pipe as usize;
            let free = self.sub_cores[sub_core].pipe_free[pipe];
            if free > cycle {
                let stall = if timing.pipe == Pipe::Memory { Stall::LgThrottle } else { Stall::MathPipeThrottle };
                self.postpone(warp, cycle, free, stall);
                continue;
            }
            if timing.pipe == Pipe::Memory {
                let backlog = self.memory_pipe_free.saturating_sub(cycle);
                if backlog > self.memory_queue_cycles {
                    self.postpone(warp, cycle, cycle + backlog - self.memory_queue_cycles, Stall::LgThrottle);
                    continue;
                }
                if !self.room_below_l1() {
                    self.sub_cores[sub_core].take(local);
                    self.warps[warp].wait(Status::Throttled, Stall::LgThrottle, cycle, &mut self.counters);
                    self.throttled.push(warp as u16);
                    continue;
                }
            }
            self.sub_cores[sub_core].take(local);
            self.execute(warp, sub_core, cycle, step);
            return;
        }
    }

    /// The warp was ready, but has to wait for a structure until `until`.
    fn postpone(&mut self, warp: usize, cycle: u64, until: u64, stall: Stall) {
        let slot = &mut self.warps[warp];
        slot.charge_until(cycle, &mut self.counters);
        slot.stall = stall;
        slot.ready_cycle = until;
        let (sub_core, local) = self.place(warp);
        self.sub_cores[sub_core].take(local);
        self.sub_cores[sub_core].insert(local, until);
    }

    /// Executes the warp's next instruction in `cycle`.
    fn execute(&mut self, warp: usize, sub_core: usize, cycle: u64, step: &mut Step) {
        let (effect, timing, pc) = self.step_warp(warp, cycle, step);
        if effect == Effect::Retry {
            // A value of an own atomic is known after this epoch.
            let known = self.clock.cycle_at_or_after(self.writer.visible_at(self.now));
            self.postpone(warp, cycle, known, Stall::LongScoreboard);
            return;
        }
        let passes = u64::from(timing.passes.max(1));
        let latency = u64::from(self.latencies[timing.latency as usize]);
        let interval = u64::from(self.intervals[timing.pipe as usize]);
        self.sub_cores[sub_core].pipe_free[timing.pipe as usize] = cycle + interval * passes;
        let local = (warp / self.sub_cores.len()) as u8;
        self.sub_cores[sub_core].issued(local);
        self.counters.inst_issued += passes;
        let slot = &mut self.warps[warp];
        slot.charge_until(cycle, &mut self.counters);
        self.counters.stall_none_selected += 1;
        slot.charged_until = cycle + 1;
        slot.stall = Stall::Wait;
        // The passes of a sequence depend on each other, but for those of tensor cores, which follow in a pipeline; the next
        // instruction follows the last of them.
        let (last_pass, result) = if timing.pipe == Pipe::Tensor {
            ((passes - 1) * interval, latency.max(interval * passes))
        } else {
            ((passes - 1) * latency, passes * latency)
        };
        let mut next = cycle + 1 + last_pass;

        match effect {
            Effect::Plain => {
                let stall = if timing.latency == LatencyClass::Exchange {
                    self.memory_pipe_free = self.memory_pipe_free.max(cycle) + passes;
                    Stall::ShortScoreboard
                } else {
                    Stall::Wait
                };
                slot.set_ready(&timing, Ready::at(cycle + result, stall));
            }
            Effect::Branch { divergent } => {
                let counters = &mut self.ctas[usize::from(slot.cta)].counters;
                counters.branches_divergent += u64::from(divergent);
                counters.branches_uniform += u64::from(!divergent);
                slot.stall = Stall::BranchResolve;
                next = cycle + latency.max(1);
            }
            Effect::Memory { deferred } => self.access(warp, pc, &timing, deferred, cycle, step),
            Effect::Barrier(arrival) => {
                let cta = usize::from(slot.cta);
                self.ctas[cta].counters.inst_barriers += 1;
                if arrival.kind != BarrierKind::Arrive {
                    slot.set_ready(&timing, Ready::at(cycle + 1, Stall::Wait));
                }
                if let Some(completion) = self.ctas[cta].arrive(&arrival) {
                    self.release_barrier(cta, completion, cycle, step);
                }
            }
            Effect::Fence => {
                if slot.outstanding > 0 {
                    slot.wait(Status::Fence, Stall::Membar, cycle + 1, &mut self.counters);
                    return;
                }
            }
            Effect::Exit { mask } => {
                let cta = usize::from(slot.cta);
                let finished = self.warps[warp].state.as_ref().is_none_or(|state| state.is_finished());
                let completions: [Option<super::cta::Completion>; super::cta::BARRIERS] = {
                    let mut done = [None; super::cta::BARRIERS];
                    for (at, completion) in self.ctas[cta].exit(mask.count_ones()).enumerate() {
                        done[at] = Some(completion);
                    }
                    done
                };
                for completion in completions.into_iter().flatten() {
                    self.release_barrier(cta, completion, cycle, step);
                }
                if finished {
                    self.finish_warp(warp, cycle + 1, step);
                    return;
                }
            }
            Effect::Sleep(nanoseconds) => {
                slot.stall = Stall::Sleeping;
                next = self.awake_after(nanoseconds, cycle);
            }
            Effect::Suspended(nanoseconds) => {
                self.access(warp, pc, &timing, false, cycle, step);
                self.warps[warp].stall = Stall::Sleeping;
                next = self.awake_after(nanoseconds, cycle);
            }
            Effect::Copy => self.copy(warp, pc, &timing, cycle, step),
            Effect::CopyCommit => self.end_batch(warp, End::Commit),
            Effect::CopyArrive => self.arrive_after_copies(warp, pc, &timing, cycle, step),
            Effect::CopyWait { groups } => {
                if !slot.copies.at_most(groups) {
                    slot.copies.wanted = groups;
                    slot.wait(Status::Copies, Stall::LongScoreboard, cycle + 1, &mut self.counters);
                    return;
                }
                if slot.copies.ready > next {
                    slot.stall = Stall::LongScoreboard;
                    next = slot.copies.ready;
                }
            }
            Effect::Fault { lane, cause } => {
                self.fail(warp, pc, lane, cause, cycle, step);
                return;
            }
            Effect::System { mask, deferred, .. } => self.system_call(warp, pc, &timing, (mask, deferred), cycle, step),
            Effect::Retry => {}
        }
        self.schedule(warp, next, step);
    }

    /// The cycle in which a warp that sleeps from `cycle` on wakes.
    fn awake_after(&self, nanoseconds: u32, cycle: u64) -> u64 {
        let wake = self.clock.time_of(cycle).0 + u64::from(nanoseconds) * 1000;
        self.clock.cycle_at_or_after(balar_protocol::SimTime(wake)).max(cycle + 1)
    }

    /// Runs the meaning of the warp's next instruction and counts it.
    fn step_warp(&mut self, warp: usize, cycle: u64, step: &mut Step) -> (Effect, Timing, u32) {
        let slot = &mut self.warps[warp];
        let cta = &mut self.ctas[usize::from(slot.cta)];
        let (Some(program), Some(state)) = (&slot.program, &mut slot.state) else {
            unreachable!("a scheduled warp has a program");
        };
        let pc = state.pc();
        let timing = *program.timing(pc);
        let time = self.now;
        self.further.clear();
        let mut memory = SmMemory {
            view: step.view,
            gpu: self.gpu,
            log: &mut self.writer,
            time,
            shared: &mut cta.shared,
            local: &mut slot.local,
            local_bytes: program.resources().local_bytes as usize,
            recent_range: &mut self.recent_range,
            further: &mut self.further,
            token: self.deferred.len() as u32,
            blocked_by: None,
        };
        let active = state.active_mask();
        let mut context = StepContext { memory: &mut memory, cycle, nanoseconds: self.now_nanoseconds };
        let effect = (self.step)(program, state, &mut context, &mut self.access);
        if effect != Effect::Retry {
            count(&mut cta.counters, &timing, active, state.executed_mask());
        }
        (effect, timing, pc)
    }

    /// Finds out when the warp can issue next, `earliest` at the soonest, and puts it where it will be found then.
    /// Instructions that the GPU's own code folds into others are executed on the way.
    pub(super) fn schedule(&mut self, warp: usize, earliest: u64, step: &mut Step) {
        // What it waited for may have come before the last pass of its last instruction.
        let earliest = earliest.max(self.warps[warp].charged_until);
        loop {
            let slot = &mut self.warps[warp];
            let Some(state) = &slot.state else { return };
            if state.is_blocked() {
                slot.wait(Status::Barrier, Stall::Barrier, slot.charged_until, &mut self.counters);
                return;
            }
            let pc = state.pc();
            let line = self.instruction_cache.line_of(pc);
            if slot.fetched_line != line && !self.fetch(warp, line, earliest, step) {
                return;
            }
            let slot = &mut self.warps[warp];
            let Some(program) = &slot.program else { return };
            let timing = *program.timing(pc);
            let dependencies = &timing.dependencies;
            let mut ready = Ready::default();
            for &register in &dependencies.reads[..usize::from(dependencies.read_count)] {
                ready = ready.max(slot.scoreboard[usize::from(register)]);
            }
            for &register in &dependencies.writes[..usize::from(dependencies.write_count)] {
                ready = ready.max(slot.scoreboard[usize::from(register)]);
            }
            if !dependencies.is_complete() {
                for &register in program.further_reads(dependencies).iter().chain(program.further_writes(dependencies))
                {
                    ready = ready.max(slot.scoreboard[usize::from(register)]);
                }
            }
            if ready == Ready::PENDING {
                slot.ready_cycle = earliest;
                slot.wait(Status::Memory, Stall::LongScoreboard, earliest, &mut self.counters);
                return;
            }
            if timing.pipe == Pipe::Free {
                let (effect, timing, pc) = self.step_warp(warp, earliest, step);
                if let Effect::Fault { lane, cause } = effect {
                    self.fail(warp, pc, lane, cause, earliest, step);
                    return;
                }
                self.warps[warp].set_ready(&timing, ready);
                continue;
            }
            if ready.cycle() > earliest {
                slot.stall = ready.stall();
                slot.ready_cycle = ready.cycle();
            } else {
                slot.ready_cycle = earliest;
            }
            slot.status = Status::Scheduled;
            let cycle = slot.ready_cycle;
            let (sub_core, local) = self.place(warp);
            self.sub_cores[sub_core].insert(local, cycle);
            return;
        }
    }

    /// The warp comes to another line of code: true where it is there. Else the warp waits for it from `cycle` on.
    fn fetch(&mut self, warp: usize, line: u32, cycle: u64, step: &mut Step) -> bool {
        let slot = &mut self.warps[warp];
        let instructions = slot.program.as_ref().map_or(0, |program| program.len());
        let mut wanted = std::mem::take(&mut self.wanted_lines);
        let present = self.instruction_cache.lookup(slot.program_id, line, instructions, |number, address| {
            wanted.push((number, address));
        });
        if present {
            slot.fetched_line = line;
        } else {
            self.counters.instruction_cache_misses += u64::from(slot.status != Status::Fetch);
            slot.ready_cycle = cycle;
            slot.wait(Status::Fetch, Stall::NoInstruction, cycle, &mut self.counters);
            self.fetching.push(warp as u16);
        }
        for (number, address) in wanted.drain(..) {
            self.counters.instruction_requests += 1;
            self.request_code(number, address, cycle, step.out);
        }
        self.wanted_lines = wanted;
        present
    }

    /// A line of code has arrived: warps that wait for code look again.
    pub(super) fn code_arrived(&mut self, number: u32, cycle: u64, step: &mut Step) {
        self.instruction_cache.arrived(number);
        let mut fetching = std::mem::take(&mut self.fetching);
        for &warp in &fetching {
            let warp = usize::from(warp);
            if self.warps[warp].status == Status::Fetch {
                self.warps[warp].charge_until(cycle, &mut self.counters);
                self.schedule(warp, cycle, step);
            }
        }
        // Warps whose line is still missing have been added to the new list.
        fetching.clear();
        fetching.append(&mut self.fetching);
        self.fetching = fetching;
    }

    /// The warps of a CTA go on from a barrier.
    fn release_barrier(&mut self, cta: usize, completion: super::cta::Completion, cycle: u64, step: &mut Step) {
        let resume = cycle + u64::from(self.barrier_latency.max(1));
        for index in 0..self.ctas[cta].warps.len() {
            let warp = usize::from(self.ctas[cta].warps[index]);
            let slot = &mut self.warps[warp];
            let Some(state) = &mut slot.state else { continue };
            // The slot of a warp that has left may hold a warp of another CTA by now.
            if slot.status == Status::Empty || usize::from(slot.cta) != cta || state.is_finished() {
                continue;
            }
            let was_blocked = state.is_blocked();
            state.release_barrier(completion.barrier, completion.reduction);
            if was_blocked && !state.is_blocked() && slot.status == Status::Barrier {
                slot.charge_until(resume, &mut self.counters);
                self.schedule(warp, resume, step);
            }
        }
    }

    /// All lanes of the warp have ended: it leaves at once, or when its stores are acknowledged and its copies have come.
    fn finish_warp(&mut self, warp: usize, cycle: u64, step: &mut Step) {
        let slot = &mut self.warps[warp];
        if slot.outstanding > 0 || !slot.copies.is_idle() {
            slot.wait(Status::Draining, Stall::Drain, cycle, &mut self.counters);
        } else {
            self.retire(warp, cycle, step.out);
        }
    }

    /// The warp's kernel cannot go on.
    pub(super) fn fail(&mut self, warp: usize, pc: u32, lane: u8, cause: FaultCause, cycle: u64, step: &mut Step) {
        let slot = &self.warps[warp];
        let cta = &self.ctas[usize::from(slot.cta)];
        let (Some(launch), Some(program)) = (&cta.launch, &slot.program) else { return };
        let thread = slot.warp_in_cta * 32 + u32::from(lane);
        let [x, y, _] = launch.block;
        let position = program.position(pc);
        let fault = KernelFault {
            cause,
            kernel: launch.name.clone(),
            launch: launch.id,
            cta: cta.cta,
            thread: [thread % x, thread / x % y, thread / x / y],
            instruction: format!("{}:{}: {}", program.file_name(pc), position.line, position.text),
        };
        let cta = usize::from(slot.cta);
        self.end_cta(cta, Some(fault), cycle, step.out);
    }
}

impl super::warp_slot::WarpSlot {
    /// The instruction's results can be read from then on.
    #[inline]
    pub(super) fn set_ready(&mut self, timing: &Timing, ready: Ready) {
        let dependencies = &timing.dependencies;
        for &register in &dependencies.writes[..usize::from(dependencies.write_count)] {
            self.scoreboard[usize::from(register)] = ready;
        }
        if !dependencies.is_complete()
            && let Some(program) = &self.program
        {
            for &register in program.further_writes(dependencies) {
                self.scoreboard[usize::from(register)] = ready;
            }
        }
    }
}

/// Counts one warp instruction.
#[inline]
fn count(counters: &mut KernelCounters, timing: &Timing, active: u32, executed: u32) {
    let threads = u64::from(executed.count_ones());
    counters.inst_executed += 1;
    counters.thread_inst_executed += u64::from(active.count_ones());
    counters.thread_inst_executed_pred_on += threads;
    match timing.count {
        CountClass::Integer => counters.inst_integer += threads,
        CountClass::SingleAdd => counters.flop_sp_add += threads,
        CountClass::SingleMultiply => counters.flop_sp_mul += threads,
        CountClass::SingleFma => counters.flop_sp_fma += threads,
        CountClass::DoubleAdd => counters.flop_dp_add += threads,
        CountClass::DoubleMultiply => counters.flop_dp_mul += threads,
        CountClass::DoubleFma => counters.flop_dp_fma += threads,
        CountClass::Half => counters.flop_hp += threads,
        CountClass::Conversion => counters.inst_bit_convert += threads,
        CountClass::Control => counters.inst_control += 1,
        CountClass::Other | CountClass::Memory | CountClass::Barrier => {}
    }
}

/// Counts one memory instruction.
pub(super) fn count_access(counters: &mut KernelCounters, space: Space, kind: AccessKind) {
    let counter = match (kind, space) {
        (AccessKind::Atomic, _) => &mut counters.inst_atomics,
        (AccessKind::Reduction, _) => &mut counters.inst_reductions,
        (AccessKind::Load, Space::Global) => &mut counters.inst_global_loads,
        (AccessKind::Store, Space::Global) => &mut counters.inst_global_stores,
        (AccessKind::Load, Space::Shared) => &mut counters.inst_shared_loads,
        (AccessKind::Store, Space::Shared) => &mut counters.inst_shared_stores,
        (AccessKind::Load, Space::Local) => &mut counters.inst_local_loads,
        (AccessKind::Store, Space::Local) => &mut counters.inst_local_stores,
        (AccessKind::Load | AccessKind::Store, Space::Constant | Space::Parameter) => return,
    };
    *counter += 1;
}
