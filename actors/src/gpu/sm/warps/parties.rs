//! Where the cycles of an SM's warps go, and what misses in its caches of code and constants, by launch: the launches whose CTAs are on the SM each have counters of their own.

use super::wheel::{WarpSet, count};
use crate::gpu::sm::counters::{SmCounters, Stall};
use balar_protocol::by_launch::{ByLaunch, Share};
use balar_protocol::cuda::LaunchId;
use balar_protocol::statistics::UnitCounters;
use serde::{Deserialize, Serialize};

/// A launch that is on the SM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Party {
    launch: LaunchId,
    /// CTA slots that it has; 0 = it is not here, and another one may take its place.
    ctas: u32,
    /// The cycle in which its first CTA came.
    since: u64,
    warps: WarpSet,
    /// The cycles in which its warps began to wait for room below the L1, summed over those that still wait.
    throttled_since: u64,
    counters: SmCounters,
}

impl Party {
    /// The work of its warps, as far as it is charged, from its first CTA's arrival up to `cycle`.
    fn share(&self, cycle: u64) -> SmCounters {
        SmCounters { cycles_active: cycle.saturating_sub(self.since), ..self.counters }
    }
}

impl Share for SmCounters {
    fn give(&self, to: &mut UnitCounters) {
        to.cycles_active += self.cycles_active;
        to.warp_cycles_active += self.warp_cycles_active;
        to.inst_issued += self.inst_issued;
        to.stall_none_selected += self.stall_none_selected;
        to.stall_not_selected += self.stall_not_selected;
        to.stall_wait += self.stall_wait;
        to.stall_long_scoreboard += self.stall_long_scoreboard;
        to.stall_short_scoreboard += self.stall_short_scoreboard;
        to.stall_barrier += self.stall_barrier;
        to.stall_membar += self.stall_membar;
        to.stall_math_pipe_throttle += self.stall_math_pipe_throttle;
        to.stall_lg_throttle += self.stall_lg_throttle;
        to.stall_branch_resolve += self.stall_branch_resolve;
        to.stall_drain += self.stall_drain;
        to.stall_sleeping += self.stall_sleeping;
        to.stall_no_instruction += self.stall_no_instruction;
        to.stall_imc_miss += self.stall_imc_miss;
        to.l0_instruction_misses += self.l0_instruction_misses;
        to.instruction_cache_misses += self.instruction_cache_misses;
        to.instruction_requests += self.instruction_requests;
        to.constant_cache_misses += self.constant_cache_misses;
        to.constant_requests += self.constant_requests;
    }
}

/// The launches that are on an SM. Most of the time there is one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parties {
    here: Vec<Party>,
    /// The work of launches that are here no longer, together.
    gone: SmCounters,
    /// The same by launch.
    by_launch: ByLaunch<SmCounters>,
}

impl Parties {
    /// A CTA of a launch comes: gives the launch's place.
    pub fn enter(&mut self, launch: LaunchId) -> u8 {
        let here = self.here.iter().position(|party| party.ctas > 0 && party.launch == launch);
        let place = here.unwrap_or_else(|| {
            let free = self.here.iter().position(|party| party.ctas == 0);
            let place = free.unwrap_or_else(|| {
                self.here.push(Party::default());
                self.here.len() - 1
            });
            self.here[place] = Party { launch, since: u64::MAX, ..Party::default() };
            place
        });
        self.here[place].ctas += 1;
        u8::try_from(place).expect("an SM has at most 255 CTAs")
    }

    /// Warps of a CTA that came to this place begin in `cycle`.
    pub fn begin(&mut self, place: u8, warps: WarpSet, cycle: u64) {
        let party = &mut self.here[usize::from(place)];
        party.since = party.since.min(cycle);
        party.warps |= warps;
    }

    /// A CTA of a launch has ended in `cycle`, and its warps have left.
    pub fn leave(&mut self, launch: LaunchId, cycle: u64) {
        let Some(party) = self.here.iter_mut().find(|party| party.ctas > 0 && party.launch == launch) else { return };
        party.ctas -= 1;
        if party.ctas == 0 {
            self.gone.add(&party.counters);
            self.by_launch.of(launch.0).add(&party.share(cycle));
            // Places behind the last one that is taken go, so that a launch that is alone is found at once.
            while self.here.len() > 1 && self.here.last().is_some_and(|party| party.ctas == 0) {
                self.here.pop();
            }
        }
    }

    /// Where the cycles of the warps of a launch are charged.
    #[inline]
    pub fn of(&mut self, place: u8) -> &mut SmCounters {
        &mut self.here[usize::from(place)].counters
    }

    /// Calls back with the counters of each launch that has warps in a set, and with how many.
    #[inline]
    fn each(&mut self, warps: WarpSet, mut tell: impl FnMut(&mut Party, u64)) {
        if let [party] = &mut self.here[..] {
            return tell(party, count(warps));
        }
        for party in self.here.iter_mut().filter(|party| party.warps & warps != 0) {
            let warps = count(party.warps & warps);
            tell(party, warps);
        }
    }

    /// The warps were ready for a cycle, and not selected.
    #[inline]
    pub fn not_selected(&mut self, warps: WarpSet) {
        self.each(warps, |party, warps| party.counters.stall_not_selected += warps);
    }

    /// All warps of a set wait for so many cycles.
    #[inline]
    pub fn charge(&mut self, warps: WarpSet, stall: Stall, cycles: u64) {
        self.each(warps, |party, warps| stall.charge(&mut party.counters, warps * cycles));
    }

    /// Warps begin to wait for room below the L1.
    pub fn throttle(&mut self, warps: WarpSet, cycle: u64) {
        self.each(warps, |party, warps| party.throttled_since += warps * cycle);
    }

    /// All warps that wait for room below the L1 are charged up to a cycle.
    pub fn charge_throttled(&mut self, throttled: WarpSet, cycle: u64) {
        self.each(throttled, |party, warps| {
            let until = warps * cycle;
            party.counters.stall_lg_throttle += until.saturating_sub(party.throttled_since);
            party.throttled_since = until;
        });
    }

    /// Warps that have been charged up to `cycle` wait for room no longer.
    pub fn unthrottle(&mut self, warps: WarpSet, cycle: u64) {
        self.each(warps, |party, warps| party.throttled_since -= warps * cycle);
    }

    /// A warp leaves.
    pub fn remove(&mut self, place: u8, warps: WarpSet) {
        self.here[usize::from(place)].warps &= !warps;
    }

    /// The work of all launches, as far as it is charged.
    pub fn total(&self) -> SmCounters {
        let mut total = self.gone;
        self.here.iter().filter(|party| party.ctas > 0).for_each(|party| total.add(&party.counters));
        total
    }

    /// The present launches, with their charges up to `cycle`.
    pub fn shares(&self, cycle: u64) -> impl Iterator<Item = (LaunchId, SmCounters)> {
        let here = self.here.iter().filter(|party| party.ctas > 0);
        here.map(move |party| (party.launch, party.share(cycle)))
    }

    /// The work of launches that are here no longer, since it was last taken.
    pub fn by_launch(&mut self) -> &mut ByLaunch<SmCounters> {
        &mut self.by_launch
    }
}
