//! A CTA slot of an SM: the CTA's shared memory, barriers and counters.

use super::cluster::ClusterSlot;
use super::device_runtime::DeviceRuntime;
use super::wheel::WarpSet;
use balar_isa::execution::{BARRIERS, BarrierArrival, BarrierKind, CLUSTER_BARRIER};
use balar_isa::machine::LaunchConstants;
use balar_protocol::cta::CtaCluster;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::statistics::CtaCounters;
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One barrier: the warps that have arrived, and the reduction of their predicates.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Barrier {
    arrived: u32,
    /// Threads among them that wait.
    waiting: u32,
    expected: Option<u32>,
    population: u32,
    kind: Option<BarrierKind>,
    until: u64,
}

/// One CTA slot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CtaSlot {
    /// The launch; `None` where the slot is free.
    pub launch: Option<Arc<KernelLaunch>>,
    /// The context of the launch.
    pub context: ContextId,
    /// Place in the grid.
    pub cta: [u32; 3],
    /// Its warp slots.
    pub warps: WarpSet,
    /// Warps that have not left yet.
    pub live_warps: u32,
    /// Threads that have not ended.
    pub live_threads: u32,
    /// Warps with such threads.
    pub running_warps: u32,
    /// The key of the stores that its warps which have left have under way.
    pub left: Option<u32>,
    /// The launch's constants.
    pub constants: LaunchConstants,
    /// The launch of these constants; they stay when the CTA has ended.
    pub constants_of: Option<LaunchId>,
    /// Shared memory.
    pub shared: Vec<u8>,
    /// The CTA in its cluster.
    pub cluster: ClusterSlot,
    /// Its work so far.
    pub counters: CtaCounters,
    /// When the CTA scheduler hears of the end of the CTA that was here last.
    pub end_is_heard: SimTime,
    /// What it asks of the device runtime.
    pub device_runtime: DeviceRuntime,
    barriers: [Barrier; BARRIERS],
}

/// A barrier whose last thread has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which barrier.
    pub barrier: u8,
    /// The result of a reduction.
    pub reduction: Option<u32>,
    /// The cycle before which nobody goes on.
    pub until: u64,
    /// Warps that its count asks for and that have ended before they arrived. Hardware waits for them for ever.
    pub missing_warps: u32,
}

impl Completion {
    /// All CTAs of the cluster have arrived at its barrier.
    pub const OF_CLUSTER: Completion =
        Completion { barrier: CLUSTER_BARRIER, reduction: None, until: 0, missing_warps: 0 };
}

impl CtaSlot {
    /// Clears the state of an earlier CTA, without giving memory back. The CTA has `shared_bytes` of shared memory.
    pub fn start(&mut self, launch: Arc<KernelLaunch>, cta: [u32; 3], shared_bytes: u32, cluster: Option<&CtaCluster>) {
        self.cluster.start(cluster);
        self.shared.clear();
        self.shared.resize(shared_bytes as usize, 0);
        self.live_threads = launch.threads_per_cta();
        self.live_warps = launch.warps_per_cta();
        self.running_warps = self.live_warps;
        self.counters = CtaCounters::default();
        self.counters.ctas_launched = 1;
        self.counters.warps_launched = u64::from(self.live_warps);
        self.barriers = [Barrier::default(); BARRIERS];
        self.warps = 0;
        self.left = None;
        self.device_runtime.begin();
        self.cta = cta;
        self.context = launch.context;
        self.constants_of = Some(launch.id);
        self.launch = Some(launch);
    }

    /// Threads arrive; tells whether they were the last.
    pub fn arrive(&mut self, arrival: &BarrierArrival) -> Option<Completion> {
        let barrier = &mut self.barriers[usize::from(arrival.barrier) % BARRIERS];
        barrier.arrived += arrival.mask.count_ones();
        barrier.expected = arrival.threads;
        barrier.population += (arrival.predicate & arrival.mask).count_ones();
        if arrival.kind != BarrierKind::Arrive {
            barrier.waiting += arrival.mask.count_ones();
            barrier.kind = Some(arrival.kind);
        }
        self.complete(arrival.barrier)
    }

    /// Threads arrive at a barrier from which nobody goes on before `until`; tells whether they were the last.
    pub fn arrive_until(&mut self, arrival: &BarrierArrival, until: u64) -> Option<Completion> {
        let barrier = &mut self.barriers[usize::from(arrival.barrier) % BARRIERS];
        barrier.until = barrier.until.max(until);
        self.arrive(arrival)
    }

    /// Threads of a warp end, the last of it or not: barriers that waited for all of the CTA may be complete now.
    /// [`Self::next_completion`] tells which.
    pub fn exit(&mut self, threads: u32, is_end_of_warp: bool) {
        self.live_threads = self.live_threads.saturating_sub(threads);
        self.running_warps = self.running_warps.saturating_sub(u32::from(is_end_of_warp));
    }

    /// The next barrier from `first` on at which threads wait and whose last thread has arrived.
    pub fn next_completion(&mut self, first: u8) -> Option<Completion> {
        (first..BARRIERS as u8).find_map(|barrier| {
            let waits = self.barriers[usize::from(barrier)].waiting > 0;
            waits.then(|| self.complete(barrier)).flatten()
        })
    }

    fn complete(&mut self, barrier: u8) -> Option<Completion> {
        let (live_threads, running_warps) = (self.live_threads, self.running_warps);
        let state = &mut self.barriers[usize::from(barrier) % BARRIERS];
        // A count may be larger than the threads that are left: warps that do not wait arrive several times. It names whole warps, and the last
        // warp of a CTA may be smaller: where all threads wait, nobody else can come.
        let all_wait = state.waiting > 0 && state.waiting >= live_threads;
        if state.arrived < state.expected.unwrap_or(live_threads) && !all_wait {
            return None;
        }
        let reduction = match state.kind {
            Some(BarrierKind::ReducePopulation) => Some(state.population),
            Some(BarrierKind::ReduceAnd) => Some(u32::from(state.population == state.arrived)),
            Some(BarrierKind::ReduceOr) => Some(u32::from(state.population > 0)),
            _ => None,
        };
        // Threads of a warp may have ended, and a warp that does not wait may have ended since it arrived.
        let arrived_warps = state.arrived.div_ceil(32).max(running_warps);
        // Arrivals that nobody waits for may be left over when a kernel ends.
        let wanted_warps = state.expected.filter(|_| state.waiting > 0).map_or(0, |threads| threads.div_ceil(32));
        let Barrier { until, .. } = std::mem::take(state);
        Some(Completion { barrier, reduction, until, missing_warps: wanted_warps.saturating_sub(arrived_warps) })
    }

    /// Threads that wait at barriers, for the deadlock report.
    pub fn waiting_at_barriers(&self) -> u32 {
        self.barriers.iter().map(|barrier| barrier.arrived).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cta(threads: u32) -> CtaSlot {
        CtaSlot { live_threads: threads, running_warps: threads.div_ceil(32), ..CtaSlot::default() }
    }

    fn arrival(kind: BarrierKind, threads: Option<u32>, mask: u32, predicate: u32) -> BarrierArrival {
        BarrierArrival { barrier: 3, kind, threads, mask, predicate }
    }

    #[test]
    fn the_last_thread_completes_the_barrier() {
        let mut cta = cta(64);
        assert_eq!(cta.arrive(&arrival(BarrierKind::Sync, None, u32::MAX, 0)), None);
        let completion = Some(Completion { barrier: 3, reduction: None, until: 0, missing_warps: 0 });
        assert_eq!(cta.arrive(&arrival(BarrierKind::Sync, None, u32::MAX, 0)), completion);
        // and it can be used again
        assert_eq!(cta.arrive(&arrival(BarrierKind::Sync, None, u32::MAX, 0)), None);
    }

    #[test]
    fn threads_that_end_are_not_waited_for() {
        let mut cta = cta(64);
        assert_eq!(cta.arrive(&arrival(BarrierKind::Sync, None, u32::MAX, 0)), None);
        cta.exit(31, false);
        assert_eq!(cta.next_completion(0), None);
        cta.exit(1, true);
        assert_eq!(cta.next_completion(4), None);
        assert_eq!(
            cta.next_completion(0),
            Some(Completion { barrier: 3, reduction: None, until: 0, missing_warps: 0 })
        );
        assert_eq!(cta.next_completion(0), None);
    }

    #[test]
    fn reductions() {
        for (kind, predicate, expected) in [
            (BarrierKind::ReducePopulation, 0b101, 2),
            (BarrierKind::ReduceAnd, 0b101, 0),
            (BarrierKind::ReduceAnd, u32::MAX, 1),
            (BarrierKind::ReduceOr, 0b101, 1),
            (BarrierKind::ReduceOr, 0, 0),
        ] {
            let completion = cta(32).arrive(&arrival(kind, None, u32::MAX, predicate));
            let expected = Completion { barrier: 3, reduction: Some(expected), until: 0, missing_warps: 0 };
            assert_eq!(completion, Some(expected), "{kind:?}");
        }
    }

    #[test]
    fn warps_that_a_count_asks_for_are_missing_when_they_have_ended() {
        let missing = |cta: &mut CtaSlot, threads, mask| {
            let completion = cta.arrive(&arrival(BarrierKind::Sync, Some(threads), mask, 0));
            completion.map(|completion| completion.missing_warps)
        };
        let mut two = cta(64);
        assert_eq!(missing(&mut two, 64, u32::MAX), None);
        two.exit(32, true);
        assert_eq!(two.next_completion(0).map(|completion| completion.missing_warps), Some(1));
        let mut producer = cta(64);
        assert_eq!(producer.arrive(&arrival(BarrierKind::Arrive, Some(64), u32::MAX, 0)), None);
        producer.exit(32, true);
        assert_eq!(missing(&mut producer, 64, u32::MAX), Some(0), "it has arrived before its end");
        // Some threads of each warp have ended, and a last warp has 16.
        let mut shorter = cta(48);
        shorter.exit(4, false);
        assert_eq!(missing(&mut shorter, 64, 0x0fff_ffff), None);
        assert_eq!(missing(&mut shorter, 64, 0xffff), Some(0));
        assert_eq!(missing(&mut cta(32), 96, u32::MAX), Some(2), "such warps have never been there");
    }

    /// As at the end of FlashAttention-3's kernel: of two warps, one announces itself and then waits, for three arrivals.
    #[test]
    fn a_warp_may_arrive_more_than_once() {
        let mut cta = cta(64);
        let counted = |kind| arrival(kind, Some(96), u32::MAX, 0);
        assert_eq!(cta.arrive(&counted(BarrierKind::Arrive)), None);
        assert_eq!(cta.arrive(&counted(BarrierKind::Sync)), None, "the other warp has not come");
        let completion = cta.arrive(&counted(BarrierKind::Arrive)).expect("the third arrival");
        assert_eq!(completion.missing_warps, 0);
    }

    #[test]
    fn a_named_count_with_a_producer() {
        let mut cta = cta(128);
        assert_eq!(cta.arrive(&arrival(BarrierKind::Arrive, Some(64), u32::MAX, 0)), None);
        assert!(cta.arrive(&arrival(BarrierKind::Sync, Some(64), u32::MAX, 0)).is_some());
    }
}
