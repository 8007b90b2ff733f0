//! What has been charged up to a cycle, in the middle of the warps' stay: a wait with a known end is charged when it begins, one without
//! when it ends, and a warp's stay when it leaves.

use super::Warps;
use super::parties::Parties;
use super::slot::Status;
use crate::gpu::sm::counters::{SmCounters, Stall};
use crate::gpu::sm::profile::{NoProfile, Profile};
use balar_protocol::SimTime;
use balar_protocol::by_launch::{LaunchTotals, Share, Unreported};
use balar_protocol::cuda::LaunchId;
use balar_protocol::launches::{LaunchCounts, LaunchSink};
use balar_protocol::statistics::CtaCounters;

impl<P: Profile> Warps<P> {
    /// Where the cycles went, all cycles before `cycle`, and what the CTAs did, those that are here included. Nothing is left to happen
    /// before `cycle`.
    pub fn statistics(&self, cycle: u64) -> (SmCounters, CtaCounters) {
        let cycle = cycle.max(self.wheel.now());
        let (mut counters, mut kernels) = (self.counters, self.completed);
        if self.resident_ctas > 0 {
            counters.cycles_active += cycle.saturating_sub(self.resident_since);
        }
        counters.add(&self.settled(cycle).total());
        for cta in self.ctas.iter().filter(|cta| cta.launch.is_some()) {
            kernels.add(&cta.counters);
        }
        (counters, kernels)
    }

    /// Warp instructions that the CTAs have executed, those that are here included.
    pub fn instructions(&self) -> u64 {
        let here = self.ctas.iter().filter(|cta| cta.launch.is_some()).map(|cta| cta.counters.inst_executed);
        self.completed.inst_executed + here.sum::<u64>()
    }

    /// Where the cycles of warps went by launch, all cycles before `cycle`.
    fn settled(&self, cycle: u64) -> Parties {
        let mut parties = self.parties.clone();
        if self.resident_ctas > 0 {
            self.settle(&mut parties, &mut NoProfile, cycle);
        }
        parties
    }

    /// The same by instruction, where that is kept.
    pub fn profile(&self, cycle: u64) -> P {
        let mut profile = self.profile.clone();
        if P::IS_KEPT && self.resident_ctas > 0 {
            self.settle(&mut self.parties.clone(), &mut profile, cycle.max(self.wheel.now()));
        }
        profile
    }

    /// Charges the warps that are here for what they have waited before `cycle`, and takes back what lies behind it: as if they left.
    fn settle(&self, parties: &mut Parties, profile: &mut impl Profile, cycle: u64) {
        let due = self.wheel.due();
        parties.charge_throttled(self.throttled, cycle);
        profile.throttle_charged(self.throttled, cycle);
        for (warp, slot) in self.warps.iter().enumerate().filter(|(_, slot)| slot.status != Status::Empty) {
            let mut charged_until = slot.charged_until;
            let counters = parties.of(slot.party);
            match due[warp] {
                Some(due) if due == charged_until => {
                    let from = cycle.max(slot.stalled_from).min(due);
                    slot.stall.refund(counters, due - from);
                    profile.refunded(warp, slot.stall, due - from);
                    charged_until = from;
                }
                Some(due) => {
                    let parked = Stall::of_pipe(usize::from(slot.pipe));
                    parked.refund(counters, due.saturating_sub(cycle));
                    profile.refunded(warp, parked, due.saturating_sub(cycle));
                }
                None if slot.status != Status::Scheduled => {
                    slot.stall.charge(counters, cycle.saturating_sub(charged_until));
                    profile.stalled(warp, slot.stall, cycle.saturating_sub(charged_until));
                }
                None => {}
            }
            counters.warp_cycles_active += cycle.max(charged_until).saturating_sub(slot.start_cycle);
        }
    }

    /// Gives where the cycles of warps went whose launches have left the SM, by launch.
    pub fn shares(&mut self, totals: &mut LaunchTotals) {
        self.parties.by_launch().give(totals);
    }

    /// What CTAs did of which the CTA scheduler has not heard at `now`: those that are here, up to `cycle`, those that were broken off, and
    /// those whose end is on its way.
    pub fn unreported(&self, cycle: u64, now: SimTime) -> Vec<Unreported> {
        let mut unreported = self.broken_off.clone();
        if self.resident_ctas > 0 {
            let cycle = cycle.max(self.wheel.now());
            for (launch, share) in self.settled(cycle).shares(cycle) {
                share.give(&mut Unreported::among(&mut unreported, launch).counters.units);
            }
        }
        for cta in &self.ctas {
            match (&cta.launch, cta.constants_of) {
                (Some(launch), _) => Unreported::among(&mut unreported, launch.id).add_unfinished(&cta.counters),
                (None, Some(launch)) if cta.end_is_heard > now => {
                    Unreported::among(&mut unreported, launch).counters.ctas.add(&cta.counters);
                }
                (None, _) => {}
            }
        }
        unreported
    }

    /// From now on what CTAs did is kept by launch, too.
    pub fn keep_by_launch(&mut self) {
        self.by_launch = Some(Vec::new());
    }

    /// A CTA of a launch has ended.
    pub(super) fn count_by_launch(&mut self, launch: LaunchId, counters: &CtaCounters) {
        if let Some(by_launch) = &mut self.by_launch {
            LaunchCounts::among(by_launch, launch).ended.ctas.add(counters);
        }
    }

    /// Tells what CTAs did: those that have ended since the last time, and those that are here, up to a cycle.
    pub fn launches(&mut self, cycle: u64, sink: &mut LaunchSink) {
        if self.by_launch.is_none() {
            return;
        }
        let cycle = cycle.max(self.wheel.now());
        let parties = self.settled(cycle);
        let Some(by_launch) = &mut self.by_launch else { return };
        for (launch, share) in parties.shares(cycle) {
            share.give(&mut LaunchCounts::among(by_launch, launch).resident.units);
        }
        for cta in &self.ctas {
            if let Some(launch) = &cta.launch {
                LaunchCounts::among(by_launch, launch.id).resident.ctas.add(&cta.counters);
            }
        }
        sink.counts.append(by_launch);
    }
}
