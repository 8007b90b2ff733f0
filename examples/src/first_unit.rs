//! A unit between a memory client and a memory server, an SM and the crossbar say. So far, everything passes it.

use balar_actors::catalogue::UnitDefinition;
use balar_actors::catalogue::bounds::{CLOCK, CYCLES};
use balar_actors::prototyping::{Interposer, Io, Pace, definition};
use balar_protocol::Frequency;
use balar_protocol::memory::MemoryRequest;
use serde::{Deserialize, Serialize};

balar_actors::parameters! {
    /// What a topology gives the unit.
    pub struct FirstUnitParameters {
        /// clock of the unit, that of its SM
        #[range(CLOCK)]
        clock: Frequency,
        /// cycles from the arrival of a message to its departure
        #[range(CYCLES)]
        latency: u32 = "2",
    }
}

balar_protocol::counters! {
    /// What the unit counts.
    pub struct FirstUnitCounters {
        /// requests that passed
        requests: "request",
    }
}

/// The unit in the catalogue of units.
pub const DEFINITION: UnitDefinition = definition::<FirstUnit>();

/// The unit. Its fields are its state, all of which serde writes.
#[derive(Debug, Serialize, Deserialize)]
pub struct FirstUnit {}

impl Interposer for FirstUnit {
    const NAME: &'static str = "FirstUnit";
    const SUMMARY: &'static str = "passes memory requests and responses on";
    type Parameters = FirstUnitParameters;
    type Counters = FirstUnitCounters;
    type Own = ();

    fn new(_: &FirstUnitParameters) -> FirstUnit {
        FirstUnit {}
    }

    fn pace(parameters: &FirstUnitParameters) -> Pace {
        Pace::new(parameters.clock, parameters.latency)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        io.counters.requests += 1;
        io.forward(request);
    }
}

#[cfg(test)]
mod tests;
