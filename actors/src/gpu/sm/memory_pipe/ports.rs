//! The wiring of the memory pipe, and the moment in which something leaves by it.

use crate::engine::Outbox;
use crate::gpu::sm::counters::SmCounters;
use balar_protocol::translation::TranslationMessage;
use balar_protocol::{Clock, Payload, PortId};

/// The wiring of the way out.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The SM's clock.
    pub clock: Clock,
    /// Requests below the L1.
    pub memory: PortId,
    /// The GMMU.
    pub translation: Option<PortId>,
    /// A unit below holds stores back, and is to be told when a warp waits for them.
    pub drains: bool,
}

/// A cycle, and the ways out of the SM.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The cycle.
    pub cycle: u64,
    /// Where the ways lead.
    pub ports: &'a Ports,
    /// The counters.
    pub counters: &'a mut SmCounters,
    /// The outbox.
    pub out: &'a mut Outbox,
}

impl Moment<'_> {
    /// The same in another cycle.
    pub fn at(&mut self, cycle: u64) -> Moment<'_> {
        Moment { cycle, ports: self.ports, counters: self.counters, out: self.out }
    }

    /// The GMMU is told something, if there is one.
    pub fn tell(&mut self, message: TranslationMessage) {
        if let Some(port) = self.ports.translation {
            self.out.send(port, self.ports.clock.time_of(self.cycle), Payload::Translation(message));
        }
    }
}
