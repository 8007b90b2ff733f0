//! The requests that wait for a slice's tags: those that the crossbar brings, and those of the slice of the other partition.
//!
//! **Invariant:** the two wait for themselves. A request of the crossbar that waits for the other partition keeps no request of the other
//! partition waiting, and those need memory alone.

use super::counters::Stall;
use super::sets::Place;
use balar_protocol::memory::MemoryRequest;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Where a request comes from, and where its answer goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Asker {
    /// The crossbar.
    Crossbar,
    /// The slice of the other partition, for its copies.
    Near,
}

/// A request in an input queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Queued {
    pub arrived: u64,
    /// Where its line would be, which follows from its address.
    #[serde(skip)]
    pub place: Place,
    pub request: MemoryRequest,
}

/// The requests of one asker, in their order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Queue {
    waiting: VecDeque<Queued>,
    /// First look-up slot of its head.
    from: u64,
    /// What its head waits for, and since which cycle.
    blocked: Option<(Stall, u64)>,
}

/// The input queues of a slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Input {
    queues: [Queue; 2],
    /// First free look-up slot (cycle x look-ups a cycle).
    free: u64,
}

impl Input {
    /// A request arrives.
    #[inline]
    pub fn push(&mut self, asker: Asker, queued: Queued) {
        self.queues[asker as usize].waiting.push_back(queued);
    }

    /// The request that is looked up next, with its asker and its look-up slot: the one that came first among those that wait for nothing
    /// else at that time.
    #[inline]
    pub fn next(&self, lookups_per_cycle: u64) -> Option<(Asker, u64, &Queued)> {
        let head = |asker: Asker| {
            let queue = &self.queues[asker as usize];
            let queued = queue.waiting.front().filter(|_| queue.blocked.is_none())?;
            let slot = self.free.max(queue.from).max(queued.arrived * lookups_per_cycle);
            Some((asker, slot, queued))
        };
        let (crossbar, near) = (head(Asker::Crossbar), head(Asker::Near));
        match (crossbar, near) {
            (Some(crossbar), Some(near)) => {
                let order = |&(_, slot, queued): &(Asker, u64, &Queued)| (slot, queued.arrived);
                Some(if order(&near) < order(&crossbar) { near } else { crossbar })
            }
            (crossbar, near) => crossbar.or(near),
        }
    }

    /// The head of an asker's queue has been looked up in a slot.
    #[inline]
    pub fn pop(&mut self, asker: Asker, slot: u64) {
        self.queues[asker as usize].waiting.pop_front();
        self.free = slot + 1;
    }

    /// The head of an asker's queue waits until a slot.
    pub fn wait_until(&mut self, asker: Asker, slot: u64) {
        self.queues[asker as usize].from = slot;
    }

    /// The head of an asker's queue waits for something from `cycle` on.
    pub fn block(&mut self, asker: Asker, stall: Stall, cycle: u64) {
        self.queues[asker as usize].blocked = Some((stall, cycle));
    }

    /// What the heads of these queues wait for may be there from a slot on: those that wait for such are looked up again. `stood` gets each
    /// reason with the cycle since when.
    pub fn unblock(&mut self, slot: u64, is_such: impl Fn(Stall) -> bool, mut stood: impl FnMut(Stall, u64)) {
        for queue in &mut self.queues {
            if let Some((stall, since)) = queue.blocked.take_if(|(stall, _)| is_such(*stall)) {
                stood(stall, since);
                queue.from = queue.from.max(slot);
            }
        }
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// What heads of queues wait for.
    pub fn stalls(&self) -> impl Iterator<Item = Stall> {
        self.queues.iter().filter_map(|queue| queue.blocked.map(|(stall, _)| stall))
    }

    /// The requests that wait.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.queues.iter_mut().flat_map(|queue| &mut queue.waiting)
    }
}
