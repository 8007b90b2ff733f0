//! A channel with a fixed latency and a bandwidth: first come, first served.

use super::counters::ChannelCounters;
use balar_protocol::by_launch::ByLaunch;
use balar_protocol::memory::{MemoryKind, MemoryRequest, SECTOR_BYTES, sector_count};
use balar_protocol::{Bandwidth, SimTime};
use serde::{Deserialize, Serialize};

/// Everything that changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SimpleState {
    free: SimTime,
    pub counters: ChannelCounters,
    pub by_launch: ByLaunch<ChannelCounters>,
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

    /// Takes `count` (at least 1) requests that are alike and arrive at `time`; returns when the response to the last one leaves.
    pub(super) fn access(&mut self, time: SimTime, request: &MemoryRequest, count: u64) -> SimTime {
        let state = &mut self.state;
        let start = time.max(state.free);
        let span = self.occupancy[sector_count(request.sectors).min(4) as usize].0;
        state.free = SimTime(start.0 + count * span);
        let first = start + self.latency;
        state.counters.arrivals(request, count);
        state.counters.busy_time += count * span;
        let share = state.by_launch.of(request.launch);
        share.arrivals(request, count);
        share.busy_time += count * span;
        if request.kind == MemoryKind::Load {
            // Each waits for the span of the one before it.
            let latency = count * (first - time).0 + span * (count * (count - 1) / 2);
            state.counters.latency_read += latency;
            share.latency_read += latency;
        }
        SimTime(first.0 + (count - 1) * span)
    }
}
