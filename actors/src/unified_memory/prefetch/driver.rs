//! The prefetcher of NVIDIA's driver.

use super::prefetcher::{BlockFaults, Prefetcher, whole_leaves};
use crate::unified_memory::{LEAF_PAGES, PageSet};
use rand_pcg::Pcg32;
use serde::Deserialize;
use std::ops::Range;

/// The prefetching of NVIDIA's open kernel modules 595.45.04, for GPU and host faults alike.
///
/// A leaf in which a page faulted counts as there. For each faulting page, the largest aligned neighbourhood (of 1, 2, 4 ... pages) that is
/// there by more than the threshold moves whole. Pages that one fault prefetches do not count for the next one. It reproduces all 196
/// transfers of five traces (GTX 1080 Ti), in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverPrefetcher {
    /// The percentage of a neighbourhood that must be exceeded by the pages that are there (`uvm_perf_prefetch_threshold`; default 51).
    pub threshold_percent: u32,
    /// Faults of a block for one destination from which on there is prefetching (`uvm_perf_prefetch_min_faults`; default 1).
    pub minimum_faults: u64,
}

impl Default for DriverPrefetcher {
    fn default() -> Self {
        DriverPrefetcher { threshold_percent: 51, minimum_faults: 1 }
    }
}

impl Prefetcher for DriverPrefetcher {
    fn prefetch(&mut self, faults: &BlockFaults, _: &mut Pcg32) -> PageSet {
        if faults.fault_count < self.minimum_faults {
            return PageSet::EMPTY;
        }
        let hint = if faults.first_touch_at_preferred_location { PageSet::FULL } else { self.neighbourhoods(faults) };
        let hint = hint.difference(faults.thrashing).difference(faults.mapped_on_host);
        faults.absent(hint.difference(faults.at_preferred_location))
    }
}

impl DriverPrefetcher {
    /// The neighbourhoods of all faulting pages that do not thrash.
    fn neighbourhoods(&self, faults: &BlockFaults) -> PageSet {
        // A leaf with a thrashing page does not count as there because others faulted.
        let calm = faults.faulted.leaves().filter(|&leaf| faults.thrashing.count_in_leaf(leaf) == 0);
        let grown = whole_leaves(calm.map(|leaf| leaf * LEAF_PAGES).collect());
        let there =
            faults.resident.union(faults.faulted).union(grown.intersection(PageSet::range(faults.block.clone())));
        let mut hint = PageSet::EMPTY;
        for page in faults.faulted.difference(faults.thrashing).iter() {
            let region = self.neighbourhood(page, there, faults.block.end);
            hint = hint.union(PageSet::range(region.clone()));
            if region.end == faults.block.end {
                break;
            }
        }
        hint
    }

    /// The largest aligned power of two of pages around `page`, cut at the end of the block, that is there by more than the threshold.
    fn neighbourhood(&self, page: usize, there: PageSet, end: usize) -> Range<usize> {
        let mut region = page..page + 1;
        for level in 1..=end.next_power_of_two().ilog2() {
            let first = page >> level << level;
            let node = first..(first + (1 << level)).min(end);
            if 100 * there.count(node.clone()) as u64 > u64::from(self.threshold_percent) * node.len() as u64 {
                region = node;
            }
        }
        region
    }
}
