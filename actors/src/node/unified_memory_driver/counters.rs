//! What the driver of unified memory counts.

use crate::unified_memory::batch::BatchStage;
use balar_protocol::SimTime;

balar_protocol::counters! {
    /// What the driver of unified memory counts.
    pub struct UnifiedMemoryCounters {
        /// batches of faults, each with its interrupt and its replay: nvprof's page fault groups
        batches: "batch",
        /// entries fetched from fault buffers
        fault_entries: "fault",
        /// entries on pages of which the batch had one already
        duplicate_faults: "fault",
        /// faults that found the fault buffer full
        fault_overflows: "fault",
        /// distinct pages of batches that were not there: far faults
        far_faults: "fault",
        /// far faults of loads alone
        far_faults_read: "fault",
        /// far faults of stores
        far_faults_write: "fault",
        /// far faults of atomics
        far_faults_atomic: "fault",
        /// faults on pages that were on their way already
        faults_on_pages_under_way: "fault",
        /// faults on pages that had come meanwhile
        faults_on_resident_pages: "fault",
        /// blocks of which batches had faults, once a batch
        blocks_served: "block",
        /// pages migrated to GPUs
        pages_to_device: "page",
        /// pages migrated to the host, evictions included
        pages_to_host: "page",
        /// of the pages migrated to GPUs, those that the prefetcher chose
        pages_prefetched: "page",
        /// prefetched pages that left again without a report of their use (GMMU: follow_use); without reports, all that left again
        pages_prefetched_unused: "page",
        /// pages that nobody had touched before and that were made where they were first touched
        pages_populated: "page",
        /// decisions of eviction policies
        evictions: "eviction",
        /// pages evicted from GPUs
        pages_evicted: "page",
        /// pages evicted without being written back
        pages_dropped: "page",
        /// pages that came back after they had been evicted
        pages_thrashed: "page",
        /// pages mapped from the host's memory into a GPU
        pages_mapped_remotely: "page",
        /// pages duplicated because they are mostly read
        pages_duplicated: "page",
        /// copies of pages that ended because somebody wrote
        duplicates_ended: "page",
        /// faults put off because their pages thrash
        faults_throttled: "fault",
        /// pages pinned because they thrash
        pages_pinned: "page",
        /// faults of the host, each with the pages around it
        host_faults: "fault",
        /// prefetches that the program asked for
        user_prefetches: "prefetch",
        /// pages moved by them
        pages_user_prefetched: "page",
        /// device synchronisations that moved pages
        synchronisations: "synchronisation",
        /// pages moved by them
        pages_synchronised: "page",
        /// time of all batches from interrupt to replay
        batch_time: "ps",
        /// the longest batch
        longest_batch: "ps" maximum,
        /// time of the host's own faults and first touches, without transfers
        host_fault_time: "ps",
        /// time of synchronisations
        synchronisation_time: "ps",
        /// time that tasks of the driver waited for room in a GPU's memory
        room_time: "ps",
        /// time of the host in interrupts
        interrupt_time: "ps",
        /// time of the host for what a process needs once
        process_time: "ps",
        /// time of the host fetching and sorting entries
        fetch_time: "ps",
        /// time of the host locking blocks and deciding
        block_time: "ps",
        /// time of the host evicting
        evict_time: "ps",
        /// time of the host allocating frames
        allocate_time: "ps",
        /// time of the host unmapping pages
        unmap_time: "ps",
        /// time of the host invalidating TLBs
        invalidate_time: "ps",
        /// time of the host setting up transfers
        transfer_time: "ps",
        /// time of the host mapping pages
        map_time: "ps",
        /// time of the host flushing and replaying
        replay_time: "ps",
    }
}

impl UnifiedMemoryCounters {
    /// The host has been busy with a stage for so long.
    pub(super) fn count_stage(&mut self, stage: BatchStage, time: SimTime) {
        *match stage {
            BatchStage::Interrupt => &mut self.interrupt_time,
            BatchStage::Process => &mut self.process_time,
            BatchStage::Fetch => &mut self.fetch_time,
            BatchStage::Blocks => &mut self.block_time,
            BatchStage::Evict => &mut self.evict_time,
            BatchStage::Allocate => &mut self.allocate_time,
            BatchStage::Unmap => &mut self.unmap_time,
            BatchStage::Invalidate => &mut self.invalidate_time,
            BatchStage::Transfers => &mut self.transfer_time,
            BatchStage::Map => &mut self.map_time,
            BatchStage::Replay => &mut self.replay_time,
        } += time.0;
    }
}

balar_protocol::counters! {
    /// What the driver of unified memory counts for each allocation.
    pub struct AllocationCounters {
        /// bytes asked for
        bytes: "byte",
        /// far faults
        far_faults: "fault",
        /// faults of the host
        host_faults: "fault",
        /// pages migrated to GPUs
        pages_to_device: "page",
        /// pages migrated to the host
        pages_to_host: "page",
        /// of the pages migrated to GPUs, those that the prefetcher chose
        pages_prefetched: "page",
        /// pages evicted from GPUs
        pages_evicted: "page",
        /// pages that came back after they had been evicted
        pages_thrashed: "page",
    }
}

balar_protocol::counters! {
    /// What of a GPU's memory managed pages have.
    pub struct GpuMemoryCounters {
        /// managed pages in its memory at the end
        pages_resident: "page",
        /// frames that managed pages had at once
        most_pages_resident: "page" maximum,
    }
}
