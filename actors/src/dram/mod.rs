//! Memory channels, which make up the HBM stack and the host memory.
//!
//! A channel follows either the bank timing of its DRAM (`bank_timed`) or a fixed latency and a bandwidth (`simple`). Channels share nothing.

mod bank_timed;
mod bursts;
mod counters;
mod simple;
mod timing;

pub use counters::ChannelCounters;
pub use timing::{DramTiming, Refresh};

use crate::catalogue::bounds::{RATE, TIME};
use crate::catalogue::{BuildError, Problems};
use crate::engine::{Inbox, NextWake, Outbox, StateError, Window, restore_state, save_state};
use crate::lines::LineRange;
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::memory::{LINE_BYTES, MemoryBurst, MemoryMessage, MemoryRequest, ServedBy};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bandwidth, Clock, Frequency, Message, Payload, PortId, SimTime};
use bank_timed::{BankTimedChannel, ChannelState, PrefetchStep};
use bursts::{Bursts, Requester};
use simple::{SimpleChannel, SimpleState};

/// How a memory is modelled.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub enum MemoryModel {
    /// Each access takes `latency`; the channels share `bandwidth` evenly.
    Simple {
        /// From arrival of the request to departure of the response, without queueing.
        latency: SimTime,
        /// Bandwidth of all channels together.
        bandwidth: Bandwidth,
    },
    /// Banks, rows, bus turnaround and refresh, scheduled first-ready, first-come-first-served.
    BankTimed {
        /// Timing of a channel; absent keys have the values of the V100's HBM2.
        #[serde(default)]
        timing: DramTiming,
        /// Time a request spends in the controller and the physical interface beside the DRAM's own.
        controller_latency: SimTime,
    },
}

impl MemoryModel {
    /// The settings that its channels cannot honour.
    fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        match self {
            MemoryModel::Simple { latency, bandwidth } => {
                problems.check_range("model.latency", *latency, TIME);
                problems.check_range("model.bandwidth", *bandwidth, RATE);
            }
            MemoryModel::BankTimed { timing, controller_latency } => {
                problems.extend(timing.check().err().into_iter().flatten());
                problems.check_range("model.controller_latency", *controller_latency, TIME);
            }
        }
        problems
    }
}

#[derive(Debug)]
enum Kind {
    Simple(Vec<SimpleChannel>),
    BankTimed(Vec<BankTimedChannel>, Bursts),
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
    /// `count` channels (at least 1) of `model`; consecutive lines interleave over `interleave` channels, channels of other stacks
    /// included. `shared_ports` where requests of one port go to several channels.
    pub fn new(
        clock: Frequency,
        model: &MemoryModel,
        count: u32,
        interleave: u32,
        shared_ports: bool,
    ) -> Result<Channels, BuildError> {
        let clock = Clock::new(clock);
        model.problems().into_result()?;
        let kind = match model {
            MemoryModel::Simple { latency, bandwidth } => {
                let share = Bandwidth::from_bytes_per_second(bandwidth.bytes_per_second() / u64::from(count));
                Kind::Simple(vec![SimpleChannel::new(*latency, share); count as usize])
            }
            MemoryModel::BankTimed { timing, controller_latency } => {
                let channel = || BankTimedChannel::new(clock, timing, *controller_latency, interleave);
                Kind::BankTimed((0..count).map(|_| channel()).collect(), Bursts::default())
            }
        };
        Ok(Channels { clock, kind, shared_ports })
    }

    /// Handles a window; `channel_of` says which channel a line is for that a port asks for. Lines of a burst that are as far apart as
    /// there are channels are for the same one.
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
                while let Some(message) = inbox.look() {
                    let (now, port) = (message.time, message.port);
                    match wanted(message) {
                        Some(Wanted::Line(request)) => {
                            let done = channels[channel_of(port, request.line)].access(now, &request, 1);
                            out.send(port, done, response(&request));
                        }
                        Some(Wanted::Burst(burst)) => {
                            let done = serve_burst(channels, &burst, now, |line| channel_of(port, line));
                            out.send(port, done, burst_done(burst));
                        }
                        None => {}
                    }
                }
                NextWake::OnMessage
            }
            Kind::BankTimed(channels, bursts) => {
                for step in [PrefetchStep::Queue, PrefetchStep::Entry, PrefetchStep::Request] {
                    channels.iter().for_each(|channel| channel.prefetch(step));
                }
                while let Some(message) = inbox.look() {
                    let (now, port) = (message.time, message.port);
                    let cycle = clock.cycle_at_or_after(now);
                    let mut arrive = |requester, line: MemoryRequest| {
                        channels[channel_of(port, line.line)].arrive(now, cycle, requester, line);
                    };
                    match wanted(message) {
                        Some(Wanted::Line(request)) => arrive(Requester::Port(port), request),
                        Some(Wanted::Burst(burst)) if burst.bytes == 0 => out.send(port, now, burst_done(burst)),
                        Some(Wanted::Burst(burst)) => {
                            let slot = bursts.open(port, burst, lines(&burst).count() as u32);
                            lines(&burst).for_each(|line| arrive(Requester::Burst(slot), line));
                        }
                        None => {}
                    }
                }
                let limit = clock.cycle_at_or_after(window.until);
                let mut done = |requester, time, request: &MemoryRequest| match requester {
                    Requester::Port(port) => out.send(port, time, response(request)),
                    Requester::Burst(slot) => {
                        if let Some((port, time, burst)) = bursts.line_done(slot, time) {
                            out.send(port, time, burst_done(burst));
                        }
                    }
                };
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
            Kind::BankTimed(channels, _) => channels.iter().map(|channel| &channel.state().counters).collect(),
        };
        let mut total = ChannelCounters::default();
        for channel in &counters {
            total.add(channel);
        }
        total.write(sink);
        for (i, channel) in counters.iter().enumerate() {
            channel.write_of(format_args!("channel[{i}]"), sink);
        }
    }

    /// Gives the channels' counts by launch.
    pub fn shares(&mut self, totals: &mut LaunchTotals) {
        match &mut self.kind {
            Kind::Simple(channels) => channels.iter_mut().for_each(|channel| channel.state.by_launch.give(totals)),
            Kind::BankTimed(channels, _) => channels.iter_mut().for_each(|channel| channel.shares(totals)),
        }
    }

    /// The requests that wait in the channels.
    pub fn outstanding(&self) -> Option<String> {
        let Kind::BankTimed(channels, _) = &self.kind else { return None };
        let waiting: usize = channels.iter().map(BankTimedChannel::waiting).sum();
        (waiting > 0).then(|| format!("{waiting} requests wait in the channels"))
    }

    /// The states of the channels, as bytes.
    pub fn save(&self) -> Result<Vec<u8>, StateError> {
        match &self.kind {
            Kind::Simple(channels) => save_state(&channels.iter().map(|channel| &channel.state).collect::<Vec<_>>()),
            Kind::BankTimed(channels, bursts) => {
                save_state(&(channels.iter().map(BankTimedChannel::state).collect::<Vec<_>>(), bursts))
            }
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
            Kind::BankTimed(channels, bursts) => {
                let states: Vec<ChannelState>;
                (states, *bursts) = restore_state(state)?;
                let right = states.len() == channels.len();
                right && channels.iter_mut().zip(states).all(|(channel, state)| channel.restore(state))
            }
        };
        if right { Ok(()) } else { Err(StateError::Mismatch("another number of channels or banks".to_owned())) }
    }
}

/// Takes the lines of a burst that arrives at `now`; returns when the last one is done.
fn serve_burst(
    channels: &mut [SimpleChannel],
    burst: &MemoryBurst,
    now: SimTime,
    channel_of: impl Fn(u64) -> usize,
) -> SimTime {
    let count = channels.len() as u64;
    let mut range = LineRange::new(burst.address, u64::from(burst.bytes));
    let mut done = now;
    while let Some(line) = range.next_request(burst.kind, burst.id) {
        // The whole lines behind it that are for the same channel are all alike.
        let lines = 1 + if line.sectors == 0b1111 { range.skip_whole_lines() } else { 0 };
        for first in 0..count.min(lines) {
            let channel = &mut channels[channel_of(line.line + first * LINE_BYTES)];
            done = done.max(channel.access(now, &line, (lines - first).div_ceil(count)));
        }
    }
    done
}

/// The request in a message.
enum Wanted {
    Line(MemoryRequest),
    Burst(MemoryBurst),
}

/// The request in a message; `None` where there is none.
fn wanted(message: &Message) -> Option<Wanted> {
    match &message.payload {
        Payload::Memory(MemoryMessage::Request(request)) => Some(Wanted::Line(*request)),
        Payload::Memory(MemoryMessage::Burst(burst)) => Some(Wanted::Burst(*burst)),
        // A memory holds no store back.
        Payload::Memory(MemoryMessage::Drain) => None,
        payload => payload.unexpected(&format!("number {}", message.port.0)),
    }
}

/// The requests that a burst stands for.
fn lines(burst: &MemoryBurst) -> impl Iterator<Item = MemoryRequest> + use<> {
    let (mut range, kind, id) = (LineRange::new(burst.address, u64::from(burst.bytes)), burst.kind, burst.id);
    std::iter::from_fn(move || range.next_request(kind, id))
}

fn burst_done(burst: MemoryBurst) -> Payload {
    Payload::Memory(MemoryMessage::BurstDone(burst))
}

fn response(request: &MemoryRequest) -> Payload {
    Payload::Memory(MemoryMessage::Response(request.response(0, ServedBy::DeviceMemory)))
}

#[cfg(test)]
mod tests;
