//! Kernels that run for their values alone: their CTAs go to SMs by the dozen, take no room there, and begin at once.
//!
//! Each SM has at most as many of a kernel as it has CTA slots, so that CTAs run at the same time that would on hardware, where they may
//! wait for each other, and the SMs share a grid evenly.

use super::CtaScheduler;
use crate::engine::Outbox;
use balar_protocol::cta::{CtaMessage, FunctionalCtas, FunctionalEnd};
use balar_protocol::{Payload, PortId, SimTime};
use std::sync::Arc;

impl CtaScheduler {
    /// Gives the SMs as many CTAs as they have room for, from all resident kernels that are not timed.
    pub(super) fn place_functional(&mut self, cycle: u64, now: SimTime, out: &mut Outbox) {
        for index in 0..self.state.resident.len() {
            let kernel = &self.state.resident[index];
            let is_functional = !kernel.launch.detail.is_timed();
            if is_functional && self.places(kernel) && kernel.first_cycle <= cycle {
                // A CTA that one SM has no room for, another one may have room for.
                while self.give_to_sms(index, now, out) {}
            }
        }
    }

    /// Gives each SM its share of the CTAs of a resident kernel that are not placed, as far as it has room. False where none was given.
    fn give_to_sms(&mut self, index: usize, now: SimTime, out: &mut Outbox) -> bool {
        let kernel = &mut self.state.resident[index];
        let ports = self.sms.len();
        kernel.of_sm.resize(ports, 0);
        let mut placed = 0;
        let mut left = ports as u64;
        for offset in 0..ports {
            // Kernels of few CTAs do not all go to the first SMs.
            let sm = (self.state.first_sm as usize + offset) % ports;
            // Whole clusters; an SM takes one of them in any case.
            let size = u64::from(kernel.launch.cluster_size());
            let share = (kernel.unplaced / size).div_ceil(left) * size;
            left -= 1;
            let room = u64::from(self.sms.slots(sm).saturating_sub(kernel.of_sm[sm])) / size * size;
            let room = if kernel.of_sm[sm] == 0 { room.max(size) } else { room };
            let count = share.min(room) as u32;
            if count == 0 {
                continue;
            }
            let first = kernel.launch.cta_count() - kernel.unplaced;
            let ctas = FunctionalCtas { launch: Arc::clone(&kernel.launch), first, count };
            out.send(self.sms.port(sm), now, Payload::Cta(CtaMessage::Functional(Box::new(ctas))));
            kernel.of_sm[sm] += count;
            kernel.unplaced -= u64::from(count);
            kernel.running += u64::from(count);
            placed += u64::from(count);
        }
        self.state.first_sm = ((u64::from(self.state.first_sm) + placed) % ports.max(1) as u64) as u32;
        self.state.counters.ctas_launched += placed;
        placed > 0
    }

    /// CTAs that ran for their values alone have ended on the SM at `port`.
    pub(super) fn functional_ended(&mut self, now: SimTime, port: PortId, end: FunctionalEnd, out: &mut Outbox) {
        let Some(index) = self.resident(end.launch) else { return };
        let Some(sm) = self.sms.index_of(port) else { return };
        self.state.counters.ctas_completed += u64::from(end.count);
        self.progress.ctas_ended(end.count.into());
        let kernel = &mut self.state.resident[index];
        kernel.of_sm[sm] = kernel.of_sm[sm].saturating_sub(end.count);
        kernel.counters.add(&end.counters);
        kernel.until = kernel.until.max(end.until);
        kernel.running -= u64::from(end.count);
        let may_follow = kernel.unplaced > 0 && kernel.of_sm[sm] * 2 <= self.sms.slots(sm);
        if may_follow {
            self.retry_placement(now);
        }
        if let Some(fault) = end.fault {
            let context = self.state.resident[index].launch.context;
            self.fail(now, context, fault, out);
        } else if self.state.resident[index].is_over() {
            self.end_kernel(now, index, out);
        }
        if self.take_turns(now) {
            self.fill_residency(now);
        }
    }
}
