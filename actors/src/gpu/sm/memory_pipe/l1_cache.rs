//! The tags of the L1 data cache: sectored, streaming, write-through without write allocate.

use balar_protocol::memory::LINE_BYTES;
use balar_protocol::prefetch::prefetch;
use serde::{Deserialize, Serialize};

/// No line has this tag.
const EMPTY: u64 = u64::MAX;
/// No entry.
const NONE: u16 = u16::MAX;

/// A place for a line, in its set's list from the most to the least recently used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    line: u64,
    newer: u16,
    older: u16,
    set: u16,
    valid_sectors: u8,
}

/// Tags and sector states; values are not here. A set has hundreds of ways, so a line is found by a hash and the least recently
/// used one by a list, never by a search through the set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct L1Cache {
    sets: usize,
    ways: usize,
    entries: Vec<Entry>,
    /// (most, least) recently used entry of each set.
    ends: Vec<(u16, u16)>,
    /// Open addressing with linear probing: entries by line. Its length is a power of two.
    index: Vec<u16>,
}

impl L1Cache {
    /// A cache of `bytes` in `sets` sets; fewer bytes than a line for each set make a cache that holds nothing.
    pub fn new(bytes: u64, sets: u32) -> L1Cache {
        let sets = sets as usize;
        let mut cache = L1Cache { sets, ways: 0, entries: Vec::new(), ends: Vec::new(), index: Vec::new() };
        cache.resize(bytes);
        cache
    }

    /// Drops everything, as between kernels.
    pub fn invalidate(&mut self) {
        for set in 0..self.sets.min(self.entries.len()) {
            // What holds a line was used after what holds none.
            let mut at = self.ends[set].0;
            while let Some(&Entry { line, older, .. }) = self.entries.get(usize::from(at))
                && line != EMPTY
            {
                // Where all lines go, all that follows the home of one may go.
                let mut slot = self.slot(line);
                while self.index[slot] != NONE {
                    self.index[slot] = NONE;
                    slot = (slot + 1) & (self.index.len() - 1);
                }
                self.entries[usize::from(at)].line = EMPTY;
                self.entries[usize::from(at)].valid_sectors = 0;
                at = older;
            }
        }
    }

    /// Changes the size, up to 8 MiB; what was cached is dropped.
    pub fn resize(&mut self, bytes: u64) {
        self.ways = ((bytes / LINE_BYTES).min(1 << 16) as usize / self.sets).min(usize::from(NONE - 1) / self.sets);
        let (sets, ways) = (self.sets, self.ways);
        self.index.clear();
        self.index.resize((2 * sets * ways).next_power_of_two(), NONE);
        self.ends.clear();
        self.entries.clear();
        for set in 0..sets {
            let first = (set * ways) as u16;
            let last = first + (ways.max(1) - 1) as u16;
            self.ends.push((first, last));
            self.entries.extend((first..first + ways as u16).map(|at| Entry {
                line: EMPTY,
                newer: if at == first { NONE } else { at - 1 },
                older: if at == last { NONE } else { at + 1 },
                set: set as u16,
                valid_sectors: 0,
            }));
        }
    }

    /// The set of a line. Higher address bits are folded in, so that power-of-two strides use all sets.
    fn set(&self, line: u64) -> usize {
        let number = line / LINE_BYTES;
        let folded = number ^ number >> 4 ^ number >> 9 ^ number >> 15;
        folded as usize & (self.sets - 1)
    }

    /// Where the search for a line begins.
    fn slot(&self, line: u64) -> usize {
        let hash = (line / LINE_BYTES).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & (self.index.len() - 1)
    }

    /// Brings closer what a search for a line will look at.
    #[inline]
    pub fn prefetch(&self, line: u64) {
        prefetch(&self.index[self.slot(line)]);
    }

    fn find(&self, line: u64) -> Option<u16> {
        let mut slot = self.slot(line);
        loop {
            let at = self.index[slot];
            if at == NONE {
                return None;
            }
            if self.entries[usize::from(at)].line == line {
                return Some(at);
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
    }

    /// Makes an entry the most recently used of its set, and gives it.
    #[inline]
    fn touch(&mut self, at: u16) -> &mut Entry {
        let entries = self.entries.as_mut_slice();
        let entry = &mut entries[usize::from(at)];
        let (newest, oldest) = &mut self.ends[usize::from(entry.set)];
        if *newest != at {
            let before = std::mem::replace(newest, at);
            let newer = std::mem::replace(&mut entry.newer, NONE);
            let older = std::mem::replace(&mut entry.older, before);
            entries[usize::from(before)].newer = at;
            entries[usize::from(newer)].older = older;
            if *oldest == at {
                *oldest = newer;
            } else {
                entries[usize::from(older)].newer = newer;
            }
        }
        &mut self.entries[usize::from(at)]
    }

    fn insert_index(&mut self, line: u64, at: u16) {
        let mut slot = self.slot(line);
        while self.index[slot] != NONE {
            slot = (slot + 1) & (self.index.len() - 1);
        }
        self.index[slot] = at;
    }

    /// Takes a line out of the index; entries behind it move up, so that no search ends too early.
    fn remove_index(&mut self, line: u64) {
        let mask = self.index.len() - 1;
        let mut hole = self.slot(line);
        while self.index[hole] != NONE && self.entries[usize::from(self.index[hole])].line != line {
            hole = (hole + 1) & mask;
        }
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let at = self.index[slot];
            if at == NONE {
                break;
            }
            let home = self.slot(self.entries[usize::from(at)].line);
            // It may move if its home is not between the hole and where it is.
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.index[hole] = at;
                hole = slot;
            }
        }
        self.index[hole] = NONE;
    }

    /// Of `sectors` of `line`, those that are cached. Counts as a use.
    #[inline(always)]
    pub fn lookup(&mut self, line: u64, sectors: u8) -> u8 {
        match self.find(line) {
            Some(at) => self.touch(at).valid_sectors & sectors,
            None => 0,
        }
    }

    /// Puts sectors of a line into the cache; true where another line had to go.
    pub fn fill(&mut self, line: u64, sectors: u8) -> bool {
        if self.ways == 0 {
            return false;
        }
        if let Some(at) = self.find(line) {
            self.touch(at).valid_sectors |= sectors;
            return false;
        }
        let at = self.ends[self.set(line)].1;
        let old = self.entries[usize::from(at)].line;
        if old != EMPTY {
            self.remove_index(old);
        }
        self.insert_index(line, at);
        let entry = self.touch(at);
        (entry.line, entry.valid_sectors) = (line, sectors);
        old != EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_a_line_fill_one_by_one() {
        let mut cache = L1Cache::new(32 << 10, 4);
        assert_eq!(cache.lookup(0x1000, 0b1111), 0);
        assert!(!cache.fill(0x1000, 0b0011));
        assert_eq!(cache.lookup(0x1000, 0b0110), 0b0010);
        assert!(!cache.fill(0x1000, 0b0100));
        assert_eq!(cache.lookup(0x1000, 0b1111), 0b0111);
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut cache = L1Cache::new(2 * 128, 1);
        cache.fill(0, 1);
        cache.fill(128, 1);
        cache.lookup(0, 1);
        assert!(cache.fill(256, 1));
        assert_eq!((cache.lookup(0, 1), cache.lookup(128, 1), cache.lookup(256, 1)), (1, 0, 1));
    }

    #[test]
    fn a_working_set_of_the_capacity_stays() {
        let mut cache = L1Cache::new(128 << 10, 4);
        for line in 0..1024 {
            cache.fill(line * 128, 0b1111);
        }
        assert!((0..1024).all(|line| cache.lookup(line * 128, 0b1111) == 0b1111));
    }

    #[test]
    fn agrees_with_a_list_in_order_of_use() {
        let mut cache = L1Cache::new(64 * 128, 4);
        let mut reference: Vec<Vec<u64>> = vec![Vec::new(); 4];
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random.is_multiple_of(997) {
                cache.invalidate();
                reference.iter_mut().for_each(Vec::clear);
            }
            let line = (random >> 33) % 150 * LINE_BYTES;
            let lines = &mut reference[cache.set(line)];
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
        let mut cache = L1Cache::new(0, 4);
        assert!(!cache.fill(0, 1));
        assert_eq!(cache.lookup(0, 1), 0);
    }
}
