//! How long translations take: the TLB of a GMMU, its walkers and its page-walk cache.
//!
//! The translation of an address that is mapped onto itself is known when it is asked for, and so is the time of its answer. Managed pages
//! can be unmapped meanwhile: the page table is looked up when a walk ends.

use super::parameters::GmmuParameters;
use crate::gpu::tlb::{Tlb, identity};
use crate::unified_memory::BLOCK_BYTES;
use balar_protocol::translation::{PageAccess, Translation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The number of the TLB that asks.
    pub tlb: u16,
    /// The TLB's number for it.
    pub id: u32,
    /// The kind of access to the page.
    pub access: PageAccess,
    /// Requests of the SM that wait for the answer.
    pub requests: u32,
    /// Entries of the fault buffer that were made for them since the last replay.
    pub entered: u32,
    /// The cycle in which it came.
    pub arrived: u64,
    /// The cycle in which it faulted first.
    pub faulted: Option<u64>,
}

impl Asked {
    /// One request, about which nothing is known yet.
    pub fn new(tlb: u16, id: u32, access: PageAccess, arrived: u64) -> Asked {
        Asked { tlb, id, access, requests: 1, entered: 0, arrived, faulted: None }
    }

    /// The number of the TLB, and its number for the request.
    pub fn number(&self) -> (u16, u32) {
        (self.tlb, self.id)
    }
}

/// A lookup of the page table that is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Due {
    /// The TLB has the page of a request.
    Hit(u64, Asked),
    /// A walk to a page ends.
    Walk(u64),
}

/// A walk under way, for requests of one page.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Walk {
    ends: u64,
    requests: Vec<Asked>,
}

/// How a translation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In the TLB.
    Hit,
    /// It joined a walk under way.
    Joined,
    /// It has a walk of its own; is all but its last step in the page-walk cache?
    Walked {
        /// The page-walk cache has the block.
        cached: bool,
    },
}

/// The TLB of a GMMU and its walks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Walks {
    /// With the cycle in which the walk of each entry ends.
    tlb: Tlb<u64>,
    /// Blocks whose page tables are known.
    cache: Tlb<()>,
    /// First free request slot (cycle x requests a cycle).
    free: u64,
    /// The cycle each walker is free again.
    walkers: Vec<u64>,
    /// Walks of managed pages, by the page.
    under_way: BTreeMap<u64, Walk>,
    /// In the order in which they are due: by (cycle, sequence).
    due: BTreeMap<(u64, u64), Due>,
    sequence: u64,
}

impl Walks {
    /// Nothing is known, and nothing under way.
    pub fn new(parameters: &GmmuParameters) -> Walks {
        Walks {
            tlb: Tlb::new(parameters.entry_reach.0, parameters.entries, parameters.ways),
            cache: Tlb::new(BLOCK_BYTES, parameters.walk_cache_entries, 0),
            free: 0,
            walkers: vec![0; parameters.walkers as usize],
            under_way: BTreeMap::new(),
            due: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// Has the other as many entries and walkers?
    pub fn is_like(&self, other: &Walks) -> bool {
        self.tlb.is_like(&other.tlb) && self.cache.is_like(&other.cache) && self.walkers.len() == other.walkers.len()
    }

    /// The cycle in which a request is taken that came in `cycle`.
    pub fn take_slot(&mut self, cycle: u64, parameters: &GmmuParameters) -> u64 {
        let rate = u64::from(parameters.requests_per_cycle);
        let slot = self.free.max(cycle * rate);
        self.free = slot + 1;
        slot / rate
    }

    /// A walker is taken, from `from` on at the earliest; gives the cycle in which its walk ends.
    fn walk(&mut self, from: u64, latency: u32) -> u64 {
        let mut start = from;
        if let Some(walker) = self.walkers.iter_mut().min() {
            start = start.max(*walker);
            *walker = start + u64::from(latency);
        }
        start + u64::from(latency)
    }

    /// The cycle in which the translation of an address is known that is mapped onto itself, with `2^bits` bytes around it, and how it is found.
    pub fn translate(&mut self, address: u64, bits: u8, cycle: u64, parameters: &GmmuParameters) -> (u64, Found) {
        let hit = cycle + u64::from(parameters.hit_latency);
        if let Some((_, &mut ready)) = self.tlb.lookup(address, false) {
            return (hit.max(ready), if ready <= cycle { Found::Hit } else { Found::Joined });
        }
        let ready = self.walk(hit, parameters.walk_latency);
        self.tlb.insert(address, &identity(address, bits), ready);
        (ready, Found::Walked { cached: false })
    }

    /// The lookup of a managed page begins. It ends with the walks that are [`due`](Walks::next_due).
    pub fn begin(&mut self, page: u64, asked: Asked, cycle: u64, parameters: &GmmuParameters) -> Found {
        let hit = cycle + u64::from(parameters.hit_latency);
        if self.tlb.lookup(page, asked.access.writes()).is_some() {
            self.enqueue(hit, Due::Hit(page, asked));
            return Found::Hit;
        }
        self.begin_walk(page, asked, hit, parameters)
    }

    /// A walk begins for a request, or it joins one under way.
    pub fn begin_walk(&mut self, page: u64, asked: Asked, from: u64, parameters: &GmmuParameters) -> Found {
        if let Some(walk) = self.under_way.get_mut(&page) {
            if walk.ends >= from {
                walk.requests.push(asked);
            } else {
                self.enqueue(from, Due::Hit(page, asked));
            }
            return Found::Joined;
        }
        let cached = self.cache.lookup(page, false).is_some();
        let ends = self.walk(from, if cached { parameters.walk_cache_latency } else { parameters.walk_latency });
        self.under_way.insert(page, Walk { ends, requests: vec![asked] });
        self.enqueue(ends, Due::Walk(page));
        Found::Walked { cached }
    }

    /// The request with this number for which a walk is under way.
    pub fn find(&mut self, page: u64, number: (u16, u32)) -> Option<&mut Asked> {
        let walk = self.under_way.get_mut(&page)?;
        walk.requests.iter_mut().find(|asked| asked.number() == number)
    }

    fn enqueue(&mut self, cycle: u64, due: Due) {
        self.due.insert((cycle, self.sequence), due);
        self.sequence += 1;
    }

    /// The cycle in which the next lookup is due; `u64::MAX` where none is.
    #[inline]
    pub fn next_due(&self) -> u64 {
        self.due.first_key_value().map_or(u64::MAX, |(&(cycle, _), _)| cycle)
    }

    /// The next lookup that is due by `cycle`.
    pub fn take_due(&mut self, cycle: u64) -> Option<Due> {
        self.due.first_entry().filter(|entry| entry.key().0 <= cycle).map(|entry| entry.remove())
    }

    /// A walk has ended; the page table's part for the block is known, and the translation where there is one. Gives the requests that waited.
    pub fn end_walk(&mut self, page: u64, translation: Option<&Translation>) -> Vec<Asked> {
        self.cache.insert(page, &identity(page, BLOCK_BYTES.trailing_zeros() as u8), ());
        if let Some(translation) = translation {
            self.tlb.insert(page, translation, 0);
        }
        self.under_way.remove(&page).map(|walk| walk.requests).unwrap_or_default()
    }

    /// Forgets the translations of the range.
    pub fn invalidate(&mut self, address: u64, bytes: u64) {
        self.tlb.invalidate(address, bytes, |_, _| {});
        self.cache.invalidate(address, bytes, |_, ()| {});
    }

    /// Lookups that are not over.
    pub fn under_way(&self) -> usize {
        self.due.len()
    }
}
