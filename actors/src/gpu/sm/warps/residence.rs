//! CTAs come and go, and with them the warps: the slots that they get, and the charges of warps that leave.

use super::copies::BulkOfWarp;
use super::cta::Completion;
use super::slot::{Context, Status, Warp};
use super::wheel::{members, only};
use super::{Place, SubCores, WarpSet, Warps};
use crate::gpu::sm::counters::Stall;
use crate::gpu::sm::lane_memory;
use crate::gpu::sm::profile::Profile;
use balar_isa::execution::BarrierArrival;
use balar_isa::machine::LaunchConstants;
use balar_isa::program::Program;
use balar_isa::warp::{WarpShape, WarpState};
use balar_protocol::cta::CtaCluster;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::launches::Unreported;
use balar_protocol::statistics::CtaCounters;
use std::sync::Arc;

impl<P: Profile> Warps<P> {
    /// A CTA comes: gives its warps, which are charged from `cycle` on and not scheduled yet. Each takes the first free slot of its sub-core.
    ///
    /// # Panics
    ///
    /// Where the scheduler has placed it though there are not as many free slots.
    pub fn place(
        &mut self,
        launch: &Arc<KernelLaunch>,
        program: &Arc<Program>,
        (place, sub_cores): (Place, SubCores),
        (cta, cluster): ([u32; 3], Option<&CtaCluster>),
        constants: LaunchConstants,
    ) -> WarpSet {
        let Place { sm, sm_count, slot } = place;
        let shared_bytes = program.resources().addressed_shared_bytes(launch.shared_bytes);
        let own = &mut self.ctas[usize::from(slot)];
        own.start(Arc::clone(launch), cta, shared_bytes, cluster);
        let constants = program.constants_of_rank(&constants, own.cluster.rank());
        if own.cluster.rank() != 0 && program.has_constants_of_ranks() {
            own.constants_of = None;
        }
        own.constants = constants.clone();
        let party = self.parties.enter(launch.id);
        let warps = launch.warps_per_cta();
        let mut placed = 0;
        let mut shape = WarpShape {
            block: launch.block,
            grid: launch.grid,
            cta,
            cluster: launch.cluster.into(),
            warp_in_cta: 0,
            sm,
            sm_count,
            warp_slot: 0,
            warp_slots: self.warps.len() as u32,
            grid_id: u64::from(launch.id.0),
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            shared_bytes,
            grid_workspace: launch.grid_workspace,
            parameters: Arc::clone(&launch.parameters),
            constants,
        };
        assert_eq!(sub_cores.of_warps.len(), warps as usize, "the scheduler names a sub-core for each warp");
        for (warp_in_cta, &sub_core) in (0..warps).zip(sub_cores.of_warps) {
            let mut slots = (usize::from(sub_core)..self.warps.len()).step_by(sub_cores.count);
            let free = slots.find(|&slot| self.warps[slot].status == Status::Empty);
            let Some(free) = free else {
                panic!("the scheduler placed a CTA of {warps} warps where no slots of sub-core {sub_core} are free")
            };
            (shape.warp_in_cta, shape.warp_slot) = (warp_in_cta, free as u32);
            let generation = self.warps[free].generation.wrapping_add(1);
            self.warps[free] = Warp {
                generation,
                program_id: launch.code.id(),
                cta: slot,
                party,
                warp_in_cta,
                status: Status::Scheduled,
                pipe: self.warps[free].pipe,
                ..Warp::default()
            };
            self.profile.begin(free, launch.code.id());
            self.fill(free, program, &shape);
            self.set_youngest(free);
            placed |= only(free);
        }
        self.ctas[usize::from(slot)].warps = placed;
        placed
    }

    /// The constants of a launch, where a CTA of it has been here since another launch took its slot.
    pub fn constants_of(&self, launch: LaunchId) -> Option<&LaunchConstants> {
        let known = self.ctas.iter().find(|cta| cta.constants_of == Some(launch));
        known.map(|cta| &cta.constants)
    }

    /// The warps of a CTA begin in `cycle`.
    pub fn begin(&mut self, warps: WarpSet, cycle: u64) {
        if self.resident_ctas == 0 {
            self.resident_since = cycle;
        }
        self.resident_ctas += 1;
        if warps != 0 {
            self.parties.begin(self.warps[warps.trailing_zeros() as usize].party, warps, cycle);
        }
        for warp in members(warps) {
            let slot = &mut self.warps[warp];
            (slot.charged_until, slot.stalled_from, slot.start_cycle) = (cycle, cycle, cycle);
        }
    }

    fn fill(&mut self, warp: usize, program: &Arc<Program>, shape: &WarpShape) {
        let Context { state, program: code, readiness, hazards, unwaited, image_reads, copies, bulk, products, local } =
            &mut self.contexts[warp];
        match state {
            Some(state) => state.reset(program, shape),
            None => *state = Some(WarpState::new(program, shape.clone())),
        }
        readiness.start(program);
        hazards.clear();
        unwaited.clear();
        image_reads.clear();
        products.clear();
        lane_memory::begin_local(local, program.resources().local_bytes as usize);
        if code.as_ref().is_none_or(|code| !Arc::ptr_eq(code, program)) {
            *code = Some(Arc::clone(program));
        }
        *bulk = BulkOfWarp::default();
        let arrivals = &mut self.arrivals;
        copies.clear(|arrival| {
            arrivals.remove(arrival);
        });
    }

    fn set_youngest(&mut self, warp: usize) {
        for older in &mut self.older {
            *older &= !only(warp);
        }
        self.older[warp] = !only(warp);
    }

    /// A CTA that cannot run takes its slot, for [`Self::end_cta`] to say so.
    pub fn place_without_code(
        &mut self,
        launch: &Arc<KernelLaunch>,
        slot: u16,
        (cta, cluster): ([u32; 3], Option<&CtaCluster>),
    ) {
        self.parties.enter(launch.id);
        self.ctas[usize::from(slot)].start(Arc::clone(launch), cta, launch.shared_bytes, cluster);
    }

    /// Threads of a warp arrive at a barrier of their CTA.
    pub fn arrive(&mut self, warp: usize, arrival: &BarrierArrival) -> Option<Completion> {
        let cta = self.cta_of(warp);
        self.ctas[cta].counters.inst_barriers += 1;
        self.ctas[cta].arrive(arrival)
    }

    /// The warps of a CTA go on from a barrier at `resume`: gives those that had waited there, which are charged until then.
    pub fn release_barrier(&mut self, cta: usize, completion: Completion, resume: u64) -> WarpSet {
        let mut released = 0;
        for warp in members(self.ctas[cta].warps) {
            let slot = &self.warps[warp];
            // The slot of a warp that has left may hold a warp of another CTA by now.
            if slot.status == Status::Empty || usize::from(slot.cta) != cta {
                continue;
            }
            let Some(state) = &mut self.contexts[warp].state else { continue };
            if state.is_finished() {
                continue;
            }
            let was_blocked = state.is_blocked();
            state.release_barrier(completion.barrier, completion.reduction);
            if was_blocked && !state.is_blocked() && slot.status == Status::Barrier {
                self.wake(warp, resume);
                released |= only(warp);
            }
        }
        released
    }

    /// A warp leaves its slot, in a cycle from now on. True where it was the last of its CTA.
    pub fn retire(&mut self, warp: usize, cycle: u64) -> bool {
        let slot = &mut self.warps[warp];
        let cta = usize::from(slot.cta);
        if slot.outstanding > 0
            && let Some(launch) = &self.ctas[cta].launch
        {
            let (launch, key) = (launch.id, &mut self.ctas[cta].left);
            self.left.leave((warp, slot.generation), slot.outstanding, launch, key);
        }
        self.release(warp, cycle);
        self.ctas[cta].live_warps -= 1;
        self.ctas[cta].live_warps == 0
    }

    fn release(&mut self, warp: usize, cycle: u64) {
        let now = cycle.min(self.wheel.now());
        // A warp that retires has issued its last instruction: it is not looked for.
        let due = if self.contexts[warp].state().is_finished() { None } else { self.wheel.remove(warp) };
        if self.throttled & only(warp) != 0 {
            self.charge_throttled(now);
            self.throttled &= !only(warp);
            self.parties.unthrottle(only(warp), now);
        }
        self.value_waiters &= !only(warp);
        let slot = &mut self.warps[warp];
        self.parties.remove(slot.party, only(warp));
        let counters = self.parties.of(slot.party);
        match due {
            Some(due) if due == slot.charged_until => {
                let from = now.max(slot.stalled_from);
                slot.stall.refund(counters, due.saturating_sub(from));
                self.profile.refunded(warp, slot.stall, due.saturating_sub(from));
                slot.charged_until = from;
            }
            Some(due) => {
                let parked = Stall::of_pipe(usize::from(slot.pipe));
                parked.refund(counters, due - now);
                self.profile.refunded(warp, parked, due - now);
            }
            None if slot.status != Status::Scheduled => {
                slot.stall.charge(counters, now.saturating_sub(slot.charged_until));
                self.profile.stalled(warp, slot.stall, now.saturating_sub(slot.charged_until));
            }
            None => {}
        }
        counters.warp_cycles_active += now.max(slot.charged_until) - slot.start_cycle;
        slot.status = Status::Empty;
        slot.generation = slot.generation.wrapping_add(1);
    }

    /// A CTA ends, or is ended: its warps leave. Gives the launch, the work of the CTA, and whether stores of it are under way whose end
    /// will be told; `None` where its slot is free.
    pub fn end_cta(&mut self, cta: usize, fails: bool, cycle: u64) -> Option<(Arc<KernelLaunch>, CtaCounters, bool)> {
        for warp in members(std::mem::take(&mut self.ctas[cta].warps)) {
            let slot = &self.warps[warp];
            if slot.status != Status::Empty && usize::from(slot.cta) == cta {
                self.release(warp, cycle);
            }
        }
        let launch = self.ctas[cta].launch.take()?;
        let counters = self.ctas[cta].counters;
        self.completed.add(&counters);
        self.count_by_launch(launch.id, &counters);
        self.parties.leave(launch.id, cycle);
        self.resident_ctas -= 1;
        if self.resident_ctas == 0 {
            self.counters.cycles_active += cycle.saturating_sub(self.resident_since);
        }
        let stores_under_way = match self.ctas[cta].left.take() {
            Some(left) if fails => {
                self.left.forget(left);
                false
            }
            left => left.is_some_and(|left| self.left.end(left)),
        };
        Some((launch, counters, stores_under_way))
    }

    /// The slots that run CTAs of a launch.
    pub fn ctas_of(&self, launch: LaunchId) -> impl Iterator<Item = usize> {
        let runs = move |cta: &usize| self.ctas[*cta].launch.as_ref().is_some_and(|running| running.id == launch);
        (0..self.ctas.len()).filter(runs)
    }

    /// The launch has failed elsewhere: its CTAs are dropped, and the scheduler is not told what they did.
    pub fn abort(&mut self, launch: LaunchId, cycle: u64) {
        for cta in self.ctas_of(launch).collect::<Vec<_>>() {
            if let Some((_, counters, _)) = self.end_cta(cta, true, cycle) {
                Unreported::among(&mut self.broken_off, launch).add_unfinished(&counters);
            }
        }
    }
}
