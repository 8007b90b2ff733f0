use super::*;
use crate::engine::Bench;
use crate::test_support::{
    Arrival, check_cuts_and_states, counter, load, random_requests, request, requests, responses, store, with_context,
};
use balar_protocol::SimTime;

pub(super) const NS: u64 = 1000;
pub(super) const CROSSBAR: PortId = PortId(0);
pub(super) const MEMORY: PortId = PortId(1);

/// A slice at 1 GHz, alone in its row, with wires of 1 ns.
fn slice(parameters: &str) -> (L2Slice, Bench) {
    let parameters = L2SliceParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters");
    let unit = with_context(&[("crossbar", 0), ("memory", 0)], 1, |context| L2Slice::new(parameters, context));
    (unit.expect("slice"), Bench::new(&[SimTime(NS); 2]))
}

pub(super) type Sent = Vec<(SimTime, PortId, Payload)>;

/// (line, sectors, bytes) of the stores among requests to memory.
fn writes_to_memory(sent: &Sent) -> Vec<(u64, u8, u16)> {
    let requests = requests(sent);
    let writes = requests.iter().filter(|(_, _, request)| request.kind == MemoryKind::Store);
    writes.map(|(_, _, request)| (request.line, request.sectors, request.data_bytes)).collect()
}

/// Runs in windows of 10 ns, answers requests to memory `latency` later, until `end`.
fn run(unit: &mut L2Slice, bench: &mut Bench, latency: u64, start: u64, end: u64) -> Sent {
    let mut all = Vec::new();
    for step in start / 10..end / 10 {
        let sent = bench.run(unit, SimTime(10 * NS), SimTime((step + 1) * 10 * NS));
        for (time, port, fill) in requests(&sent) {
            assert_eq!(port, MEMORY);
            let response = fill.response(0, ServedBy::DeviceMemory);
            let payload = Payload::Memory(MemoryMessage::Response(response));
            bench.deliver(time + SimTime(latency * NS), MEMORY, payload);
        }
        all.extend(sent);
    }
    all
}

#[test]
fn a_miss_fetches_a_sector_pair_and_the_next_load_of_it_hits() {
    let (mut unit, mut bench) = slice("hit_latency: 40, miss_latency: 12, fill_latency: 30");
    bench.deliver(SimTime(5 * NS), CROSSBAR, request(load(0x1000, 1, 0b0001)));
    bench.deliver(SimTime(300 * NS), CROSSBAR, request(load(0x1000, 2, 0b0010)));
    bench.deliver(SimTime(400 * NS), CROSSBAR, request(load(0x1000, 3, 0b0110)));
    let sent = run(&mut unit, &mut bench, 100, 0, 800);
    let fills: Vec<u8> = requests(&sent).iter().map(|(_, _, fill)| fill.sectors).collect();
    assert_eq!(fills, [0b0011, 0b1100]);
    let answers = responses(&sent);
    let summary: Vec<_> = answers.iter().map(|(time, _, r)| (time.0 / NS, r.id, r.hit_sectors, r.served_by)).collect();
    assert_eq!(
        summary,
        [
            (5 + 12 + 1 + 100 + 30 + 1, 1, 0, ServedBy::DeviceMemory),
            (300 + 40 + 1, 2, 0b0010, ServedBy::L2),
            (400 + 12 + 1 + 100 + 30 + 1, 3, 0b0010, ServedBy::DeviceMemory),
        ]
    );
    assert_eq!(counter(&unit, "sectors_read"), 4);
    assert_eq!(counter(&unit, "sector_hits_read"), 2);
    assert_eq!(counter(&unit, "sector_misses_read"), 2);
    assert_eq!(counter(&unit, "sectors_filled"), 4);
    assert!(unit.outstanding().is_none());
}

#[test]
fn loads_of_a_line_under_way_merge() {
    let (mut unit, mut bench) = slice("");
    for id in 0..5 {
        bench.deliver(SimTime(NS), CROSSBAR, request(load(0, id, 0b1111)));
    }
    let sent = run(&mut unit, &mut bench, 100, 0, 400);
    assert_eq!(requests(&sent).len(), 1);
    let ids: Vec<u32> = responses(&sent).iter().map(|(_, _, response)| response.id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert_eq!(counter(&unit, "mshr_merges"), 4);
    // 128 bytes at 64 bytes a cycle: two cycles apart.
    let times: Vec<u64> = responses(&sent).iter().map(|(time, _, _)| time.0 / NS).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 2), "{times:?}");
}

#[test]
fn stores_and_reductions_take_the_data_array_as_the_parameters_say() {
    let (mut unit, mut bench) = slice(
        "bytes_per_cycle: 64, store_bytes_per_cycle: 32, partial_store_cycles: 3, lookups_per_cycle: 4, \
         atomic_operations_per_cycle: 32, atomic_latency: 0, same_line_atomic_interval: 0",
    );
    let word = |id| MemoryRequest { written_words: 1, data_bytes: 4, ..store(0x200, id, 0b0001) };
    let reduction = MemoryRequest { kind: MemoryKind::Reduction, operations: 32, ..store(0x100, 4, 0b1111) };
    let warm_up = [store(0, 0, 0b1111), store(0x100, 0, 0b1111), store(0x200, 0, 0b1111)];
    warm_up.into_iter().for_each(|line| bench.deliver(SimTime(NS), CROSSBAR, request(line)));
    run(&mut unit, &mut bench, 100, 0, 200);
    let asked = [store(0, 1, 0b1111), word(2), load(0, 3, 0b1111), reduction, load(0, 5, 0b0001)];
    asked.into_iter().for_each(|line| bench.deliver(SimTime(201 * NS), CROSSBAR, request(line)));
    let sent = run(&mut unit, &mut bench, 100, 200, 400);
    let mut answers: Vec<(u64, u32)> = responses(&sent).iter().map(|(time, _, r)| (time.0 / NS, r.id)).collect();
    answers.sort_unstable_by_key(|(_, id)| *id);
    let first = answers[0].0;
    let after: Vec<u64> = answers.iter().map(|(time, _)| time - first).collect();
    // A line that is stored takes 4 cycles, a word 3, a line that is loaded 2; a reduction's acknowledgement takes half a cycle.
    assert_eq!(after, [0, 4, 7, 9, 9]);
}

#[test]
fn stores_fetch_nothing_and_what_they_leave_out_is_fetched_when_it_is_read() {
    let (mut unit, mut bench) = slice("");
    let part = |id, words| MemoryRequest { written_words: words, data_bytes: 16, ..store(0x80, id, 0b0100) };
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0011)));
    bench.deliver(SimTime(NS), CROSSBAR, request(part(2, 0x0f << 16)));
    let sent = run(&mut unit, &mut bench, 100, 0, 100);
    assert!(requests(&sent).is_empty());
    assert_eq!(responses(&sent).len(), 2, "both are acknowledged");
    // The other half comes: the sector is whole. Of the line's next sector half is there.
    let next = MemoryRequest { written_words: 0x0f << 24, data_bytes: 16, ..store(0x80, 4, 0b1000) };
    bench.deliver(SimTime(200 * NS), CROSSBAR, request(part(3, 0xf0 << 16)));
    bench.deliver(SimTime(200 * NS), CROSSBAR, request(next));
    bench.deliver(SimTime(210 * NS), CROSSBAR, request(load(0x80, 5, 0b0100)));
    bench.deliver(SimTime(210 * NS), CROSSBAR, request(load(0x80, 6, 0b1000)));
    let sent = run(&mut unit, &mut bench, 100, 200, 600);
    let fills: Vec<_> = requests(&sent).iter().map(|(_, _, fill)| (fill.line, fill.sectors)).collect();
    assert_eq!(fills, [(0x80, 0b1000)]);
    let found: Vec<_> = responses(&sent).iter().map(|(_, _, r)| (r.id, r.hit_sectors, r.fetched_sectors)).collect();
    assert_eq!(found[2..], [(5, 0b0100, 0), (6, 0, 0b1000)]);
}

#[test]
fn a_store_that_makes_too_many_lines_dirty_writes_the_oldest_of_them_which_stays() {
    // One set of four ways.
    let (mut unit, mut bench) = slice(r#"capacity: "512 B", ways: 4, dirty_ways: 2"#);
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0011)));
    bench.deliver(SimTime(2 * NS), CROSSBAR, request(store(0x80, 2, 0b0001)));
    // Line 0 is used after 0x80.
    bench.deliver(SimTime(3 * NS), CROSSBAR, request(load(0, 3, 0b0001)));
    let sent = run(&mut unit, &mut bench, 100, 0, 100);
    assert_eq!(writes_to_memory(&sent), [], "two may be dirty");
    bench.deliver(SimTime(100 * NS), CROSSBAR, request(store(0x100, 4, 0b1000)));
    bench.deliver(SimTime(101 * NS), CROSSBAR, request(store(0x100, 5, 0b0100)));
    let sent = run(&mut unit, &mut bench, 100, 100, 200);
    assert_eq!(writes_to_memory(&sent), [(0x80, 0b0001, 32)]);
    // What was written is clean, and here.
    bench.deliver(SimTime(200 * NS), CROSSBAR, request(load(0x80, 6, 0b0001)));
    bench.deliver(SimTime(201 * NS), CROSSBAR, request(store(0x80, 7, 0b0001)));
    let sent = run(&mut unit, &mut bench, 100, 200, 400);
    assert_eq!(responses(&sent)[0].2.served_by, ServedBy::L2);
    assert_eq!(writes_to_memory(&sent), [(0, 0b0011, 64)]);
    assert_eq!([counter(&unit, "write_backs"), counter(&unit, "evictions")], [2, 0]);
    assert!(unit.outstanding().is_none());
}

/// An atomic whose line is fetched makes it dirty before its data are there.
#[test]
fn a_line_with_a_fill_under_way_is_not_written() {
    let (mut unit, mut bench) = slice(r#"capacity: "512 B", ways: 4, dirty_ways: 1"#);
    let add = |line, id| MemoryRequest { kind: MemoryKind::Reduction, operations: 1, ..store(line, id, 0b0001) };
    bench.deliver(SimTime(NS), CROSSBAR, request(add(0, 1)));
    bench.deliver(SimTime(2 * NS), CROSSBAR, request(store(0x80, 2, 0b0001)));
    bench.deliver(SimTime(3 * NS), CROSSBAR, request(store(0x100, 3, 0b0001)));
    let sent = run(&mut unit, &mut bench, 100, 0, 100);
    assert_eq!(writes_to_memory(&sent), [(0x80, 0b0001, 32), (0x100, 0b0001, 32)]);
}

#[test]
fn dirty_lines_are_written_back_when_replaced_and_the_oldest_goes_first() {
    // One set of two ways.
    let (mut unit, mut bench) = slice(r#"capacity: "256 B", ways: 2"#);
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0101)));
    bench.deliver(SimTime(2 * NS), CROSSBAR, request(load(0x80, 2, 0b0001)));
    bench.deliver(SimTime(300 * NS), CROSSBAR, request(load(0, 3, 0b0001)));
    bench.deliver(SimTime(400 * NS), CROSSBAR, request(load(0x100, 4, 0b0001)));
    bench.deliver(SimTime(700 * NS), CROSSBAR, request(load(0x180, 5, 0b0001)));
    let sent = run(&mut unit, &mut bench, 100, 0, 1200);
    assert_eq!(writes_to_memory(&sent), [(0, 0b0101, 64)]);
    assert_eq!(counter(&unit, "evictions"), 2, "0x80 first, for line 0 was used after it");
    assert_eq!(counter(&unit, "sectors_written_back"), 2);
    assert!(unit.outstanding().is_none());
}

#[test]
fn the_queue_stands_while_every_mshr_is_in_use() {
    let (mut unit, mut bench) = slice("mshr_entries: 2");
    for id in 0..3 {
        bench.deliver(SimTime(NS), CROSSBAR, request(load(u64::from(id) * 0x80, id, 0b1111)));
    }
    let sent = run(&mut unit, &mut bench, 100, 0, 500);
    assert_eq!(responses(&sent).len(), 3);
    assert_eq!(counter(&unit, "mshr_maximum"), 2);
    // Lookups in cycles 1 and 2; the third is tried in cycle 3, the first fill comes in cycle 1 + 12 + 1 + 100.
    assert_eq!(counter(&unit, "stall_cycles_mshr"), 111);
    let credits = sent.iter().filter_map(|(time, port, payload)| match payload {
        Payload::Memory(MemoryMessage::Credit(credits)) => Some((port, credits.times(*time).collect::<Vec<_>>())),
        _ => None,
    });
    // Each with the time of its own lookup and the wire; the third request is looked up when the first fill has come.
    let at = |ns: u64| SimTime(ns * NS);
    assert_eq!(credits.collect::<Vec<_>>(), [(&CROSSBAR, vec![at(2), at(3)]), (&CROSSBAR, vec![at(115)])]);
}

#[test]
fn atomics_on_one_line_follow_each_other() {
    let (mut unit, mut bench) = slice("hit_latency: 40, atomic_latency: 32, same_line_atomic_interval: 9");
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0001)));
    for id in 2..4 {
        let atomic = MemoryRequest {
            kind: MemoryKind::Atomic,
            operations: 1,
            update_sectors: 1,
            data_bytes: 4,
            ..load(0, id, 0b0001)
        };
        bench.deliver(SimTime(100 * NS), CROSSBAR, request(atomic));
    }
    let sent = run(&mut unit, &mut bench, 100, 0, 400);
    let times: Vec<u64> = responses(&sent).iter().map(|(time, _, _)| time.0 / NS).collect();
    assert_eq!(times, [42, 100 + 40 + 32 + 1, 100 + 40 + 9 + 32 + 1]);
    assert_eq!(counter(&unit, "atomics"), 2);
    assert_eq!(counter(&unit, "sector_hits_atomic"), 2);
}

/// A reduction of one lane's word.
fn reduction(line: u64, id: u32) -> MemoryRequest {
    MemoryRequest { kind: MemoryKind::Reduction, operations: 1, update_sectors: 1, data_bytes: 4, ..load(line, id, 1) }
}

/// Times in nanoseconds and numbers of the responses among what was sent.
fn answered(sent: &Sent) -> Vec<(u64, u32)> {
    responses(sent).iter().map(|(time, _, response)| (time.0 / NS, response.id)).collect()
}

#[test]
fn a_hit_behind_an_atomic_does_not_wait_for_it() {
    let (mut unit, mut bench) = slice("hit_latency: 40, atomic_latency: 32");
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0001)));
    bench.deliver(SimTime(100 * NS), CROSSBAR, request(reduction(0, 2)));
    bench.deliver(SimTime(101 * NS), CROSSBAR, request(load(0, 3, 0b0001)));
    let sent = run(&mut unit, &mut bench, 100, 0, 400);
    assert_eq!(answered(&sent)[1..], [(101 + 40 + 1, 3), (100 + 40 + 32 + 1, 2)]);
}

/// With room for two answers and for one atomic, look-ups wait until one has left.
#[test]
fn look_ups_stand_where_too_many_answers_are_under_way() {
    let (mut unit, mut bench) =
        slice("hit_latency: 40, fill_latency: 30, atomic_latency: 32, answer_queue: 2, atomic_queue: 1");
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0001)));
    for id in 2..6 {
        bench.deliver(SimTime(100 * NS), CROSSBAR, request(load(0, id, 0b0001)));
    }
    // The first leaves in cycle 140, when the third is looked up.
    let sent = run(&mut unit, &mut bench, 100, 0, 300);
    assert_eq!(answered(&sent)[1..], [(141, 2), (142, 3), (181, 4), (182, 5)]);
    assert_eq!(counter(&unit, "stall_cycles_answer"), 140 - 102);
    for id in 6..8 {
        bench.deliver(SimTime(300 * NS), CROSSBAR, request(reduction(0, id)));
    }
    bench.deliver(SimTime(300 * NS), CROSSBAR, request(load(0x80, 8, 0b0001)));
    let sent = run(&mut unit, &mut bench, 100, 300, 700);
    // The load behind them is looked up in cycle 373, and misses.
    assert_eq!(answered(&sent), [(373, 6), (445, 7), (373 + 12 + 1 + 100 + 30 + 1, 8)]);
    assert_eq!(counter(&unit, "stall_cycles_atomic"), 372 - 301);
    assert!(unit.outstanding().is_none());
}

#[test]
fn answers_wait_for_the_crossbar() {
    let (mut unit, mut bench) = slice("hit_latency: 40, answer_queue: 2");
    unit.state.answers = Answers::new(64, 32, 2);
    bench.deliver(SimTime(NS), CROSSBAR, request(store(0, 1, 0b0001)));
    for id in 2..6 {
        bench.deliver(SimTime(100 * NS), CROSSBAR, request(load(0, id, 0b0001)));
    }
    // One place is left. The first load has it, and makes room for the third; the fourth is not looked up.
    let sent = run(&mut unit, &mut bench, 100, 0, 300);
    assert_eq!(answered(&sent), [(42, 1), (141, 2)]);
    let outstanding = unit.outstanding().expect("loads wait");
    assert!(
        outstanding.contains("1 requests queued") && outstanding.contains("blocked for want of: Answer"),
        "{outstanding}"
    );
    let credits = Payload::Memory(MemoryMessage::ResponseCredit(Credits::at_once(3)));
    bench.deliver(SimTime(300 * NS), CROSSBAR, credits);
    let sent = run(&mut unit, &mut bench, 100, 300, 500);
    // Two sectors a cycle.
    assert_eq!(answered(&sent), [(301, 3), (301, 4), (341, 5)]);
    assert_eq!(counter(&unit, "stall_cycles_answer"), (140 - 102) + (300 - 141));
    assert_eq!(counter(&unit, "stall_cycles_crossbar"), 300 - 141);
}

#[test]
fn a_buffer_of_the_cache_size_stays_and_a_larger_one_does_not() {
    let (mut unit, mut bench) = slice("mshr_entries: 4096");
    let lines = 192 * 1024 / 128;
    let pass = |unit: &mut L2Slice, bench: &mut Bench, start: u64, lines: u64| {
        for i in 0..lines {
            bench.deliver(SimTime((start + i) * NS), CROSSBAR, request(load(i * 128, i as u32, 0b1111)));
        }
        run(unit, bench, 50, start, start + 4000)
    };
    pass(&mut unit, &mut bench, 0, lines);
    assert_eq!(counter(&unit, "sector_hits_read"), 0);
    pass(&mut unit, &mut bench, 4000, lines);
    assert_eq!(counter(&unit, "sector_hits_read"), lines * 4, "every line of the second pass");
}

#[test]
fn contradictions_are_errors() {
    for (parameters, key) in [
        (r#"capacity: "100 B""#, "capacity"),
        ("ways: 0", "ways"),
        (r#"fetch_granularity: "48 B""#, "fetch_granularity"),
        ("mshr_entries: 0", "mshr_entries"),
    ] {
        let parameters =
            L2SliceParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters");
        let error = with_context(&[("crossbar", 0), ("memory", 0)], 1, |c| L2Slice::new(parameters, c).map(drop));
        assert!(error.expect_err(key).to_string().contains(key));
    }
}

#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    for parameters in [
        r#"capacity: "4 KiB", ways: 4"#,
        r#"capacity: "2 KiB", ways: 2, mshr_entries: 3, mshr_merges: 2, write_back_entries: 1, lookups_per_cycle: 2"#,
        r#"capacity: "2 KiB", ways: 4, dirty_ways: 1, answer_queue: 40, atomic_queue: 5, write_back_entries: 2"#,
    ] {
        let script = random_requests(1, 600, 60, 1500, 1);
        let build = || Box::new(slice(parameters).0) as Box<dyn Unit>;
        check_cuts_and_states(build, 2, SimTime(NS), script, memory_and_crossbar(0), SimTime(30_000 * NS));
    }
}

/// Memory that answers 40 ns later, and a crossbar that takes a response in so many nanoseconds; 0 = it gives no credits.
pub(super) fn memory_and_crossbar(pace: u64) -> impl FnMut(&Arrival) -> Vec<Arrival> {
    move |(time, port, payload)| match payload {
        Payload::Memory(MemoryMessage::Request(asked)) => {
            let response = MemoryMessage::Response(asked.response(0, ServedBy::DeviceMemory));
            vec![(*time + SimTime(40 * NS), *port, Payload::Memory(response))]
        }
        Payload::Memory(MemoryMessage::Response(_)) if pace > 0 => {
            let credit = Payload::Memory(MemoryMessage::ResponseCredit(Credits::ONE));
            vec![(*time + SimTime(pace * NS), *port, credit)]
        }
        _ => Vec::new(),
    }
}

/// Requests of every kind through queues of one entry each end, in whatever windows.
#[test]
fn the_smallest_queues_come_to_an_end() {
    let parameters = r#"capacity: "1 KiB", ways: 2, dirty_ways: 1, answer_queue: 1, atomic_queue: 1, mshr_entries: 1, mshr_merges: 1,
                        write_back_entries: 1"#;
    let build = || {
        let (mut unit, _) = slice(parameters);
        unit.state.answers = Answers::new(64, 32, 1);
        Box::new(unit) as Box<dyn Unit>
    };
    let script = random_requests(7, 400, 60, 1500, 1);
    check_cuts_and_states(build, 2, SimTime(NS), script, memory_and_crossbar(11), SimTime(90_000 * NS));
}
