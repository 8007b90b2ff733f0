//! The TLBs an SM reaches without the GMMU: fully associative, least recently used out.

use serde::{Deserialize, Serialize};

/// A fully associative translation cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tlb {
    page_shift: u32,
    capacity: usize,
    /// (page number, last use), unordered.
    entries: Vec<(u64, u64)>,
    uses: u64,
    recent: u64,
}

impl Tlb {
    /// `capacity` entries of `page_bytes` (a power of two) each.
    pub fn new(page_bytes: u64, capacity: u32) -> Tlb {
        let capacity = capacity as usize;
        Tlb {
            page_shift: page_bytes.trailing_zeros(),
            capacity,
            entries: Vec::with_capacity(capacity),
            uses: 0,
            recent: u64::MAX,
        }
    }

    /// Is the page of `address` cached? Counts as a use.
    #[inline]
    pub fn lookup(&mut self, address: u64) -> bool {
        let page = address >> self.page_shift;
        if page == self.recent {
            return true;
        }
        self.uses += 1;
        match self.entries.iter_mut().find(|(number, _)| *number == page) {
            Some(entry) => {
                entry.1 = self.uses;
                self.recent = page;
                true
            }
            None => false,
        }
    }

    /// Caches the page of `address`.
    pub fn insert(&mut self, address: u64) {
        let page = address >> self.page_shift;
        self.uses += 1;
        if self.entries.iter().any(|&(number, _)| number == page) || self.capacity == 0 {
            return;
        }
        if self.entries.len() == self.capacity {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, (_, used))| *used).map_or(0, |(at, _)| at);
            if self.entries[oldest].0 == self.recent {
                self.recent = u64::MAX;
            }
            self.entries.swap_remove(oldest);
        }
        self.entries.push((page, self.uses));
    }

    /// Drops the pages that overlap the range.
    pub fn invalidate(&mut self, address: u64, bytes: u64) {
        let first = address >> self.page_shift;
        let last = address.saturating_add(bytes.max(1) - 1) >> self.page_shift;
        self.entries.retain(|(page, _)| !(first..=last).contains(page));
        self.recent = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_is_entries_times_page() {
        let mut tlb = Tlb::new(2 << 20, 16);
        for page in 0..16 {
            assert!(!tlb.lookup(page << 21));
            tlb.insert(page << 21);
        }
        assert!((0..16).all(|page| tlb.lookup((page << 21) + 12345)));
        tlb.insert(16 << 21);
        assert!(!tlb.lookup(0), "the least recently used page went");
        assert!(tlb.lookup(1 << 21));
    }

    #[test]
    fn a_shootdown_drops_the_range() {
        let mut tlb = Tlb::new(4096, 4);
        tlb.insert(0);
        tlb.insert(4096);
        tlb.insert(8192);
        tlb.invalidate(4096, 1);
        assert_eq!((tlb.lookup(0), tlb.lookup(4096), tlb.lookup(8192)), (true, false, true));
    }
}
