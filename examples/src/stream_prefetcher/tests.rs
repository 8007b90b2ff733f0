//! The prefetcher alone, on a bench. Its clock is 1 GHz, so that a cycle is 1 ns; each wire takes 10 ns.

use super::*;
use balar_actors::engine::unit::Bench;
use balar_protocol::memory::Credits;

const UPSTREAM: PortId = PortId(0);
const DOWNSTREAM: PortId = PortId(1);
const WINDOW: SimTime = SimTime::from_nanoseconds(10);

/// A prefetcher with the `given` parameters, which follow the clock.
fn prefetcher(given: &str) -> StreamPrefetcher {
    let text = format!("(clock: \"1 GHz\", {given})");
    let parameters = StreamPrefetcherParameters::from_ron(&text).expect("the parameters of a test");
    StreamPrefetcher::with_ports(parameters, UPSTREAM, DOWNSTREAM)
}

/// A load of the first sector of line number `line`.
fn load(line: u64, id: u32) -> MemoryRequest {
    let kind = MemoryKind::Load;
    let line = line * LINE_BYTES;
    MemoryRequest {
        line,
        id,
        launch: 1,
        return_port: 0,
        data_bytes: 0,
        sectors: 1,
        full_sectors: 0,
        operations: 0,
        kind,
        scope: Scope::Weak,
    }
}

fn request(request: MemoryRequest) -> Payload {
    Payload::Memory(MemoryMessage::Request(request))
}

/// Messages with the nanosecond in which each left the prefetcher.
type Sent<T> = Vec<(u64, T)>;

/// A prefetcher on a bench. Times are in nanoseconds.
struct Test {
    bench: Bench,
    unit: StreamPrefetcher,
}

impl Test {
    fn new(given: &str) -> Test {
        Test { bench: Bench::new(&[WINDOW; 2]), unit: prefetcher(given) }
    }

    /// The SM's request arrives after `ns`.
    fn sm(&mut self, ns: u64, what: MemoryRequest) {
        self.bench.deliver(SimTime::from_nanoseconds(ns), UPSTREAM, request(what));
    }

    /// The crossbar answers after `ns`.
    fn answer(&mut self, ns: u64, to: &MemoryRequest) {
        let response = Payload::Memory(MemoryMessage::Response(to.response(0, ServedBy::DeviceMemory)));
        self.bench.deliver(SimTime::from_nanoseconds(ns), DOWNSTREAM, response);
    }

    /// Runs until `ns`; returns the requests that left downstream and the answers that left upstream.
    fn until(&mut self, ns: u64) -> (Sent<MemoryRequest>, Sent<MemoryResponse>) {
        let (mut requests, mut responses) = (Vec::new(), Vec::new());
        for (time, port, payload) in self.bench.run(&mut self.unit, WINDOW, SimTime::from_nanoseconds(ns)) {
            let left = (time - WINDOW).0 / 1000;
            match payload {
                Payload::Memory(MemoryMessage::Request(request)) if port == DOWNSTREAM => {
                    requests.push((left, request))
                }
                Payload::Memory(MemoryMessage::Response(response)) if port == UPSTREAM => {
                    responses.push((left, response));
                }
                other => panic!("{other:?} at {port:?}"),
            }
        }
        (requests, responses)
    }
}

/// (nanosecond, line number) of requests.
fn lines(requests: &[(u64, MemoryRequest)]) -> Vec<(u64, u64)> {
    requests.iter().map(|(at, request)| (*at, request.line / LINE_BYTES)).collect()
}

#[test]
fn a_stream_is_fetched_ahead_once_two_steps_confirm_it() {
    let mut test = Test::new("confirmations: 2, degree: 3, forward_latency: 2");
    test.sm(100, load(40, 0));
    test.sm(200, load(41, 4));
    test.sm(300, load(42, 8));
    let (requests, _) = test.until(400);
    // Loads leave two cycles after they came; the prefetches follow the third, one a cycle.
    assert_eq!(lines(&requests), [(102, 40), (202, 41), (302, 42), (303, 43), (304, 44), (305, 45)]);
    assert!(requests[3..].iter().all(|(_, prefetch)| prefetch.sectors == 0b1111 && prefetch.launch == 1));
    assert_eq!((test.unit.counters.streams_found, test.unit.counters.prefetches), (1, 3));
    assert_eq!(test.unit.outstanding().as_deref(), Some("answers to 6 requests"));
}

#[test]
fn a_line_in_the_buffer_answers_after_the_hit_latency_and_the_stream_runs_on() {
    let mut test = Test::new("confirmations: 1, degree: 2, hit_latency: 8");
    test.sm(100, load(0, 0));
    test.sm(110, load(1, 4));
    let (requests, _) = test.until(200);
    assert_eq!(lines(&requests), [(102, 0), (112, 1), (113, 2), (114, 3)]);
    for (_, prefetch) in &requests[2..] {
        test.answer(250, prefetch);
    }
    test.sm(300, load(2, 8));
    let (requests, responses) = test.until(400);
    let [(at, response)] = responses[..] else { panic!("{responses:?}") };
    assert_eq!((at, response.id, response.served_by), (308, 8, ServedBy::Intermediate));
    assert_eq!((response.sectors, response.hit_sectors), (1, 0));
    assert_eq!(lines(&requests), [(302, 4)]);
    assert_eq!(test.unit.counters.buffer_hits, 1);
}

#[test]
fn loads_wait_for_a_line_that_is_under_way() {
    let mut test = Test::new("confirmations: 1, degree: 1, hit_latency: 8");
    test.sm(100, load(0, 0));
    test.sm(110, load(1, 4));
    test.sm(120, load(2, 8));
    test.sm(130, MemoryRequest { sectors: 2, ..load(2, 12) });
    let (requests, responses) = test.until(200);
    assert_eq!(lines(&requests), [(102, 0), (112, 1), (113, 2), (122, 3)]);
    assert_eq!(responses, []);
    test.answer(250, &requests[2].1);
    let (_, responses) = test.until(300);
    let answered: Vec<_> = responses.iter().map(|(at, response)| (*at, response.id, response.sectors)).collect();
    assert_eq!(answered, [(258, 8, 1), (258, 12, 2)]);
    assert_eq!((test.unit.counters.buffer_hits_late, test.unit.counters.prefetches_used), (2, 1));
}

#[test]
fn the_sm_gets_its_own_numbers_back() {
    let mut test = Test::new("forward_latency: 2");
    let asked = MemoryRequest { return_port: 7, ..load(5, u32::MAX) };
    test.sm(100, asked);
    test.sm(101, MemoryRequest { kind: MemoryKind::Atomic, operations: 3, ..load(900, u32::MAX - 1) });
    let (requests, _) = test.until(200);
    // The crossbar overwrites the return port with its own.
    for (_, request) in &requests {
        test.answer(300, &MemoryRequest { return_port: 55, ..*request });
    }
    let (_, responses) = test.until(400);
    let numbers: Vec<_> = responses.iter().map(|(at, answer)| (*at, answer.id, answer.return_port)).collect();
    assert_eq!(numbers, [(302, u32::MAX, 7), (302, u32::MAX - 1, 0)]);
    assert!(responses.iter().all(|(_, answer)| answer.served_by == ServedBy::DeviceMemory));
    assert_eq!(test.unit.outstanding(), None);
}

#[test]
fn a_store_and_a_new_launch_make_a_line_stale() {
    for (stale, invalidations) in [
        (Some(MemoryRequest { kind: MemoryKind::Store, data_bytes: 4, ..load(2, 1) }), 1),
        (None, 0), // the load itself is of the next launch
    ] {
        let mut test = Test::new("confirmations: 1, degree: 1");
        test.sm(100, load(0, 0));
        test.sm(110, load(1, 4));
        let (requests, _) = test.until(200);
        test.answer(210, &requests[2].1);
        let launch = if stale.is_some() { 1 } else { 2 };
        stale.into_iter().for_each(|store| test.sm(220, store));
        test.sm(230, MemoryRequest { launch, ..load(2, 8) });
        let (requests, responses) = test.until(300);
        assert_eq!(responses, []);
        assert!(lines(&requests).contains(&(232, 2)), "{requests:?}");
        assert_eq!(test.unit.counters.buffer_misses, 3);
        assert_eq!(test.unit.counters.buffer_invalidations, invalidations);
    }
}

#[test]
fn a_line_that_is_overwritten_under_way_serves_those_who_wait_and_nobody_else() {
    let mut test = Test::new("confirmations: 1, degree: 1");
    test.sm(100, load(0, 0));
    test.sm(110, load(1, 4));
    test.sm(120, load(2, 8));
    test.sm(130, MemoryRequest { kind: MemoryKind::Store, data_bytes: 4, ..load(2, 1) });
    let (requests, _) = test.until(200);
    test.answer(210, &requests[2].1);
    test.sm(250, load(2, 12));
    let (_, responses) = test.until(300);
    assert_eq!(responses.iter().map(|(_, response)| response.id).collect::<Vec<_>>(), [8]);
    assert_eq!(test.unit.counters.buffer_misses, 3);
}

#[test]
fn what_it_does_not_know_passes_in_both_directions() {
    let mut test = Test::new("forward_latency: 2");
    let at = SimTime::from_nanoseconds;
    test.bench.deliver(at(100), UPSTREAM, Payload::Memory(MemoryMessage::Drain));
    test.bench.deliver(at(200), DOWNSTREAM, Payload::Memory(MemoryMessage::Credit(Credits::ONE)));
    test.bench.deliver(at(300), UPSTREAM, Payload::Custom([1, 2, 3]));
    let sent = test.bench.run(&mut test.unit, WINDOW, at(400));
    let sent: Vec<_> = sent.iter().map(|(time, port, payload)| format!("{time} {} {payload:?}", port.0)).collect();
    assert_eq!(
        sent,
        [
            "112000 ps 1 Memory(Drain)".to_owned(),
            format!("212000 ps 0 Memory({:?})", MemoryMessage::Credit(Credits::ONE)),
            "312000 ps 1 Custom([1, 2, 3])".to_owned()
        ]
    );
}

#[test]
fn prefetches_stay_in_the_page_and_scattered_loads_cause_none() {
    let mut test = Test::new(r#"confirmations: 1, degree: 4, page: "1 KiB""#);
    test.sm(100, load(5, 0));
    test.sm(110, load(6, 4)); // the page of 8 lines ends with line 7
    for i in 0..20 {
        test.sm(200 + 10 * i, load(1000 + 37 * i, 8));
    }
    test.until(500);
    assert_eq!(test.unit.counters.prefetches, 1);
}

#[test]
fn the_length_of_windows_changes_nothing() {
    let run = |window: u64| {
        let mut bench = Bench::new(&[WINDOW; 2]);
        let mut unit = prefetcher("confirmations: 1, degree: 4");
        for i in 0..40 {
            // 370 ps apart: several loads in one cycle, and prefetches between them.
            let time = SimTime(5_000 + 370 * i);
            bench.deliver(time, UPSTREAM, request(load(100 + i * 2 / 3, i as u32)));
        }
        let mut sent = bench.run(&mut unit, SimTime(window), SimTime::from_nanoseconds(100));
        sent.sort_by_key(|(time, port, _)| (*time, *port));
        format!("{sent:?}")
    };
    let reference = run(10_000);
    assert!([100, 999, 1_000, 3_300, 50_000].into_iter().all(|window| run(window) == reference));
}

#[test]
fn impossible_parameters_are_refused_by_key() {
    let surroundings = &balar_actors::catalogue::Surroundings::default();
    let ports = balar_actors::catalogue::PortMap::new([("upstream".to_owned(), 0), ("downstream".to_owned(), 0)]);
    let context = BuildContext {
        path: "gpu.prefetcher[0]",
        part: "gpu",
        index: 0,
        row_length: 1,
        ports: &ports,
        unit: 0,
        surroundings,
    };
    let build = |given: &str| {
        let text = format!("(clock: \"1 GHz\", {given})");
        let parameters = StreamPrefetcherParameters::from_ron(&text).expect("the types are right");
        StreamPrefetcher::new(parameters, &context).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(build("degree: 64"), Ok(()));
    assert_eq!(build("degree: 65"), Err("degree: expected 1 to buffer_lines".to_owned()));
    assert_eq!(
        build(r#"streams: 0, page: "192 B""#),
        Err("streams: expected 1 to 64; page: expected a power of two of at least 128 B".to_owned())
    );
}
