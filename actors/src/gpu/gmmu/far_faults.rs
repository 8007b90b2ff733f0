//! Far faults of a GMMU: who waits for which page, and which of them the driver has been told of, or will be.

use super::parameters::FaultReporting;
use super::walks::Asked;
use balar_protocol::migration::FaultEntry;
use balar_protocol::translation::PageAccess;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What is to be done about requests that have faulted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewFault {
    /// Nothing waited for the page yet.
    pub is_first: bool,
    /// Entries that the driver is or will be told of.
    pub entries: u32,
    /// The driver is told that the buffer is no longer empty.
    pub is_pending: bool,
    /// Requests that found the buffer full.
    pub overflows: u32,
}

/// The requests that wait for pages (the miss-status registers of far faults), and the fault buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FarFaults {
    /// Requests by page, in the order in which they came.
    waiting: BTreeMap<u64, Vec<Asked>>,
    /// The fault buffer.
    buffer: VecDeque<FaultEntry>,
    /// Faults that found it full since the last fetch.
    overflows: u32,
    /// Entries that each TLB has made since the last replay.
    of_tlb: Vec<u32>,
    /// Faults of this cycle that the driver is to be told of, where it is told each cycle.
    fresh: Vec<FaultEntry>,
    fresh_cycle: u64,
}

impl FarFaults {
    /// No fault of so many TLBs.
    pub fn new(tlbs: usize) -> FarFaults {
        FarFaults {
            waiting: BTreeMap::new(),
            buffer: VecDeque::new(),
            overflows: 0,
            of_tlb: vec![0; tlbs],
            fresh: Vec::new(),
            fresh_cycle: u64::MAX,
        }
    }

    /// Are they of as many TLBs?
    pub fn is_like(&self, other: &FarFaults) -> bool {
        self.of_tlb.len() == other.of_tlb.len()
    }

    /// A request waits for a page from now on, for as many as the SM has.
    pub fn add(&mut self, page: u64, asked: Asked, cycle: u64, reporting: FaultReporting) -> NewFault {
        let waiting = self.waiting.entry(page).or_default();
        let is_first = waiting.is_empty();
        waiting.push(Asked { requests: 0, entered: 0, ..asked });
        let new = self.join(page, asked.number(), (asked.requests, asked.access), reporting);
        if !is_first || reporting != FaultReporting::EachCycle {
            return NewFault { is_first, ..new };
        }
        self.fresh.push(FaultEntry { page, access: asked.access, tlb: asked.tlb });
        self.fresh_cycle = cycle;
        NewFault { is_first, entries: 1, ..new }
    }

    /// More requests of an SM wait for a page. Where there is a buffer, it has entries for as many of them as there is room for.
    pub fn join(
        &mut self,
        page: u64,
        number: (u16, u32),
        (requests, access): (u32, PageAccess),
        reporting: FaultReporting,
    ) -> NewFault {
        // The last is the one that was added just now.
        let mut waiting = self.waiting.get_mut(&page).into_iter().flatten();
        let Some(asked) = waiting.rfind(|asked| asked.number() == number) else { return NewFault::default() };
        asked.requests += requests;
        let FaultReporting::Buffered { entries, per_tlb } = reporting else { return NewFault::default() };
        let of_tlb = &mut self.of_tlb[usize::from(asked.tlb)];
        let wanted = requests.min(per_tlb.saturating_sub(*of_tlb));
        let made = wanted.min(entries - self.buffer.len() as u32);
        let overflows = wanted - made;
        let is_pending = made > 0 && self.buffer.is_empty();
        asked.entered += made;
        *of_tlb += made;
        self.overflows += overflows;
        self.buffer.extend((0..made).map(|_| FaultEntry { page, access, tlb: number.0 }));
        NewFault { is_first: false, entries: made, is_pending, overflows }
    }

    /// The cycle at whose end the driver is to be told of its faults; `u64::MAX` where nothing is to be told.
    #[inline]
    pub fn next_due(&self) -> u64 {
        self.fresh_cycle
    }

    /// The faults of the cycle that ends.
    pub fn take_fresh(&mut self) -> Vec<FaultEntry> {
        self.fresh_cycle = u64::MAX;
        std::mem::take(&mut self.fresh)
    }

    /// The oldest entries of the buffer, at most so many, and how many found it full.
    pub fn fetch(&mut self, limit: u32) -> (Vec<FaultEntry>, u32) {
        let count = self.buffer.len().min(limit as usize);
        (self.buffer.drain(..count).collect(), std::mem::take(&mut self.overflows))
    }

    /// All requests are tried again, and each TLB can make as many entries as before. The buffer is emptied where `flush` is set. The
    /// TLBs try side by side, each in the order in which its requests came: they are given by the number of requests that their TLB has
    /// before them.
    pub fn replay(&mut self, flush: bool) -> Vec<(u64, Asked)> {
        if flush {
            self.buffer.clear();
        }
        self.of_tlb.fill(0);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let mut waiting: Vec<(u64, u64, Asked)> =
            waiting.flat_map(|(page, requests)| requests.into_iter().map(move |asked| (0, page, asked))).collect();
        waiting.sort_unstable_by_key(|(_, page, asked)| (asked.tlb, asked.arrived, asked.id, *page));
        let mut before = vec![0_u64; self.of_tlb.len()];
        for (turn, _, asked) in &mut waiting {
            let before = &mut before[usize::from(asked.tlb)];
            *turn = std::mem::replace(before, *before + u64::from(asked.requests));
        }
        // Stable: a TLB's requests stay in their order.
        waiting.sort_by_key(|(turn, _, asked)| (*turn, asked.tlb));
        waiting.into_iter().map(|(_, page, asked)| (page, asked)).collect()
    }

    /// Takes the requests that wait for pages of the range; their TLBs can make as many entries more.
    pub fn take_waiting(&mut self, pages: Range<u64>) -> Vec<(u64, Asked)> {
        let mut taken = Vec::new();
        while let Some((&page, _)) = self.waiting.range(pages.clone()).next() {
            let requests = self.waiting.remove(&page).unwrap_or_default();
            taken.extend(requests.into_iter().map(|asked| (page, asked)));
        }
        for (_, asked) in &taken {
            self.of_tlb[usize::from(asked.tlb)] -= asked.entered;
        }
        taken
    }

    /// The driver is told of no page of the range any more.
    pub fn forget_entries(&mut self, pages: &Range<u64>) {
        self.buffer.retain(|entry| !pages.contains(&entry.page));
        self.fresh.retain(|entry| !pages.contains(&entry.page));
    }

    /// Requests that wait, the pages that they wait for, and the first of these.
    pub fn waiting(&self) -> (usize, usize, u64) {
        let requests = self.waiting.values().map(Vec::len).sum();
        (requests, self.waiting.len(), self.waiting.first_key_value().map_or(0, |(&page, _)| page))
    }
}
