//! Requests that wait for the GMMU, the entries that TLBs keep of its answers, and the entries that they drop.

use super::*;
use balar_protocol::translation::{FaultKind, PageAccess, Translation};

pub(super) const MIB: u64 = 1 << 20;
pub(super) const PAGE: u64 = 4096;
const GMMU: PortId = PortId(1);

/// A message that the SM has sent.
#[derive(Debug, PartialEq)]
enum Sent {
    /// A request: line, whose memory.
    Request(u64, Aperture),
    /// A question to the GMMU: number, address, access.
    Asks(u32, u64, PageAccess),
    /// Requests that wait besides: number, page, requests, access.
    Joins(u32, u64, u32, PageAccess),
    Used(u64, u32, bool),
    Invalidated(u32),
}

use Sent::{Asks, Invalidated, Joins, Request, Used};

impl Fixture {
    /// With a GMMU; the first level of the TLB has pages of 2 MiB.
    pub(super) fn translated(change: impl FnOnce(&mut SmParameters)) -> Fixture {
        let mut parameters = parameters();
        change(&mut parameters);
        let mut fixture = Fixture::new();
        fixture.pipe = MemoryPipe::new(&parameters, 0);
        fixture.ports.translation = Some(GMMU);
        fixture.bench = Bench::new(&[SimTime(0); 2]);
        fixture
    }

    fn lane(&mut self, kind: AccessKind, address: u64, cycle: u64) {
        let one = MemoryAccess { mask: 1, ..access(kind, Space::Global, |_| address) };
        self.accept(&one, if kind == AccessKind::Load { REGISTERS } else { Purpose::Nothing }, 0, cycle);
    }

    fn load(&mut self, address: u64, cycle: u64) {
        self.lane(AccessKind::Load, address, cycle);
    }

    pub(super) fn tell(&mut self, message: TranslationMessage, cycle: u64) {
        self.pipe.translated(&message, cycle, &self.ports, &mut self.bench.out);
    }

    fn answer_page(&mut self, id: u32, translation: Translation, cycle: u64) {
        self.tell(TranslationMessage::Response { id, translation }, cycle);
    }

    fn sent(&mut self) -> Vec<Sent> {
        let sent = self.bench.out.take_sent().into_iter().map(|(_, message)| message.payload);
        let read = |payload| match payload {
            Payload::Memory(MemoryMessage::Request(request)) => Request(request.line, request.aperture),
            Payload::Translation(TranslationMessage::Request { address, id, access }) => Asks(id, address, access),
            Payload::Translation(TranslationMessage::Joined { address, id, requests, access }) => {
                Joins(id, address, requests, access)
            }
            Payload::Translation(TranslationMessage::Used { page, requests, written }) => Used(page, requests, written),
            Payload::Translation(TranslationMessage::Invalidated { id }) => Invalidated(id),
            other => panic!("unexpected {other:?}"),
        };
        sent.map(read).collect()
    }

    pub(super) fn counts(&self) -> [u64; 4] {
        let counters = self.pipe.counters();
        [counters.tlb_evictions, counters.tlb_entries_invalidated, counters.tlb_shootdowns, counters.tlb_faults]
    }
}

fn page(page: u64, valid_bits: u8) -> Translation {
    Translation { page, valid_bits, aperture: Aperture::Device, writable: true, followed: false }
}

fn not_resident(id: u32, address: u64) -> TranslationMessage {
    TranslationMessage::Fault { id, address, page_bits: 12, kind: FaultKind::NotResident }
}

use Aperture::{Device, Host};
use PageAccess::{Atomic, Read, Write};

#[test]
fn misses_to_a_region_are_one_question() {
    let mut fixture = Fixture::translated(|_| {});
    fixture.load(2 * MIB + 512, 100);
    fixture.load(2 * MIB + 5 * PAGE, 110);
    fixture.lane(AccessKind::Store, 2 * MIB + 9 * PAGE, 120);
    fixture.load(4 * MIB, 130);
    assert_eq!(fixture.sent(), [Asks(0, 2 * MIB + 512, Read), Asks(1, 4 * MIB, Read)]);
    fixture.answer_page(0, page(2 * MIB, 39), 200);
    let released = [2 * MIB + 512, 2 * MIB + 5 * PAGE, 2 * MIB + 9 * PAGE].map(|line| Request(line, Device));
    assert_eq!(fixture.sent(), released);
    // The first level has 2 MiB now, the second one 32 MiB.
    fixture.load(3 * MIB, 210);
    fixture.load(8 * MIB, 220);
    assert_eq!(fixture.sent(), [Request(3 * MIB, Device), Request(8 * MIB, Device)]);
    let counters = fixture.pipe.counters();
    assert_eq!((counters.tlb_lookups, counters.tlb_misses, counters.tlb_second_level_misses), (6, 5, 4));
}

#[test]
fn a_fault_parts_its_page_from_the_others_of_the_region() {
    let mut fixture = Fixture::translated(|_| {});
    fixture.load(512, 100);
    fixture.load(1024, 101);
    fixture.lane(AccessKind::Reduction, 7 * PAGE, 102);
    fixture.load(3 * PAGE, 103);
    fixture.load(7 * PAGE + 128, 104);
    assert_eq!(fixture.sent(), [Asks(0, 512, Read)]);
    fixture.tell(not_resident(0, 0), 200);
    let asks = [Asks(1, 7 * PAGE, Atomic), Asks(2, 3 * PAGE, Read)];
    let told: Vec<Sent> = [Joins(0, 0, 1, Read)].into_iter().chain(asks).chain([Joins(1, 7 * PAGE, 1, Read)]).collect();
    assert_eq!(fixture.sent(), told, "each page alone, and each request that waits for it");
    // New ones join page by page.
    fixture.load(7 * PAGE + 256, 210);
    fixture.load(2048, 211);
    fixture.load(8 * PAGE, 212);
    let told = [Joins(1, 7 * PAGE, 1, Read), Joins(0, 0, 1, Read), Asks(3, 8 * PAGE, Read)];
    assert_eq!(fixture.sent(), told);
    fixture.tell(not_resident(3, 8 * PAGE), 220);
    assert_eq!(fixture.sent(), []);
    fixture.answer_page(0, page(0, 12), 300);
    assert_eq!(fixture.sent(), [512, 1024, 2048].map(|line| Request(line, Device)));
    fixture.answer_page(2, page(3 * PAGE, 12), 310);
    assert_eq!(fixture.sent(), [Request(3 * PAGE, Device)]);
    fixture.answer_page(1, Translation { aperture: Host, ..page(7 * PAGE, 12) }, 320);
    assert_eq!(fixture.sent(), [7 * PAGE, 7 * PAGE + 128, 7 * PAGE + 256].map(|line| Request(line, Host)));
    assert_eq!(fixture.counts()[3], 2);
    // An answer for all of the region ends it.
    fixture.answer_page(3, page(0, 21), 330);
    assert_eq!(fixture.sent(), [Request(8 * PAGE, Device)]);
}

#[test]
fn what_an_answer_does_not_cover_asks_again() {
    let mut fixture = Fixture::translated(|_| {});
    for (line, cycle) in [(512, 100), (0x1_0000, 101), (PAGE, 102), (0x1_2000, 103)] {
        fixture.load(line, cycle);
    }
    fixture.sent();
    fixture.answer_page(0, page(0, 16), 200);
    let sent = fixture.sent();
    let asks = [Asks(1, 0x1_0000, Read), Joins(1, 0x1_0000, 1, Read)];
    let told: Vec<Sent> = asks.into_iter().chain([512, PAGE].map(|line| Request(line, Device))).collect();
    assert!(sent.len() == told.len() && told.iter().all(|one| sent.contains(one)), "{sent:?}");
    fixture.answer_page(1, page(0x1_0000, 16), 300);
    assert_eq!(fixture.sent(), [Request(0x1_0000, Device), Request(0x1_2000, Device)]);
    // The region has pages of 64 KiB.
    fixture.load(0x4_0000, 400);
    fixture.load(0x5_0000, 401);
    fixture.load(0x5_2000, 402);
    let told = [Asks(2, 0x4_0000, Read), Asks(3, 0x5_0000, Read), Joins(3, 0x5_0000, 1, Read)];
    assert_eq!(fixture.sent(), told);
}

#[test]
fn stores_to_what_may_only_be_read_ask_again() {
    let mut fixture = Fixture::translated(|_| {});
    fixture.load(512, 100);
    fixture.lane(AccessKind::Store, 640, 101);
    fixture.lane(AccessKind::Atomic, 768, 102);
    assert_eq!(fixture.sent(), [Asks(0, 512, Read)]);
    let read_only = Translation { writable: false, ..page(0, 12) };
    fixture.answer_page(0, read_only, 200);
    assert_eq!(fixture.sent(), [Request(512, Device), Asks(1, 640, Write), Joins(1, 0, 1, Atomic)]);
    // Loads go on meanwhile, stores do not.
    fixture.load(896, 210);
    fixture.lane(AccessKind::Store, 1024, 211);
    assert_eq!(fixture.sent(), [Request(896, Device), Joins(1, 0, 1, Write)]);
    fixture.answer_page(1, page(0, 12), 300);
    assert_eq!(fixture.sent(), [640, 768, 1024].map(|line| Request(line, Device)));
    fixture.lane(AccessKind::Store, 1152, 310);
    assert_eq!(fixture.sent(), [Request(1152, Device)]);
    fixture.lane(AccessKind::Store, PAGE, 320);
    assert_eq!(fixture.sent(), [Asks(2, PAGE, Write)]);
}

#[test]
fn without_a_gmmu_an_address_says_whose_memory_it_is() {
    let mut fixture = Fixture::translated(|_| {});
    fixture.ports.translation = None;
    let pinned = balar_host::memory::HOST_BASE;
    fixture.load(pinned, 100);
    fixture.load(pinned + 128, 101);
    fixture.load(2 * MIB, 102);
    assert_eq!(fixture.sent(), [Request(pinned, Host), Request(pinned + 128, Host), Request(2 * MIB, Device)]);
}

#[test]
fn an_invalidation_drops_entries_and_lines() {
    let mut fixture = Fixture::translated(|_| {});
    for (id, address) in [512, 8 * PAGE].into_iter().enumerate() {
        fixture.load(address, 100);
        fixture.bench.out.take_sent();
        fixture.answer_page(id as u32, page(address / PAGE * PAGE, 12), 200);
        let requests = fixture.requests();
        fixture.answer(&requests[0], 300);
    }
    // Of the lines under way, two come after the page has left; one waits for the GMMU.
    fixture.load(640, 400);
    fixture.load(8 * PAGE + 128, 401);
    let under_way = fixture.requests();
    fixture.load(9 * PAGE, 410);
    assert_eq!(fixture.sent(), [Asks(2, 9 * PAGE, Read)]);
    let leaves = fixture.pipe.last_request();
    fixture.tell(TranslationMessage::Invalidate { address: 0, bytes: PAGE, id: 77 }, 411);
    fixture.tell(TranslationMessage::Invalidate { address: 9 * PAGE, bytes: 1 << 40, id: 78 }, 411);
    let told = fixture.bench.out.take_sent();
    let times: Vec<u64> = told.iter().map(|(_, message)| fixture.ports.clock.cycle_at_or_after(message.time)).collect();
    assert_eq!((times, leaves > 411), (vec![leaves; 2], true), "what was translated before has left by then");
    assert_eq!(fixture.counts(), [0, 2, 2, 0], "one page in both levels");
    // The lines of the page are gone, those of the other are there.
    for request in &under_way {
        fixture.answer(request, 500);
    }
    fixture.answer_page(2, page(9 * PAGE, 12), 510);
    let waited = fixture.requests();
    fixture.answer(&waited[0], 520);
    for address in [8 * PAGE, 8 * PAGE + 128, 9 * PAGE, 512, 640] {
        fixture.load(address, 600);
    }
    assert_eq!(fixture.sent(), [Asks(3, 512, Read), Joins(3, 0, 1, Read)], "both lines of the page ask for it");
    fixture.answer_page(3, page(0, 12), 700);
    assert_eq!(fixture.sent(), [Request(512, Device), Request(640, Device)]);
}

#[test]
fn what_comes_from_the_host_stays_out_of_the_l1() {
    for (served_by, again) in [(ServedBy::HostMemory, 1), (ServedBy::DeviceMemory, 0)] {
        let mut fixture = Fixture::new();
        fixture.load(GLOBAL, 100);
        let response = fixture.requests()[0].response(0, served_by);
        fixture.pipe.receive(&fixture.specification, response, 200, &mut Vec::new());
        fixture.load(GLOBAL, 300);
        assert_eq!(fixture.requests().len(), again, "{served_by:?}");
    }
}

#[test]
fn the_use_of_followed_pages_is_reported() {
    let mut fixture = Fixture::translated(|parameters| {
        parameters.tlb.entries = 2;
        parameters.tlb.second_level_entries = 3;
        parameters.tlb.report_interval = 1000;
    });
    let followed = |address| Translation { followed: true, ..page(address, 12) };
    let enter = |fixture: &mut Fixture, number: u64, cycle| {
        fixture.load(number * PAGE, cycle);
        let asks = fixture.sent();
        let Some(&Asks(id, ..)) = asks.last() else { panic!("{asks:?}") };
        fixture.answer_page(id, followed(number * PAGE), cycle + 100);
        fixture.sent()
    };
    let first = [Used(0, 1, false), Request(0, Device)];
    assert_eq!(enter(&mut fixture, 0, 100), first, "a page is used for the first time");
    fixture.load(128, 300);
    fixture.lane(AccessKind::Store, 256, 1100);
    let dirty = [Request(128, Device), Used(0, 2, true), Request(256, Device)];
    assert_eq!(fixture.sent(), dirty, "the interval is not over, but the page changes for the first time");
    fixture.load(384, 1300);
    assert_eq!(fixture.sent(), [Request(384, Device)]);
    // Its count is kept in the second level, while two others have the first.
    fixture.load(512, 1400);
    fixture.sent();
    enter(&mut fixture, 1, 1500);
    enter(&mut fixture, 2, 1700);
    fixture.load(640, 1900);
    fixture.load(768, 2400);
    let sent = fixture.sent();
    assert_eq!(sent, [Request(640, Device), Used(0, 4, false), Request(768, Device)]);
    // A page that is in no level any more is reported.
    fixture.lane(AccessKind::Store, 896, 2500);
    fixture.sent();
    let mut reports = Vec::new();
    for number in 3..6 {
        reports.extend(enter(&mut fixture, number, 2000 + 200 * number));
    }
    reports.retain(|sent| matches!(sent, Used(0, ..)));
    assert_eq!(reports, [Used(0, 1, true)]);
    // So is a page that is dropped.
    fixture.lane(AccessKind::Store, 5 * PAGE + 128, 3200);
    fixture.load(5 * PAGE + 256, 3300);
    fixture.sent();
    fixture.tell(TranslationMessage::Invalidate { address: 0, bytes: u64::MAX, id: 4 }, 9000);
    assert_eq!(fixture.sent(), [Used(5 * PAGE, 1, false), Invalidated(4)]);
}

#[test]
fn a_state_with_waiting_requests_goes_on() {
    let course = |saved: bool| {
        let mut fixture = Fixture::translated(|_| {});
        for page in 0..9 {
            fixture.load(page * PAGE, 100 + page);
        }
        fixture.tell(not_resident(0, 0), 200);
        fixture.answer_page(3, page(3 * PAGE, 12), 210);
        let mut sent = fixture.sent();
        if saved {
            let bytes = ron::to_string(&fixture.pipe).expect("it is written");
            fixture.pipe = ron::from_str(&bytes).expect("it is read");
        }
        fixture.load(3 * PAGE + 128, 300);
        fixture.load(4 * PAGE + 128, 301);
        fixture.answer_page(4, page(4 * PAGE, 12), 310);
        fixture.answer_page(0, page(0, 12), 311);
        fixture.tell(TranslationMessage::Invalidate { address: 0, bytes: PAGE, id: 4 }, 400);
        sent.extend(fixture.sent());
        (sent, fixture.counts())
    };
    let whole = course(false);
    assert_eq!(whole.0.len(), 1 + 8 + 1 + 1 + 1 + 2 + 1 + 1, "{:?}", whole.0);
    assert_eq!(course(true), whole);
}
