//! What an L2 slice counts, and why its input queue stands.

use balar_protocol::by_launch::Share;
use balar_protocol::memory::{MemoryKind, MemoryRequest, SECTOR_BYTES, sector_count};
use balar_protocol::statistics::UnitCounters;
use serde::{Deserialize, Serialize};

balar_protocol::counters! {
    /// The counters of an L2 slice. Sectors are counted at the port, before merging.
    pub struct L2SliceCounters {
        /// requests taken from the input queue
        requests: "request",
        /// sectors that loads asked for
        sectors_read: "sector",
        /// sectors that stores wrote
        sectors_written: "sector",
        /// sectors of loads that were valid, or on their way for another request, as profilers count
        sector_hits_read: "sector",
        /// sectors of loads that were neither valid nor on their way
        sector_misses_read: "sector",
        /// sectors that atomics and reductions touched
        sectors_atomic: "sector",
        /// sectors of atomics and reductions that were valid or on their way
        sector_hits_atomic: "sector",
        /// requests that were atomics
        atomics: "request",
        /// requests that were reductions
        reductions: "request",
        /// operations of atomics and reductions
        atomic_operations: "operation",
        /// data bytes from and to the crossbar
        bytes: "byte",
        /// lines replaced
        evictions: "line",
        /// lines written to memory, because they were replaced or too many of their set were dirty
        write_backs: "line",
        /// dirty sectors sent to memory
        sectors_written_back: "sector",
        /// fill requests sent to memory
        fills: "request",
        /// sectors fetched from memory
        sectors_filled: "sector",
        /// loads of lines that belong to the other partition, and were asked of it
        far_fills: "request",
        /// stores, atomics and loads without copies that were passed on to the other partition, to which their lines belong
        far_passed_on: "request",
        /// requests of the other partition
        near_requests: "request",
        /// sectors that the other partition loaded
        near_sectors_read: "sector",
        /// of these, sectors that were valid or on their way
        near_sector_hits_read: "sector",
        /// sectors that the other partition was told to forget
        near_sectors_forgotten: "sector",
        /// requests that waited for a fill already under way
        mshr_merges: "request",
        /// most lines that had fills under way
        mshr_maximum: "line" maximum,
        /// most requests in the input queue
        queue_maximum: "request" maximum,
        /// cycles requests waited in the input queue, summed
        queue_cycles: "cycle",
        /// cycles the queue stood because every MSHR was in use
        stall_cycles_mshr: "cycle",
        /// cycles the queue stood because too many requests waited for one line
        stall_cycles_merge: "cycle",
        /// cycles the queue stood because every line of the set had a fill under way
        stall_cycles_set: "cycle",
        /// cycles the queue stood because too many write-backs were under way
        stall_cycles_write_back: "cycle",
        /// cycles the queue stood because too many answers to hits were under way
        stall_cycles_answer: "cycle",
        /// cycles the queue stood because too many atomics were under way
        stall_cycles_atomic: "cycle",
        /// cycles answers waited for the data array and the crossbar, summed
        answer_queue_cycles: "cycle",
        /// cycles an answer stood at the head of its queue because the crossbar had no room
        stall_cycles_crossbar: "cycle",
        /// cycles the data array was busy
        data_busy_cycles: "cycle",
    }
}

impl L2SliceCounters {
    /// Counts a request that found sectors `there` or on their way.
    pub(super) fn count(&mut self, request: &MemoryRequest, there: u8) {
        let sectors = u64::from(sector_count(request.sectors));
        let hits = u64::from(sector_count(request.sectors & there));
        self.requests += 1;
        match request.kind {
            MemoryKind::Load => {
                self.sectors_read += sectors;
                self.sector_hits_read += hits;
                self.sector_misses_read += sectors - hits;
                self.bytes += sectors * SECTOR_BYTES;
            }
            MemoryKind::Store => {
                self.sectors_written += sectors;
                self.bytes += u64::from(request.data_bytes);
            }
            MemoryKind::Atomic | MemoryKind::Reduction => {
                let updated = u64::from(request.update_sectors);
                self.sectors_atomic += updated;
                // A sector that is not there is missed by the first group of lanes that touches it.
                self.sector_hits_atomic += updated.saturating_sub(sectors - hits);
                self.atomic_operations += u64::from(request.operations);
                self.bytes += u64::from(request.data_bytes);
                if request.kind == MemoryKind::Atomic {
                    self.atomics += 1;
                    self.bytes += sectors * SECTOR_BYTES;
                } else {
                    self.reductions += 1;
                }
            }
        }
    }

    /// The cycles that the queue has stood for this reason.
    pub(super) fn stalled(&mut self, stall: Stall) -> &mut u64 {
        match stall {
            Stall::Mshr => &mut self.stall_cycles_mshr,
            Stall::Merge => &mut self.stall_cycles_merge,
            Stall::Set => &mut self.stall_cycles_set,
            Stall::WriteBack => &mut self.stall_cycles_write_back,
            Stall::Answer => &mut self.stall_cycles_answer,
            Stall::Atomic => &mut self.stall_cycles_atomic,
        }
    }
}

impl Share for L2SliceCounters {
    fn give(&self, to: &mut UnitCounters) {
        to.l2_requests += self.requests;
        to.l2_sectors_read += self.sectors_read;
        to.l2_sector_hits_read += self.sector_hits_read;
        to.l2_sectors_written += self.sectors_written;
        to.l2_sectors_atomic += self.sectors_atomic;
        to.l2_sector_hits_atomic += self.sector_hits_atomic;
        to.l2_atomics += self.atomics;
        to.l2_reductions += self.reductions;
        to.l2_bytes += self.bytes;
        to.l2_data_busy_cycles += self.data_busy_cycles;
        to.l2_sectors_written_back += self.sectors_written_back;
    }
}

/// Why the head of the input queue cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stall {
    Mshr,
    Merge,
    Set,
    WriteBack,
    Answer,
    Atomic,
}
