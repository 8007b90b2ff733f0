//! Each rule is broken once, by a small unit that can make every mistake.

use super::*;
use crate::catalogue::{PortDefinition, UnitDefinition};
use crate::engine::{Inbox, NextWake, Outbox};
use crate::prototyping::{Numbers, PASS_THROUGH};

const UPSTREAM: PortId = PortId(0);
const DOWNSTREAM: PortId = PortId(1);
/// So long a store stays.
const STAY: SimTime = SimTime::from_nanoseconds(50);

crate::parameters! {
    /// Which mistake it makes.
    struct BufferParameters {
        /// its name
        mistake: String = r#""none""#,
    }
}

/// Keeps each store for 50 ns, unless a load of its line comes.
struct Buffer {
    mistake: String,
    stores: Vec<(SimTime, MemoryRequest)>,
    under_way: Numbers<MemoryRequest>,
}

const DEFINITION: UnitDefinition = UnitDefinition {
    name: "Buffer",
    summary: "a buffer with a mistake",
    parameters: <BufferParameters as crate::catalogue::ParameterSet>::DEFINITIONS,
    check: <BufferParameters as crate::catalogue::ParameterSet>::check,
    ports: &[
        PortDefinition::server("upstream", Protocol::Memory, "the client"),
        PortDefinition::client("downstream", Protocol::Memory, "the server"),
    ],
    counters: &[],
    provides: crate::catalogue::nothing,
    weight: 2,
    build: |text, _| {
        let BufferParameters { mistake } = ron::from_str(text)?;
        Ok(Box::new(Buffer { mistake, stores: Vec::new(), under_way: Numbers::default() }))
    },
};

impl Buffer {
    fn makes(&self, mistake: &str) -> bool {
        self.mistake == mistake
    }

    fn send(&mut self, request: MemoryRequest, at: SimTime, out: &mut Outbox) {
        let id = self.under_way.give(request);
        let line = request.line + if self.makes("crooked") { 4 } else { 0 };
        out.send(DOWNSTREAM, at, Payload::Memory(MemoryMessage::Request(MemoryRequest { id, line, ..request })));
    }

    fn message(&mut self, message: &Message, out: &mut Outbox) {
        let now = message.time;
        match message.payload {
            Payload::Memory(MemoryMessage::Request(store)) if store.kind == MemoryKind::Store => {
                self.stores.push((now + STAY, store));
            }
            Payload::Memory(MemoryMessage::Request(load)) => {
                let flush = |(_, store): &mut (SimTime, MemoryRequest)| store.line == load.line;
                let kept = self.makes("load without flush");
                let flushed: Vec<_> = self.stores.extract_if(.., |store| !kept && flush(store)).collect();
                for (_, store) in flushed {
                    self.send(store, now, out);
                }
                self.send(load, now, out);
            }
            Payload::Memory(MemoryMessage::Response(response)) => {
                let request = self.under_way.take(response.id).expect("the bench answers what was asked");
                let wrong = u32::from(self.makes("misnumbered"));
                let answer = MemoryRequest { id: request.id + wrong, ..request }.response(0, ServedBy::L2);
                let back = SimTime(if self.makes("past") { 1 } else { 0 });
                let times = if self.makes("lost") { 0 } else { 1 + u32::from(self.makes("doubled")) };
                for _ in 0..times {
                    out.send(UPSTREAM, now - back, Payload::Memory(MemoryMessage::Response(answer)));
                }
            }
            _ => {}
        }
    }
}

impl Unit for Buffer {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            let wake = self.stores.first().map(|(at, _)| *at);
            match (inbox.next_time(), wake) {
                (Some(arrival), wake) if wake.is_none_or(|at| arrival <= at) => {
                    let message = inbox.take().expect("it has a time");
                    self.message(&message, out);
                }
                (_, Some(at)) if at < window.until => {
                    let (_, store) = self.stores.remove(0);
                    let at = if self.makes("at the window's start") { window.start } else { at };
                    self.send(store, at, out);
                }
                (_, Some(_)) if self.makes("missed wake") => return NextWake::OnMessage,
                (_, Some(at)) => return NextWake::At(at),
                (_, None) => return NextWake::OnMessage,
            }
        }
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        (!self.stores.is_empty()).then(|| format!("has {} stores", self.stores.len()))
    }
}

/// Two stores that go by themselves, and one that a load drives out.
fn play(mistake: &str) -> Result<Played, BrokenProtocol> {
    let mut bench = MemoryBench::new(&DEFINITION, &format!("mistake: {mistake:?}"));
    bench.request(100, store(7, 0x100, 32)).request(107, store(7, 0x200, 4));
    bench.request(300, store(8, 0x100, 32)).request(310, load(9, 0x100, 4));
    bench.try_run()
}

#[test]
fn a_right_unit_is_played_to_its_end() {
    let played = play("none").expect("no rule is broken");
    let lines: Vec<_> = played.requests().iter().map(|(at, request)| (*at, request.line)).collect();
    assert_eq!(lines, [(150, 0x100), (157, 0x200), (310, 0x100), (310, 0x100)]);
    // 100 ns after its request has left, each answer arrives and is passed on.
    let ids: Vec<_> = played.responses().iter().map(|(at, answer)| (*at, answer.id)).collect();
    assert_eq!(ids, [(250, 7), (257, 7), (410, 8), (410, 9)]);
}

#[test]
fn every_mistake_is_found_and_its_rule_named() {
    for (mistake, found) in [
        ("lost", "has not answered request 7 (store of line 0x100) at its port upstream since 100000 ps"),
        ("doubled", "at 250000 ps the unit answered request 7 (store of line 0x100) at its port upstream twice"),
        (
            "misnumbered",
            "the unit answered request 8 (store of line 0x100) at its port upstream, which is not under way",
        ),
        // The next message finds it with a store whose time is over.
        ("missed wake", "sent at 150000 ps, before the window's start at 300000 ps"),
        ("past", "sent at 249999 ps, before the window's start at 250000 ps"),
        ("load without flush", "kept the store 8 of the same sectors"),
        ("at the window's start", "in windows of 5000 ps the unit does something else than in windows of 10000 ps"),
        ("crooked", "does not begin at a line"),
    ] {
        let broken = play(mistake).expect_err(mistake).to_string();
        assert!(broken.contains(found), "{mistake}: {broken}");
    }
}

#[test]
fn a_unit_that_has_forgotten_to_wake_is_told_so() {
    let mut bench = MemoryBench::new(&DEFINITION, r#"mistake: "missed wake""#);
    bench.request(100, store(7, 0x100, 32));
    let broken = bench.try_run().expect_err("nothing wakes it").to_string();
    for found in [
        "has not answered request 7 (store of line 0x100)",
        "the unit says of itself: has 1 stores",
        "it would have sent something at 150000 ps, but it has not asked to be woken: `NextWake::At` is missing",
    ] {
        assert!(broken.contains(found), "{broken}");
    }
}

#[test]
fn a_unit_gets_a_drain_only_if_it_says_that_it_holds_stores() {
    let mut bench = MemoryBench::new(&PASS_THROUGH, r#"clock: "1 GHz", latency: 2"#);
    bench.request(100, store(7, 0x100, 32)).from_client(110, MemoryMessage::Drain);
    assert_eq!(bench.try_run(), Err(BrokenProtocol::NoDrain));
}

#[test]
fn parameters_that_the_unit_refuses_are_named() {
    let bench = MemoryBench::new(&PASS_THROUGH, "latency: 2");
    let broken = bench.try_run().expect_err("the clock is missing").to_string();
    assert!(broken.contains("cannot be built") && broken.contains("clock"), "{broken}");
}

#[test]
fn requests_touch_the_sectors_of_their_bytes() {
    let part = store(1, 0x110, 32);
    assert_eq!((part.line, part.sectors, part.full_sectors(), part.data_bytes), (0x100, 0b0011, 0, 32));
    let whole = store(1, 0x120, 96);
    assert_eq!((whole.sectors, whole.full_sectors()), (0b1110, 0b1110));
    assert_eq!((load(1, 0x160, 4).sectors, load(1, 0x160, 4).data_bytes), (0b1000, 0));
    assert_eq!(reduction(1, 0x100, 128).operations, 32);
}
