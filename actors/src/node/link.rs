//! A link between host and GPU, such as PCI Express. It forwards the messages of one protocol and models the time that they occupy it.
//!
//! The latency belongs to the two wires of the link (an eighth to the host's, the rest to the GPU's); the link itself serialises the messages of each
//! direction, first come, first served.

use crate::catalogue::bounds::{RATE, TIME};
use crate::catalogue::timeline::{
    Argument, Category, Label, TimelineLog, Track, TrackGroup, TrackKind, TrackPlace, ValueKind,
};
use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterSet, PeakRate, PortDefinition, Role, UnitDefinition,
};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use balar_protocol::cuda::CudaMessage;
use balar_protocol::memory::{MemoryMessage, SECTOR_BYTES, sector_count};
use balar_protocol::migration::MigrationMessage;
use balar_protocol::statistics::{StatisticDefinition, StatisticSink};
use balar_protocol::time::PICOSECONDS_PER_SECOND;
use balar_protocol::{Bandwidth, Bytes, Payload, PortId, Protocol, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

crate::parameters! {
    /// A link between host and GPU.
    pub struct LinkParameters {
        /// time of a message from end to end on an idle link, beyond its own transfer time; the loader gives an eighth to the wire towards the host and the rest to the other
        #[range(SimTime(8)..=TIME.end)]
        latency: SimTime,
        /// rate of each direction
        #[range(RATE)]
        bandwidth: Bandwidth,
        /// bytes that every message occupies beyond its data (PCI Express: 12 to 16 of TLP header, 8 of framing, sequence number and CRC)
        #[range(..=Bytes(1 << 20))]
        header_bytes: Bytes = r#""24 B""#,
        /// largest payload of one packet; each packet of a message has a header of its own
        #[range(Bytes(1)..=Bytes(1 << 30))]
        packet_bytes: Bytes = r#""256 B""#,
    }
}

balar_protocol::counters! {
    /// The counters of a link, for each direction.
    pub struct LinkCounters {
        /// messages forwarded
        messages: "message",
        /// bytes transferred, headers included
        bytes: "byte",
        /// time a message was on the link
        busy_time: "ps",
        /// time messages waited for those before them
        queue_time: "ps",
        /// most messages waiting or under transfer at once
        queue_maximum: "message" maximum,
    }
}

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "Link",
    summary: "a serial link between host and GPU: bandwidth and packet headers of each direction",
    parameters: LinkParameters::DEFINITIONS,
    check: LinkParameters::check,
    ports: &[
        PortDefinition {
            name: "up",
            protocol: Protocol::Any,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "towards the host, which sends requests",
        },
        PortDefinition {
            name: "down",
            protocol: Protocol::Any,
            role: Role::Client,
            indexed: false,
            required: true,
            meaning: "towards the GPU, of the same protocol as up",
        },
    ],
    counters: COUNTERS,
    provides,
    weight: 2,
    build,
};

const COUNTERS: &[StatisticDefinition] = LinkCounters::DEFINITIONS;

fn provides(text: &str) -> Vec<Capability> {
    // A link whose latency has a mistake is still one.
    let parameters: Result<LinkParameters, _> = ron::from_str(text);
    let latency = parameters.as_ref().map_or(SimTime::ZERO, |parameters| parameters.latency);
    let rate = parameters.map(|parameters| parameters.bandwidth.bytes_per_second());
    let rate = rate.map(|per_second| Capability::Peak { what: PeakRate::LinkBytes, per_second });
    [Capability::Forwards { ports: ["up", "down"], latency: Some(latency) }].into_iter().chain(rate).collect()
}

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: LinkParameters = ron::from_str(text)?;
    parameters.range_problems().into_result()?;
    let up = context.required_port("up")?;
    let down = context.required_port("down")?;
    let mut link = Link::new(&parameters, up, down);
    link.timeline = LinkTimeline::of(context, parameters.bandwidth);
    Ok(Box::new(link))
}

/// One direction of a link.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Direction {
    counters: LinkCounters,
    /// When each message that is waiting or under transfer has left, in order.
    departures: VecDeque<SimTime>,
    /// When the last of them has.
    free_at: SimTime,
}

impl Direction {
    /// A message of `bytes` arrives at `now`; returns when its last byte has left.
    fn transfer(&mut self, now: SimTime, bytes: u64, occupancy: SimTime) -> SimTime {
        while self.departures.front().is_some_and(|&departure| departure <= now) {
            self.departures.pop_front();
        }
        let start = self.free_at.max(now);
        let departure = start + occupancy;
        self.free_at = departure;
        self.departures.push_back(departure);
        self.counters.messages += 1;
        self.counters.bytes += bytes;
        self.counters.busy_time += occupancy.0;
        self.counters.queue_time += (start - now).0;
        self.counters.queue_maximum = self.counters.queue_maximum.max(self.departures.len() as u64);
        departure
    }
}

/// Everything that changes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    to_device: Direction,
    to_host: Direction,
}

/// The unit.
struct Link {
    bandwidth: Bandwidth,
    header_bytes: u64,
    packet_bytes: u64,
    up: PortId,
    down: PortId,
    state: State,
    /// Where to tell when it is busy.
    timeline: Option<LinkTimeline>,
}

impl Link {
    fn new(parameters: &LinkParameters, up: PortId, down: PortId) -> Link {
        Link {
            bandwidth: parameters.bandwidth,
            header_bytes: parameters.header_bytes.0,
            packet_bytes: parameters.packet_bytes.0.max(1),
            up,
            down,
            state: State::default(),
            timeline: None,
        }
    }

    /// Bytes of a message on the link: its data, and a header for each packet of it.
    fn bytes(&self, payload: &Payload) -> u64 {
        let data = data_bytes(payload);
        data + self.header_bytes * data.div_ceil(self.packet_bytes).max(1)
    }
}

/// Messages that follow each other within this time are told as one slice.
const BURST_GAP: SimTime = SimTime(1_000_000);
const BURST: &[Argument] =
    &[("messages", ValueKind::Number), ("bytes", ValueKind::Number), ("busy_ps", ValueKind::Number)];

/// The state that a link needs to record its use: a slice for each burst of messages, and how many bytes have come to it and not left, on
/// tracks for each direction.
struct LinkTimeline {
    log: TimelineLog,
    /// Towards the GPU, and towards the host.
    tracks: [Track; 2],
    in_flight: [Track; 2],
    busy: Label,
    bandwidth: Bandwidth,
}

impl LinkTimeline {
    fn of(context: &BuildContext, bandwidth: Bandwidth) -> Option<LinkTimeline> {
        let log = context.timeline()?;
        let track = |rank, name: &'static str, kind| {
            let path = vec![(context.unit, context.path.to_owned().into()), (rank, name.into())];
            log.track(TrackPlace { kind, ..TrackPlace::slices(TrackGroup::Links, path) })
        };
        let (slices, bytes) = (|| TrackKind::Slices, || TrackKind::Counter("byte".into()));
        let tracks = [track(0, "to device", slices()), track(1, "to host", slices())];
        let in_flight = [track(2, "in flight to device", bytes()), track(3, "in flight to host", bytes())];
        Some(LinkTimeline { tracks, in_flight, busy: log.label(Category::Link, "busy", BURST), bandwidth, log })
    }

    fn carries(&self, direction: usize, [arrival, start, departure]: [SimTime; 3], bytes: u64) {
        let amounts = [1, bytes, (departure - start).0];
        self.log.extend(self.tracks[direction], self.busy, (start, departure), BURST_GAP, &amounts);
        let rate = u128::from(self.bandwidth.bytes_per_second());
        let in_flight = u128::from((departure - arrival).0) * rate / u128::from(PICOSECONDS_PER_SECOND);
        self.log.count_until((arrival, departure), self.in_flight[direction], in_flight as u64);
    }
}

/// Data that a message carries beyond its header.
fn data_bytes(payload: &Payload) -> u64 {
    match payload {
        // A launch command: the queue metadata's 256 bytes, as much as the hardware's launch descriptor, and the parameters.
        Payload::Cuda(CudaMessage::Launch(launch)) => 256 + launch.parameters.len() as u64,
        Payload::Cuda(CudaMessage::LaunchCompleted { .. } | CudaMessage::Reset(_) | CudaMessage::Abort(_)) => 16,
        Payload::Copy(message) => message.data_bytes(),
        Payload::Memory(MemoryMessage::Request(request)) => u64::from(request.data_bytes),
        Payload::Memory(MemoryMessage::Response(response)) if response.kind.returns_data() => {
            u64::from(sector_count(response.sectors)) * SECTOR_BYTES
        }
        Payload::Memory(MemoryMessage::Burst(burst)) if burst.kind.carries_data() => u64::from(burst.bytes),
        Payload::Memory(MemoryMessage::BurstDone(burst)) if burst.kind.returns_data() => u64::from(burst.bytes),
        Payload::Memory(_) | Payload::Translation(_) => 0,
        // An entry of a fault buffer has 32 bytes (NVIDIA's open kernel modules 595.45.04); a command to a GMMU has about as many.
        Payload::Migration(MigrationMessage::Faults(faults)) => 32 * faults.entries.len() as u64,
        Payload::Migration(_) => 32,
        Payload::Managed(_) => 0,
        Payload::Cluster(message) => message.data_bytes(),
        Payload::Cta(_) => 32,
        Payload::Custom(words) => size_of_val(words) as u64,
    }
}

impl Unit for Link {
    fn advance(&mut self, _window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.take() {
            let bytes = self.bytes(&message.payload);
            let occupancy = self.bandwidth.time_for(bytes);
            let State { to_device, to_host } = &mut self.state;
            let is_down = message.port == self.up;
            let (direction, port) = if is_down { (to_device, self.down) } else { (to_host, self.up) };
            let departure = direction.transfer(message.time, bytes, occupancy);
            if let Some(timeline) = &self.timeline {
                let times = [message.time, departure - occupancy, departure];
                timeline.carries(usize::from(!is_down), times, bytes);
            }
            out.send(port, departure, message.payload);
        }
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.to_device.counters.write_of("to_device", sink);
        self.state.to_host.counters.write_of("to_host", sink);
    }

    fn outstanding(&self) -> Option<String> {
        None
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&self.state)
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        self.state = restore_state(state)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Bench;
    use crate::test_support::{Numbers, check_cuts_and_states};
    use balar_protocol::copy::{CopyId, CopyMessage};

    const UP: PortId = PortId(0);
    const DOWN: PortId = PortId(1);

    fn link() -> Link {
        let text = r#"(latency: "20 ns", bandwidth: "1 GB/s", header_bytes: "20 B")"#;
        Link::new(&LinkParameters::from_ron(text).expect(text), UP, DOWN)
    }

    fn page(bytes: u32) -> Payload {
        Payload::Copy(CopyMessage::Page { copy: CopyId(1), offset: 0, bytes, last: false })
    }

    #[test]
    fn messages_of_one_direction_follow_each_other_and_directions_are_independent() {
        let mut link = link();
        let mut bench = Bench::new(&[SimTime(10_000); 2]);
        bench.deliver(SimTime(5_000), UP, page(100));
        bench.deliver(SimTime(6_000), UP, page(300));
        bench.deliver(SimTime(7_000), DOWN, page(0));
        bench.deliver(SimTime(900_000), UP, page(0));
        let sent = bench.run(&mut link, SimTime(10_000), SimTime(1_000_000));
        let times: Vec<_> = sent.iter().map(|(time, port, _)| (time.0, port.0)).collect();
        // A byte takes 1 ns. 100 + 20 bytes end at 125 ns; 300 bytes are two packets, 340 bytes, after them.
        assert_eq!(times, [(135_000, 1), (475_000, 1), (37_000, 0), (930_000, 1)]);
        let mut sink = StatisticSink::default();
        sink.set_location("data_link");
        link.statistics(&mut sink);
        let value = |location: &str, what: &str| {
            sink.rows.iter().find(|row| row.location == location && row.what == what).map(|row| row.value)
        };
        assert_eq!(value("data_link.to_device", "messages"), Some(3));
        assert_eq!(value("data_link.to_device", "bytes"), Some(120 + 340 + 20));
        assert_eq!(value("data_link.to_device", "busy_time"), Some(480_000));
        assert_eq!(value("data_link.to_device", "queue_time"), Some(119_000));
        assert_eq!(value("data_link.to_device", "queue_maximum"), Some(2));
        assert_eq!(value("data_link.to_host", "bytes"), Some(20));
    }

    #[test]
    fn nothing_depends_on_windows_and_a_state_goes_on() {
        let mut numbers = Numbers::new(7);
        let arrival = |_| {
            let bytes = numbers.below(900) as u32;
            (SimTime(numbers.below(90_000_000)), PortId(numbers.below(2) as u16), page(bytes))
        };
        let script = (0..300).map(arrival).collect();
        check_cuts_and_states(|| Box::new(link()), 2, SimTime(10_000), script, |_| Vec::new(), SimTime(200_000_000));
    }
}
