//! Runs the warps of a CTA for their values alone.

use super::cta::{FunctionalCta, Waits};
use crate::gpu::sm::execution::{Execution, Values, count_access, count_all};
use crate::gpu::sm::lane_memory::{ByLines, RecentRanges};
use crate::gpu::sm::remote_access::{fill, perform, perform_bulk, ranks_of, values_of};
use crate::gpu::sm::warps::copies::{Arrival, complete};
use crate::memory::{DeviceMemoryView, WriteLog};
use balar_isa::execution::{AccessKind, BarrierArrival, BulkCopy, BulkEnd, CacheOperator, Effect, MemoryAccess, Space};
use balar_isa::interpreter::Tally;
use balar_isa::program::lanes;
use balar_protocol::cluster::{ClusterPlace, RemoteAccess};
use balar_protocol::cuda::{FaultCause, KernelFault};
use balar_protocol::{Clock, SimTime};

/// Warp instructions that a warp runs before another one of its CTA gets its turn, unless it waits before: it may spin until the other
/// has written to shared memory.
const WARP_TURN: u32 = 2048;
/// Loads past the caches by a warp in an epoch after which it waits for the next: the value that it looks for can only be there then.
const MOST_POLLS: u32 = 4;
/// Warps of a CTA, as tokens number them.
const TOKEN_WARPS: u32 = 32;

/// Why a CTA does not go on.
pub(super) enum Stop {
    /// The SM has run all that it runs in an epoch.
    Quantum,
    /// All its warps wait.
    Waits,
    /// Another CTA's turn has come.
    TurnOver,
    /// All its warps have ended.
    Ended,
    /// Its kernel cannot go on.
    Fault(Box<KernelFault>),
}

/// Why a warp does not go on.
enum WarpStop {
    /// It waits, has ended, or had its turn.
    Over,
    /// The SM has run all that it runs in an epoch.
    Quantum,
    /// It cannot.
    Fault(Box<KernelFault>),
}

impl WarpStop {
    /// An instruction has made a fault.
    fn by(cta: &FunctionalCta, warp: usize, at: (u32, u8), cause: FaultCause) -> WarpStop {
        fault(cta, warp, at, cause).map_or(WarpStop::Over, |fault| WarpStop::Fault(Box::new(fault)))
    }
}

/// The state that warps run with in an epoch.
pub(super) struct Runner<'a, 'b> {
    pub execution: &'a mut Execution,
    pub view: &'a DeviceMemoryView<'b>,
    pub log: &'a mut WriteLog,
    pub recent: RecentRanges,
    /// The time when their writes take effect.
    pub time: SimTime,
    /// The cycle that they read as a clock: this one with the first instruction, and one more with each.
    pub clock: Clock,
    pub cycle: u64,
    /// The CTA's slot.
    pub slot: u32,
    /// Warp instructions that may still run.
    pub left: &'a mut u32,
    /// The other CTAs of the SM.
    pub peers: Peers<'a>,
    /// Whether all threads of the CTA have arrived at the barrier of their cluster.
    pub arrives: bool,
}

/// The CTAs of an SM but one.
pub(super) struct Peers<'a> {
    before: &'a mut [FunctionalCta],
    after: &'a mut [FunctionalCta],
}

impl<'a> Peers<'a> {
    /// The CTA in a slot, and the others.
    pub fn beside(ctas: &'a mut [FunctionalCta], slot: usize) -> (&'a mut FunctionalCta, Peers<'a>) {
        let (before, rest) = ctas.split_at_mut(slot);
        let (own, after) = rest.split_first_mut().expect("a CTA that runs has a slot");
        (own, Peers { before, after })
    }

    /// The one in a slot.
    fn get(&mut self, slot: u16) -> Option<&mut FunctionalCta> {
        let slot = usize::from(slot);
        let own = self.before.len();
        if slot < own { self.before.get_mut(slot) } else { self.after.get_mut(slot.checked_sub(own + 1)?) }
    }
}

/// The slot and the warp of a token.
pub(super) fn of_token(token: u32) -> (usize, usize) {
    ((token / TOKEN_WARPS) as usize, (token % TOKEN_WARPS) as usize)
}

/// Why the kernel of a CTA cannot go on.
pub(super) fn fault(cta: &FunctionalCta, warp: usize, (pc, lane): (u32, u8), cause: FaultCause) -> Option<KernelFault> {
    let launch = cta.slot.launch.as_ref()?;
    let thread = warp as u32 * 32 + u32::from(lane);
    let [x, y, _] = launch.block;
    let thread = [thread % x, thread / x % y, thread / x / y];
    let instruction = cta.warps[warp].context.program().describe(pc);
    Some(KernelFault::of(launch, cta.slot.cta, thread, cause, instruction))
}

impl Runner<'_, '_> {
    /// Runs the warps of a CTA in turn.
    pub fn run(&mut self, cta: &mut FunctionalCta) -> Stop {
        while let Some(warp) = cta.next_ready() {
            let before = *self.left;
            cta.next = warp as u32;
            let stop = self.run_warp(cta, warp);
            let executed = before - *self.left;
            cta.turn = cta.turn.saturating_sub(executed);
            self.cycle += u64::from(executed);
            match stop {
                WarpStop::Over if cta.slot.live_warps == 0 => return Stop::Ended,
                WarpStop::Over => cta.next = (warp as u32 + 1) % 32,
                WarpStop::Quantum => return Stop::Quantum,
                WarpStop::Fault(fault) => return Stop::Fault(fault),
            }
            if cta.turn == 0 {
                return Stop::TurnOver;
            }
        }
        Stop::Waits
    }

    fn run_warp(&mut self, cta: &mut FunctionalCta, warp: usize) -> WarpStop {
        let most = WARP_TURN.min(*self.left);
        let mut left = most;
        let mut tally = Tally::default();
        let stop = loop {
            let slot = &mut cta.slot;
            let (program, state, _) = cta.warps[warp].context.parts();
            left -= self.execution.run(program, state, left, &mut tally);
            if left == 0 {
                break WarpStop::Over;
            }
            if state.is_blocked() {
                cta.wait(warp, Waits::Barrier);
                break WarpStop::Over;
            }
            let pc = state.pc();
            let cycle = self.cycle + u64::from(most - left);
            let values = Values {
                view: self.view,
                log: &mut ByLines(self.log),
                recent: &mut self.recent,
                token: self.slot * TOKEN_WARPS + warp as u32,
                time: self.time,
            };
            let clocks = (cycle, self.clock.time_of(cycle).0 / 1000);
            let effect = self.execution.step(&mut cta.warps[warp].context, slot, values, clocks);
            left -= u32::from(effect != Effect::Retry);
            match effect {
                Effect::Plain
                | Effect::Fence
                | Effect::CopyCommit
                | Effect::CopyWait { .. }
                | Effect::BulkCommit
                | Effect::BulkWait { .. }
                | Effect::Product { .. }
                | Effect::ProductCommit => {}
                Effect::Branch { divergent } => {
                    slot.counters.branches_divergent += u64::from(divergent);
                    slot.counters.branches_uniform += u64::from(!divergent);
                }
                Effect::Bulk(_) if self.execution.sent.is_some() => {
                    let fault_of_copy = self.send(cta);
                    self.waits_after(cta, warp, pc, effect);
                    if let Some(cause) = fault_of_copy {
                        break WarpStop::by(cta, warp, (pc, 0), cause);
                    }
                }
                Effect::Memory { .. } if self.execution.remote.is_some() => {
                    if let Some((lane, cause)) = self.access_elsewhere(cta, warp) {
                        break WarpStop::by(cta, warp, (pc, lane), cause);
                    }
                }
                Effect::Memory { deferred } => {
                    if self.waits_after_access(cta, warp, pc, deferred) {
                        break WarpStop::Over;
                    }
                }
                Effect::Fault { lane, cause } => break WarpStop::by(cta, warp, (pc, lane), cause),
                effect => {
                    if self.waits_after(cta, warp, pc, effect) {
                        break WarpStop::Over;
                    }
                }
            }
            if left == 0 {
                break WarpStop::Over;
            }
        };
        count_all(&mut cta.slot.counters, &tally);
        *self.left -= most - left;
        if *self.left == 0 && matches!(stop, WarpStop::Over) && cta.slot.live_warps != 0 {
            WarpStop::Quantum
        } else {
            stop
        }
    }

    /// The last step's access is one to the shared memory of other CTAs, which are here: it is made at once. Gives the lane and the cause
    /// of a fault.
    #[cold]
    fn access_elsewhere(&mut self, cta: &mut FunctionalCta, warp: usize) -> Option<(u8, FaultCause)> {
        let elsewhere = self.execution.remote.take()?;
        let &MemoryAccess { space, kind, .. } = &self.execution.access;
        count_access(&mut cta.slot.counters, space, kind);
        let launch = cta.slot.launch.as_ref()?.id;
        let mut message = Box::<RemoteAccess>::default();
        for rank in lanes(ranks_of(self.execution)) {
            let cluster = (&cta.slot.cluster, launch);
            fill(&mut message, self.execution, cluster, rank as u32, (&elsewhere, ClusterPlace::default(), 0));
            let peer = self.peers.get(message.to.slot).map(|peer| &mut peer.slot);
            perform(&mut message, peer);
            if let Some(fault) = message.fault.take() {
                return Some(fault);
            }
            if matches!(kind, AccessKind::Load | AccessKind::Atomic) {
                let (program, state, _) = cta.warps[warp].context.parts();
                state.write_deferred_result(program, elsewhere.pc, &values_of(&message), message.mask);
            }
        }
        None
    }

    /// The last step's copy sends bytes to other CTAs, which are here: they come at once. Gives the cause of a fault.
    #[cold]
    fn send(&mut self, cta: &mut FunctionalCta) -> Option<FaultCause> {
        let sent = self.execution.sent.take()?;
        let launch = cta.slot.launch.as_ref()?.id;
        sent.messages(&cta.slot.cluster, launch, ClusterPlace::default()).find_map(|mut message| {
            let peer = self.peers.get(message.to.slot).map(|peer| &mut peer.slot);
            perform_bulk(&mut message, peer);
            message.fault.take()
        })
    }

    /// All threads of the CTA have arrived at the barrier of their cluster.
    fn arrive_at_cluster(&mut self, cta: &mut FunctionalCta) {
        // The CTA may be its own cluster.
        if cta.slot.cluster.size() > 1 {
            self.arrives = true;
        } else {
            cta.release_cluster();
        }
    }

    /// The warp has made an access: does it wait?
    #[inline]
    fn waits_after_access(&mut self, cta: &mut FunctionalCta, warp: usize, pc: u32, deferred: bool) -> bool {
        let &MemoryAccess { space, kind, cache, mask, .. } = &self.execution.access;
        count_access(&mut cta.slot.counters, space, kind);
        if deferred && kind == AccessKind::Atomic && mask != 0 {
            cta.wait(warp, Waits::Answer(pc));
            return true;
        }
        if kind == AccessKind::Load && cache == CacheOperator::Volatile && space == Space::Global && mask != 0 {
            cta.warps[warp].polls += 1;
            if cta.warps[warp].polls >= MOST_POLLS {
                cta.wait(warp, Waits::Epoch);
                return true;
            }
        }
        false
    }

    /// The effect of an instruction that is no arithmetic, branch or access: does the warp wait?
    fn waits_after(&mut self, cta: &mut FunctionalCta, warp: usize, pc: u32, effect: Effect) -> bool {
        let MemoryAccess { space, kind, mask, .. } = self.execution.access;
        match effect {
            Effect::Barrier(arrival) => {
                cta.slot.counters.inst_barriers += 1;
                return arrive(cta, warp, &arrival);
            }
            Effect::ProductWait { arrival, .. } => return arrive(cta, warp, &arrival),
            Effect::ClusterArrive { mask } => {
                cta.slot.counters.inst_barriers += 1;
                let live_threads = cta.slot.live_threads;
                if cta.slot.cluster.arrive(warp as u32, mask, live_threads) {
                    self.arrive_at_cluster(cta);
                }
                return false;
            }
            Effect::ClusterWait => {
                let waits = cta.warps[warp].context.state().is_blocked();
                if waits {
                    cta.wait(warp, Waits::Barrier);
                }
                return waits;
            }
            Effect::Exit { mask } => {
                let has_ended = cta.warps[warp].context.state().is_finished();
                cta.slot.exit(mask.count_ones(), has_ended);
                let live_threads = cta.slot.live_threads;
                if cta.slot.cluster.exit(warp as u32, mask, live_threads) {
                    self.arrive_at_cluster(cta);
                }
                if has_ended {
                    cta.wait(warp, Waits::Nothing);
                    cta.slot.live_warps -= 1;
                }
                let mut barrier = 0;
                while let Some(completion) = cta.slot.next_completion(barrier) {
                    barrier = completion.barrier + 1;
                    cta.release_barrier(completion);
                }
                return has_ended;
            }
            Effect::Sleep(_) => cta.wait(warp, Waits::Epoch),
            // Another warp of the CTA is waited for: it gets its turn.
            Effect::Suspended(_) => count_access(&mut cta.slot.counters, space, kind),
            Effect::Copy => {
                count_access(&mut cta.slot.counters, Space::Global, AccessKind::Load);
                return false;
            }
            Effect::CopyArrive(operation) => {
                if mask != 0 {
                    count_access(&mut cta.slot.counters, space, kind);
                    let addresses = self.execution.access.addresses.map(|address| address as u32);
                    Arrival { mask, addresses, operation }.happen(&mut cta.slot.shared);
                }
                return false;
            }
            Effect::Bulk(BulkCopy { end, bytes, .. }) => {
                if let BulkEnd::Barrier { address } = end {
                    complete(&mut cta.slot.shared, address, bytes);
                }
                return false;
            }
            Effect::System { mask, deferred, .. } => {
                let kind = if deferred { AccessKind::Atomic } else { AccessKind::Reduction };
                count_access(&mut cta.slot.counters, Space::Global, kind);
                if !deferred || mask == 0 {
                    return false;
                }
                cta.wait(warp, Waits::Answer(pc));
            }
            // The value that an own atomic leaves is looked for.
            Effect::Retry => cta.wait(warp, Waits::Epoch),
            Effect::Plain
            | Effect::Branch { .. }
            | Effect::Memory { .. }
            | Effect::Fence
            | Effect::CopyCommit
            | Effect::CopyWait { .. }
            | Effect::BulkCommit
            | Effect::BulkWait { .. }
            | Effect::Product { .. }
            | Effect::ProductCommit
            | Effect::Fault { .. } => return false,
        }
        true
    }
}

/// The warp arrives at a barrier: does it wait there?
fn arrive(cta: &mut FunctionalCta, warp: usize, arrival: &BarrierArrival) -> bool {
    if cta.warps[warp].context.state().is_blocked() {
        cta.wait(warp, Waits::Barrier);
    }
    if let Some(completion) = cta.slot.arrive(arrival) {
        cta.release_barrier(completion);
    }
    cta.warps[warp].waits == Waits::Barrier
}
