//! Eviction of whole blocks by recency.

use super::policy::{EvictionOptions, EvictionPolicy, MemoryView, Victim, saved_by_serde};
use super::recency::RecencyOrder;
use crate::unified_memory::{Access, BlockId, PageSet};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All of a block that is there, if all of it may go.
pub(super) fn whole_block(block: BlockId, memory: &dyn MemoryView) -> Option<Victim> {
    let pages = memory.resident(block);
    memory.evictable(block).contains_all(pages).then_some(Victim { block, pages })
}

/// Evicts the block least recently accessed, with all of its pages that are there, pages that were never accessed included (UVMSmart,
/// bafab5d). A block counts as accessed when pages of it arrive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeastRecentBlock {
    options: EvictionOptions,
    order: RecencyOrder<BlockId>,
    resident: BTreeMap<BlockId, PageSet>,
}

impl LeastRecentBlock {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> LeastRecentBlock {
        LeastRecentBlock { options, order: RecencyOrder::default(), resident: BTreeMap::new() }
    }
}

impl EvictionPolicy for LeastRecentBlock {
    fn accessed(&mut self, block: BlockId, _: usize, _: Access) {
        self.order.touch(block, 1);
    }

    fn arrived(&mut self, block: BlockId, pages: PageSet) {
        let resident = self.resident.entry(block).or_default();
        *resident = resident.union(pages);
        self.order.touch(block, 1);
    }

    fn left(&mut self, block: BlockId, pages: PageSet) {
        let Some(resident) = self.resident.get_mut(&block) else { return };
        *resident = resident.difference(pages);
        if resident.is_empty() {
            self.resident.remove(&block);
            self.order.remove(block);
        }
    }

    fn victim(&mut self, memory: &dyn MemoryView, _: &mut Pcg32) -> Option<Victim> {
        let spared = self.options.spared(self.order.total());
        self.order.from(spared).find_map(|(block, _)| whole_block(block, memory))
    }

    saved_by_serde!();
}
