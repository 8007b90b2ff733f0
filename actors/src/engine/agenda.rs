//! When each unit of a shard next has something to do.

use balar_protocol::SimTime;
use std::ops::Range;

/// Slots of a block.
const BLOCK: usize = 16;

/// The next time of each slot, with the earliest of each block of slots: a window looks at blocks first, because most units sleep.
#[derive(Debug)]
pub(super) struct Agenda {
    next: Vec<SimTime>,
    /// The smallest latency of each slot's wires.
    latencies: Vec<SimTime>,
    blocks: Vec<Block>,
}

/// The earliest times of the slots of a block: nothing is earlier; after [`Agenda::settle`], one is not later.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// When the first is due.
    next: SimTime,
    /// No message that one of them is yet to send arrives before.
    reach: SimTime,
}

impl Agenda {
    /// Slots with wires of these latencies. Each slot has something to do at once.
    pub fn new(latencies: Vec<SimTime>) -> Agenda {
        let blocks = latencies.len().div_ceil(BLOCK);
        let next = vec![SimTime::ZERO; latencies.len()];
        let mut agenda =
            Agenda { next, latencies, blocks: vec![Block { next: SimTime::ZERO, reach: SimTime::ZERO }; blocks] };
        (0..blocks).for_each(|block| agenda.settle(block));
        agenda
    }

    /// No message that a slot is yet to send arrives before this time: a slot that sleeps until some time sends nothing before.
    #[inline]
    pub fn reach(&self) -> SimTime {
        self.blocks.iter().map(|block| block.reach).min().unwrap_or(SimTime::MAX)
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The slots of `block`, if one may have something to do before `until`.
    #[inline]
    pub fn due_block(&self, block: usize, until: SimTime) -> Option<Range<usize>> {
        let slots = block * BLOCK..((block + 1) * BLOCK).min(self.next.len());
        (self.blocks[block].next < until).then_some(slots)
    }

    #[inline]
    pub fn is_due(&self, slot: usize, until: SimTime) -> bool {
        self.next[slot] < until
    }

    /// Sets when `slot` is next due; [`Self::settle`] of its block follows.
    #[inline]
    pub fn set(&mut self, slot: usize, time: SimTime) {
        self.next[slot] = time;
    }

    /// `slot` is due at `time`, if not before.
    #[inline]
    pub fn bring_forward(&mut self, slot: usize, time: SimTime) {
        if time < self.next[slot] {
            self.next[slot] = time;
            let block = &mut self.blocks[slot / BLOCK];
            block.next = block.next.min(time);
            block.reach = block.reach.min(time.saturating_add(self.latencies[slot]));
        }
    }

    /// The slots of `block` are set: finds the earliest.
    #[inline]
    pub fn settle(&mut self, block: usize) {
        let slots = block * BLOCK..((block + 1) * BLOCK).min(self.next.len());
        let mut earliest = Block { next: SimTime::MAX, reach: SimTime::MAX };
        for (&next, &latency) in self.next[slots.clone()].iter().zip(&self.latencies[slots]) {
            earliest.next = earliest.next.min(next);
            earliest.reach = earliest.reach.min(next.saturating_add(latency));
        }
        self.blocks[block] = earliest;
    }

    /// When the first slot is due.
    pub fn earliest(&self) -> SimTime {
        self.blocks.iter().map(|block| block.next).min().unwrap_or(SimTime::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_slot_of_any_block_is_found() {
        let mut agenda = Agenda::new(vec![SimTime(10); 40]);
        assert_eq!((agenda.blocks(), agenda.earliest()), (3, SimTime::ZERO));
        for slot in 0..40 {
            agenda.set(slot, SimTime(1000 + slot as u64));
        }
        (0..3).for_each(|block| agenda.settle(block));
        assert_eq!(agenda.earliest(), SimTime(1000));
        agenda.bring_forward(37, SimTime(500));
        assert_eq!((agenda.earliest(), agenda.reach()), (SimTime(500), SimTime(510)));
        assert!(agenda.is_due(37, SimTime(501)));
        let due: Vec<_> = (0..3).filter_map(|block| agenda.due_block(block, SimTime(501))).collect();
        assert_eq!(due, std::iter::once(32..40).collect::<Vec<_>>());
        agenda.set(37, SimTime::MAX);
        agenda.settle(2);
        assert_eq!((agenda.earliest(), agenda.due_block(2, SimTime(1032))), (SimTime(1000), None));
    }
}
