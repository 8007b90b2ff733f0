//! Traffic under way below the L1: lines, and the accesses that wait for them.

use crate::gpu::sm::serde_array;
use crate::slab::{NONE, Slab};
use balar_protocol::memory::LINE_BYTES;
use serde::{Deserialize, Serialize};

/// Hash chains of outstanding lines.
const BUCKETS: usize = 256;

/// The purpose of an access's answer. The pipe only keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// The registers that the instruction writes.
    Registers {
        /// The instruction.
        pc: u32,
    },
    /// A batch of copies to shared memory.
    Copies {
        /// Its number.
        batch: u32,
    },
    /// A copy of many bytes.
    Bulk {
        /// Its number.
        number: u32,
    },
    /// Nothing but to know that it has happened.
    Nothing,
}

/// Whose access it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The warp's slot.
    pub warp: u16,
    /// Which of the warps that had the slot.
    pub generation: u32,
    /// The purpose of its answer.
    pub purpose: Purpose,
}

/// A load, atomic or reduction with parts under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Tracker {
    /// Whose it is.
    pub owner: Owner,
    /// Parts that have not come.
    pub remaining: u32,
    /// For an atomic or reduction: the first cycle in which the values that it leaves and returns are known. 0 for a load.
    pub known: u64,
}

/// A line under way from below the L1.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Mshr {
    /// Its address.
    pub line: u64,
    /// When it was requested.
    pub requested_cycle: u64,
    /// Which sectors come.
    pub sectors: u8,
    /// Will the line go into L1?
    pub cached: bool,
    /// The tracker that sent the request; [`NONE`] once it has been told.
    requester: u32,
    /// Trackers that joined later, as a chain of waiters, the latest first.
    joined: u32,
    next_in_bucket: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiter {
    tracker: u32,
    next: u32,
}

/// Traffic under way below the L1 of an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outstanding {
    /// Accesses whose parts are under way.
    pub trackers: Slab<Tracker>,
    mshrs: Slab<Mshr>,
    waiters: Slab<Waiter>,
    #[serde(with = "serde_array")]
    buckets: [u32; BUCKETS],
    /// Stores, reductions and atomics without an answer.
    pub writes: u32,
}

impl Default for Outstanding {
    fn default() -> Self {
        Outstanding {
            trackers: Slab::default(),
            mshrs: Slab::default(),
            waiters: Slab::default(),
            buckets: [NONE; BUCKETS],
            writes: 0,
        }
    }
}

fn bucket(line: u64) -> usize {
    ((line >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

impl Outstanding {
    /// Lines under way for loads.
    #[inline]
    pub fn lines(&self) -> u32 {
        self.mshrs.len()
    }

    /// Asks for sectors of a line on behalf of a tracker; gives the number of the request.
    pub fn add_line(&mut self, line: u64, sectors: u8, cached: bool, tracker: u32, cycle: u64) -> u32 {
        let bucket = bucket(line);
        let next_in_bucket = self.buckets[bucket];
        let mshr =
            Mshr { line, requested_cycle: cycle, sectors, cached, requester: tracker, joined: NONE, next_in_bucket };
        self.buckets[bucket] = self.mshrs.insert(mshr);
        self.buckets[bucket]
    }

    /// Brings a line closer that has come.
    #[inline]
    pub fn prefetch_line(&self, at: u32) {
        self.mshrs.prefetch(at);
    }

    /// Brings closer the tracker that asked for it.
    #[inline]
    pub fn prefetch_tracker(&self, at: u32) {
        if let Some(mshr) = self.mshrs.get(at) {
            self.trackers.prefetch(mshr.requester);
        }
    }

    /// Whose access asked for a line that has come.
    #[inline]
    pub fn requester(&self, at: u32) -> Option<Owner> {
        let tracker = self.trackers.get(self.mshrs.get(at)?.requester)?;
        Some(tracker.owner)
    }

    /// The lines under way inside the range will not go into the L1, and nobody joins them any more, but for those that `stays` names.
    pub fn forget_range(&mut self, address: u64, bytes: u64, stays: impl Fn(u32) -> bool) {
        if self.mshrs.len() == 0 {
            return;
        }
        let first = address / LINE_BYTES;
        let last = address.saturating_add(bytes.saturating_sub(1)) / LINE_BYTES;
        let is_in = |line: u64| (first..=last).contains(&(line / LINE_BYTES));
        let mut forget = |chain: usize| {
            let mut at = self.buckets[chain];
            while at != NONE {
                let mshr = &mut self.mshrs[at];
                mshr.cached &= !is_in(mshr.line) || stays(at);
                at = mshr.next_in_bucket;
            }
        };
        // A line is in the chain of its bucket; so many that they are in most chains are looked for in all.
        if last - first < BUCKETS as u64 {
            (first..=last).for_each(|line| forget(bucket(line * LINE_BYTES)));
        } else {
            (0..BUCKETS).for_each(forget);
        }
    }

    /// A line has come.
    pub fn remove_line(&mut self, at: u32) -> Mshr {
        let mshr = self.mshrs.remove(at);
        let bucket = bucket(mshr.line);
        if self.buckets[bucket] == at {
            self.buckets[bucket] = mshr.next_in_bucket;
        } else {
            let mut before = self.buckets[bucket];
            while self.mshrs[before].next_in_bucket != at {
                before = self.mshrs[before].next_in_bucket;
            }
            self.mshrs[before].next_in_bucket = mshr.next_in_bucket;
        }
        mshr
    }

    /// The next tracker that waits for a line that has come, and whether it is the one that sent the request, which is the last.
    #[inline]
    pub fn next_waiter(&mut self, mshr: &mut Mshr) -> Option<(u32, bool)> {
        if mshr.joined != NONE {
            let Waiter { tracker, next } = self.waiters.remove(mshr.joined);
            mshr.joined = next;
            return Some((tracker, false));
        }
        let requester = std::mem::replace(&mut mshr.requester, NONE);
        (requester != NONE).then_some((requester, true))
    }

    /// Joins lines under way that bring some of `sectors`; returns the sectors that none brings, and how often it joined.
    #[inline(always)]
    pub fn join(&mut self, line: u64, mut sectors: u8, tracker: u32) -> (u8, u32) {
        let mut joined = 0;
        let mut at = self.buckets[bucket(line)];
        while at != NONE && sectors != 0 {
            let mshr = &mut self.mshrs[at];
            if mshr.line == line && mshr.cached && mshr.sectors & sectors != 0 {
                sectors &= !mshr.sectors;
                mshr.joined = self.waiters.insert(Waiter { tracker, next: mshr.joined });
                joined += 1;
            }
            at = mshr.next_in_bucket;
        }
        (sectors, joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiters(outstanding: &mut Outstanding, line: u32) -> Vec<(u32, bool)> {
        let mut mshr = outstanding.remove_line(line);
        std::iter::from_fn(|| outstanding.next_waiter(&mut mshr)).collect()
    }

    #[test]
    fn an_access_joins_what_is_under_way() {
        let mut outstanding = Outstanding::default();
        let first = outstanding.add_line(0x1000, 0b0011, true, 7, 10);
        let bypassing = outstanding.add_line(0x1000, 0b1100, false, 8, 10);
        // Sector 1 is on its way; 2 comes, but not into the L1.
        assert_eq!(outstanding.join(0x1000, 0b0110, 9), (0b0100, 1));
        assert_eq!(outstanding.join(0x2000, 0b0001, 9), (0b0001, 0));
        assert_eq!(waiters(&mut outstanding, first), [(9, false), (7, true)]);
        assert_eq!(outstanding.join(0x1000, 0b0001, 9), (0b0001, 0), "the line has come");
        assert_eq!(waiters(&mut outstanding, bypassing), [(8, true)]);
        assert_eq!(outstanding.lines(), 0);
    }

    #[test]
    fn lines_of_one_bucket_are_told_apart() {
        let mut outstanding = Outstanding::default();
        let other = (1..100_000u64).map(|number| number << 7).find(|&line| bucket(line) == bucket(0));
        let other = other.expect("256 buckets for so many lines");
        let keys = [0, other, 0].map(|line| outstanding.add_line(line, 1, true, 1, 0));
        // The middle one of the chain leaves first.
        assert_eq!(outstanding.remove_line(keys[1]).line, other);
        assert_eq!(outstanding.join(other, 1, 2), (1, 0));
        assert_eq!(outstanding.join(0, 1, 2), (0, 1));
        assert_eq!([keys[0], keys[2]].map(|key| outstanding.remove_line(key).line), [0, 0]);
    }
}
