//! Tags, sector masks and replacement order of a slice.

use crate::interleave::fold;
use balar_protocol::memory::LINE_BYTES;

/// No waiter.
pub(super) const NO_WAITER: u32 = u32::MAX;

/// A line and its sectors, one mask bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Its address in device memory.
    pub address: u64,
    /// Requests that wait for sectors of it, a list.
    pub first_waiter: u32,
    pub last_waiter: u32,
    pub waiting: u16,
    /// Sectors whose data is here.
    pub valid: u8,
    /// Sectors that memory has not got yet; not valid while the rest of a sector written in part is fetched.
    pub dirty: u8,
}

/// The sets of a slice.
#[derive(Debug)]
pub(super) struct Sets {
    sets: u32,
    set_bits: u32,
    ways: u32,
    slices: u64,
    /// Low bits of each line's number within the slice, to be compared many at once; `Line::address` decides.
    tags: Vec<u32>,
    /// When each line was used last, and its sectors being fetched: apart from the lines, because a victim is sought among all ways.
    last_use: Vec<u64>,
    pending: Vec<u8>,
    lines: Vec<Line>,
    uses: u64,
}

/// The address of a way that holds nothing: no multiple of the line size.
const EMPTY: u64 = u64::MAX;

impl Sets {
    pub fn new(sets: u32, ways: u32, slices: u32) -> Sets {
        let count = sets as usize * ways as usize;
        let empty =
            Line { address: EMPTY, first_waiter: NO_WAITER, last_waiter: NO_WAITER, waiting: 0, valid: 0, dirty: 0 };
        Sets {
            sets,
            set_bits: sets.next_power_of_two().trailing_zeros().max(1),
            ways,
            slices: u64::from(slices),
            tags: vec![u32::MAX; count],
            last_use: vec![0; count],
            pending: vec![0; count],
            lines: vec![empty; count],
            uses: 0,
        }
    }

    /// First way of the line's set, and its tag. Lines that lie one slice count apart follow each other in the sets, and higher bits
    /// are folded in: any run of lines fills the sets evenly, and power-of-two strides do not share one.
    #[inline]
    fn place(&self, address: u64) -> (usize, u32) {
        let number = address / LINE_BYTES;
        let local =
            if self.slices.is_power_of_two() { number >> self.slices.trailing_zeros() } else { number / self.slices };
        let count = u64::from(self.sets);
        let set = if self.sets.is_power_of_two() {
            (local ^ fold(local >> count.trailing_zeros(), self.set_bits)) & (count - 1)
        } else {
            let high = fold(local / count, self.set_bits) & ((1 << self.set_bits) - 1);
            (local % count + high) % count
        };
        (set as usize * self.ways as usize, local as u32)
    }

    /// The way that holds the line at `address`.
    #[inline]
    pub fn find(&self, address: u64) -> Option<u32> {
        let (first, tag) = self.place(address);
        let tags = &self.tags[first..first + self.ways as usize];
        let mut matches = tags.iter().enumerate().filter(|(_, t)| **t == tag).map(|(way, _)| first + way);
        matches.find(|&index| self.lines[index].address == address).map(|index| index as u32)
    }

    /// The least recently used way of the line's set that has no fill under way.
    pub fn victim(&self, address: u64) -> Option<u32> {
        let (first, _) = self.place(address);
        let ways = first..first + self.ways as usize;
        let mut oldest = (u64::MAX, 0);
        for (way, (&used, &pending)) in self.last_use[ways.clone()].iter().zip(&self.pending[ways]).enumerate() {
            // Without a branch: which way is the oldest is not predictable.
            let age = used | u64::from(pending != 0).wrapping_neg();
            oldest = if age < oldest.0 { (age, way) } else { oldest };
        }
        (oldest.0 != u64::MAX).then_some((first + oldest.1) as u32)
    }

    /// Gives way `index` to the line at `address`, with no sector valid.
    pub fn install(&mut self, index: u32, address: u64) {
        let (_, tag) = self.place(address);
        self.tags[index as usize] = tag;
        let line = &mut self.lines[index as usize];
        (line.address, line.valid, line.dirty) = (address, 0, 0);
    }

    /// Makes way `index` the most recently used.
    #[inline]
    pub fn touch(&mut self, index: u32) {
        self.uses += 1;
        self.last_use[index as usize] = self.uses;
    }

    #[inline]
    pub fn line(&self, index: u32) -> &Line {
        &self.lines[index as usize]
    }

    #[inline]
    pub fn line_mut(&mut self, index: u32) -> &mut Line {
        &mut self.lines[index as usize]
    }

    /// The line's sectors being fetched.
    #[inline]
    pub fn pending(&self, index: u32) -> u8 {
        self.pending[index as usize]
    }

    #[inline]
    pub fn set_pending(&mut self, index: u32, sectors: u8) {
        self.pending[index as usize] = sectors;
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }
}
