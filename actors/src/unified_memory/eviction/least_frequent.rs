//! Eviction of whole blocks by how often they are accessed.

use super::blocks::whole_block;
use super::policy::{EvictionOptions, EvictionPolicy, MemoryView, Victim, saved_by_serde};
use crate::unified_memory::{Access, BlockId, PageSet};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The order of blocks: accesses, then whether any wrote, then the time of the last access or arrival.
type Rank = (u64, bool, u64);

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Block {
    rank: Rank,
    resident: PageSet,
}

/// Evicts the block that was accessed least often; among several the one that was only read, and among those the one least recently
/// accessed (UVMSmart, bafab5d). Accesses are remembered when a block has left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeastFrequentBlock {
    options: EvictionOptions,
    blocks: BTreeMap<BlockId, Block>,
    /// The blocks that have pages there.
    order: BTreeSet<(Rank, BlockId)>,
    time: u64,
}

impl LeastFrequentBlock {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> LeastFrequentBlock {
        LeastFrequentBlock { options, blocks: BTreeMap::new(), order: BTreeSet::new(), time: 0 }
    }

    /// Changes a block and puts it where it now belongs.
    fn change(&mut self, id: BlockId, change: impl FnOnce(&mut Block, u64)) {
        self.time += 1;
        let block = self.blocks.entry(id).or_default();
        self.order.remove(&(block.rank, id));
        change(block, self.time);
        if !block.resident.is_empty() {
            self.order.insert((block.rank, id));
        }
    }
}

impl EvictionPolicy for LeastFrequentBlock {
    fn accessed(&mut self, block: BlockId, _: usize, access: Access) {
        self.change(block, |block, time| block.rank = (block.rank.0 + 1, block.rank.1 || access.writes(), time));
    }

    fn arrived(&mut self, block: BlockId, pages: PageSet) {
        self.change(block, |block, time| {
            block.resident = block.resident.union(pages);
            block.rank.2 = time;
        });
    }

    fn left(&mut self, block: BlockId, pages: PageSet) {
        self.change(block, |block, _| block.resident = block.resident.difference(pages));
    }

    fn victim(&mut self, memory: &dyn MemoryView, _: &mut Pcg32) -> Option<Victim> {
        let spared = self.options.spared(self.order.len());
        self.order.iter().skip(spared).find_map(|&(_, block)| whole_block(block, memory))
    }

    saved_by_serde!();
}
