//! Drives one unit in its own tests, without an engine.

use super::unit::{Unit, Window, Wire};
use super::{Inbox, Outbox};
use balar_protocol::{Message, Payload, PortId, SimTime, UnitId};

/// A window and an outbox for driving one unit in its own tests, without an engine.
#[derive(Debug)]
pub struct Bench {
    /// What the unit sends goes here.
    pub out: Outbox,
    /// What it is to receive, in any order.
    pub inbox: Vec<Message>,
    now: SimTime,
}

impl Bench {
    /// A unit whose port i has the latency `latencies[i]`, wired to port i of unit 1.
    pub fn new(latencies: &[SimTime]) -> Bench {
        let wires = latencies.iter().enumerate();
        let wires = wires.map(|(i, &latency)| Wire { unit: UnitId(1), port: PortId(i as u16), latency }).collect();
        Bench { out: Outbox::alone(wires), inbox: Vec::new(), now: SimTime::ZERO }
    }

    /// Queues a message that arrives at `port` at `time`.
    pub fn deliver(&mut self, time: SimTime, port: PortId, payload: Payload) {
        self.inbox.push(Message { time, source: UnitId(1), port, payload });
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
            let mut inbox = Inbox::default();
            inbox.extend(due.into_iter().map(Some));
            inbox.sort();
            let window = Window { start: self.now, until };
            self.out.begin_alone(self.now);
            unit.advance(window, &mut inbox, &mut self.out);
            assert!(inbox.is_empty(), "the unit left messages of its window");
            self.now = until;
        }
        self.out.take_sent().into_iter().map(|(_, message)| (message.time, message.port, message.payload)).collect()
    }
}
