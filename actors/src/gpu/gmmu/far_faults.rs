//! Far faults of a GMMU: who waits for which page, and which of them the driver has been told of, or will be.

use super::walks::Asked;
use balar_protocol::migration::FaultEntry;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// How a GMMU tells the driver of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FaultReporting {
    /// By a buffer from which the driver fetches, as NVIDIA's GPUs do. Each TLB has a fault for each page, until requests are replayed.
    Buffered {
        /// Entries of the buffer.
        entries: u32,
        /// Entries that a TLB can make between two replays; what faults beyond them waits for the next.
        per_tlb: u32,
    },
    /// By a message with the pages that fault in a cycle and that nothing waits for yet, as UVMSmart does.
    EachCycle,
}

/// What is to be done about a request that has faulted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewFault {
    /// Nothing waited for the page yet.
    pub is_first: bool,
    /// The driver is or will be told.
    pub is_entered: bool,
    /// The driver is told that the buffer is no longer empty.
    pub is_pending: bool,
    /// The buffer was full.
    pub has_overflowed: bool,
}

/// The requests that wait for pages (the miss-status registers of far faults), and the fault buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FarFaults {
    /// By page, in the order in which they came.
    waiting: BTreeMap<u64, Vec<Asked>>,
    /// The fault buffer.
    buffer: VecDeque<FaultEntry>,
    /// Faults that found it full since the last fetch.
    overflows: u32,
    /// The (page, TLB) pairs that have made an entry since the last replay.
    entered: BTreeSet<(u64, u16)>,
    /// How many of them each TLB has made.
    of_tlb: Vec<u32>,
    /// Faults of this cycle of which the driver is to be told, where it is told each cycle.
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
            entered: BTreeSet::new(),
            of_tlb: vec![0; tlbs],
            fresh: Vec::new(),
            fresh_cycle: u64::MAX,
        }
    }

    /// Are they of as many TLBs?
    pub fn is_like(&self, other: &FarFaults) -> bool {
        self.of_tlb.len() == other.of_tlb.len()
    }

    /// A request waits for a page from now on.
    pub fn add(&mut self, page: u64, asked: Asked, cycle: u64, reporting: FaultReporting) -> NewFault {
        let waiting = self.waiting.entry(page).or_default();
        let mut new = NewFault { is_first: waiting.is_empty(), ..NewFault::default() };
        waiting.push(asked);
        let entry = FaultEntry { page, access: asked.access, tlb: asked.tlb };
        match reporting {
            FaultReporting::EachCycle if new.is_first => {
                new.is_entered = true;
                self.fresh.push(entry);
                self.fresh_cycle = cycle;
            }
            FaultReporting::EachCycle => {}
            FaultReporting::Buffered { entries, per_tlb } => {
                let of_tlb = &mut self.of_tlb[usize::from(asked.tlb)];
                if self.entered.contains(&(page, asked.tlb)) || *of_tlb >= per_tlb {
                    return new;
                }
                if self.buffer.len() >= entries as usize {
                    new.has_overflowed = true;
                    self.overflows += 1;
                    return new;
                }
                *of_tlb += 1;
                self.entered.insert((page, asked.tlb));
                new.is_entered = true;
                new.is_pending = self.buffer.is_empty();
                self.buffer.push_back(entry);
            }
        }
        new
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

    /// All requests are tried again: those that wait, by page, and each TLB can make as many entries as before. The buffer is emptied
    /// where `flush` is set.
    pub fn replay(&mut self, flush: bool) -> Vec<(u64, Asked)> {
        if flush {
            self.buffer.clear();
        }
        self.entered.clear();
        self.of_tlb.fill(0);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.flat_map(|(page, requests)| requests.into_iter().map(move |asked| (page, asked))).collect()
    }

    /// Takes the requests that wait for pages of the range; their TLBs can make as many entries more.
    pub fn take_waiting(&mut self, pages: Range<u64>) -> Vec<(u64, Asked)> {
        let mut taken = Vec::new();
        while let Some((&page, _)) = self.waiting.range(pages.clone()).next() {
            let requests = self.waiting.remove(&page).unwrap_or_default();
            taken.extend(requests.into_iter().map(|asked| (page, asked)));
        }
        while let Some(&(page, tlb)) = self.entered.range((pages.start, 0)..(pages.end, 0)).next() {
            self.entered.remove(&(page, tlb));
            self.of_tlb[usize::from(tlb)] -= 1;
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
