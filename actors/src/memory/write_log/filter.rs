//! A quick answer to whether an own write touches a sector.

use crate::memory::access_pattern::AccessPattern;
use balar_isa::execution::MemoryAccess;
use balar_isa::program::LANES;
use serde::{Deserialize, Serialize};

/// Bits of the filter.
const BITS: usize = 1024;

/// One bit for each hash of a 32-byte sector that is written: a Bloom filter with one hash function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SectorFilter([u64; BITS / 64]);

impl Default for SectorFilter {
    fn default() -> Self {
        SectorFilter([0; BITS / 64])
    }
}

/// Word and bit of a sector, by the high bits of a product with 2^64 over the golden ratio.
#[inline]
fn bit(sector: u64) -> (usize, u64) {
    let hash = sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    ((hash >> 6) as usize, 1 << (hash & 63))
}

impl SectorFilter {
    /// `bytes` bytes from `address` on are written; at least one is.
    #[inline]
    pub fn insert(&mut self, address: u64, bytes: u64) {
        for sector in address >> 5..=(address + (bytes - 1)) >> 5 {
            let (word, bit) = bit(sector);
            self.0[word] |= bit;
        }
    }

    #[inline]
    fn may_contain(&self, sector: u64) -> bool {
        let (word, bit) = bit(sector);
        self.0[word] & bit != 0
    }

    /// May the access, which is aligned, touch a sector that was inserted? False is certain.
    #[inline]
    pub fn may_touch(&self, access: &MemoryAccess, pattern: AccessPattern) -> bool {
        let first = access.addresses[0];
        match pattern {
            AccessPattern::Uniform => self.may_contain(first >> 5),
            AccessPattern::Consecutive => {
                let last = first + (LANES as u64 * u64::from(access.bytes) - 1);
                (first >> 5..=last >> 5).any(|sector| self.may_contain(sector))
            }
            AccessPattern::Scattered => {
                let mut lanes = access.mask;
                while lanes != 0 {
                    let lane = lanes.trailing_zeros() as usize;
                    lanes &= lanes - 1;
                    if self.may_contain(access.addresses[lane] >> 5) {
                        return true;
                    }
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_of_a_range_is_found() {
        let mut filter = SectorFilter::default();
        filter.insert(0x101c, 72);
        let access = |address| MemoryAccess { mask: 1, addresses: [address; LANES], ..MemoryAccess::default() };
        let touched = |address| filter.may_touch(&access(address), AccessPattern::Scattered);
        // Bytes 0x101c to 0x1063: sectors 0x1000 to 0x1060.
        assert!([0x1000, 0x101c, 0x1020, 0x1040, 0x1060, 0x107c].into_iter().all(touched));
        // Four of 1024 bits are set: of 100 sectors that were not inserted, few hash to one of them.
        let others = (0..100).filter(|sector| touched(0x8000 + 32 * sector)).count();
        assert!(others < 10, "{others} of 100");
        filter.insert(u64::MAX, 1);
    }
}
