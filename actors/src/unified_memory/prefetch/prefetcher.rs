//! What a prefetcher is: the faults that it is told of, and what it answers.

use crate::engine::StateError;
use crate::unified_memory::{BLOCK_PAGES, PageSet};
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

    /// Of these pages, those that the block has and that neither faulted nor are at the destination.
    pub(super) fn absent(&self, pages: PageSet) -> PageSet {
        pages.intersection(PageSet::range(self.block.clone())).difference(self.resident).difference(self.faulted)
    }

    /// The leaves in which a page faulted.
    pub(super) fn faulted_leaves(&self) -> PageSet {
        whole_leaves(self.faulted)
    }
}

/// The leaves of which at least one page is in the set, whole.
pub(super) fn whole_leaves(pages: PageSet) -> PageSet {
    pages.leaves().fold(PageSet::EMPTY, |leaves, leaf| leaves.union(PageSet::leaf(leaf)))
}

/// Decides what moves besides the faulted pages.
pub trait Prefetcher: Debug + Send {
    /// The pages to move besides the faulted. Neither faulted nor resident pages are among them, nor any that the block lacks.
    fn prefetch(&mut self, faults: &BlockFaults, random: &mut Pcg32) -> PageSet;

    /// What the prefetcher has learnt, as bytes; nothing for those that learn nothing.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    fn save(&self) -> Result<Vec<u8>, StateError> {
        Ok(Vec::new())
    }

    /// Takes back what [`Prefetcher::save`] wrote.
    ///
    /// # Errors
    ///
    /// Where the bytes are not those of such a state.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        if bytes.is_empty() { Ok(()) } else { Err(StateError::TrailingBytes(bytes.len())) }
    }
}
