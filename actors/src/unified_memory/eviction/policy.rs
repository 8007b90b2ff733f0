//! What an eviction policy is: what it is told, what it asks, and what it answers.

use crate::engine::StateError;
use crate::unified_memory::{Access, BlockId, PageSet};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// What a policy asks about the memory from which it evicts.
pub trait MemoryView {
    /// How many pages the block has.
    fn pages(&self, block: BlockId) -> usize;
    /// The block's pages in this memory.
    fn resident(&self, block: BlockId) -> PageSet;
    /// Of these, the ones that may go now: no access to them is under way, and they do not wait for a write-back.
    fn evictable(&self, block: BlockId) -> PageSet;
}

/// What one decision evicts. Its contiguous runs of pages are written back one by one, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The block.
    pub block: BlockId,
    /// Its pages that go. None where the block holds memory without a page in it.
    pub pages: PageSet,
}

/// What the memory of a block is used for, in the order of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChunkUse {
    /// Nothing: no page of the block lies there any more.
    Unused,
    /// Pages whose values the program has discarded.
    Discarded,
    /// Pages.
    Used,
}

/// Chooses what leaves a memory. Time is the order of the calls.
pub trait EvictionPolicy: Debug + Send {
    /// A page that is in the memory was accessed.
    fn accessed(&mut self, block: BlockId, page: usize, access: Access);

    /// Pages have arrived in the memory.
    fn arrived(&mut self, block: BlockId, pages: PageSet);

    /// Pages have left the memory, or wait for their write-back. A write-back that is cancelled is an arrival.
    fn left(&mut self, block: BlockId, pages: PageSet);

    /// The driver has allocated memory for the block; `None`: it has given all of it back.
    fn allocated(&mut self, block: BlockId, chunk_use: Option<ChunkUse>) {
        let _ = (block, chunk_use);
    }

    /// What to evict now; nothing where nothing may go. The policy forgets it when it is told that it [left](EvictionPolicy::left).
    fn victim(&mut self, memory: &dyn MemoryView, random: &mut Pcg32) -> Option<Victim>;

    /// The state as bytes.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    fn save(&self) -> Result<Vec<u8>, StateError>;

    /// Takes back what [`EvictionPolicy::save`] wrote, the options included.
    ///
    /// # Errors
    ///
    /// Where the bytes are not those of such a state.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), StateError>;
}

/// The two methods that all policies have alike, as they are plain values.
macro_rules! saved_by_serde {
    () => {
        fn save(&self) -> Result<Vec<u8>, crate::engine::StateError> {
            crate::engine::save_state(self)
        }

        fn restore(&mut self, bytes: &[u8]) -> Result<(), crate::engine::StateError> {
            *self = crate::engine::restore_state(bytes)?;
            Ok(())
        }
    };
}
pub(super) use saved_by_serde;

/// What all policies have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvictionOptions {
    /// Percent of a policy's list, from the first candidate on, that is spared (UVMSmart's `reserve_accessed_page_percent`: 0, and 10 and
    /// 20 in its studies).
    pub reserve_percent: u32,
    /// Policies by leaves evict a leaf of which only some pages are there too. UVMSmart does not: under on-demand paging it finds no victim.
    pub partial_leaves: bool,
}

impl EvictionOptions {
    /// How many of `count` candidates are spared.
    pub(super) fn spared(&self, count: usize) -> usize {
        (count as u64 * u64::from(self.reserve_percent.min(100)) / 100) as usize
    }
}
