//! The kit's own part of an interposer, with small ones. The clock is 1 GHz, so that a cycle is 1 ns.

use super::super::{MemoryBench, PASS_THROUGH, load, store};
use super::*;
use crate::catalogue::timeline::{EventKind, Timeline};
use crate::catalogue::{PortMap, Surroundings};
use crate::engine::{LiveBoard, TimelineDetail};
use balar_protocol::memory::{Credits, MemoryKind};
use balar_protocol::statistics::StatisticDefinition;
use std::sync::Arc;

crate::parameters! {
    /// Of a collector.
    struct CollectorParameters {
        /// clock
        clock: Frequency,
        /// stores that go as one
        group: u32 = "2",
        /// responses in a cycle
        responses: u32 = "1",
        /// does it use state that is not saved?
        forgets: bool = "false",
    }
}

balar_protocol::counters! {
    /// Of a collector.
    struct CollectorCounters {
        /// groups sent
        groups: "request",
    }
}

/// Sends one store for a group of them, or for those there are 20 cycles after the first.
#[derive(Debug, Serialize, Deserialize)]
struct Collector {
    stores: Vec<MemoryRequest>,
    deadline: u64,
    /// Mistake: state that is not saved.
    #[serde(skip)]
    groups: u64,
}

impl Collector {
    fn flush(&mut self, io: &mut Io<Self>) {
        let stores = std::mem::take(&mut self.stores);
        if let Some(&first) = stores.first() {
            io.counters.groups += 1;
            self.groups += 1;
            let forgets = io.parameters.forgets && self.groups == 1;
            io.ask(MemoryRequest { data_bytes: if forgets { 3 } else { first.data_bytes }, ..first }, stores);
        }
    }
}

impl Interposer for Collector {
    const NAME: &'static str = "Collector";
    const SUMMARY: &'static str = "a test";
    const HOLDS_STORES: bool = true;
    type Parameters = CollectorParameters;
    type Counters = CollectorCounters;
    type Own = Vec<MemoryRequest>;

    fn new(_: &CollectorParameters) -> Collector {
        Collector { stores: Vec::new(), deadline: 0, groups: 0 }
    }

    fn pace(parameters: &CollectorParameters) -> Pace {
        Pace::new(parameters.clock, 2).responses_per_cycle(parameters.responses)
    }

    fn check(parameters: &CollectorParameters, problems: &mut Problems) {
        problems.check(parameters.group > 0, "group", "expected at least 1");
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        if request.kind != MemoryKind::Store {
            return io.forward(request);
        }
        if self.stores.is_empty() {
            self.deadline = io.cycle() + 20;
        }
        self.stores.push(request);
        if self.stores.len() == io.parameters.group as usize {
            self.flush(io);
        }
    }

    fn on_response(&mut self, response: MemoryResponse, stores: Vec<MemoryRequest>, io: &mut Io<Self>) {
        for store in &stores {
            io.answer(store, response.served_by);
        }
    }

    fn on_passing(&mut self, message: &MemoryMessage, io: &mut Io<Self>) {
        if *message == MemoryMessage::Drain {
            self.flush(io);
        }
    }

    fn next_wake(&self, _: &CollectorParameters) -> Option<u64> {
        (!self.stores.is_empty()).then_some(self.deadline)
    }

    fn on_wake(&mut self, io: &mut Io<Self>) {
        self.flush(io);
    }
}

const COLLECTOR: UnitDefinition = definition::<Collector>();

fn bench(given: &str) -> MemoryBench {
    MemoryBench::new(&COLLECTOR, &format!("clock: \"1 GHz\", {given}"))
}

/// (nanosecond, line) of requests.
fn requests(played: &super::super::Played) -> Vec<(u64, u64)> {
    played.requests().iter().map(|(at, request)| (*at, request.line)).collect()
}

/// (nanosecond, id) of responses.
fn responses(played: &super::super::Played) -> Vec<(u64, u32)> {
    played.responses().iter().map(|(at, response)| (*at, response.id)).collect()
}

#[test]
fn everything_passes_after_the_latency_one_in_a_cycle() {
    let mut bench = MemoryBench::new(&PASS_THROUGH, r#"clock: "1 GHz", latency: 3"#);
    bench.request(100, load(5, 0x100, 4)).request(100, store(5, 0x200, 4)).request(120, load(u32::MAX, 0x300, 4));
    bench.server_answers_after(50).server_answers_at(0, 300).server_answers_at(1, 300);
    let played = bench.run();
    assert_eq!(requests(&played), [(103, 0x100), (104, 0x200), (123, 0x300)]);
    // The client gets its own numbers back.
    assert_eq!(responses(&played), [(176, u32::MAX), (303, 5), (304, 5)]);
    assert_eq!([played.counter("loads"), played.counter("stores"), played.counter("atomics")], [2, 1, 0]);
}

/// Asks for the line 0x1000 bytes further with each load, when nobody else asks for anything; tells at the end how often it did.
#[derive(Debug, Serialize, Deserialize)]
struct Polite {
    most: u64,
}

const MOST: StatisticDefinition =
    StatisticDefinition { name: "most_waiting", unit: "request", meaning: "most requests that waited", maximum: true };

impl Interposer for Polite {
    const NAME: &'static str = "Polite";
    const SUMMARY: &'static str = "a test";
    type Parameters = CollectorParameters;
    type Counters = CollectorCounters;
    type Own = u64;

    fn new(_: &CollectorParameters) -> Polite {
        Polite { most: 0 }
    }

    fn pace(parameters: &CollectorParameters) -> Pace {
        Pace::new(parameters.clock, 2)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        io.ask_when_idle(MemoryRequest { line: request.line + 0x1000, ..request }, request.line);
        io.note("asks later", request.line);
        io.forward(request);
        self.most = self.most.max(io.waiting_to_ask() as u64);
    }

    fn on_response(&mut self, response: MemoryResponse, line: u64, io: &mut Io<Self>) {
        assert_eq!(response.line, line + 0x1000);
        io.counters.groups += 1;
    }

    fn records(&self, sink: &mut StatisticSink) {
        sink.row(&MOST, self.most);
    }
}

const POLITE: UnitDefinition = definition::<Polite>();

#[test]
fn what_waits_for_an_idle_cycle_leaves_behind_all_others() {
    let mut bench = MemoryBench::new(&POLITE, r#"clock: "1 GHz""#);
    // Three loads in a row, and one 100 ns later, whose request finds the port idle a cycle after the load itself.
    for (at, line) in [(100, 0x100), (101, 0x200), (102, 0x300), (200, 0x400)] {
        bench.request(at, load(1, line, 4));
    }
    let played = bench.run();
    assert_eq!(
        requests(&played),
        [
            (102, 0x100),
            (103, 0x200),
            (104, 0x300),
            (105, 0x1100),
            (106, 0x1200),
            (107, 0x1300),
            (202, 0x400),
            (203, 0x1400)
        ]
    );
    assert_eq!((played.counter("groups"), played.counter("most_waiting")), (4, 3));
}

#[test]
fn notes_are_marks_on_a_track_of_the_unit() {
    let timeline = Arc::new(Timeline::new(TimelineDetail::Kernels));
    let mut surroundings = Surroundings::new(Vec::new(), None, LiveBoard::default());
    surroundings.timeline = Some(Arc::clone(&timeline));
    let ports = PortMap::new(PORTS.iter().map(|port| (port.name.to_owned(), 0)));
    let context = BuildContext {
        path: "gpu.polite[3]",
        part: "gpu",
        index: 3,
        row_length: 4,
        ports: &ports,
        unit: 7,
        surroundings: &surroundings,
    };
    let parameters = CollectorParameters::from_ron(r#"(clock: "1 GHz")"#).expect("parameters");
    let mut unit = Interposed::<Polite>::new(parameters, &context).expect("a unit");
    let wire = SimTime::from_nanoseconds(10);
    let mut bench = crate::engine::Bench::new(&[wire; 2]);
    for (at, line) in [(100, 0x100), (140, 0x280)] {
        let request = Payload::Memory(MemoryMessage::Request(load(1, line, 4)));
        bench.deliver(SimTime::from_nanoseconds(at), PortId(0), request);
    }
    bench.run(&mut unit, wire, SimTime::from_nanoseconds(200));

    let told = timeline.take();
    let [told] = told.as_slice() else { panic!("{told:?}") };
    let names: Vec<&str> = told.tracks()[0].path.iter().map(|(_, name)| name.as_ref()).collect();
    assert_eq!(names, ["units of your own", "polite[3]"]);
    let mut marks = Vec::new();
    let read: Result<(), ()> = told.in_order(|event| {
        let EventKind::Instant(label) = event.kind else { panic!("{event:?}") };
        marks.push((event.time, told.label(label).1.to_owned(), event.values.to_vec()));
        Ok(())
    });
    assert_eq!(read, Ok(()));
    let mark = |ns, line| (SimTime::from_nanoseconds(ns), "asks later".to_owned(), vec![line]);
    assert_eq!(marks, [mark(100, 0x100), mark(140, 0x280)]);
}

#[test]
fn numbers_under_way_are_its_own() {
    let mut bench = bench("group: 1");
    bench.request(100, store(9, 0x100, 4)).request(100, load(9, 0x200, 4)).request(100, load(9, 0x300, 4));
    let sent = bench.run().requests();
    let mut ids: Vec<u32> = sent.iter().map(|(_, request)| request.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_request_of_its_own_brings_back_what_it_was_for() {
    let mut bench = bench("group: 2");
    bench.request(100, store(1, 0x100, 4)).request(105, store(2, 0x104, 4));
    let played = bench.run();
    assert_eq!(requests(&played), [(107, 0x100)]);
    assert_eq!(responses(&played), [(209, 1), (210, 2)]);
    assert_eq!(played.counter("groups"), 1);
}

#[test]
fn so_many_responses_leave_in_a_cycle() {
    for (responses_per_cycle, expected) in [(2, [209, 209, 210]), (0, [209, 209, 209])] {
        let mut bench = bench(&format!("group: 3, responses: {responses_per_cycle}"));
        for id in 0..3 {
            bench.request(105, store(id, 0x100 + 4 * u64::from(id), 4));
        }
        let at: Vec<u64> = bench.run().responses().iter().map(|(at, _)| *at).collect();
        assert_eq!(at, expected);
    }
}

#[test]
fn it_wakes_in_the_cycle_it_asks_for_after_the_messages_of_the_cycle() {
    let mut alone = bench("group: 2");
    alone.request(100, store(1, 0x100, 4));
    assert_eq!(requests(&alone.run()), [(122, 0x100)]);
    // The second store of cycle 120 fills the group before its deadline in the same cycle.
    let mut together = bench("group: 2");
    together.request(100, store(1, 0x100, 4)).request(120, store(2, 0x100, 4));
    let played = together.run();
    assert_eq!(requests(&played), [(122, 0x100)]);
    assert_eq!(responses(&played).len(), 2);
}

#[test]
fn other_messages_pass_behind_what_they_drive_out() {
    let mut bench = bench("group: 2");
    bench.request(100, store(1, 0x100, 4)).from_client(110, MemoryMessage::Drain);
    let everything = bench.run().everything();
    assert!(everything[0].starts_with("112000 ps to the server: Memory(Request("), "{everything:?}");
    assert_eq!(everything[1], "113000 ps to the server: Memory(Drain)");
}

#[test]
fn the_client_gets_a_credit_for_every_request_and_no_more() {
    let mut bench = bench("group: 3");
    for id in 0..3 {
        bench.request(100 + u64::from(id), store(id, 0x100, 4));
    }
    bench.request(150, load(9, 0x400, 4));
    // The server took two requests, and gives two credits; the client has sent four.
    bench.from_server(160, MemoryMessage::Credit(Credits::ONE)).from_server(170, MemoryMessage::Credit(Credits::ONE));
    let everything = bench.run().everything();
    let credits = everything.iter().filter(|sent| sent.contains("to the client: Memory(Credit("));
    assert_eq!(credits.count(), 4, "{everything:?}");
}

#[test]
fn state_that_is_not_saved_is_found() {
    let mut bench = bench("group: 1, forgets: true");
    bench.request(100, store(1, 0x100, 4)).request(200, store(2, 0x100, 4));
    let broken = bench.try_run().expect_err("each unit takes itself for the first").to_string();
    assert!(broken.contains("once its state is saved and restored"), "{broken}");
}

#[test]
fn what_it_waits_for_is_said() {
    let map = crate::catalogue::PortMap::new([("upstream".to_owned(), 0), ("downstream".to_owned(), 0)]);
    let surroundings = crate::catalogue::Surroundings::default();
    let context = BuildContext {
        path: "gpu.collector",
        part: "gpu",
        index: 0,
        row_length: 1,
        ports: &map,
        unit: 0,
        surroundings: &surroundings,
    };
    let parameters = |text| CollectorParameters::from_ron(text).expect("the types are right");
    let refused = Interposed::<Collector>::new(parameters(r#"clock: "1 GHz", group: 0"#), &context);
    assert_eq!(refused.map(drop).map_err(|error| error.to_string()), Err("group: expected at least 1".to_owned()));

    let mut unit = Interposed::<Collector>::new(parameters(r#"clock: "1 GHz""#), &context).expect("it is right");
    assert_eq!(unit.outstanding(), None);
    let wire = SimTime::from_nanoseconds(10);
    let mut bench = crate::engine::Bench::new(&[wire; 2]);
    for id in 0..3 {
        let request = Payload::Memory(MemoryMessage::Request(store(id, 0x100, 4)));
        bench.deliver(SimTime::from_nanoseconds(100), PortId(0), request);
    }
    bench.run(&mut unit, wire, SimTime::from_nanoseconds(110));
    assert_eq!(
        unit.outstanding().as_deref(),
        Some("waits for answers to 1 requests at downstream; has 3 requests from upstream without an answer")
    );
}
