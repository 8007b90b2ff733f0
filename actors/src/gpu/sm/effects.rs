//! Issue: the choice of the next warp, and the effects of the instruction that it executes.

use super::counters::Stall;
use super::execution::{Execution, count_access};
use super::front_end::Class;
use super::memory_pipe::{Access, Answer, Owner, Purpose};
use super::profile::Profile;
use super::progress::{Sm, Specification, State, Step};
use super::warps::WarpSet;
use super::warps::copies::{Arrival, CopyKind, End};
use super::warps::cta::Completion;
use super::warps::readiness::Ready;
use super::warps::slot::Status;
use crate::engine::Outbox;
use balar_host::memory::gpu_base;
use balar_isa::execution::{AccessKind, BarrierArrival, BarrierKind, BarrierOperation, Effect, MemoryAccess, Space};
use balar_isa::program::{LANES, LatencyClass, Pipe};
use balar_protocol::SimTime;

impl<P: Profile> Sm<P> {
    /// One cycle of one sub-core: at most one instruction goes to a pipe.
    #[inline]
    pub(super) fn issue(&mut self, sub_core: usize, ready: WarpSet, step: &mut Step) {
        let cycle = step.now.cycle;
        let State { warps, pipe, front_end, .. } = &mut self.state;
        let mut without_room = 0;
        if !pipe.has_room_for_loads(&self.specification.pipe) {
            without_room |= warps.wants()[Pipe::Load as usize];
        }
        if !pipe.has_room_for_stores(&self.specification.pipe) {
            without_room |= warps.wants()[Pipe::Store as usize];
        }
        let first = front_end.first(&self.specification.front_end, sub_core, ready, warps.older());
        let wanted = usize::from(warps.warp(first).pipe);
        if front_end.free_from(sub_core, wanted) <= cycle && without_room >> first & 1 == 0 {
            warps.take(first);
            return self.execute(first, sub_core, step);
        }
        let blocked = (front_end.blocked(sub_core, warps.wants(), cycle) | without_room) & ready;
        let choice =
            front_end.choose(&self.specification.front_end, sub_core, ready & !blocked, blocked, warps.older());
        if choice.refused != 0 {
            self.refuse(sub_core, choice.refused, cycle);
        }
        if let Some(warp) = choice.warp {
            self.state.warps.take(warp);
            self.execute(warp, sub_core, step);
        }
    }

    /// Ready warps whose turn had come find a pipe taken, or no room for their access.
    #[inline]
    fn refuse(&mut self, sub_core: usize, refused: WarpSet, cycle: u64) {
        let State { warps, front_end, .. } = &mut self.state;
        let mut rest = refused;
        let mut taken = front_end.taken(sub_core);
        while taken != 0 {
            let pipe = taken.trailing_zeros() as usize % Pipe::ALL.len();
            taken &= taken - 1;
            let set = rest & warps.wants()[pipe];
            if set != 0 {
                rest &= !set;
                warps.park(set, cycle, front_end.free_from(sub_core, pipe), Stall::of_pipe(pipe));
            }
        }
        if rest != 0 {
            warps.throttle(rest, cycle);
        }
    }

    /// Executes the warp's next instruction.
    fn execute(&mut self, warp: usize, sub_core: usize, step: &mut Step) {
        let cycle = step.now.cycle;
        let State { warps, front_end, .. } = &mut self.state;
        let (slot, context, cta, counters, profile) = warps.parts_of(warp);
        let (program, state, readiness) = context.parts();
        let pc = state.pc();
        let timing = program.timing(pc);
        profile.next_is(warp, pc);
        if timing.is_plain {
            let active = state.active_mask();
            self.execution.run_plain(program, state, timing, &mut cta.counters);
            let class = Class::of(timing);
            let issued = front_end.issue(&self.specification.front_end, sub_core, warp, class, cycle);
            slot.issue(counters, cycle, u64::from(class.passes));
            profile.executed(warp, active, state.executed_mask());
            profile.issued(warp, u64::from(class.passes));
            let read = cycle + self.specification.operand_read_latency;
            readiness.plain_issued(program, timing, issued.result, read);
            let next = issued.next.max(cycle + u64::from(timing.control.stall));
            if self.specification.check_hazards && !self.has_no_hazard(warp, pc, cycle, step.out) {
                return;
            }
            self.schedule_resident(warp, next, step);
        } else {
            match self.execute_with_effect(warp, sub_core, step) {
                Some(next) => self.schedule(warp, next, step),
                None => return,
            }
        }
        self.refuse_next(warp, sub_core, cycle + 1);
    }

    /// Executes the warp's next instruction, one that does more than to compute on each lane alone: gives the cycle in which the warp
    /// can go on at the soonest; `None` where it cannot.
    fn execute_with_effect(&mut self, warp: usize, sub_core: usize, step: &mut Step) -> Option<u64> {
        let cycle = step.now.cycle;
        let (program, state, _) = self.state.warps.context(warp).parts();
        let pc = state.pc();
        let timing = program.timing(pc);
        let (class, control) = (Class::of(timing), timing.control);
        if self.specification.check_hazards && !self.has_no_mask_hazard(warp, cycle, step.out) {
            return None;
        }
        let effect = self.step_warp(warp, cycle, step);
        if matches!(effect, Effect::Retry) {
            self.state.warps.wait_for_value(warp, self.execution.blocked_by, cycle);
            return None;
        }
        let mut issued = self.state.front_end.issue(&self.specification.front_end, sub_core, warp, class, cycle);
        issued.next = issued.next.max(cycle + u64::from(control.stall));
        self.state.warps.issue(warp, cycle, u64::from(class.passes));
        if self.specification.check_hazards && !self.has_no_hazard(warp, pc, cycle, step.out) {
            return None;
        }
        if control.read_barrier != 0 {
            let read = Ready::at(self.operands_read(warp, cycle), Stall::ShortScoreboard);
            let (program, _, readiness) = self.state.warps.context(warp).parts();
            readiness.operands_read(program.timing(pc), read);
        }
        match effect {
            Effect::Plain => {
                let stall = if class.latency == LatencyClass::Exchange {
                    let State { warps, pipe, front_end, .. } = &mut self.state;
                    let from = front_end.addresses_from(warp, cycle);
                    let taken = pipe.exchange(cycle, from, u64::from(class.passes));
                    front_end.leaves(&self.specification.front_end, warp, from, taken.first);
                    let (_, _, readiness) = warps.context(warp).parts();
                    issued.result = readiness.in_order(issued.result + (taken.first - cycle));
                    Stall::ShortScoreboard
                } else {
                    Stall::Wait
                };
                self.set_results(warp, pc, Ready::at(issued.result, stall));
                Some(issued.next)
            }
            Effect::Branch { divergent } => {
                let (slot, _, cta) = self.state.warps.all_of(warp);
                cta.counters.branches_divergent += u64::from(divergent);
                cta.counters.branches_uniform += u64::from(!divergent);
                slot.stall = Stall::BranchResolve;
                Some(issued.next.max(cycle + issued.latency))
            }
            Effect::Memory { .. } => {
                if self.specification.check_hazards && !self.has_no_copy_hazard(warp, pc, step) {
                    return None;
                }
                self.access(warp, pc, step);
                Some(issued.next)
            }
            effect => self.rare_effect(warp, (pc, class), effect, issued.next, step),
        }
    }

    /// The cycle from which on registers may be written again that the last step of a warp reads.
    pub(super) fn operands_read(&self, warp: usize, cycle: u64) -> u64 {
        let Specification { operand_read_latency, store_read_latency: (of_any, of_each), .. } = self.specification;
        if (of_any, of_each) == (0, 0) {
            return cycle + operand_read_latency;
        }
        let MemoryAccess { kind, bytes, .. } = self.execution.access;
        let data = if kind == AccessKind::Load { 0 } else { of_any + of_each * u64::from(bytes).div_ceil(4) };
        self.state.front_end.addresses_from(warp, cycle) + operand_read_latency + data
    }

    /// Where the warp that issues would come first in the next cycle and be refused, it is so at once, which saves that cycle the work.
    #[inline]
    fn refuse_next(&mut self, warp: usize, sub_core: usize, cycle: u64) {
        let State { warps, front_end, .. } = &mut self.state;
        let slot = warps.warp(warp);
        if slot.charged_until != cycle || slot.status != Status::Scheduled {
            return;
        }
        let pipe = usize::from(slot.pipe);
        if let Some(free) = front_end.refused_next(&self.specification.front_end, sub_core, pipe, cycle) {
            warps.park_next(warp, cycle, free, Stall::of_pipe(pipe));
        }
    }

    /// The effect of an instruction that is no arithmetic, branch or access: gives the cycle in which the warp can go on, `next` at the
    /// soonest; `None` where it cannot.
    fn rare_effect(
        &mut self,
        warp: usize,
        (pc, class): (u32, Class),
        effect: Effect,
        next: u64,
        step: &mut Step,
    ) -> Option<u64> {
        let cycle = step.now.cycle;
        match effect {
            Effect::Barrier(arrival) => {
                if let Some((completion, resume)) = self.arrive(warp, pc, &arrival, step) {
                    if self.specification.check_hazards && !self.has_all_warps(warp, pc, completion, step) {
                        return None;
                    }
                    self.release_barrier(self.state.warps.cta_of(warp), completion, resume, step);
                    if arrival.kind != BarrierKind::Arrive {
                        self.state.warps.warp_mut(warp).stall = Stall::Barrier;
                        return Some(next.max(resume));
                    }
                }
            }
            Effect::ClusterArrive { mask } => {
                self.no_results(warp, pc, cycle);
                self.arrive_at_cluster(warp, mask, step);
            }
            Effect::ClusterWait => {
                self.no_results(warp, pc, cycle);
                self.state.warps.warp_mut(warp).stall = Stall::Barrier;
            }
            Effect::Fence => {
                if self.state.warps.warp(warp).outstanding > 0 {
                    self.state.warps.wait(warp, Status::Fence, Stall::Membar, cycle + 1);
                    self.state.pipe.drain(cycle, &self.wiring.ports, step.out);
                    return None;
                }
            }
            Effect::Exit { mask } => {
                let cta = self.state.warps.cta_of(warp);
                let has_ended = self.state.warps.context(warp).state().is_finished();
                self.state.warps.cta(cta).exit(mask.count_ones(), has_ended);
                self.exit_of_cluster(warp, mask, step);
                let mut barrier = 0;
                while let Some(completion) = self.state.warps.cta(cta).next_completion(barrier) {
                    barrier = completion.barrier + 1;
                    if self.specification.check_hazards && !self.has_all_warps(warp, pc, completion, step) {
                        return None;
                    }
                    self.release_barrier(cta, completion, cycle + self.specification.barrier_latency, step);
                }
                if has_ended {
                    self.finish_warp(warp, cycle + 1, step.out);
                    return None;
                }
            }
            Effect::Sleep(nanoseconds) => {
                self.state.warps.warp_mut(warp).stall = Stall::Sleeping;
                return Some(self.awake_after(nanoseconds, cycle));
            }
            Effect::Suspended(nanoseconds) => {
                self.access(warp, pc, step);
                self.state.warps.warp_mut(warp).stall = Stall::Sleeping;
                return Some(self.awake_after(nanoseconds, cycle));
            }
            Effect::Copy => {
                if self.specification.check_hazards && !self.has_no_hazard_of_copies(warp, pc, step) {
                    return None;
                }
                self.copy(warp, pc, step);
            }
            Effect::CopyCommit => self.commit_copies(warp, pc, CopyKind::Words),
            Effect::CopyArrive(operation) => self.arrive_after_copies(warp, pc, operation, step),
            Effect::CopyWait { groups } => {
                if groups.is_none() {
                    self.state.warps.context(warp).unwaited.copies_waited_for();
                }
                return self.wait_for_copies(warp, (CopyKind::Words, groups), next, cycle);
            }
            Effect::Bulk(copy) => {
                if self.specification.check_hazards && !self.has_no_hazard_of_bulk_copy(warp, pc, &copy, step) {
                    return None;
                }
                self.begin_bulk_copy(warp, pc, copy, step);
            }
            Effect::BulkCommit => self.commit_copies(warp, pc, CopyKind::Bulk),
            Effect::BulkWait { groups } => {
                return self.wait_for_copies(warp, (CopyKind::Bulk, Some(groups)), next, cycle);
            }
            Effect::Product { passes, ends_group, reads } => {
                if self.specification.check_hazards && !self.has_no_hazard_of_product(warp, pc, &reads, step) {
                    return None;
                }
                self.product(warp, pc, (class, passes), cycle);
                if ends_group {
                    self.end_group_of_products(warp, cycle);
                }
            }
            Effect::ProductCommit => self.end_group_of_products(warp, cycle),
            Effect::ProductWait { groups, arrival } => {
                let (slot, context, cta) = self.state.warps.all_of(warp);
                slot.stall = Stall::ShortScoreboard;
                context.unwaited.products_waited_for(groups);
                if let Some(completion) = cta.arrive_until(&arrival, context.products.done(groups)) {
                    let resume = next.max(completion.until);
                    self.release_barrier(self.state.warps.cta_of(warp), completion, resume, step);
                    return Some(resume);
                }
                if context.state().is_blocked() {
                    self.state.warps.wait(warp, Status::Barrier, Stall::ShortScoreboard, next);
                    return None;
                }
            }
            Effect::Fault { lane, cause } => {
                self.fail(warp, (pc, lane), cause, cycle, step.out);
                return None;
            }
            Effect::System { call, mask, deferred } => {
                self.system_call(warp, (pc, class), (mask, deferred), step);
                return Some(next + self.device_runtime_call(warp, call, mask, step));
            }
            Effect::Retry | Effect::Plain | Effect::Branch { .. } | Effect::Memory { .. } => {}
        }
        Some(next)
    }

    /// The cycle in which a warp that sleeps from `cycle` on wakes.
    fn awake_after(&self, nanoseconds: u32, cycle: u64) -> u64 {
        let clock = self.wiring.ports.clock;
        let wake = clock.time_of(cycle).0 + u64::from(nanoseconds) * 1000;
        clock.cycle_at_or_after(SimTime(wake)).max(cycle + 1)
    }

    /// Times the access that the last step made.
    fn access(&mut self, warp: usize, pc: u32, step: &mut Step) {
        let MemoryAccess { space, kind, mask, .. } = self.execution.access;
        let cycle = step.now.cycle;
        let cta = self.state.warps.cta_of(warp);
        count_access(&mut self.state.warps.cta(cta).counters, space, kind);
        if matches!(space, Space::Constant | Space::Parameter) {
            self.access_constants(warp, pc, mask == 0, step);
            return;
        }
        if let Some(elsewhere) = self.execution.remote.take() {
            return self.access_elsewhere(warp, elsewhere, step);
        }
        if mask == 0 {
            let ready = self.enter_pipe_empty(warp, space, cycle);
            self.set_results_in_order(warp, pc, ready);
            return;
        }
        if space == Space::Local {
            let number = u64::from(self.wiring.index) * self.state.warps.len() as u64 + warp as u64;
            let lane_bytes = self.state.warps.context(warp).program().resources().local_bytes;
            self.execution.interleave_local(number, lane_bytes);
        }
        let purpose = match kind {
            AccessKind::Load | AccessKind::Atomic => Purpose::Registers { pc },
            AccessKind::Store | AccessKind::Reduction => Purpose::Nothing,
        };
        let ready = match self.enter_pipe(warp, purpose, step) {
            Answer::At(ready) if space == Space::Shared => {
                let (_, _, readiness) = self.state.warps.context(warp).parts();
                Ready::at(readiness.in_order(ready), Stall::ShortScoreboard)
            }
            Answer::At(ready) => Ready::at(ready, Stall::LongScoreboard),
            Answer::Pending(_) => Ready::PENDING,
            Answer::Written(lines) => {
                self.has_stored(warp, lines);
                return;
            }
            Answer::Updated(_, lines) => {
                self.has_stored(warp, lines);
                if kind != AccessKind::Atomic {
                    return;
                }
                self.state.warps.warp_mut(warp).expects_answers = true;
                Ready::PENDING
            }
        };
        self.set_results_in_order(warp, pc, ready);
    }

    /// As [`Self::set_results`], where reads of textures and surfaces by machine code wait for those before them.
    pub(super) fn set_results_in_order(&mut self, warp: usize, pc: u32, ready: Ready) {
        let context = self.state.warps.context(warp);
        if !context.program().is_machine_image_read(pc) {
            self.set_results(warp, pc, ready);
            return;
        }
        let known = (ready != Ready::PENDING).then(|| ready.cycle());
        let in_order = context.image_reads.issued(pc, known);
        self.set_results(warp, pc, in_order.map_or(Ready::PENDING, |cycle| Ready::at(cycle, Stall::LongScoreboard)));
    }

    /// Gives the last step's access, which no lane makes, to the memory pipe.
    fn enter_pipe_empty(&mut self, warp: usize, space: Space, cycle: u64) -> Ready {
        let State { warps, pipe, front_end, .. } = &mut self.state;
        let from = front_end.addresses_from(warp, cycle);
        let (done, taken) = pipe.accept_empty(&self.specification.pipe, &self.execution.access, (cycle, from));
        front_end.leaves(&self.specification.front_end, warp, from, taken.first);
        let (_, _, readiness) = warps.context(warp).parts();
        let done = if space == Space::Shared { readiness.in_order(done) } else { done };
        Ready::at(done, Stall::ShortScoreboard)
    }

    /// The cycle from which on everyone sees the values of an access that is made now: its answer does not come before. 0 for accesses whose
    /// answers do not wait for values.
    pub(super) fn values_known(&self, kind: AccessKind, step: &Step) -> u64 {
        match kind {
            AccessKind::Load | AccessKind::Store => 0,
            AccessKind::Atomic | AccessKind::Reduction => {
                self.wiring.ports.clock.cycle_at_or_after(self.writer.visible_at(step.now.time()))
            }
        }
    }

    /// Gives the last step's access to the memory pipe.
    fn enter_pipe(&mut self, warp: usize, purpose: Purpose, step: &mut Step) -> Answer {
        let known = self.values_known(self.execution.access.kind, step);
        let State { warps, pipe, front_end, .. } = &mut self.state;
        let (slot, _, cta, _, profile) = warps.parts_of(warp);
        let before = cta.counters;
        let Execution { access, further, .. } = &self.execution;
        let access = Access {
            access,
            further,
            owner: Owner { warp: warp as u16, generation: slot.generation, purpose },
            launch: cta.launch.as_ref().map_or(0, |launch| launch.id.0),
            known,
            counters: &mut cta.counters,
        };
        let cycle = step.now.cycle;
        let from = front_end.addresses_from(warp, cycle);
        let (answer, taken) =
            pipe.accept(&self.specification.pipe, access, (cycle, from), &self.wiring.ports, step.out);
        front_end.leaves(&self.specification.front_end, warp, from, taken.first);
        profile.accessed(warp, &before, &cta.counters);
        answer
    }

    /// Times a call of the device runtime by these lanes. The GPU's runtime takes its place in a buffer, or a block from the heap, with
    /// atomics on words that all SMs share; a call is counted as one atomic of each lane on such a word, at the start of the GPU's
    /// memory. The instructions around it, and the stores of a record, are not modelled.
    fn system_call(&mut self, warp: usize, (pc, class): (u32, Class), (mask, deferred): (u32, bool), step: &mut Step) {
        let kind = if deferred { AccessKind::Atomic } else { AccessKind::Reduction };
        let addresses = [gpu_base(self.wiring.gpu); LANES];
        self.execution.access = MemoryAccess { kind, mask, addresses, ..MemoryAccess::default() };
        self.access(warp, pc, step);
        if !deferred {
            let latency = self.specification.front_end.latency(class.latency);
            self.set_results(warp, pc, Ready::at(step.now.cycle + latency, Stall::Wait));
        }
    }

    /// Times the copy to shared memory whose read the last step made. The write to shared memory goes by the way of a line that
    /// comes from below, which the pipe is not charged for.
    fn copy(&mut self, warp: usize, pc: u32, step: &mut Step) {
        let (_, context, cta) = self.state.warps.all_of(warp);
        count_access(&mut cta.counters, Space::Global, AccessKind::Load);
        let batch = context.copies.number();
        self.no_results(warp, pc, step.now.cycle);
        if self.execution.access.mask == 0 {
            return;
        }
        let answer = self.enter_pipe(warp, Purpose::Copies { batch }, step);
        let copies = &mut self.state.warps.context(warp).copies;
        match answer {
            Answer::At(ready) => copies.ready_at(ready),
            Answer::Pending(_) | Answer::Written(_) | Answer::Updated(..) => copies.begin(),
        }
    }

    /// Times a product by a group of warps, of which each warp's part takes the tensor cores of its sub-core. The warp goes on, and its
    /// instructions that name the registers do not wait for them: the program waits for the product. How many cycles it takes, and that its
    /// latency comes after them, are estimates; the way of the matrices out of shared memory is not charged for.
    fn product(&mut self, warp: usize, pc: u32, (class, passes): (Class, u8), cycle: u64) {
        let State { warps, front_end, .. } = &mut self.state;
        let free = front_end.hold_tensor(&self.specification.front_end, warp, passes, cycle);
        let products = &mut warps.context(warp).products;
        products.begin(free + self.specification.front_end.latency(class.latency));
        self.no_results(warp, pc, cycle);
    }

    /// The products since the last group are one.
    fn end_group_of_products(&mut self, warp: usize, cycle: u64) {
        let context = self.state.warps.context(warp);
        context.products.end_group(cycle);
        context.unwaited.end_group();
    }

    /// The last step's lanes will arrive at `mbarrier` objects when the copies so far have come.
    fn arrive_after_copies(&mut self, warp: usize, pc: u32, operation: BarrierOperation, step: &mut Step) {
        let MemoryAccess { mask, addresses, .. } = self.execution.access;
        if mask != 0 {
            self.access(warp, pc, step);
            let arrival = Arrival { mask, addresses: addresses.map(|address| address as u32), operation };
            self.state.warps.arrive_after_copies(warp, arrival);
        }
    }

    /// The copies so far are a group; in machine code it holds the instruction's scoreboards.
    fn commit_copies(&mut self, warp: usize, pc: u32, kind: CopyKind) {
        let scoreboards = self.state.warps.context(warp).program().timing(pc).control.write_barrier;
        self.state.warps.end_batch(warp, kind, End::Commit { scoreboards });
    }

    /// As [`Self::rare_effect`], for a wait until at most so many groups of copies are under way; with `None`, no copy at all.
    fn wait_for_copies(
        &mut self,
        warp: usize,
        (kind, groups): (CopyKind, Option<u32>),
        next: u64,
        cycle: u64,
    ) -> Option<u64> {
        let (slot, context, _) = self.state.warps.all_of(warp);
        let copies = context.copies_of(kind);
        if !copies.at_most(groups) {
            copies.wanted = groups;
            self.state.warps.wait(warp, Status::of_copies(kind), Stall::LongScoreboard, cycle + 1);
            return None;
        }
        if copies.ready > next {
            slot.stall = Stall::LongScoreboard;
        }
        Some(next.max(copies.ready))
    }

    /// A store, reduction or atomic of the warp has gone to the memory pipe.
    #[inline]
    fn has_stored(&mut self, warp: usize, lines: u32) {
        let leaves = self.state.pipe.last_request();
        let slot = self.state.warps.warp_mut(warp);
        slot.outstanding += lines;
        slot.stores_leave = leaves;
    }

    /// The warp arrives at a barrier, behind those whose arrivals the SM's barrier unit still counts. Where it was the last, gives the cycle
    /// in which those that wait there go on.
    fn arrive(&mut self, warp: usize, pc: u32, arrival: &BarrierArrival, step: &mut Step) -> Option<(Completion, u64)> {
        if arrival.kind != BarrierKind::Arrive {
            self.no_results(warp, pc, step.now.cycle);
        }
        let counted = step.now.cycle.max(self.state.barrier_unit_free);
        self.state.barrier_unit_free = counted + self.specification.barrier_interval;
        let completion = self.state.warps.arrive(warp, arrival)?;
        Some((completion, counted + self.specification.barrier_latency))
    }

    /// All lanes of the warp have ended: it leaves when its last store has left the SM, or when its copies and the answers for its
    /// registers have come. Stores that are not acknowledged then delay the end of the kernel.
    fn finish_warp(&mut self, warp: usize, cycle: u64, out: &mut Outbox) {
        if self.state.warps.warp(warp).outstanding > 0 {
            self.state.pipe.drain(cycle, &self.wiring.ports, out);
        }
        if self.state.warps.may_leave(warp) {
            let leaves = self.state.warps.drain(warp, cycle);
            self.retire(warp, leaves, out);
        } else {
            self.state.warps.wait(warp, Status::Draining, Stall::Drain, cycle);
        }
    }
}
