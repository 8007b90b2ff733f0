//! The buffer alone, on a bench. Its clock is 1 GHz, so that a cycle is 1 ns.

use super::*;
use balar_actors::prototyping::{MemoryBench, Played, load, reduction, store};

fn buffer(given: &str) -> MemoryBench {
    MemoryBench::new(&DEFINITION, &format!("clock: \"1 GHz\", {given}"))
}

/// (nanosecond, kind, line, bytes) of the requests that left.
fn sent(played: &Played) -> Vec<(u64, MemoryKind, u64, u16)> {
    let requests = played.requests();
    requests.iter().map(|(at, request)| (*at, request.kind, request.line, request.data_bytes)).collect()
}

/// (nanosecond, number) of the acknowledgements.
fn acknowledged(played: &Played) -> Vec<(u64, u32)> {
    played.responses().iter().map(|(at, response)| (*at, response.id)).collect()
}

#[test]
fn a_full_line_leaves_at_once_and_acknowledges_each_store() {
    let mut bench = buffer("latency: 2");
    for part in 0..4 {
        bench.request(100 + u64::from(part), store(part, 0x100 + 32 * u64::from(part), 32));
    }
    let played = bench.run();
    assert_eq!(sent(&played), [(105, MemoryKind::Store, 0x100, 128)]);
    // The answer comes after 100 ns; acknowledgements leave one in a cycle.
    assert_eq!(acknowledged(&played), [(207, 0), (208, 1), (209, 2), (210, 3)]);
    assert_eq!((played.counter("stores_combined"), played.counter("lines_full")), (3, 1));
}

#[test]
fn a_line_waits_for_its_time_from_the_first_store_on() {
    let mut bench = buffer("timeout: 50");
    bench.request(100, store(1, 0x100, 4)).request(140, store(1, 0x104, 4)).request(120, store(2, 0x300, 8));
    let played = bench.run();
    assert_eq!(sent(&played), [(152, MemoryKind::Store, 0x100, 8), (172, MemoryKind::Store, 0x300, 8)]);
    assert_eq!(played.counter("lines_timed_out"), 2);
}

#[test]
fn bytes_that_are_written_twice_are_sent_once() {
    let mut bench = buffer("timeout: 50");
    bench.request(100, store(1, 0x100, 32)).request(101, store(2, 0x100, 32));
    assert_eq!(sent(&bench.run()), [(152, MemoryKind::Store, 0x100, 32)]);
}

#[test]
fn the_oldest_line_makes_room() {
    let mut bench = buffer("entries: 2, timeout: 1000");
    for line in 1..4 {
        bench.request(100 + line, store(line as u32, 0x100 * line, 4));
    }
    let played = bench.run();
    assert_eq!(sent(&played)[0], (105, MemoryKind::Store, 0x100, 4));
    assert_eq!((played.counter("lines_evicted"), played.counter("lines_timed_out")), (1, 2));
}

#[test]
fn what_reads_a_line_drives_it_out_first() {
    for (id, read) in [(7, load(7, 0x120, 4)), (8, reduction(8, 0x100, 4))] {
        let mut bench = buffer("timeout: 1000");
        bench.request(100, store(1, 0x100, 64)).request(110, read).request(115, load(9, 0x200, 4));
        let played = bench.run();
        let kinds: Vec<_> = sent(&played).iter().map(|(at, kind, ..)| (*at, *kind)).collect();
        assert_eq!(kinds, [(112, MemoryKind::Store), (113, read.kind), (117, MemoryKind::Load)]);
        assert!(acknowledged(&played).iter().any(|(_, answered)| *answered == id));
        assert_eq!(played.counter("lines_flushed"), 1);
    }
}

#[test]
fn stores_of_two_launches_stay_apart() {
    let mut bench = buffer("timeout: 50");
    bench.request(100, store(1, 0x100, 32)).request(101, MemoryRequest { launch: 2, ..store(1, 0x120, 32) });
    assert_eq!(bench.run().counter("stores_combined"), 0);
}

#[test]
fn a_drain_drives_everything_out() {
    let mut bench = buffer("timeout: 1000");
    bench.request(100, store(1, 0x100, 4)).request(101, store(2, 0x200, 4));
    bench.from_client(110, MemoryMessage::Drain);
    let everything = bench.run().everything();
    assert!(everything[2].starts_with("114000 ps to the server: Memory(Drain)"), "{everything:?}");
}

#[test]
fn a_volatile_store_is_not_held_back() {
    let mut bench = buffer("timeout: 1000");
    bench.request(100, store(1, 0x100, 4)).request(110, MemoryRequest { scope: Scope::System, ..store(2, 0x100, 4) });
    let at: Vec<u64> = sent(&bench.run()).iter().map(|(at, ..)| *at).collect();
    assert_eq!(at, [112, 113]);
}
