//! The eviction order of NVIDIA's driver.

use super::blocks::whole_block;
use super::policy::{ChunkUse, EvictionOptions, EvictionPolicy, MemoryView, Victim, saved_by_serde};
use crate::unified_memory::{Access, BlockId, PageSet};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Evicts 2 MiB of memory with all pages in it: what is unused first, then what was discarded, then what was given memory longest ago.
/// Accesses do not count (NVIDIA's open kernel modules 595.45.04: lists of root chunks).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriverEviction {
    options: EvictionOptions,
    chunks: BTreeMap<BlockId, (ChunkUse, u64)>,
    order: BTreeSet<((ChunkUse, u64), BlockId)>,
    time: u64,
}

impl DriverEviction {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> DriverEviction {
        DriverEviction { options, chunks: BTreeMap::new(), order: BTreeSet::new(), time: 0 }
    }
}

impl EvictionPolicy for DriverEviction {
    fn accessed(&mut self, _: BlockId, _: usize, _: Access) {}

    fn arrived(&mut self, _: BlockId, _: PageSet) {}

    fn left(&mut self, _: BlockId, _: PageSet) {}

    fn allocated(&mut self, block: BlockId, chunk_use: Option<ChunkUse>) {
        self.time += 1;
        if let Some(rank) = self.chunks.remove(&block) {
            self.order.remove(&(rank, block));
        }
        if let Some(chunk_use) = chunk_use {
            self.chunks.insert(block, (chunk_use, self.time));
            self.order.insert(((chunk_use, self.time), block));
        }
    }

    fn victim(&mut self, memory: &dyn MemoryView, _: &mut Pcg32) -> Option<Victim> {
        let spared = self.options.spared(self.order.len());
        self.order.iter().skip(spared).find_map(|&(_, block)| whole_block(block, memory))
    }

    saved_by_serde!();
}
