//! The way out of the SM: address translation, and the port that one request leaves by in a cycle.

use super::tlb::Tlb;
use crate::engine::Outbox;
use crate::gpu::sm::counters::SmCounters;
use crate::gpu::sm::parameters::SmParameters;
use balar_host::memory::is_pinned;
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest};
use balar_protocol::translation::{Aperture, PageAccess, Translation, TranslationMessage};
use balar_protocol::{Clock, Payload, PortId, SimTime};
use serde::{Deserialize, Serialize};

/// What the way out is wired to.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The SM's clock.
    pub clock: Clock,
    /// Requests below the L1.
    pub memory: PortId,
    /// The GMMU.
    pub translation: Option<PortId>,
    /// What is below holds stores back, and is to be told when a warp waits for them.
    pub drains: bool,
}

/// The TLBs of an SM, and requests that wait for the GMMU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Below {
    first: Tlb,
    second: Tlb,
    page_bytes: u64,
    second_level_latency: u64,
    /// First cycle in which a request can leave.
    free: u64,
    /// Requests that wait for the GMMU, with the number of the translation.
    translating: Vec<(u32, MemoryRequest)>,
    next_translation: u32,
    /// The last cycle in which a request has left or will leave.
    last: u64,
    /// A warp waits for stores that wait for the GMMU.
    drain_follows: bool,
}

impl Below {
    /// Without any translation.
    pub fn new(parameters: &SmParameters) -> Below {
        let tlb = &parameters.tlb;
        Below {
            first: Tlb::new(tlb.page.0, tlb.entries),
            second: Tlb::new(tlb.second_level_page.0, tlb.second_level_entries),
            page_bytes: tlb.page.0,
            second_level_latency: u64::from(tlb.second_level_latency),
            free: 0,
            translating: Vec::new(),
            next_translation: 0,
            last: 0,
            drain_follows: false,
        }
    }

    fn cache(&mut self, address: u64) {
        self.first.insert(address);
        self.second.insert(address);
    }

    /// A request leaves the SM in `cycle`, or after those that left before and when its page is known.
    pub fn send(
        &mut self,
        request: MemoryRequest,
        cycle: u64,
        ports: &Ports,
        counters: &mut SmCounters,
        out: &mut Outbox,
    ) {
        let cycle = cycle.max(self.free);
        self.free = cycle + 1;
        counters.tlb_lookups += 1;
        let mut delay = 0;
        if !self.first.lookup(request.line) {
            counters.tlb_misses += 1;
            delay = self.second_level_latency;
            if self.second.lookup(request.line) {
                self.first.insert(request.line);
            } else {
                counters.tlb_second_level_misses += 1;
                if let Some(port) = ports.translation {
                    self.translate(request, ports.clock.time_of(cycle), port, out);
                    return;
                }
                self.cache(request.line);
            }
        }
        self.last = self.last.max(cycle + delay);
        inject(request, ports.clock.time_of(cycle + delay), ports, out);
    }

    /// The last cycle in which a request has left or will leave, those aside that wait for the GMMU.
    #[inline]
    pub fn last_request(&self) -> u64 {
        self.last
    }

    /// A warp begins to wait for its stores: whoever holds stores back is told so, after the last of them. It takes no request's place.
    pub fn drain(&mut self, cycle: u64, ports: &Ports, out: &mut Outbox) {
        if ports.drains {
            self.drain_follows = !self.translating.is_empty();
            let at = ports.clock.time_of(cycle.max(self.last));
            out.send(ports.memory, at, Payload::Memory(MemoryMessage::Drain));
        }
    }

    /// The request waits for its page, which the GMMU is asked for unless it has been.
    fn translate(&mut self, request: MemoryRequest, at: SimTime, port: PortId, out: &mut Outbox) {
        let page = |request: &MemoryRequest| request.line & !(self.page_bytes - 1);
        let under_way = self.translating.iter().find(|(_, other)| page(other) == page(&request));
        let number = match under_way {
            Some(&(number, _)) => number,
            None => {
                let id = self.next_translation;
                self.next_translation = id.wrapping_add(1);
                let access = access_of(request.kind);
                let ask = TranslationMessage::Request { address: page(&request), id, access };
                out.send(port, at, Payload::Translation(ask));
                id
            }
        };
        self.translating.push((number, request));
    }

    /// The GMMU has answered: requests of that page go on.
    pub fn translated(&mut self, message: &TranslationMessage, cycle: u64, ports: &Ports, out: &mut Outbox) {
        let time = ports.clock.time_of(cycle);
        match *message {
            TranslationMessage::Response { id, translation: Translation { page, .. } } => {
                self.cache(page);
                self.translating.retain(|&(number, request)| {
                    if number == id {
                        inject(request, time, ports, out);
                    }
                    number != id
                });
                if self.drain_follows {
                    self.drain(cycle, ports, out);
                }
            }
            TranslationMessage::Invalidate { address, bytes, id } => {
                self.first.invalidate(address, bytes);
                self.second.invalidate(address, bytes);
                if let Some(port) = ports.translation {
                    out.send(port, time, Payload::Translation(TranslationMessage::Invalidated { id }));
                }
            }
            TranslationMessage::Request { .. }
            | TranslationMessage::Used { .. }
            | TranslationMessage::Fault { .. }
            | TranslationMessage::Invalidated { .. } => {}
        }
    }
}

/// What a request does to its page.
fn access_of(kind: MemoryKind) -> PageAccess {
    match kind {
        MemoryKind::Load => PageAccess::Read,
        MemoryKind::Store => PageAccess::Write,
        MemoryKind::Atomic | MemoryKind::Reduction => PageAccess::Atomic,
    }
}

fn inject(request: MemoryRequest, at: SimTime, ports: &Ports, out: &mut Outbox) {
    let aperture = if is_pinned(request.line) { Aperture::Host } else { Aperture::Device };
    let request = MemoryRequest { aperture, ..request };
    out.send(ports.memory, at, Payload::Memory(MemoryMessage::Request(request)));
}
