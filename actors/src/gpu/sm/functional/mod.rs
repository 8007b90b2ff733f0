//! CTAs that run for their values alone: no pipe, cache or scoreboard sees them, and they take no room that others could have.
//!
//! In each value epoch in which an SM has such CTAs, it runs so many instructions of them, one warp for as long as it can, one CTA after
//! the other. Their writes become visible to others at the epoch's end, in the order in which logs take effect, as all other writes do. So
//! their values depend neither on threads nor on windows, spin locks and barriers of a grid let others go on, and an atomic returns the old
//! value one epoch later.
//!
//! They have a clock that goes on by a cycle with each instruction. They read it, and their kernel does not end before it: a program that
//! asks whether its kernel is done, or whether two take longer than one, gets sensible answers. It is no time to be reported.

mod cta;
mod run;

use super::device_runtime;
use super::execution::launch_constants;
use super::profile::Profile;
use super::progress::{Sm, Step};
use super::warps::Place;
use crate::engine::Outbox;
use crate::engine::state::{CodeSource, StateError, complete_launch};
use crate::gpu::cluster_barriers::ClusterBarriers;
use crate::memory::LoggedKind;
use balar_isa::machine::LaunchConstants;
use balar_isa::program::Program;
use balar_protocol::cluster::ClusterPlace;
use balar_protocol::cta::{CtaCluster, CtaMessage, FunctionalCtas, FunctionalEnd};
use balar_protocol::cuda::{FaultCause, KernelFault, KernelLaunch, LaunchId};
use balar_protocol::launches::Unreported;
use balar_protocol::statistics::CtaCounters;
use balar_protocol::{Payload, SimTime};
use cta::{FunctionalCta, Waits};
use run::{Peers, Runner, Stop};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Warp instructions of an SM in an epoch: so many that an epoch's own cost (about a microsecond) does not matter, so few that a run can
/// be interrupted soon and those who wait for others do not wait long.
const QUANTUM: u32 = 4096;
/// Lines of 128 bytes that an SM may have written in an epoch before it stops: they stay in the processor's cache.
const MOST_LINES: usize = 2048;

/// The CTAs of an SM that run for their values alone.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Functional {
    /// CTAs that have not begun, in the order in which they came.
    waiting: VecDeque<FunctionalCtas>,
    /// Slots, some of them free.
    ctas: Vec<FunctionalCta>,
    free: Vec<u32>,
    /// The slots of CTAs that have begun and not ended, in the order of their turns.
    running: Vec<u32>,
    /// The cycle in which they run next; `None` where they do not.
    due: Option<u64>,
    /// The cycle up to which these CTAs have come by their own clock, which goes on by one with each warp instruction.
    clock: u64,
    /// The barriers of the clusters that have begun; CTAs are named by their slots.
    barriers: ClusterBarriers<u32>,
    /// The constants of the launch that began a CTA last.
    constants: Option<(LaunchId, LaunchConstants)>,
}

impl Functional {
    /// The cycle in which something is to be done; `u64::MAX` where nothing is.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.due.unwrap_or(u64::MAX)
    }

    /// The launch has failed: its CTAs are dropped without a word.
    pub(super) fn abort(&mut self, launch: LaunchId) {
        self.waiting.retain(|ctas| ctas.launch.id != launch);
        self.barriers.forget(launch);
        let (ctas, free) = (&mut self.ctas, &mut self.free);
        self.running.retain(|&slot| {
            let of_launch = ctas[slot as usize].slot.launch.as_ref().is_some_and(|of| of.id == launch);
            if of_launch {
                ctas[slot as usize].end();
                free.push(slot);
            }
            !of_launch
        });
    }

    /// Adds what the CTAs did that are under way.
    pub(super) fn unreported(&self, unreported: &mut Vec<Unreported>) {
        for &slot in &self.running {
            let cta = &self.ctas[slot as usize].slot;
            if let Some(launch) = &cta.launch {
                Unreported::among(unreported, launch.id).add_unfinished(&cta.counters);
            }
        }
    }

    /// What it waits for, in words; `None` where it has nothing to do.
    pub(super) fn outstanding(&self) -> Option<String> {
        let waiting: u64 = self.waiting.iter().map(|ctas| u64::from(ctas.count)).sum();
        let at_barriers: usize = self.running.iter().map(|&slot| self.ctas[slot as usize].at_barriers()).sum();
        (waiting > 0 || !self.running.is_empty()).then(|| {
            format!(
                "{} CTAs run for their values alone, {waiting} wait for that; {at_barriers} of their warps are at barriers",
                self.running.len()
            )
        })
    }

    /// Gives code to the state that was read back.
    ///
    /// # Errors
    ///
    /// Code is missing.
    pub(super) fn complete(&mut self, codes: &dyn CodeSource) -> Result<(), StateError> {
        for ctas in &mut self.waiting {
            complete_launch(&mut ctas.launch, codes)?;
        }
        self.ctas.iter_mut().try_for_each(|cta| cta.complete(codes))
    }

    /// Is there anything that goes on by itself?
    fn goes_on(&self) -> bool {
        !self.waiting.is_empty() || self.running.iter().any(|&slot| self.ctas[slot as usize].goes_on())
    }

    /// The launch and the number of the next cluster that has not begun; most often it is one CTA.
    fn take_waiting(&mut self) -> Option<(Arc<KernelLaunch>, u64)> {
        let ctas = self.waiting.front_mut()?;
        let launch = Arc::clone(&ctas.launch);
        let size = launch.cluster_size();
        let number = ctas.first / u64::from(size);
        ctas.first += u64::from(size);
        ctas.count = ctas.count.saturating_sub(size);
        if ctas.count == 0 {
            self.waiting.pop_front();
        }
        Some((launch, number))
    }

    /// A free slot, or a new one.
    fn take_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.ctas.push(FunctionalCta::default());
            self.ctas.len() as u32 - 1
        })
    }

    /// All threads of the CTA in a slot have arrived at the barrier of their cluster: gives the CTAs that go on.
    fn arrives_at_cluster(&mut self, slot: u32) -> Vec<u32> {
        let cta = &self.ctas[slot as usize].slot;
        let Some(launch) = &cta.launch else { return Vec::new() };
        self.barriers.arrive(cta.cluster.id(launch.id), cta.cluster.size(), slot)
    }

    /// The CTA in a slot ends: gives the CTAs of its cluster that go on.
    fn leaves_cluster(&mut self, slot: u32) -> Vec<u32> {
        let cta = &self.ctas[slot as usize].slot;
        match &cta.launch {
            Some(launch) if cta.cluster.size() > 1 => {
                self.barriers.leave(cta.cluster.id(launch.id), cta.cluster.size(), slot)
            }
            _ => Vec::new(),
        }
    }

    /// CTAs go on from the barrier of their cluster: gives the first of them in the order of turns.
    fn release_clusters(&mut self, slots: &[u32]) -> Option<usize> {
        for &slot in slots {
            self.ctas[slot as usize].release_cluster();
        }
        self.running.iter().position(|running| slots.contains(running))
    }
}

/// CTAs that have ended in an epoch, by launch, and messages that are sent before: the operations that kernels have put into streams.
#[derive(Default)]
struct Ends {
    ctas: Vec<FunctionalEnd>,
    launches: Vec<Payload>,
}

impl Ends {
    fn add(&mut self, launch: LaunchId, counters: &CtaCounters, fault: Option<KernelFault>, until: SimTime) {
        let at = self.ctas.iter().position(|end| end.launch == launch).unwrap_or_else(|| {
            let counters = CtaCounters::default();
            self.ctas.push(FunctionalEnd { launch, count: 0, counters, fault: None, until });
            self.ctas.len() - 1
        });
        let end = &mut self.ctas[at];
        end.count += 1;
        end.counters.add(counters);
        end.fault = end.fault.take().or(fault);
        end.until = end.until.max(until);
    }
}

impl<P: Profile> Sm<P> {
    /// CTAs have come that run for their values alone: from the next epoch on, in which everything that was written for their kernel can
    /// be seen.
    pub(super) fn functional_received(&mut self, ctas: &FunctionalCtas, cycle: u64) {
        self.state.functional.waiting.push_back(ctas.clone());
        if self.state.functional.due.is_none() {
            self.state.functional.due = Some(self.next_epoch(cycle));
        }
    }

    /// The first cycle of the next epoch.
    fn next_epoch(&self, cycle: u64) -> u64 {
        let clock = self.wiring.ports.clock;
        clock.cycle_at_or_after(self.writer.visible_at(clock.time_of(cycle)))
    }

    /// Runs the CTAs in this epoch.
    #[cold]
    pub(super) fn run_functional(&mut self, step: &mut Step) {
        let cycle = step.now.cycle;
        let next_epoch = self.next_epoch(cycle);
        let mut ends = Ends::default();
        self.state.functional.clock = self.state.functional.clock.max(cycle);
        self.functional_epoch_ended(&mut ends);
        let mut left = QUANTUM;
        let mut turn = 0;
        while left > 0 && self.functional_writer.line_count() < MOST_LINES {
            let begun = turn < self.state.functional.running.len() || self.begin_functional(turn, &mut ends, step);
            if !begun {
                break;
            }
            let functional = &mut self.state.functional;
            let slot = functional.running[turn];
            let (cta, peers) = Peers::beside(&mut functional.ctas, slot as usize);
            let before = left;
            let mut runner = Runner {
                execution: &mut self.execution,
                view: step.view,
                log: &mut self.functional_writer,
                recent: Default::default(),
                time: step.now.time(),
                clock: step.now.clock,
                cycle: functional.clock,
                slot,
                left: &mut left,
                peers,
                arrives: false,
            };
            let stop = runner.run(cta);
            let arrives = runner.arrives;
            functional.clock += u64::from(before - left);
            ends.launches.extend(device_runtime::messages(&mut cta.slot));
            let mut released = if arrives { functional.arrives_at_cluster(slot) } else { Vec::new() };
            let cta = &mut functional.ctas[slot as usize];
            match stop {
                Stop::Quantum => {
                    functional.release_clusters(&released);
                    break;
                }
                Stop::Waits => turn += 1,
                Stop::TurnOver => {
                    cta.begin_turn();
                    functional.running.remove(turn);
                    functional.running.push(slot);
                    // It may have waited for one that has not begun.
                    self.begin_functional(turn, &mut ends, step);
                }
                Stop::Ended => {
                    released.extend(functional.leaves_cluster(slot));
                    self.functional_ended(turn, None, &mut ends);
                }
                Stop::Fault(fault) => {
                    released.extend(functional.leaves_cluster(slot));
                    self.functional_ended(turn, Some(*fault), &mut ends);
                }
            }
            // Those of the cluster whose turn is over may go on.
            if !released.is_empty() {
                let first = self.state.functional.release_clusters(&released);
                turn = first.map_or(turn, |first| turn.min(first));
            }
        }
        self.functional_writer.close();
        let functional = &mut self.state.functional;
        functional.due = functional.goes_on().then_some(next_epoch);
        self.send_ends(ends, next_epoch, step.out);
    }

    /// Tells the scheduler which CTAs have ended, in the epoch in which all units see their writes.
    fn send_ends(&self, ends: Ends, cycle: u64, out: &mut Outbox) {
        let at = self.wiring.ports.clock.time_of(cycle);
        for message in ends.launches {
            out.send(self.wiring.cta, at, message);
        }
        for end in ends.ctas {
            out.send(self.wiring.cta, at, Payload::Cta(CtaMessage::FunctionalEnd(Box::new(end))));
        }
    }

    /// The CTA whose turn it is has ended.
    fn functional_ended(&mut self, turn: usize, fault: Option<KernelFault>, ends: &mut Ends) {
        let functional = &mut self.state.functional;
        let slot = functional.running.remove(turn);
        functional.free.push(slot);
        let cta = &mut functional.ctas[slot as usize];
        if let Some(launch) = cta.end() {
            ends.add(launch.id, &cta.slot.counters, fault, self.wiring.ports.clock.time_of(functional.clock));
        }
    }

    /// The epoch before has ended: warps get the results that they have waited for.
    fn functional_epoch_ended(&mut self, ends: &mut Ends) {
        let mut wrong_frees = Vec::new();
        let functional = &mut self.state.functional;
        let ctas = &mut functional.ctas;
        self.functional_writer.open(|log| {
            for result in log.atomic_results() {
                let (slot, warp) = run::of_token(result.token);
                let Some(cta) = ctas.get_mut(slot).filter(|cta| cta.slot.launch.is_some()) else { continue };
                let Some(Waits::Answer(pc)) = cta.warps.get(warp).map(|warp| warp.waits) else { continue };
                if result.kind == LoggedKind::Release {
                    wrong_frees.extend(result.first_zero().map(|(lane, address)| (slot, warp, pc, lane, address)));
                } else if result.mask != 0 {
                    let (program, state, _) = cta.warps[warp].context.parts();
                    state.write_deferred_result(program, pc, &result.values(), result.mask);
                }
                if result.kind == LoggedKind::LaunchBuffer {
                    let runtime = &mut cta.slot.device_runtime;
                    device_runtime::note_refused(runtime, warp as u32 * 32, result.without_buffer());
                }
            }
        });
        for &slot in &functional.running {
            functional.ctas[slot as usize].epoch_ended();
        }
        for (slot, warp, pc, lane, address) in wrong_frees {
            let functional = &self.state.functional;
            let Some(turn) = functional.running.iter().position(|&running| running as usize == slot) else { continue };
            let fault = run::fault(&functional.ctas[slot], warp, (pc, lane), FaultCause::InvalidFree { address });
            self.functional_ended(turn, fault, ends);
        }
    }

    /// The next cluster that waits begins, most often one CTA, as those whose turn is `turn`. False where none waits.
    fn begin_functional(&mut self, turn: usize, ends: &mut Ends, step: &Step) -> bool {
        let functional = &mut self.state.functional;
        while let Some((launch, number)) = functional.take_waiting() {
            let size = launch.cluster_size();
            let place = launch.cta_of_cluster(number, 0);
            let Some(program) = launch.code.program::<Program>() else {
                let cause = FaultCause::Unsupported(format!("kernel {} is not loaded", launch.name));
                let fault = KernelFault::of(&launch, place, [0; 3], cause, String::new());
                for _ in 0..size {
                    ends.add(launch.id, &CtaCounters::default(), Some(fault.clone()), step.now.time());
                }
                continue;
            };
            if let Some(origin) = launch.origin.as_ref().filter(|_| place == [0; 3]) {
                self.functional_writer.launch_begun(step.now.time(), launch.context, origin.buffer);
            }
            let constants = match &functional.constants {
                Some((of, known)) if *of == launch.id => known.clone(),
                _ => launch_constants(&launch, &program, self.wiring.sm_count, step.view),
            };
            functional.constants = Some((launch.id, constants.clone()));
            let at = Place { sm: self.wiring.index, sm_count: self.wiring.sm_count, slot: 0 };
            let slots: Vec<u32> = (0..size).map(|_| functional.take_slot()).collect();
            let sm = self.wiring.index as u16;
            let members: Arc<[ClusterPlace]> =
                slots.iter().map(|&slot| ClusterPlace { sm, slot: slot as u16 }).collect();
            for (rank, &slot) in (0..size).zip(&slots) {
                let place = launch.cta_of_cluster(number, rank);
                let cluster = CtaCluster { number, rank: rank as u8, members: Arc::clone(&members) };
                let cluster = (size > 1).then_some(&cluster);
                functional.ctas[slot as usize].start(&launch, &program, at, (place, cluster), &constants);
            }
            functional.running.splice(turn..turn, slots);
            return true;
        }
        false
    }
}
