//! The prefetcher alone, on a bench. Its clock is 1 GHz, so that a cycle is 1 ns.

use super::*;
use balar_actors::prototyping::{MemoryBench, Played, store};

/// A prefetcher with the `given` parameters beside its clock.
fn prefetcher(given: &str) -> MemoryBench {
    MemoryBench::new(&DEFINITION, &format!("clock: \"1 GHz\", {given}"))
}

/// A load of the first sector of line number `line`.
fn line(line: u64, id: u32) -> MemoryRequest {
    load(id, line * LINE_BYTES, 4)
}

/// (nanosecond, line number) of the requests that left.
fn lines(played: &Played) -> Vec<(u64, u64)> {
    played.requests().iter().map(|(at, request)| (*at, request.line / LINE_BYTES)).collect()
}

/// (nanosecond, number) of the answers to the SM that came from the buffer.
fn from_buffer(played: &Played) -> Vec<(u64, u32)> {
    let responses = played.responses();
    let own = responses.iter().filter(|(_, response)| response.served_by == ServedBy::Intermediate);
    own.map(|(at, response)| (*at, response.id)).collect()
}

#[test]
fn a_stream_is_fetched_ahead_once_two_steps_confirm_it() {
    let mut bench = prefetcher("confirmations: 2, degree: 3, forward_latency: 2");
    bench.request(100, line(40, 0)).request(200, line(41, 4)).request(300, line(42, 8));
    let played = bench.run();
    // Loads leave two cycles after they came; the prefetches follow the third, one a cycle.
    assert_eq!(lines(&played), [(102, 40), (202, 41), (302, 42), (303, 43), (304, 44), (305, 45)]);
    assert!(played.requests()[3..].iter().all(|(_, prefetch)| prefetch.sectors == 0b1111 && prefetch.launch == 1));
    assert_eq!((played.counter("streams_found"), played.counter("prefetches")), (1, 3));
}

#[test]
fn a_line_in_the_buffer_answers_after_the_hit_latency_and_the_stream_runs_on() {
    let mut bench = prefetcher("confirmations: 1, degree: 2, hit_latency: 8");
    bench.request(100, line(0, 0)).request(110, line(1, 4)).request(300, line(2, 8));
    let played = bench.run();
    assert_eq!(lines(&played), [(102, 0), (112, 1), (113, 2), (114, 3), (302, 4)]);
    assert_eq!(from_buffer(&played), [(308, 8)]);
    assert_eq!(played.counter("buffer_hits"), 1);
}

#[test]
fn loads_wait_for_a_line_that_is_under_way() {
    let mut bench = prefetcher("confirmations: 1, degree: 1, hit_latency: 8");
    bench.request(100, line(0, 0)).request(110, line(1, 4)).request(120, line(2, 8));
    bench.request(130, MemoryRequest { sectors: 2, ..line(2, 12) });
    bench.server_answers_at(2, 250);
    let played = bench.run();
    assert_eq!(lines(&played), [(102, 0), (112, 1), (113, 2), (122, 3)]);
    assert_eq!(from_buffer(&played), [(258, 8), (258, 12)]);
    assert_eq!((played.counter("buffer_hits_late"), played.counter("prefetches_used")), (2, 1));
}

#[test]
fn a_store_and_a_new_launch_make_a_line_stale() {
    for stale in [true, false] {
        let mut bench = prefetcher("confirmations: 1, degree: 1");
        bench.server_answers_after(50).request(100, line(0, 0)).request(110, line(1, 4));
        if stale {
            bench.request(220, store(1, 2 * LINE_BYTES, 4));
        }
        // Without a store, the load itself is of the next launch.
        bench.request(230, MemoryRequest { launch: if stale { 1 } else { 2 }, ..line(2, 8) });
        let played = bench.run();
        assert!(lines(&played).contains(&(232, 2)), "{played:?}");
        assert_eq!(from_buffer(&played), []);
        assert_eq!(played.counter("buffer_misses"), 3);
        assert_eq!(played.counter("buffer_invalidations"), u64::from(stale));
    }
}

#[test]
fn a_line_that_is_overwritten_under_way_serves_those_who_wait_and_nobody_else() {
    let mut bench = prefetcher("confirmations: 1, degree: 1");
    bench.request(100, line(0, 0)).request(110, line(1, 4)).request(120, line(2, 8));
    bench.request(130, store(1, 2 * LINE_BYTES, 4)).request(250, line(2, 12));
    let played = bench.run();
    assert_eq!(from_buffer(&played), [(221, 8)]);
    assert_eq!(played.counter("buffer_misses"), 3);
}

#[test]
fn volatile_loads_pass_and_leave_the_buffer_alone() {
    let mut bench = prefetcher("confirmations: 1, degree: 1");
    bench.server_answers_after(50).request(100, line(0, 0)).request(110, line(1, 4));
    bench.request(220, MemoryRequest { scope: Scope::Device, ..line(2, 8) });
    bench.request(230, line(2, 12));
    let played = bench.run();
    assert!(lines(&played).contains(&(222, 2)), "{played:?}");
    assert_eq!(from_buffer(&played), [(238, 12)]);
    assert_eq!(played.counter("loads"), 3);
}

#[test]
fn prefetches_stay_in_the_page_and_scattered_loads_cause_none() {
    let mut bench = prefetcher(r#"confirmations: 1, degree: 4, page: "1 KiB""#);
    // The page of 8 lines ends with line 7.
    bench.request(100, line(5, 0)).request(110, line(6, 4));
    for i in 0..20 {
        bench.request(200 + 10 * i, line(1000 + 37 * i, 8));
    }
    assert_eq!(bench.run().counter("prefetches"), 1);
}

#[test]
fn prefetches_leave_between_the_loads_of_a_busy_sm() {
    let mut bench = prefetcher("confirmations: 1, degree: 4");
    for i in 0..12 {
        bench.request(100 + i, line(100 + i * 2 / 3, i as u32));
    }
    let played = bench.run();
    let at: Vec<u64> = lines(&played).iter().map(|(at, _)| *at).collect();
    assert!(at.is_sorted_by(|a, b| a < b), "one request leaves in a cycle: {at:?}");
    assert!(played.counter("prefetches") > 0);
}

#[test]
fn impossible_parameters_are_refused_by_key() {
    let refused = |given: &str| prefetcher(given).try_run().map(drop).map_err(|broken| broken.to_string());
    assert_eq!(refused("degree: 64"), Ok(()));
    assert_eq!(refused("degree: 65"), Err("the unit cannot be built: degree: expected 1 to buffer_lines".to_owned()));
    assert_eq!(
        refused(r#"streams: 0, page: "192 B""#),
        Err("the unit cannot be built: streams: expected 1 to 64; page: expected a power of two of at least 128 B"
            .to_owned())
    );
}
