//! No prefetching.

use super::prefetcher::{BlockFaults, Prefetcher};
use crate::unified_memory::PageSet;
use rand_pcg::Pcg32;

/// Moves each page when it faults and nothing else.
///
/// UVMSmart (bafab5d) moves each such page in a transfer of its own: contiguous faulting pages are not joined. [`SplitRule::AfterFault`]
/// cuts them so.
///
/// [`SplitRule::AfterFault`]: crate::unified_memory::transfers::SplitRule::AfterFault
#[derive(Clone, Copy, Debug, Default)]
pub struct OnDemand;

impl Prefetcher for OnDemand {
    fn prefetch(&mut self, _: &BlockFaults, _: &mut Pcg32) -> PageSet {
        PageSet::EMPTY
    }
}
