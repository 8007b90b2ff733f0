//! Memory channels: what the HBM stack and the host memory are made of.
//!
//! A channel follows either the bank timing of its DRAM (`bank_timed`) or a fixed latency and a bandwidth (`simple`). Channels share nothing.

mod bank_timed;
mod simple;
mod timing;

pub use timing::{DramTiming, Refresh};

use crate::catalogue::ParameterProblem;
use crate::engine::{Inbox, NextWake, Outbox, StateError, Window, restore_state, save_state};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, ServedBy};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bandwidth, Clock, Frequency, Message, Payload, PortId, SimTime};
use bank_timed::{BankTimedChannel, ChannelState};
use simple::{SimpleChannel, SimpleState};

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
    /// Banks, rows, bus turnaround and refresh, scheduled first-ready, first-come-first-served.
    BankTimed {
        /// Timing of a channel; what is absent has the value of the V100's HBM2.
        #[serde(default)]
        timing: DramTiming,
        /// Time a request spends in the controller and the physical interface beside the DRAM's own.
        controller_latency: SimTime,
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
        /// requests that found their row open
        row_hits: "request",
        /// requests whose bank had no row open
        row_misses: "request",
        /// requests whose bank had another row open
        row_conflicts: "request",
        /// rows opened
        activates: "command",
        /// rows closed
        precharges: "command",
        /// refresh commands, up to the channel's last access
        refreshes: "command",
        /// changes between reading and writing
        turnarounds: "change",
        /// time from arrival of a load to its response, summed over loads
        latency_read: "ps",
        /// time the data bus carried data
        busy_time: "ps",
        /// most requests that waited in one channel
        queue_maximum: "request" maximum,
    }
}

impl ChannelCounters {
    fn arrival(&mut self, request: &MemoryRequest) {
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

#[derive(Debug)]
enum Kind {
    Simple(Vec<SimpleChannel>),
    BankTimed(Vec<BankTimedChannel>),
}

/// The channels of a memory.
#[derive(Debug)]
pub(crate) struct Channels {
    clock: Clock,
    kind: Kind,
    /// Requests of one port go to several channels.
    shared_ports: bool,
}

impl Channels {
    /// `count` channels (at least 1) of `model`; consecutive lines interleave over `interleave` channels, those of other stacks included.
    /// `shared_ports` where requests of one port go to several channels.
    pub fn new(
        clock: Frequency,
        model: &MemoryModel,
        count: u32,
        interleave: u32,
        shared_ports: bool,
    ) -> Result<Channels, Vec<ParameterProblem>> {
        let clock = Clock::new(clock);
        let kind = match model {
            MemoryModel::Simple { latency, bandwidth } => {
                let share = Bandwidth::from_bytes_per_second(bandwidth.bytes_per_second() / u64::from(count));
                Kind::Simple(vec![SimpleChannel::new(*latency, share); count as usize])
            }
            MemoryModel::BankTimed { timing, controller_latency } => {
                timing.check()?;
                let channel = || BankTimedChannel::new(clock, timing, *controller_latency, interleave);
                Kind::BankTimed((0..count).map(|_| channel()).collect())
            }
        };
        Ok(Channels { clock, kind, shared_ports })
    }

    /// Handles a window; `channel_of` says which channel a request is for.
    pub fn advance(
        &mut self,
        window: Window,
        inbox: &mut Inbox,
        out: &mut Outbox,
        channel_of: impl Fn(PortId, u64) -> usize,
    ) -> NextWake {
        let clock = self.clock;
        match &mut self.kind {
            Kind::Simple(channels) => {
                while let Some(message) = inbox.take() {
                    let Some(request) = request(&message) else { continue };
                    let done = channels[channel_of(message.port, request.line)].access(message.time, &request);
                    out.send(message.port, done, response(&request));
                }
                NextWake::OnMessage
            }
            Kind::BankTimed(channels) => {
                while let Some(message) = inbox.take() {
                    let Some(request) = request(&message) else { continue };
                    let channel = &mut channels[channel_of(message.port, request.line)];
                    channel.arrive(message.time, clock.cycle_at_or_after(message.time), message.port, request);
                }
                let limit = clock.cycle_at_or_after(window.until);
                let mut done = |port, time, request: &MemoryRequest| out.send(port, time, response(request));
                if self.shared_ports {
                    // Cycle by cycle, so that a port gets its responses in an order that does not depend on the window.
                    while let Some(channel) = channels.iter_mut().min_by_key(|channel| channel.due())
                        && channel.due() < limit
                    {
                        channel.run(channel.due() + 1, &mut done);
                    }
                }
                let mut next = u64::MAX;
                for channel in channels.iter_mut() {
                    next = next.min(channel.run(limit, &mut done));
                }
                if next == u64::MAX { NextWake::OnMessage } else { NextWake::At(clock.time_of(next)) }
            }
        }
    }

    /// Writes the sum over the channels, then each channel.
    pub fn statistics(&self, sink: &mut StatisticSink) {
        let counters: Vec<&ChannelCounters> = match &self.kind {
            Kind::Simple(channels) => channels.iter().map(|channel| &channel.state.counters).collect(),
            Kind::BankTimed(channels) => channels.iter().map(|channel| &channel.state().counters).collect(),
        };
        let mut total = ChannelCounters::default();
        for channel in &counters {
            total.add(channel);
        }
        total.write(sink);
        for (i, channel) in counters.iter().enumerate() {
            channel.write_of(&format!("channel[{i}]"), sink);
        }
    }

    /// What waits in the channels.
    pub fn outstanding(&self) -> Option<String> {
        let Kind::BankTimed(channels) = &self.kind else { return None };
        let waiting: usize = channels.iter().map(BankTimedChannel::waiting).sum();
        (waiting > 0).then(|| format!("{waiting} requests wait in the channels"))
    }

    /// The states of the channels, as bytes.
    pub fn save(&self) -> Result<Vec<u8>, StateError> {
        match &self.kind {
            Kind::Simple(channels) => save_state(&channels.iter().map(|channel| &channel.state).collect::<Vec<_>>()),
            Kind::BankTimed(channels) => save_state(&channels.iter().map(BankTimedChannel::state).collect::<Vec<_>>()),
        }
    }

    /// Replaces the states of the channels.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let right = match &mut self.kind {
            Kind::Simple(channels) => {
                let states: Vec<SimpleState> = restore_state(state)?;
                let right = states.len() == channels.len();
                channels.iter_mut().zip(states).for_each(|(channel, state)| channel.state = state);
                right
            }
            Kind::BankTimed(channels) => {
                let states: Vec<ChannelState> = restore_state(state)?;
                let right = states.len() == channels.len();
                right && channels.iter_mut().zip(states).all(|(channel, state)| channel.restore(state))
            }
        };
        if right { Ok(()) } else { Err(StateError::Mismatch("another number of channels or banks".to_owned())) }
    }
}

/// The request that a message is; `None` where it wants nothing.
fn request(message: &Message) -> Option<MemoryRequest> {
    match &message.payload {
        Payload::Memory(MemoryMessage::Request(request)) => Some(*request),
        // A memory holds no store back.
        Payload::Memory(MemoryMessage::Drain) => None,
        payload => payload.unexpected(&format!("number {}", message.port.0)),
    }
}

fn response(request: &MemoryRequest) -> Payload {
    Payload::Memory(MemoryMessage::Response(request.response(0, ServedBy::DeviceMemory)))
}

#[cfg(test)]
mod tests;
