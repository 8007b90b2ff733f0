//! What an L2 slice is described by.

use super::sets::MOST_WAYS;
use crate::catalogue::bounds::{CLOCK, CYCLES, ENTRIES, PER_CYCLE};
use crate::gpu::CachesBetweenKernels;
use crate::interleave::AddressBits;
use balar_protocol::memory::{LINE_BYTES, MemoryRequest, SECTOR_BYTES, sector_count};
use balar_protocol::{Bytes, Frequency};

/// Which loads find and leave copies of lines of the other partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum Copies {
    /// All, as on an H100: `ld.cg` finds them, too (Jin et al., MICRO 2024, figures 8 and 13).
    OfAllLoads,
    /// Those of no scope, as on an A100, by inference: `ld.cg`, which is a strong load in machine code, stays as slow however often it reads a
    /// line (the same, figure 12; the 259 cycles a load of Accel-Sim's l2_lat), and weak loads do not (RRZE gpu-latency).
    OfWeakLoads,
}

crate::parameters! {
    /// An L2 slice.
    pub struct L2SliceParameters {
        /// clock of the slice
        #[range(CLOCK)]
        clock: Frequency,
        /// data capacity (V100: 6 MiB in 32 slices)
        #[range(..=Bytes(1 << 28))]
        capacity: Bytes = r#""192 KiB""#,
        /// lines of a set (Accel-Sim configuration of the QV100)
        #[range(1..=MOST_WAYS)]
        ways: u32 = "24",
        /// the address bits whose exclusive or is each bit of the set number; none where the lines of a slice follow each other in the sets. Where there are m times as many sets, runs of as many lines as these bits and the slices tell apart take turns in m groups of sets
        set_bits: AddressBits = "[]",
        /// lines of a set that may be dirty: a store beyond them writes the one to memory that was used longest ago; 0 = all. Not beyond `ways`
        #[range(..=MOST_WAYS)]
        dirty_ways: u32 = "0",
        /// cycles from the tag lookup of a hit to its response (calibrated: 212-cycle L2 hit of the V100)
        #[range(CYCLES)]
        hit_latency: u32 = "44",
        /// cycles from the tag lookup of a miss to the request to memory (calibrated: 425-cycle random access of the V100)
        #[range(CYCLES)]
        miss_latency: u32 = "12",
        /// cycles from the arrival of a fill to the responses that waited for it (calibrated: as miss_latency)
        #[range(CYCLES)]
        fill_latency: u32 = "32",
        /// tag lookups a cycle
        #[range(PER_CYCLE)]
        lookups_per_cycle: u32 = "1",
        /// data bytes a cycle (32 slices x 64 B of the V100 give 2048 B a cycle; 1775 were measured)
        #[range(PER_CYCLE)]
        bytes_per_cycle: u32 = "64",
        /// bytes a cycle of stores, by what they carry in whole sectors, while others move `bytes_per_cycle`; 0 = as others, by the sectors they touch
        #[range(..=*PER_CYCLE.end())]
        store_bytes_per_cycle: u32 = "0",
        /// cycles that a store which writes a part of a sector takes the data array at least: the sector is read, and written whole
        #[range(..=1000)]
        partial_store_cycles: u32 = "0",
        /// where the L2 has two partitions: which loads find and leave copies of the lines of the other one, OfAllLoads or OfWeakLoads
        copies: Copies = "OfAllLoads",
        /// where the L2 has two partitions: bytes a cycle of the wires by which it answers the other one (32: one sector; an estimate)
        #[range(PER_CYCLE)]
        far_bytes_per_cycle: u32 = "32",
        /// bytes a load miss fetches around the sectors it needs: 32, 64 or 128 (64: a sequential 32-byte chase on a TITAN V takes 313 cycles, the mean of an L2 hit and a DRAM access)
        fetch_granularity: Bytes = r#""64 B""#,
        /// lines that may have fills under way from memory, and as many from the other partition
        #[range(ENTRIES)]
        mshr_entries: u32 = "128",
        /// requests that may wait for one line (more than there are SMs: all of a V100 read one buffer beyond the L2 at 2313 GB/s, RRZE gpu-cache)
        #[range(ENTRIES)]
        mshr_merges: u32 = "128",
        /// evicted lines that may be on their way to memory
        #[range(ENTRIES)]
        write_back_entries: u32 = "64",
        /// further cycles an atomic takes (TITAN V: 243.6 cycles against 211.1 of a load)
        #[range(CYCLES)]
        atomic_latency: u32 = "32",
        /// operations of one request the atomics unit does in a cycle
        #[range(PER_CYCLE)]
        atomic_operations_per_cycle: u32 = "8",
        /// its contents when a kernel begins: Kept, or Flushed as by Nsight Compute
        caches_between_kernels: CachesBetweenKernels = "Kept",
        /// answers to hits that may be under way between the look-up and the crossbar; 0 = any number (64: those of a hit's latency, and 20 that wait; an estimate)
        #[range(..=MOST_QUEUED)]
        answer_queue: u32 = "64",
        /// atomics that hit and may be under way between the look-up and the crossbar; 0 = any number (96: likewise, with the latency of an atomic)
        #[range(..=MOST_QUEUED)]
        atomic_queue: u32 = "96",
        /// least cycles between two atomics on the same line
        #[range(CYCLES)]
        same_line_atomic_interval: u32 = "2",
    }
}

/// The longest queue with an end.
const MOST_QUEUED: u32 = *ENTRIES.end();

impl L2SliceParameters {
    /// Bytes of a set.
    pub(super) fn set_bytes(&self) -> u64 {
        u64::from(self.ways.max(1)) * LINE_BYTES
    }

    /// The bytes that others could move while a store has the data array.
    pub(super) fn data_of_store(&self, store: &MemoryRequest) -> u64 {
        let rate = u64::from(self.bytes_per_cycle);
        let data = match u64::from(self.store_bytes_per_cycle) {
            0 => u64::from(sector_count(store.sectors)) * SECTOR_BYTES,
            of_stores => u64::from(store.data_bytes).next_multiple_of(SECTOR_BYTES) * rate / of_stores,
        };
        match store.partial_sectors() {
            0 => data,
            _ => data.max(rate * u64::from(self.partial_store_cycles)),
        }
    }

    /// How many sets it has.
    pub(super) fn sets(&self) -> u32 {
        (self.capacity.0 / self.set_bytes()) as u32
    }
}
