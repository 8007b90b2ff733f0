use super::super::tests::{CROSSBAR, MEMORY, NS, Sent, memory_and_crossbar};
use super::*;
use crate::catalogue::ParameterSet;
use crate::engine::{Bench, Unit};
use crate::test_support::{
    Arrival, check_cuts_and_states, counter, load, random_requests, request, requests, responses, store, with_context,
};
use balar_protocol::SimTime;
use balar_protocol::memory::ServedBy;

const FAR: PortId = PortId(2);
const NEAR: PortId = PortId(3);

fn parameters(parameters: &str) -> L2SliceParameters {
    L2SliceParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters")
}

/// A slice at 1 GHz with another partition behind wires of 1 ns.
fn slice(text: &str) -> (L2Slice, Bench) {
    let ports = [("crossbar", 0), ("memory", 0), ("far", 0), ("near", 0)];
    let unit = with_context(&ports, 1, |context| L2Slice::new(parameters(text), context));
    (unit.expect("slice"), Bench::new(&[SimTime(NS); 4]))
}

/// Runs until `end`; memory and the other partition answer `latency` later.
fn run(unit: &mut L2Slice, bench: &mut Bench, latency: u64, end: u64) -> Sent {
    let mut all = Vec::new();
    while bench.asleep_since() < SimTime(end * NS) {
        let until = bench.asleep_since() + SimTime(10 * NS);
        let sent = bench.run(unit, SimTime(10 * NS), until);
        for (time, port, asked) in requests(&sent) {
            let response = MemoryMessage::Response(asked.response(0b1111, ServedBy::L2));
            bench.deliver(time + SimTime(latency * NS), port, Payload::Memory(response));
        }
        all.extend(sent);
    }
    all
}

/// (number, cycle) of the answers through a port.
fn answers(sent: &Sent, through: PortId) -> Vec<(u32, u64)> {
    let answers = responses(sent).into_iter().filter(|(_, port, _)| *port == through);
    answers.map(|(time, _, response)| (response.id, time.0 / NS)).collect()
}

/// (line, sectors) that the other partition is told to forget.
fn forgotten(sent: &Sent) -> Vec<(u64, u8)> {
    let picked = sent.iter().filter_map(|(_, port, payload)| match payload {
        Payload::Memory(MemoryMessage::Forget { line, sectors }) => {
            assert_eq!(*port, NEAR);
            Some((*line, *sectors))
        }
        _ => None,
    });
    picked.collect()
}

fn far(request: MemoryRequest) -> MemoryRequest {
    MemoryRequest { is_far: true, ..request }
}

/// Asks for a copy, as the other partition does.
fn for_a_copy(request: MemoryRequest) -> MemoryRequest {
    MemoryRequest { return_port: COPY, ..request }
}

#[test]
fn a_load_of_the_other_partition_leaves_a_copy_until_that_is_out_of_date() {
    let (mut unit, mut bench) = slice("hit_latency: 40, miss_latency: 12, fill_latency: 30");
    for (at, id) in [(5, 1), (300, 2), (400, 3)] {
        bench.deliver(SimTime(at * NS), CROSSBAR, request(far(load(0x1000, id, 0b0011))));
    }
    let forget = MemoryMessage::Forget { line: 0x1000, sectors: 0b0010 };
    bench.deliver(SimTime(350 * NS), FAR, Payload::Memory(forget));
    let sent = run(&mut unit, &mut bench, 100, 800);
    assert!(requests(&sent).iter().all(|(_, port, asked)| *port == FAR && !asked.is_far));
    let latency = 12 + 1 + 100 + 30 + 1;
    assert_eq!(answers(&sent, CROSSBAR), [(1, 5 + latency), (2, 300 + 40 + 1), (3, 400 + latency)]);
    let read = ["sectors_read", "sector_hits_read", "far_fills", "fills", "sectors_filled"];
    assert_eq!(read.map(|name| counter(&unit, name)), [6, 3, 2, 0, 0]);
    assert!(unit.outstanding().is_none());
}

#[test]
fn stores_and_atomics_are_passed_on_and_take_the_copy_away() {
    let (mut unit, mut bench) = slice("");
    let atomic = MemoryRequest { kind: MemoryKind::Atomic, operations: 3, data_bytes: 12, ..load(0x80, 3, 0b1) };
    let asked = [load(0x80, 1, 0b1111), store(0x80, 2, 0b0011), atomic, load(0x80, 4, 0b1100), load(0x80, 5, 0b0001)];
    for (at, asked) in asked.into_iter().enumerate() {
        let asked = MemoryRequest { return_port: 7, ..asked };
        bench.deliver(SimTime((1 + at as u64 * 300) * NS), CROSSBAR, request(far(asked)));
    }
    let sent = run(&mut unit, &mut bench, 50, 1800);
    let below: Vec<_> = requests(&sent).iter().map(|(_, port, asked)| (*port, asked.kind, asked.return_port)).collect();
    let copy = (FAR, MemoryKind::Load, COPY);
    assert_eq!(below, [copy, (FAR, MemoryKind::Store, 7), (FAR, MemoryKind::Atomic, 7), copy]);
    let returned = responses(&sent);
    assert!(returned.iter().all(|(_, port, response)| (*port, response.return_port) == (CROSSBAR, 7)));
    assert_eq!(returned.iter().map(|(_, _, response)| response.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn strong_loads_find_no_copies_where_those_are_for_weak_ones() {
    for (copies, below) in [("OfAllLoads", 1), ("OfWeakLoads", 2)] {
        let (mut unit, mut bench) = slice(&format!("copies: {copies}"));
        for (at, id) in [(1, 1), (300, 2)] {
            let strong = MemoryRequest { scope: Scope::Device, ..load(0x80, id, 0b1) };
            bench.deliver(SimTime(at * NS), CROSSBAR, request(far(strong)));
        }
        let sent = run(&mut unit, &mut bench, 50, 600);
        assert_eq!((requests(&sent).len(), answers(&sent, CROSSBAR).len()), (below, 2), "{copies}");
    }
}

#[test]
fn the_owner_says_when_copies_are_out_of_date() {
    // One set of two ways.
    let (mut unit, mut bench) = slice(r#"capacity: "256 B", ways: 2"#);
    let mut at = 1;
    let mut ask = |port, asked| {
        bench.deliver(SimTime(at * NS), port, request(asked));
        at += 300;
        run(&mut unit, &mut bench, 50, at - 1)
    };
    let copied = ask(NEAR, for_a_copy(load(0, 1, 0b0110)));
    assert_eq!((answers(&copied, NEAR).len(), forgotten(&copied)), (1, vec![]));
    assert_eq!(forgotten(&ask(CROSSBAR, store(0, 2, 0b0011))), [(0, 0b0010)]);
    assert_eq!(forgotten(&ask(CROSSBAR, store(0, 3, 0b0011))), [], "it has no copy of these any more");
    assert_eq!(forgotten(&ask(NEAR, store(0, 4, 0b0100))), [], "it has taken its own away");
    ask(NEAR, for_a_copy(load(0x80, 5, 0b1000)));
    ask(CROSSBAR, load(0x100, 6, 0b0001));
    assert_eq!(forgotten(&ask(CROSSBAR, load(0x180, 7, 0b0001))), [(0x80, 0b1000)], "the line was replaced");
}

#[test]
fn answers_to_the_other_partition_take_its_wires() {
    let (mut unit, mut bench) = slice("far_bytes_per_cycle: 32, bytes_per_cycle: 64");
    run(&mut unit, &mut bench, 50, 10);
    for line in 0..3 {
        bench.deliver(SimTime(20 * NS), CROSSBAR, request(store(line * 128, 0, 0b1111)));
        bench.deliver(SimTime(200 * NS), NEAR, request(for_a_copy(load(line * 128, line as u32, 0b1111))));
    }
    let sent = run(&mut unit, &mut bench, 50, 500);
    let times: Vec<u64> = answers(&sent, NEAR).iter().map(|(_, time)| *time).collect();
    assert_eq!([times[1] - times[0], times[2] - times[1]], [4, 4], "128 bytes at 32 a cycle");
}

#[test]
fn mistakes_in_the_wiring_are_errors() {
    for (ports, text, key) in [
        (&["far"][..], "", "near"),
        (&["near"], "", "far"),
        (&["near", "far"], r#"capacity: "128 B", ways: 1"#, "ways"),
    ] {
        let ports: Vec<(&str, u32)> = ["crossbar", "memory"].iter().chain(ports).map(|port| (*port, 0)).collect();
        let error = with_context(&ports, 1, |context| L2Slice::new(parameters(text), context).map(drop));
        let error = error.expect_err(key).to_string();
        assert!(error.contains(key), "{error}");
    }
}

/// A random script of the crossbar, and one of the other partition.
fn script(seed: u64, count: u32) -> Vec<Arrival> {
    let of_crossbar = random_requests(seed, count, 60, 1500, 1).into_iter().map(|(time, _, payload)| {
        let Payload::Memory(MemoryMessage::Request(asked)) = payload else { unreachable!("a request") };
        // Half of the lines belong to the other partition.
        (time, CROSSBAR, request(MemoryRequest { is_far: asked.line / 128 % 2 == 1, ..asked }))
    });
    let of_other = random_requests(seed + 1, count, 60, 1500, 1).into_iter().map(|(time, _, payload)| {
        let Payload::Memory(MemoryMessage::Request(asked)) = payload else { unreachable!("a request") };
        let return_port = if asked.kind == MemoryKind::Load { COPY } else { 0 };
        (time, NEAR, request(MemoryRequest { line: asked.line & !128, return_port, ..asked }))
    });
    of_crossbar.chain(of_other).collect()
}

#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    for parameters in [
        r#"capacity: "4 KiB", ways: 4"#,
        r#"capacity: "2 KiB", ways: 2, mshr_entries: 1, mshr_merges: 1, write_back_entries: 1, answer_queue: 1, atomic_queue: 1,
           copies: OfWeakLoads"#,
    ] {
        let build = || Box::new(slice(parameters).0) as Box<dyn Unit>;
        check_cuts_and_states(build, 4, SimTime(NS), script(3, 400), memory_and_crossbar(0), SimTime(90_000 * NS));
    }
}

/// Two slices with one entry in each queue, whose requesters ask for lines of both: neither waits for the other without an end.
#[test]
fn two_partitions_do_not_wait_for_each_other() {
    let text = r#"capacity: "256 B", ways: 2, mshr_entries: 1, mshr_merges: 1, write_back_entries: 1, answer_queue: 1, atomic_queue: 1"#;
    let mut slices = [slice(text), slice(text)];
    let (mut asked, mut answered) = (0, 0);
    for (side, (_, bench)) in slices.iter_mut().enumerate() {
        for (time, port, payload) in random_requests(side as u64, 300, 40, 500, 1) {
            let Payload::Memory(MemoryMessage::Request(of_script)) = payload else { unreachable!("a request") };
            let is_far = of_script.line / 128 % 2 != side as u64;
            bench.deliver(time, port, request(MemoryRequest { is_far, ..of_script }));
            asked += 1;
        }
    }
    for window in 1..20_000 {
        let mut crossing = Vec::new();
        for (side, (unit, bench)) in slices.iter_mut().enumerate() {
            for (time, port, payload) in bench.run(unit, SimTime(10 * NS), SimTime(window * 10 * NS)) {
                match port {
                    CROSSBAR => answered += usize::from(matches!(payload, Payload::Memory(MemoryMessage::Response(_)))),
                    MEMORY => {
                        for (time, port, payload) in memory_and_crossbar(0)(&(time, port, payload)) {
                            bench.deliver(time, port, payload);
                        }
                    }
                    _ => crossing.push((
                        1 - side,
                        time + SimTime(10 * NS),
                        if port == FAR { NEAR } else { FAR },
                        payload,
                    )),
                }
            }
        }
        for (side, time, port, payload) in crossing {
            slices[side].1.deliver(time, port, payload);
        }
    }
    assert_eq!(answered, asked);
    assert!(slices.iter().all(|(unit, _)| unit.outstanding().is_none()));
}
