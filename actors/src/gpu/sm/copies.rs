//! A warp's copies from device to shared memory (`cp.async`): what is under way, in the order in which it began.
//!
//! The copies up to a commit, or up to an arrival at an `mbarrier` object, are a batch. Batches end in order, whenever their data
//! come; memory is taken only when more are under way than ever before.

use super::Sm;
use super::counters::Stall;
use super::issue::{Step, count_access};
use super::memory_pipe::Consumer;
use super::warp_slot::{Ready, Status};
use balar_isa::execution::{AccessKind, AtomicFunction, AtomicOperation, AtomicType, BarrierOperation, Space};
use balar_isa::program::{Timing, lanes};
use std::collections::VecDeque;

/// What ends a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `cp.async.commit_group`.
    Commit,
    /// `cp.async.mbarrier.arrive`: the number of the arrival.
    Arrival(u32),
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    under_way: u32,
    end: End,
}

/// The copies of one warp.
#[derive(Debug, Default)]
pub struct Copies {
    /// Ended batches, the first of which is under way still.
    batches: VecDeque<Batch>,
    /// Batches among them that are groups.
    groups: u32,
    /// The number of the first batch; numbers go up by one.
    first: u32,
    /// Copies under way that have begun since the last end of a batch.
    open: u32,
    /// First cycle in which all that came can be read.
    pub ready: u64,
    /// What the warp waits for, if it does.
    pub wanted: Option<u32>,
}

impl Copies {
    /// The number of the batch that copies begin in.
    pub fn number(&self) -> u32 {
        self.first.wrapping_add(self.batches.len() as u32)
    }

    /// A copy has begun; [`Copies::arrived`] will follow.
    pub fn begin(&mut self) {
        self.open += 1;
    }

    /// A copy's data can be read from that cycle on.
    pub fn ready_at(&mut self, cycle: u64) {
        self.ready = self.ready.max(cycle);
    }

    /// A copy of a batch has come.
    pub fn arrived(&mut self, batch: u32) {
        match self.batches.get_mut(batch.wrapping_sub(self.first) as usize) {
            Some(batch) => batch.under_way -= 1,
            None => self.open -= 1,
        }
    }

    /// The copies so far are a batch.
    pub fn end(&mut self, end: End) {
        self.batches.push_back(Batch { under_way: std::mem::take(&mut self.open), end });
        self.groups += u32::from(end == End::Commit);
    }

    /// Forgets the first batch if all of it has come, and tells what ended it.
    pub fn take_finished(&mut self) -> Option<End> {
        let first = self.batches.front().filter(|batch| batch.under_way == 0)?;
        let end = first.end;
        self.batches.pop_front();
        self.first = self.first.wrapping_add(1);
        self.groups -= u32::from(end == End::Commit);
        Some(end)
    }

    /// Is nothing under way?
    pub fn is_idle(&self) -> bool {
        self.open == 0 && self.batches.is_empty()
    }

    /// Are at most that many groups under way; with `None`, no copy at all?
    pub fn at_most(&self, groups: Option<u32>) -> bool {
        groups.map_or(self.is_idle(), |most| self.groups <= most)
    }

    /// Forgets everything, and tells which arrivals will not happen.
    pub fn clear(&mut self, mut dropped: impl FnMut(u32)) {
        for batch in self.batches.drain(..) {
            if let End::Arrival(arrival) = batch.end {
                dropped(arrival);
            }
        }
        (self.groups, self.open, self.ready, self.wanted) = (0, 0, 0, None);
    }
}

/// Arrivals at `mbarrier` objects that happen when copies have come.
#[derive(Debug, Default)]
pub struct Arrivals {
    arrivals: Vec<Arrival>,
    free: Vec<u32>,
}

/// The lanes of a warp that will arrive, and where.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The lanes.
    pub mask: u32,
    /// Offsets in the CTA's shared memory.
    pub addresses: [u32; 32],
}

impl Arrivals {
    /// Keeps an arrival; gives its number.
    pub fn add(&mut self, arrival: Arrival) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.arrivals[number as usize] = arrival;
                number
            }
            None => {
                self.arrivals.push(arrival);
                self.arrivals.len() as u32 - 1
            }
        }
    }

    /// Gives an arrival back.
    pub fn take(&mut self, number: u32) -> Arrival {
        self.free.push(number);
        self.arrivals[number as usize]
    }
}

impl Sm {
    /// Times the copy to shared memory whose read the last step made. The write to shared memory goes by the way of a line that
    /// comes from below, which the pipe is not charged for.
    pub(super) fn copy(&mut self, warp: usize, pc: u32, timing: &Timing, cycle: u64, step: &mut Step) {
        let cta = usize::from(self.warps[warp].cta);
        count_access(&mut self.ctas[cta].counters, Space::Global, AccessKind::Load);
        self.warps[warp].set_ready(timing, Ready::at(cycle + 1, Stall::Wait));
        if self.access.mask == 0 {
            return;
        }
        let (lines, start, busy) = self.enter_pipe(cycle);
        self.load(warp, pc, Consumer::Copies, lines.as_slice(), start, busy, step.out);
        self.lines = lines;
    }

    /// The last step's lanes will arrive at `mbarrier` objects when the copies so far have come.
    pub(super) fn arrive_after_copies(&mut self, warp: usize, pc: u32, timing: &Timing, cycle: u64, step: &mut Step) {
        if self.access.mask == 0 {
            return;
        }
        let addresses = self.access.addresses.map(|address| address as u32);
        let arrival = self.arrivals.add(Arrival { mask: self.access.mask, addresses });
        self.access(warp, pc, timing, false, cycle, step);
        self.end_batch(warp, End::Arrival(arrival));
    }

    /// The copies so far are a batch.
    pub(super) fn end_batch(&mut self, warp: usize, end: End) {
        self.warps[warp].copies.end(end);
        self.finish_batches(warp);
    }

    /// Batches that have come are forgotten, and the arrivals that waited for them happen.
    fn finish_batches(&mut self, warp: usize) {
        let slot = &mut self.warps[warp];
        while let Some(end) = slot.copies.take_finished() {
            let End::Arrival(number) = end else { continue };
            let Arrival { mask, addresses } = self.arrivals.take(number);
            let function = AtomicFunction {
                operation: AtomicOperation::Barrier(BarrierOperation::Arrive),
                data_type: AtomicType::U64,
            };
            let shared = &mut self.ctas[usize::from(slot.cta)].shared;
            for address in lanes(mask).map(|lane: usize| addresses[lane] as usize) {
                if let Some(object) = shared.get_mut(address..address + 8) {
                    function.update(object, 1, 0);
                }
            }
        }
    }

    /// A copy has come.
    pub(super) fn copy_arrived(&mut self, warp: usize, batch: u32, cycle: u64, step: &mut Step) {
        let slot = &mut self.warps[warp];
        slot.copies.arrived(batch);
        slot.copies.ready_at(cycle + self.l1_fill_latency);
        self.finish_batches(warp);
        let slot = &mut self.warps[warp];
        match slot.status {
            Status::Copies if slot.copies.at_most(slot.copies.wanted) => {
                slot.charge_until(cycle, &mut self.counters);
                let ready = slot.copies.ready.max(cycle);
                self.schedule(warp, ready, step);
            }
            Status::Draining if slot.outstanding == 0 && slot.copies.is_idle() => self.retire(warp, cycle, step.out),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_end_in_order() {
        let mut copies = Copies::default();
        let mut numbers = Vec::new();
        for _ in 0..3 {
            copies.begin();
            numbers.push(copies.number());
            copies.end(End::Commit);
        }
        assert!(copies.at_most(Some(3)) && !copies.at_most(Some(2)));
        // The second group's data come first: the first holds it up.
        copies.arrived(numbers[1]);
        assert_eq!(copies.take_finished(), None);
        copies.arrived(numbers[0]);
        assert_eq!(copies.take_finished(), Some(End::Commit));
        assert_eq!(copies.take_finished(), Some(End::Commit));
        assert_eq!(copies.take_finished(), None);
        assert!(copies.at_most(Some(1)) && !copies.at_most(Some(0)));
        copies.arrived(numbers[2]);
        assert_eq!(copies.take_finished(), Some(End::Commit));
        assert!(copies.is_idle() && copies.at_most(None));
    }

    #[test]
    fn copies_without_a_group_count_for_waiting_for_all() {
        let mut copies = Copies::default();
        copies.begin();
        assert!(copies.at_most(Some(0)) && !copies.at_most(None));
        copies.arrived(copies.number());
        assert!(copies.at_most(None));
    }

    #[test]
    fn arrivals_are_no_groups_and_are_given_back() {
        let (mut copies, mut arrivals) = (Copies::default(), Arrivals::default());
        let number = arrivals.add(Arrival { mask: 1, addresses: [8; 32] });
        copies.begin();
        copies.end(End::Arrival(number));
        assert!(copies.at_most(Some(0)));
        let mut dropped = Vec::new();
        copies.clear(|arrival| dropped.push(arrivals.take(arrival).addresses[0]));
        assert_eq!(dropped, [8]);
        assert_eq!(arrivals.add(Arrival { mask: 2, addresses: [0; 32] }), number);
    }
}
