//! What can be chosen of the driver, and in which ranges.

use super::{HostAccess, InitialResidency, ReplayPolicy, WriteBack};
use crate::catalogue::bounds::TIME;
use crate::catalogue::{ParameterSet, Problems};
use crate::unified_memory::PAGE_BYTES;
use crate::unified_memory::batch::BatchCosts;
use crate::unified_memory::eviction::{EvictionChoice, EvictionOptions};
use crate::unified_memory::prefetch::PrefetcherChoice;
use crate::unified_memory::remote_access::{MOST_ACCESSES, RemoteAccessRule};
use crate::unified_memory::thrashing::ThrashingParameters;
use crate::unified_memory::transfers::SplitRule;
use balar_protocol::{Bytes, SimTime};

crate::parameters! {
    /// The driver of unified memory. The defaults are what NVIDIA's open kernel modules 595.45.04 do; UVMSmart's choices are named.
    pub struct UnifiedMemoryDriverParameters {
        /// where managed memory is before it is touched: Nowhere, or Host (UVMSmart: all of it is transferred)
        initial_residency: InitialResidency = "Nowhere",
        /// when pages come back that the host accesses: Lazy, as it accesses them, or Eager, all that GPUs have changed at a device synchronisation (UVMSmart)
        host_access: HostAccess = "Lazy",
        /// what comes besides the pages that faulted: None, Random, SequentialLocal, Tree (UVMSmart), or Driver(threshold_percent, minimum_faults)
        prefetcher: PrefetcherChoice = "Driver()",
        /// the prefetcher once a GPU's memory has been too small; None where it stays the same (UVMSmart)
        prefetcher_when_full: Option<PrefetcherChoice> = "None",
        /// how moving pages are cut into transfers: AtCause (the driver), or AfterFault (UVMSmart)
        split: SplitRule = "AtCause",
        /// what leaves a GPU's memory that is full: Driver, LeastRecentBlock, LeastFrequentBlock, LeastRecentPage, RandomPage, SequentialLocal or Tree (UVMSmart)
        eviction: EvictionChoice = "Driver",
        /// what eviction policies have in common: reserve_percent, partial_leaves
        eviction_options: EvictionOptions = "()",
        /// percent of a GPU's frames that are kept free
        #[range(..=99)]
        free_buffer_percent: u32 = "0",
        /// when frames of evicted pages are free: Blocking, when the pages have left, or Overlapping, at once (UVMSmart)
        write_back: WriteBack = "Blocking",
        /// evicted pages that the host has too, unchanged, are not written back (only where host_access is Eager: otherwise the host has no copy)
        drops_clean_pages: bool = "false",
        /// bytes of each GPU's memory for managed pages; 0 for all that is not allocated otherwise
        gpu_memory: Bytes = r#""0 B""#,
        /// when pages stay on the host and are accessed from there: mode, threshold, penalty (UVMSmart)
        remote_access: RemoteAccessRule = "()",
        /// how pages over which processors fight are found, throttled and pinned; None where they are not, and then GPUs may take a page from each other for ever
        thrashing: Option<ThrashingParameters> = "Some(())",
        /// faults of a batch, at most (uvm_perf_fault_batch_count: 256)
        #[range(1..=1 << 20)]
        batch_entries: u32 = "256",
        /// when faulted accesses are tried again: BatchFlush, Batch, Block or Once (uvm_perf_fault_replay_policy: 2, BatchFlush)
        replay: ReplayPolicy = "BatchFlush",
        /// what a batch costs the host, stage by stage (default: 38 fault groups of a GTX 1080 Ti)
        costs: BatchCosts = "()",
        /// what a fault of the host costs it, without the transfers (calibrated: 40 to 50 us from fault to fault of 64 KiB on a GTX 1080 Ti, of which 6.3 us are transfers)
        #[range(TIME)]
        host_fault_time: SimTime = r#""38 us""#,
        /// what the first touch of a page by the host costs it (estimate: a minor page fault)
        #[range(TIME)]
        host_populate_time: SimTime = r#""500 ns""#,
        /// of a prefetch by the program, one run of pages at a time is on its way (UVMSmart)
        prefetches_one_by_one: bool = "false",
        /// the seed of what is drawn at random
        seed: u64 = "1",
    }
}

impl UnifiedMemoryDriverParameters {
    /// Does the host keep a copy of what GPUs have not changed?
    pub(super) fn keeps_host_copies(&self) -> bool {
        self.host_access == HostAccess::Eager
    }

    pub(super) fn write_back_overlaps(&self) -> bool {
        self.write_back == WriteBack::Overlapping
    }

    /// What is out of its range.
    pub(super) fn problems(&self) -> Problems {
        let mut problems = self.range_problems();
        for (key, choice) in
            [("prefetcher", Some(&self.prefetcher)), ("prefetcher_when_full", self.prefetcher_when_full.as_ref())]
        {
            if let Some(PrefetcherChoice::Driver(driver)) = choice {
                problems.check_range(format!("{key}.threshold_percent"), driver.threshold_percent, ..=100);
                problems.check_range(format!("{key}.minimum_faults"), driver.minimum_faults, 1..);
            }
        }
        problems.check_range("eviction_options.reserve_percent", self.eviction_options.reserve_percent, ..=99);
        let page = Bytes(PAGE_BYTES);
        let is_memory = self.gpu_memory.0 == 0 || self.gpu_memory >= page;
        problems.check(is_memory, "gpu_memory", &format!("expected 0 B or at least {page}, found {}", self.gpu_memory));
        let RemoteAccessRule { mode: _, threshold, penalty } = self.remote_access;
        problems.check_range("remote_access.threshold", threshold, 1..=u64::from(MOST_ACCESSES));
        problems.check_range("remote_access.penalty", penalty, 1..);
        if let Some(ThrashingParameters { threshold, lapse, nap, epoch, .. }) = self.thrashing {
            problems.check_range("thrashing.threshold", threshold, 1..);
            problems.check_range("thrashing.lapse", lapse, SimTime(1)..=TIME.end);
            problems.check_range("thrashing.nap", nap, 1..);
            problems.check_range("thrashing.epoch", epoch, 1..);
        }
        for (key, time) in self.costs.by_key() {
            problems.check_range(format!("costs.{key}"), time, TIME);
        }
        problems
    }
}
