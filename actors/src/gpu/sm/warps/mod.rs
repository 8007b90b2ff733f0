//! The warps of an SM: their slots and CTAs, which of them is ready when, and the charge of each of their cycles.
//!
//! **Invariant:** nothing here knows the memory system or the schedulers. Every cycle of a resident warp is charged once: to the
//! instruction that it issues, to "not selected" while it is ready, or to one stall. A wait with a known end is charged when it begins.

mod account;
pub mod cluster;
pub mod copies;
pub mod cta;
pub mod device_runtime;
pub mod hazards;
mod image_reads;
mod left;
mod parties;
pub mod products;
pub mod readiness;
mod residence;
pub mod slot;
pub mod unwaited;
pub mod wheel;

use super::counters::{SmCounters, Stall};
use super::profile::{NoProfile, Profile};
use crate::engine::state::{CodeSource, StateError, complete_launch};
use crate::slab::Slab;
use balar_isa::program::Pipe;
use balar_protocol::cuda::LaunchId;
use balar_protocol::launches::{LaunchCounts, Unreported};
use balar_protocol::prefetch::prefetch;
use balar_protocol::statistics::CtaCounters;
use copies::{Arrival, CopyKind, End};
use cta::CtaSlot;
use left::LeftStores;
use parties::Parties;
use readiness::Ready;
use serde::{Deserialize, Serialize};
use slot::{Context, Status, Warp};
pub use wheel::WarpSet;
use wheel::{Wheel, members, only};

/// Where the warps of a CTA are, for their special registers.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The number of the SM.
    pub sm: u32,
    /// SMs of the GPU.
    pub sm_count: u32,
    /// The CTA's slot.
    pub slot: u16,
}

/// The sub-core of each warp of a CTA.
#[derive(Clone, Copy, Debug)]
pub struct SubCores<'a> {
    /// By the warp's number in the CTA.
    pub of_warps: &'a [u8],
    /// Sub-cores of the SM.
    pub count: usize,
}

/// The warps of an SM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Warps<P: Profile = NoProfile> {
    wheel: Wheel,
    /// The warps whose next instruction goes to a pipe, among the scheduled ones, by pipe.
    wants: [WarpSet; Pipe::ALL.len()],
    /// Ready warps that wait for room below the L1.
    throttled: WarpSet,
    /// Warps that wait for the value of an atomic.
    value_waiters: WarpSet,
    /// The warps that came to the SM before a warp, by warp.
    older: Vec<WarpSet>,
    warps: Vec<Warp>,
    contexts: Vec<Context>,
    ctas: Vec<CtaSlot>,
    /// Arrivals at `mbarrier` objects that wait for copies.
    arrivals: Slab<Arrival>,
    /// The stores that warps which have left have under way.
    left: LeftStores,
    resident_ctas: u32,
    resident_since: u64,
    /// Where the cycles of the warps went.
    parties: Parties,
    /// The counters of the SM as a whole.
    counters: SmCounters,
    /// The same by instruction, where that is asked for.
    pub profile: P,
    /// The work of CTAs that are here no longer.
    completed: CtaCounters,
    /// What CTAs did that were broken off with their launches.
    broken_off: Vec<Unreported>,
    /// The same by launch, since it was last asked for, where the run is watched by launch.
    #[serde(skip)]
    by_launch: Option<Vec<LaunchCounts>>,
}

impl<P: Profile> Warps<P> {
    /// So many warp slots and CTA slots.
    pub fn new(warps: u32, ctas: u32) -> Self {
        Warps {
            older: vec![0; warps as usize],
            warps: (0..warps).map(|_| Warp::default()).collect(),
            contexts: (0..warps).map(|_| Context::default()).collect(),
            ctas: (0..ctas).map(|_| CtaSlot::default()).collect(),
            ..Warps::default()
        }
    }

    /// Warp slots.
    pub fn len(&self) -> usize {
        self.warps.len()
    }

    /// The scheduler's knowledge of a warp.
    #[inline]
    pub fn warp(&self, warp: usize) -> &Warp {
        &self.warps[warp]
    }

    /// The same, to change it.
    #[inline]
    pub fn warp_mut(&mut self, warp: usize) -> &mut Warp {
        &mut self.warps[warp]
    }

    /// The state of a warp.
    #[inline]
    pub fn context(&mut self, warp: usize) -> &mut Context {
        &mut self.contexts[warp]
    }

    /// A CTA slot.
    #[inline]
    pub fn cta(&mut self, cta: usize) -> &mut CtaSlot {
        &mut self.ctas[cta]
    }

    /// The CTA slot of a number that came from outside, where there is one.
    pub fn cta_at(&mut self, slot: u16) -> Option<&mut CtaSlot> {
        self.ctas.get_mut(usize::from(slot))
    }

    /// The slot of a warp's CTA.
    #[inline]
    pub fn cta_of(&self, warp: usize) -> usize {
        usize::from(self.warps[warp].cta)
    }

    /// A warp's slot, its state, and its CTA.
    #[inline]
    pub fn all_of(&mut self, warp: usize) -> (&mut Warp, &mut Context, &mut CtaSlot) {
        let slot = &mut self.warps[warp];
        let cta = &mut self.ctas[usize::from(slot.cta)];
        (slot, &mut self.contexts[warp], cta)
    }

    /// The states of a CTA's warps.
    pub fn contexts_of(&self, cta: usize) -> impl Iterator<Item = &Context> {
        members(self.ctas[cta].warps).map(|warp| &self.contexts[warp])
    }

    /// A warp's slot, its state, and the readiness of its instructions.
    #[inline]
    pub fn slot_and_context(&mut self, warp: usize) -> (&mut Warp, &mut Context, &mut P) {
        (&mut self.warps[warp], &mut self.contexts[warp], &mut self.profile)
    }

    /// A warp's slot, its state, its CTA, the charges of all warps, and the charges by instruction.
    #[inline]
    pub fn parts_of(&mut self, warp: usize) -> (&mut Warp, &mut Context, &mut CtaSlot, &mut SmCounters, &mut P) {
        let slot = &mut self.warps[warp];
        let cta = &mut self.ctas[usize::from(slot.cta)];
        let counters = self.parties.of(slot.party);
        (slot, &mut self.contexts[warp], cta, counters, &mut self.profile)
    }

    /// Prefetches into the host's cache the parts of a warp that an answer for it will look at.
    #[inline]
    pub fn prefetch(&self, warp: usize) {
        if let (Some(slot), Some(context)) = (self.warps.get(warp), self.contexts.get(warp)) {
            prefetch(slot);
            prefetch(context);
        }
    }

    /// CTAs that are here.
    pub fn resident_ctas(&self) -> u32 {
        self.resident_ctas
    }

    /// Is the warp the one that had this generation?
    #[inline]
    pub fn is_current(&self, warp: usize, generation: u32) -> bool {
        self.warps[warp].generation & GENERATION_BITS == generation & GENERATION_BITS
    }

    // Time.

    /// Goes on to `cycle`: warps that are due become ready.
    #[inline]
    pub fn advance_to(&mut self, cycle: u64) {
        self.wheel.advance_to(cycle);
    }

    /// The next cycle after the current one in which a warp is ready; `u64::MAX` where none will be by itself.
    #[inline]
    pub fn next_ready(&self) -> u64 {
        self.wheel.next_ready()
    }

    /// Warps that could issue in this cycle, as far as their operands go.
    #[inline]
    pub fn ready(&self) -> WarpSet {
        self.wheel.ready()
    }

    /// The scheduled warps that want each pipe.
    #[inline]
    pub fn wants(&self) -> &[WarpSet; Pipe::ALL.len()] {
        &self.wants
    }

    /// The warps that came before each warp.
    #[inline]
    pub fn older(&self) -> &[WarpSet] {
        &self.older
    }

    /// The cycle ends: warps that are ready still were not selected.
    #[inline]
    pub fn end_cycle(&mut self) {
        self.parties.not_selected(self.wheel.ready());
        self.profile.not_selected(self.wheel.ready());
    }

    /// A ready warp issues in `cycle`, which is charged to the instruction.
    #[inline]
    pub fn issue(&mut self, warp: usize, cycle: u64, passes: u64) {
        let slot = &mut self.warps[warp];
        slot.issue(self.parties.of(slot.party), cycle, passes);
        self.profile.issued(warp, passes);
    }

    /// A ready warp's turn has come: it is not ready any more.
    #[inline]
    pub fn take(&mut self, warp: usize) {
        self.wheel.take(only(warp));
    }

    /// The warp can issue to `pipe` from `earliest` on, or when it is ready, if that is later.
    #[inline]
    pub fn schedule(&mut self, warp: usize, earliest: u64, ready: Ready, pipe: Pipe) {
        let slot = &mut self.warps[warp];
        let mut cycle = earliest;
        if ready.cycle() > earliest {
            cycle = ready.cycle();
            slot.stall = ready.stall();
        }
        slot.stall.charge(self.parties.of(slot.party), cycle - slot.charged_until);
        self.profile.stalled(warp, slot.stall, cycle - slot.charged_until);
        slot.stalled_from = slot.charged_until;
        slot.charged_until = cycle;
        slot.status = Status::Scheduled;
        if slot.pipe != pipe as u8 {
            self.wants[usize::from(slot.pipe)] &= !only(warp);
            slot.pipe = pipe as u8;
            self.wants[usize::from(slot.pipe)] |= only(warp);
        }
        self.wheel.insert(only(warp), cycle);
    }

    /// As [`Self::park`], for a warp that will be ready in the next cycle, `cycle`, and would be parked then.
    #[inline]
    pub fn park_next(&mut self, warp: usize, cycle: u64, until: u64, stall: Stall) {
        self.wheel.postpone(warp, cycle, until);
        stall.charge(self.parties.of(self.warps[warp].party), until - cycle);
        self.profile.stalled(warp, stall, until - cycle);
    }

    /// Ready warps that find a structure taken are ready again from `until` on.
    #[inline]
    pub fn park(&mut self, warps: WarpSet, cycle: u64, until: u64, stall: Stall) {
        self.wheel.take(warps);
        self.wheel.insert(warps, until);
        self.parties.charge(warps, stall, until - cycle);
        self.profile.all_stalled(warps, stall, until - cycle);
    }

    /// Ready warps find no room below the L1.
    #[inline]
    pub fn throttle(&mut self, warps: WarpSet, cycle: u64) {
        self.wheel.take(warps);
        self.throttled |= warps;
        self.parties.throttle(warps, cycle);
        self.profile.throttled(warps, cycle);
    }

    /// There is room below the L1 again.
    #[inline]
    pub fn release_throttled(&mut self, cycle: u64) {
        if self.throttled != 0 {
            self.charge_throttled(cycle);
            self.parties.unthrottle(self.throttled, cycle);
            self.wheel.insert(std::mem::take(&mut self.throttled), cycle);
        }
    }

    fn charge_throttled(&mut self, cycle: u64) {
        self.parties.charge_throttled(self.throttled, cycle);
        self.profile.throttle_charged(self.throttled, cycle);
    }

    /// From `cycle` on the warp waits for something without a known end, for this reason.
    pub fn wait(&mut self, warp: usize, status: Status, stall: Stall, cycle: u64) {
        let slot = &mut self.warps[warp];
        let from = cycle.max(slot.charged_until);
        slot.stall.charge(self.parties.of(slot.party), from - slot.charged_until);
        self.profile.stalled(warp, slot.stall, from - slot.charged_until);
        slot.charged_until = from;
        slot.status = status;
        slot.stall = stall;
    }

    /// The result that the warp waited for has come: up to `cycle` it is charged to the wait.
    #[inline]
    pub fn wake(&mut self, warp: usize, cycle: u64) {
        let slot = &mut self.warps[warp];
        let until = cycle.max(slot.charged_until);
        slot.stall.charge(self.parties.of(slot.party), until - slot.charged_until);
        self.profile.stalled(warp, slot.stall, until - slot.charged_until);
        slot.charged_until = until;
    }

    /// A ready warp's load has met an atomic whose value is not known: it waits for the answer under `key`.
    pub fn wait_for_value(&mut self, warp: usize, key: u32, cycle: u64) {
        self.warps[warp].charged_until = cycle;
        self.warps[warp].waits_for = key;
        self.value_waiters |= only(warp);
        self.wait(warp, Status::Value, Stall::LongScoreboard, cycle);
    }

    /// The value under a key is known: gives the warps that waited for it, which are charged up to `cycle`.
    #[inline]
    pub fn value_known(&mut self, key: u32, cycle: u64) -> WarpSet {
        if self.value_waiters == 0 {
            return 0;
        }
        let waited = members(self.value_waiters).filter(|&warp| self.warps[warp].waits_for == key);
        let waited = waited.fold(0, |set, warp| set | only(warp));
        self.value_waiters &= !waited;
        for warp in members(waited) {
            self.wake(warp, cycle);
        }
        waited
    }

    /// A store, reduction or atomic of the warp of that generation has been answered.
    #[inline]
    pub fn acknowledged(&mut self, warp: usize, generation: u32) -> Acknowledged {
        if !self.is_current(warp, generation) || self.warps[warp].status == Status::Empty {
            let launch = self.left.acknowledged(warp, generation);
            return launch.map_or(Acknowledged::OneOfMore, Acknowledged::LastOfCta);
        }
        let slot = &mut self.warps[warp];
        slot.outstanding -= 1;
        if slot.outstanding == 0 { Acknowledged::LastOfWarp } else { Acknowledged::OneOfMore }
    }

    /// The warp has ended in `cycle`, up to which it is charged, and waits for its last store to leave the SM: gives when that is.
    pub fn drain(&mut self, warp: usize, cycle: u64) -> u64 {
        let slot = &mut self.warps[warp];
        let leaves = slot.stores_leave.max(cycle);
        let waits = leaves.saturating_sub(slot.charged_until);
        Stall::Drain.charge(self.parties.of(slot.party), waits);
        self.profile.stalled(warp, Stall::Drain, waits);
        slot.charged_until += waits;
        leaves
    }

    /// May the warp leave when it has ended: have its copies come, and the answers of its atomics?
    pub fn may_leave(&self, warp: usize) -> bool {
        let slot = &self.warps[warp];
        let context = &self.contexts[warp];
        context.copies.is_idle() && context.bulk.is_idle() && !(slot.expects_answers && slot.outstanding > 0)
    }

    // Copies.

    /// The lanes of `arrival` arrive when the warp's copies so far have come.
    pub fn arrive_after_copies(&mut self, warp: usize, arrival: Arrival) {
        let number = self.arrivals.insert(arrival);
        self.end_batch(warp, CopyKind::Words, End::Arrival(number));
    }

    /// The copies so far are a batch.
    pub fn end_batch(&mut self, warp: usize, kind: CopyKind, end: End) {
        let context = &mut self.contexts[warp];
        context.copies_of(kind).end(end);
        if let End::Commit { scoreboards } = end {
            context.parts().2.take_scoreboards(scoreboards);
        }
        self.finish_batches(warp, kind);
    }

    /// A copy of a batch has come, and can be read from `ready` on.
    pub fn copy_arrived(&mut self, warp: usize, batch: u32, ready: u64) {
        let copies = &mut self.contexts[warp].copies;
        copies.arrived(batch);
        copies.ready_at(ready);
        self.finish_batches(warp, CopyKind::Words);
    }

    /// Batches that have come are forgotten, and the arrivals that waited for them happen.
    fn finish_batches(&mut self, warp: usize, kind: CopyKind) {
        while let Some(end) = self.contexts[warp].copies_of(kind).take_finished() {
            match end {
                End::Arrival(number) => {
                    let cta = usize::from(self.warps[warp].cta);
                    self.arrivals.remove(number).happen(&mut self.ctas[cta].shared);
                }
                End::Commit { scoreboards } => {
                    let context = &mut self.contexts[warp];
                    let ready = Ready::at(context.copies_of(kind).ready, Stall::LongScoreboard);
                    context.parts().2.give_scoreboards(scoreboards, ready);
                }
            }
        }
    }

    /// A copy of many bytes is done, one of a group or another; what it wrote can be read from `ready` on.
    pub fn bulk_copy_arrived(&mut self, warp: usize, group: Option<u32>, ready: u64) {
        let bulk = &mut self.contexts[warp].bulk;
        bulk.arrived(group);
        bulk.groups.ready_at(ready);
        self.finish_batches(warp, CopyKind::Bulk);
    }

    // Reports.

    /// Counts a CTA that has run to its end.
    pub fn count_completed(&mut self) {
        self.counters.ctas_completed += 1;
    }

    /// Warps that wait for this; those that wait for room below the L1 wait for memory.
    pub fn waiting(&self, status: Status) -> usize {
        let throttled = if status == Status::Memory { self.throttled.count_ones() as usize } else { 0 };
        self.warps.iter().filter(|warp| warp.status == status).count() + throttled
    }

    /// Threads that have arrived at barriers.
    pub fn threads_at_barriers(&self) -> u32 {
        self.ctas.iter().filter(|cta| cta.launch.is_some()).map(CtaSlot::waiting_at_barriers).sum()
    }

    /// Warps that were read back get their code, named by number.
    ///
    /// # Errors
    ///
    /// The state has other slots than `like`, or code is missing.
    pub fn complete(&mut self, like: &Self, codes: &dyn CodeSource) -> Result<(), StateError> {
        let sizes = |warps: &Self| (warps.warps.len(), warps.contexts.len(), warps.older.len(), warps.ctas.len());
        if sizes(self) != sizes(like) {
            return Err(StateError::Mismatch(format!("{} warp slots in place of {}", self.len(), like.len())));
        }
        self.by_launch.clone_from(&like.by_launch);
        for launch in self.ctas.iter_mut().filter_map(|cta| cta.launch.as_mut()) {
            complete_launch(launch, codes)?;
        }
        for (warp, context) in self.warps.iter().zip(&mut self.contexts) {
            if warp.status != Status::Empty {
                let unknown = StateError::UnknownCode(warp.program_id);
                let code = codes.code(warp.program_id).ok_or(unknown.clone())?;
                context.program = Some(code.program().ok_or(unknown)?);
                if let Some(state) = &mut context.state {
                    state.attach(&self.ctas[usize::from(warp.cta)].constants);
                }
            }
        }
        Ok(())
    }
}

/// The meaning of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// Others are to come, or nobody waits for them.
    OneOfMore,
    /// The last of a warp that is here.
    LastOfWarp,
    /// The last of a CTA of this launch that has ended.
    LastOfCta(LaunchId),
}

/// Bits of a warp's generation that a store's acknowledgement carries.
pub const GENERATION_BITS: u32 = 0x7f_ffff;

#[cfg(test)]
pub(crate) mod tests;
