//! A channel with a fixed latency and a bandwidth: first come, first served.

use super::ChannelCounters;
use balar_protocol::memory::{MemoryKind, MemoryRequest, SECTOR_BYTES, sector_count};
use balar_protocol::{Bandwidth, SimTime};
use serde::{Deserialize, Serialize};

/// Everything that changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SimpleState {
    free: SimTime,
    pub counters: ChannelCounters,
}

/// A channel with a fixed latency and a bandwidth.
#[derive(Clone, Debug)]
pub(super) struct SimpleChannel {
    latency: SimTime,
    /// Time that 0 to 4 sectors occupy the bus.
    occupancy: [SimTime; 5],
    pub state: SimpleState,
}

impl SimpleChannel {
    pub(super) fn new(latency: SimTime, bandwidth: Bandwidth) -> SimpleChannel {
        let occupancy = [0, 1, 2, 3, 4].map(|sectors| bandwidth.time_for(sectors * SECTOR_BYTES));
        SimpleChannel { latency, occupancy, state: SimpleState::default() }
    }

    /// Takes a request that arrives at `time`; returns when its response leaves.
    pub(super) fn access(&mut self, time: SimTime, request: &MemoryRequest) -> SimTime {
        let state = &mut self.state;
        let start = time.max(state.free);
        let span = self.occupancy[sector_count(request.sectors).min(4) as usize];
        state.free = start + span;
        let done = start + self.latency;
        state.counters.arrival(request);
        state.counters.busy_time += span.0;
        if request.kind == MemoryKind::Load {
            state.counters.latency_read += (done - time).0;
        }
        done
    }
}
