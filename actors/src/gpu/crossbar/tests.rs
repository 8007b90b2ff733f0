use super::*;
use crate::engine::Bench;
use crate::test_support::{
    Arrival, Numbers, check_cuts_and_states, counter, load, random_requests, request, requests, responses, store,
    with_context,
};
use balar_protocol::SimTime;
use balar_protocol::memory::{Credits, ServedBy};

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
fn a_store_of_a_line_takes_four_flits_of_the_output() {
    let (mut unit, mut bench) = crossbar(PLAIN);
    for id in 0..3 {
        bench.deliver(SimTime::ZERO, PortId(0), request(store(0, id, 0b1111)));
    }
    let sent = requests(&bench.run(&mut unit, SimTime(8 * NS), SimTime(80 * NS)));
    let times: Vec<u64> = sent.iter().map(|(time, _, _)| time.0 / NS).collect();
    assert_eq!(times, [14, 18, 22], "1 ns of wire after cycles 3 + 10, 7 + 10, 11 + 10");
    assert_eq!(counter(&unit, "output_busy_cycles_request"), 12);
}

/// The second port of a copy engine takes as many times the flits of an SM's.
#[test]
fn a_copy_engine_has_a_wider_port() {
    let ports: Vec<_> =
        [("sm", 0), ("copy", 0), ("copy", 1)].into_iter().chain((0..4).map(|slice| ("slice", slice))).collect();
    let last = |port: u16, width: u32| {
        let parameters = PLAIN.replace(')', &format!(", copy_width: {width})"));
        let parameters = CrossbarParameters::from_ron(&parameters).expect("parameters");
        let mut unit = with_context(&ports, 1, |context| Crossbar::new(parameters, context)).expect("crossbar");
        let mut bench = Bench::new(&[SimTime(NS); 7]);
        for id in 0..8 {
            let response = MemoryRequest { return_port: port, ..load(u64::from(id) * 128, id, 0b1111) };
            let response = response.response(0b1111, ServedBy::L2);
            let slice = PortId(3 + id as u16 % 4);
            bench.deliver(SimTime::ZERO, slice, Payload::Memory(MemoryMessage::Response(response)));
        }
        let sent = responses(&bench.run(&mut unit, SimTime(4 * NS), SimTime(200 * NS)));
        assert_eq!(sent.len(), 8);
        sent.iter().map(|(time, ..)| time.0 / NS).max()
    };
    // 32 flits at one a cycle, by a port of four flits a cycle, and by one that takes what the slices send.
    assert_eq!([last(0, 4), last(1, 4), last(2, 1)], [Some(31 + 20 + 1); 3]);
    assert_eq!(last(2, 4), Some(7 + 20 + 1));
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

    bench.deliver(SimTime(50 * NS), PortId(3), Payload::Memory(MemoryMessage::Credit(Credits::ONE)));
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
                let credit = Payload::Memory(MemoryMessage::Credit(Credits::ONE));
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
    let pinned = MemoryRequest { aperture: Aperture::Host, ..load(HOST_BASE + 128, 7, 0b0011) };
    bench.deliver(SimTime(5 * NS), PortId(1), request(pinned));
    bench.deliver(SimTime(5 * NS), PortId(0), request(load(MANAGED_BASE, 8, 0b0011)));
    let sent = requests(&bench.run(&mut unit, SimTime(4 * NS), SimTime(40 * NS)));
    let [pinned, managed] = [7, 8].map(|id| *sent.iter().find(|sent| sent.2.id == id).expect("sent on"));
    assert_eq!((pinned.0, pinned.1, pinned.2.return_port), (SimTime(16 * NS), PortId(2), 1));
    assert!(managed.1.0 >= 3, "what the translation does not send to the host lies in device memory");

    let response = pinned.2.response(0, ServedBy::HostMemory);
    bench.deliver(SimTime(50 * NS), PortId(2), Payload::Memory(MemoryMessage::Response(response)));
    let sent = responses(&bench.run(&mut unit, SimTime(4 * NS), SimTime(100 * NS)));
    assert_eq!(
        sent.iter().map(|sent| (sent.0, sent.1, sent.2.id)).collect::<Vec<_>>(),
        [(SimTime(71 * NS), PortId(1), 7)]
    );
}

/// Three requesters, slices that answer late and give credits in batches, and pinned memory behind the copy engine.
#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    let mut script = random_requests(2, 900, 200, 1000, 3);
    for (i, (time, ..)) in script.clone().into_iter().enumerate().step_by(9) {
        let pinned = load(balar_host::memory::HOST_BASE + 128 * i as u64, i as u32, 0b1111);
        let pinned = MemoryRequest { aperture: Aperture::Host, ..pinned };
        script.push((time, PortId(i as u16 % 2), request(pinned)));
    }
    let mut numbers = Numbers::new(3);
    let others = |(time, port, payload): &Arrival| match payload {
        Payload::Memory(MemoryMessage::Request(asked)) => {
            let response = MemoryMessage::Response(asked.response(0, ServedBy::L2));
            let mut answers = vec![(*time + SimTime((5 + numbers.below(60)) * NS), *port, Payload::Memory(response))];
            if port.0 >= 3 {
                let credit = Payload::Memory(MemoryMessage::Credit(Credits::ONE));
                answers.push((*time + SimTime(9 * NS), *port, credit));
            }
            answers
        }
        _ => Vec::new(),
    };
    let parameters =
        r#"(clock: "1312 MHz", slice_queue: 3, request_queue: 9, response_queue: 20, response_header_flits: 1)"#;
    let build = || {
        let (mut unit, _) = crossbar(parameters);
        (0..2).for_each(|sm| unit.requests.count_places(sm));
        (0..4).for_each(|slice| unit.responses.count_places(slice));
        Box::new(unit) as Box<dyn Unit>
    };
    check_cuts_and_states(build, 7, SimTime(NS), script, others, SimTime(9000 * NS));
}

/// The credits for `port` among what was sent: when, and how many together.
fn credits_for(sent: &[(SimTime, PortId, Payload)], port: PortId) -> Vec<(u64, usize)> {
    let credits = sent.iter().filter(|(_, of, _)| *of == port).filter_map(|(time, _, payload)| match payload {
        Payload::Memory(MemoryMessage::Credit(credits) | MemoryMessage::ResponseCredit(credits)) => {
            Some((time.0 / NS, credits.count()))
        }
        _ => None,
    });
    credits.collect()
}

#[test]
fn a_sender_that_counts_places_gets_them_back_when_its_packets_are_through() {
    let (mut unit, mut bench) = crossbar(
        r#"(clock: "1 GHz", request_queue: 16, response_queue: 4, request_latency: 10, address_hash: Modulo)"#,
    );
    unit.requests.count_places(1);
    unit.responses.count_places(3);
    for port in 0..2 {
        for id in 0..4 {
            bench.deliver(SimTime::ZERO, PortId(port), request(store(0, id, 0b1111)));
        }
    }
    let sent = bench.run(&mut unit, SimTime(4 * NS), SimTime(80 * NS));
    assert_eq!(credits_for(&sent, PortId(0)), [], "it does not count them");
    // In turn with the other SM, each store takes four cycles: every second place is told of, with 1 ns of wire.
    assert_eq!(credits_for(&sent, PortId(1)), [(15 + 1, 2), (31 + 1, 2)]);
    for id in 0..2 {
        let response = MemoryRequest { return_port: 1, ..load(0, id, 0b1111) }.response(0, ServedBy::L2);
        bench.deliver(SimTime(100 * NS), PortId(6), Payload::Memory(MemoryMessage::Response(response)));
    }
    let sent = bench.run(&mut unit, SimTime(4 * NS), SimTime(200 * NS));
    assert_eq!(credits_for(&sent, PortId(6)), [(104, 1), (108, 1)]);
    // Requests for pinned memory pass by.
    for id in 0..2 {
        let pinned = MemoryRequest { aperture: Aperture::Host, ..load(balar_host::memory::HOST_BASE, id, 1) };
        bench.deliver(SimTime(300 * NS), PortId(1), request(pinned));
    }
    let sent = bench.run(&mut unit, SimTime(4 * NS), SimTime(400 * NS));
    assert_eq!(credits_for(&sent, PortId(1)), [(301, 2)]);
}

/// A credit counts from its own time on, however early the message that brings it comes.
#[test]
fn each_credit_of_a_message_has_its_own_time() {
    let (mut unit, mut bench) =
        crossbar(r#"(clock: "1 GHz", slice_queue: 1, request_latency: 10, address_hash: Modulo)"#);
    for id in 0..4 {
        bench.deliver(SimTime::ZERO, PortId(0), request(load(0, id, 1)));
    }
    let mut credits = Credits::ONE;
    assert!(credits.push(SimTime(7 * NS)) && credits.push(SimTime(30 * NS)));
    bench.deliver(SimTime(20 * NS), PortId(3), Payload::Memory(MemoryMessage::Credit(credits)));
    let sent = requests(&bench.run(&mut unit, SimTime(4 * NS), SimTime(90 * NS)));
    let times: Vec<u64> = sent.iter().map(|(time, _, _)| time.0 / NS).collect();
    assert_eq!(times, [11, 20 + 11, 27 + 11, 50 + 11]);
    // The second waits from cycle 1 on, the others from the cycle after the grant before.
    assert_eq!(counter(&unit, "credit_stall_cycles"), 19 + 6 + 22);
    assert_eq!(counter(&unit, "queue_length_maximum_request"), 4);
}

/// Waiting packets are counted at moments of simulated time: a packet that has left before another arrives does not wait with it.
#[test]
fn the_longest_queue_is_that_of_a_moment() {
    let (mut unit, mut bench) = crossbar(PLAIN);
    for i in 0..10 {
        bench.deliver(SimTime(10 * NS * u64::from(i)), PortId(0), request(load(0, i, 1)));
    }
    bench.run(&mut unit, SimTime(1000 * NS), SimTime(1000 * NS));
    assert_eq!(counter(&unit, "queue_length_maximum_request"), 1);
}

#[test]
fn a_message_that_cannot_come_ends_the_run_with_its_port() {
    let (mut unit, mut bench) = crossbar(PLAIN);
    bench.deliver(SimTime(NS), PortId(4), request(load(0, 1, 1)));
    let run = std::panic::AssertUnwindSafe(|| bench.run(&mut unit, SimTime(NS), SimTime(4 * NS)));
    let text = std::panic::catch_unwind(run).expect_err("slices do not ask").downcast::<String>().expect("a text");
    assert!(text.starts_with("port slice[1] does not take this message of the memory protocol: "), "{text}");
}
