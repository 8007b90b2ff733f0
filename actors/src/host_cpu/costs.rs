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
    /// The driver copies them from or to page-locked memory at this rate, before the copy engine begins. On hardware that overlaps with the
    /// transfer in part: the rate stands for the rest.
    Copied(Bandwidth),
}

impl Staging {
    /// How long that takes for a call.
    fn time_of(self, call: &Call) -> SimTime {
        match (self, call) {
            (Staging::Copied(rate), Call::Copy { destination, source, shape, .. })
                if [destination, source].iter().any(|end| matches!(end, CopyEnd::Bytes(_))) =>
            {
                rate.time_for(shape.bytes())
            }
            _ => SimTime::ZERO,
        }
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
        let staged = self.costs.pageable_copies.time_of(call);
        self.after(now, cycles).saturating_add(staged)
    }
}
