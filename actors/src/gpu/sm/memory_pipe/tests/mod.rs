mod translation;
mod with_gmmu;

use super::*;
use crate::engine::Bench;
use crate::gpu::sm::parameters::tests::parameters;
use balar_protocol::memory::{MemoryMessage, ServedBy};
use balar_protocol::translation::TranslationMessage;
use balar_protocol::{Clock, Message, Payload, PortId, SimTime};

const GLOBAL: u64 = 0x1_0000;

/// A V100's memory pipe with its wiring.
struct Fixture {
    specification: PipeSpecification,
    pipe: MemoryPipe,
    ports: Ports,
    bench: Bench,
    counters: CtaCounters,
}

impl Fixture {
    fn new() -> Fixture {
        let parameters = parameters();
        Fixture {
            specification: PipeSpecification::new(&parameters),
            pipe: MemoryPipe::new(&parameters, 0),
            ports: Ports { clock: Clock::new(parameters.clock), memory: PortId(0), translation: None, drains: true },
            bench: Bench::new(&[SimTime(0)]),
            counters: CtaCounters::default(),
        }
    }

    fn accept(&mut self, access: &MemoryAccess, purpose: Purpose, known: u64, cycle: u64) -> Answer {
        let owner = Owner { warp: 5, generation: 9, purpose };
        let access = Access { access, further: &[], owner, launch: 1, known, counters: &mut self.counters };
        self.pipe.accept(&self.specification, access, (cycle, cycle), &self.ports, &mut self.bench.out).0
    }

    /// The requests since the last call.
    fn requests(&mut self) -> Vec<MemoryRequest> {
        let sent = self.bench.out.take_sent().into_iter().map(|(_, message)| message.payload);
        sent.filter_map(|payload| match payload {
            Payload::Memory(MemoryMessage::Request(request)) => Some(request),
            _ => None,
        })
        .collect()
    }

    fn answer(&mut self, request: &MemoryRequest, cycle: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let response = request.response(request.sectors, ServedBy::L2);
        self.pipe.receive(&self.specification, response, cycle, &mut events);
        events.retain(|event| *event != Event::Room);
        events
    }
}

fn access(kind: AccessKind, space: Space, address: impl Fn(usize) -> u64) -> MemoryAccess {
    MemoryAccess { kind, space, mask: u32::MAX, addresses: std::array::from_fn(address), ..MemoryAccess::default() }
}

const REGISTERS: Purpose = Purpose::Registers { pc: 3 };

#[test]
fn a_load_misses_once_and_hits_then() {
    let mut fixture = Fixture::new();
    let load = access(AccessKind::Load, Space::Global, |lane| GLOBAL + 4 * lane as u64);
    let key = fixture.pipe.next_key();
    assert_eq!(fixture.accept(&load, REGISTERS, 0, 100), Answer::Pending(key));
    let requests = fixture.requests();
    assert_eq!(requests.iter().map(|request| (request.line, request.sectors)).collect::<Vec<_>>(), [(GLOBAL, 0b1111)]);
    // A second load joins the line under way.
    let second = fixture.pipe.next_key();
    assert_eq!(fixture.accept(&load, REGISTERS, 0, 110), Answer::Pending(second));
    assert_eq!(fixture.requests(), []);
    let owner = Owner { warp: 5, generation: 9, purpose: REGISTERS };
    let found = |hits| Event::Found(5, 9, FoundSectors { hits, fetched: 0, promoted: 0 });
    let events = fixture.answer(&requests[0], 300);
    assert_eq!(events, [Event::Completed(second, owner), found(4), Event::Completed(key, owner)]);
    // One line of four sectors: the pipe is taken for a cycle, and the hit latency is 28.
    assert_eq!(fixture.accept(&load, REGISTERS, 0, 400), Answer::At(428));
    assert_eq!((fixture.counters.l1_sectors_load, fixture.counters.l1_sector_hits_load), (12, 8));
    // Three loads of 32 words: all of their sectors.
    assert_eq!(fixture.counters.l1_bytes_load, 12 * 32);
    assert_eq!(fixture.pipe.counters().l1_mshr_merges, 4);
}

#[test]
fn accesses_go_through_the_pipe_one_after_the_other() {
    let mut fixture = Fixture::new();
    // 32 lines take 8 cycles of tags, 4 a cycle.
    let scattered = access(AccessKind::Store, Space::Global, |lane| GLOBAL + 128 * lane as u64);
    assert_eq!(fixture.accept(&scattered, Purpose::Nothing, 0, 100), Answer::Written(32));
    // A word of each sector.
    assert_eq!((fixture.counters.l1_sectors_store, fixture.counters.l1_bytes_store), (32, 32 * 4));
    // Shared memory without conflicts: one wavefront, 19 cycles, from when the pipe is free.
    let shared = access(AccessKind::Load, Space::Shared, |lane| 4 * lane as u64);
    assert_eq!(fixture.accept(&shared, REGISTERS, 0, 100), Answer::At(108 + 19));
    // All lanes in one bank: 32 wavefronts.
    let conflicts = access(AccessKind::Load, Space::Shared, |lane| 128 * lane as u64);
    assert_eq!(fixture.accept(&conflicts, REGISTERS, 0, 100), Answer::At(109 + 19 + 31));
    assert_eq!(fixture.counters.shared_memory_bank_conflicts, 31);
    assert_eq!(fixture.counters.shared_memory_bank_conflicts_load, 31);
    // The pipe is free at 141.
    assert_eq!(fixture.pipe.exchange(100, 104, 2), Taken { first: 141, last: 142 });
}

#[test]
fn lanes_of_a_bank_update_shared_memory_one_after_the_other() {
    // Lanes side by side, pairs on one word, two words of a bank, one word for all.
    for (lanes_of_a_bank, word) in
        [(1, &(|lane| lane) as &dyn Fn(u64) -> u64), (2, &|lane| lane / 2), (2, &|lane| 2 * lane), (32, &|_| 7)]
    {
        for kind in [AccessKind::Atomic, AccessKind::Reduction] {
            let mut fixture = Fixture::new();
            let update = access(kind, Space::Shared, |lane| 4 * word(lane as u64));
            let last = 100 + 2 * lanes_of_a_bank - 1;
            assert_eq!(fixture.accept(&update, REGISTERS, 0, 100), Answer::At(last + 19), "{lanes_of_a_bank}");
            assert_eq!(fixture.counters.shared_wavefronts_store, lanes_of_a_bank);
        }
    }
}

#[test]
fn local_stores_stay_in_the_l1() {
    for (space, hits) in [(Space::Local, true), (Space::Global, false)] {
        let mut fixture = Fixture::new();
        let lanes = |lane: usize| GLOBAL + 4 * lane as u64;
        fixture.accept(&access(AccessKind::Store, space, lanes), Purpose::Nothing, 0, 100);
        let answer = fixture.accept(&access(AccessKind::Load, space, lanes), REGISTERS, 0, 200);
        assert_eq!(answer == Answer::At(228), hits, "{space:?}");
    }
}

#[test]
fn what_an_atomic_changes_is_no_longer_in_the_l1() {
    for kind in [AccessKind::Atomic, AccessKind::Reduction, AccessKind::Store] {
        let mut fixture = Fixture::new();
        let load = access(AccessKind::Load, Space::Global, |lane| GLOBAL + 4 * lane as u64);
        fixture.accept(&load, REGISTERS, 0, 100);
        let requests = fixture.requests();
        fixture.answer(&requests[0], 300);
        // One word of the second sector.
        fixture.accept(&access(kind, Space::Global, |_| GLOBAL + 36), REGISTERS, 0, 400);
        fixture.requests();
        fixture.accept(&load, REGISTERS, 0, 500);
        let missing: Vec<u8> = fixture.requests().iter().map(|request| request.sectors).collect();
        assert_eq!(missing, if kind == AccessKind::Store { vec![] } else { vec![0b0010] }, "{kind:?}");
    }
}

#[test]
fn loads_take_the_l1_for_a_part_of_a_cycle_more() {
    let mut fixture = Fixture::new();
    let load = access(AccessKind::Load, Space::Global, |lane| GLOBAL + 4 * lane as u64);
    // Five loads of 1.6 cycles each.
    for _ in 0..5 {
        fixture.accept(&load, REGISTERS, 0, 100);
    }
    assert_eq!(fixture.pipe.exchange(100, 100, 1), Taken { first: 108, last: 108 });
}

#[test]
fn loads_of_many_lines_have_the_conflicts_of_their_banks() {
    // A column takes one word of each line, all in one bank; a diagonal takes one of each bank, and 8 cycles of tags.
    for (stride, cycles) in [(128, 32), (132, 8)] {
        let mut fixture = Fixture::new();
        let load = access(AccessKind::Load, Space::Global, |lane| GLOBAL + stride * lane as u64);
        fixture.accept(&load, REGISTERS, 0, 100);
        assert_eq!(fixture.pipe.exchange(100, 100, 1).first, 100 + cycles, "{stride}");
    }
}

#[test]
fn stores_are_acknowledged_line_by_line() {
    let mut fixture = Fixture::new();
    let store = access(AccessKind::Store, Space::Global, |lane| GLOBAL + 8 * lane as u64);
    assert_eq!(fixture.accept(&store, Purpose::Nothing, 0, 0), Answer::Written(2));
    let requests = fixture.requests();
    assert_eq!((requests.len(), fixture.pipe.writes_under_way()), (2, 2));
    assert_eq!(fixture.answer(&requests[1], 300), [Event::Acknowledged(5, 9)]);
    assert_eq!(fixture.pipe.writes_under_way(), 1);
}

#[test]
fn a_drain_follows_the_last_store_if_somebody_wants_it() {
    for drains in [true, false] {
        let mut fixture = Fixture::new();
        fixture.ports.drains = drains;
        let store = access(AccessKind::Store, Space::Global, |lane| GLOBAL + 128 * lane as u64);
        fixture.accept(&store, Purpose::Nothing, 0, 100);
        fixture.pipe.drain(101, &fixture.ports, &mut fixture.bench.out);
        let sent = fixture.bench.out.take_sent();
        let is_drain = |payload: &Payload| matches!(payload, Payload::Memory(MemoryMessage::Drain));
        let drain = sent.iter().find(|(_, message)| is_drain(&message.payload)).map(|(_, message)| message.time);
        let last =
            sent.iter().filter(|(_, message)| !is_drain(&message.payload)).map(|(_, message)| message.time).max();
        assert_eq!(drain, last.filter(|_| drains));
        assert_eq!(sent.len(), 32 + usize::from(drains));
    }
}

#[test]
fn the_answer_to_an_atomic_waits_until_its_value_is_known() {
    let mut fixture = Fixture::new();
    let owner = |purpose| Owner { warp: 5, generation: 9, purpose };
    for (kind, purpose) in [(AccessKind::Atomic, REGISTERS), (AccessKind::Reduction, Purpose::Nothing)] {
        let update = access(kind, Space::Global, |_| GLOBAL);
        let key = fixture.pipe.next_key();
        assert_eq!(fixture.accept(&update, purpose, 130, 100), Answer::Updated(key, 1));
        assert_eq!(fixture.pipe.owner(key), Some(owner(purpose)));
        let requests = fixture.requests();
        assert_eq!(fixture.answer(&requests[0], 125), []);
        assert_eq!((fixture.pipe.next_due(), fixture.pipe.writes_under_way()), (130, 1));
        let mut events = Vec::new();
        fixture.pipe.release_due(&fixture.specification, 129, &mut events);
        assert_eq!(events, []);
        fixture.pipe.release_due(&fixture.specification, 130, &mut events);
        assert_eq!(events, [Event::Completed(key, owner(purpose)), Event::Acknowledged(5, 9), Event::Room]);
        assert_eq!((fixture.pipe.next_due(), fixture.pipe.owner(key)), (u64::MAX, None));
        // One that comes later is taken at once.
        fixture.accept(&update, purpose, 230, 200);
        let requests = fixture.requests();
        assert_eq!(
            fixture.answer(&requests[0], 230),
            [Event::Completed(key, owner(purpose)), Event::Acknowledged(5, 9)]
        );
    }
}

#[test]
fn a_full_pipe_has_room_when_lines_come() {
    let mut fixture = Fixture::new();
    // 256 lines can be outstanding, and an access touches up to 32.
    let mut requests = Vec::new();
    for group in 0..8 {
        assert!(fixture.pipe.has_room_for_loads(&fixture.specification), "{group}");
        let load = access(AccessKind::Load, Space::Global, |lane| GLOBAL + 4096 * group + 128 * lane as u64);
        fixture.accept(&load, REGISTERS, 0, 0);
        requests.append(&mut fixture.requests());
    }
    assert!(!fixture.pipe.has_room_for_loads(&fixture.specification));
    for (count, request) in requests.iter().enumerate() {
        let mut events = Vec::new();
        fixture.pipe.receive(&fixture.specification, request.response(0, ServedBy::L2), 500, &mut events);
        assert_eq!(fixture.pipe.has_room_for_loads(&fixture.specification), count >= 31, "{count}");
    }
}

/// With two places and a queue for one access, a store of four lines leaves two behind, and what follows waits for them.
#[test]
fn requests_wait_for_places_in_the_crossbar_and_accesses_for_the_requests() {
    let mut fixture = Fixture::new();
    let parameters = SmParameters { request_queue: 33, ..parameters() };
    fixture.specification = PipeSpecification::new(&parameters);
    fixture.pipe = MemoryPipe::new(&parameters, 2);
    let store = access(AccessKind::Store, Space::Global, |lane| GLOBAL + 16 * lane as u64);
    assert_eq!(fixture.accept(&store, Purpose::Nothing, 0, 100), Answer::Written(4));
    let lines = |requests: Vec<MemoryRequest>| requests.iter().map(|request| request.line - GLOBAL).collect::<Vec<_>>();
    assert_eq!(lines(fixture.requests()), [0, 128]);
    assert!(!fixture.pipe.has_room_for_loads(&fixture.specification));
    assert!(!fixture.pipe.has_room_for_stores(&fixture.specification));
    fixture.ports.translation = Some(PortId(0));
    fixture.pipe.drain(130, &fixture.ports, &mut fixture.bench.out);
    let shootdown = TranslationMessage::Invalidate { address: GLOBAL, bytes: 4096, id: 6 };
    fixture.pipe.translated(&shootdown, 131, &fixture.ports, &mut fixture.bench.out);
    assert!(fixture.bench.out.take_sent().is_empty(), "they come behind the requests");

    let mut events = Vec::new();
    let mut free = |fixture: &mut Fixture, cycle| {
        let out = (&fixture.ports, &mut fixture.bench.out);
        fixture.pipe.places_freed(&fixture.specification, &Credits::ONE, cycle, out, &mut events);
    };
    free(&mut fixture, 200);
    assert_eq!(lines(fixture.requests()), [256]);
    assert!(fixture.pipe.has_room_for_loads(&fixture.specification));
    free(&mut fixture, 240);
    let at = |cycle| fixture.ports.clock.time_of(cycle);
    let sent: Vec<_> = fixture.bench.out.take_sent().into_iter().map(|(_, sent)| (sent.time, sent.payload)).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|(time, _)| *time == at(240)), "{sent:?}");
    assert!(matches!(sent[1].1, Payload::Memory(MemoryMessage::Drain)), "{sent:?}");
    assert!(matches!(sent[2].1, Payload::Translation(TranslationMessage::Invalidated { id: 6 })), "{sent:?}");
    assert_eq!(events, [Event::Room, Event::Room]);
    // One a cycle comes to the port.
    let from = 100 + fixture.specification.miss_latency;
    assert_eq!(fixture.pipe.counters().request_stall_cycles, 200 + 240 - (from + 2) - (from + 3));
    assert_eq!(fixture.pipe.counters().request_queue_maximum, 2);
}
