//! A prefetcher of unified memory of one's own: the leaves that faulted, and the one behind each.
//!
//! It is a driver of unified memory like the built-in one, with another prefetcher: a type that implements [`Prefetcher`], and the
//! definition of a kind of unit that a topology names instead of `UnifiedMemoryDriver`. An eviction policy of one's own goes the same
//! way, by `with_eviction`.

use balar_actors::catalogue::UnitDefinition;
use balar_actors::node::unified_memory_driver::{self, UnifiedMemoryDriver};
use balar_actors::unified_memory::prefetch::{BlockFaults, Prefetcher};
use balar_actors::unified_memory::{LEAF_PAGES, PageSet};
use rand_pcg::Pcg32;

/// Brings each 64 KiB leaf in which a page faulted, and the next one of its block.
#[derive(Clone, Copy, Debug, Default)]
pub struct NextLeafPrefetcher;

impl Prefetcher for NextLeafPrefetcher {
    fn prefetch(&mut self, faults: &BlockFaults, _: &mut Pcg32) -> PageSet {
        let mut wanted = PageSet::EMPTY;
        for leaf in faults.faulted.leaves() {
            wanted = wanted.union(PageSet::range(leaf * LEAF_PAGES..(leaf + 2) * LEAF_PAGES));
        }
        let block = PageSet::range(faults.block.clone());
        wanted.intersection(block).difference(faults.resident).difference(faults.faulted)
    }
}

/// What a topology names: all parameters of `UnifiedMemoryDriver` but for the prefetcher count.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "NextLeafDriver",
    summary: "a driver of unified memory that brings the leaf behind each one that faulted, too",
    build: |text, context| {
        let driver = UnifiedMemoryDriver::new(ron::from_str(text)?, context)?;
        Ok(Box::new(driver.with_prefetcher(|| Box::new(NextLeafPrefetcher))))
    },
    ..unified_memory_driver::DEFINITION
};

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn a_fault_brings_its_leaf_and_the_next() {
        let random = &mut Pcg32::seed_from_u64(1);
        let mut brought = |block: usize, resident, faulted: &[usize]| {
            let faulted = faulted.iter().copied().collect();
            NextLeafPrefetcher.prefetch(&BlockFaults::new(block, resident, faulted), random)
        };
        assert_eq!(brought(512, PageSet::EMPTY, &[17]), PageSet::range(16..48).difference(PageSet::range(17..18)));
        assert_eq!(brought(32, PageSet::EMPTY, &[16]), PageSet::range(17..32), "the block ends");
        assert_eq!(brought(512, PageSet::leaf(2), &[16]), PageSet::range(17..32), "it is there");
    }
}
