//! The port below the L1: what goes there leaves in order, and a request when the crossbar has a place for it.

use super::ports::Moment;
use crate::gpu::places::Places;
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

    /// A request leaves now, or when there is a place for it and those before it have left.
    #[inline]
    pub fn send(&mut self, request: MemoryRequest, now: &mut Moment) {
        match self.places.next() {
            Some(from) if self.waiting.is_empty() => self.leave(request, from, now),
            _ => {
                self.waiting.push_back((now.cycle, Item::Request(request)));
                self.requests += 1;
                let longest = &mut now.counters.request_queue_maximum;
                *longest = (*longest).max(u64::from(self.requests));
            }
        }
    }

    /// Says something behind all requests so far, not before now. It takes no request's place.
    pub fn say(&mut self, what: Behind, now: &mut Moment) {
        if self.waiting.is_empty() {
            self.tell(what, now);
        } else {
            self.waiting.push_back((now.cycle, Item::Behind(what)));
        }
    }

    /// The crossbar has a place more from now on.
    pub fn add_place(&mut self, now: &mut Moment) {
        self.places.add(now.cycle);
        while let Some(&(wanted, item)) = self.waiting.front() {
            match item {
                Item::Behind(what) => self.tell(what, &mut now.at(wanted)),
                Item::Request(request) => {
                    let Some(from) = self.places.next() else { return };
                    self.requests -= 1;
                    self.leave(request, from, &mut now.at(wanted));
                }
            }
            self.waiting.pop_front();
        }
    }

    /// A request that wants to leave now takes the place that is free from a cycle on.
    fn leave(&mut self, request: MemoryRequest, from: u64, now: &mut Moment) {
        self.places.take();
        now.counters.request_stall_cycles += from.saturating_sub(now.cycle);
        let cycle = now.cycle.max(from);
        self.last = self.last.max(cycle);
        let at = now.ports.clock.time_of(cycle);
        now.out.send(now.ports.memory, at, Payload::Memory(MemoryMessage::Request(request)));
    }

    fn tell(&self, what: Behind, now: &mut Moment) {
        let mut now = now.at(now.cycle.max(self.last));
        match what {
            Behind::Drain => {
                let at = now.ports.clock.time_of(now.cycle);
                now.out.send(now.ports.memory, at, Payload::Memory(MemoryMessage::Drain));
            }
            Behind::Invalidated { id } => now.tell(TranslationMessage::Invalidated { id }),
        }
    }
}
