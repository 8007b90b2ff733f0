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

use balar_actors::catalogue::{Problems, UnitDefinition};
use balar_actors::prototyping::{Interposer, Io, Pace, definition, load};
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryRequest, MemoryResponse, Scope, ServedBy};
use balar_protocol::{Bytes, Frequency};
use serde::{Deserialize, Serialize};
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
pub const DEFINITION: UnitDefinition = definition::<StreamPrefetcher>();

/// A walk through memory, line by line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Contents {
    Nothing,
    /// The line is asked for, or about to be.
    UnderWay,
    /// As [`Contents::UnderWay`], but it was overwritten meanwhile.
    StaleUnderWay,
    Line,
}

/// A line of the buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// A stream prefetcher.
#[derive(Debug, Serialize, Deserialize)]
pub struct StreamPrefetcher {
    streams: Vec<Stream>,
    buffer: Vec<Entry>,
    /// Lines to ask for: (first cycle possible, entry of the buffer).
    queue: VecDeque<(u64, usize)>,
    /// Counts loads: the clock of replacement.
    tick: u64,
}

impl Interposer for StreamPrefetcher {
    const NAME: &'static str = "StreamPrefetcher";
    const SUMMARY: &'static str = "fetches the lines of sequential streams ahead of an SM";
    type Parameters = StreamPrefetcherParameters;
    type Counters = StreamPrefetcherCounters;
    /// The entry of the buffer that a prefetch is for.
    type Own = usize;

    fn new(parameters: &StreamPrefetcherParameters) -> StreamPrefetcher {
        let contents = Contents::Nothing;
        let nothing = Entry { contents, line: 0, launch: 0, used: false, used_at: 0, waiting: Vec::new() };
        StreamPrefetcher {
            streams: Vec::with_capacity(parameters.streams as usize),
            buffer: vec![nothing; parameters.buffer_lines as usize],
            queue: VecDeque::new(),
            tick: 0,
        }
    }

    fn pace(parameters: &StreamPrefetcherParameters) -> Pace {
        Pace::new(parameters.clock, parameters.forward_latency).responses_per_cycle(0)
    }

    fn check(parameters: &StreamPrefetcherParameters, problems: &mut Problems) {
        problems.check((1..=64).contains(&parameters.streams), "streams", "expected 1 to 64");
        problems.check(parameters.confirmations > 0, "confirmations", "expected at least 1");
        problems.check((1..=4096).contains(&parameters.buffer_lines), "buffer_lines", "expected 1 to 4096");
        let degrees = 1..=parameters.buffer_lines;
        problems.check(degrees.contains(&parameters.degree), "degree", "expected 1 to buffer_lines");
        let page = parameters.page.0;
        problems.check(
            page.is_power_of_two() && page >= LINE_BYTES,
            "page",
            "expected a power of two of at least 128 B",
        );
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        if request.kind == MemoryKind::Load && request.scope == Scope::Weak {
            self.tick += 1;
            io.counters.loads += 1;
            if !self.hit(&request, io) {
                io.counters.buffer_misses += 1;
                io.forward(request);
            }
            self.follow(&request, io);
        } else {
            if request.kind != MemoryKind::Load {
                self.overwrite(request.line, io);
            }
            io.forward(request);
        }
    }

    fn on_response(&mut self, _: MemoryResponse, entry: usize, io: &mut Io<Self>) {
        let entry = &mut self.buffer[entry];
        entry.contents = if entry.contents == Contents::UnderWay { Contents::Line } else { Contents::Nothing };
        let latency = u64::from(io.parameters.hit_latency);
        for load in entry.waiting.drain(..) {
            io.answer_after(latency, &load, ServedBy::Intermediate);
        }
    }

    fn next_wake(&self, _: &StreamPrefetcherParameters) -> Option<u64> {
        self.queue.front().map(|&(ready, _)| ready)
    }

    /// Sends a prefetch, unless the SM's requests want the port.
    fn on_wake(&mut self, io: &mut Io<Self>) {
        if !io.can_ask_now() {
            return;
        }
        let Some((_, entry)) = self.queue.pop_front() else { return };
        io.counters.prefetches += 1;
        let Entry { line, launch, .. } = self.buffer[entry];
        io.ask(MemoryRequest { launch, ..load(0, line, LINE_BYTES as u16) }, entry);
    }
}

impl StreamPrefetcher {
    /// Serves a load from the buffer, now or when its line is there; false where the buffer does not know the line.
    fn hit(&mut self, load: &MemoryRequest, io: &mut Io<Self>) -> bool {
        let Some(index) = self.find(load.line, load.launch) else { return false };
        let entry = &mut self.buffer[index];
        entry.used_at = self.tick;
        io.counters.prefetches_used += u64::from(!entry.used);
        entry.used = true;
        if entry.contents == Contents::Line {
            io.counters.buffer_hits += 1;
            io.answer_after(u64::from(io.parameters.hit_latency), load, ServedBy::Intermediate);
        } else {
            io.counters.buffer_hits_late += 1;
            entry.waiting.push(*load);
        }
        true
    }

    /// Finds the stream that a load belongs to, and asks for what follows.
    fn follow(&mut self, load: &MemoryRequest, io: &mut Io<Self>) {
        let line = load.line / LINE_BYTES;
        let degree = u64::from(io.parameters.degree);
        // Warps overtake each other: a line near the end of a stream belongs to it, before or after.
        let near = |stream: &&mut Stream| stream.last.abs_diff(line) <= degree;
        let Some(stream) = self.streams.iter_mut().find(near) else {
            let stream = Stream { last: line, next: line + 1, confirmations: 0, used_at: self.tick };
            if self.streams.len() < io.parameters.streams as usize {
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
        io.counters.streams_found += u64::from(stream.confirmations == io.parameters.confirmations);
        if stream.confirmations < io.parameters.confirmations {
            return;
        }
        let lines_of_page = io.parameters.page.0 / LINE_BYTES;
        let end = (line + degree + 1).min((line / lines_of_page + 1) * lines_of_page);
        let first = stream.next.max(line + 1);
        stream.next = stream.next.max(end);
        for line in first..end {
            self.prefetch(line * LINE_BYTES, load.launch, io);
        }
    }

    /// Finds room for a line, and queues the request for it.
    fn prefetch(&mut self, line: u64, launch: u32, io: &mut Io<Self>) {
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
            io.counters.prefetches_dropped += 1;
            return;
        };
        entry.contents = Contents::UnderWay;
        (entry.line, entry.launch, entry.used, entry.used_at) = (line, launch, false, self.tick);
        self.queue.push_back((io.cycle(), index));
    }

    /// The line of the buffer that a load of `launch` may use.
    fn find(&self, line: u64, launch: u32) -> Option<usize> {
        let usable = |entry: &Entry| matches!(entry.contents, Contents::Line | Contents::UnderWay);
        self.buffer.iter().position(|entry| entry.line == line && entry.launch == launch && usable(entry))
    }

    /// A line is written: what the buffer has of it is stale.
    fn overwrite(&mut self, line: u64, io: &mut Io<Self>) {
        for entry in self.buffer.iter_mut().filter(|entry| entry.line == line) {
            let contents = match entry.contents {
                Contents::Line => Contents::Nothing,
                Contents::UnderWay => Contents::StaleUnderWay,
                Contents::Nothing | Contents::StaleUnderWay => continue,
            };
            entry.contents = contents;
            io.counters.buffer_invalidations += 1;
        }
    }
}

#[cfg(test)]
mod tests;
