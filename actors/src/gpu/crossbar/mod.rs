//! The crossbar between the SMs and copy engines on one side and the L2 slices on the other.
//!
//! Two independent planes: requests towards the slices, responses back. A packet is cut into flits; its endpoint injects
//! [`CrossbarParameters::input_ports`] flits a cycle, an output ejects [`CrossbarParameters::output_ports`] flits a cycle and
//! is granted round-robin over the inputs that wait for it. Requests need a credit of the slice they go to.
//!
//! **Invariant:** a packet never overtakes another of the same input and output.

mod plane;

use crate::catalogue::{
    BuildContext, BuildError, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition, nothing,
};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use crate::interleave::{AddressHash, SliceMap};
use balar_host::memory::is_pinned;
use balar_protocol::memory::{LINE_BYTES, MemoryMessage, MemoryRequest, MemoryResponse, SECTOR_BYTES};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Clock, Frequency, Payload, PortId, Protocol};
use plane::{Plane, PlaneConfiguration};

crate::parameters! {
    /// A crossbar.
    pub struct CrossbarParameters {
        /// clock of the crossbar
        clock: Frequency,
        /// bytes of a flit
        flit_bytes: u32 = "32",
        /// flits a cycle an endpoint may inject (SAND2019-10389, table 3-4: 2 input ports)
        input_ports: u32 = "2",
        /// flits a cycle an endpoint may eject (SAND2019-10389, table 3-4: 1 output port)
        output_ports: u32 = "1",
        /// cycles from the grant of a request to its departure towards the slice (calibrated: L2 hit latency)
        request_latency: u32 = "14",
        /// cycles from the grant of a response to its departure towards the requester (calibrated: L2 hit latency)
        response_latency: u32 = "14",
        /// flits in front of the data of a response; 0 where the header travels beside the data
        response_header_flits: u32 = "0",
        /// entries of the input queue of each slice, the credits the crossbar starts with
        slice_queue: u32 = "32",
        /// how lines spread over the slices: Xor or Modulo
        address_hash: AddressHash = "Xor",
    }
}

balar_protocol::counters! {
    /// What the crossbar as a whole counts.
    pub struct CrossbarCounters {
        /// packets from requesters to slices
        packets_request: "packet",
        /// packets from slices to requesters
        packets_response: "packet",
        /// flits from requesters to slices
        flits_request: "flit",
        /// flits from slices to requesters
        flits_response: "flit",
        /// cycles in which outputs towards slices were busy, summed over outputs
        output_busy_cycles_request: "cycle",
        /// cycles in which outputs towards requesters were busy, summed over outputs
        output_busy_cycles_response: "cycle",
        /// cycles from arrival to departure, summed over request packets
        packet_latency_request: "cycle",
        /// cycles from arrival to departure, summed over response packets
        packet_latency_response: "cycle",
        /// most request packets that waited for one slice
        queue_length_maximum_request: "packet",
        /// most response packets that waited for one requester
        queue_length_maximum_response: "packet",
        /// cycles in which an output towards a slice had packets but no credit
        credit_stall_cycles: "cycle",
    }
}

balar_protocol::counters! {
    /// What the crossbar counts of each slice.
    pub struct SlicePortCounters {
        /// packets sent to the slice
        slice_packets_request: "packet",
        /// packets received from the slice
        slice_packets_response: "packet",
    }
}

/// The crossbar in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "Crossbar",
    summary: "packet switch between SMs, copy engines and L2 slices",
    parameters: CrossbarParameters::DEFINITIONS,
    check: CrossbarParameters::check,
    ports: &[
        PortDefinition {
            name: "sm",
            protocol: Protocol::Memory,
            role: Role::Server,
            indexed: true,
            required: true,
            meaning: "requests of the SMs",
        },
        PortDefinition {
            name: "copy",
            protocol: Protocol::Memory,
            role: Role::Server,
            indexed: true,
            required: false,
            meaning: "requests of the copy engines; towards the first of them, requests for pinned host memory",
        },
        PortDefinition {
            name: "slice",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: true,
            required: true,
            meaning: "the L2 slices",
        },
    ],
    counters: CrossbarCounters::DEFINITIONS,
    provides: nothing,
    weight: 32,
    build: |text, context| Ok(Box::new(Crossbar::new(ron::from_str(text)?, context)?)),
};

/// Which side of the switch a port is on.
#[derive(Clone, Copy, Debug)]
enum Side {
    Requester(u16),
    Slice(u16),
}

/// The crossbar.
#[derive(Debug)]
pub struct Crossbar {
    clock: Clock,
    slices: SliceMap,
    flit_bytes: u32,
    response_header_flits: u32,
    /// By `PortId`.
    sides: Vec<Side>,
    requester_ports: Vec<PortId>,
    slice_ports: Vec<PortId>,
    /// The copy engine, through which pinned host memory is reached. What goes this way does not compete for ports: the link is
    /// slower than any of them. Without it, pinned memory is timed as device memory.
    host_port: Option<PortId>,
    requests: Plane<MemoryRequest>,
    responses: Plane<MemoryResponse>,
}

impl Crossbar {
    /// A crossbar with the wired ports of `context`.
    pub fn new(parameters: CrossbarParameters, context: &BuildContext) -> Result<Crossbar, BuildError> {
        let requester_ports: Vec<PortId> =
            context.ports.row("sm").chain(context.ports.row("copy")).map(|(_, port)| port).collect();
        let slice_ports: Vec<PortId> = context.ports.row("slice").map(|(_, port)| port).collect();
        let mut problems = Vec::new();
        for (key, value) in [
            ("flit_bytes", parameters.flit_bytes),
            ("input_ports", parameters.input_ports),
            ("output_ports", parameters.output_ports),
            ("slice_queue", parameters.slice_queue),
        ] {
            if value == 0 {
                problems.push(ParameterProblem::new(key, "expected at least 1, found 0"));
            }
        }
        if slice_ports.is_empty() {
            problems.push(ParameterProblem::new("slice", "expected at least one wired slice"));
        }
        if !problems.is_empty() {
            return Err(BuildError::Parameters(problems));
        }
        let mut sides = vec![Side::Requester(0); requester_ports.len() + slice_ports.len()];
        for (i, port) in requester_ports.iter().enumerate() {
            sides[usize::from(port.0)] = Side::Requester(i as u16);
        }
        for (i, port) in slice_ports.iter().enumerate() {
            sides[usize::from(port.0)] = Side::Slice(i as u16);
        }
        let plane = |inputs, outputs, latency, credits| PlaneConfiguration {
            inputs,
            outputs,
            input_flits: u64::from(parameters.input_ports),
            output_flits: u64::from(parameters.output_ports),
            latency: u64::from(latency),
            credits,
        };
        Ok(Crossbar {
            clock: Clock::new(parameters.clock),
            slices: SliceMap::new(parameters.address_hash, slice_ports.len() as u32),
            flit_bytes: parameters.flit_bytes,
            response_header_flits: parameters.response_header_flits,
            sides,
            requests: Plane::new(plane(
                requester_ports.len(),
                slice_ports.len(),
                parameters.request_latency,
                Some(parameters.slice_queue),
            )),
            responses: Plane::new(plane(slice_ports.len(), requester_ports.len(), parameters.response_latency, None)),
            requester_ports,
            slice_ports,
            host_port: context.ports.row("copy").next().map(|(_, port)| port),
        })
    }

    fn request_flits(&self, request: &MemoryRequest) -> u32 {
        1 + u32::from(request.data_bytes).div_ceil(self.flit_bytes)
    }

    fn response_flits(&self, response: &MemoryResponse) -> u32 {
        if !response.kind.returns_data() {
            return 1;
        }
        let bytes = response.sectors.count_ones() * SECTOR_BYTES as u32;
        (self.response_header_flits + bytes.div_ceil(self.flit_bytes)).max(1)
    }
}

impl Unit for Crossbar {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        let clock = self.clock;
        while let Some(message) = inbox.take() {
            let Payload::Memory(content) = message.payload else { continue };
            let cycle = clock.cycle_at_or_after(message.time);
            match (self.sides[usize::from(message.port.0)], content) {
                (Side::Requester(requester), MemoryMessage::Request(mut request)) => {
                    request.return_port = requester;
                    if let Some(port) = self.host_port.filter(|_| is_pinned(request.line)) {
                        let depart = clock.time_of(cycle + self.requests.latency());
                        out.send(port, depart, Payload::Memory(MemoryMessage::Request(request)));
                        continue;
                    }
                    let slice = self.slices.slice_of(request.line);
                    let flits = self.request_flits(&request);
                    self.requests.push(usize::from(requester), slice as usize, cycle, flits, request);
                }
                (Side::Slice(slice), MemoryMessage::Response(response)) => {
                    let requester = usize::from(response.return_port);
                    let flits = self.response_flits(&response);
                    if requester < self.requester_ports.len() {
                        self.responses.push(usize::from(slice), requester, cycle, flits, response);
                    }
                }
                // From host memory.
                (Side::Requester(_), MemoryMessage::Response(response)) => {
                    if let Some(&port) = self.requester_ports.get(usize::from(response.return_port)) {
                        let depart = clock.time_of(cycle + self.responses.latency());
                        out.send(port, depart, Payload::Memory(MemoryMessage::Response(response)));
                    }
                }
                (Side::Slice(slice), MemoryMessage::Credit { count }) => {
                    let port = self.slice_ports[usize::from(slice)];
                    self.requests.grant(usize::from(slice), cycle, |depart, request| {
                        out.send(port, clock.time_of(depart), Payload::Memory(MemoryMessage::Request(request)));
                    });
                    self.requests.add_credits(usize::from(slice), cycle, u32::from(count));
                }
                (Side::Requester(_), MemoryMessage::Invalidate) => {
                    for &port in &self.slice_ports {
                        let depart = clock.time_of(cycle + self.requests.latency());
                        out.send(port, depart, Payload::Memory(MemoryMessage::Invalidate));
                    }
                }
                _ => {}
            }
        }
        let limit = clock.cycle_at_or_after(window.until);
        let mut next = u64::MAX;
        for (slice, &port) in self.slice_ports.iter().enumerate() {
            if self.requests.waiting(slice) > 0 {
                next = next.min(self.requests.grant(slice, limit, |depart, request| {
                    out.send(port, clock.time_of(depart), Payload::Memory(MemoryMessage::Request(request)));
                }));
            }
        }
        for (requester, &port) in self.requester_ports.iter().enumerate() {
            if self.responses.waiting(requester) > 0 {
                next = next.min(self.responses.grant(requester, limit, |depart, response| {
                    out.send(port, clock.time_of(depart), Payload::Memory(MemoryMessage::Response(response)));
                }));
            }
        }
        if next == u64::MAX { NextWake::OnMessage } else { NextWake::At(clock.time_of(next)) }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let (requests, responses) = (&self.requests.counters, &self.responses.counters);
        CrossbarCounters {
            packets_request: requests.packets,
            packets_response: responses.packets,
            flits_request: requests.flits,
            flits_response: responses.flits,
            output_busy_cycles_request: self.requests.busy_cycles(),
            output_busy_cycles_response: self.responses.busy_cycles(),
            packet_latency_request: requests.latency,
            packet_latency_response: responses.latency,
            queue_length_maximum_request: requests.queue_maximum,
            queue_length_maximum_response: responses.queue_maximum,
            credit_stall_cycles: requests.credit_stalls,
        }
        .write(sink);
        for slice in 0..self.slice_ports.len() {
            SlicePortCounters {
                slice_packets_request: self.requests.packets_out(slice),
                slice_packets_response: self.responses.packets_in(slice),
            }
            .write_of(&format!("slice[{slice}]"), sink);
        }
    }

    fn outstanding(&self) -> Option<String> {
        let (requests, responses) = (self.requests.in_flight(), self.responses.in_flight());
        (requests + responses > 0).then(|| {
            format!(
                "{requests} requests wait for a slice's credit or port, {responses} responses for a requester's port"
            )
        })
    }
}

/// First byte of the line that holds `address`.
pub const fn line_of(address: u64) -> u64 {
    address / LINE_BYTES * LINE_BYTES
}

#[cfg(test)]
mod tests;
