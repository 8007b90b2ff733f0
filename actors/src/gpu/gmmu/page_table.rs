//! The GPU's access to managed memory: a page table of 4 KiB pages, by blocks of 2 MiB.

use crate::gpu::tlb::IDENTITY_BITS;
use crate::unified_memory::{BLOCK_BYTES, BLOCK_PAGES, LEAF_BYTES, LEAF_PAGES, PAGE_BYTES, PageSet};
use balar_protocol::translation::{Aperture, PageAccess};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Which sizes the pages of managed memory have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ManagedPageSizes {
    /// 2 MiB where all pages of a block are mapped alike, 64 KiB where all pages of a leaf are, else 4 KiB.
    Mixed,
    /// 4 KiB.
    Small,
}

/// How a page may be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Whose memory it lies in.
    pub aperture: Aperture,
    /// Stores and atomics are allowed.
    pub writable: bool,
}

impl Mapping {
    /// Is the access allowed?
    pub fn allows(self, access: PageAccess) -> bool {
        self.writable || !access.writes()
    }
}

/// The pages of a block that may be accessed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Block {
    /// Those in the GPU's memory, and those in the host's.
    device: PageSet,
    host: PageSet,
    /// The pages of both kinds to which stores and atomics may go.
    writable: PageSet,
}

impl Block {
    fn mapped(&self) -> PageSet {
        self.device.union(self.host)
    }
}

/// Which ranges of addresses are managed, and which of their pages are mapped. Addresses outside are mapped onto themselves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PageTable {
    /// The managed ranges by their first addresses, with the first addresses after them. They neither overlap nor touch each other.
    ranges: BTreeMap<u64, u64>,
    /// Blocks with mapped pages, by their addresses.
    blocks: BTreeMap<u64, Block>,
}

/// The first page of a range of addresses, and the first after it.
pub fn pages_of(address: u64, bytes: u64) -> Range<u64> {
    let end = address.saturating_add(bytes);
    address / PAGE_BYTES * PAGE_BYTES..end.checked_next_multiple_of(PAGE_BYTES).unwrap_or(end / PAGE_BYTES * PAGE_BYTES)
}

/// The block in which an address lies.
fn block_of(address: u64) -> u64 {
    address / BLOCK_BYTES * BLOCK_BYTES
}

/// The blocks of a range of pages, with the numbers of those of its pages that lie in each.
fn blocks_of(pages: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let number = move |block: u64, address: u64| ((address.saturating_sub(block)) / PAGE_BYTES) as usize;
    let blocks = (block_of(pages.start)..pages.end).step_by(BLOCK_BYTES as usize);
    let blocks =
        blocks.map(move |block| (block, number(block, pages.start)..number(block, pages.end).min(BLOCK_PAGES)));
    blocks.filter(|(_, pages)| !pages.is_empty())
}

impl PageTable {
    /// Is the page of this address there only where it has been mapped?
    #[inline]
    pub fn is_managed(&self, address: u64) -> bool {
        !self.ranges.is_empty() && self.ranges.range(..=address).next_back().is_some_and(|(_, &end)| address < end)
    }

    /// For an address that is not managed: the binary logarithm of the bytes around it without any managed memory.
    #[inline]
    pub fn identity_bits(&self, address: u64) -> u8 {
        if self.ranges.is_empty() {
            return IDENTITY_BITS;
        }
        // Two addresses lie in different pages of the size of the highest bit in which they differ.
        let apart_from = |other: u64| (address ^ other).checked_ilog2().unwrap_or(0) as u8;
        let before = self.ranges.range(..=address).next_back().map(|(_, &end)| apart_from(end - 1));
        let behind = self.ranges.range(address..).next().map(|(&start, _)| apart_from(start));
        before.into_iter().chain(behind).fold(IDENTITY_BITS, u8::min)
    }

    /// How the page of a managed address may be accessed; `None` where it may not.
    pub fn lookup(&self, address: u64) -> Option<Mapping> {
        let block = self.blocks.get(&block_of(address))?;
        let page = (address % BLOCK_BYTES / PAGE_BYTES) as usize;
        let aperture = match (block.device.contains(page), block.host.contains(page)) {
            (true, _) => Aperture::Device,
            (false, true) => Aperture::Host,
            (false, false) => return None,
        };
        Some(Mapping { aperture, writable: block.writable.contains(page) })
    }

    /// The binary logarithm of the bytes of the page in which a mapped address lies.
    pub fn page_bits(&self, address: u64, mapping: Mapping, sizes: ManagedPageSizes) -> u8 {
        let small = PAGE_BYTES.trailing_zeros() as u8;
        let Some(block) = self.blocks.get(&block_of(address)) else { return small };
        let same_aperture = if mapping.aperture == Aperture::Device { block.device } else { block.host };
        let alike = if mapping.writable {
            same_aperture.intersection(block.writable)
        } else {
            same_aperture.difference(block.writable)
        };
        let leaf = (address % BLOCK_BYTES / LEAF_BYTES) as usize;
        let bytes = match sizes {
            ManagedPageSizes::Mixed if alike == PageSet::FULL => BLOCK_BYTES,
            ManagedPageSizes::Mixed if alike.count_in_leaf(leaf) == LEAF_PAGES => LEAF_BYTES,
            _ => PAGE_BYTES,
        };
        bytes.trailing_zeros() as u8
    }

    /// Pages of the range are there only where they have been mapped, from now on.
    pub fn manage(&mut self, pages: Range<u64>) {
        let mut merged = pages;
        // From behind: a range that touches or overlaps this one becomes a part of it.
        while let Some((&start, &end)) =
            self.ranges.range(..=merged.end).next_back().filter(|(_, end)| **end >= merged.start)
        {
            merged = merged.start.min(start)..merged.end.max(end);
            self.ranges.remove(&start);
        }
        if !merged.is_empty() {
            self.ranges.insert(merged.start, merged.end);
        }
    }

    /// The range is mapped onto itself from now on.
    pub fn release(&mut self, pages: Range<u64>) {
        if pages.is_empty() {
            return;
        }
        self.unmap(pages.clone());
        while let Some((&start, &end)) =
            self.ranges.range(..pages.end).next_back().filter(|(_, end)| **end > pages.start)
        {
            self.ranges.remove(&start);
            for (start, end) in [(start, end.min(pages.start)), (start.max(pages.end), end)] {
                if start < end {
                    self.ranges.insert(start, end);
                }
            }
        }
    }

    /// Maps the pages of a range; gives how many of them were not mapped before.
    pub fn map(&mut self, pages: Range<u64>, Mapping { aperture, writable }: Mapping) -> u64 {
        let mut new = 0;
        for (address, pages) in blocks_of(pages) {
            let block = self.blocks.entry(address).or_default();
            let pages = PageSet::range(pages);
            new += pages.difference(block.mapped()).len() as u64;
            let (here, there) = match aperture {
                Aperture::Device => (&mut block.device, &mut block.host),
                Aperture::Host => (&mut block.host, &mut block.device),
            };
            (*here, *there) = (here.union(pages), there.difference(pages));
            block.writable = if writable { block.writable.union(pages) } else { block.writable.difference(pages) };
        }
        new
    }

    /// No page of the range is mapped any more; gives how many were.
    pub fn unmap(&mut self, pages: Range<u64>) -> u64 {
        let mut gone = 0;
        for (address, pages) in blocks_of(pages) {
            let Some(block) = self.blocks.get_mut(&address) else { continue };
            let pages = PageSet::range(pages);
            gone += pages.intersection(block.mapped()).len() as u64;
            for set in [&mut block.device, &mut block.host, &mut block.writable] {
                *set = set.difference(pages);
            }
            if block.mapped().is_empty() {
                self.blocks.remove(&address);
            }
        }
        gone
    }

    /// The mapped pages of a range, ascending.
    pub fn mapped(&self, pages: Range<u64>) -> Vec<u64> {
        let in_blocks =
            blocks_of(pages).filter_map(|(address, pages)| Some((address, pages, self.blocks.get(&address)?)));
        let mapped = in_blocks.flat_map(|(address, pages, block)| {
            let pages = PageSet::range(pages).intersection(block.mapped());
            pages.iter().map(move |page| address + page as u64 * PAGE_BYTES)
        });
        mapped.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::Numbers;
    use std::collections::BTreeSet;

    const DEVICE: Mapping = Mapping { aperture: Aperture::Device, writable: true };
    const READ_ONLY: Mapping = Mapping { aperture: Aperture::Device, writable: false };
    const HOST: Mapping = Mapping { aperture: Aperture::Host, writable: true };

    #[test]
    fn ranges_are_joined_and_cut() {
        let (mut table, mut numbers) = (PageTable::default(), Numbers::new(3));
        let mut expected = BTreeSet::new();
        for _ in 0..2000 {
            let (first, count) = (numbers.below(100), numbers.below(20));
            let pages = pages_of(first << 12, count << 12);
            if numbers.below(2) == 0 {
                table.manage(pages);
                expected.extend(first..first + count);
            } else {
                table.release(pages);
                expected.retain(|page| !(first..first + count).contains(page));
            }
            assert!((0..130).all(|page| table.is_managed((page << 12) + 77) == expected.contains(&page)));
            let ranges: Vec<_> = table.ranges.iter().collect();
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        }
    }

    #[test]
    fn what_is_known_of_an_address_ends_before_managed_memory() {
        let mut table = PageTable::default();
        assert_eq!(table.identity_bits(0x1234), IDENTITY_BITS);
        table.manage(0x40_0000..0x40_3000);
        for (address, bits) in
            [(0, 22), (0x3f_ffff, 22), (0x40_3000, 12), (0x40_4000, 14), (0x50_0000, 20), (0x80_0000, 23)]
        {
            assert_eq!(table.identity_bits(address), bits, "{address:#x}");
        }
        assert_eq!(table.identity_bits(1 << 39), IDENTITY_BITS);
        table.manage(0x3f_f000..0x40_0000);
        assert_eq!((table.identity_bits(0x3f_efff), table.identity_bits(0)), (12, 21));
    }

    #[test]
    fn pages_are_large_where_all_of_them_are_mapped_alike() {
        let mut table = PageTable::default();
        let bits = |table: &PageTable, address| {
            let mapping = table.lookup(address)?;
            Some((mapping, table.page_bits(address, mapping, ManagedPageSizes::Mixed)))
        };
        table.map(0x1_0000..0x3_1000, DEVICE);
        assert_eq!(bits(&table, 0), None);
        assert_eq!(bits(&table, 0x1_0000), Some((DEVICE, 16)));
        assert_eq!(bits(&table, 0x3_0000), Some((DEVICE, 12)));
        assert_eq!(table.page_bits(0x1_0000, DEVICE, ManagedPageSizes::Small), 12);
        assert_eq!(table.map(0..0x20_0000, DEVICE), 512 - 33, "as many were not mapped");
        assert_eq!(bits(&table, 0x12_3456), Some((DEVICE, 21)));
        table.map(0x1_0000..0x1_1000, READ_ONLY);
        table.map(0x2_0000..0x3_0000, HOST);
        assert_eq!(bits(&table, 0x1_0000), Some((READ_ONLY, 12)));
        assert_eq!(bits(&table, 0x1_1000), Some((DEVICE, 12)));
        assert_eq!(bits(&table, 0x2_5000), Some((HOST, 16)));
        assert_eq!(bits(&table, 0x12_3456), Some((DEVICE, 16)));
        assert!(READ_ONLY.allows(PageAccess::Read) && !READ_ONLY.allows(PageAccess::Atomic));
    }

    #[test]
    fn ranges_cross_blocks() {
        let mut table = PageTable::default();
        let pages = pages_of(0x1f_f800, 0x40_1000);
        assert_eq!(pages, 0x1f_f000..0x60_1000);
        assert_eq!(table.map(pages.clone(), HOST), 1 + 1024 + 1);
        assert_eq!(table.mapped(0..0x20_1000), [0x1f_f000, 0x20_0000]);
        assert_eq!(table.unmap(0x20_0000..0x5f_f000), 1023);
        assert_eq!(table.mapped(0..1 << 30), [0x1f_f000, 0x5f_f000, 0x60_0000]);
        assert_eq!((table.unmap(0..1 << 30), table.blocks.len()), (3, 0));
    }
}
