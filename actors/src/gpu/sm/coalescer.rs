//! From the addresses of a warp to the lines and sectors they touch, and to wavefronts of shared memory.

use balar_isa::execution::MemoryAccess;
use balar_isa::program::lanes;
use balar_protocol::memory::{LINE_BYTES, SECTOR_BYTES};

/// One line that a warp's access touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineAccess {
    /// Address of the line.
    pub line: u64,
    /// Bytes the lanes name in it (lanes that name the same bytes count each).
    pub bytes: u16,
    /// Sectors touched.
    pub sectors: u8,
    /// Of a store: sectors all of whose bytes are named.
    pub full_sectors: u8,
    /// Lanes that fall into it.
    pub lanes: u8,
}

/// The lines of a warp's access, in the order of the first lane that touches each.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// One a lane at most; of a texture one for each of the eight texels that a lane may blend.
    lines: Vec<LineAccess>,
}

impl Lines {
    /// The lines.
    pub fn as_slice(&self) -> &[LineAccess] {
        &self.lines
    }

    /// Groups the active lanes' bytes by line. Accesses are aligned to their size, so none straddles a line.
    pub fn gather(&mut self, access: &MemoryAccess) {
        self.lines.clear();
        let bytes = u64::from(access.bytes);
        // Bytes named in each sector of a line, as a mask of 4-byte words: enough to tell full sectors for aligned accesses of
        // 4 bytes and more; narrower stores count as partial.
        let mut words = [0u32; 32];
        let mut last = 0;
        let mut lanes = access.mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let address = access.addresses[lane];
            let line = address & !(LINE_BYTES - 1);
            if self.lines.is_empty() || self.lines[last].line != line {
                last = match self.lines.iter().position(|entry| entry.line == line) {
                    Some(at) => at,
                    None => {
                        self.lines.push(LineAccess { line, ..LineAccess::default() });
                        self.lines.len() - 1
                    }
                };
            }
            let offset = address % LINE_BYTES;
            let entry = &mut self.lines[last];
            entry.sectors |= 1 << (offset / SECTOR_BYTES);
            entry.bytes += bytes as u16;
            entry.lanes += 1;
            if bytes >= 4 {
                words[last] |= ((1u32 << (bytes / 4)) - 1) << (offset / 4);
            }
        }
        for (entry, words) in self.lines.iter_mut().zip(words) {
            for sector in 0..4 {
                if words >> (8 * sector) & 0xff == 0xff {
                    entry.full_sectors |= 1 << sector;
                }
            }
            entry.bytes = entry.bytes.min(LINE_BYTES as u16);
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
            let entry = &mut self.lines[at];
            entry.sectors |= 1 << (address % LINE_BYTES / SECTOR_BYTES);
            entry.bytes = (entry.bytes + u16::from(access.bytes)).min(LINE_BYTES as u16);
            entry.lanes = entry.lanes.saturating_add(1);
        }
    }

    /// Sectors touched, over all lines.
    pub fn sectors(&self) -> u32 {
        self.as_slice().iter().map(|line| line.sectors.count_ones()).sum()
    }
}

/// Wavefronts of a shared-memory access: (needed, least possible for its width and lanes).
///
/// 32 banks of 4 bytes. A wavefront serves each bank with one word, which any number of lanes may read. Accesses of 8 and 16 bytes
/// are done by half and quarter warps, so that a wavefront moves at most 128 bytes. Accesses are aligned to their size: one of 16
/// bytes takes four neighbouring banks, of which there are eight such groups.
pub fn shared_wavefronts(access: &MemoryAccess) -> (u32, u32) {
    let shift = access.bytes.max(4).trailing_zeros();
    let lanes_at_once = 128 >> shift;
    let (mut needed, mut least) = (0, 0);
    let mut first = 0;
    while first < 32 {
        let group = access.mask >> first & (u32::MAX >> (32 - lanes_at_once));
        if group != 0 {
            needed += group_wavefronts(&access.addresses, first, group, shift, lanes_at_once);
            least += 1;
        }
        first += lanes_at_once;
    }
    (needed.max(1), least.max(1))
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

    fn access(bytes: u8, mask: u32, address: impl Fn(usize) -> u64) -> MemoryAccess {
        MemoryAccess { bytes, mask, addresses: std::array::from_fn(address), ..MemoryAccess::default() }
    }

    #[test]
    fn consecutive_words_are_one_line() {
        let mut lines = Lines::default();
        lines.gather(&access(4, u32::MAX, |lane| 0x1000 + 4 * lane as u64));
        let expected = LineAccess { line: 0x1000, bytes: 128, sectors: 0b1111, full_sectors: 0b1111, lanes: 32 };
        assert_eq!(lines.as_slice(), [expected]);
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
    fn partial_sectors_are_told_from_full_ones() {
        let mut lines = Lines::default();
        lines.gather(&access(4, 0x0000_01ff, |lane| 4 * lane as u64));
        assert_eq!((lines.as_slice()[0].sectors, lines.as_slice()[0].full_sectors), (0b11, 0b01));
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
        ] {
            assert_eq!(shared_wavefronts(&access(bytes, mask, |lane| address(lane as u64))), expected, "{name}");
        }
    }
}
