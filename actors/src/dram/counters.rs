//! What memory channels count.

use balar_protocol::by_launch::Share;
use balar_protocol::memory::{MemoryKind, MemoryRequest, sector_count};
use balar_protocol::statistics::UnitCounters;

balar_protocol::counters! {
    /// What a memory channel counts; the unit's own row is the sum over its channels, or the maximum.
    pub struct ChannelCounters {
        /// 32-byte sectors read
        sectors_read: "sector",
        /// 32-byte sectors written
        sectors_written: "sector",
        /// requests that read
        requests_read: "request",
        /// requests that write
        requests_write: "request",
        /// requests that found their row open
        row_hits: "request",
        /// requests whose bank had no row open
        row_misses: "request",
        /// requests whose bank had another row open
        row_conflicts: "request",
        /// rows opened
        activates: "command",
        /// rows closed
        precharges: "command",
        /// refresh commands, up to the channel's last access
        refreshes: "command",
        /// changes between reading and writing
        turnarounds: "change",
        /// time from arrival of a load to its response, summed over loads
        latency_read: "ps",
        /// time the data bus carried data
        busy_time: "ps",
        /// most requests that waited in one channel
        queue_maximum: "request" maximum,
    }
}

impl ChannelCounters {
    /// So many requests like this one have arrived.
    pub(super) fn arrivals(&mut self, request: &MemoryRequest, count: u64) {
        let sectors = count * u64::from(sector_count(request.sectors));
        if request.kind == MemoryKind::Load {
            self.requests_read += count;
            self.sectors_read += sectors;
        } else {
            self.requests_write += count;
            self.sectors_written += sectors;
        }
    }

    /// These sectors are read before a request writes parts of them.
    pub(super) fn reads_before_a_write(&mut self, sectors: u8) {
        self.requests_read += u64::from(sectors != 0);
        self.sectors_read += u64::from(sector_count(sectors));
    }
}

impl Share for ChannelCounters {
    fn give(&self, to: &mut UnitCounters) {
        to.dram_sectors_read += self.sectors_read;
        to.dram_sectors_written += self.sectors_written;
        to.dram_busy_time += self.busy_time;
        to.dram_row_hits += self.row_hits;
        to.dram_row_misses += self.row_misses;
        to.dram_row_conflicts += self.row_conflicts;
        to.dram_requests_read += self.requests_read;
        to.dram_latency_read += self.latency_read;
    }
}
