//! Arrivals at an SM from outside: CTAs, answers of the memory system, translations.

use super::counters::Stall;
use super::device_runtime;
use super::execution::launch_constants;
use super::lane_memory::RecentRanges;
use super::memory_pipe::{Event, Owner, Purpose};
use super::profile::{self, Profile};
use super::progress::{Sm, State, Step};
use super::warps::copies::CopyKind;
use super::warps::readiness::Ready;
use super::warps::slot::Status;
use super::warps::wheel::members;
use super::warps::{Acknowledged, Place, SubCores};
use crate::catalogue::InstructionProfiles;
use crate::engine::Inbox;
use crate::memory::LoggedKind;
use balar_isa::program::Program;
use balar_protocol::Payload;
use balar_protocol::cta::{CtaLaunch, CtaMessage};
use balar_protocol::cuda::{FaultCause, KernelFault, ProgramId};
use balar_protocol::memory::MemoryMessage;
use std::sync::Arc;

impl<P: Profile> Sm<P> {
    /// The scheduler has placed a CTA here.
    fn launch(&mut self, command: &CtaLaunch, step: &mut Step) {
        let cycle = step.now.cycle;
        let &CtaLaunch { ref launch, cta, slot, ref sub_cores, carve_out, ref cluster } = command;
        let cluster = cluster.as_ref();
        if let Some(timeline) = &mut self.wiring.timeline {
            timeline.begins(command, cycle);
        }
        let refusal = cluster.and_then(|_| self.refusal_of_clusters());
        let program = launch
            .code
            .program::<Program>()
            .ok_or_else(|| FaultCause::Unsupported(format!("kernel {} is not loaded", launch.name)));
        let program = match program.and_then(|program| refusal.map_or(Ok(program), Err)) {
            Ok(program) => program,
            Err(cause) => {
                let fault = KernelFault::of(launch, cta, [0; 3], cause, "its beginning".to_owned());
                self.state.warps.place_without_code(launch, slot, (cta, cluster));
                self.state.warps.begin(0, cycle);
                self.end_cta(usize::from(slot), Some(fault), cycle, step.out);
                return;
            }
        };
        if let Some(origin) = launch.origin.as_ref().filter(|_| cta == [0; 3]) {
            self.writer.launch_begun(step.now.time(), launch.context, origin.buffer);
        }
        let latest = &mut self.state.latest_launches[usize::from(launch.id.is_of_device())];
        if launch.id > *latest {
            *latest = launch.id;
            self.state.launch = launch.id;
            // Memory that an earlier kernel could access may have been freed since.
            self.state.recent = RecentRanges::default();
            self.state.pipe.empty_l1();
            if self.specification.flushes_caches {
                self.state.front_end.flush_caches();
            }
        }
        if self.state.warps.resident_ctas() == 0 {
            // The L1 has what shared memory leaves. Lines that are on their way for a CTA that has ended come to the L1 as it is then.
            self.state.pipe.resize_l1(self.specification.unified_memory.saturating_sub(u64::from(carve_out)));
        }
        if let Some(policy) = launch.l2_policy {
            let State { pipe, warps, .. } = &mut self.state;
            pipe.follow_policy(launch.id, policy, |other| warps.ctas_of(other).next().is_some());
        }
        if !self.state.warps.profile.knows(launch.code.id()) {
            self.profile_code((launch.code.id(), &program));
        }
        let place = Place { sm: self.wiring.index, sm_count: self.wiring.sm_count, slot };
        let count = self.specification.provides.resources.sub_cores as usize;
        let sub_cores = SubCores { of_warps: sub_cores, count };
        let constants = match self.state.warps.constants_of(launch.id) {
            Some(known) => known.clone(),
            None => launch_constants(launch, &program, self.wiring.sm_count, step.view),
        };
        let warps = self.state.warps.place(launch, &program, (place, sub_cores), (cta, cluster), constants);
        self.state.warps.begin(warps, cycle);
        for warp in members(warps) {
            self.schedule(warp, cycle + self.specification.cta_start_latency, step);
        }
    }

    /// Code comes that has no counts yet. Counts of other code that no warp runs any more go to the other SMs' counts.
    #[cold]
    fn profile_code(&mut self, (id, program): (ProgramId, &Arc<Program>)) {
        let Some(profiles) = &self.wiring.profiles else { return };
        profiles.enter(self.wiring.gpu, (id, program), profile::columns());
        if self.state.warps.resident_ctas() == 0 {
            self.give_profile(profiles, &self.state.warps.profile);
            self.state.warps.profile.clear();
        }
        self.state.warps.profile.enter(id, program.len());
    }

    /// Adds the counts of each instruction to the counts of other SMs.
    pub(super) fn give_profile(&self, profiles: &InstructionProfiles, own: &P) {
        for code in own.codes() {
            profiles.add(self.wiring.gpu, code.program, code.counts());
        }
    }

    /// Prefetches into the host's cache the data that the answers of the window will need.
    pub(super) fn prefetch(&self, inbox: &Inbox) {
        let responses = inbox.all().filter_map(|message| match &message.payload {
            Payload::Memory(MemoryMessage::Response(response)) => Some(response),
            _ => None,
        });
        let State { warps, pipe, .. } = &self.state;
        pipe.prefetch(responses, |warp| warps.prefetch(warp));
    }

    pub(super) fn receive(&mut self, payload: &Payload, step: &mut Step) {
        let cycle = step.now.cycle;
        match payload {
            Payload::Memory(MemoryMessage::Response(response)) => {
                let mut events = std::mem::take(&mut self.scratch.events);
                self.state.pipe.receive(&self.specification.pipe, *response, cycle, &mut events);
                self.carry(events, step);
            }
            Payload::Memory(MemoryMessage::Credit(credits)) => {
                let mut events = std::mem::take(&mut self.scratch.events);
                let way_out = (&self.wiring.ports, &mut *step.out);
                self.state.pipe.places_freed(&self.specification.pipe, credits, cycle, way_out, &mut events);
                self.carry(events, step);
            }
            Payload::Cta(CtaMessage::Launch(launch)) => self.launch(launch, step),
            Payload::Cta(CtaMessage::Abort(launch)) => {
                if let Some(timeline) = &mut self.wiring.timeline {
                    self.state.warps.ctas_of(*launch).for_each(|cta| timeline.ends(cta as u16, cycle));
                }
                for cta in self.state.warps.ctas_of(*launch).collect::<Vec<_>>() {
                    self.leave_cluster(cta, cycle, step.out);
                }
                self.state.warps.abort(*launch, cycle);
                self.state.functional.abort(*launch);
            }
            Payload::Cta(CtaMessage::Functional(ctas)) => self.functional_received(ctas, cycle),
            Payload::Cluster(message) => self.cluster_received(message, step),
            Payload::Translation(message) => {
                self.state.pipe.translated(message, cycle, &self.wiring.ports, step.out);
            }
            _ => {}
        }
    }

    /// Answers that were held back are due.
    #[cold]
    pub(super) fn release_due(&mut self, step: &mut Step) {
        let mut events = std::mem::take(&mut self.scratch.events);
        self.state.pipe.release_due(&self.specification.pipe, step.now.cycle, &mut events);
        self.carry(events, step);
    }

    /// Carries the events of the memory pipe to the warps.
    pub(super) fn carry(&mut self, mut events: Vec<Event>, step: &mut Step) {
        for event in events.drain(..) {
            match event {
                Event::Found(warp, generation, found) => {
                    let warp = usize::from(warp);
                    if self.state.warps.is_current(warp, generation) {
                        let (_, _, cta) = self.state.warps.all_of(warp);
                        cta.counters.l2_sector_hits_load += u64::from(found.hits);
                        cta.counters.dram_sectors_promoted += u64::from(found.promoted);
                    }
                }
                Event::Completed(key, owner) => self.completed(key, owner, step),
                Event::Acknowledged(warp, generation) => self.acknowledged(usize::from(warp), generation, step),
                Event::Code(number) => self.line_arrived(number, step),
                Event::Room => {
                    self.state.bulk.has_room();
                    self.state.warps.release_throttled(step.now.cycle);
                }
            }
        }
        self.scratch.events = events;
    }

    /// An access has been answered: the work that waited for it goes on.
    fn completed(&mut self, key: u32, owner: Owner, step: &mut Step) {
        let cycle = step.now.cycle;
        let warp = usize::from(owner.warp);
        if let Purpose::Bulk { number } = owner.purpose {
            self.bulk_copy_done(number, step);
        }
        let wrong_free = self.state.wrong_frees.iter().position(|&(free, _, _)| free == key);
        let wrong_free = wrong_free.map(|at| self.state.wrong_frees.swap_remove(at));
        if self.state.warps.is_current(warp, owner.generation) {
            let ready = cycle + self.specification.pipe.fill_latency();
            match owner.purpose {
                Purpose::Registers { pc } => {
                    if let Some((_, lane, address)) = wrong_free {
                        self.fail(warp, (pc, lane), FaultCause::InvalidFree { address }, cycle, step.out);
                    } else {
                        self.results_arrived(warp, pc, ready);
                        if self.state.warps.warp(warp).status == Status::Memory {
                            self.resume(warp, cycle, step);
                        }
                    }
                }
                Purpose::Copies { batch } => self.copy_arrived(warp, batch, ready, step),
                Purpose::Bulk { .. } | Purpose::Nothing => {}
            }
        }
        for warp in members(self.state.warps.value_known(key, cycle)) {
            self.schedule(warp, cycle, step);
        }
    }

    /// The answer for an instruction has come: its results can be read from `ready` on, and with them those of later reads of textures
    /// that waited for it.
    pub(super) fn results_arrived(&mut self, warp: usize, pc: u32, ready: u64) {
        if !self.state.warps.context(warp).image_reads.answered(pc, ready) {
            self.results_come(warp, pc, Ready::at(ready, Stall::LongScoreboard));
            return;
        }
        while let Some((pc, ready)) = self.state.warps.context(warp).image_reads.next_complete() {
            self.results_come(warp, pc, Ready::at(ready, Stall::LongScoreboard));
        }
    }

    fn copy_arrived(&mut self, warp: usize, batch: u32, ready: u64, step: &mut Step) {
        self.state.warps.copy_arrived(warp, batch, ready);
        self.after_copy(warp, CopyKind::Words, step);
    }

    /// A copy of the warp has come, which the warp may have waited for.
    pub(super) fn after_copy(&mut self, warp: usize, kind: CopyKind, step: &mut Step) {
        let cycle = step.now.cycle;
        let status = self.state.warps.warp(warp).status;
        let copies = self.state.warps.context(warp).copies_of(kind);
        match status {
            status if status == Status::of_copies(kind) && copies.at_most(copies.wanted) => {
                let ready = copies.ready.max(cycle);
                self.resume(warp, ready, step);
            }
            // Machine code waits for the scoreboard of a group.
            Status::Memory => self.resume(warp, cycle, step),
            Status::Draining if self.state.warps.may_leave(warp) => self.retire(warp, cycle, step.out),
            _ => {}
        }
    }

    pub(super) fn acknowledged(&mut self, warp: usize, generation: u32, step: &mut Step) {
        let cycle = step.now.cycle;
        match self.state.warps.acknowledged(warp, generation) {
            Acknowledged::LastOfWarp => match self.state.warps.warp(warp).status {
                Status::Fence => self.resume(warp, cycle, step),
                Status::Draining if self.state.warps.may_leave(warp) => self.retire(warp, cycle, step.out),
                _ => {}
            },
            Acknowledged::LastOfCta(launch) => {
                let at = self.wiring.ports.clock.time_of(cycle);
                step.out.send(self.wiring.cta, at, Payload::Cta(CtaMessage::Stored(launch)));
            }
            Acknowledged::OneOfMore => {}
        }
    }

    /// A line of code or constants has arrived: warps that wait for one look again.
    fn line_arrived(&mut self, number: u32, step: &mut Step) {
        let mut waiting = std::mem::take(&mut self.scratch.waiting);
        self.state.front_end.line_arrived(number, step.now.cycle, &mut waiting);
        for warp in waiting.drain(..).map(usize::from) {
            if self.state.warps.warp(warp).status == Status::Fetch {
                self.resume(warp, step.now.cycle, step);
            }
        }
        self.scratch.waiting = waiting;
        if !self.state.constant_loads.is_empty() {
            self.continue_constant_loads(step);
        }
    }

    /// Old values of the atomics of the last epoch go to their registers. Nobody reads these before the answers arrive, which the
    /// memory pipe takes after the epoch alone.
    pub(super) fn take_atomic_results(&mut self) {
        let State { warps, pipe, wrong_frees, .. } = &mut self.state;
        self.writer.open(|log| {
            for result in log.atomic_results() {
                let Some(Owner { warp, generation, purpose: Purpose::Registers { pc } }) = pipe.owner(result.token)
                else {
                    continue;
                };
                let warp = usize::from(warp);
                if result.mask == 0 || !warps.is_current(warp, generation) {
                    continue;
                }
                if result.kind == LoggedKind::Release {
                    wrong_frees.extend(result.first_zero().map(|(lane, address)| (result.token, lane, address)));
                } else {
                    let (program, state, _) = warps.context(warp).parts();
                    state.write_deferred_result(program, pc, &result.values(), result.mask);
                }
                if result.kind == LoggedKind::LaunchBuffer {
                    let (slot, _, cta) = warps.all_of(warp);
                    let first_thread = slot.warp_in_cta * 32;
                    device_runtime::note_refused(&mut cta.device_runtime, first_thread, result.without_buffer());
                }
            }
        });
    }
}
