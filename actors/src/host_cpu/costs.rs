//! The costs of calls for the host.

use super::HostCpu;
use balar_host::Call;
use balar_host::call::{CallClass, CopyEnd};
use balar_protocol::{Bandwidth, SimTime};
use serde::Deserialize;

/// The way of pageable data that is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Staging {
    /// The copy engine reads and writes them itself, as page-locked ones.
    #[default]
    None,
    /// The driver copies them through page-locked memory at this rate: before a transfer to a device begins, and after one from a device
    /// has ended. On hardware that overlaps with the transfer in part: the rate stands for the rest.
    Copied(Bandwidth),
}

impl Staging {
    /// How long the driver copies so many bytes.
    pub fn time_for(self, bytes: u64) -> SimTime {
        match self {
            Staging::Copied(rate) => rate.time_for(bytes),
            Staging::None => SimTime::ZERO,
        }
    }

    /// How long it does so before a call is made. What a call brings from a device comes later, when the call returns.
    fn time_before(self, call: &Call) -> SimTime {
        let bytes = match call {
            Call::GraphLaunch { nodes, .. } => {
                nodes.iter().filter_map(|node| node.call.as_deref()).map(bytes_before).fold(0, u64::saturating_add)
            }
            call => bytes_before(call),
        };
        self.time_for(bytes)
    }
}

/// Pageable bytes that the driver copies before a call is made: those that go to a device, and those that come from one without anybody
/// who waits for them.
fn bytes_before(call: &Call) -> u64 {
    match call {
        Call::Copy { source: CopyEnd::Bytes(_), shape, .. }
        | Call::Copy { destination: CopyEnd::Bytes(_), shape, asynchronous: true, .. } => shape.bytes(),
        _ => 0,
    }
}

impl HostCpu {
    /// When a call made at `now` has done its host part. Counts it.
    pub(super) fn call_ends(&mut self, now: SimTime, call: &Call) -> SimTime {
        let costs = &self.costs;
        let counters = &mut self.counters;
        let (counter, cycles) = match call.class() {
            CallClass::Compute { nanoseconds } => return now.saturating_add(SimTime(nanoseconds.saturating_mul(1000))),
            CallClass::Clock => return self.after(now, costs.clock_cost),
            CallClass::Exit | CallClass::Access | CallClass::Management => return now,
            // Nobody takes the advice.
            CallClass::Advice if self.managed_port.is_none() => return now,
            CallClass::CallBack => {
                counters.host_functions += 1;
                return now;
            }
            CallClass::Allocation => (&mut counters.calls_memory, costs.malloc_cost),
            CallClass::Free => (&mut counters.calls_memory, costs.free_cost),
            CallClass::Memory | CallClass::Advice => (&mut counters.calls_memory, costs.call_cost),
            CallClass::Launch => (&mut counters.calls_launch, costs.launch_cost),
            CallClass::GraphLaunch => (&mut counters.calls_graph, costs.launch_cost),
            CallClass::Stream => (&mut counters.calls_stream, costs.call_cost),
            CallClass::Synchronisation => (&mut counters.calls_synchronize, costs.call_cost),
            CallClass::Copy => (&mut counters.calls_copy, costs.copy_cost),
            CallClass::Event => (&mut counters.calls_event, costs.call_cost),
            CallClass::Module => (&mut counters.calls_module, costs.call_cost),
        };
        *counter += 1;
        counters.calls += 1;
        let staged = self.costs.pageable_copies.time_before(call);
        self.after(now, cycles).saturating_add(staged)
    }
}
