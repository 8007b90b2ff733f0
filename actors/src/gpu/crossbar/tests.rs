use super::*;
use crate::engine::Bench;
use crate::test_support::{counter, load, request, requests, responses, store, with_context};
use balar_protocol::SimTime;
use balar_protocol::memory::ServedBy;

const NS: u64 = 1000;

/// Two SMs (ports 0, 1), a copy engine (2) and four slices (3 to 6); a clock of 1 GHz makes a cycle 1 ns.
fn crossbar(parameters: &str) -> (Crossbar, Bench) {
    let ports = [("sm", 0), ("sm", 1), ("copy", 0), ("slice", 0), ("slice", 1), ("slice", 2), ("slice", 3)];
    let parameters = CrossbarParameters::from_ron(parameters).expect("parameters");
    let unit = with_context(&ports, 1, |context| Crossbar::new(parameters, context)).expect("crossbar");
    (unit, Bench::new(&[SimTime(NS); 7]))
}

const PLAIN: &str = r#"(clock: "1 GHz", request_latency: 10, response_latency: 20, address_hash: Modulo)"#;

#[test]
fn a_request_goes_to_the_slice_of_its_line_and_the_response_back() {
    let (mut unit, mut bench) = crossbar(PLAIN);
    bench.deliver(SimTime(5 * NS), PortId(1), request(load(2 * 128, 7, 0b1111)));
    let sent = requests(&bench.run(&mut unit, SimTime(4 * NS), SimTime(40 * NS)));
    assert_eq!(sent.len(), 1);
    let (time, port, forwarded) = sent[0];
    assert_eq!((time, port), (SimTime(16 * NS), PortId(5)), "one flit, 10 cycles, 1 ns of wire");
    assert_eq!((forwarded.return_port, forwarded.id), (1, 7));

    let response = forwarded.response(0b1111, ServedBy::L2);
    bench.deliver(SimTime(50 * NS), PortId(5), Payload::Memory(MemoryMessage::Response(response)));
    let sent = responses(&bench.run(&mut unit, SimTime(4 * NS), SimTime(100 * NS)));
    assert_eq!(sent.len(), 1);
    // Four flits of data: the last leaves 3 cycles after the first.
    assert_eq!((sent[0].0, sent[0].1, sent[0].2.id), (SimTime(74 * NS), PortId(1), 7));
    assert_eq!(counter(&unit, "flits_response"), 4);
    assert_eq!(counter(&unit, "packet_latency_request"), 10);
    assert!(unit.outstanding().is_none());
}

#[test]
fn a_store_of_a_line_takes_five_flits_of_the_output() {
    let (mut unit, mut bench) = crossbar(PLAIN);
    for id in 0..3 {
        bench.deliver(SimTime::ZERO, PortId(0), request(store(0, id, 0b1111)));
    }
    let sent = requests(&bench.run(&mut unit, SimTime(8 * NS), SimTime(80 * NS)));
    let times: Vec<u64> = sent.iter().map(|(time, _, _)| time.0 / NS).collect();
    assert_eq!(times, [15, 20, 25], "1 ns of wire after cycles 4 + 10, 9 + 10, 14 + 10");
    assert_eq!(counter(&unit, "output_busy_cycles_request"), 15);
}

#[test]
fn an_output_serves_its_inputs_in_turn() {
    let (mut unit, mut bench) = crossbar(PLAIN);
    for id in 0..4 {
        bench.deliver(SimTime::ZERO, PortId(0), request(store(0, id, 0b1111)));
    }
    for id in 10..12 {
        bench.deliver(SimTime(NS), PortId(1), request(store(0, id, 0b1111)));
    }
    bench.deliver(SimTime(NS), PortId(2), request(store(0, 20, 0b1111)));
    let sent = requests(&bench.run(&mut unit, SimTime(3 * NS), SimTime(80 * NS)));
    let order: Vec<u32> = sent.iter().map(|(_, _, request)| request.id).collect();
    assert_eq!(order, [0, 10, 20, 1, 11, 2, 3]);
}

#[test]
fn without_credits_an_output_stands_still() {
    let (mut unit, mut bench) =
        crossbar(r#"(clock: "1 GHz", slice_queue: 2, request_latency: 10, address_hash: Modulo)"#);
    for id in 0..4 {
        bench.deliver(SimTime::ZERO, PortId(0), request(load(0, id, 1)));
    }
    bench.deliver(SimTime::ZERO, PortId(0), request(load(128, 9, 1)));
    let sent = requests(&bench.run(&mut unit, SimTime(4 * NS), SimTime(40 * NS)));
    let ids: Vec<u32> = sent.iter().map(|(_, _, request)| request.id).collect();
    assert_eq!(ids.iter().filter(|id| **id < 4).count(), 2, "two credits, two packets");
    assert!(ids.contains(&9), "another slice is not held up");
    assert!(unit.outstanding().is_some());

    bench.deliver(SimTime(50 * NS), PortId(3), Payload::Memory(MemoryMessage::Credit { count: 1 }));
    let sent = requests(&bench.run(&mut unit, SimTime(4 * NS), SimTime(90 * NS)));
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].0, sent[0].2.id), (SimTime(61 * NS), 2), "granted when the credit comes");
    assert!(counter(&unit, "credit_stall_cycles") >= 40);
}

#[test]
fn the_window_length_changes_nothing() {
    let run = |window: u64| {
        let (mut unit, mut bench) = crossbar(r#"(clock: "1 GHz", slice_queue: 3)"#);
        for i in 0..60u32 {
            let line = u64::from(i * 7 % 13) * 128;
            bench.deliver(SimTime(u64::from(i / 3) * NS), PortId((i % 3) as u16), request(store(line, i, 0b0011)));
        }
        for i in 0..40u64 {
            for slice in 3..7 {
                let credit = Payload::Memory(MemoryMessage::Credit { count: 1 });
                bench.deliver(SimTime(20 * NS + i * 3 * NS), PortId(slice), credit);
            }
        }
        let mut sent = requests(&bench.run(&mut unit, SimTime(window * NS), SimTime(400 * NS)));
        sent.sort_by_key(|(time, port, _)| (*time, *port));
        (sent, counter(&unit, "credit_stall_cycles"), counter(&unit, "packet_latency_request"))
    };
    let one = run(1);
    assert_eq!(one.0.len(), 60);
    assert_eq!(one, run(8));
    assert_eq!(one, run(400));
}

#[test]
fn contradictions_are_errors() {
    let parameters = CrossbarParameters::from_ron(r#"(clock: "1 GHz", input_ports: 0)"#).expect("parameters");
    let error = with_context(&[("sm", 0), ("slice", 0)], 1, |context| Crossbar::new(parameters, context).map(drop));
    assert!(error.expect_err("no input ports").to_string().contains("input_ports"));
}

#[test]
fn pinned_host_memory_is_reached_through_the_copy_engine() {
    use balar_host::memory::{HOST_BASE, MANAGED_BASE};
    let (mut unit, mut bench) = crossbar(PLAIN);
    bench.deliver(SimTime(5 * NS), PortId(1), request(load(HOST_BASE + 128, 7, 0b0011)));
    bench.deliver(SimTime(5 * NS), PortId(0), request(load(MANAGED_BASE, 8, 0b0011)));
    let sent = requests(&bench.run(&mut unit, SimTime(4 * NS), SimTime(40 * NS)));
    let [pinned, managed] = [7, 8].map(|id| *sent.iter().find(|sent| sent.2.id == id).expect("sent on"));
    assert_eq!((pinned.0, pinned.1, pinned.2.return_port), (SimTime(16 * NS), PortId(2), 1));
    assert!(managed.1.0 >= 3, "managed memory lies in device memory");

    let response = pinned.2.response(0, ServedBy::HostMemory);
    bench.deliver(SimTime(50 * NS), PortId(2), Payload::Memory(MemoryMessage::Response(response)));
    let sent = responses(&bench.run(&mut unit, SimTime(4 * NS), SimTime(100 * NS)));
    assert_eq!(
        sent.iter().map(|sent| (sent.0, sent.1, sent.2.id)).collect::<Vec<_>>(),
        [(SimTime(71 * NS), PortId(1), 7)]
    );
}
