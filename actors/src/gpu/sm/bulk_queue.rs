//! The state of the SM's unit for copies of many bytes: the copies under way, and those that have accesses to make.

use super::coalescer::Lines;
use super::warps::cluster::Sent;
use crate::slab::Slab;
use balar_isa::execution::{BulkCopy, MemoryAccess};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A copy that is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnderWay {
    /// The warp's slot.
    pub warp: u16,
    /// The generation of that slot.
    pub generation: u32,
    /// What it is.
    pub copy: BulkCopy,
    /// The group of the warp's copies that it is in, where it is in one.
    pub group: u32,
    /// The key of its answers.
    pub key: u32,
    /// The number of the launch.
    pub launch: u32,
    /// The first cycle in which it can make an access.
    pub start: u64,
    /// The accesses that it has not made.
    pub accesses: VecDeque<MemoryAccess>,
    /// What it sends to other CTAs of the cluster when it is done.
    pub sent: Option<Sent>,
}

/// The state of the unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BulkCopies {
    /// The copies.
    pub copies: Slab<UnderWay>,
    /// Those that have accesses to make, in their order.
    pub queue: VecDeque<u32>,
    /// All of them, in the order in which they began.
    pub under_way: Vec<u32>,
    /// The first cycle in which it can make the next access.
    pub free: u64,
    /// The next access waits for room below the L1.
    pub waits_for_room: bool,
    /// Scratch.
    #[serde(skip)]
    pub lines: Lines,
}

impl BulkCopies {
    /// The cycle in which it has something to do by itself; `u64::MAX` where it has nothing.
    #[inline]
    pub fn due(&self) -> u64 {
        match self.queue.front().and_then(|first| self.copies.get(*first)) {
            Some(first) if !self.waits_for_room => first.start.max(self.free),
            _ => u64::MAX,
        }
    }

    /// There is room below the L1 again.
    #[inline]
    pub fn has_room(&mut self) {
        self.waits_for_room = false;
    }

    /// Copies under way.
    pub fn len(&self) -> u32 {
        self.copies.len()
    }
}
