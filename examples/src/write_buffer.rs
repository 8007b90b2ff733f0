//! A write-combining buffer between the memory port of an SM and the crossbar.
//!
//! Stores to the same line that come within some cycles of each other go on as one. A line leaves when it is written in full, when its
//! time is over, when room is needed, when the SM waits for its stores, and when something else of the same line comes: a load may not
//! overtake what was written before.
//! Each store is acknowledged once the line has been written, so that fences cost what they should.

use balar_actors::catalogue::{Problems, UnitDefinition};
use balar_actors::prototyping::{Interposer, Io, Pace, definition};
use balar_protocol::Frequency;
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, Scope};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

balar_actors::parameters! {
    /// A write-combining buffer. Its defaults are a plausible design, not measurements.
    pub struct WriteBufferParameters {
        /// clock of the buffer, that of its SM
        clock: Frequency,
        /// lines that it holds at once
        entries: u32 = "8",
        /// cycles that a line waits for more stores
        timeout: u32 = "64",
        /// cycles from the arrival of a message to its departure
        latency: u32 = "2",
    }
}

balar_protocol::counters! {
    /// What a write-combining buffer counts.
    pub struct WriteBufferCounters {
        /// stores received
        stores: "request",
        /// of these, stores that joined a line in the buffer
        stores_combined: "request",
        /// lines that left because they were written in full
        lines_full: "line",
        /// lines that left because their time was over
        lines_timed_out: "line",
        /// lines that left to make room
        lines_evicted: "line",
        /// lines that left because of a load, an atomic, a volatile store or a drain
        lines_flushed: "line",
    }
}

/// The buffer in the catalogue of units.
pub const DEFINITION: UnitDefinition = definition::<WriteBuffer>();

/// A line of the buffer.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// The store that goes downstream for all of them.
    combined: MemoryRequest,
    stores: Vec<MemoryRequest>,
    /// The cycle in which its time is over.
    deadline: u64,
}

/// A write-combining buffer.
#[derive(Debug, Serialize, Deserialize)]
pub struct WriteBuffer {
    /// By age, and so by deadline.
    entries: VecDeque<Entry>,
}

impl Interposer for WriteBuffer {
    const NAME: &'static str = "WriteBuffer";
    const SUMMARY: &'static str = "combines stores of an SM to the same line";
    const HOLDS_STORES: bool = true;
    type Parameters = WriteBufferParameters;
    type Counters = WriteBufferCounters;
    /// The stores that a line was made of.
    type Own = Vec<MemoryRequest>;

    fn new(_: &WriteBufferParameters) -> WriteBuffer {
        WriteBuffer { entries: VecDeque::new() }
    }

    fn pace(parameters: &WriteBufferParameters) -> Pace {
        Pace::new(parameters.clock, parameters.latency)
    }

    fn check(parameters: &WriteBufferParameters, problems: &mut Problems) {
        problems.check((1..=4096).contains(&parameters.entries), "entries", "expected 1 to 4096");
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        if request.kind == MemoryKind::Store && request.scope == Scope::Weak {
            self.store(request, io);
            return;
        }
        while let Some(at) = self.entries.iter().position(|entry| entry.combined.line == request.line) {
            io.counters.lines_flushed += 1;
            self.send(at, io);
        }
        io.forward(request);
    }

    fn on_response(&mut self, response: MemoryResponse, stores: Vec<MemoryRequest>, io: &mut Io<Self>) {
        for store in &stores {
            io.answer_like(&response, store);
        }
    }

    fn on_passing(&mut self, message: &MemoryMessage, io: &mut Io<Self>) {
        if matches!(message, MemoryMessage::Drain) {
            while !self.entries.is_empty() {
                io.counters.lines_flushed += 1;
                self.send(0, io);
            }
        }
    }

    fn next_wake(&self, _: &WriteBufferParameters) -> Option<u64> {
        self.entries.front().map(|entry| entry.deadline)
    }

    fn on_wake(&mut self, io: &mut Io<Self>) {
        while self.entries.front().is_some_and(|entry| entry.deadline <= io.cycle()) {
            io.counters.lines_timed_out += 1;
            self.send(0, io);
        }
    }

    fn outstanding(&self) -> Option<String> {
        (!self.entries.is_empty()).then(|| format!("holds {} lines", self.entries.len()))
    }
}

impl WriteBuffer {
    fn store(&mut self, store: MemoryRequest, io: &mut Io<Self>) {
        io.counters.stores += 1;
        let mut entries = self.entries.iter().enumerate();
        let joined = entries.find_map(|(at, entry)| Some((at, entry.combined.combine(&store)?)));
        let at = if let Some((at, combined)) = joined {
            io.counters.stores_combined += 1;
            self.entries[at].combined = combined;
            at
        } else {
            if self.entries.len() == io.parameters.entries as usize {
                io.counters.lines_evicted += 1;
                self.send(0, io);
            }
            let deadline = io.cycle() + u64::from(io.parameters.timeout);
            self.entries.push_back(Entry { combined: store, stores: Vec::new(), deadline });
            self.entries.len() - 1
        };
        let Entry { combined, stores, .. } = &mut self.entries[at];
        stores.push(store);
        if combined.full_sectors() == 0b1111 {
            io.counters.lines_full += 1;
            self.send(at, io);
        }
    }

    /// Sends a line on.
    fn send(&mut self, at: usize, io: &mut Io<Self>) {
        if let Some(Entry { combined, stores, .. }) = self.entries.remove(at) {
            io.ask(combined, stores);
        }
    }
}

#[cfg(test)]
mod tests;
