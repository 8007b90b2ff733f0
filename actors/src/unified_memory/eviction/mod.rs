//! Eviction: the pages that leave the memory of a GPU when it is full.
//!
//! A policy of one's own is a file with a type that implements [`EvictionPolicy`], and a line in the list of [`EvictionChoice`].
//! When an eviction is due says [`Frames`].

mod blocks;
mod driver;
mod frames;
mod least_frequent;
mod leaves;
mod pages;
mod recency;
#[cfg(test)]
mod tests;

pub use blocks::LeastRecentBlock;
pub use driver::{ChunkUse, DriverEviction};
pub use frames::Frames;
pub use least_frequent::LeastFrequentBlock;
pub use leaves::{SequentialLocalEviction, TreeEviction};
pub use pages::{LeastRecentPage, RandomPage};

use super::{Access, BlockId, PageSet};
use crate::engine::StateError;
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// The questions of a policy about the memory from which it evicts.
pub trait MemoryView {
    /// How many pages the block has.
    fn pages(&self, block: BlockId) -> usize;
    /// The block's pages in this memory.
    fn resident(&self, block: BlockId) -> PageSet;
    /// The pages among these that may go now: no access to them is under way, and they do not wait for a write-back.
    fn evictable(&self, block: BlockId) -> PageSet;
}

/// The pages that one decision evicts. Their contiguous runs are written back one by one, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The block.
    pub block: BlockId,
    /// Its pages that go. None where the block holds memory without a page in it.
    pub pages: PageSet,
}

/// Chooses the pages that leave a memory. Time is the order of the calls.
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

    /// The pages to evict now; nothing where nothing may go. The policy forgets them when it is told that they
    /// [left](EvictionPolicy::left).
    fn victim(&mut self, memory: &dyn MemoryView, random: &mut Pcg32) -> Option<Victim>;

    /// The state as bytes.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    fn save(&self) -> Result<Vec<u8>, StateError>;

    /// Takes back the state that [`EvictionPolicy::save`] wrote, the options included.
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
use saved_by_serde;

/// The common options of all policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvictionOptions {
    /// Percent of a policy's list, from the first candidate on, that is spared (UVMSmart's `reserve_accessed_page_percent`: 0, and 10 and
    /// 20 in its studies).
    pub reserve_percent: u32,
    /// Policies by leaves also evict a leaf that has only some of its pages there. UVMSmart does not: under on-demand paging it finds no
    /// victim.
    pub partial_leaves: bool,
}

impl EvictionOptions {
    /// How many of `count` candidates are spared.
    fn spared(&self, count: usize) -> usize {
        (count as u64 * u64::from(self.reserve_percent.min(100)) / 100) as usize
    }
}

/// Declares the policies that a topology can name. All are built from the same options.
macro_rules! eviction_choices {
    ($( $(#[$about:meta])+ $choice:ident => $type:ty ),* $(,)?) => {
        /// The eviction policies that a topology can name.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        pub enum EvictionChoice {
            $( $(#[$about])+ $choice, )*
        }

        impl EvictionChoice {
            /// The choices, in the order of their list.
            pub const ALL: &'static [EvictionChoice] = &[$(EvictionChoice::$choice),*];

            /// The policy for an empty memory.
            pub fn build(self, options: EvictionOptions) -> Box<dyn EvictionPolicy> {
                match self {
                    $( EvictionChoice::$choice => Box::new(<$type>::new(options)), )*
                }
            }
        }
    };
}

eviction_choices! {
    /// Whole blocks, the one least recently accessed first (UVMSmart's default).
    LeastRecentBlock => LeastRecentBlock,
    /// Whole blocks, the one least often accessed first (UVMSmart).
    LeastFrequentBlock => LeastFrequentBlock,
    /// Single pages, the one least recently accessed first (UVMSmart).
    LeastRecentPage => LeastRecentPage,
    /// Single pages at random (UVMSmart).
    RandomPage => RandomPage,
    /// Leaves of 64 KiB, of the block least recently accessed (UVMSmart).
    SequentialLocal => SequentialLocalEviction,
    /// Such a leaf, and the rest of neighbourhoods that are less than half full (UVMSmart).
    Tree => TreeEviction,
    /// Whole blocks in the order in which the driver has given them memory.
    #[default]
    Driver => DriverEviction,
}
