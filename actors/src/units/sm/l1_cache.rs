//! The tags of the L1 data cache: sectored, streaming, write-through without write allocate.

use balar_protocol::memory::LINE_BYTES;

/// No line has this tag.
const EMPTY: u64 = u64::MAX;

/// Tags and sector states; values are not here.
#[derive(Debug)]
pub struct L1Cache {
    sets: usize,
    ways: usize,
    tags: Vec<u64>,
    valid_sectors: Vec<u8>,
    last_use: Vec<u64>,
    uses: u64,
    /// The line looked up last and where it is: warps of a CTA walk lines together.
    recent: (u64, usize),
}

impl L1Cache {
    /// A cache of `bytes` in `sets` sets; fewer bytes than a line for each set make a cache that holds nothing.
    pub fn new(bytes: u64, sets: u32) -> L1Cache {
        let mut cache = L1Cache {
            sets: sets as usize,
            ways: 0,
            tags: Vec::new(),
            valid_sectors: Vec::new(),
            last_use: Vec::new(),
            uses: 0,
            recent: (EMPTY, 0),
        };
        cache.resize(bytes);
        cache
    }

    /// Changes the size; what was cached is dropped.
    pub fn resize(&mut self, bytes: u64) {
        self.ways = (bytes / LINE_BYTES) as usize / self.sets;
        let lines = self.ways * self.sets;
        self.tags.clear();
        self.tags.resize(lines, EMPTY);
        self.valid_sectors.clear();
        self.valid_sectors.resize(lines, 0);
        self.last_use.clear();
        self.last_use.resize(lines, 0);
        self.recent = (EMPTY, 0);
    }

    /// Drops everything, as between kernels.
    pub fn invalidate(&mut self) {
        self.tags.fill(EMPTY);
        self.valid_sectors.fill(0);
        self.last_use.fill(0);
        self.recent = (EMPTY, 0);
    }

    /// First index of the set of a line. Higher address bits are folded in, so that power-of-two strides use all sets.
    fn set(&self, line: u64) -> usize {
        let number = line / LINE_BYTES;
        let folded = number ^ number >> 4 ^ number >> 9 ^ number >> 15;
        (folded as usize & (self.sets - 1)) * self.ways
    }

    fn find(&mut self, line: u64) -> Option<usize> {
        if self.recent.0 == line {
            return Some(self.recent.1);
        }
        let first = self.set(line);
        let way = self.tags[first..first + self.ways].iter().position(|&tag| tag == line)?;
        self.recent = (line, first + way);
        Some(first + way)
    }

    /// Of `sectors` of `line`, those that are cached. Counts as a use.
    pub fn lookup(&mut self, line: u64, sectors: u8) -> u8 {
        self.uses += 1;
        match self.find(line) {
            Some(at) => {
                self.last_use[at] = self.uses;
                self.valid_sectors[at] & sectors
            }
            None => 0,
        }
    }

    /// Puts sectors of a line into the cache; true where another line had to go.
    pub fn fill(&mut self, line: u64, sectors: u8) -> bool {
        if self.ways == 0 {
            return false;
        }
        self.uses += 1;
        if let Some(at) = self.find(line) {
            self.valid_sectors[at] |= sectors;
            return false;
        }
        let first = self.set(line);
        let oldest = self.last_use[first..first + self.ways].iter().enumerate().min_by_key(|(_, used)| **used);
        let at = first + oldest.map_or(0, |(way, _)| way);
        let evicted = self.tags[at] != EMPTY;
        if self.recent.1 == at {
            self.recent = (EMPTY, 0);
        }
        self.tags[at] = line;
        self.valid_sectors[at] = sectors;
        self.last_use[at] = self.uses;
        evicted
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
    fn no_capacity_caches_nothing() {
        let mut cache = L1Cache::new(0, 4);
        assert!(!cache.fill(0, 1));
        assert_eq!(cache.lookup(0, 1), 0);
    }
}
