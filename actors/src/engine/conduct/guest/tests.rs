//! A guest between two units of the simulator's own: its mistakes are its own, even where another unit would have suffered from them.

use super::*;
use crate::engine::Wire;
use crate::engine::{Outcome, RunOptions, RunReport, Simulation, UnitEntry, WindowCut, run};
use balar_protocol::UnitId;
use balar_protocol::memory::{MemoryMessage, MemoryRequest, ServedBy};

const NS: u64 = 1000;

/// Asks for three lines, 7 ns after each other, and counts the answers.
struct Client {
    answers: u64,
}

impl Unit for Client {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        if window.start == SimTime::ZERO {
            for id in 0..3 {
                let request = MemoryRequest { line: 128, id, sectors: 1, ..MemoryRequest::default() };
                let at = SimTime(7 * NS * u64::from(id));
                out.send(PortId(0), at, Payload::Memory(MemoryMessage::Request(request)));
            }
        }
        while let Some(message) = inbox.take() {
            let Payload::Memory(MemoryMessage::Response(response)) = message.payload else { panic!("{message:?}") };
            assert!(response.id < 3, "nobody asked for {}", response.id);
            self.answers += 1;
        }
        NextWake::OnMessage
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        (self.answers < 3).then(|| format!("has {} answers", self.answers))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    Loses,
    Doubles,
    Misnumbers,
    ForgetsToWake,
    SendsIntoThePast,
    SendsAtTheWindowsStart,
    Panics,
    LeavesMessages,
    WakesInThePast,
    AsksItsClient,
    UsesNoPort,
}

/// Answers each request after 4 ns.
struct Server {
    mistake: Mistake,
    due: Vec<(SimTime, MemoryRequest)>,
}

impl Unit for Server {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        if self.mistake == Mistake::LeavesMessages {
            return NextWake::OnMessage;
        }
        while let Some(message) = inbox.take() {
            let Payload::Memory(MemoryMessage::Request(request)) = message.payload else { panic!("{message:?}") };
            self.due.push((message.time + SimTime(4 * NS), request));
        }
        let now = |at: SimTime| at < window.until;
        for (at, request) in self.due.extract_if(.., |(at, _)| now(*at)).collect::<Vec<_>>() {
            let mut answer = request.response(0, ServedBy::L2);
            let (mut at, mut port, mut times) = (at, PortId(0), 1);
            match self.mistake {
                Mistake::Loses => times = u32::from(request.id != 1),
                Mistake::Doubles => times = 2,
                Mistake::Misnumbers => answer.id += 3,
                Mistake::SendsIntoThePast => at = SimTime(at.0 - 1),
                Mistake::SendsAtTheWindowsStart => at = window.start,
                Mistake::Panics => panic!("no more"),
                Mistake::UsesNoPort => port = PortId(9),
                _ => {}
            }
            let payload = match self.mistake {
                Mistake::AsksItsClient => MemoryMessage::Request(request),
                _ => MemoryMessage::Response(answer),
            };
            (0..times).for_each(|_| out.send(port, at, Payload::Memory(payload)));
        }
        match (self.due.first(), self.mistake) {
            (_, Mistake::ForgetsToWake) | (None, _) => NextWake::OnMessage,
            (_, Mistake::WakesInThePast) => NextWake::At(window.start),
            (Some(&(at, _)), _) => NextWake::At(at),
        }
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        (!self.due.is_empty()).then(|| format!("has {} answers left", self.due.len()))
    }
}

fn play(mistake: Mistake, threads: usize, cut: WindowCut) -> RunReport {
    let latency = SimTime(10 * NS);
    let to = |unit| vec![Wire { unit: UnitId(unit), port: PortId(0), latency }];
    let port = GuestPort { name: "upstream".to_owned(), protocol: Protocol::Memory, side: Side::Server, latency };
    let guest = Guest::new(Box::new(Server { mistake, due: Vec::new() }), vec![port]);
    let entry = |path: &str, unit, wires| UnitEntry { path: path.to_owned(), unit, wires, weight: 1 };
    let units = vec![entry("client", Box::new(Client { answers: 0 }), to(1)), entry("guest", Box::new(guest), to(0))];
    let simulation = Simulation { units, ..Simulation::default() };
    run(simulation, RunOptions { threads, cut, ..RunOptions::default() }).expect("it runs")
}

fn sevenths() -> WindowCut {
    WindowCut { divisor: 7, ..WindowCut::default() }
}

#[test]
fn a_guest_that_keeps_the_rules_is_let_be() {
    let report = play(Mistake::None, 1, WindowCut::default());
    assert_eq!((report.outcome, report.end), (Outcome::Finished, SimTime(38 * NS)));
}

/// The same is found on any number of threads, and wherever windows end.
#[test]
fn its_mistakes_are_named_as_its_own() {
    for (mistake, at, text) in [
        (
            Mistake::Doubles,
            14,
            "at 14000 ps the unit answered request 0 (load of line 0x80) at its port upstream twice",
        ),
        (
            Mistake::Misnumbers,
            14,
            "the unit answered request 3 (load of line 0x80) at its port upstream, which is not under way",
        ),
        // The next message wakes it for work that was due before.
        (Mistake::ForgetsToWake, 17, "sent at 14000 ps, before the window's start at 17000 ps"),
        (Mistake::SendsIntoThePast, 14, "sent at 13999 ps, before the window's start at 14000 ps"),
        (Mistake::Panics, 14, "no more ("),
        (Mistake::LeavesMessages, 10, "the unit left 1 messages in its inbox"),
        (Mistake::WakesInThePast, 10, "the unit wants to wake at 10000 ps"),
        (Mistake::AsksItsClient, 14, "through its port upstream, which is a server of the protocol memory"),
        (Mistake::UsesNoPort, 14, "the unit has no port number"),
    ] {
        for (threads, cut) in [(1, WindowCut::default()), (2, WindowCut::default()), (1, sevenths())] {
            let Outcome::UnitBroken { path, time, message } = play(mistake, threads, cut).outcome else {
                panic!("{mistake:?} is not found")
            };
            assert_eq!((path.as_str(), time), ("guest", SimTime(at * NS)), "{mistake:?}: {message}");
            assert!(message.contains(text), "{mistake:?}: {message}");
        }
    }
}

#[test]
fn what_it_owes_is_in_the_report_of_the_deadlock() {
    let Outcome::Deadlock(report) = play(Mistake::Loses, 1, WindowCut::default()).outcome else {
        panic!("no deadlock")
    };
    assert_eq!(
        report.to_string(),
        "deadlock at 38000 ps:\n  guest: has not answered request 1 (load of line 0x80) at its port upstream since 17000 ps\n  \
         client: has 2 answers"
    );
}

/// It is called at each moment on its own: the time that it is told is the present time.
#[test]
fn windows_are_not_its_business() {
    let ends = [WindowCut::default(), sevenths()].map(|cut| play(Mistake::SendsAtTheWindowsStart, 1, cut).end);
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn what_it_owes_is_part_of_its_state() {
    let port = || GuestPort {
        name: "upstream".to_owned(),
        protocol: Protocol::Memory,
        side: Side::Server,
        latency: SimTime(10 * NS),
    };
    struct Stateless;
    impl Unit for Stateless {
        fn advance(&mut self, _: Window, inbox: &mut Inbox, _: &mut Outbox) -> NextWake {
            while inbox.take().is_some() {}
            NextWake::At(SimTime(99 * NS))
        }
        fn statistics(&self, _: &mut StatisticSink) {}
        fn outstanding(&self) -> Option<String> {
            None
        }
        fn save(&self) -> Result<Vec<u8>, StateError> {
            Ok(Vec::new())
        }
        fn restore(&mut self, _: &[u8], _: &dyn CodeSource) -> Result<(), StateError> {
            Ok(())
        }
    }
    let (mut before, mut after) =
        (Guest::new(Box::new(Stateless), vec![port()]), Guest::new(Box::new(Stateless), vec![port()]));
    let mut bench = crate::engine::Bench::new(&[SimTime(10 * NS)]);
    let request = MemoryRequest { line: 256, id: 8, sectors: 1, ..MemoryRequest::default() };
    bench.deliver(SimTime(5), PortId(0), Payload::Memory(MemoryMessage::Request(request)));
    bench.run(&mut before, SimTime(NS), SimTime(9 * NS));
    after.restore(&before.save().expect("it has a state"), &()).expect("of the same kind");
    assert_eq!(after.outstanding(), before.outstanding());
    assert!(after.outstanding().is_some_and(|owed| owed.contains("request 8 (load of line 0x100)")));
    assert_eq!(after.wake, SimTime(99 * NS));
}
