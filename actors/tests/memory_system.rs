//! Crossbar, L2 slices and HBM stacks of a V100, wired and run by the engine, with requesters in place of SMs.

use balar_actors::catalogue::{BuildContext, PortMap, Surroundings, UnitDefinition};
use balar_actors::engine::{
    Inbox, NextWake, Outbox, Outcome, RunOptions, RunReport, Simulation, Unit, UnitEntry, Window, Wire, run,
};
use balar_actors::gpu::{crossbar, hbm_stack, l2_slice};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, Scope, words_of};
use balar_protocol::residency::Residency;
use balar_protocol::statistics::{StatisticDefinition, StatisticSink};
use balar_protocol::translation::Aperture;
use balar_protocol::{Payload, PortId, SimTime, UnitId};

const SMS: u32 = 80;
const SLICES: u32 = 32;
const STACKS: u32 = 4;
const WIRE: SimTime = SimTime::from_nanoseconds(20);
const BASE: u64 = 0x7000_0000_0000;
const CLOCK: &str = "1380 MHz";

const END: StatisticDefinition =
    StatisticDefinition { name: "end", unit: "ps", meaning: "when the last response came", maximum: true };
const LATENCY: StatisticDefinition =
    StatisticDefinition { name: "latency", unit: "ps", meaning: "of all responses", maximum: false };
const RESPONSES: StatisticDefinition =
    StatisticDefinition { name: "responses", unit: "response", meaning: "responses received", maximum: false };

/// What a requester asks for: request number i of requester r.
type Pattern = fn(u32, u64) -> (MemoryKind, u64, u8);

/// Keeps `depth` requests under way until `total` are answered.
struct Requester {
    number: u32,
    pattern: Pattern,
    depth: u64,
    total: u64,
    issued: u64,
    answered: u64,
    end: SimTime,
    latency: u64,
    sent_at: Vec<SimTime>,
}

impl Requester {
    fn issue(&mut self, at: SimTime, out: &mut Outbox) {
        if self.issued == self.total {
            return;
        }
        let (kind, line, sectors) = (self.pattern)(self.number, self.issued);
        let stores = kind == MemoryKind::Store;
        let request = MemoryRequest {
            line: BASE + line * 128,
            id: self.issued as u32,
            launch: 0,
            return_port: 0,
            data_bytes: if stores { sectors.count_ones() as u16 * 32 } else { 0 },
            written_words: if stores { words_of(sectors) } else { 0 },
            sectors,
            operations: 0,
            update_sectors: 0,
            kind,
            scope: Scope::Weak,
            aperture: Aperture::Device,
            is_far: false,
            residency: Residency::default(),
        };
        self.issued += 1;
        self.sent_at.push(at);
        out.send(PortId(0), at, Payload::Memory(MemoryMessage::Request(request)));
    }
}

impl Unit for Requester {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while self.issued < self.depth.min(self.total) {
            self.issue(window.start, out);
        }
        while let Some(message) = inbox.take() {
            let Payload::Memory(MemoryMessage::Response(response)) = message.payload else { continue };
            self.answered += 1;
            self.end = message.time;
            self.latency += (message.time - self.sent_at[response.id as usize]).0;
            self.issue(message.time, out);
        }
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        sink.row(&END, self.end.0);
        sink.row(&LATENCY, self.latency);
        sink.row(&RESPONSES, self.answered);
    }

    fn outstanding(&self) -> Option<String> {
        (self.answered < self.total).then(|| format!("{} of {} responses", self.answered, self.total))
    }
}

/// A RON struct of all parameters: those given, and the defaults of the rest.
fn parameters(definition: &UnitDefinition, given: &[(&str, &str)]) -> String {
    let value = |name: &str, default: Option<&'static str>| {
        let given = given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        given.or(default.map(str::to_owned)).unwrap_or_else(|| panic!("{name} has no default"))
    };
    let fields = definition.parameters.iter().map(|p| format!("{}: {}", p.name, value(p.name, p.default)));
    format!("({})", fields.collect::<Vec<_>>().join(", "))
}

fn build(definition: &UnitDefinition, given: &[(&str, &str)], ports: &PortMap, index: u32, row: u32) -> Box<dyn Unit> {
    let surroundings = &Surroundings::default();
    let context = BuildContext { path: "gpu.unit", part: "gpu", index, row_length: row, ports, unit: 0, surroundings };
    (definition.build)(&parameters(definition, given), &context).expect("a right unit")
}

/// Units: requesters, crossbar, slices, stacks.
fn simulation(sms: u32, depth: u64, total: u64, pattern: Pattern) -> Simulation {
    let clock = format!("{CLOCK:?}");
    let (crossbar_id, first_slice, first_stack) = (sms, sms + 1, sms + 1 + SLICES);
    let wire = |unit: u32, port: u32| Wire { unit: UnitId(unit), port: PortId(port as u16), latency: WIRE };
    let mut simulation = Simulation::default();
    let mut add = |path: String, unit: Box<dyn Unit>, wires: Vec<Wire>| {
        simulation.units.push(UnitEntry { path, unit, wires, weight: 1 });
    };
    for number in 0..sms {
        let requester = Requester {
            number,
            pattern,
            depth,
            total,
            issued: 0,
            answered: 0,
            end: SimTime::ZERO,
            latency: 0,
            sent_at: Vec::new(),
        };
        add(format!("gpu.sm[{number}]"), Box::new(requester), vec![wire(crossbar_id, number)]);
    }
    let row = |name: &'static str, count: u32| (0..count).map(move |i| (name.to_owned(), i));
    let ports = PortMap::new(row("sm", sms).chain(row("slice", SLICES)));
    let wires = (0..sms).map(|sm| wire(sm, 0)).chain((0..SLICES).map(|slice| wire(first_slice + slice, 0)));
    let unit = build(&crossbar::DEFINITION, &[("clock", &clock)], &ports, 0, 1);
    add("gpu.crossbar".to_owned(), unit, wires.collect());
    let of_stack = SLICES / STACKS;
    for slice in 0..SLICES {
        let ports = PortMap::new([("crossbar".to_owned(), 0), ("memory".to_owned(), 0)]);
        let wires = vec![wire(crossbar_id, sms + slice), wire(first_stack + slice / of_stack, slice % of_stack)];
        let unit = build(&l2_slice::DEFINITION, &[("clock", &clock)], &ports, slice, SLICES);
        add(format!("gpu.l2[{slice}]"), unit, wires);
    }
    for stack in 0..STACKS {
        let ports = PortMap::new(row("slice", of_stack));
        let wires = (0..of_stack).map(|port| wire(first_slice + stack * of_stack + port, 1)).collect();
        let given = [("clock", "\"877 MHz\""), ("capacity", "\"4 GiB\"")];
        add(format!("gpu.hbm[{stack}]"), build(&hbm_stack::DEFINITION, &given, &ports, stack, STACKS), wires);
    }
    simulation
}

fn go(sms: u32, depth: u64, total: u64, pattern: Pattern) -> RunReport {
    let report = run(simulation(sms, depth, total, pattern), RunOptions::default()).expect("an engine");
    assert_eq!(report.outcome, Outcome::Finished);
    report
}

fn sum(report: &RunReport, what: &str, prefix: &str) -> u64 {
    let rows = report.statistics.rows.iter();
    let rows = rows.filter(|row| row.what == what && row.location.starts_with(prefix));
    rows.filter(|row| !row.location.contains(".channel") && !row.location.contains(".slice")).map(|row| row.value).sum()
}

/// GB/s between the first request and the last response.
fn bandwidth(report: &RunReport, bytes: u64) -> f64 {
    let ends = report.statistics.rows.iter().filter(|row| row.what == "end").map(|row| row.value);
    bytes as f64 * 1000.0 / ends.max().expect("requesters") as f64
}

/// Requesters take turns in runs of 8 lines, as CTAs of 256 threads of 4 bytes do.
fn stream(requester: u32, i: u64) -> u64 {
    (i / 8 * u64::from(SMS) + u64::from(requester)) * 8 + i % 8
}

#[test]
fn streams_reach_the_bandwidth_of_a_v100() {
    let total = 4000;
    let bytes = u64::from(SMS) * total * 128;
    let read = go(SMS, 128, total, |r, i| (MemoryKind::Load, stream(r, i), 0b1111));
    let rate = bandwidth(&read, bytes);
    assert!((820.0..=895.0).contains(&rate), "read {rate:.0} GB/s; measured 867");
    assert_eq!(sum(&read, "sectors_read", "gpu.l2"), u64::from(SMS) * total * 4);
    assert_eq!(sum(&read, "sectors_read", "gpu.hbm"), u64::from(SMS) * total * 4);

    // Copy: lines that stay dirty in the L2 at the end are not written, so the bytes that moved are counted at the memory.
    let copy = go(SMS, 128, total, |r, i| match i % 2 {
        0 => (MemoryKind::Load, stream(r, i / 2), 0b1111),
        _ => (MemoryKind::Store, (1 << 24) + stream(r, i / 2), 0b1111),
    });
    let moved = (sum(&copy, "sectors_read", "gpu.hbm") + sum(&copy, "sectors_written", "gpu.hbm")) * 32;
    let rate = bandwidth(&copy, moved);
    assert!((740.0..=870.0).contains(&rate), "copy {rate:.0} GB/s; measured 809");
}

#[test]
fn latencies_of_a_lone_requester_are_those_of_a_v100() {
    // 4096 lines, 512 KiB: the first pass misses, the later ones hit.
    let lines = 4096;
    let chase: Pattern = |_, i| (MemoryKind::Load, (i * 1237) % 4096, 0b0001);
    let first = go(1, 1, lines, chase);
    let both = go(1, 1, 2 * lines, chase);
    let miss = sum(&first, "latency", "gpu.sm") as f64 / lines as f64 / 1000.0;
    let hit = (sum(&both, "latency", "gpu.sm") - sum(&first, "latency", "gpu.sm")) as f64 / lines as f64 / 1000.0;
    assert!((129.0..=137.0).contains(&hit), "L2 hit {hit:.1} ns; expected about 133 from an SM's port");
    assert!((265.0..=292.0).contains(&miss), "miss {miss:.1} ns; expected about 288 where every row conflicts");
}

#[test]
fn reads_that_stay_in_the_l2_reach_its_bandwidth() {
    let total = 4000;
    let report = go(SMS, 96, total, |r, i| (MemoryKind::Load, (u64::from(r) * 397 + i) % 8192, 0b1111));
    let rate = bandwidth(&report, u64::from(SMS) * total * 128) / 1.38;
    assert!((1500.0..=2048.0).contains(&rate), "{rate:.0} bytes a cycle; measured 1775");
}

#[test]
fn threads_do_not_change_a_row() {
    let pattern: Pattern = |r, i| {
        let line = stream(r, i / 2).wrapping_mul(2_654_435_761) % (1 << 18);
        (if i % 3 == 0 { MemoryKind::Store } else { MemoryKind::Load }, line, if i % 5 == 0 { 0b0011 } else { 0b1111 })
    };
    let rows = |threads| {
        let options = RunOptions { threads, ..RunOptions::default() };
        run(simulation(16, 64, 500, pattern), options).expect("an engine").statistics.rows
    };
    let one = rows(1);
    assert_eq!(one, rows(2));
    assert_eq!(one, rows(4));
}
