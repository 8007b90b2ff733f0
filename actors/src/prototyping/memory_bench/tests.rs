//! Each rule is broken once, by a small unit that can make every mistake.

use super::*;
use crate::catalogue::{PortDefinition, UnitDefinition};
use crate::engine::{Inbox, NextWake, Outbox};
use crate::prototyping::{Interposer, Io, Numbers, PASS_THROUGH, Pace};
use balar_protocol::Frequency;
use serde::Deserialize;

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

/// Forwards each request after as many cycles as it has forwarded before: what it has counted is not saved, or cannot be.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Forgetful {
    #[serde(skip)]
    forwarded: u64,
    #[serde(skip)]
    kept: Vec<MemoryRequest>,
    keeps: bool,
    unwritten: Unwritten,
}

/// State that serde cannot write or read at will.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unwritten {
    Nothing,
    WhenSaved,
    WhenRestored,
}

impl serde::Serialize for Unwritten {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Unwritten::Nothing => serializer.serialize_u8(0),
            Unwritten::WhenRestored => serializer.serialize_u8(1),
            Unwritten::WhenSaved => Err(serde::ser::Error::custom("no words for it")),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Unwritten {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Unwritten, D::Error> {
        match u8::deserialize(deserializer)? {
            0 => Ok(Unwritten::Nothing),
            _ => Err(serde::de::Error::custom("what was written is not understood")),
        }
    }
}

crate::parameters! {
    /// Which mistake it makes.
    struct ForgetfulParameters {
        /// its name
        mistake: String,
    }
}

balar_protocol::counters! {
    /// Nothing in particular.
    struct ForgetfulCounters {
        /// requests
        requests: "request",
    }
}

impl Interposer for Forgetful {
    const NAME: &'static str = "Forgetful";
    const SUMMARY: &'static str = "forgets its state";
    type Parameters = ForgetfulParameters;
    type Counters = ForgetfulCounters;
    type Own = ();

    fn new(parameters: &ForgetfulParameters) -> Forgetful {
        let unwritten = match parameters.mistake.as_str() {
            "not saved" => Unwritten::WhenSaved,
            "not restored" => Unwritten::WhenRestored,
            _ => Unwritten::Nothing,
        };
        Forgetful { forwarded: 0, kept: Vec::new(), keeps: parameters.mistake == "lost", unwritten }
    }

    fn pace(_: &ForgetfulParameters) -> Pace {
        Pace::new(Frequency::from_hertz(1_000_000_000), 2)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        io.counters.requests += 1;
        self.forwarded += 1;
        if self.keeps {
            return self.kept.push(request);
        }
        // Only the first one leaves with what it writes.
        let sectors = if self.forwarded == 1 { request.sectors } else { 0b1111 };
        io.forward(MemoryRequest { sectors, ..request });
    }

    fn next_wake(&self, _: &ForgetfulParameters) -> Option<u64> {
        self.kept.first().map(|_| 500)
    }

    fn on_wake(&mut self, io: &mut Io<Self>) {
        for request in std::mem::take(&mut self.kept) {
            io.forward(request);
        }
    }
}

/// Each step of the play with saved and restored state is told apart.
#[test]
fn what_goes_wrong_with_the_state_is_told_by_its_step() {
    const FORGETFUL: UnitDefinition = crate::prototyping::definition::<Forgetful>();
    for (mistake, found) in [
        // Every unit is called at the start, in a window as long as the wires: 10 ns.
        ("not saved", "the unit's state cannot be saved at 10000 ps: "),
        ("not restored", "the unit's state was saved at 10000 ps, and cannot be restored: "),
        ("lost", "was saved and restored after each window, and then the unit broke a rule that it keeps otherwise"),
        (
            "differs",
            "the unit does something else once its state is saved and restored; rule: serde writes all of the state",
        ),
    ] {
        let mut bench = MemoryBench::new(&FORGETFUL, &format!("mistake: {mistake:?}"));
        bench.request(100, load(7, 0x100, 4)).request(200, load(8, 0x200, 4));
        let broken = bench.try_run().expect_err(mistake);
        assert!(matches!(broken, BrokenProtocol::State(_)), "{mistake}: {broken}");
        assert!(broken.to_string().contains(found), "{mistake}: {broken}");
        if mistake == "lost" {
            assert!(
                broken.to_string().contains("\nthe unit has not answered request 7 (load of line 0x100)"),
                "{broken}"
            );
        }
    }
}

/// Asks for the next line with each load, whichever slice owns it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct NextLine;

impl Interposer for NextLine {
    const NAME: &'static str = "NextLine";
    const SUMMARY: &'static str = "fetches the next line";
    type Parameters = ForgetfulParameters;
    type Counters = ForgetfulCounters;
    type Own = ();

    fn new(_: &ForgetfulParameters) -> NextLine {
        NextLine
    }

    fn pace(_: &ForgetfulParameters) -> Pace {
        Pace::new(Frequency::from_hertz(1_000_000_000), 2)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        io.forward(request);
        let step = if io.parameters.mistake == "next line" { 1 } else { 32 };
        io.ask(MemoryRequest { line: request.line + step * LINE_BYTES, ..request }, ());
    }
}

#[test]
fn a_slice_is_asked_for_its_own_lines() {
    const NEXT_LINE: UnitDefinition = crate::prototyping::definition::<NextLine>();
    let play = |mistake: &str, line: u64| {
        let mut bench = MemoryBench::new(&NEXT_LINE, &format!("mistake: {mistake:?}"));
        let map = SliceMap::new(&crate::interleave::AddressHash::Modulo, 32).expect("a map");
        bench.server_is_slice(3, map).request(100, load(7, line, 4));
        bench.try_run()
    };
    assert!(play("none", 3 * LINE_BYTES).is_ok());
    // Line 3 is of slice 3, and line 4 of slice 4. The second request leaves a cycle after the first.
    assert_eq!(
        play("next line", 3 * LINE_BYTES),
        Err(BrokenProtocol::WrongSlice { at: SimTime::from_nanoseconds(103), line: 0x200, asked: 3, owner: 4 })
    );
    assert_eq!(
        play("none", 5 * LINE_BYTES),
        Err(BrokenProtocol::ScriptForAnotherSlice { line: 0x280, asked: 3, owner: 5 })
    );
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
