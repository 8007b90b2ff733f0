//! An SM as a unit: the loop over the cycles of a window, which carries events of one of its parts to the others.
//!
//! ```text
//!   messages ──► memory pipe ──► events ──► warps ──► ready warps ──► front end ──► choice ──► execution ──► effect
//!                     ▲                       ▲                                                                 │
//!                     └── accesses ───────────┴──── results, waits ─────────────────────────────────────────────┘
//! ```

use super::execution::Moment;
use super::profile::Profile;
use super::progress::{Sm, State, Step};
use super::warps::slot::Status;
use super::warps::wheel::members;
use crate::engine::state::{CodeSource, StateError, complete_payload, restore_state, save_state};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use crate::memory::SavedWriter;
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::launches::LaunchSink;
use balar_protocol::statistics::StatisticSink;
use std::sync::Arc;

impl<P: Profile> Unit for Sm<P> {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        self.take_atomic_results();
        self.prefetch(inbox);
        let memory = Arc::clone(&self.wiring.memory);
        let view = memory.view();
        let clock = self.wiring.ports.clock;
        let end_cycle = clock.cycle_at_or_after(window.until);
        let mut step = Step { view: &view, out, now: Moment { cycle: 0, clock } };
        let arrival = |inbox: &Inbox| inbox.next_time().map_or(u64::MAX, |time| clock.cycle_at_or_after(time));
        let mut next_message = arrival(inbox);
        loop {
            let cycle = self.next_event().min(next_message).max(self.state.cycle);
            if cycle >= end_cycle {
                break;
            }
            step.now.cycle = cycle;
            self.state.warps.advance_to(cycle);
            if self.state.pipe.next_due() <= cycle {
                self.release_due(&mut step);
            }
            if self.state.bulk.due() <= cycle {
                self.continue_bulk_copies(&mut step);
            }
            if self.state.late_cycle <= cycle {
                self.state.late_cycle = u64::MAX;
                let mut late = std::mem::take(&mut self.state.late);
                for payload in late.drain(..) {
                    self.receive(&payload, &mut step);
                }
                self.state.late = late;
            }
            while next_message <= cycle {
                if let Some(message) = inbox.look() {
                    self.receive(&message.payload, &mut step);
                }
                next_message = arrival(inbox);
            }
            if self.state.functional.due() <= cycle {
                self.run_functional(&mut step);
            }
            // Nothing that issues makes another warp ready in the same cycle.
            for sub_core in members(self.specification.front_end.sub_cores_of(self.state.warps.ready())) {
                let ready = self.state.warps.ready() & self.specification.front_end.members(sub_core);
                if ready != 0 {
                    self.issue(sub_core, ready, &mut step);
                }
            }
            self.state.warps.end_cycle();
            self.state.cycle = cycle + 1;
        }
        while let Some(message) = inbox.take() {
            self.state.late.push(message.payload);
            self.state.late_cycle = end_cycle;
        }
        self.writer.close();
        self.wiring.shown_instructions.after_window(&self.state.warps);
        match self.next_event() {
            u64::MAX => NextWake::OnMessage,
            cycle => NextWake::At(clock.time_of(cycle.max(end_cycle))),
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let State { warps, pipe, cycle, .. } = &self.state;
        let now = self.wiring.ports.clock.cycle_at_or_after(sink.now);
        let (mut counters, kernels) = warps.statistics((*cycle).max(now));
        counters.add(pipe.counters());
        counters.write(sink);
        kernels.write(sink);
    }

    fn records(&self, sink: &mut StatisticSink) {
        let State { warps, functional, cycle, .. } = &self.state;
        let cycle = self.wiring.ports.clock.cycle_at_or_after(sink.now).max(*cycle);
        if let Some(profiles) = &self.wiring.profiles {
            self.give_profile(profiles, &warps.profile(cycle));
        }
        sink.unreported.extend(warps.unreported(cycle, sink.now));
        functional.unreported(&mut sink.unreported);
    }

    fn counts_by_time(&self) -> bool {
        self.state.warps.resident_ctas() > 0
    }

    fn launches(&mut self, sink: &mut LaunchSink) {
        let now = self.wiring.ports.clock.cycle_at_or_after(sink.now);
        self.state.warps.launches(self.state.cycle.max(now), sink);
    }

    fn shares(&mut self, totals: &mut LaunchTotals) {
        self.state.warps.shares(totals);
    }

    fn outstanding(&self) -> Option<String> {
        let timed = self.timed_outstanding();
        let functional = self.state.functional.outstanding();
        match (timed, functional) {
            (Some(timed), Some(functional)) => Some(format!("{timed}; {functional}")),
            (timed, functional) => timed.or(functional),
        }
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(&self.state, self.writer.save(), self.functional_writer.save()))
    }

    fn restore(&mut self, state: &[u8], codes: &dyn CodeSource) -> Result<(), StateError> {
        let (mut state, writer, functional_writer): (State<P>, SavedWriter, SavedWriter) = restore_state(state)?;
        state.functional.complete(codes)?;
        state.warps.complete(&self.state.warps, codes)?;
        if !state.front_end.is_like(&self.state.front_end) {
            return Err(StateError::Mismatch("another number of sub-cores".to_owned()));
        }
        if !state.pipe.fits(&self.state.pipe) {
            return Err(StateError::Mismatch("another queue of requests in the crossbar".to_owned()));
        }
        for payload in &mut state.late {
            complete_payload(payload, codes)?;
        }
        self.writer.restore(writer);
        self.functional_writer.restore(functional_writer);
        self.state = state;
        Ok(())
    }
}

impl<P: Profile> Sm<P> {
    /// The waits of CTAs that are timed.
    fn timed_outstanding(&self) -> Option<String> {
        let State { warps, pipe, bulk, front_end, .. } = &self.state;
        let (lines, writes) = (pipe.lines_under_way(), pipe.writes_under_way());
        let fetches = front_end.lines_under_way();
        if warps.resident_ctas() == 0 && lines == 0 && writes == 0 && fetches == 0 {
            return None;
        }
        let waiting = |status| warps.waiting(status);
        Some(format!(
            "{} CTAs resident; warps waiting: {} for memory, {} at barriers ({} threads have arrived), {} at fences; \
             {lines} lines, {writes} stores, {fetches} lines of code and {} copies of many bytes under way",
            warps.resident_ctas(),
            [Status::Memory, Status::Value, Status::Fetch, Status::Copies, Status::BulkCopies, Status::Draining]
                .map(waiting)
                .into_iter()
                .sum::<usize>(),
            waiting(Status::Barrier),
            warps.threads_at_barriers(),
            waiting(Status::Fence),
            bulk.len(),
        ))
    }
}
