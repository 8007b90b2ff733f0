//! What a hardware unit is to the engine: private state, an inbox of stamped messages, one behaviour.

use super::state::{CodeSource, StateError};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Message, Payload, PortId, SimTime, UnitId};

/// The span of simulated time a unit may work in: `start <= t < until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First picosecond.
    pub start: SimTime,
    /// First picosecond after it.
    pub until: SimTime,
}

/// When a unit wants to run again if no message arrives before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWake {
    /// At this time, not before the end of the window just run.
    At(SimTime),
    /// Only when a message arrives.
    OnMessage,
}

/// A hardware unit: a virtual-time actor.
///
/// Pure and synchronous: it never waits, logs, or reads the wall clock, and what it does depends on its state and inbox alone.
pub trait Unit: Send {
    /// Handles everything stamped before `window.until`, sends through `out`, and says when it next wants to run.
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake;

    /// Writes its statistics, zeros included.
    fn statistics(&self, sink: &mut StatisticSink);

    /// What it still waits for, in words; `None` where nothing is outstanding. When every unit sleeps and no message is on its way,
    /// a unit with outstanding work means a deadlock.
    fn outstanding(&self) -> Option<String>;

    /// Its state as bytes: everything that what it does from here on depends on, apart from its parameters and wires.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] for a unit that cannot.
    fn save(&self) -> Result<Vec<u8>, StateError> {
        Err(StateError::Unsupported)
    }

    /// Replaces its state by a saved one, whole. The unit is built from the same parameters, and has not run.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] for a unit that cannot; another [`StateError`] where the bytes are of another unit's state, or
    /// where `codes` lacks a code that they name. The unit is not to be used after an error.
    fn restore(&mut self, state: &[u8], codes: &dyn CodeSource) -> Result<(), StateError> {
        let _ = (state, codes);
        Err(StateError::Unsupported)
    }
}

/// The messages of one unit that arrive within the window, in their total order.
#[derive(Debug, Default)]
pub struct Inbox {
    /// As they came; a message that was taken leaves a hole.
    messages: Vec<Option<Message>>,
    /// Where each is, by descending order, so that taking the earliest is a pop. Messages are large: these are sorted in their place.
    arrivals: Vec<Arrival>,
}

/// A message of an inbox: when it arrives, and its source above its place. A source's messages of one time are in their order already.
type Arrival = (SimTime, u64);

impl Inbox {
    /// Adds messages; [`Self::sort`] follows. Those of one source and time come in the order of their sequence.
    #[inline]
    pub(crate) fn fill(&mut self, messages: impl Iterator<Item = Message>) {
        for message in messages {
            let place = u64::from(message.source.0) << 32 | self.messages.len() as u64;
            self.arrivals.push((message.time, place));
            self.messages.push(Some(message));
        }
    }

    /// Brings the messages in order.
    #[inline]
    pub(crate) fn sort(&mut self) {
        // Most often sorted already, once the earliest is last.
        self.arrivals.reverse();
        self.arrivals.sort_unstable_by_key(|&arrival| std::cmp::Reverse(arrival));
    }

    /// Forgets what is left.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.arrivals.clear();
    }

    /// When the last message of the window arrives.
    pub(crate) fn last_time(&self) -> Option<SimTime> {
        self.arrivals.first().map(|&(time, _)| time)
    }

    /// Messages not yet taken.
    pub(crate) fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// When the next message arrives; `None` where no more arrives in this window.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.arrivals.last().map(|&(time, _)| time)
    }

    /// Takes the next message if it has arrived by `time`.
    #[inline]
    pub fn take_until(&mut self, time: SimTime) -> Option<Message> {
        if self.arrivals.last()?.0 <= time { self.take() } else { None }
    }

    /// Takes the next message of the window.
    #[inline]
    pub fn take(&mut self) -> Option<Message> {
        let (_, place) = self.arrivals.pop()?;
        self.messages[place as u32 as usize].take()
    }

    /// Are all messages of the window taken?
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }
}

/// Where one port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The unit at the other end.
    pub unit: UnitId,
    /// Its port.
    pub port: PortId,
    /// Time a message takes.
    pub latency: SimTime,
}

/// What a unit sends in a window.
#[derive(Debug, Default)]
pub struct Outbox {
    pub(crate) source: UnitId,
    pub(crate) sequence: u64,
    pub(crate) window_start: SimTime,
    pub(crate) wires: Vec<Wire>,
    pub(crate) sent: Vec<(UnitId, Message)>,
}

impl Outbox {
    /// Sends `payload` through `port` at time `at`; it arrives after the wire's latency.
    ///
    /// # Panics
    ///
    /// If `at` lies before the window: a unit cannot act in the past.
    #[inline]
    pub fn send(&mut self, port: PortId, at: SimTime, payload: Payload) {
        assert!(at >= self.window_start, "sent at {at}, before the window's start at {}", self.window_start);
        let wire = self.wires[usize::from(port.0)];
        let message =
            Message { time: at + wire.latency, source: self.source, sequence: self.sequence, port: wire.port, payload };
        self.sequence += 1;
        self.sent.push((wire.unit, message));
    }

    /// Time a message through `port` takes.
    pub fn latency(&self, port: PortId) -> SimTime {
        self.wires[usize::from(port.0)].latency
    }
}

/// A window and an outbox for driving one unit in its own tests, without an engine.
#[derive(Debug, Default)]
pub struct Bench {
    /// What the unit sends goes here.
    pub out: Outbox,
    /// What it is to receive, in any order.
    pub inbox: Vec<Message>,
    now: SimTime,
    sequence: u64,
}

impl Bench {
    /// A unit whose port i has the latency `latencies[i]`, wired to port i of unit 1.
    pub fn new(latencies: &[SimTime]) -> Bench {
        let wires = latencies.iter().enumerate();
        let wires = wires.map(|(i, &latency)| Wire { unit: UnitId(1), port: PortId(i as u16), latency }).collect();
        Bench { out: Outbox { wires, ..Outbox::default() }, ..Bench::default() }
    }

    /// Queues a message that arrives at `port` at `time`.
    pub fn deliver(&mut self, time: SimTime, port: PortId, payload: Payload) {
        self.sequence += 1;
        self.inbox.push(Message { time, source: UnitId(1), sequence: self.sequence, port, payload });
    }

    /// Runs the unit in windows of `window` until `end`, and returns what it sent, as (arrival time, port, payload).
    pub fn run(&mut self, unit: &mut dyn Unit, window: SimTime, end: SimTime) -> Vec<(SimTime, PortId, Payload)> {
        while self.now < end {
            let until = self.now + window;
            let mut due: Vec<Message> = Vec::new();
            let mut rest = Vec::new();
            for message in self.inbox.drain(..) {
                if message.time < until { due.push(message) } else { rest.push(message) }
            }
            self.inbox = rest;
            due.sort_by_key(Message::order);
            let mut inbox = Inbox::default();
            inbox.fill(due.into_iter());
            inbox.sort();
            self.out.window_start = self.now;
            unit.advance(Window { start: self.now, until }, &mut inbox, &mut self.out);
            assert!(inbox.is_empty(), "the unit left messages of its window");
            self.now = until;
        }
        self.out.sent.drain(..).map(|(_, message)| (message.time, message.port, message.payload)).collect()
    }
}
