//! Random prefetching.

use super::prefetcher::{BlockFaults, Prefetcher};
use crate::unified_memory::{PageSet, uniform};
use rand_pcg::Pcg32;

/// For each faulting page, ascending, draws one page of the block and moves it too, unless it is there or under way (UVMSmart, bafab5d, and
/// the study before it). A bound for the gain of prefetching without locality.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomPrefetcher;

impl Prefetcher for RandomPrefetcher {
    fn prefetch(&mut self, faults: &BlockFaults, random: &mut Pcg32) -> PageSet {
        let drawn = faults.faulted.iter().map(|_| faults.block.start + uniform(random, faults.block.len()));
        faults.absent(drawn.collect())
    }
}
