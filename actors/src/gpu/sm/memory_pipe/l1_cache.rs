//! The tags of the L1 data cache: sectored, streaming, write-through without write allocate.

use balar_protocol::memory::LINE_BYTES;
use balar_protocol::prefetch::prefetch;
use serde::{Deserialize, Serialize};

/// No line has this tag.
const EMPTY: u64 = u64::MAX;

/// A line and which of its sectors are here.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    line: u64,
    valid_sectors: u8,
}

/// A place without a line.
const NONE: Entry = Entry { line: EMPTY, valid_sectors: 0 };

/// Tags and sector states; values are not here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct L1Cache {
    sets: usize,
    ways: usize,
    /// Set after set, each from the most to the least recently used.
    entries: Vec<Entry>,
}

impl L1Cache {
    /// A cache of `bytes` in sets of `ways` lines; fewer bytes than a set make a cache that holds nothing.
    pub fn new(bytes: u64, ways: u32) -> L1Cache {
        let mut cache = L1Cache { sets: 0, ways: ways as usize, entries: Vec::new() };
        cache.resize(bytes);
        cache
    }

    /// Drops everything, as between kernels.
    pub fn invalidate(&mut self) {
        self.entries.fill(NONE);
    }

    /// Changes the size; cached lines are dropped. Lines that do not fill a set are left out.
    pub fn resize(&mut self, bytes: u64) {
        self.sets = (bytes / LINE_BYTES) as usize / self.ways;
        self.entries.clear();
        self.entries.resize(self.sets * self.ways, NONE);
    }

    /// The set of a line. There is at least one.
    #[inline]
    fn set(&mut self, line: u64) -> &mut [Entry] {
        let first = (line / LINE_BYTES) as usize % self.sets * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// Prefetches into the host's cache the entries that a search for a line will look at.
    #[inline]
    pub fn prefetch(&self, line: u64) {
        if self.sets > 0 {
            prefetch(&self.entries[(line / LINE_BYTES) as usize % self.sets * self.ways]);
        }
    }

    /// The cached sectors among `sectors` of `line`. Counts as a use.
    #[inline(always)]
    pub fn lookup(&mut self, line: u64, sectors: u8) -> u8 {
        if self.sets == 0 {
            return 0;
        }
        let set = self.set(line);
        match set.iter().position(|entry| entry.line == line) {
            Some(at) => {
                set[..=at].rotate_right(1);
                set[0].valid_sectors & sectors
            }
            None => 0,
        }
    }

    /// Sectors of a line are no longer here. That is no use of the line.
    pub fn forget(&mut self, line: u64, sectors: u8) {
        if self.sets == 0 {
            return;
        }
        if let Some(entry) = self.set(line).iter_mut().find(|entry| entry.line == line) {
            entry.valid_sectors &= !sectors;
        }
    }

    /// No line of the range is here any more.
    pub fn forget_range(&mut self, address: u64, bytes: u64) {
        if self.sets == 0 || bytes == 0 {
            return;
        }
        let first = address / LINE_BYTES * LINE_BYTES;
        let last = address.saturating_add(bytes - 1) / LINE_BYTES * LINE_BYTES;
        let lines = (last - first) / LINE_BYTES + 1;
        if lines < self.sets as u64 {
            for line in (first..=last).step_by(LINE_BYTES as usize) {
                let set = self.set(line);
                if let Some(at) = set.iter().position(|entry| entry.line == line) {
                    set[at..].rotate_left(1);
                    set[set.len() - 1] = NONE;
                }
            }
        } else {
            for set in self.entries.chunks_mut(self.ways) {
                let is_gone = |entry: &Entry| entry.line == EMPTY || (first..=last).contains(&entry.line);
                // A set's lines keep their order, and free places are behind them.
                set.sort_by_key(is_gone);
                set.iter_mut().filter(|entry| is_gone(entry)).for_each(|entry| *entry = NONE);
            }
        }
    }

    /// Puts sectors of a line into the cache; true where another line had to go.
    pub fn fill(&mut self, line: u64, sectors: u8) -> bool {
        if self.sets == 0 {
            return false;
        }
        let set = self.set(line);
        let at = set.iter().position(|entry| entry.line == line);
        let last = set.len() - 1;
        set[..=at.unwrap_or(last)].rotate_right(1);
        let old = std::mem::replace(&mut set[0].line, line);
        if at.is_some() {
            set[0].valid_sectors |= sectors;
            return false;
        }
        set[0].valid_sectors = sectors;
        old != EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_a_line_fill_one_by_one() {
        let mut cache = L1Cache::new(32 << 10, 3);
        assert_eq!(cache.lookup(0x1000, 0b1111), 0);
        assert!(!cache.fill(0x1000, 0b0011));
        assert_eq!(cache.lookup(0x1000, 0b0110), 0b0010);
        assert!(!cache.fill(0x1000, 0b0100));
        assert_eq!(cache.lookup(0x1000, 0b1111), 0b0111);
    }

    #[test]
    fn sectors_are_forgotten_one_by_one() {
        let mut cache = L1Cache::new(32 << 10, 3);
        cache.fill(0x1000, 0b1111);
        cache.forget(0x1000, 0b0101);
        cache.forget(0x2000, 0b1111);
        assert_eq!((cache.lookup(0x1000, 0b1111), cache.lookup(0x2000, 0b1111)), (0b1010, 0));
    }

    #[test]
    fn a_range_is_forgotten_line_by_line_or_set_by_set() {
        // 960 lines in 320 sets: few lines are looked for, for many the whole cache is.
        for (address, bytes, first, last) in
            [(10 * 128, 5 * 128, 10, 14), (1279, 130, 9, 11), (100 * 128, 700 * 128, 100, 799), (0, u64::MAX, 0, 959)]
        {
            let mut cache = L1Cache::new(120 << 10, 3);
            for line in 0..960 {
                cache.fill(line * 128, 0b1111);
            }
            cache.forget_range(address, bytes);
            for line in 0..960 {
                let here = if (first..=last).contains(&line) { 0 } else { 0b1111 };
                assert_eq!(cache.lookup(line * 128, 0b1111), here, "{line} of {address:#x} {bytes:#x}");
            }
            assert!(!cache.fill((first + 320 * 3) * 128, 1), "there is room again");
        }
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut cache = L1Cache::new(2 * 128, 2);
        cache.fill(0, 1);
        cache.fill(128, 1);
        cache.lookup(0, 1);
        assert!(cache.fill(256, 1));
        assert_eq!((cache.lookup(0, 1), cache.lookup(128, 1), cache.lookup(256, 1)), (1, 0, 1));
    }

    #[test]
    fn a_working_set_of_the_capacity_stays() {
        let mut cache = L1Cache::new(120 << 10, 3);
        for line in 7..967 {
            cache.fill(line * 128, 0b1111);
        }
        assert!((7..967).all(|line| cache.lookup(line * 128, 0b1111) == 0b1111));
    }

    #[test]
    fn agrees_with_a_list_in_order_of_use() {
        let mut cache = L1Cache::new(66 * 128, 16);
        let mut reference: Vec<Vec<u64>> = vec![Vec::new(); 4];
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random.is_multiple_of(997) {
                cache.invalidate();
                reference.iter_mut().for_each(Vec::clear);
            }
            let line = (random >> 33) % 150 * LINE_BYTES;
            let lines = &mut reference[(line / LINE_BYTES % 4) as usize];
            let held = lines.iter().position(|&other| other == line);
            if random >> 32 & 1 == 0 {
                assert_eq!(cache.lookup(line, 1), u8::from(held.is_some()));
                if let Some(at) = held {
                    lines.remove(at);
                    lines.push(line);
                }
            } else {
                let full = lines.len() == 16 && held.is_none();
                assert_eq!(cache.fill(line, 1), full);
                if let Some(at) = held.or(full.then_some(0)) {
                    lines.remove(at);
                }
                lines.push(line);
            }
        }
    }

    #[test]
    fn no_capacity_caches_nothing() {
        let mut cache = L1Cache::new(127, 1);
        assert!(!cache.fill(0, 1));
        assert_eq!(cache.lookup(0, 1), 0);
    }
}
