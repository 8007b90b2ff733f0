//! Prefetchers: pages that move besides the ones that faulted.
//!
//! A prefetcher of one's own is a file with a type that implements [`Prefetcher`], and a line in the list of [`PrefetcherChoice`].

mod driver;
mod none;
mod random;
mod sequential_local;
#[cfg(test)]
mod tests;
mod tree;

pub use driver::DriverPrefetcher;
pub use none::OnDemand;
pub use random::RandomPrefetcher;
pub use sequential_local::SequentialLocalPrefetcher;
pub use tree::TreePrefetcher;

use super::choices::choices;
use super::{BLOCK_PAGES, PageSet};
use crate::engine::StateError;
use rand_pcg::Pcg32;
use std::fmt::Debug;
use std::ops::Range;

/// The faults on one block that are served together (in one batch of the driver, or one GMMU cycle of UVMSmart), for one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFaults {
    /// The pages that the block has. A block that does not begin at a leaf's first page begins at one of the first leaf's others.
    pub block: Range<usize>,
    /// Pages at the destination, or on their way to it.
    pub resident: PageSet,
    /// Pages that faulted and are going to move.
    pub faulted: PageSet,
    /// Pages that thrash.
    pub thrashing: PageSet,
    /// Pages that the destination has mapped already, where it is the host.
    pub mapped_on_host: PageSet,
    /// Pages that lie at their preferred location, which is not the destination.
    pub at_preferred_location: PageSet,
    /// No page of the block is populated yet, and the destination is its preferred location.
    pub first_touch_at_preferred_location: bool,
    /// Faults of the block since another destination was served, these included.
    pub fault_count: u64,
}

impl BlockFaults {
    /// Faults on a block of `pages` pages without advice, thrashing or a history.
    pub fn new(pages: usize, resident: PageSet, faulted: PageSet) -> BlockFaults {
        BlockFaults {
            block: 0..pages.min(BLOCK_PAGES),
            resident,
            faulted,
            thrashing: PageSet::EMPTY,
            mapped_on_host: PageSet::EMPTY,
            at_preferred_location: PageSet::EMPTY,
            first_touch_at_preferred_location: false,
            fault_count: faulted.len() as u64,
        }
    }

    /// The pages among these that the block has and that neither faulted nor are at the destination.
    fn absent(&self, pages: PageSet) -> PageSet {
        pages.intersection(PageSet::range(self.block.clone())).difference(self.resident).difference(self.faulted)
    }

    /// The leaves in which a page faulted.
    fn faulted_leaves(&self) -> PageSet {
        whole_leaves(self.faulted)
    }
}

/// The leaves with at least one page in the set, whole.
fn whole_leaves(pages: PageSet) -> PageSet {
    pages.leaves().fold(PageSet::EMPTY, |leaves, leaf| leaves.union(PageSet::leaf(leaf)))
}

/// Decides which pages move besides the faulted ones.
pub trait Prefetcher: Debug + Send {
    /// The pages to move besides the faulted. Neither faulted nor resident pages are among them, nor any that the block lacks.
    fn prefetch(&mut self, faults: &BlockFaults, random: &mut Pcg32) -> PageSet;

    /// The learnt state of the prefetcher, as bytes; nothing for prefetchers that learn nothing.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    fn save(&self) -> Result<Vec<u8>, StateError> {
        Ok(Vec::new())
    }

    /// Takes back the state that [`Prefetcher::save`] wrote.
    ///
    /// # Errors
    ///
    /// Where the bytes are not those of such a state.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        if bytes.is_empty() { Ok(()) } else { Err(StateError::TrailingBytes(bytes.len())) }
    }
}

choices! {
    /// The prefetchers that a topology can name.
    pub enum PrefetcherChoice builds Prefetcher {
        /// Only faulting pages move.
        None => OnDemand,
        /// One more page a fault, at random in the block (UVMSmart).
        Random => RandomPrefetcher,
        /// The rest of the leaves that faulted (UVMSmart).
        SequentialLocal => SequentialLocalPrefetcher,
        /// The tree-based neighbourhood prefetcher of UVMSmart, which cascades.
        Tree => TreePrefetcher,
        /// The driver's: the largest well-filled neighbourhood of each fault.
        Driver(..) => DriverPrefetcher,
    }
}

impl Default for PrefetcherChoice {
    /// The driver's, for it alone reproduces the transfers of the traces in both directions.
    fn default() -> Self {
        PrefetcherChoice::Driver(DriverPrefetcher::default())
    }
}
