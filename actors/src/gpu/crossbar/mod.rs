//! The crossbar between the SMs and copy engines on one side and the L2 slices on the other.
//!
//! Two independent planes: requests towards the slices, responses back. A packet is cut into flits; its endpoint injects
//! [`CrossbarParameters::input_ports`] flits a cycle, an output ejects [`CrossbarParameters::output_ports`] flits a cycle and
//! is granted round-robin over the inputs that wait for it. Requests need a credit of the slice they go to.
//!
//! An SM may have [`CrossbarParameters::request_queue`] requests in it, and a slice [`CrossbarParameters::response_queue`] responses,
//! wherever they go: so packets for an output that stands fill the queue of their input, and those behind wait with the sender.
//!
//! **Invariant:** a packet never overtakes another of the same input and output, and nothing depends on where windows end.

mod partitions;
mod plane;

use crate::catalogue::bounds::{CLOCK, CYCLES, ENTRIES, PER_CYCLE};
use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, ParameterSet, Peer, PortDefinition, Role, UnitDefinition,
};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::gpu::line_owners::LineOwners;
use crate::interleave::{AddressHash, SliceMap};
use balar_protocol::by_launch::{ByLaunch, LaunchTotals, Share};
use balar_protocol::memory::{
    Credits, LINE_BYTES, MemoryMessage, MemoryRequest, MemoryResponse, SECTOR_BYTES, sector_count,
};
use balar_protocol::statistics::{StatisticSink, UnitCounters};
use balar_protocol::translation::Aperture;
use balar_protocol::{Clock, Frequency, Message, Payload, PortId, Protocol};
use partitions::Partitions;
use plane::{Ends, Plane, PlaneConfiguration, PlaneState};

crate::parameters! {
    /// A crossbar.
    pub struct CrossbarParameters {
        /// clock of the crossbar
        #[range(CLOCK)]
        clock: Frequency,
        /// bytes of a flit
        #[range(1..=4096)]
        flit_bytes: u32 = "32",
        /// flits a cycle an endpoint may inject (SAND2019-10389, table 3-4: 2 input ports)
        #[range(PER_CYCLE)]
        input_ports: u32 = "2",
        /// flits a cycle an endpoint may eject (SAND2019-10389, table 3-4: 1 output port)
        #[range(PER_CYCLE)]
        output_ports: u32 = "1",
        /// as many times the ports of an SM the endpoints behind `copy[0]` have: by these go copies within the device and fills, which hardware does by a kernel on many SMs (estimate: enough that the memory limits them)
        #[range(1..=1024)]
        copy_width: u32 = "16",
        /// as many times the ports of a requester each slice has: several where a slice stands for several of a GPU
        #[range(1..=1024)]
        slice_width: u32 = "1",
        /// partitions of the L2, 1 or 2: of as many neighbouring slices each, with copies of the lines of the others for as many neighbouring SMs; then each slice is wired to the one of the same place in the other partition, by `far` and `near`
        #[range(1..=2)]
        partitions: u32 = "1",
        /// cycles from the grant of a request to its departure towards the slice (calibrated: L2 hit latency)
        #[range(CYCLES)]
        request_latency: u32 = "14",
        /// cycles from the grant of a response to its departure towards the requester (calibrated: L2 hit latency)
        #[range(CYCLES)]
        response_latency: u32 = "14",
        /// flits in front of the data of a request; 0 where the header travels beside the data
        #[range(..=1024)]
        request_header_flits: u32 = "0",
        /// flits in front of the data of a response; 0 where the header travels beside the data
        #[range(..=1024)]
        response_header_flits: u32 = "0",
        /// entries of the input queue of each slice, the credits the crossbar starts with
        #[range(ENTRIES)]
        slice_queue: u32 = "32",
        /// requests of an SM that wait in the crossbar at most: the SM holds further ones back; 0 = any number (64: those of a credit's way there and back at a request a cycle; an estimate)
        #[range(..=MOST_PLACES)]
        request_queue: u32 = "64",
        /// responses of a slice that wait in the crossbar at most: the slice holds further ones back; 0 = any number (64: likewise)
        #[range(..=MOST_PLACES)]
        response_queue: u32 = "64",
        /// how lines spread over the slices: Xor, Modulo, Granules("1 KiB"), which is Xor of runs of 1 KiB, or Bits([...]), the address bits whose exclusive or is each bit of the slice number
        address_hash: AddressHash = "Xor",
    }
}

balar_protocol::counters! {
    /// The counters of the crossbar as a whole.
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
        queue_length_maximum_request: "packet" maximum,
        /// most response packets that waited for one requester
        queue_length_maximum_response: "packet" maximum,
        /// cycles in which an output towards a slice had packets but no credit
        credit_stall_cycles: "cycle",
    }
}

balar_protocol::counters! {
    /// The counters of the crossbar for each slice.
    pub struct SlicePortCounters {
        /// packets sent to the slice
        slice_packets_request: "packet",
        /// packets received from the slice
        slice_packets_response: "packet",
    }
}

impl Share for CrossbarCounters {
    fn give(&self, to: &mut UnitCounters) {
        to.crossbar_packets_request += self.packets_request;
        to.crossbar_packets_response += self.packets_response;
        to.crossbar_flits_request += self.flits_request;
        to.crossbar_flits_response += self.flits_response;
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
    provides,
    weight: 32,
    build: |text, context| Ok(Box::new(Crossbar::new(ron::from_str(text)?, context)?)),
};

fn provides(text: &str) -> Vec<Capability> {
    let Ok(parameters) = ron::from_str::<CrossbarParameters>(text) else { return Vec::new() };
    let CrossbarParameters {
        address_hash: hash, partitions, request_queue: requests, response_queue: responses, ..
    } = parameters;
    vec![
        Capability::SpreadsLines { ports: "slice", parameter: "address_hash", hash, partitions },
        Capability::Queues { requests, responses },
    ]
}

/// What [`Unit::save`] writes of a crossbar.
type SavedState = (PlaneState<MemoryRequest>, PlaneState<MemoryResponse>, ByLaunch<CrossbarCounters>);

/// The most packets of one sender: more would never wait.
const MOST_PLACES: u32 = 1 << 20;

/// The most pairs of a requester and a slice: each has a queue in both directions.
const MOST_PAIRS: usize = 1 << 24;

/// Which side of the switch a port is on.
#[derive(Clone, Copy, Debug)]
enum Side {
    Requester(u16),
    Slice(u16),
}

/// Its parameters, beside the shapes of its planes.
#[derive(Debug)]
struct Fixed {
    clock: Clock,
    slices: SliceMap,
    partitions: Partitions,
    flit_bytes: u32,
    request_header_flits: u32,
    response_header_flits: u32,
}

/// Where its ports lead.
#[derive(Debug)]
struct Wiring {
    /// Sides, by `PortId`.
    sides: Vec<Side>,
    requester_ports: Vec<PortId>,
    slice_ports: Vec<PortId>,
    /// The copy engine, through which pinned host memory is reached: its place among the requesters and its port. Its traffic does not
    /// compete for ports: the link is slower than any of them. Without it, pinned memory is timed as device memory.
    host: Option<(usize, PortId)>,
}

/// The crossbar. Its state is that of its planes.
#[derive(Debug)]
pub struct Crossbar {
    fixed: Fixed,
    wiring: Wiring,
    requests: Plane<MemoryRequest>,
    responses: Plane<MemoryResponse>,
    by_launch: ByLaunch<CrossbarCounters>,
}

impl Crossbar {
    /// A crossbar with the wired ports of `context`.
    pub fn new(parameters: CrossbarParameters, context: &BuildContext) -> Result<Crossbar, BuildError> {
        let requester_ports: Vec<PortId> =
            context.ports.row("sm").chain(context.ports.row("copy")).map(|(_, port)| port).collect();
        let slice_ports: Vec<PortId> = context.ports.row("slice").map(|(_, port)| port).collect();
        let mut problems = parameters.range_problems();
        if slice_ports.is_empty() {
            problems.push(ParameterProblem::new("slice", "expected at least one wired slice"));
        }
        let pairs = requester_ports.len().saturating_mul(slice_ports.len());
        problems.extend(ParameterProblem::of_range("requesters x slices", pairs, ..=MOST_PAIRS));
        let slices = SliceMap::new(&parameters.address_hash, slice_ports.len() as u32);
        let slices = slices.map_err(|problem| ParameterProblem::new("address_hash", problem));
        let sms = context.ports.row("sm").count();
        let partitions = Partitions::new(parameters.partitions, sms, slice_ports.len())
            .map_err(|problem| ParameterProblem::new("partitions", problem));
        let (slices, partitions) = match (slices, partitions) {
            (Ok(slices), Ok(partitions)) if problems.is_empty() => (slices, partitions),
            (slices, partitions) => {
                problems.extend([slices.err(), partitions.err()].into_iter().flatten());
                return Err(problems.into());
            }
        };
        LineOwners::add(context, &slices, &slice_ports, partitions.slices_of_each());
        let mut sides = vec![Side::Requester(0); requester_ports.len() + slice_ports.len()];
        for (i, port) in requester_ports.iter().enumerate() {
            sides[usize::from(port.0)] = Side::Requester(i as u16);
        }
        for (i, port) in slice_ports.iter().enumerate() {
            sides[usize::from(port.0)] = Side::Slice(i as u16);
        }
        let (requesters, slice_count) = (requester_ports.len(), slice_ports.len());
        let [input_flits, output_flits, width] =
            [parameters.input_ports, parameters.output_ports, parameters.slice_width].map(u64::from);
        // All but the wide ones.
        let narrow = sms + 1;
        let of_requesters = |flits: u64| Ends {
            most: flits,
            rest_from: narrow,
            rest: flits.saturating_mul(u64::from(parameters.copy_width)),
        };
        let first_copy = context.ports.row("copy").next().map(|(_, port)| port);
        let host = first_copy.and_then(|copy| {
            let place = requester_ports.iter().position(|&port| port == copy)?;
            Some((place, copy))
        });
        let mut crossbar = Crossbar {
            fixed: Fixed {
                clock: Clock::new(parameters.clock),
                slices,
                partitions,
                flit_bytes: parameters.flit_bytes,
                request_header_flits: parameters.request_header_flits,
                response_header_flits: parameters.response_header_flits,
            },
            requests: Plane::new(PlaneConfiguration {
                inputs: requesters,
                outputs: slice_count,
                input_flits: of_requesters(input_flits),
                output_flits: Ends::all(output_flits.saturating_mul(width)),
                latency: u64::from(parameters.request_latency),
                credits: parameters.slice_queue,
                places: parameters.request_queue,
            }),
            responses: Plane::new(PlaneConfiguration {
                inputs: slice_count,
                outputs: requesters,
                input_flits: Ends::all(input_flits.saturating_mul(width)),
                output_flits: of_requesters(output_flits),
                latency: u64::from(parameters.response_latency),
                credits: 0,
                places: parameters.response_queue,
            }),
            wiring: Wiring { sides, requester_ports, slice_ports, host },
            by_launch: ByLaunch::default(),
        };
        let counting = |ports: &[PortId]| -> Vec<usize> {
            let counts = |index: &usize| context.ports.peer(ports[*index]).is_some_and(Peer::counts_credits);
            (0..ports.len()).filter(counts).collect()
        };
        let Wiring { requester_ports, slice_ports, .. } = &crossbar.wiring;
        counting(requester_ports).into_iter().for_each(|input| crossbar.requests.count_places(input));
        counting(slice_ports).into_iter().for_each(|input| crossbar.responses.count_places(input));
        Ok(crossbar)
    }

    /// An SM or copy engine asks.
    fn request(&mut self, requester: u16, cycle: u64, mut request: MemoryRequest, out: &mut Outbox) {
        request.return_port = requester;
        if let Some((host, port)) = self.wiring.host.filter(|_| request.aperture == Aperture::Host) {
            // A packet that was granted before leaves before.
            self.grant_responses(host, cycle, out);
            self.requests.free_place(usize::from(requester), cycle);
            let depart = self.fixed.clock.time_of(cycle + self.requests.latency());
            out.send(port, depart, Payload::Memory(MemoryMessage::Request(request)));
            return;
        }
        let owner = self.fixed.slices.slice_of(request.line);
        let slice = self.fixed.partitions.slice_for(requester, owner) as usize;
        request.is_far = slice as u32 != owner;
        let (port, clock) = (self.wiring.slice_ports[slice], self.fixed.clock);
        self.requests.grant(slice, cycle, |depart, request| {
            out.send(port, clock.time_of(depart), Payload::Memory(MemoryMessage::Request(*request)));
        });
        let flits = self.fixed.request_flits(&request);
        let share = self.by_launch.of(request.launch);
        share.packets_request += 1;
        share.flits_request += u64::from(flits);
        self.requests.push(usize::from(requester), slice, cycle, flits, request);
    }

    /// A slice answers.
    fn response(&mut self, slice: u16, cycle: u64, response: MemoryResponse, out: &mut Outbox) {
        let requester = usize::from(response.return_port);
        self.grant_responses(requester, cycle, out);
        let flits = self.fixed.response_flits(&response);
        let share = self.by_launch.of(response.launch);
        share.packets_response += 1;
        share.flits_response += u64::from(flits);
        self.responses.push(usize::from(slice), requester, cycle, flits, response);
    }

    /// Host memory answers.
    fn host_response(&mut self, cycle: u64, response: MemoryResponse, out: &mut Outbox) {
        let requester = usize::from(response.return_port);
        self.grant_responses(requester, cycle, out);
        let depart = self.fixed.clock.time_of(cycle + self.responses.latency());
        let port = self.wiring.requester_ports[requester];
        out.send(port, depart, Payload::Memory(MemoryMessage::Response(response)));
    }

    /// Grants responses to `requester` in cycles before `limit`.
    fn grant_responses(&mut self, requester: usize, limit: u64, out: &mut Outbox) {
        let (port, clock) = (self.wiring.requester_ports[requester], self.fixed.clock);
        self.responses.grant(requester, limit, |depart, response| {
            out.send(port, clock.time_of(depart), Payload::Memory(MemoryMessage::Response(*response)));
        });
    }

    fn receive(&mut self, message: &Message, out: &mut Outbox) {
        let cycle = self.fixed.clock.cycle_at_or_after(message.time);
        let side = self.wiring.sides[usize::from(message.port.0)];
        let requesters = self.wiring.requester_ports.len();
        let known = |response: &MemoryResponse| usize::from(response.return_port) < requesters;
        match (side, &message.payload) {
            (Side::Requester(requester), Payload::Memory(MemoryMessage::Request(request))) => {
                self.request(requester, cycle, *request, out);
            }
            // It holds no store back.
            (Side::Requester(_), Payload::Memory(MemoryMessage::Drain)) => {}
            (Side::Requester(_), Payload::Memory(MemoryMessage::Response(response)))
                if known(response) && self.wiring.host.is_some_and(|(_, port)| port == message.port) =>
            {
                self.host_response(cycle, *response, out);
            }
            (Side::Slice(slice), Payload::Memory(MemoryMessage::Response(response))) if known(response) => {
                self.response(slice, cycle, *response, out);
            }
            (Side::Slice(slice), Payload::Memory(MemoryMessage::Credit(credits))) => {
                for time in credits.times(message.time) {
                    self.requests.add_credit(usize::from(slice), self.fixed.clock.cycle_at_or_after(time));
                }
            }
            (Side::Requester(requester), payload) => payload.unexpected(&format!("of requester {requester}")),
            (Side::Slice(slice), payload) => payload.unexpected(&format!("slice[{slice}]")),
        }
    }
}

impl Fixed {
    fn request_flits(&self, request: &MemoryRequest) -> u32 {
        (self.request_header_flits + u32::from(request.data_bytes).div_ceil(self.flit_bytes)).max(1)
    }

    fn response_flits(&self, response: &MemoryResponse) -> u32 {
        if !response.kind.returns_data() {
            return 1;
        }
        let bytes = sector_count(response.sectors) * SECTOR_BYTES as u32;
        (self.response_header_flits + bytes.div_ceil(self.flit_bytes)).max(1)
    }
}

impl Unit for Crossbar {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.look() {
            self.receive(message, out);
        }
        let clock = self.fixed.clock;
        let limit = clock.cycle_at_or_after(window.until);
        let Wiring { slice_ports, requester_ports, .. } = &self.wiring;
        let next_request = self.requests.grant_all(limit, |slice, depart, request| {
            let payload = Payload::Memory(MemoryMessage::Request(*request));
            out.send(slice_ports[slice], clock.time_of(depart), payload);
        });
        let next_response = self.responses.grant_all(limit, |requester, depart, response| {
            let payload = Payload::Memory(MemoryMessage::Response(*response));
            out.send(requester_ports[requester], clock.time_of(depart), payload);
        });
        let next_place = self.requests.give_back(limit, |requester, cycle, places| {
            let payload = Payload::Memory(MemoryMessage::Credit(Credits::at_once(places)));
            out.send(requester_ports[requester], clock.time_of(cycle), payload);
        });
        let next_answer_place = self.responses.give_back(limit, |slice, cycle, places| {
            let payload = Payload::Memory(MemoryMessage::ResponseCredit(Credits::at_once(places)));
            out.send(slice_ports[slice], clock.time_of(cycle), payload);
        });
        match next_request.min(next_response).min(next_place).min(next_answer_place) {
            u64::MAX => NextWake::OnMessage,
            next => NextWake::At(clock.time_of(next)),
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let (requests, responses) = (self.requests.counters(), self.responses.counters());
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
        for slice in 0..self.wiring.slice_ports.len() {
            SlicePortCounters {
                slice_packets_request: self.requests.packets_out(slice),
                slice_packets_response: self.responses.packets_in(slice),
            }
            .write_of(format_args!("slice[{slice}]"), sink);
        }
    }

    fn shares(&mut self, totals: &mut LaunchTotals) {
        self.by_launch.give(totals);
    }

    fn outstanding(&self) -> Option<String> {
        let (requests, responses) = (self.requests.in_flight(), self.responses.in_flight());
        (requests + responses > 0).then(|| {
            format!(
                "{requests} requests wait for a slice's credit or port, {responses} responses for a requester's port"
            )
        })
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(&self.requests.state, &self.responses.state, &self.by_launch))
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        let (requests, responses, by_launch): SavedState = restore_state(state)?;
        if !self.requests.fits(&requests) || !self.responses.fits(&responses) {
            return Err(StateError::Mismatch("another number of ports".to_owned()));
        }
        (self.requests.state, self.responses.state, self.by_launch) = (requests, responses, by_launch);
        Ok(())
    }
}

/// First byte of the line that holds `address`.
pub const fn line_of(address: u64) -> u64 {
    address / LINE_BYTES * LINE_BYTES
}

#[cfg(test)]
mod tests;
