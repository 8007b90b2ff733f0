//! The engine, driven with small units that speak a protocol of their own.

use balar_actors::engine::{
    EngineError, EpochHook, Epochs, Inbox, LiveBoard, NextWake, Outbox, Outcome, Placement, RunOptions, RunReport,
    Simulation, Unit, UnitEntry, Window, WindowCut, Wire, run,
};
use balar_protocol::statistics::{StatisticDefinition, StatisticSink};
use balar_protocol::{Payload, PortId, SimTime, UnitId};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SEEN: StatisticDefinition =
    StatisticDefinition { name: "seen", unit: "message", meaning: "messages received", maximum: false };

/// What a unit saw: (time, source, port, words).
type Trace = Vec<(u64, u32, u16, [u64; 3])>;
type SharedTrace = Arc<Mutex<Trace>>;

/// What a scripted unit does with a message or a wake.
type Behaviour = Box<dyn FnMut(&mut Actions, Option<[u64; 3]>) + Send>;

/// What a behaviour may ask for.
struct Actions {
    now: SimTime,
    window: Window,
    sends: Vec<(u16, SimTime, [u64; 3])>,
    wake: Option<SimTime>,
}

/// A unit whose behaviour is a closure, called for every message and at every wake, in the order of time.
struct Scripted {
    behaviour: Behaviour,
    actions: Actions,
    trace: SharedTrace,
    outstanding: Option<String>,
    seen: u64,
    panic_in_statistics: bool,
}

impl Scripted {
    fn call(&mut self, now: SimTime, words: Option<[u64; 3]>, out: &mut Outbox) {
        self.actions.now = now;
        (self.behaviour)(&mut self.actions, words);
        for (port, at, words) in self.actions.sends.drain(..) {
            out.send(PortId(port), at, Payload::Custom(words));
        }
    }
}

impl Unit for Scripted {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        self.actions.window = window;
        loop {
            let wake = self.actions.wake.filter(|&wake| wake < window.until);
            let message = inbox.next_time();
            match (wake, message) {
                (Some(wake), message) if message.is_none_or(|time| wake < time) => {
                    self.actions.wake = None;
                    self.call(wake, None, out);
                }
                (_, Some(_)) => {
                    let message = inbox.take().expect("it has a time");
                    let Payload::Custom(words) = message.payload else { panic!("not of this protocol") };
                    self.seen += 1;
                    let entry = (message.time.0, message.source.0, message.port.0, words);
                    self.trace.lock().expect("one writer").push(entry);
                    self.call(message.time, Some(words), out);
                }
                (_, None) => return self.actions.wake.map_or(NextWake::OnMessage, NextWake::At),
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        assert!(!self.panic_in_statistics, "no statistics today");
        sink.row(&SEEN, self.seen);
    }

    fn outstanding(&self) -> Option<String> {
        self.outstanding.clone()
    }
}

/// A network under construction.
#[derive(Default)]
struct Network {
    simulation: Simulation,
    traces: Vec<SharedTrace>,
}

/// What a test changes in a scripted unit.
#[derive(Default)]
struct Extras {
    outstanding: Option<String>,
    panic_in_statistics: bool,
}

impl Network {
    /// Adds a unit that first wakes at `wake`. Wires are (unit, port there, latency in ps).
    fn add(
        &mut self,
        wake: Option<u64>,
        wires: &[(u32, u16, u64)],
        behaviour: impl FnMut(&mut Actions, Option<[u64; 3]>) + Send + 'static,
    ) -> &mut Network {
        self.add_with(wake, wires, Extras::default(), behaviour)
    }

    fn add_with(
        &mut self,
        wake: Option<u64>,
        wires: &[(u32, u16, u64)],
        extras: Extras,
        behaviour: impl FnMut(&mut Actions, Option<[u64; 3]>) + Send + 'static,
    ) -> &mut Network {
        let trace = SharedTrace::default();
        self.traces.push(Arc::clone(&trace));
        let window = Window { start: SimTime::ZERO, until: SimTime::ZERO };
        let actions = Actions { now: SimTime::ZERO, window, sends: Vec::new(), wake: wake.map(SimTime) };
        let Extras { outstanding, panic_in_statistics } = extras;
        let unit =
            Scripted { behaviour: Box::new(behaviour), actions, trace, outstanding, seen: 0, panic_in_statistics };
        let wires = wires
            .iter()
            .map(|&(unit, port, ps)| Wire { unit: UnitId(unit), port: PortId(port), latency: SimTime(ps) })
            .collect();
        let path = format!("unit[{}]", self.traces.len() - 1);
        self.simulation.units.push(UnitEntry { path, unit: Box::new(unit), wires, weight: 1 });
        self
    }

    fn run(self, options: RunOptions) -> (RunReport, Vec<Trace>) {
        let report = run(self.simulation, options).expect("the network is sound");
        (report, self.traces.iter().map(|trace| trace.lock().expect("the run is over").clone()).collect())
    }
}

fn threads(threads: usize) -> RunOptions {
    RunOptions { threads, ..RunOptions::default() }
}

/// Two units that pass a ball; unit 0 serves at `serve`.
fn ping_pong(serve: u64, latency: u64, rounds: u64) -> Network {
    let mut network = Network::default();
    for unit in 0..2 {
        network.add((unit == 0).then_some(serve), &[(1 - unit, 0, latency)], move |actions, words| {
            let round = words.map_or(0, |words| words[0] + 1);
            if round < rounds {
                actions.sends.push((0, actions.now, [round, 0, 0]));
            }
        });
    }
    network
}

#[test]
fn a_message_arrives_after_the_latency_of_its_wire() {
    for shards in [1, 2] {
        let (report, traces) = ping_pong(123, 7_001, 5).run(threads(shards));
        let times = |trace: &Trace| trace.iter().map(|entry| entry.0).collect::<Vec<_>>();
        assert_eq!(times(&traces[1]), [123 + 7_001, 123 + 3 * 7_001, 123 + 5 * 7_001]);
        assert_eq!(times(&traces[0]), [123 + 2 * 7_001, 123 + 4 * 7_001]);
        assert_eq!(report.outcome, Outcome::Finished);
        assert_eq!((report.end, report.messages), (SimTime(123 + 5 * 7_001), 5));
    }
}

#[test]
fn equal_stamps_are_ordered_by_source_and_sequence() {
    for shards in [1, 2, 4] {
        let mut network = Network::default();
        // Latencies and send times differ, arrivals do not.
        for unit in 0..3_u64 {
            network.add(Some(0), &[(3, unit as u16, 100 * (unit + 1))], move |actions, _| {
                for word in 0..3 {
                    actions.sends.push((0, SimTime(500 - 100 * unit), [unit, word, 0]));
                }
            });
        }
        network.add(None, &[], |_, _| {});
        let (_, traces) = network.run(threads(shards));
        let words: Vec<_> = traces[3].iter().map(|entry| (entry.0, entry.3[0], entry.3[1])).collect();
        let expected: Vec<_> = (0..3).flat_map(|unit| (0..3).map(move |word| (600, unit, word))).collect();
        assert_eq!(words, expected);
    }
}

/// Units that wake, send, and answer at random, each with its own generator.
fn random_network(seed: u64, units: u32) -> Network {
    let mut random = Pcg64Mcg::new(u128::from(seed));
    let mut network = Network::default();
    for unit in 0..units {
        let wires: Vec<(u32, u16, u64)> = (0..1 + random.next_u64() % 4)
            .map(|_| {
                let to = (random.next_u64() % u64::from(units)) as u32;
                (to, (random.next_u64() % 9) as u16, 1_000 + random.next_u64() % 3_000)
            })
            .collect();
        let ports = wires.len() as u64;
        let mut own = Pcg64Mcg::new(u128::from(seed * 1_000 + u64::from(unit)));
        let mut budget = 300_u32;
        network.add(Some(random.next_u64() % 5_000), &wires, move |actions, words| {
            if budget == 0 {
                return;
            }
            budget -= 1;
            for _ in 0..own.next_u64() % 3 {
                let port = (own.next_u64() % ports) as u16;
                // Some are sent at once, some far past the window.
                let delay =
                    if own.next_u64().is_multiple_of(8) { own.next_u64() % 200_000 } else { own.next_u64() % 64 };
                let hash = words.map_or(0, |words| words[0].rotate_left(7) ^ words[1]);
                actions.sends.push((port, actions.now + SimTime(delay), [own.next_u64(), hash, actions.now.0]));
            }
            if actions.wake.is_none() {
                actions.wake = Some(actions.now + SimTime(1 + own.next_u64() % 9_000));
            }
        });
    }
    network
}

#[test]
fn threads_and_placement_never_change_a_trace() {
    for seed in 1..4 {
        let (reference, traces) = random_network(seed, 37).run(threads(1));
        assert!(reference.messages > 3_000, "{}", reference.messages);
        assert_eq!(reference.outcome, Outcome::Finished);
        for shards in [1, 2, 3, 4] {
            for placement in [Placement::Balanced, Placement::Shuffled(seed), Placement::Shuffled(99 + seed)] {
                let options = RunOptions { placement, ..threads(shards) };
                let (report, others) = random_network(seed, 37).run(options);
                assert!(others == traces, "seed {seed}, {shards} shards, {placement:?}: another trace");
                assert_eq!(report.statistics.rows, reference.statistics.rows);
                assert_eq!(
                    (report.end, report.windows, report.messages, &report.outcome),
                    (reference.end, reference.windows, reference.messages, &reference.outcome),
                    "seed {seed}, {shards} shards, {placement:?}"
                );
            }
        }
    }
}

/// Does nothing at the ends of epochs: for windows that end there.
struct Nothing;

impl EpochHook for Nothing {
    fn epoch_ends(&self) {}
}

#[test]
fn windows_cut_anyhow_never_change_a_trace() {
    let (reference, traces) = random_network(7, 23).run(threads(1));
    let odd: Arc<[SimTime]> =
        (1..400).map(|cut| SimTime(cut * cut * 37 % 600_011)).collect::<BTreeSet<_>>().into_iter().collect();
    let cut = |divisor, at: &Arc<[SimTime]>| WindowCut { divisor, at: Arc::clone(at) };
    let none: Arc<[SimTime]> = Arc::default();
    for (shards, cut, epoch) in [
        (1, cut(2, &none), None),
        (1, cut(7, &none), None),
        (2, cut(7, &none), None),
        (1, cut(1, &odd), None),
        (3, cut(3, &odd), Some(777)),
        (1, WindowCut::default(), Some(500)),
        (2, WindowCut::default(), Some(20_000)),
    ] {
        let mut network = random_network(7, 23);
        if let Some(length) = epoch {
            network.simulation.epochs = Epochs::new(SimTime(length), Arc::new(Nothing));
        }
        let description = format!("{shards} shards, {cut:?}, epochs of {epoch:?}");
        let (report, others) = network.run(RunOptions { cut, ..threads(shards) });
        for (unit, (found, expected)) in others.iter().zip(&traces).enumerate() {
            let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
            assert!(differs.is_none(), "{description}: unit {unit} saw another trace: {differs:?}");
        }
        let lengths = |traces: &[Trace]| traces.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&others), lengths(&traces), "{description}: {:?}, {:?}", report.outcome, report.end);
        assert_eq!(report.statistics.rows, reference.statistics.rows);
        assert_eq!((report.end, report.messages), (reference.end, reference.messages), "{description}");
        assert!(report.windows > reference.windows, "{description}: {} windows", report.windows);
    }
}

#[test]
fn a_panic_ends_the_run_with_the_units_name_and_keeps_the_others_statistics() {
    for shards in [1, 2, 3] {
        let mut network = ping_pong(0, 1_000, 1_000_000);
        network.add(Some(5_500), &[], |_, _| panic!("the queue broke"));
        network.add(Some(5_700), &[], |_, _| panic!("so did mine"));
        let (report, _) = network.run(threads(shards));
        let Outcome::UnitPanic { path, time, message } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!((path.as_str(), *time), ("unit[2]", SimTime(5_000)));
        assert!(message.starts_with("the queue broke"), "{message}");
        let rows: Vec<_> = report.statistics.rows.iter().map(|row| (row.location.as_str(), row.value)).collect();
        assert_eq!(rows, [("unit[0]", 2), ("unit[1]", 3)]);
    }
}

#[test]
fn a_panic_in_statistics_costs_only_that_units_rows() {
    let mut network = ping_pong(0, 1_000, 10);
    network.add_with(None, &[], Extras { panic_in_statistics: true, ..Extras::default() }, |_, _| {});
    let (report, _) = network.run(threads(2));
    assert_eq!(report.outcome, Outcome::Finished);
    assert_eq!(report.statistics.rows.len(), 2);
    assert_eq!(report.lost_statistics.len(), 1);
    assert_eq!(report.lost_statistics[0].path, "unit[2]");
    assert!(report.lost_statistics[0].message.starts_with("no statistics today"));
}

/// Leaves its messages where they are, or wakes in the past.
struct Lazy {
    wakes: bool,
}

impl Unit for Lazy {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, _: &mut Outbox) -> NextWake {
        if self.wakes {
            while inbox.take().is_some() {}
            return NextWake::At(window.start);
        }
        NextWake::OnMessage
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

#[test]
fn a_unit_that_breaks_the_rules_of_time_is_named() {
    let mut network = ping_pong(0, 1_000, 1_000_000);
    network.add(Some(4_000), &[(0, 0, 1_000)], |actions, _| actions.sends.push((0, SimTime(2_000), [0; 3])));
    let (report, _) = network.run(threads(2));
    let Outcome::UnitPanic { path, message, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(path, "unit[2]");
    assert!(message.contains("before the window's start"), "{message}");

    for (wakes, rule) in [(false, "left 1 messages"), (true, "wants to wake at")] {
        let mut network = Network::default();
        network.add(Some(0), &[(1, 0, 10)], |actions, _| actions.sends.push((0, actions.now, [0; 3])));
        let (path, unit) = ("lazy".to_owned(), Box::new(Lazy { wakes }));
        network.simulation.units.push(UnitEntry { path, unit, wires: Vec::new(), weight: 1 });
        let (report, _) = network.run(threads(1));
        let Outcome::UnitPanic { path, message, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!(path, "lazy");
        assert!(message.contains(rule), "{message}");
    }
}

#[test]
fn a_ring_whose_units_wait_for_each_other_is_a_deadlock() {
    for shards in [1, 3] {
        let mut network = Network::default();
        for unit in 0..3 {
            let outstanding = Some(format!("a token from unit[{}]", (unit + 2) % 3));
            let extras = Extras { outstanding, ..Extras::default() };
            // The token travels from unit 0 to unit 2, which keeps it.
            network.add_with((unit == 0).then_some(50), &[((unit + 1) % 3, 0, 1_000)], extras, move |actions, _| {
                if unit != 2 {
                    actions.sends.push((0, actions.now, [0; 3]));
                }
            });
        }
        network.add(None, &[], |_, _| {});
        let (report, _) = network.run(threads(shards));
        let Outcome::Deadlock(deadlock) = &report.outcome else { panic!("{:?}", report.outcome) };
        assert_eq!(deadlock.time, SimTime(2_050));
        let waiting: Vec<_> =
            deadlock.waiting.iter().map(|unit| format!("{}: {}", unit.path, unit.waits_for)).collect();
        assert_eq!(
            waiting,
            ["unit[0]: a token from unit[2]", "unit[1]: a token from unit[0]", "unit[2]: a token from unit[1]"]
        );
        assert_eq!(report.statistics.rows.len(), 4);
    }
}

#[test]
fn a_wire_without_latency_or_end_is_refused_by_name() {
    let mut network = Network::default();
    network.add(None, &[(1, 0, 100), (1, 1, 0)], |_, _| {}).add(None, &[], |_, _| {});
    let error = run(network.simulation, threads(1)).expect_err("zero latency");
    assert!(matches!(error, EngineError::ZeroLatencyWire { port: 1, .. }), "{error:?}");
    assert_eq!(error.to_string(), "the wire from port 1 of unit[0] to unit[1] has zero latency");

    let mut network = Network::default();
    network.add(None, &[(8, 0, 100)], |_, _| {});
    let error = run(network.simulation, threads(1)).expect_err("no such unit");
    assert_eq!(error.to_string(), "port 0 of unit[0] leads to unit 8, and there are 1");
}

#[test]
fn stop_at_simulates_everything_before_and_nothing_after() {
    for shards in [1, 2] {
        // The ball arrives at 1000, 2000, ...: one picosecond decides.
        for (stop, arrivals) in [(5_000, 4), (5_001, 5), (5_500, 5)] {
            let options = RunOptions { stop_at: Some(SimTime(stop)), ..threads(shards) };
            let (report, traces) = ping_pong(0, 1_000, 1_000_000).run(options);
            assert_eq!(report.outcome, Outcome::StoppedAt);
            assert_eq!(report.end, SimTime(stop));
            assert_eq!(traces[0].len() + traces[1].len(), arrivals, "stop at {stop}");
        }
        let options = RunOptions { stop_at: Some(SimTime(1_000_000)), ..threads(shards) };
        assert_eq!(ping_pong(0, 1_000, 10).run(options).0.outcome, Outcome::Finished);
    }
}

/// A ball that nobody may keep a record of: it flies for as long as the run lasts.
fn endless(latency: u64) -> Network {
    struct Player;
    impl Unit for Player {
        fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
            if window.start == SimTime::ZERO && inbox.is_empty() {
                out.send(PortId(0), SimTime::ZERO, Payload::Custom([0; 3]));
            }
            while let Some(message) = inbox.take() {
                out.send(PortId(0), message.time, message.payload);
            }
            NextWake::OnMessage
        }
        fn statistics(&self, sink: &mut StatisticSink) {
            sink.row(&SEEN, 0);
        }
        fn outstanding(&self) -> Option<String> {
            None
        }
    }
    let mut network = Network::default();
    for unit in 0..2 {
        let wires = vec![Wire { unit: UnitId(1 - unit), port: PortId(0), latency: SimTime(latency) }];
        let path = format!("player[{unit}]");
        network.simulation.units.push(UnitEntry { path, unit: Box::new(Player), wires, weight: 1 });
    }
    network
}

#[test]
fn the_wall_clock_and_an_interrupt_end_a_run_with_statistics() {
    for shards in [1, 2] {
        let options = RunOptions { max_wall: Some(Duration::from_millis(30)), ..threads(shards) };
        let (report, _) = endless(1_000).run(options);
        assert_eq!(report.outcome, Outcome::WallLimit);
        assert_eq!(report.statistics.rows.len(), 2);
        assert!(report.messages > 0);

        let interrupt = Arc::new(AtomicBool::new(false));
        let board = LiveBoard::default();
        let options =
            RunOptions { interrupt: Arc::clone(&interrupt), progress: Some(board.clone()), ..threads(shards) };
        let user = std::thread::spawn(move || {
            while board.windows() < 1_000 {
                std::thread::sleep(Duration::from_micros(200));
            }
            interrupt.store(true, Ordering::Relaxed);
            board.windows()
        });
        let (report, _) = endless(1_000).run(options);
        let seen = user.join().expect("it only watches");
        assert_eq!(report.outcome, Outcome::Interrupted);
        assert!(report.windows >= seen, "{} < {seen}", report.windows);
        assert_eq!(report.statistics.rows.len(), 2);
    }
}

#[test]
fn idle_time_costs_no_windows() {
    for shards in [1, 2] {
        let second = 1_000_000_000_000;
        let (report, traces) = ping_pong(second, 1_000, 3).run(threads(shards));
        assert_eq!(report.end, SimTime(second + 3_000));
        assert_eq!(traces[1][0].0, second + 1_000);
        // The first window, the serve, three arrivals.
        assert_eq!(report.windows, 5);
    }
}

#[test]
fn a_single_unit_without_wires_runs() {
    let mut network = Network::default();
    let mut left = 3;
    network.add(Some(10), &[], move |actions, _| {
        left -= 1;
        actions.wake = (left > 0).then_some(actions.now + SimTime(2_000_000));
    });
    let (report, _) = network.run(threads(4));
    assert_eq!((report.outcome, report.end), (Outcome::Finished, SimTime(4_000_010)));
    let (report, _) = Network::default().run(threads(2));
    assert_eq!((report.outcome, report.end), (Outcome::Finished, SimTime::ZERO));
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let (reference, traces) = random_network(11, 9).run(threads(1));
    let workers: Vec<_> =
        (0..6).map(|index| std::thread::spawn(move || random_network(11, 9).run(threads(1 + index % 3)))).collect();
    for worker in workers {
        let (report, others) = worker.join().expect("a run does not panic");
        assert!(others == traces);
        assert_eq!(report.windows, reference.windows);
    }
}

/// A unit that computes without an end does not keep the run: the report names it.
#[test]
fn a_unit_that_does_not_return_is_left_behind() {
    for shards in [1, 2] {
        let released = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&released);
        let mut network = Network::default();
        network.add(Some(1_000), &[(1, 0, 1_000)], move |_, _| {
            while !until.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        network.add(None, &[(0, 0, 1_000)], |_, _| {});
        let (report, _) = network.run(RunOptions { max_wall: Some(Duration::from_millis(20)), ..threads(shards) });
        assert_eq!((report.outcome, report.given_up.as_deref()), (Outcome::WallLimit, Some("unit[0]")));
        assert_eq!(report.end, SimTime(1_000));
        assert!(report.statistics.rows.is_empty());
        // Its thread ends with the test.
        released.store(true, Ordering::Relaxed);
    }
}
