//! Helpers that the tests of the memory units share.

use crate::catalogue::{BuildContext, PortMap, Surroundings};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window, Wire};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, words_of};
use balar_protocol::statistics::{StatisticRow, StatisticSink};
use balar_protocol::{Message, Payload, PortId, SimTime, UnitId};
use std::collections::BTreeMap;

/// Calls `build` with a unit's surroundings: its wired ports in order, and the length of its row.
pub(crate) fn with_context<R>(ports: &[(&str, u32)], row_length: u32, build: impl FnOnce(&BuildContext) -> R) -> R {
    let ports = PortMap::new(ports.iter().map(|(name, index)| ((*name).to_owned(), *index)));
    let surroundings = Surroundings::default();
    let (path, part, surroundings) = ("gpu.unit", "gpu", &surroundings);
    build(&BuildContext { path, part, index: 0, row_length, ports: &ports, unit: 0, surroundings })
}

/// A load of `sectors` of the line at `line`.
pub(crate) fn load(line: u64, id: u32, sectors: u8) -> MemoryRequest {
    MemoryRequest { line, id, launch: 1, sectors, ..MemoryRequest::default() }
}

/// A store of whole sectors.
pub(crate) fn store(line: u64, id: u32, sectors: u8) -> MemoryRequest {
    let data_bytes = sectors.count_ones() as u16 * 32;
    MemoryRequest { data_bytes, written_words: words_of(sectors), kind: MemoryKind::Store, ..load(line, id, sectors) }
}

/// The payload that carries `request`.
pub(crate) fn request(request: MemoryRequest) -> Payload {
    Payload::Memory(MemoryMessage::Request(request))
}

/// The responses among `sent`, with their arrival times and ports.
pub(crate) fn responses(sent: &[(SimTime, PortId, Payload)]) -> Vec<(SimTime, PortId, MemoryResponse)> {
    let pick = |(time, port, payload): &(SimTime, PortId, Payload)| match payload {
        Payload::Memory(MemoryMessage::Response(response)) => Some((*time, *port, *response)),
        _ => None,
    };
    sent.iter().filter_map(pick).collect()
}

/// The requests among `sent`, with their arrival times and ports.
pub(crate) fn requests(sent: &[(SimTime, PortId, Payload)]) -> Vec<(SimTime, PortId, MemoryRequest)> {
    let pick = |(time, port, payload): &(SimTime, PortId, Payload)| match payload {
        Payload::Memory(MemoryMessage::Request(request)) => Some((*time, *port, *request)),
        _ => None,
    };
    sent.iter().filter_map(pick).collect()
}

/// The value of counter `name` of the unit itself.
pub(crate) fn counter(unit: &dyn crate::engine::Unit, name: &str) -> u64 {
    let mut sink = StatisticSink::default();
    sink.set_location("unit");
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    let row = sink.rows.iter().find(|row| row.what == name && row.location == "unit");
    row.unwrap_or_else(|| panic!("no counter {name}")).value
}

/// A message of a script: its arrival, its port, its contents.
pub(crate) type Arrival = (SimTime, PortId, Payload);

/// How a run of a script goes: in windows of this length, sleeping as the engine lets it, from a saved state on at some time.
#[derive(Clone, Copy, Debug)]
struct Course {
    window: SimTime,
    sleeps: bool,
    saved_at: Option<SimTime>,
}

/// Checks that a unit's messages and counts under a script do not depend on where windows end, nor on its state having been saved and
/// restored into another that is freshly built.
///
/// `latency` is the latency of every wire, at least 1 ns; `reply` plays the units at the other ends: it may answer a message, later.
pub(crate) fn check_cuts_and_states(
    build: impl Fn() -> Box<dyn Unit>,
    ports: usize,
    latency: SimTime,
    script: Vec<Arrival>,
    mut reply: impl FnMut(&Arrival) -> Vec<Arrival>,
    end: SimTime,
) {
    let mut script = script;
    let first = Course { window: SimTime::from_nanoseconds(1), sleeps: false, saved_at: None };
    let expected = play(&build, ports, latency, &mut script, &mut reply, end, first);
    assert!(!expected.0.is_empty(), "the unit sends something");
    for (window, sleeps) in [(1, true), (3, false), (7, true), (20, true), (65, false), (end.0 / 1000, true)] {
        for saved_at in [None, Some(SimTime(end.0 / 3)), Some(SimTime(end.0 / 2))] {
            let course = Course { window: SimTime::from_nanoseconds(window), sleeps, saved_at };
            let found = play(&build, ports, latency, &mut script, &mut |_| Vec::new(), end, course);
            for (expected, found) in expected.0.iter().zip(&found.0) {
                assert_eq!(found, expected, "{course:?}");
            }
            assert_eq!(found.0.len(), expected.0.len(), "{course:?}");
            for (expected, found) in expected.1.iter().zip(&found.1) {
                assert_eq!(found, expected, "{course:?}");
            }
        }
    }
}

/// Plays `script`, with the answers of `reply` added. Gives the messages that were sent, in order, with each credit alone; and the counts.
fn play(
    build: &dyn Fn() -> Box<dyn Unit>,
    ports: usize,
    latency: SimTime,
    script: &mut Vec<Arrival>,
    reply: &mut dyn FnMut(&Arrival) -> Vec<Arrival>,
    end: SimTime,
    course: Course,
) -> (Vec<(SimTime, u16, String)>, Vec<StatisticRow>) {
    let mut unit = build();
    let wires = (0..ports).map(|port| Wire { unit: UnitId(1), port: PortId(port as u16), latency }).collect();
    let mut out = Outbox::alone(wires);
    let (mut now, mut wake, mut saved_at) = (SimTime::ZERO, NextWake::At(SimTime::ZERO), course.saved_at);
    let envelope = |(time, port, payload): &Arrival| {
        let (time, port, payload) = (*time, *port, payload.clone());
        Message { time, source: UnitId(1), port, payload }
    };
    let first = script.iter().enumerate().map(|(i, arrival)| ((arrival.0, i), envelope(arrival)));
    let mut waiting: BTreeMap<(SimTime, usize), Message> = first.collect();
    let mut sent = Vec::new();
    while now < end {
        let until = now + course.window;
        let mut due = Vec::new();
        while let Some(next) = waiting.first_entry()
            && next.key().0 < until
        {
            due.push(next.remove());
        }
        if saved_at.is_some_and(|at| at <= now) {
            saved_at = None;
            let state = unit.save().expect("it can be saved");
            unit = build();
            unit.restore(&state, &()).expect("it can be restored");
            assert_eq!(unit.save().as_ref(), Ok(&state), "nothing is lost");
        }
        let awake = matches!(wake, NextWake::At(time) if time < until);
        if awake || !due.is_empty() || !course.sleeps {
            let mut inbox = Inbox::default();
            inbox.extend(due.into_iter().map(Some));
            inbox.sort();
            out.begin_alone(now);
            wake = unit.advance(Window { start: now, until }, &mut inbox, &mut out);
            assert!(inbox.is_empty(), "the unit left messages of its window");
            if let NextWake::At(time) = wake {
                assert!(time >= until, "it wakes at {time}, before the end of its window at {until}");
            }
        }
        for (_, message) in out.take_sent() {
            let arrival = (message.time, message.port, message.payload);
            let answers = reply(&arrival);
            assert!(answers.iter().all(|(time, ..)| *time >= until), "an answer comes later");
            for answer in answers {
                waiting.insert((answer.0, script.len()), envelope(&answer));
                script.push(answer);
            }
            sent.push(arrival);
        }
        now = until;
    }
    assert_eq!((unit.outstanding(), waiting.len()), (None, 0), "the script ends before the run");
    let mut texts = Vec::new();
    for (time, port, payload) in sent {
        match payload {
            // Credits apart: how many share a message is the sender's affair.
            Payload::Memory(MemoryMessage::Credit(credits)) => {
                texts.extend(credits.times(time).map(|time| (time, port.0, "a credit".to_owned())));
            }
            payload => texts.push((time, port.0, format!("{payload:?}"))),
        }
    }
    // Stable: the order of one time and port is part of the result, credits excepted.
    texts.sort_by_key(|(time, port, text)| (*time, *port, text == "a credit"));
    let mut sink = StatisticSink::default();
    sink.set_location("unit");
    unit.statistics(&mut sink);
    unit.records(&mut sink);
    (texts, sink.rows)
}

/// Numbers that look random and are the same each time.
pub(crate) struct Numbers(u64);

impl Numbers {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Requests of every kind for `lines` lines, at random times of `span` nanoseconds, to ports below `ports`.
pub(crate) fn random_requests(seed: u64, count: u32, lines: u64, span: u64, ports: u64) -> Vec<Arrival> {
    let mut numbers = Numbers::new(seed);
    let arrival = |id| {
        let (line, sectors) = (numbers.below(lines) * 128, 1 + numbers.below(15) as u8);
        let whole = match numbers.below(8) {
            0..4 => load(line, id, sectors),
            4..6 => store(line, id, sectors),
            6 => MemoryRequest { written_words: 1, data_bytes: 4, ..store(line, id, 1) },
            _ => MemoryRequest { kind: MemoryKind::Atomic, operations: 3, data_bytes: 12, ..load(line, id, 1) },
        };
        (SimTime(1 + numbers.below(span * 1000)), PortId(numbers.below(ports) as u16), request(whole))
    };
    (0..count).map(arrival).collect()
}
