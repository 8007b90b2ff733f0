//! A warp's copies from device to shared memory (`cp.async`) that are under way, in the order in which they began.
//!
//! The copies up to a commit, or up to an arrival at an `mbarrier` object, are a batch. Batches end in order, whenever their data
//! come; memory is taken only when more are under way than ever before.

use balar_isa::cluster::OFFSET_BITS;
use balar_isa::execution::{AtomicFunction, AtomicOperation, AtomicType, BarrierOperation};
use balar_isa::mbarrier::update;
use balar_isa::program::lanes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The two kinds of copies that a warp has in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Words, to shared memory: `cp.async`.
    Words,
    /// Many bytes, out of shared memory: `cp.async.bulk`.
    Bulk,
}

/// The end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// `cp.async.commit_group`; in machine code it holds these scoreboards, a bit each.
    Commit {
        /// The scoreboards.
        scoreboards: u8,
    },
    /// `cp.async.mbarrier.arrive`: the number of the arrival.
    Arrival(u32),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Batch {
    under_way: u32,
    end: End,
}

/// The copies of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Copies {
    /// Ended batches; the first is still under way.
    batches: VecDeque<Batch>,
    /// Batches among them that are groups.
    groups: u32,
    /// The number of the first batch; numbers go up by one.
    first: u32,
    /// Copies under way that have begun since the last end of a batch.
    open: u32,
    /// First cycle in which all that came can be read.
    pub ready: u64,
    /// The copies that the warp waits for, if it does.
    pub wanted: Option<u32>,
}

impl Copies {
    /// The number of the batch that copies begin in.
    pub fn number(&self) -> u32 {
        self.first.wrapping_add(self.batches.len() as u32)
    }

    /// Is a copy of this batch under way, or has the batch not ended?
    pub fn has_not_finished(&self, batch: u32) -> bool {
        batch.wrapping_sub(self.first) <= self.batches.len() as u32
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
        self.groups += u32::from(matches!(end, End::Commit { .. }));
    }

    /// Forgets the first batch if all of it has come, and tells its end.
    pub fn take_finished(&mut self) -> Option<End> {
        let first = self.batches.front().filter(|batch| batch.under_way == 0)?;
        let end = first.end;
        self.batches.pop_front();
        self.first = self.first.wrapping_add(1);
        self.groups -= u32::from(matches!(end, End::Commit { .. }));
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

/// The copies of many bytes of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BulkOfWarp {
    /// Those out of shared memory, in groups.
    pub groups: Copies,
    /// How many others are under way.
    others: u32,
}

impl BulkOfWarp {
    /// A copy has begun, in the group with the number that this gives, or in none.
    pub fn begin(&mut self, is_in_group: bool) -> u32 {
        if is_in_group {
            self.groups.begin();
        } else {
            self.others += 1;
        }
        self.groups.number()
    }

    /// A copy of a group, or another one, is done.
    pub fn arrived(&mut self, group: Option<u32>) {
        match group {
            Some(group) => self.groups.arrived(group),
            None => self.others -= 1,
        }
    }

    /// Is none under way?
    pub fn is_idle(&self) -> bool {
        self.others == 0 && self.groups.is_idle()
    }
}

/// The lanes of a warp that will arrive, and where.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// The lanes.
    pub mask: u32,
    /// Offsets in the CTA's shared memory.
    pub addresses: [u32; 32],
    /// How they arrive.
    pub operation: BarrierOperation,
}

impl Arrival {
    /// The lanes arrive at the objects in their CTA's shared memory.
    pub fn happen(&self, shared: &mut [u8]) {
        let operation = AtomicOperation::Barrier(self.operation);
        let function = AtomicFunction { operation, data_type: AtomicType::U64 };
        for address in lanes(self.mask).map(|lane: usize| self.addresses[lane] as usize & OFFSET_BITS as usize) {
            if let Some(object) = shared.get_mut(address..address + 8) {
                function.update(object, 1, 0);
            }
        }
    }
}

/// Bytes have come for the phase of a barrier in shared memory. False where it is not in that memory.
pub fn complete(shared: &mut [u8], address: u32, bytes: u32) -> bool {
    let Some(object) = shared.get_mut(address as usize..).and_then(|rest| rest.first_chunk_mut()) else {
        return false;
    };
    let done = update(BarrierOperation::Complete, u64::from_le_bytes(*object), bytes.into(), 0);
    *object = done.to_le_bytes();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    const COMMIT: End = End::Commit { scoreboards: 0 };

    #[test]
    fn groups_end_in_order() {
        let mut copies = Copies::default();
        let mut numbers = Vec::new();
        for _ in 0..3 {
            copies.begin();
            numbers.push(copies.number());
            copies.end(COMMIT);
        }
        assert!(copies.at_most(Some(3)) && !copies.at_most(Some(2)));
        // The second group's data come first: the first holds it up.
        copies.arrived(numbers[1]);
        assert_eq!(copies.take_finished(), None);
        copies.arrived(numbers[0]);
        assert_eq!(copies.take_finished(), Some(COMMIT));
        assert_eq!(copies.take_finished(), Some(COMMIT));
        assert_eq!(copies.take_finished(), None);
        assert!(copies.at_most(Some(1)) && !copies.at_most(Some(0)));
        copies.arrived(numbers[2]);
        assert_eq!(copies.take_finished(), Some(COMMIT));
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
        let (mut copies, mut arrivals) = (Copies::default(), Slab::default());
        let number = arrivals.insert(Arrival { mask: 1, addresses: [8; 32], operation: BarrierOperation::Arrive });
        copies.begin();
        copies.end(End::Arrival(number));
        assert!(copies.at_most(Some(0)));
        let mut dropped = Vec::new();
        copies.clear(|arrival| dropped.push(arrivals.remove(arrival).addresses[0]));
        assert_eq!(dropped, [8]);
        assert_eq!(
            arrivals.insert(Arrival { mask: 2, addresses: [0; 32], operation: BarrierOperation::Arrive }),
            number
        );
    }
}
