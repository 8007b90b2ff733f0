//! What a GMMU is described by.

use super::page_table::ManagedPageSizes;
use crate::catalogue::bounds::{CLOCK, CYCLES, ENTRIES, PER_CYCLE};
use crate::catalogue::{BuildError, ParameterSet};
use crate::unified_memory::PAGE_BYTES;
use balar_protocol::migration::ShootdownScope;
use balar_protocol::{Bytes, Frequency};
use serde::Deserialize;

/// How a GMMU tells the driver of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FaultReporting {
    /// By a buffer from which the driver fetches, as NVIDIA's GPUs do. Each request is a fault of its own, the same page or not; a driver
    /// finds several of one TLB and page and has them merged (NVIDIA's open kernel modules 595.45.04, `uvm_perf_fault_coalesce`).
    Buffered {
        /// Entries of the buffer.
        entries: u32,
        /// Entries that a TLB can make between two replays; what faults beyond them waits for the next.
        per_tlb: u32,
    },
    /// By a message with the pages that fault in a cycle and that nothing waits for yet, as UVMSmart does.
    EachCycle,
}

/// When the entries of TLBs are invalidated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ShootdownWhen {
    /// When pages are unmapped, as the driver does.
    Unmap,
    /// Whenever the page table changes.
    EachUpdate,
}

crate::parameters! {
    /// A GMMU.
    pub struct GmmuParameters {
        /// clock of the GMMU
        #[range(CLOCK)]
        clock: Frequency,
        /// bytes of a page that is not managed, a power of two
        page_size: Bytes = r#""2 MiB""#,
        /// entries of the TLB, least recently used goes first (P100: 65, from its latency knee at 2080 MiB)
        #[range(1..=1 << 20)]
        entries: u32 = "65",
        /// entries of a set of the TLB; 0: all are one set
        ways: u32 = "0",
        /// bytes an entry covers at most, a power of two and at least a page (P100: 32 MiB)
        entry_reach: Bytes = r#""32 MiB""#,
        /// cycles of a TLB hit
        #[range(CYCLES)]
        hit_latency: u32 = "1",
        /// further cycles of a page walk (P100: 110 cycles beyond the second TLB's reach)
        #[range(CYCLES)]
        walk_latency: u32 = "110",
        /// walks at the same time
        #[range(ENTRIES)]
        walkers: u32 = "8",
        /// blocks of 2 MiB of which the page-walk cache has the page tables of managed memory, least recently used goes first
        #[range(..=1 << 20)]
        walk_cache_entries: u32 = "0",
        /// further cycles of a walk to managed memory whose block is in the page-walk cache (an estimate: one of four accesses of a walk)
        #[range(CYCLES)]
        walk_cache_latency: u32 = "28",
        /// requests a cycle
        #[range(PER_CYCLE)]
        requests_per_cycle: u32 = "1",
        /// pages of managed memory: Mixed (2 MiB where all of a block is mapped alike, 64 KiB where a leaf is, else 4 KiB) or Small (4 KiB)
        managed_page_sizes: ManagedPageSizes = "Mixed",
        /// how the driver is told of far faults: Buffered(entries, per_tlb) or EachCycle. NVIDIA's firmware sizes the buffer, 2048 is an estimate;
        /// 56 faults of a TLB on Volta are recalled from a paper of SC 2021 on unified memory, to be checked. Each request is a fault: with that,
        /// y = x + y over 2^20 floats has 14 batches and 86 transfers; measured are 15 and 107 (TITAN Xp), 12 and 78 (GTX 1060), 12 and 99 (RTX 2060)
        faults: FaultReporting = "Buffered(entries: 2048, per_tlb: 56)",
        /// when entries of TLBs are invalidated: on Unmap, as the driver does, or on EachUpdate of the page table
        shootdown_when: ShootdownWhen = "Unmap",
        /// which entries are invalidated: Entry (those of each page, one page after the other), Range or All
        shootdown_scope: ShootdownScope = "Range",
        /// cycles of the GMMU for each invalidation, one after the other (an estimate: none beyond the wires)
        #[range(CYCLES)]
        shootdown_latency: u32 = "0",
        /// whether SMs report how often they use managed pages; their TLBs then have those as pages of 4 KiB
        follow_use: bool = "false",
    }
}

impl GmmuParameters {
    pub(super) fn check_values(&self) -> Result<(), BuildError> {
        let mut problems = self.range_problems();
        let is_even = self.ways == 0 || self.entries.is_multiple_of(self.ways);
        problems.check(is_even, "ways", "expected a divisor of entries, or 0");
        for (key, value) in [("page_size", self.page_size), ("entry_reach", self.entry_reach)] {
            problems.check(value.0.is_power_of_two(), key, &format!("expected a power of two, found {value}"));
        }
        problems.check(self.entry_reach >= self.page_size, "entry_reach", "expected at least a page");
        problems.check(self.entry_reach.0 >= PAGE_BYTES, "entry_reach", "expected at least 4 KiB");
        if let FaultReporting::Buffered { entries, per_tlb } = self.faults {
            problems.check_range("faults.entries", entries, 1..=1 << 20);
            problems.check_range("faults.per_tlb", per_tlb, 1..);
        }
        problems.into_result()
    }
}
