//! Whose turn it is: processes share a GPU by time slices, unless they share it by the Multi-Process Service.
//!
//! While kernels of one process alone are there, they run. Where another one's wait, the turn passes at the end of a time slice, or when
//! the first has nothing left. CTAs that run by then run to their end, and the kernel's others wait for its next turn: the SMs are
//! drained, where hardware saves the state of running CTAs and brings it back (compute preemption). So a kernel that never ends keeps
//! its turn, and one that waits for another process's never sees it.

use super::CtaScheduler;
use super::kernels::ResidentKernel;
use balar_protocol::{ContextId, SimTime};
use serde::{Deserialize, Serialize};

/// The turn of a context.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Turn {
    /// Whose it is; `None` before the first.
    context: Option<ContextId>,
    /// When it ends, if another context waits.
    end: SimTime,
    /// It has ended, but CTAs of it run: no more are placed.
    drains: bool,
    /// First SM cycle in which CTAs may be placed.
    pub first_cycle: u64,
}

impl Turn {
    /// May CTAs of a context's kernels be placed?
    pub fn places(&self, context: ContextId) -> bool {
        self.context == Some(context) && !self.drains
    }
}

impl CtaScheduler {
    /// May kernels of the context become resident?
    pub(super) fn has_turn(&self, context: ContextId) -> bool {
        self.is_shared || self.state.turn.context == Some(context)
    }

    /// May CTAs of the kernel be placed?
    pub(super) fn places(&self, kernel: &ResidentKernel) -> bool {
        self.is_shared || self.state.turn.places(kernel.launch.context)
    }

    /// The next context in turn that has kernels, beside the one that has the turn.
    fn waiting_context(&self) -> Option<ContextId> {
        let holder = self.state.turn.context;
        let contexts =
            || self.state.queues.keys().map(|queue| queue.context).filter(|context| Some(*context) != holder);
        contexts().find(|context| Some(*context) > holder).or_else(|| contexts().next())
    }

    /// When the turn passes to another context, unless it has nothing left before.
    pub(super) fn next_slice_end(&self) -> Option<SimTime> {
        if self.is_shared || self.state.turn.drains {
            return None;
        }
        self.waiting_context().map(|_| self.state.turn.end)
    }

    /// The time slice is over, and another context waits.
    pub(super) fn end_slice(&mut self, now: SimTime) {
        self.state.turn.drains = true;
        if self.take_turns(now) {
            self.fill_residency(now);
        }
    }

    /// Passes the turn on where that is due. Tells whether it did.
    pub(super) fn take_turns(&mut self, now: SimTime) -> bool {
        if self.is_shared {
            return false;
        }
        let turn = self.state.turn;
        if let Some(holder) = turn.context {
            let runs = || {
                let mut own = self.state.resident.iter().filter(|kernel| kernel.launch.context == holder);
                own.any(|kernel| kernel.running > 0 || kernel.storing > 0)
            };
            let has_work = || self.state.queues.keys().any(|queue| queue.context == holder);
            let keeps_turn = if turn.drains { runs() } else { has_work() };
            if keeps_turn {
                // A turn that has lasted long enough before anything waits ends when something does.
                let ends = !turn.drains && self.waiting_context().is_some();
                self.state.turn.end = if ends { turn.end.max(now) } else { turn.end };
                return false;
            }
        }
        let Some(next) = self.waiting_context() else {
            if turn.drains {
                self.state.turn.drains = false;
                self.retry_placement(now);
            }
            return false;
        };
        // The first context finds the GPU free.
        let is_switch = turn.context.is_some();
        self.state.counters.context_switches += u64::from(is_switch);
        let pause = if is_switch { self.context_switch } else { SimTime::ZERO };
        let start = now + pause;
        if let Some(timeline) = self.timeline.as_ref().filter(|_| is_switch) {
            timeline.lock().switches((now, start), next);
        }
        let first_cycle = if pause == SimTime::ZERO { 0 } else { self.clock.cycle_at_or_after(start) };
        self.state.turn = Turn { context: Some(next), end: start + self.time_slice, drains: false, first_cycle };
        self.retry_placement(now);
        true
    }
}
