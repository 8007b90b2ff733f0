//! An HBM stack: channels behind the L2 slices, by bank timing or by a plain latency and bandwidth.
//!
//! The two models are one parameter of the same unit. Port `slice[i]` leads to one channel; the channels share nothing.

mod simple;

use crate::catalogue::{
    BuildContext, BuildError, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, ServedBy};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bandwidth, Bytes, Frequency, Payload, PortId, Protocol, SimTime};
use simple::SimpleChannel;

crate::parameters! {
    /// An HBM stack.
    pub struct HbmStackParameters {
        /// clock of the memory interface (V100: 877 MHz, two transfers a cycle)
        clock: Frequency,
        /// data capacity of the stack (V100: 4 GiB)
        capacity: Bytes,
        /// channels of the stack (HBM2: 8 of 128 bits)
        channels: u32 = "8",
        /// Simple(latency, bandwidth of the stack)
        model: MemoryModel = r#"Simple(latency: "115 ns", bandwidth: "216 GB/s")"#,
    }
}

/// How a memory is modelled.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub enum MemoryModel {
    /// Each access takes `latency`; the channels share `bandwidth` evenly.
    Simple {
        /// From arrival of the request to departure of the response, without queueing.
        latency: SimTime,
        /// Of all channels together.
        bandwidth: Bandwidth,
    },
}

balar_protocol::counters! {
    /// What a memory channel counts; the unit's own row is the sum over its channels, or the maximum.
    pub struct ChannelCounters {
        /// 32-byte sectors read
        sectors_read: "sector",
        /// 32-byte sectors written
        sectors_written: "sector",
        /// requests that read
        requests_read: "request",
        /// requests that write
        requests_write: "request",
        /// time from arrival of a load to its response, summed over loads
        latency_read: "ps",
        /// time the data bus was busy
        busy_time: "ps",
        /// most requests that waited
        queue_maximum: "request",
    }
}

/// The HBM stack in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "HbmStack",
    summary: "stack of high-bandwidth memory with its controllers",
    parameters: HbmStackParameters::DEFINITIONS,
    check: HbmStackParameters::check,
    ports: &[PortDefinition {
        name: "slice",
        protocol: Protocol::Memory,
        role: Role::Server,
        indexed: true,
        required: true,
        meaning: "the L2 slices whose lines it holds",
    }],
    counters: ChannelCounters::DEFINITIONS,
    build: |text, context| Ok(Box::new(HbmStack::new(ron::from_str(text)?, context)?)),
};

/// An HBM stack.
#[derive(Debug)]
pub struct HbmStack {
    /// By `PortId`: the channel it leads to.
    channel_of: Vec<usize>,
    channels: Vec<SimpleChannel>,
}

impl HbmStack {
    /// A stack with the wired ports of `context`.
    pub fn new(parameters: HbmStackParameters, context: &BuildContext) -> Result<HbmStack, BuildError> {
        let ports: Vec<PortId> = context.ports.row("slice").map(|(_, port)| port).collect();
        if parameters.channels == 0 {
            let problem = ParameterProblem::new("channels", "expected at least 1, found 0");
            return Err(BuildError::Parameters(vec![problem]));
        }
        let count = parameters.channels as usize;
        let mut channel_of = vec![0; ports.len()];
        for (i, port) in ports.iter().enumerate() {
            channel_of[usize::from(port.0)] = i * count / ports.len();
        }
        let MemoryModel::Simple { latency, bandwidth } = parameters.model;
        let share = Bandwidth::from_bytes_per_second(bandwidth.bytes_per_second() / u64::from(parameters.channels));
        Ok(HbmStack { channel_of, channels: vec![SimpleChannel::new(latency, share); count] })
    }
}

impl Unit for HbmStack {
    fn advance(&mut self, _window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.take() {
            if let Payload::Memory(MemoryMessage::Request(request)) = message.payload {
                let channel = self.channel_of[usize::from(message.port.0)];
                let done = self.channels[channel].access(message.time, &request);
                let response = request.response(0, ServedBy::DeviceMemory);
                out.send(message.port, done, Payload::Memory(MemoryMessage::Response(response)));
            }
        }
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let mut total = ChannelCounters::default();
        for channel in &self.channels {
            total.accumulate(&channel.counters);
        }
        total.write(sink);
        for (i, channel) in self.channels.iter().enumerate() {
            channel.counters.write_of(&format!("channel[{i}]"), sink);
        }
    }

    fn outstanding(&self) -> Option<String> {
        None
    }
}

impl ChannelCounters {
    /// Adds another channel's counts; maxima stay maxima.
    pub fn accumulate(&mut self, other: &ChannelCounters) {
        let maximum = self.queue_maximum.max(other.queue_maximum);
        self.add(other);
        self.queue_maximum = maximum;
    }

    /// Counts an arriving request.
    pub(crate) fn arrival(&mut self, request: &MemoryRequest) {
        let sectors = u64::from(request.sectors.count_ones());
        if request.kind == MemoryKind::Load {
            self.requests_read += 1;
            self.sectors_read += sectors;
        } else {
            self.requests_write += 1;
            self.sectors_written += sectors;
        }
    }
}
