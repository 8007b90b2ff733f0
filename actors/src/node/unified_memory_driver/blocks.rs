//! Allocations and their blocks: where each page is, where it is going, and what was advised of it.

use super::counters::AllocationCounters;
use crate::unified_memory::allocation::AllocationTrees;
use crate::unified_memory::residency::{Advice, PageState};
use crate::unified_memory::thrashing::BlockThrashing;
use crate::unified_memory::{BLOCK_BYTES, BLOCK_LEAVES, BlockId, PAGE_BYTES, PageSet, Processor, ProcessorSet};
use balar_protocol::ProcessId;
use balar_protocol::managed::AdviceChange;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of a leaf among those of all blocks.
pub(super) fn leaf_number(block: BlockId, leaf: usize) -> usize {
    block.0 as usize * BLOCK_LEAVES + leaf
}

/// The place of a processor in the lists of a block: the host, then the GPUs.
pub(super) fn place_of(processor: Processor) -> usize {
    match processor {
        Processor::Host => 0,
        Processor::Gpu(gpu) => 1 + usize::from(gpu),
    }
}

/// The processor at a place.
pub(super) fn processor_at(place: usize) -> Processor {
    match place {
        0 => Processor::Host,
        _ => Processor::Gpu((place - 1) as u8),
    }
}

/// A processor, as a message names it: a GPU, or `None` for the host.
pub(super) fn processor(location: Option<u8>) -> Processor {
    location.map_or(Processor::Host, Processor::Gpu)
}

/// What was advised of the pages of a block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct BlockAdvice {
    pub read_mostly: PageSet,
    preferred: BTreeMap<Processor, PageSet>,
    accessed_by: BTreeMap<Processor, PageSet>,
}

impl BlockAdvice {
    /// A program advises something of these pages.
    pub fn change(&mut self, pages: PageSet, change: AdviceChange) {
        match change {
            AdviceChange::ReadMostly(true) => self.read_mostly = self.read_mostly.union(pages),
            AdviceChange::ReadMostly(false) => self.read_mostly = self.read_mostly.difference(pages),
            AdviceChange::PreferredLocation(location) => {
                self.forget_preferred(pages);
                let there = self.preferred.entry(processor(location)).or_default();
                *there = there.union(pages);
            }
            AdviceChange::NoPreferredLocation => self.forget_preferred(pages),
            AdviceChange::AccessedBy(location, set) => {
                let by = self.accessed_by.entry(processor(location)).or_default();
                *by = if set { by.union(pages) } else { by.difference(pages) };
            }
        }
    }

    fn forget_preferred(&mut self, pages: PageSet) {
        self.preferred.values_mut().for_each(|preferred| *preferred = preferred.difference(pages));
    }

    /// What was advised of one page.
    pub fn of(&self, page: usize) -> Advice {
        let preferred = self.preferred.iter().find(|(_, pages)| pages.contains(page));
        let accessed_by = self.accessed_by.iter().filter(|(_, pages)| pages.contains(page));
        Advice {
            read_mostly: self.read_mostly.contains(page),
            preferred_location: preferred.map(|(&processor, _)| processor),
            accessed_by: accessed_by.map(|(&processor, _)| processor).collect::<ProcessorSet>(),
        }
    }

    /// The pages whose preferred location this is.
    pub fn preferred_at(&self, processor: Processor) -> PageSet {
        self.preferred.get(&processor).copied().unwrap_or_default()
    }
}

/// What one processor has of a block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Share {
    /// Pages in its memory.
    pub resident: PageSet,
    /// Pages on their way to its memory, which have their frames.
    pub arriving: PageSet,
    /// Pages that it has changed since they came.
    pub dirty: PageSet,
    /// Of a GPU: pages that it accesses in the host's memory.
    pub remote: PageSet,
    /// Pages that came unasked and have not been used since.
    pub unused: PageSet,
    /// Pages that were evicted from its memory at some time.
    pub evicted: PageSet,
    /// Faults since another processor's were served.
    pub faults: u64,
    /// It has faulted on the block before.
    pub known: bool,
}

/// A block: up to 2 MiB of an allocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Block {
    /// The address of its first page.
    pub address: u64,
    /// Its pages, those beyond the allocation's last byte included.
    pub pages: usize,
    /// The allocation has not ended.
    pub is_live: bool,
    /// The number of its allocation.
    pub allocation: u32,
    /// By place of the processor.
    pub shares: Vec<Share>,
    pub advice: BlockAdvice,
    pub thrashing: BlockThrashing,
}

impl Block {
    pub fn share(&self, processor: Processor) -> &Share {
        &self.shares[place_of(processor)]
    }

    pub fn share_mut(&mut self, processor: Processor) -> &mut Share {
        &mut self.shares[place_of(processor)]
    }

    /// All its pages.
    pub fn all(&self) -> PageSet {
        PageSet::range(0..self.pages)
    }

    /// Pages that are somewhere, or on their way.
    pub fn populated(&self) -> PageSet {
        self.pages_of(|_| true)
    }

    /// Pages in another memory than this processor's.
    pub fn elsewhere(&self, processor: Processor) -> PageSet {
        let own = place_of(processor);
        let others = self.shares.iter().enumerate().filter(|(place, _)| *place != own);
        others.fold(PageSet::EMPTY, |all, (_, share)| all.union(share.resident))
    }

    /// Pages that these processors have, or get.
    pub fn pages_of(&self, wanted: impl Fn(Processor) -> bool) -> PageSet {
        let shares = self.shares.iter().enumerate().filter(|(place, _)| wanted(processor_at(*place)));
        shares.fold(PageSet::EMPTY, |all, (_, share)| all.union(share.resident).union(share.arriving))
    }

    /// Pages that can be taken from a processor: those in its memory, and of the host those on their way there, too.
    pub fn held_by(&self, processor: Processor) -> PageSet {
        let share = self.share(processor);
        if processor == Processor::Host { share.resident.union(share.arriving) } else { share.resident }
    }

    /// Pages that are on their way anywhere.
    pub fn under_way(&self) -> PageSet {
        self.shares.iter().fold(PageSet::EMPTY, |all, share| all.union(share.arriving))
    }

    /// Where a page is.
    pub fn state_of(&self, page: usize) -> PageState {
        let holders = self.shares.iter().enumerate().filter(|(_, share)| share.resident.contains(page));
        let holders: ProcessorSet = holders.map(|(place, _)| processor_at(place)).collect();
        match holders.len() {
            0 => PageState::Unpopulated,
            1 => PageState::At(holders.iter().next().unwrap_or(Processor::Host)),
            _ => PageState::Duplicated(holders),
        }
    }

    /// The address of a page.
    pub fn address_of(&self, page: usize) -> u64 {
        self.address + page as u64 * PAGE_BYTES
    }

    /// First address and bytes of a run of pages.
    pub fn range_of(&self, run: &Range<usize>) -> (u64, u64) {
        (self.address_of(run.start), run.len() as u64 * PAGE_BYTES)
    }

    /// Its pages that overlap a range of addresses.
    pub fn pages_in(&self, address: u64, end: u64) -> PageSet {
        let first = address.saturating_sub(self.address) / PAGE_BYTES;
        let last = end.saturating_sub(self.address).div_ceil(PAGE_BYTES);
        PageSet::range(first as usize..(last as usize).min(self.pages))
    }
}

/// A managed allocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Allocation {
    pub address: u64,
    pub bytes: u64,
    pub counters: AllocationCounters,
    /// The numbers of its blocks.
    pub blocks: Range<u32>,
    pub is_live: bool,
    /// Its pages come back to the host whenever this process has waited for its GPUs.
    pub assumed_by: Option<ProcessId>,
}

/// All allocations there are, and that there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    pub allocations: Vec<Allocation>,
    /// By address: the allocations that have not ended.
    live: BTreeMap<u64, u32>,
}

impl Blocks {
    /// An allocation begins; `processors` is how many there are, the host included. Gives its number.
    pub fn allocate(&mut self, address: u64, bytes: u64, processors: usize) -> Option<u32> {
        let trees = AllocationTrees::new(bytes).ok()?;
        let number = self.allocations.len() as u32;
        let first = self.blocks.len() as u32;
        for index in 0..trees.count() {
            self.blocks.push(Block {
                address: address + index * BLOCK_BYTES,
                pages: trees.pages(index),
                is_live: true,
                allocation: number,
                shares: vec![Share::default(); processors],
                advice: BlockAdvice::default(),
                thrashing: BlockThrashing::default(),
            });
        }
        let blocks = first..self.blocks.len() as u32;
        self.allocations.push(Allocation {
            address,
            bytes,
            counters: AllocationCounters::default(),
            blocks,
            is_live: true,
            assumed_by: None,
        });
        self.live.insert(address, number);
        Some(number)
    }

    /// The allocation that begins at an address ends: its number.
    pub fn free(&mut self, address: u64) -> Option<u32> {
        let number = self.live.remove(&address)?;
        let allocation = &mut self.allocations[number as usize];
        allocation.is_live = false;
        for block in allocation.blocks.clone() {
            self.blocks[block as usize].is_live = false;
        }
        Some(number)
    }

    /// The block that holds an address.
    pub fn at(&self, address: u64) -> Option<BlockId> {
        let (_, &number) = self.live.range(..=address).next_back()?;
        let allocation = &self.allocations[number as usize];
        let index = u32::try_from((address - allocation.address) / BLOCK_BYTES).ok()?;
        let block = allocation.blocks.start.checked_add(index).filter(|block| allocation.blocks.contains(block))?;
        Some(BlockId(block))
    }

    /// The first block that overlaps a range of addresses, with its pages there.
    pub fn first_in(&self, address: u64, end: u64) -> Option<(BlockId, PageSet)> {
        if address >= end {
            return None;
        }
        let id = self.at(address)?;
        Some((id, self.get(id).pages_in(address, end)))
    }

    pub fn get(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }

    pub fn get_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.0 as usize]
    }

    /// The numbers of all blocks of allocations that have not ended, ascending.
    pub fn live(&self) -> impl Iterator<Item = BlockId> {
        (0..self.blocks.len() as u32).map(BlockId).filter(|&id| self.get(id).is_live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn addresses_lead_to_blocks() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.allocate(0x1000_0000, 0, 2), None);
        let first = blocks.allocate(0x1000_0000, 4 * MIB + (192 << 10), 2);
        let second = blocks.allocate(0x2000_0000, 1, 2);
        assert_eq!((first, second), (Some(0), Some(1)));
        let at = |blocks: &Blocks, address| blocks.at(address).map(|id| id.0);
        assert_eq!(at(&blocks, 0x0fff_ffff), None);
        assert_eq!(at(&blocks, 0x1000_0000), Some(0));
        assert_eq!(at(&blocks, 0x1000_0000 + 5 * MIB), Some(2));
        assert_eq!(at(&blocks, 0x1000_0000 + 6 * MIB), None);
        assert_eq!(at(&blocks, 0x2000_0fff), Some(3));
        assert_eq!((blocks.get(BlockId(2)).pages, blocks.get(BlockId(3)).pages), (64, 16));
        let found = blocks.first_in(0x1000_0000 + 4 * MIB + 4095, 0x1000_0000 + 4 * MIB + 4097);
        assert_eq!(found, Some((BlockId(2), PageSet::range(0..2))));
        assert_eq!(blocks.free(0x1000_0000), Some(0));
        assert_eq!((at(&blocks, 0x1000_0000), blocks.free(0x1000_0000)), (None, None));
        assert_eq!(blocks.live().collect::<Vec<_>>(), [BlockId(3)]);
    }

    #[test]
    fn advice_is_of_pages() {
        let mut advice = BlockAdvice::default();
        advice.change(PageSet::range(0..8), AdviceChange::PreferredLocation(None));
        advice.change(PageSet::range(4..6), AdviceChange::PreferredLocation(Some(1)));
        advice.change(PageSet::range(2..3), AdviceChange::NoPreferredLocation);
        advice.change(PageSet::range(0..2), AdviceChange::AccessedBy(Some(0), true));
        advice.change(PageSet::range(1..2), AdviceChange::AccessedBy(Some(0), false));
        advice.change(PageSet::range(7..9), AdviceChange::ReadMostly(true));
        let preferred = [0, 2, 4, 7].map(|page| advice.of(page).preferred_location);
        assert_eq!(preferred, [Some(Processor::Host), None, Some(Processor::Gpu(1)), Some(Processor::Host)]);
        assert!(advice.of(0).accessed_by.contains(Processor::Gpu(0)) && advice.of(1).accessed_by.is_empty());
        assert!(advice.of(8).read_mostly && !advice.of(9).read_mostly);
        assert_eq!(advice.preferred_at(Processor::Gpu(1)), PageSet::range(4..6));
    }
}
