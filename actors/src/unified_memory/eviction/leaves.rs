//! Eviction by 64 KiB leaves.

use super::policy::{EvictionOptions, EvictionPolicy, MemoryView, Victim, saved_by_serde};
use super::recency::RecencyOrder;
use crate::unified_memory::{Access, BLOCK_LEAVES, BlockId, LEAF_PAGES, Node, PageSet, Tree};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The leaves of one block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Leaves {
    resident: PageSet,
    /// When each was last accessed, or a page of it arrived.
    times: [u64; BLOCK_LEAVES],
}

/// Blocks by their last access or arrival, and the leaves of each by theirs.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeafOrder {
    options: EvictionOptions,
    /// The weight of a block is how many of its leaves are there.
    order: RecencyOrder<BlockId>,
    blocks: BTreeMap<BlockId, Leaves>,
    time: u64,
}

impl LeafOrder {
    fn new(options: EvictionOptions) -> LeafOrder {
        LeafOrder { options, order: RecencyOrder::default(), blocks: BTreeMap::new(), time: 0 }
    }

    /// Leaves are accessed, or pages in them have arrived.
    fn touch(&mut self, id: BlockId, arrived: PageSet, touched: impl Iterator<Item = usize>) {
        self.time += 1;
        let block = self.blocks.entry(id).or_default();
        block.resident = block.resident.union(arrived);
        touched.for_each(|leaf| block.times[leaf] = self.time);
        self.order.touch(id, block.resident.leaves().count() as u32);
    }

    fn remove(&mut self, id: BlockId, pages: PageSet) {
        let Some(block) = self.blocks.get_mut(&id) else { return };
        block.resident = block.resident.difference(pages);
        if block.resident.is_empty() {
            self.blocks.remove(&id);
            self.order.remove(id);
        } else {
            self.order.set_weight(id, block.resident.leaves().count() as u32);
        }
    }

    /// The first leaf that may go: in the block least recently accessed, the leaf least recently accessed.
    fn victim(&self, memory: &dyn MemoryView) -> Option<(BlockId, usize)> {
        let spared = self.options.spared(self.order.total());
        self.order.from(spared).find_map(|(id, within)| {
            let block = self.blocks.get(&id)?;
            let mut leaves: Vec<_> = block.resident.leaves().collect();
            leaves.sort_by_key(|&leaf| block.times[leaf]);
            let leaf = leaves.into_iter().skip(within).find(|&leaf| self.evictable(memory, id, leaf).is_some())?;
            Some((id, leaf))
        })
    }

    /// The pages of a leaf, if it may go.
    fn evictable(&self, memory: &dyn MemoryView, block: BlockId, leaf: usize) -> Option<PageSet> {
        let all = PageSet::leaf(leaf).intersection(PageSet::range(0..memory.pages(block)));
        let resident = memory.resident(block).intersection(all);
        let enough = if self.options.partial_leaves { !resident.is_empty() } else { resident == all };
        (enough && memory.evictable(block).contains_all(resident)).then_some(resident)
    }
}

/// How the policies by leaves follow events.
macro_rules! keeps_leaf_order {
    () => {
        fn accessed(&mut self, block: BlockId, page: usize, _: Access) {
            self.0.touch(block, PageSet::EMPTY, std::iter::once(page / LEAF_PAGES));
        }

        fn arrived(&mut self, block: BlockId, pages: PageSet) {
            self.0.touch(block, pages, pages.leaves());
        }

        fn left(&mut self, block: BlockId, pages: PageSet) {
            self.0.remove(block, pages);
        }
    };
}

/// Evicts a leaf of the block least recently accessed: among the leaves that may go, the one least recently accessed (UVMSmart, bafab5d). A
/// leaf in which pages arrive counts as accessed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SequentialLocalEviction(LeafOrder);

impl SequentialLocalEviction {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> SequentialLocalEviction {
        SequentialLocalEviction(LeafOrder::new(options))
    }
}

impl EvictionPolicy for SequentialLocalEviction {
    keeps_leaf_order!();

    fn victim(&mut self, memory: &dyn MemoryView, _: &mut Pcg32) -> Option<Victim> {
        let (block, leaf) = self.0.victim(memory)?;
        self.0.evictable(memory, block, leaf).map(|pages| Victim { block, pages })
    }

    saved_by_serde!();
}

/// The tree-based pre-eviction of UVMSmart (bafab5d).
///
/// It evicts the leaf that [`SequentialLocalEviction`] would. Then it looks at every node of the block's tree from the bottom. Where a node
/// is less than half full, yet not empty, all its leaves go that may, which counts for the nodes above it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeEviction(LeafOrder);

impl TreeEviction {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> TreeEviction {
        TreeEviction(LeafOrder::new(options))
    }

    /// Adds the pages that go at and below a node to `victims`, and returns the pages that stay there.
    fn empty(&self, node: Node, block: BlockId, memory: &dyn MemoryView, victims: &mut PageSet) -> usize {
        let stay = |victims: &PageSet| node.valid_pages(memory.resident(block).difference(*victims));
        let Some(children) = node.children() else { return stay(victims) };
        let pages: usize = children.into_iter().map(|child| self.empty(child, block, memory, victims)).sum();
        if pages == 0 || 2 * pages >= node.leaves * LEAF_PAGES {
            return pages;
        }
        for leaf in node.leaf_numbers() {
            if let Some(leaf) = self.0.evictable(memory, block, leaf) {
                *victims = victims.union(leaf);
            }
        }
        stay(victims)
    }
}

impl EvictionPolicy for TreeEviction {
    keeps_leaf_order!();

    fn victim(&mut self, memory: &dyn MemoryView, _: &mut Pcg32) -> Option<Victim> {
        let (block, leaf) = self.0.victim(memory)?;
        let mut pages = self.0.evictable(memory, block, leaf)?;
        self.empty(Tree::over_pages(memory.pages(block)).root(), block, memory, &mut pages);
        Some(Victim { block, pages })
    }

    saved_by_serde!();
}
