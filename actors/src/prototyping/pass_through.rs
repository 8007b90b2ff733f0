//! A unit that changes nothing but the time: what another unit in its place is compared with.

use super::interposer::{Interposer, Io, Pace, definition};
use crate::catalogue::UnitDefinition;
use crate::catalogue::bounds::{CLOCK, CYCLES};
use balar_protocol::Frequency;
use balar_protocol::memory::{MemoryKind, MemoryRequest};
use serde::{Deserialize, Serialize};

crate::parameters! {
    /// A unit that everything passes.
    pub struct PassThroughParameters {
        /// clock of the unit
        #[range(CLOCK)]
        clock: Frequency,
        /// cycles from the arrival of a message to its departure
        #[range(CYCLES)]
        latency: u32 = "2",
    }
}

balar_protocol::counters! {
    /// What passes.
    pub struct PassThroughCounters {
        /// loads that passed
        loads: "request",
        /// stores that passed
        stores: "request",
        /// atomics and reductions that passed
        atomics: "request",
    }
}

/// A unit that everything passes, one message in a cycle and direction.
#[derive(Debug, Serialize, Deserialize)]
pub struct PassThrough;

/// The kind of unit that a [`PassThrough`] is.
pub const DEFINITION: UnitDefinition = definition::<PassThrough>();

impl Interposer for PassThrough {
    const NAME: &'static str = "PassThrough";
    const SUMMARY: &'static str = "passes memory requests and responses on: what a unit in its place is compared with";
    type Parameters = PassThroughParameters;
    type Counters = PassThroughCounters;
    type Own = ();

    fn new(_: &PassThroughParameters) -> PassThrough {
        PassThrough
    }

    fn pace(parameters: &PassThroughParameters) -> Pace {
        Pace::new(parameters.clock, parameters.latency)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        match request.kind {
            MemoryKind::Load => io.counters.loads += 1,
            MemoryKind::Store => io.counters.stores += 1,
            MemoryKind::Atomic | MemoryKind::Reduction => io.counters.atomics += 1,
        }
        io.forward(request);
    }
}
