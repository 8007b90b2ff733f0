//! Mistakes that units between a client and a server are prone to, planted one by one. Each is found on the bench with the text of
//! its rule. In a run of the whole node, it is named with the unit that made it, and never blamed on the SM that suffers from it.

use balar_actors::catalogue::{BuildContext, BuildError, ParameterSet, PortDefinition, UnitDefinition, nothing};
use balar_actors::engine::{Inbox, NextWake, Outbox, Unit, Window};
use balar_actors::prototyping::{Interposer, Io, MemoryBench, Pace, definition, load, store};
use balar_experiments::{ExperimentError, run};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, ServedBy};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Frequency, Payload, PortId, Protocol, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Acknowledgements without a mistake, before the one with it: programs have begun by then.
const RIGHT_ONES: u64 = 2;
/// Cycles that a store is kept for.
const KEPT: u64 = 50;

balar_actors::parameters! {
    /// Of a buffer with a mistake.
    struct FaultyBufferParameters {
        /// clock
        clock: Frequency,
        /// its mistake: lost, doubled, misnumbered, missed_wake, load_without_flush, early, invented; none otherwise
        mistake: String,
    }
}

balar_protocol::counters! {
    /// Of a buffer with a mistake.
    struct FaultyBufferCounters {
        /// stores acknowledged
        acknowledged: "request",
    }
}

/// Keeps each store for a while, and sends it on before a load of its line.
#[derive(Debug, Serialize, Deserialize)]
struct FaultyBuffer {
    stores: VecDeque<(u64, MemoryRequest)>,
}

impl Interposer for FaultyBuffer {
    const NAME: &'static str = "FaultyBuffer";
    const SUMMARY: &'static str = "a buffer with a mistake";
    type Parameters = FaultyBufferParameters;
    type Counters = FaultyBufferCounters;
    type Own = MemoryRequest;

    fn new(_: &FaultyBufferParameters) -> FaultyBuffer {
        FaultyBuffer { stores: VecDeque::new() }
    }

    fn pace(parameters: &FaultyBufferParameters) -> Pace {
        Pace::new(parameters.clock, 2)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        if request.kind == MemoryKind::Store {
            if io.parameters.mistake == "early" {
                io.answer(&request, ServedBy::Intermediate);
            }
            return self.stores.push_back((io.cycle() + KEPT, request));
        }
        while io.parameters.mistake != "load_without_flush"
            && let Some(at) = self.stores.iter().position(|(_, store)| store.line == request.line)
        {
            self.send(at, io);
        }
        if io.parameters.mistake == "invented" && request.kind == MemoryKind::Load {
            return io.answer(&request, ServedBy::Intermediate);
        }
        io.forward(request);
    }

    fn on_response(&mut self, response: MemoryResponse, store: MemoryRequest, io: &mut Io<Self>) {
        if io.parameters.mistake == "early" {
            return;
        }
        io.counters.acknowledged += 1;
        let mistake = if io.counters.acknowledged > RIGHT_ONES { io.parameters.mistake.as_str() } else { "" };
        match mistake {
            "lost" => {}
            "misnumbered" => io.answer(&MemoryRequest { id: store.id ^ 0x8000, ..store }, response.served_by),
            "doubled" => (0..2).for_each(|_| io.answer(&store, response.served_by)),
            _ => io.answer(&store, response.served_by),
        }
    }

    fn next_wake(&self, parameters: &FaultyBufferParameters) -> Option<u64> {
        let wake = self.stores.front().map(|(deadline, _)| *deadline);
        wake.filter(|_| parameters.mistake != "missed_wake")
    }

    fn on_wake(&mut self, io: &mut Io<Self>) {
        self.send(0, io);
    }
}

impl FaultyBuffer {
    fn send(&mut self, at: usize, io: &mut Io<Self>) {
        if let Some((_, store)) = self.stores.remove(at) {
            io.ask(store, store);
        }
    }
}

const FAULTY_BUFFER: UnitDefinition = definition::<FaultyBuffer>();

balar_actors::parameters! {
    /// Of a relay that is too early.
    struct EarlyRelayParameters {
        /// clock
        clock: Frequency,
        /// its only mistake
        mistake: String,
    }
}

/// Passes everything, responses a picosecond before they arrive. The kit keeps the time of an interposer: only a unit without it can
/// do so.
struct EarlyRelay {
    upstream: PortId,
    downstream: PortId,
}

impl Unit for EarlyRelay {
    fn advance(&mut self, _: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.take() {
            let is_answer = matches!(message.payload, Payload::Memory(MemoryMessage::Response(_)));
            let to = if message.port == self.upstream { self.downstream } else { self.upstream };
            out.send(to, message.time - SimTime(u64::from(is_answer)), message.payload);
        }
        NextWake::OnMessage
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

fn build_early_relay(_: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let (upstream, downstream) = (context.required_port("upstream")?, context.required_port("downstream")?);
    Ok(Box::new(EarlyRelay { upstream, downstream }))
}

const EARLY_RELAY: UnitDefinition = UnitDefinition {
    name: "EarlyRelay",
    summary: "a relay that sends into the past",
    parameters: EarlyRelayParameters::DEFINITIONS,
    check: EarlyRelayParameters::check,
    ports: &[
        PortDefinition::server("upstream", Protocol::Memory, "the client"),
        PortDefinition::client("downstream", Protocol::Memory, "the server"),
    ],
    counters: &[],
    provides: nothing,
    weight: 2,
    build: build_early_relay,
};

/// What the bench says of a unit with this mistake; `None` where it finds nothing.
fn on_the_bench(kind: &'static UnitDefinition, mistake: &str) -> Option<String> {
    let mut bench = MemoryBench::new(kind, &format!("clock: \"1 GHz\", mistake: {mistake:?}"));
    for number in 0..4 {
        bench.request(100 + 10 * u64::from(number), store(number, 0x100 * u64::from(number), 32));
    }
    bench.request(400, store(4, 0x100, 32)).request(410, load(5, 0x100, 4));
    bench.try_run().err().map(|broken| broken.to_string())
}

/// The V100 with such a unit at each SM.
fn topology(kind: &UnitDefinition, mistake: &str) -> PathBuf {
    let text = include_str!("../topologies/v100_write_buffer.ron");
    assert!(text.contains("WriteBuffer("), "the topology has no buffer");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{mistake}.ron"));
    let with = format!("{}(mistake: {mistake:?}, ", kind.name);
    std::fs::write(&path, text.replacen("WriteBuffer(", &with, 1)).expect("a file");
    path
}

/// What a run of the node says of a unit with this mistake; `None` where the program comes to its end with the right result.
fn in_a_run(kind: &'static UnitDefinition, mistake: &str) -> Option<String> {
    let topology = topology(kind, mistake);
    let result = run(&topology.to_string_lossy(), "vectoradd", &[("elements", "4096")], &[kind]);
    result.err().map(|error| {
        assert!(matches!(error, ExperimentError::NotCompleted { .. }), "{error}");
        error.to_string()
    })
}

#[test]
fn a_buffer_without_a_mistake_passes() {
    assert_eq!(on_the_bench(&FAULTY_BUFFER, "none"), None);
    assert_eq!(in_a_run(&FAULTY_BUFFER, "none"), None);
}

/// (kind, mistake, what the bench says, what the run says)
type Planted = (&'static UnitDefinition, &'static str, &'static str, Option<[&'static str; 2]>);

const PLANTED: [Planted; 8] = [
    (
        &FAULTY_BUFFER,
        "lost",
        "the unit has not answered request 2 (store of line 0x200) at its port upstream since 120000 ps",
        Some(["\n  gpu.buffer[", ": has not answered request "]),
    ),
    (
        &FAULTY_BUFFER,
        "doubled",
        "the unit answered request 2 (store of line 0x200) at its port upstream twice; rule: ",
        Some(["its end: gpu.buffer[", " at its port upstream twice; rule: each request is answered once"]),
    ),
    (
        &FAULTY_BUFFER,
        "misnumbered",
        "the unit answered request 32770 (store of line 0x200) at its port upstream, which is not under way",
        Some(["its end: gpu.buffer[", " at its port upstream, which is not under way"]),
    ),
    (
        &FAULTY_BUFFER,
        "missed_wake",
        "and it has not asked to be woken",
        Some(["\n  gpu.buffer[", ": has not answered request "]),
    ),
    (
        &EARLY_RELAY,
        "past",
        "before the window's start at ",
        Some(["its end: gpu.buffer[", "before the window's start at "]),
    ),
    (
        &FAULTY_BUFFER,
        "early",
        "the unit acknowledged the store 0 of line 0x0, which had arrived at 100000 ps, before what it wrote was sent downstream",
        Some([
            "its end: gpu.buffer[",
            ", before what it wrote was sent downstream; rule: an acknowledgement says that",
        ]),
    ),
    (
        &FAULTY_BUFFER,
        "invented",
        "the unit answered the load 5 of line 0x100, and nothing that it has asked for downstream has brought sector 0",
        Some(["its end: gpu.buffer[", ", and nothing that it has asked for downstream has brought sector"]),
    ),
    // The program reads no line that it has just written: there is nothing that a run could see.
    (&FAULTY_BUFFER, "load_without_flush", "and kept the store 4 of the same sectors", None),
];

#[test]
fn each_is_found_on_the_bench() {
    for (kind, mistake, says, _) in PLANTED {
        let found = on_the_bench(kind, mistake).unwrap_or_else(|| panic!("{mistake} is not found"));
        assert!(found.contains(says), "{mistake}: {found}");
    }
}

#[test]
fn a_run_names_the_unit_that_made_it() {
    for (kind, mistake, _, says) in PLANTED {
        let found = in_a_run(kind, mistake);
        assert_eq!(found.is_some(), says.is_some(), "{mistake}: {found:?}");
        for text in says.into_iter().flatten() {
            let found = found.as_deref().unwrap_or_default();
            assert!(found.contains(text), "{mistake}: {found}");
        }
    }
}

#[test]
fn the_exit_code_says_whose_mistake_it_is() {
    for (mistake, code) in [("none", 0), ("doubled", 5), ("lost", 4)] {
        let topology = topology(&FAULTY_BUFFER, mistake).into_os_string();
        let rest = ["--workload", "vectoradd:elements=4096"].map(Into::into);
        let arguments = ["balar-examples".into(), "--topology".into(), topology].into_iter().chain(rest);
        let status = balar_cli::app::main_with(arguments, &[&FAULTY_BUFFER]);
        assert_eq!(status.code(), code, "{mistake}");
    }
}
