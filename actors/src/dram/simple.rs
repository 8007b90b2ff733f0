//! A channel with a fixed latency and a bandwidth: first come, first served.

use super::ChannelCounters;
use balar_protocol::memory::{MemoryKind, MemoryRequest, SECTOR_BYTES};
use balar_protocol::{Bandwidth, SimTime};

/// A channel with a fixed latency and a bandwidth.
#[derive(Clone, Debug)]
pub(crate) struct SimpleChannel {
    latency: SimTime,
    /// Time that 0 to 4 sectors occupy the bus.
    occupancy: [SimTime; 5],
    free: SimTime,
    pub(crate) counters: ChannelCounters,
}

impl SimpleChannel {
    pub(crate) fn new(latency: SimTime, bandwidth: Bandwidth) -> SimpleChannel {
        let occupancy = [0, 1, 2, 3, 4].map(|sectors| bandwidth.time_for(sectors * SECTOR_BYTES));
        SimpleChannel { latency, occupancy, free: SimTime::ZERO, counters: ChannelCounters::default() }
    }

    /// Takes a request that arrives at `time`; returns when its response leaves.
    pub(crate) fn access(&mut self, time: SimTime, request: &MemoryRequest) -> SimTime {
        let start = time.max(self.free);
        let span = self.occupancy[request.sectors.count_ones().min(4) as usize];
        self.free = start + span;
        let done = start + self.latency;
        self.counters.arrival(request);
        self.counters.busy_time += span.0;
        if request.kind == MemoryKind::Load {
            self.counters.latency_read += (done - time).0;
        }
        done
    }
}
