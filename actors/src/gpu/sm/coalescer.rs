//! From the addresses of a warp to the lines and sectors they touch, and to wavefronts of shared memory.

use crate::memory::AccessPattern;
use balar_isa::execution::{AccessKind, MemoryAccess};
use balar_isa::program::{LANES, lanes};
use balar_protocol::memory::{LINE_BYTES, SECTOR_BYTES, WORD_BYTES, sector_count, sectors_of, words_within};

/// One line that a warp's access touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineAccess {
    /// Address of the line.
    pub line: u64,
    /// For a store: bytes that the lanes name in it, each counted once. For an atomic or reduction: bytes of their operands, as many as a
    /// line has at most.
    pub bytes: u16,
    /// For a store: words all of whose bytes are named.
    pub words: u32,
    /// Sectors touched.
    pub sectors: u8,
    /// For a store, atomic or reduction: lanes that fall into it.
    pub lanes: u8,
    /// For an atomic or reduction: sectors that each group of 16 lanes touches, added up, as profilers count them.
    pub update_sectors: u8,
}

/// Lanes of which profilers count the sectors of atomics together: 163,840 additions to one word count as 10,240 sectors.
const UPDATE_LANES: usize = 16;

/// The lines of a warp's access, in the order of the first lane that touches each.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// One a lane at most; for a texture one for each of the eight texels that a lane may blend.
    lines: Vec<LineAccess>,
}

impl Lines {
    /// The lines.
    pub fn as_slice(&self) -> &[LineAccess] {
        &self.lines
    }

    /// Groups the active lanes' bytes by line. Accesses are aligned to their size, so none straddles a line.
    #[inline(always)]
    pub fn gather(&mut self, access: &MemoryAccess) {
        self.lines.clear();
        let bytes = u64::from(access.bytes);
        let first = access.addresses[0];
        match AccessPattern::of(access) {
            AccessPattern::Consecutive if first & (bytes - 1) == 0 => {
                self.gather_consecutive(first, bytes);
                if is_update(access) {
                    self.count_update_sectors(access);
                }
            }
            AccessPattern::Uniform => self.lines.push(LineAccess {
                line: first & !(LINE_BYTES - 1),
                bytes: carried_bytes(access, access.bytes.into(), LANES as u8),
                sectors: 1 << (first % LINE_BYTES / SECTOR_BYTES),
                words: words_within(first % LINE_BYTES, first % LINE_BYTES + bytes),
                lanes: LANES as u8,
                update_sectors: if is_update(access) { (LANES / UPDATE_LANES) as u8 } else { 0 },
            }),
            _ => self.gather_scattered(access),
        }
    }

    /// All lanes, one after the other, from `first` on.
    fn gather_consecutive(&mut self, first: u64, bytes: u64) {
        let end = first + bytes * LANES as u64;
        let mut start = first;
        while start < end {
            let line = start & !(LINE_BYTES - 1);
            let (from, to) = (start - line, (end - line).min(LINE_BYTES));
            self.lines.push(LineAccess {
                line,
                bytes: (to - from) as u16,
                words: words_within(from, to),
                sectors: sectors_of(from, to),
                lanes: ((to - from) >> bytes.trailing_zeros()) as u8,
                update_sectors: 0,
            });
            start = line + to;
        }
    }

    #[inline(always)]
    fn gather_scattered(&mut self, access: &MemoryAccess) {
        // Of a load, nobody asks for more than its sectors.
        if access.kind == AccessKind::Load {
            self.gather_lanes(access, |line, offset, _| line.sectors |= 1 << (offset / SECTOR_BYTES));
            return;
        }
        let bytes = u64::from(access.bytes);
        // The bytes that are named in each line, one bit each.
        let mut named = [0u128; LANES];
        self.gather_lanes(access, |line, offset, at| {
            line.sectors |= 1 << (offset / SECTOR_BYTES);
            line.lanes += 1;
            named[at % LANES] |= ((1 << bytes) - 1) << offset;
        });
        for (entry, named) in self.lines.iter_mut().zip(named) {
            entry.bytes = carried_bytes(access, named.count_ones() as u16, entry.lanes);
            let words = (0..LINE_BYTES / WORD_BYTES).filter(|word| named >> (word * WORD_BYTES) & 0xf == 0xf);
            entry.words = words.fold(0, |words, word| words | 1 << word);
        }
        if is_update(access) {
            self.count_update_sectors(access);
        }
    }

    /// Counts the sectors of an atomic or reduction by groups of lanes.
    fn count_update_sectors(&mut self, access: &MemoryAccess) {
        let places = LinePlaces::of(&self.lines);
        let mut touched = [[0u8; LANES / UPDATE_LANES]; LANES];
        for lane in lanes(access.mask) {
            let address = access.addresses[lane];
            let at = places.known(address & !(LINE_BYTES - 1), &self.lines);
            touched[at % LANES][lane / UPDATE_LANES] |= 1 << (address % LINE_BYTES / SECTOR_BYTES);
        }
        for (entry, touched) in self.lines.iter_mut().zip(touched) {
            entry.update_sectors = touched.into_iter().map(|sectors| sector_count(sectors) as u8).sum();
        }
    }

    /// Tells `add` of each active lane: its line, where in the line its bytes begin, and the number of the line.
    #[inline]
    fn gather_lanes(&mut self, access: &MemoryAccess, mut add: impl FnMut(&mut LineAccess, u64, usize)) {
        let mut places = None;
        let mut last = 0;
        let mut lanes = access.mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let address = access.addresses[lane];
            let line = address & !(LINE_BYTES - 1);
            let before = self.lines.get(last).map(|entry| entry.line);
            if before != Some(line) {
                // Lines mostly ascend from lane to lane: one that lies after all others is new.
                last = match &mut places {
                    None if before < Some(line) => self.lines.len(),
                    places => places.get_or_insert_with(|| LinePlaces::of(&self.lines)).find(line, &self.lines),
                };
                if last == self.lines.len() {
                    self.lines.push(LineAccess { line, ..LineAccess::default() });
                }
            }
            add(&mut self.lines[last], address % LINE_BYTES, last);
        }
    }

    /// Adds the lines of a further load of the same instruction. The instruction has eight accesses at most.
    pub fn add(&mut self, access: &MemoryAccess) {
        for lane in lanes(access.mask) {
            let address = access.addresses[lane];
            let line = address & !(LINE_BYTES - 1);
            let known = self.as_slice().iter().position(|entry| entry.line == line);
            let at = known.unwrap_or_else(|| {
                self.lines.push(LineAccess { line, ..LineAccess::default() });
                self.lines.len() - 1
            });
            self.lines[at].sectors |= 1 << (address % LINE_BYTES / SECTOR_BYTES);
        }
    }

    /// Sectors touched, over all lines.
    pub fn sectors(&self) -> u32 {
        self.as_slice().iter().map(|line| sector_count(line.sectors)).sum()
    }
}

fn is_update(access: &MemoryAccess) -> bool {
    matches!(access.kind, AccessKind::Atomic | AccessKind::Reduction)
}

/// The bytes that go to a line when so many lanes name so many different bytes of it: a store carries each of these once, an atomic or
/// reduction the operands of all lanes.
fn carried_bytes(access: &MemoryAccess, named: u16, lanes: u8) -> u16 {
    match access.kind {
        AccessKind::Load | AccessKind::Store => named,
        AccessKind::Atomic | AccessKind::Reduction => {
            (u16::from(access.bytes) * u16::from(lanes)).min(LINE_BYTES as u16)
        }
    }
}

/// Where the lines of a warp are, by hash of their addresses: open addressing in twice as many places as there are lanes.
struct LinePlaces([u8; PLACES]);

const PLACES: usize = 2 * LANES;

/// No line has this place.
const FREE: u8 = u8::MAX;

impl LinePlaces {
    /// Where these are.
    fn of(lines: &[LineAccess]) -> LinePlaces {
        let mut places = LinePlaces([FREE; PLACES]);
        for (at, line) in lines.iter().enumerate() {
            places.find(line.line, &lines[..at]);
        }
        places
    }

    /// Where the search for a line begins: the high bits of a product with 2^64 over the golden ratio.
    #[inline]
    fn first_place(line: u64) -> usize {
        ((line / LINE_BYTES).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros())) as usize
    }

    /// The index of a line that is there.
    fn known(&self, line: u64, lines: &[LineAccess]) -> usize {
        let mut place = Self::first_place(line);
        loop {
            let at = usize::from(self.0[place % PLACES]);
            if lines[at].line == line {
                return at;
            }
            place += 1;
        }
    }

    /// The index of a line; where it is new, that of the one to be added.
    #[inline]
    fn find(&mut self, line: u64, lines: &[LineAccess]) -> usize {
        let mut place = Self::first_place(line);
        loop {
            let at = self.0[place % PLACES];
            if at == FREE {
                self.0[place % PLACES] = lines.len() as u8;
                return lines.len();
            }
            if lines[usize::from(at)].line == line {
                return usize::from(at);
            }
            place += 1;
        }
    }
}

/// Wavefronts of a shared-memory access: (needed, least possible for its width and lanes).
///
/// 32 banks of 4 bytes. A wavefront serves each bank with one word, which any number of lanes may read. Accesses of 8 and 16 bytes are done
/// by half and quarter warps, so that a wavefront moves at most 128 bytes, or by twice as many lanes that load in pairs. Accesses are
/// aligned to their size: one of 16 bytes takes one of eight groups of four neighbouring banks. Lanes of an atomic or reduction share
/// nothing: a wavefront updates one word of a bank for one lane.
pub fn shared_wavefronts(access: &MemoryAccess) -> (u32, u32) {
    let shift = access.bytes.max(4).trailing_zeros();
    let banks = 128 >> shift;
    // Lanes side by side name each bank once, and one word for all lanes is given once.
    let aligned = access.addresses[0] & (u64::from(access.bytes) - 1) == 0;
    let is_update = is_update(access);
    let is_wide_load = access.bytes > 4 && access.kind == AccessKind::Load;
    let pattern = if aligned { AccessPattern::of(access) } else { AccessPattern::Scattered };
    match pattern {
        AccessPattern::Consecutive => return (32 / banks, 32 / banks),
        AccessPattern::Uniform if is_update => return (32, 32 / banks),
        AccessPattern::Uniform if is_wide_load => return (16 / banks, 16 / banks),
        AccessPattern::Uniform => return (32 / banks, 32 / banks),
        AccessPattern::Scattered => {}
    }
    let lanes_at_once = if is_wide_load && is_paired(access) { 2 * banks } else { banks };
    let (mut needed, mut least) = (0, 0);
    let mut first = 0;
    while first < 32 {
        let group = access.mask >> first & (u32::MAX >> (32 - lanes_at_once));
        if group != 0 {
            needed += if is_update {
                lanes_of_a_bank(&access.addresses, first, group, shift, banks)
            } else {
                group_wavefronts(&access.addresses, first, group, shift, banks)
            };
            least += 1;
        }
        first += lanes_at_once;
    }
    (needed.max(1), least.max(1))
}

/// Whether lanes 2n and 2n + 1 have the same address, or lanes n and n + 2 of each four: the returned registers of such lanes are packed
/// two by two, so that half as many wavefronts are enough (NVIDIA developer forum, of compute capabilities 7.0 to 7.5).
fn is_paired(access: &MemoryAccess) -> bool {
    [1, 2].into_iter().any(|distance| {
        let both = access.mask & shifted(access.mask, distance);
        lanes(both).all(|lane| access.addresses[lane] == access.addresses[(lane ^ distance) & 31])
    })
}

/// A mask with each lane at the place of its partner.
fn shifted(mask: u32, distance: usize) -> u32 {
    let lower: u32 = if distance == 1 { 0x5555_5555 } else { 0x3333_3333 };
    (mask & lower) << distance | (mask >> distance) & lower
}

/// The most lanes that are served together and name a word of the same bank.
fn lanes_of_a_bank(addresses: &[u64; 32], first: u32, group: u32, shift: u32, banks: u32) -> u32 {
    let mut named = [0u8; 32];
    for lane in lanes(group) {
        let word = addresses[(first as usize + lane) & 31] >> shift;
        named[(word as u32 & (banks - 1)) as usize & 31] += 1;
    }
    named.into_iter().max().map_or(0, u32::from)
}

/// Wavefronts of lanes that are served together: the most different words that any bank (or group of banks) has to give.
fn group_wavefronts(addresses: &[u64; 32], first: u32, group: u32, shift: u32, banks: u32) -> u32 {
    let mut remaining = group;
    let mut wavefronts = 0;
    while remaining != 0 {
        wavefronts += 1;
        let mut taken = 0u32;
        let mut words = [0u64; 32];
        let mut lanes = std::mem::take(&mut remaining);
        while lanes != 0 {
            let lane = lanes.trailing_zeros();
            lanes &= lanes - 1;
            let word = addresses[(first + lane) as usize & 31] >> shift;
            let bank = (word as u32 & (banks - 1)) as usize;
            if taken >> bank & 1 == 0 {
                taken |= 1 << bank;
                words[bank & 31] = word;
            } else if words[bank & 31] != word {
                remaining |= 1 << lane;
            }
        }
    }
    wavefronts
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    fn access(bytes: u8, mask: u32, address: impl FnMut(usize) -> u64) -> MemoryAccess {
        let kind = AccessKind::Store;
        MemoryAccess { bytes, mask, kind, addresses: std::array::from_fn(address), ..MemoryAccess::default() }
    }

    #[test]
    fn consecutive_words_are_one_line() {
        let mut lines = Lines::default();
        lines.gather(&access(4, u32::MAX, |lane| 0x1000 + 4 * lane as u64));
        let expected =
            LineAccess { line: 0x1000, bytes: 128, words: u32::MAX, sectors: 0b1111, lanes: 32, update_sectors: 0 };
        assert_eq!(lines.as_slice(), [expected]);
    }

    /// Sectors of updates by groups of 16 lanes: worked out by hand.
    #[test]
    fn sectors_of_updates_are_counted_by_groups_of_16_lanes() {
        let mut lines = Lines::default();
        let mut counted = |bytes: u8, mask: u32, address: fn(usize) -> u64| {
            lines.gather(&MemoryAccess { kind: AccessKind::Reduction, ..access(bytes, mask, address) });
            lines.as_slice().iter().map(|line| line.update_sectors).collect::<Vec<_>>()
        };
        // All lanes, one word: a sector of each group. 5120 such warps are 10,240 sectors.
        assert_eq!(counted(4, u32::MAX, |_| 0x1000), [2]);
        assert_eq!(counted(4, 0xffff, |_| 0x1000), [1]);
        // Words side by side: 64 bytes of each group.
        assert_eq!(counted(4, u32::MAX, |lane| 0x1000 + 4 * lane as u64), [4]);
        // The same 16 bytes further on: three sectors of each group, of which the last of the second group is in the next line.
        assert_eq!(counted(4, u32::MAX, |lane| 0x1010 + 4 * lane as u64), [5, 1]);
        // Double words: a line of each group.
        assert_eq!(counted(8, u32::MAX, |lane| 0x1000 + 8 * lane as u64), [4, 4]);
        // Even lanes one word, odd lanes another one in the same sector.
        assert_eq!(counted(4, u32::MAX, |lane| 0x1000 + 4 * (lane as u64 % 2)), [2]);
        // A line for each lane.
        assert_eq!(counted(4, u32::MAX, |lane| 0x1000 + 128 * lane as u64), [1; 32]);
    }

    /// The plain meaning: each line by the bytes that the lanes name in it.
    fn gathered_plainly(access: &MemoryAccess) -> Vec<LineAccess> {
        let mut lines: Vec<LineAccess> = Vec::new();
        let mut named: Vec<[bool; LINE_BYTES as usize]> = Vec::new();
        let mut touched = std::collections::BTreeSet::new();
        for lane in lanes(access.mask) {
            let (line, offset) =
                (access.addresses[lane] / LINE_BYTES * LINE_BYTES, access.addresses[lane] % LINE_BYTES);
            let at = lines.iter().position(|entry| entry.line == line).unwrap_or(lines.len());
            if at == lines.len() {
                lines.push(LineAccess { line, ..LineAccess::default() });
                named.push([false; LINE_BYTES as usize]);
            }
            let is_new = touched.insert((lane / 16, access.addresses[lane] / SECTOR_BYTES));
            lines[at].update_sectors += u8::from(is_new && access.kind != AccessKind::Store);
            let range = offset as usize..(offset + u64::from(access.bytes)) as usize;
            named[at][range].fill(true);
            lines[at].lanes += 1;
            lines[at].bytes = (lines[at].bytes + u16::from(access.bytes)).min(LINE_BYTES as u16);
        }
        for (entry, named) in lines.iter_mut().zip(named) {
            if access.kind == AccessKind::Store {
                entry.bytes = named.iter().filter(|&&named| named).count() as u16;
            }
            for (sector, bytes) in named.chunks(SECTOR_BYTES as usize).enumerate() {
                entry.sectors |= u8::from(bytes.contains(&true)) << sector;
            }
            for (word, bytes) in named.chunks(WORD_BYTES as usize).enumerate() {
                entry.words |= u32::from(!bytes.contains(&false)) << word;
            }
        }
        lines
    }

    #[test]
    fn random_accesses_are_gathered_as_byte_by_byte() {
        let mut random = Pcg32::seed_from_u64(3);
        let mut lines = Lines::default();
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            let bytes = 1u8 << (random.next_u32() % 5);
            let first = u64::from(random.next_u32() % 4096);
            let stride = [0, 1, 1, 2, 3, 8, 32, 1 << 40][random.next_u32() as usize % 8];
            let range = [64, 512, 4096][random.next_u32() as usize % 3];
            let scattered = random.next_u32() % 3 == 0;
            let mask = if random.next_u32() % 2 == 0 { random.next_u32() } else { u32::MAX };
            let access = access(bytes, mask, |lane| {
                let place = if scattered { u64::from(random.next_u32() % range) } else { first + stride * lane as u64 };
                place * u64::from(bytes)
            });
            lines.gather(&access);
            let expected = gathered_plainly(&access);
            assert_eq!(lines.as_slice(), expected, "{access:?}");
            let atomic = MemoryAccess { kind: AccessKind::Atomic, ..access };
            lines.gather(&atomic);
            assert_eq!(lines.as_slice(), gathered_plainly(&atomic), "{atomic:?}");
            // A load's are told by their sectors alone.
            lines.gather(&MemoryAccess { kind: AccessKind::Load, ..access });
            let sectors = |lines: &[LineAccess]| -> Vec<(u64, u8)> {
                lines.iter().map(|line| (line.line, line.sectors)).collect()
            };
            assert_eq!(sectors(lines.as_slice()), sectors(&expected), "{access:?}");
        }
    }

    #[test]
    fn random_shared_accesses_have_the_conflicts_of_their_words() {
        let mut random = Pcg32::seed_from_u64(5);
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            let bytes = 1u8 << (random.next_u32() % 5);
            let first = u64::from(random.next_u32() % 4096);
            let stride = [0, 1, 1, 2, 3, 32][random.next_u32() as usize % 6];
            let mask = if random.next_u32() % 2 == 0 { random.next_u32() } else { u32::MAX };
            let access = access(bytes, mask, |lane| (first + stride * lane as u64) * u64::from(bytes));
            let width = bytes.max(4);
            let (mut needed, mut least) = (0, 0);
            for group in 0..width / 4 {
                let lanes: Vec<usize> =
                    lanes(mask).filter(|lane| lane * usize::from(width) / 128 == group.into()).collect();
                let words = lanes.iter().map(|&lane| access.addresses[lane] / u64::from(width));
                let words: std::collections::BTreeSet<u64> = words.collect();
                let banks = 128 / u64::from(width);
                needed += (0..banks)
                    .map(|bank| words.iter().filter(|&&word| word % banks == bank).count())
                    .max()
                    .unwrap_or(0);
                least += u32::from(!lanes.is_empty());
            }
            assert_eq!(shared_wavefronts(&access), ((needed as u32).max(1), least.max(1)), "{access:?}");
        }
    }

    #[test]
    fn strides_and_widths() {
        for (name, bytes, stride, expected_lines, expected_sectors) in [
            ("same word", 4, 0, 1, 1),
            ("stride of two words", 4, 8, 2, 8),
            ("stride of a sector", 4, 32, 8, 32),
            ("stride of a line", 4, 128, 32, 32),
            ("doubles", 8, 8, 2, 8),
            ("vectors of four", 16, 16, 4, 16),
        ] {
            let mut lines = Lines::default();
            lines.gather(&access(bytes, u32::MAX, |lane| 0x4000 + stride * lane as u64));
            assert_eq!((lines.as_slice().len(), lines.sectors()), (expected_lines, expected_sectors), "{name}");
        }
    }

    #[test]
    fn words_that_are_written_whole_are_told() {
        let mut lines = Lines::default();
        lines.gather(&access(4, 0x0000_01ff, |lane| 4 * lane as u64));
        assert_eq!((lines.as_slice()[0].sectors, lines.as_slice()[0].words), (0b11, 0x1ff));
        lines.gather(&access(1, 0x0000_01ff, |lane| lane as u64));
        assert_eq!(lines.as_slice()[0].words, 0b11, "of the third word there is a byte");
    }

    #[test]
    fn bank_conflicts() {
        for (name, bytes, mask, expected, address) in [
            ("consecutive", 4, u32::MAX, (1, 1), &(|lane: u64| 4 * lane) as &dyn Fn(u64) -> u64),
            ("broadcast", 4, u32::MAX, (1, 1), &|_| 64),
            ("two-way", 4, u32::MAX, (2, 1), &|lane| 8 * lane),
            ("one bank", 4, u32::MAX, (32, 1), &|lane| 128 * lane),
            ("padded column", 4, u32::MAX, (1, 1), &|lane| 132 * lane),
            ("doubles", 8, u32::MAX, (2, 2), &|lane| 8 * lane),
            ("vectors", 16, u32::MAX, (4, 4), &|lane| 16 * lane),
            ("half a warp", 4, 0xffff, (1, 1), &|lane| 4 * lane),
            ("no lane", 4, 0, (1, 1), &|lane| 4 * lane),
            ("a vector for all", 16, u32::MAX, (4, 4), &|_| 64),
        ] {
            assert_eq!(shared_wavefronts(&access(bytes, mask, |lane| address(lane as u64))), expected, "{name}");
        }
    }

    #[test]
    fn updates_share_no_wavefront() {
        for (name, bytes, mask, expected, address) in [
            ("consecutive", 4, u32::MAX, (1, 1), &(|lane: u64| 4 * lane) as &dyn Fn(u64) -> u64),
            ("one word", 4, u32::MAX, (32, 1), &|_| 64),
            ("one word for four lanes", 4, 0xf, (4, 1), &|_| 64),
            ("two words of a bank", 4, 0b11, (2, 1), &|lane| 128 * lane),
            ("one double", 8, u32::MAX, (32, 2), &|_| 64),
            ("doubles", 8, u32::MAX, (2, 2), &|lane| 8 * lane),
        ] {
            for kind in [AccessKind::Atomic, AccessKind::Reduction] {
                let update = MemoryAccess { kind, ..access(bytes, mask, |lane| address(lane as u64)) };
                assert_eq!(shared_wavefronts(&update), expected, "{name}");
            }
        }
    }

    #[test]
    fn registers_of_paired_lanes_are_packed() {
        for (name, bytes, mask, expected, address) in [
            ("a vector for all", 16, u32::MAX, (2, 2), &(|_: u64| 64_u64) as &dyn Fn(u64) -> u64),
            ("a double for all", 8, u32::MAX, (1, 1), &|_| 64),
            ("a word for all", 4, u32::MAX, (1, 1), &|_| 64),
            ("pairs", 16, u32::MAX, (2, 2), &|lane| lane / 2 * 16),
            ("every other", 16, u32::MAX, (2, 2), &|lane| (lane / 4 * 2 + lane % 2) * 16),
            ("every fourth", 16, u32::MAX, (4, 4), &|lane| (lane / 8 * 4 + lane % 4) * 16),
            ("pairs of one bank", 16, u32::MAX, (16, 2), &|lane| lane / 2 * 128),
            ("without a partner", 16, 0x5555_5555, (2, 2), &|lane| lane / 2 * 16),
        ] {
            let load = MemoryAccess { kind: AccessKind::Load, ..access(bytes, mask, |lane| address(lane as u64)) };
            assert_eq!(shared_wavefronts(&load), expected, "{name}");
        }
    }
}
