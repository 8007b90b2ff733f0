//! Sequential-local prefetching.

use super::prefetcher::{BlockFaults, Prefetcher};
use crate::unified_memory::PageSet;
use rand_pcg::Pcg32;

/// Moves the rest of every 64 KiB leaf in which a page faulted (UVMSmart, bafab5d).
#[derive(Clone, Copy, Debug, Default)]
pub struct SequentialLocalPrefetcher;

impl Prefetcher for SequentialLocalPrefetcher {
    fn prefetch(&mut self, faults: &BlockFaults, _: &mut Pcg32) -> PageSet {
        faults.absent(faults.faulted_leaves())
    }
}
