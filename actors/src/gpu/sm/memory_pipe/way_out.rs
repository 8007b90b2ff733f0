//! The port below the L1: what goes there leaves in order, and a request when the crossbar has a place for it.

use super::below::Ports;
use crate::engine::Outbox;
use crate::gpu::places::Places;
use crate::gpu::sm::counters::SmCounters;
use balar_protocol::Payload;
use balar_protocol::memory::{MemoryMessage, MemoryRequest};
use balar_protocol::translation::TranslationMessage;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What leaves the SM behind the requests that it is told of.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Behind {
    /// For a unit that holds stores back: a warp waits for its stores.
    Drain,
    /// For the GMMU: no request to a range follows.
    Invalidated {
        /// The number of the shootdown.
        id: u32,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Item {
    Request(MemoryRequest),
    Behind(Behind),
}

/// The port, and what waits for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WayOut {
    places: Places,
    /// With the cycle from which each could leave. None where a place is known of.
    waiting: VecDeque<(u64, Item)>,
    /// Requests among them.
    requests: u32,
    /// The last cycle in which a request has left or will leave, those aside that wait.
    last: u64,
}

impl WayOut {
    /// To a crossbar that takes so many requests; 0 = any number.
    pub fn new(places: u32) -> WayOut {
        WayOut { places: Places::of_queue(places), waiting: VecDeque::new(), requests: 0, last: 0 }
    }

    /// Do both lead to queues with an end, or both to one without?
    pub fn fits(&self, other: &WayOut) -> bool {
        self.places.fits(&other.places)
    }

    /// Requests that wait for a place.
    #[inline]
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// A request leaves in `cycle`, or when there is a place for it and those before it have left.
    #[inline]
    pub fn send(
        &mut self,
        request: MemoryRequest,
        cycle: u64,
        ports: &Ports,
        counters: &mut SmCounters,
        out: &mut Outbox,
    ) {
        match self.places.next() {
            Some(from) if self.waiting.is_empty() => {
                counters.request_stall_cycles += from.saturating_sub(cycle);
                self.leave(request, cycle.max(from), ports, out);
            }
            _ => {
                self.waiting.push_back((cycle, Item::Request(request)));
                self.requests += 1;
                counters.request_queue_maximum = counters.request_queue_maximum.max(u64::from(self.requests));
            }
        }
    }

    /// Says something behind all requests so far, not before `cycle`. It takes no request's place.
    pub fn say(&mut self, what: Behind, cycle: u64, ports: &Ports, out: &mut Outbox) {
        if self.waiting.is_empty() {
            self.tell(what, cycle, ports, out);
        } else {
            self.waiting.push_back((cycle, Item::Behind(what)));
        }
    }

    /// The crossbar has a place more from `cycle` on.
    pub fn add_place(&mut self, cycle: u64, ports: &Ports, counters: &mut SmCounters, out: &mut Outbox) {
        self.places.add(cycle);
        while let Some(&(wanted, item)) = self.waiting.front() {
            match item {
                Item::Behind(what) => self.tell(what, wanted, ports, out),
                Item::Request(request) => {
                    let Some(from) = self.places.next() else { return };
                    self.requests -= 1;
                    counters.request_stall_cycles += from.saturating_sub(wanted);
                    self.leave(request, wanted.max(from), ports, out);
                }
            }
            self.waiting.pop_front();
        }
    }

    fn leave(&mut self, request: MemoryRequest, cycle: u64, ports: &Ports, out: &mut Outbox) {
        self.places.take();
        self.last = self.last.max(cycle);
        out.send(ports.memory, ports.clock.time_of(cycle), Payload::Memory(MemoryMessage::Request(request)));
    }

    fn tell(&mut self, what: Behind, cycle: u64, ports: &Ports, out: &mut Outbox) {
        let at = ports.clock.time_of(cycle.max(self.last));
        match what {
            Behind::Drain => out.send(ports.memory, at, Payload::Memory(MemoryMessage::Drain)),
            Behind::Invalidated { id } => {
                if let Some(port) = ports.translation {
                    out.send(port, at, Payload::Translation(TranslationMessage::Invalidated { id }));
                }
            }
        }
    }
}
