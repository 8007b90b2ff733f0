//! Managed memory: faults, their reports, and replays.

use super::*;
use crate::test_support::Arrival;
use balar_host::memory::{HOST_BASE, MANAGED_BASE};
use balar_protocol::migration::{FaultEntry, Faults, MigrationMessage};
use balar_protocol::translation::Aperture;

pub(super) const PAGE: u64 = 4096;
const DRIVER: PortId = PortId(2);

/// A GMMU of two SMs with a driver, in cycles of a nanosecond; every wire takes one.
pub(super) struct Fixture {
    unit: Gmmu,
    bench: Bench,
    now: u64,
}

/// A text for each message: its arrival, its receiver, and its contents. Addresses of managed memory are counted in pages from its start.
fn text((time, port, payload): (SimTime, PortId, Payload)) -> String {
    let page = |address: u64| address.wrapping_sub(MANAGED_BASE) / PAGE;
    let entry = |entry: &FaultEntry| format!("{} {:?} of {}", page(entry.page), entry.access, entry.tlb);
    let what = match payload {
        Payload::Translation(TranslationMessage::Response { id, translation }) => {
            let Translation { page: address, valid_bits, aperture, writable, followed } = translation;
            let allowed = if writable { "" } else { " read-only" };
            let followed = if followed { " followed" } else { "" };
            format!("answer {id}: {} of 2^{valid_bits} {aperture:?}{allowed}{followed}", page(address))
        }
        Payload::Translation(TranslationMessage::Fault { id, address, page_bits: 12, kind }) => {
            format!("fault {id}: {} {kind:?}", page(address))
        }
        Payload::Translation(TranslationMessage::Invalidate { address: 0, bytes: u64::MAX, id }) => {
            format!("invalidate {id}: all")
        }
        Payload::Translation(TranslationMessage::Invalidate { address, bytes, id }) => {
            format!("invalidate {id}: {} from {}", bytes / PAGE, page(address))
        }
        Payload::Migration(MigrationMessage::Faults(faults)) => {
            let entries: Vec<String> = faults.entries.iter().map(entry).collect();
            format!("faults [{}], {} overflows", entries.join(", "), faults.overflows)
        }
        Payload::Migration(message) => format!("{message:?}"),
        other => panic!("unexpected {other:?}"),
    };
    let receiver = if port == DRIVER { "driver".to_owned() } else { format!("sm{}", port.0) };
    format!("{} {receiver}: {what}", time.0 / 1000)
}

impl Fixture {
    /// Four blocks are managed, and the SMs have dropped their entries of them.
    pub(super) fn new(parameters: &str) -> Fixture {
        let parameters = format!(r#"(clock: "1 GHz", hit_latency: 5, walk_latency: 100, {parameters})"#);
        let parameters = GmmuParameters::from_ron(&parameters).expect("parameters");
        let ports = [("sm", 0), ("sm", 1), ("driver", 0)];
        let unit = with_context(&ports, 1, |context| Gmmu::new(parameters, context)).expect("gmmu");
        let mut fixture = Fixture { unit, bench: Bench::new(&[SimTime(1000); 3]), now: 0 };
        fixture.tell(1, MigrationMessage::Manage { address: MANAGED_BASE, bytes: 8 * MIB, managed: true });
        let sent = fixture.run(9);
        assert!(sent.len() == 2 && sent.iter().all(|text| text.ends_with("invalidate 0: 2048 from 0")), "{sent:?}");
        fixture
    }

    /// The driver says something.
    pub(super) fn tell(&mut self, ns: u64, message: MigrationMessage) {
        self.bench.deliver(SimTime(ns * 1000), DRIVER, Payload::Migration(message));
    }

    /// The driver maps pages.
    pub(super) fn map(&mut self, ns: u64, first: u64, pages: u64, replay: bool) {
        self.map_as(ns, (first, pages), Aperture::Device, true, replay);
    }

    pub(super) fn map_as(&mut self, ns: u64, pages: (u64, u64), aperture: Aperture, writable: bool, replay: bool) {
        let (address, bytes) = (MANAGED_BASE + pages.0 * PAGE, pages.1 * PAGE);
        self.tell(ns, MigrationMessage::Map { address, bytes, aperture, writable, replay });
    }

    pub(super) fn unmap(&mut self, ns: u64, first: u64, pages: u64, id: u32) {
        self.tell(ns, MigrationMessage::Unmap { address: MANAGED_BASE + first * PAGE, bytes: pages * PAGE, id });
    }

    /// An SM asks for a managed page.
    pub(super) fn ask(&mut self, ns: u64, sm: u16, page: u64, id: u32, access: PageAccess) {
        let request = TranslationMessage::Request { address: MANAGED_BASE + page * PAGE + 256, id, access };
        self.bench.deliver(SimTime(ns * 1000), PortId(sm), Payload::Translation(request));
    }

    pub(super) fn read(&mut self, ns: u64, sm: u16, page: u64, id: u32) {
        self.ask(ns, sm, page, id, PageAccess::Read);
    }

    /// The messages that the GMMU has sent until then. SMs say 3 ns after each invalidation that they have dropped its entries.
    pub(super) fn run(&mut self, until: u64) -> Vec<String> {
        let mut texts = Vec::new();
        while self.now < until {
            self.now += 1;
            for sent in self.bench.run(&mut self.unit, SimTime(700), SimTime(self.now * 1000)) {
                if let Payload::Translation(TranslationMessage::Invalidate { id, .. }) = sent.2 {
                    let done = Payload::Translation(TranslationMessage::Invalidated { id });
                    self.bench.deliver(SimTime(sent.0.0 + 3000), sent.1, done);
                }
                texts.push(text(sent));
            }
        }
        texts
    }

    pub(super) fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        names.map(|name| counter(&self.unit, name))
    }

    pub(super) fn outstanding(&self) -> Option<String> {
        self.unit.outstanding()
    }
}

#[test]
fn a_page_that_is_not_mapped_is_waited_for() {
    let mut fixture = Fixture::new("");
    fixture.read(10, 0, 3, 7);
    let faulted = ["116 sm0: fault 7: 3 NotResident", "116 driver: Pending"];
    assert_eq!(fixture.run(200), faulted, "when the walk ends");
    let first = MANAGED_BASE + 3 * PAGE;
    let waits = format!("1 requests wait for 1 pages that are not mapped, the first at {first:#x}");
    assert_eq!(fixture.outstanding(), Some(waits));
    fixture.tell(210, MigrationMessage::Fetch { limit: 8 });
    fixture.tell(220, MigrationMessage::Fetch { limit: 8 });
    fixture.map(230, 0, 16, false);
    assert_eq!(
        fixture.run(300),
        ["211 driver: faults [3 Read of 0], 0 overflows", "221 driver: faults [], 0 overflows"]
    );
    fixture.tell(310, MigrationMessage::Replay { flush: false });
    assert_eq!(fixture.run(500), ["416 sm0: answer 7: 0 of 2^16 Device"], "it walks again");
    assert_eq!(fixture.outstanding(), None);
    let names =
        ["requests", "tlb_misses", "walks", "latency", "far_faults", "fault_entries", "fault_latency", "replays"];
    assert_eq!(fixture.counters(names), [1, 2, 2, 405, 1, 1, 300, 1]);
    assert_eq!(fixture.counters(["replayed_requests", "pages_mapped", "faults_merged"]), [1, 16, 0]);
}

#[test]
fn each_request_makes_an_entry_between_replays() {
    let mut fixture = Fixture::new("");
    for (ns, sm, page, id) in [(10, 0, 3, 1), (20, 0, 3, 2), (30, 1, 3, 3), (40, 1, 5, 4)] {
        fixture.read(ns, sm, page, id);
    }
    // The second and the third join the walk of the first.
    let faults =
        ["116 sm0: fault 1: 3 NotResident", "116 sm0: fault 2: 3 NotResident", "116 sm1: fault 3: 3 NotResident"];
    let mut sent = fixture.run(200);
    assert_eq!(sent.len(), 5, "{sent:?}");
    sent.retain(|text| text.contains(": 3 NotResident"));
    assert_eq!(sent, faults);
    fixture.tell(210, MigrationMessage::Fetch { limit: 2 });
    fixture.tell(220, MigrationMessage::Replay { flush: false });
    fixture.tell(400, MigrationMessage::Fetch { limit: 9 });
    fixture.tell(410, MigrationMessage::Replay { flush: true });
    fixture.tell(600, MigrationMessage::Fetch { limit: 9 });
    let sent = fixture.run(700);
    assert_eq!(
        sent,
        [
            "211 driver: faults [3 Read of 0, 3 Read of 0], 0 overflows",
            // What was left comes twice; the SMs try again side by side, but one walk ends before the other.
            "401 driver: faults [3 Read of 1, 5 Read of 1, 3 Read of 0, 3 Read of 1, 3 Read of 0, 5 Read of 1], 0 overflows",
            "516 driver: Pending",
            "601 driver: faults [3 Read of 0, 3 Read of 1, 3 Read of 0, 5 Read of 1], 0 overflows",
        ],
        "nobody is told again that it waits"
    );
    let names = ["far_faults", "faults_merged", "fault_entries", "replays", "replayed_requests", "walks"];
    assert_eq!(fixture.counters(names), [2, 2, 12, 2, 8, 6]);
}

#[test]
fn requests_that_join_another_are_faults_like_it() {
    let mut fixture = Fixture::new("faults: Buffered(entries: 7, per_tlb: 6)");
    let join = |fixture: &mut Fixture, ns: u64, id: u32, requests: u32| {
        let address = MANAGED_BASE + 3 * PAGE + 512;
        let joined = TranslationMessage::Joined { address, id, requests, access: PageAccess::Write };
        fixture.bench.deliver(SimTime(ns * 1000), PortId(0), Payload::Translation(joined));
    };
    fixture.read(10, 0, 3, 1);
    // One joins during the walk, one afterwards; one joins a translation that was not asked for.
    join(&mut fixture, 20, 1, 1);
    join(&mut fixture, 150, 1, 1);
    join(&mut fixture, 151, 9, 3);
    fixture.run(200);
    fixture.tell(210, MigrationMessage::Fetch { limit: 9 });
    assert_eq!(fixture.run(220), ["211 driver: faults [3 Read of 0, 3 Read of 0, 3 Write of 0], 0 overflows"]);
    // All three are faults again; five more find room for three of their TLB.
    fixture.tell(230, MigrationMessage::Replay { flush: true });
    join(&mut fixture, 400, 1, 5);
    fixture.tell(410, MigrationMessage::Fetch { limit: 9 });
    let entries = ["3 Read of 0"; 3].into_iter().chain(["3 Write of 0"; 3]).collect::<Vec<_>>().join(", ");
    let sent = fixture.run(420);
    assert_eq!(sent.last(), Some(&format!("411 driver: faults [{entries}], 0 overflows")));
    // When the page has come, its TLB has room for the entries of another.
    fixture.map(430, 3, 1, true);
    fixture.read(440, 0, 4, 2);
    fixture.run(600);
    fixture.tell(610, MigrationMessage::Fetch { limit: 9 });
    assert_eq!(fixture.run(620), ["611 driver: faults [4 Read of 0], 0 overflows"]);
    assert_eq!(fixture.counters(["requests", "far_faults", "fault_entries", "fault_overflows"]), [2, 2, 10, 0]);
}

#[test]
fn a_flush_empties_the_buffer() {
    let mut fixture = Fixture::new("");
    fixture.read(10, 0, 3, 1);
    fixture.run(200);
    fixture.tell(210, MigrationMessage::Replay { flush: true });
    fixture.tell(220, MigrationMessage::Fetch { limit: 9 });
    assert_eq!(fixture.run(400), ["221 driver: faults [], 0 overflows", "316 driver: Pending"]);
}

#[test]
fn buffer_and_tlbs_have_room_for_so_many_faults() {
    for (room, entries, overflows) in [
        ("entries: 9, per_tlb: 2", "0 Read of 0, 1 Read of 0", 0),
        ("entries: 2, per_tlb: 9", "0 Read of 0, 1 Read of 0", 2),
    ] {
        let mut fixture = Fixture::new(&format!("faults: Buffered({room})"));
        for page in 0..4 {
            fixture.read(10 + page, 0, page, page as u32);
        }
        fixture.run(200);
        fixture.tell(210, MigrationMessage::Fetch { limit: 9 });
        assert_eq!(fixture.run(220), [format!("211 driver: faults [{entries}], {overflows} overflows")], "{room}");
        assert_eq!(fixture.counters(["fault_overflows"]), [overflows]);
        // The others have their turn after a replay, and the TLB has room again.
        fixture.map(220, 0, 2, false);
        fixture.tell(230, MigrationMessage::Replay { flush: false });
        fixture.tell(400, MigrationMessage::Fetch { limit: 9 });
        let sent = fixture.run(500);
        assert_eq!(sent.last().map(String::as_str), Some("401 driver: faults [2 Read of 0, 3 Read of 0], 0 overflows"));
    }
}

#[test]
fn the_pages_of_a_cycle_are_one_message() {
    let mut fixture = Fixture::new("faults: EachCycle, requests_per_cycle: 8, walkers: 8");
    for (ns, sm, page, id) in
        [(10, 0, 9, 1), (10, 1, 9, 2), (10, 1, 4, 3), (11, 0, 4, 4), (11, 0, 700, 5), (200, 1, 9, 6)]
    {
        fixture.ask(ns, sm, page, id, if id == 5 { PageAccess::Atomic } else { PageAccess::Read });
    }
    let mut sent = fixture.run(400);
    sent.retain(|text| text.contains("driver"));
    let expected = [
        "116 driver: faults [9 Read of 0, 4 Read of 1], 0 overflows",
        "117 driver: faults [700 Atomic of 0], 0 overflows",
    ];
    assert_eq!(sent, expected);
    fixture.map(410, 4, 16, true);
    let answers = ["411 sm0: answer 4: 4 of 2^12 Device", "411 sm0: answer 1: 9 of 2^12 Device"];
    let sent = fixture.run(500);
    assert_eq!(sent.iter().filter(|text| text.contains("sm0")).collect::<Vec<_>>(), answers);
    assert_eq!(sent.len(), 5, "three of the other SM, at once: {sent:?}");
    assert_eq!(fixture.counters(["far_faults", "faults_merged", "fault_entries", "replays"]), [3, 3, 3, 0]);
}

#[test]
fn who_may_only_read_faults_again_to_write() {
    for (parameters, told) in [("faults: EachCycle", "faults [3 Write of 1], 0 overflows"), ("", "Pending")] {
        let mut fixture = Fixture::new(parameters);
        fixture.read(10, 0, 3, 1);
        fixture.ask(11, 1, 3, 2, PageAccess::Write);
        fixture.run(200);
        fixture.tell(205, MigrationMessage::Fetch { limit: 9 });
        fixture.run(209);
        fixture.map_as(210, (0, 16), Aperture::Device, false, true);
        let sent = fixture.run(300);
        assert_eq!(sent, ["211 sm0: answer 1: 0 of 2^16 Device read-only".to_owned(), format!("211 driver: {told}")]);
        // The TLB has the page by now, but not for writing.
        fixture.read(310, 0, 4, 3);
        fixture.ask(500, 1, 4, 4, PageAccess::Atomic);
        let sent = fixture.run(700);
        assert_eq!(sent[..2], ["416 sm0: answer 3: 0 of 2^16 Device read-only", "606 sm1: fault 4: 4 NotResident"]);
        fixture.map(710, 0, 16, true);
        let sent = fixture.run(800);
        assert_eq!(sent, ["711 sm1: answer 2: 0 of 2^16 Device", "711 sm1: answer 4: 0 of 2^16 Device"]);
    }
}

#[test]
fn walks_to_a_page_are_shared_and_the_cache_of_walks_shortens_them() {
    let mut fixture =
        Fixture::new("walkers: 1, walk_cache_entries: 1, walk_cache_latency: 20, managed_page_sizes: Small");
    fixture.map(9, 0, 2048, false);
    for (ns, page, id) in [(10, 0, 1), (15, 0, 2), (16, 1, 3), (400, 0, 4), (500, 513, 5), (700, 3, 6), (900, 4, 7)] {
        fixture.read(ns, 0, page, id);
    }
    let sent = fixture.run(1000);
    let times: Vec<&str> = sent.iter().filter_map(|text| text.split(' ').next()).collect();
    // Two share a walk; the third waits for the walker and finds nothing in the cache when it asks; the last one finds its block there.
    assert_eq!(times, ["116", "116", "216", "406", "606", "806", "926"], "{sent:?}");
    assert_eq!(fixture.counters(["walks", "walk_cache_hits", "tlb_hits", "tlb_misses"]), [5, 1, 1, 6]);
}

#[test]
fn a_large_page_takes_one_entry() {
    for (sizes, walks) in [("Mixed", 1), ("Small", 4)] {
        let mut fixture = Fixture::new(&format!("managed_page_sizes: {sizes}"));
        fixture.map(9, 0, 512, false);
        for page in 0..4 {
            fixture.read(10 + 200 * page, 0, 16 * page, 1);
        }
        let sent = fixture.run(1000);
        let answer = if sizes == "Mixed" {
            "116 sm0: answer 1: 0 of 2^21 Device"
        } else {
            "116 sm0: answer 1: 0 of 2^12 Device"
        };
        assert_eq!(sent[0], answer);
        assert_eq!(fixture.counters(["walks"]), [walks]);
    }
}

#[test]
fn pages_can_lie_in_the_memory_of_the_host() {
    let mut fixture = Fixture::new("follow_use: true");
    fixture.map_as(9, (0, 16), Aperture::Host, true, false);
    fixture.ask(10, 1, 3, 1, PageAccess::Atomic);
    assert_eq!(fixture.run(200), ["116 sm1: answer 1: 3 of 2^12 Host followed"]);
    let used = TranslationMessage::Used { page: MANAGED_BASE, requests: 9, written: true };
    fixture.bench.deliver(SimTime(210_000), PortId(1), Payload::Translation(used));
    let reported = format!("211 driver: Used {{ page: {MANAGED_BASE}, requests: 9, written: true }}");
    assert_eq!(fixture.run(300), [reported]);
    assert_eq!(fixture.counters(["used_reports"]), [1]);
}

#[test]
fn what_is_not_managed_is_mapped_onto_itself() {
    let (mut fixture, mut bench) = (Fixture::new(""), Bench::new(&[SimTime(1000); 3]));
    let unit = &mut fixture.unit;
    for (id, address) in [HOST_BASE + 5, MANAGED_BASE + 8 * MIB, 64 * MIB].into_iter().enumerate() {
        ask(&mut bench, 100, 0, address, id as u32);
    }
    let sent = bench.run(unit, SimTime(1000), SimTime(1_000_000));
    let translations = sent.into_iter().map(|(_, _, payload)| match payload {
        Payload::Translation(TranslationMessage::Response { translation, .. }) => translation,
        other => panic!("unexpected {other:?}"),
    });
    let expected =
        |page, valid_bits, aperture| Translation { page, valid_bits, aperture, writable: true, followed: false };
    assert_eq!(
        translations.collect::<Vec<_>>(),
        [
            expected(HOST_BASE, IDENTITY_BITS, Aperture::Host),
            expected(MANAGED_BASE + 8 * MIB, 23, Aperture::Device),
            expected(64 * MIB, IDENTITY_BITS, Aperture::Device),
        ]
    );
}

#[test]
fn whoever_waits_for_memory_that_is_no_longer_managed_goes_on() {
    for parameters in ["", "faults: EachCycle"] {
        let mut fixture = Fixture::new(parameters);
        fixture.read(10, 0, 3, 1);
        fixture.run(150);
        // A walk is under way.
        fixture.read(152, 1, 5, 2);
        let release = MigrationMessage::Manage { address: MANAGED_BASE, bytes: 8 * MIB, managed: false };
        fixture.tell(160, release);
        fixture.tell(170, MigrationMessage::Fetch { limit: 9 });
        let sent = fixture.run(400);
        assert_eq!(
            sent,
            [
                "161 sm0: invalidate 1: 2048 from 0",
                "161 sm1: invalidate 1: 2048 from 0",
                "161 sm0: answer 1: 0 of 2^39 Device",
                "171 driver: faults [], 0 overflows",
                "258 sm1: answer 2: 0 of 2^39 Device",
            ]
        );
        assert_eq!(fixture.outstanding(), None);
    }
}

#[test]
fn parameters_that_contradict_themselves_are_refused() {
    for (parameters, problem) in [
        ("entries: 0", "entries: expected 1 to 1048576, found 0"),
        ("entries: 64, ways: 7", "ways: expected a divisor of entries, or 0"),
        (r#"page_size: "3 KiB""#, "page_size: expected a power of two, found 3 KiB"),
        (r#"page_size: "64 MiB""#, "entry_reach: expected at least a page"),
        ("faults: Buffered(entries: 0, per_tlb: 1)", "faults.entries: expected 1 to 1048576, found 0"),
        ("faults: Buffered(entries: 1, per_tlb: 0)", "faults.per_tlb: expected at least 1, found 0"),
    ] {
        let parameters = GmmuParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters");
        let error = with_context(&[("sm", 0)], 1, |context| Gmmu::new(parameters, context)).expect_err(problem);
        assert!(error.to_string().contains(problem), "{error}");
    }
}

/// A driver that serves every fault after a while, and SMs that drop entries when they are told to.
fn reply((time, _, payload): &Arrival) -> Vec<Arrival> {
    let after = |ns: u64, port: PortId, payload: Payload| (SimTime(time.0 + ns * 1000), port, payload);
    let say = |ns, message| after(ns, DRIVER, Payload::Migration(message));
    match payload {
        Payload::Migration(MigrationMessage::Pending) => vec![say(90, MigrationMessage::Fetch { limit: 3 })],
        Payload::Migration(MigrationMessage::Faults(faults)) => {
            let Faults { entries, .. } = &**faults;
            let map = |entry: &FaultEntry| {
                let (address, writable) = (entry.page & !0xffff, entry.access.writes() || entry.page & 0x1_0000 == 0);
                let aperture = if entry.page & 0x2_0000 == 0 { Aperture::Device } else { Aperture::Host };
                MigrationMessage::Map {
                    address,
                    bytes: 16 * PAGE,
                    aperture,
                    writable,
                    replay: entry.page & 0x1000 == 0,
                }
            };
            let mut told: Vec<Arrival> = entries.iter().map(|entry| say(300, map(entry))).collect();
            told.push(say(310, MigrationMessage::Replay { flush: entries.len() == 2 }));
            told.extend((!entries.is_empty()).then(|| say(330, MigrationMessage::Fetch { limit: 3 })));
            told
        }
        _ => Vec::new(),
    }
}

#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    for parameters in [
        "faults: Buffered(entries: 6, per_tlb: 3), walk_cache_entries: 2",
        "faults: EachCycle, shootdown_when: EachUpdate, shootdown_scope: Entry, shootdown_latency: 3",
        "managed_page_sizes: Small, shootdown_scope: All, follow_use: true, shootdown_when: EachUpdate, ways: 4",
    ] {
        let mut numbers = Numbers::new(11);
        let manage = |at, managed| {
            let message = MigrationMessage::Manage { address: MANAGED_BASE, bytes: 8 * MIB, managed };
            (SimTime(at), DRIVER, Payload::Migration(message))
        };
        let mut script = vec![manage(500, true), manage(9_000_000, false), manage(9_500_000, true)];
        for id in 0..600 {
            let (time, port) = (SimTime(1000 + numbers.below(12_000_000)), PortId(numbers.below(2) as u16));
            let address = MANAGED_BASE + numbers.below(600) * 5 * PAGE;
            let access =
                [PageAccess::Read, PageAccess::Read, PageAccess::Write, PageAccess::Atomic][numbers.below(4) as usize];
            script.push(match numbers.below(30) {
                0 => {
                    let unmap = MigrationMessage::Unmap { address, bytes: (numbers.below(40) + 1) * PAGE, id };
                    (time, DRIVER, Payload::Migration(unmap))
                }
                1 => {
                    let used = TranslationMessage::Used { page: address, requests: id, written: false };
                    (time, port, Payload::Translation(used))
                }
                // Most join nothing; some join one that waits.
                2..6 => {
                    let joined = TranslationMessage::Joined { address, id: id / 2, requests: id % 5, access };
                    (time, port, Payload::Translation(joined))
                }
                _ => (time, port, Payload::Translation(TranslationMessage::Request { address, id, access })),
            });
        }
        let build = || -> Box<dyn Unit> {
            let parameters = format!(r#"(clock: "1312 MHz", entries: 16, walkers: 2, {parameters})"#);
            let parameters = GmmuParameters::from_ron(&parameters).expect("parameters");
            let ports = [("sm", 0), ("sm", 1), ("driver", 0)];
            Box::new(with_context(&ports, 1, |context| Gmmu::new(parameters, context)).expect("gmmu"))
        };
        let reply = |arrival: &Arrival| match arrival.2 {
            Payload::Translation(TranslationMessage::Invalidate { id, .. }) => {
                let done = Payload::Translation(TranslationMessage::Invalidated { id });
                vec![(SimTime(arrival.0.0 + 20_000), arrival.1, done)]
            }
            _ => reply(arrival),
        };
        check_cuts_and_states(build, 3, SimTime(1000), script, reply, SimTime(80_000_000));
    }
}
