//! A stream prefetcher between the memory port of an SM and the crossbar: a unit to copy.
//!
//! ```text
//!                       upstream                       downstream
//!   +----+  requests   +----------------------------------+  requests   +----------+
//!   |    | ----------> |  stream table --> prefetch queue | ----------> |          |
//!   | SM |             |        buffer of lines           |             | crossbar |
//!   |    | <---------- |  hit: answered from here         | <---------- |          |
//!   +----+  responses  +----------------------------------+  responses  +----------+
//! ```
//!
//! It sees the loads that miss in the SM's caches, those of code included. Where they walk through memory line by line, it
//! asks for the lines that follow before the SM does, keeps them in a buffer, and answers the SM's loads from there.
//! Everything else passes.
//!
//! What it does not model: the buffer has as many read ports as it needs; wires on which requests cost credits (those
//! between crossbar and L2 slice), for it sends requests of its own; a store by another SM to a line in the buffer, which
//! ages there until the next kernel as it does in an L1. Values are never stale: they do not travel in these messages.

use balar_actors::catalogue::{
    BuildContext, BuildError, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use balar_actors::engine::{Inbox, NextWake, Outbox, Unit, Window};
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, Scope, ServedBy};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bytes, Clock, Frequency, Message, Payload, PortId, Protocol, SimTime};
use std::collections::VecDeque;

balar_actors::parameters! {
    /// A stream prefetcher. Its defaults are a plausible design, not measurements.
    pub struct StreamPrefetcherParameters {
        /// clock of the prefetcher, that of its SM
        clock: Frequency,
        /// streams that it follows at once
        streams: u32 = "8",
        /// steps to a following line that make a stream
        confirmations: u32 = "2",
        /// lines that it runs ahead of a stream
        degree: u32 = "4",
        /// lines of 128 bytes in its buffer
        buffer_lines: u32 = "64",
        /// cycles from the arrival of a load to its answer from the buffer
        hit_latency: u32 = "8",
        /// cycles from the arrival of any other message to its departure
        forward_latency: u32 = "2",
        /// bytes of a page: a prefetch stays in the page of its load, for the next page may lie elsewhere
        page: Bytes = r#""2 MiB""#,
    }
}

balar_protocol::counters! {
    /// What a stream prefetcher counts.
    pub struct StreamPrefetcherCounters {
        /// loads received from the SM
        loads: "request",
        /// loads answered from the buffer
        buffer_hits: "request",
        /// loads that waited for a line that was under way
        buffer_hits_late: "request",
        /// loads passed on
        buffer_misses: "request",
        /// streams found
        streams_found: "stream",
        /// lines asked for ahead of the SM
        prefetches: "line",
        /// of these, lines that a load wanted
        prefetches_used: "line",
        /// lines not asked for because every line of the buffer was under way
        prefetches_dropped: "line",
        /// lines dropped because a store, an atomic or an invalidation made them stale
        buffer_invalidations: "line",
    }
}

/// The prefetcher in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "StreamPrefetcher",
    summary: "fetches the lines of sequential streams ahead of an SM",
    parameters: StreamPrefetcherParameters::DEFINITIONS,
    check: StreamPrefetcherParameters::check,
    ports: &[
        PortDefinition {
            name: "upstream",
            protocol: Protocol::Memory,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "the SM",
        },
        PortDefinition {
            name: "downstream",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: true,
            meaning: "the crossbar",
        },
    ],
    counters: StreamPrefetcherCounters::DEFINITIONS,
    build: |text, context| Ok(Box::new(StreamPrefetcher::new(ron::from_str(text)?, context)?)),
};

/// A walk through memory, line by line.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The furthest line that was loaded, as a number of lines.
    last: u64,
    /// The first line that has not been asked for.
    next: u64,
    /// Steps to a following line so far.
    confirmations: u32,
    /// When it was last followed, for replacement.
    used_at: u64,
}

/// What a line of the buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    Nothing,
    /// The line is asked for, or about to be.
    UnderWay,
    /// As [`Contents::UnderWay`], but it was overwritten meanwhile.
    StaleUnderWay,
    Line,
}

/// A line of the buffer.
#[derive(Clone, Debug)]
struct Entry {
    contents: Contents,
    line: u64,
    /// The kernel launch it was fetched for: the next kernel may read what others have written since.
    launch: u32,
    /// Has a load wanted it?
    used: bool,
    /// When it was last wanted, for replacement.
    used_at: u64,
    /// Loads that wait for it.
    waiting: Vec<MemoryRequest>,
}

/// What a request that went downstream was, by its number there.
#[derive(Clone, Copy, Debug)]
enum InFlight {
    /// A request of the SM, which has this number there.
    Passed { id: u32, return_port: u16 },
    /// A line for this entry of the buffer.
    Prefetch { entry: usize },
    /// No request has the number.
    Free,
}

/// A stream prefetcher.
#[derive(Debug)]
pub struct StreamPrefetcher {
    upstream: PortId,
    downstream: PortId,
    clock: Clock,
    parameters: StreamPrefetcherParameters,
    streams: Vec<Stream>,
    buffer: Vec<Entry>,
    /// Lines to ask for: (first cycle possible, entry of the buffer).
    queue: VecDeque<(u64, usize)>,
    in_flight: Vec<InFlight>,
    free_ids: Vec<u32>,
    /// First cycle in which no request leaves yet.
    port_free: u64,
    /// Counts loads: the clock of replacement.
    tick: u64,
    counters: StreamPrefetcherCounters,
}

impl StreamPrefetcher {
    /// A prefetcher with the wired ports of `context`.
    ///
    /// # Errors
    ///
    /// Parameters out of bounds.
    pub fn new(parameters: StreamPrefetcherParameters, context: &BuildContext) -> Result<StreamPrefetcher, BuildError> {
        let mut problems = Vec::new();
        let mut check = |holds: bool, key, problem: &str| {
            if !holds {
                problems.push(ParameterProblem::new(key, problem));
            }
        };
        check((1..=64).contains(&parameters.streams), "streams", "expected 1 to 64");
        check(parameters.confirmations > 0, "confirmations", "expected at least 1");
        check((1..=4096).contains(&parameters.buffer_lines), "buffer_lines", "expected 1 to 4096");
        check((1..=parameters.buffer_lines).contains(&parameters.degree), "degree", "expected 1 to buffer_lines");
        let page = parameters.page.0;
        check(page.is_power_of_two() && page >= LINE_BYTES, "page", "expected a power of two of at least 128 B");
        if !problems.is_empty() {
            return Err(BuildError::Parameters(problems));
        }
        let (upstream, downstream) = (context.required_port("upstream")?, context.required_port("downstream")?);
        Ok(StreamPrefetcher::with_ports(parameters, upstream, downstream))
    }

    fn with_ports(parameters: StreamPrefetcherParameters, upstream: PortId, downstream: PortId) -> StreamPrefetcher {
        let contents = Contents::Nothing;
        let nothing = Entry { contents, line: 0, launch: 0, used: false, used_at: 0, waiting: Vec::new() };
        StreamPrefetcher {
            upstream,
            downstream,
            clock: Clock::new(parameters.clock),
            streams: Vec::with_capacity(parameters.streams as usize),
            buffer: vec![nothing; parameters.buffer_lines as usize],
            parameters,
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            free_ids: Vec::new(),
            port_free: 0,
            tick: 0,
            counters: StreamPrefetcherCounters::default(),
        }
    }

    /// A message has arrived.
    fn message(&mut self, message: Message, out: &mut Outbox) {
        let cycle = self.clock.cycle_at_or_after(message.time);
        let from_sm = message.port == self.upstream;
        match message.payload {
            Payload::Memory(MemoryMessage::Request(request)) if from_sm => self.request(request, cycle, out),
            Payload::Memory(MemoryMessage::Response(response)) if !from_sm => self.response(response, cycle, out),
            // Whatever else there is, in this version or the next, passes.
            other => {
                if from_sm {
                    out.send(self.downstream, self.departure(cycle), other);
                } else {
                    out.send(self.upstream, self.after(cycle, self.parameters.forward_latency), other);
                }
            }
        }
    }

    /// The SM asks for something.
    fn request(&mut self, request: MemoryRequest, cycle: u64, out: &mut Outbox) {
        if request.kind == MemoryKind::Load && request.scope == Scope::Weak {
            self.tick += 1;
            self.counters.loads += 1;
            let hit = self.hit(&request, cycle, out);
            if !hit {
                self.counters.buffer_misses += 1;
                self.pass(request, cycle, out);
            }
            self.follow(&request, cycle);
        } else {
            self.invalidate(|entry| entry.line == request.line);
            self.pass(request, cycle, out);
        }
    }

    /// Serves a load from the buffer, now or when its line is there; false where the buffer does not know the line.
    fn hit(&mut self, load: &MemoryRequest, cycle: u64, out: &mut Outbox) -> bool {
        let Some(index) = self.find(load.line, load.launch) else { return false };
        let at = self.after(cycle, self.parameters.hit_latency);
        let entry = &mut self.buffer[index];
        entry.used_at = self.tick;
        self.counters.prefetches_used += u64::from(!entry.used);
        entry.used = true;
        if entry.contents == Contents::Line {
            self.counters.buffer_hits += 1;
            out.send(self.upstream, at, answer(load));
        } else {
            self.counters.buffer_hits_late += 1;
            entry.waiting.push(*load);
        }
        true
    }

    /// Sends a request of the SM on, under a number of our own: its number may be that of a prefetch.
    fn pass(&mut self, request: MemoryRequest, cycle: u64, out: &mut Outbox) {
        let id = self.number(InFlight::Passed { id: request.id, return_port: request.return_port });
        let request = MemoryRequest { id, ..request };
        out.send(self.downstream, self.departure(cycle), Payload::Memory(MemoryMessage::Request(request)));
    }

    /// An answer has come from downstream.
    fn response(&mut self, response: MemoryResponse, cycle: u64, out: &mut Outbox) {
        let request = self.in_flight.get_mut(response.id as usize);
        match request.map_or(InFlight::Free, |request| std::mem::replace(request, InFlight::Free)) {
            InFlight::Passed { id, return_port } => {
                self.free_ids.push(response.id);
                let response = MemoryResponse { id, return_port, ..response };
                let at = self.after(cycle, self.parameters.forward_latency);
                out.send(self.upstream, at, Payload::Memory(MemoryMessage::Response(response)));
            }
            InFlight::Prefetch { entry } => {
                self.free_ids.push(response.id);
                let at = self.after(cycle, self.parameters.hit_latency);
                let entry = &mut self.buffer[entry];
                entry.contents = if entry.contents == Contents::UnderWay { Contents::Line } else { Contents::Nothing };
                for load in entry.waiting.drain(..) {
                    out.send(self.upstream, at, answer(&load));
                }
            }
            // An answer to nothing that was asked: whoever sent it, nobody waits.
            InFlight::Free => {}
        }
    }

    /// Finds the stream that a load belongs to, and asks for what follows.
    fn follow(&mut self, load: &MemoryRequest, cycle: u64) {
        let line = load.line / LINE_BYTES;
        let degree = u64::from(self.parameters.degree);
        // Warps overtake each other: a line near the end of a stream belongs to it, before or after.
        let near = |stream: &&mut Stream| stream.last.abs_diff(line) <= degree;
        let Some(stream) = self.streams.iter_mut().find(near) else {
            let stream = Stream { last: line, next: line + 1, confirmations: 0, used_at: self.tick };
            if self.streams.len() < self.parameters.streams as usize {
                self.streams.push(stream);
            } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used_at) {
                *oldest = stream;
            }
            return;
        };
        stream.used_at = self.tick;
        if line <= stream.last {
            return;
        }
        stream.last = line;
        stream.confirmations = stream.confirmations.saturating_add(1);
        self.counters.streams_found += u64::from(stream.confirmations == self.parameters.confirmations);
        if stream.confirmations < self.parameters.confirmations {
            return;
        }
        let lines_of_page = self.parameters.page.0 / LINE_BYTES;
        let end = (line + degree + 1).min((line / lines_of_page + 1) * lines_of_page);
        let first = stream.next.max(line + 1);
        stream.next = stream.next.max(end);
        for line in first..end {
            self.prefetch(line * LINE_BYTES, load.launch, cycle);
        }
    }

    /// Finds room for a line, and queues the request for it.
    fn prefetch(&mut self, line: u64, launch: u32, cycle: u64) {
        if self.find(line, launch).is_some() {
            return;
        }
        let replaceable = self
            .buffer
            .iter_mut()
            .enumerate()
            .filter(|(_, entry)| matches!(entry.contents, Contents::Nothing | Contents::Line));
        let oldest = replaceable.min_by_key(|(_, entry)| (entry.contents == Contents::Line, entry.used_at));
        let Some((index, entry)) = oldest else {
            self.counters.prefetches_dropped += 1;
            return;
        };
        entry.contents = Contents::UnderWay;
        (entry.line, entry.launch, entry.used, entry.used_at) = (line, launch, false, self.tick);
        self.queue.push_back((cycle + u64::from(self.parameters.forward_latency), index));
    }

    /// When the next prefetch can leave.
    fn next_prefetch(&self) -> Option<SimTime> {
        let &(ready, _) = self.queue.front()?;
        Some(self.clock.time_of(ready.max(self.port_free)))
    }

    /// Sends the next prefetch at `at`, which [`StreamPrefetcher::next_prefetch`] gave.
    fn send_prefetch(&mut self, at: SimTime, out: &mut Outbox) {
        let Some((_, entry)) = self.queue.pop_front() else { return };
        self.port_free = self.clock.cycle_at_or_after(at) + 1;
        self.counters.prefetches += 1;
        let id = self.number(InFlight::Prefetch { entry });
        let Entry { line, launch, .. } = self.buffer[entry];
        let request = MemoryRequest {
            line,
            id,
            launch,
            return_port: 0,
            data_bytes: 0,
            sectors: 0b1111,
            full_sectors: 0,
            operations: 0,
            kind: MemoryKind::Load,
            scope: Scope::Weak,
        };
        out.send(self.downstream, at, Payload::Memory(MemoryMessage::Request(request)));
    }

    /// The line of the buffer that a load of `launch` may use.
    fn find(&self, line: u64, launch: u32) -> Option<usize> {
        let usable = |entry: &Entry| matches!(entry.contents, Contents::Line | Contents::UnderWay);
        self.buffer.iter().position(|entry| entry.line == line && entry.launch == launch && usable(entry))
    }

    /// Drops the lines that `stale` picks.
    fn invalidate(&mut self, stale: impl Fn(&Entry) -> bool) {
        for entry in self.buffer.iter_mut().filter(|entry| stale(entry)) {
            let contents = match entry.contents {
                Contents::Line => Contents::Nothing,
                Contents::UnderWay => Contents::StaleUnderWay,
                Contents::Nothing | Contents::StaleUnderWay => continue,
            };
            entry.contents = contents;
            self.counters.buffer_invalidations += 1;
        }
    }

    /// A number for a request that goes downstream.
    fn number(&mut self, request: InFlight) -> u32 {
        if let Some(id) = self.free_ids.pop() {
            self.in_flight[id as usize] = request;
            return id;
        }
        self.in_flight.push(request);
        self.in_flight.len() as u32 - 1
    }

    /// When what arrived in `cycle` leaves downstream: one message leaves in a cycle.
    fn departure(&mut self, cycle: u64) -> SimTime {
        let cycle = (cycle + u64::from(self.parameters.forward_latency)).max(self.port_free);
        self.port_free = cycle + 1;
        self.clock.time_of(cycle)
    }

    fn after(&self, cycle: u64, cycles: u32) -> SimTime {
        self.clock.time_of(cycle + u64::from(cycles))
    }
}

/// The answer from the buffer.
fn answer(load: &MemoryRequest) -> Payload {
    Payload::Memory(MemoryMessage::Response(load.response(0, ServedBy::Intermediate)))
}

impl Unit for StreamPrefetcher {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            // What happens next: a message, or a prefetch leaves. The SM's requests go before prefetches.
            match (inbox.next_time(), self.next_prefetch()) {
                (Some(arrival), prefetch) if prefetch.is_none_or(|at| arrival <= at) => {
                    if let Some(message) = inbox.take() {
                        self.message(message, out);
                    }
                }
                (_, Some(at)) if at < window.until => self.send_prefetch(at, out),
                (_, Some(at)) => return NextWake::At(at),
                (_, None) => return NextWake::OnMessage,
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.counters.write(sink);
    }

    fn outstanding(&self) -> Option<String> {
        let requests = self.in_flight.len() - self.free_ids.len();
        (requests > 0).then(|| format!("answers to {requests} requests"))
    }
}

#[cfg(test)]
mod tests;
