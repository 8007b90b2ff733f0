//! Two SMs, a GMMU and a driver that maps and unmaps pages at random: nothing leaves for a page that is not there, and nothing stays behind.

use super::translation::{MIB, PAGE};
use super::*;
use crate::catalogue::ParameterSet;
use crate::engine::Unit;
use crate::gpu::gmmu::{Gmmu, GmmuParameters};
use crate::test_support::{Numbers, counter, with_context};
use balar_host::memory::MANAGED_BASE;
use balar_protocol::migration::MigrationMessage;
use std::collections::BTreeMap;

const WIRE: u64 = 20;
const DRIVER: PortId = PortId(2);
const PAGES: u64 = 1024;

/// The driver's knowledge of a page, and the accesses that have gone there.
#[derive(Clone, Copy, Default)]
struct Page {
    is_mapped: bool,
    is_writable: bool,
    /// An unmapping has not been answered.
    is_leaving: bool,
    last_request: u64,
}

/// Everything, in steps of a nanosecond.
struct Node {
    now: u64,
    sms: Vec<Fixture>,
    gmmu: Gmmu,
    bench: Bench,
    pages: Vec<Page>,
    numbers: Numbers,
    /// Messages to SMs, answers of memory to them, and acts of the driver, by (time, sequence).
    to_sms: BTreeMap<(u64, usize), (usize, TranslationMessage)>,
    answers: BTreeMap<(u64, usize), (usize, MemoryResponse)>,
    to_driver: BTreeMap<(u64, usize), MigrationMessage>,
    sequence: usize,
    unmappings: BTreeMap<u32, (u64, u64)>,
    /// Pages that have faulted and are to be mapped.
    wanted: BTreeMap<u64, bool>,
    next_service: u64,
    requests: u64,
}

impl Node {
    fn new(parameters: &str, seed: u64) -> Node {
        let parameters = GmmuParameters::from_ron(&format!(r#"(clock: "1 GHz", {parameters})"#)).expect("parameters");
        let ports = [("sm", 0), ("sm", 1), ("driver", 0)];
        let gmmu = with_context(&ports, 1, |context| Gmmu::new(parameters, context)).expect("gmmu");
        let mut bench = Bench::new(&[SimTime(WIRE * 1000); 3]);
        let manage = MigrationMessage::Manage { address: MANAGED_BASE, bytes: PAGES * PAGE, managed: true };
        bench.deliver(SimTime(1000), DRIVER, Payload::Migration(manage));
        let sm = |_| {
            Fixture::translated(|parameters| {
                (parameters.tlb.entries, parameters.tlb.second_level_entries) = (8, 32);
            })
        };
        Node {
            now: 0,
            sms: (0..2).map(sm).collect(),
            gmmu,
            bench,
            pages: vec![Page::default(); PAGES as usize],
            numbers: Numbers::new(seed),
            to_sms: BTreeMap::new(),
            answers: BTreeMap::new(),
            to_driver: BTreeMap::new(),
            sequence: 0,
            unmappings: BTreeMap::new(),
            wanted: BTreeMap::new(),
            next_service: 0,
            requests: 0,
        }
    }

    fn key(&mut self, time: SimTime) -> (u64, usize) {
        self.sequence += 1;
        (time.0.div_ceil(1000), self.sequence)
    }

    fn tell_gmmu(&mut self, message: MigrationMessage) {
        self.bench.deliver(SimTime((self.now + WIRE) * 1000), DRIVER, Payload::Migration(message));
    }

    /// A warp of an SM accesses a few pages, most of them near each other.
    fn access(&mut self, sm: usize, cycle: u64) {
        let fixture = &mut self.sms[sm];
        let (loads, stores) = (
            fixture.pipe.has_room_for_loads(&fixture.specification),
            fixture.pipe.has_room_for_stores(&fixture.specification),
        );
        if !loads || !stores {
            return;
        }
        let kinds = [AccessKind::Load, AccessKind::Load, AccessKind::Store, AccessKind::Reduction];
        let kind = kinds[self.numbers.below(4) as usize];
        let (first, spread) = (self.numbers.below(PAGES - 40), 1 + self.numbers.below(40));
        let is_managed = self.numbers.below(8) > 0;
        let addresses = std::array::from_fn(|_| {
            let offset = (first + self.numbers.below(spread)) * PAGE + self.numbers.below(PAGE / 4) * 4;
            if is_managed { MANAGED_BASE + offset } else { MANAGED_BASE - MIB * 256 + offset * 64 }
        });
        let access = MemoryAccess { mask: 0xf, addresses, ..access(kind, Space::Global, |_| 0) };
        fixture.accept(&access, if kind == AccessKind::Load { REGISTERS } else { Purpose::Nothing }, 0, cycle);
    }

    /// Messages of an SM go on their way; requests are answered after a while.
    fn forward(&mut self, sm: usize) {
        for (_, Message { time, payload, .. }) in self.sms[sm].bench.out.take_sent() {
            match payload {
                Payload::Memory(MemoryMessage::Request(request)) => {
                    self.requests += 1;
                    if let Some(number) = request.line.checked_sub(MANAGED_BASE) {
                        let page = &mut self.pages[(number / PAGE) as usize];
                        let may_go = page.is_mapped && (page.is_writable || !request.kind.carries_data());
                        assert!(may_go, "at {time} {request:?} goes to page {}, which is not there", number / PAGE);
                        page.last_request = page.last_request.max(time.0);
                    }
                    let key = self.key(time + SimTime(300_000));
                    self.answers.insert(key, (sm, request.response(0, ServedBy::L2)));
                }
                Payload::Translation(_) => {
                    self.bench.deliver(time + SimTime(WIRE * 1000), PortId(sm as u16), payload);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn run_gmmu(&mut self) {
        for (time, port, payload) in self.bench.run(&mut self.gmmu, SimTime(1000), SimTime(self.now * 1000 + 1)) {
            let key = self.key(time);
            match payload {
                Payload::Translation(message) => drop(self.to_sms.insert(key, (usize::from(port.0), message))),
                Payload::Migration(message) => drop(self.to_driver.insert(key, message)),
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn run_driver(&mut self, unmaps: bool) {
        while let Some(entry) = self.to_driver.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                MigrationMessage::Pending => self.tell_gmmu(MigrationMessage::Fetch { limit: 5 }),
                MigrationMessage::Faults(faults) => {
                    for entry in &faults.entries {
                        let number = (entry.page - MANAGED_BASE) / PAGE;
                        *self.wanted.entry(number).or_default() |= entry.access.writes();
                    }
                    if !faults.entries.is_empty() {
                        self.tell_gmmu(MigrationMessage::Fetch { limit: 5 });
                    }
                }
                MigrationMessage::Unmapped { id } => {
                    let (first, count) = self.unmappings.remove(&id).expect("it was asked for");
                    for page in &mut self.pages[first as usize..(first + count) as usize] {
                        assert!(
                            page.last_request < self.now * 1000,
                            "a request leaves when the page is said to be gone"
                        );
                        (page.is_mapped, page.is_leaving) = (false, false);
                    }
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        if self.now >= self.next_service {
            self.next_service = self.now + 200 + self.numbers.below(200);
            self.serve();
        }
        if unmaps && self.numbers.below(400) == 0 {
            self.unmap();
        }
    }

    /// Maps pages that have faulted, now and then with the rest of their leaf.
    fn serve(&mut self) {
        for (number, writes) in std::mem::take(&mut self.wanted) {
            let (first, count) = if self.numbers.below(2) == 0 { (number / 16 * 16, 16) } else { (number, 1) };
            let pages = &mut self.pages[first as usize..(first + count) as usize];
            if pages.iter().any(|page| page.is_leaving) {
                self.wanted.insert(number, writes);
                continue;
            }
            let writable =
                writes || pages.iter().any(|page| page.is_writable && page.is_mapped) || self.numbers.below(2) == 0;
            pages.iter_mut().for_each(|page| (page.is_mapped, page.is_writable) = (true, writable));
            let replay = self.numbers.below(3) > 0;
            let (address, bytes, aperture) = (MANAGED_BASE + first * PAGE, count * PAGE, Aperture::Device);
            self.tell_gmmu(MigrationMessage::Map { address, bytes, aperture, writable, replay });
        }
        let flush = self.numbers.below(3) == 0;
        self.tell_gmmu(MigrationMessage::Replay { flush });
    }

    fn unmap(&mut self) {
        let (first, count) = (self.numbers.below(PAGES - 64), 1 + self.numbers.below(64));
        let pages = &mut self.pages[first as usize..(first + count) as usize];
        if pages.iter().any(|page| page.is_leaving) {
            return;
        }
        pages.iter_mut().for_each(|page| page.is_leaving = true);
        let id = self.sequence as u32;
        self.sequence += 1;
        self.unmappings.insert(id, (first, count));
        self.tell_gmmu(MigrationMessage::Unmap { address: MANAGED_BASE + first * PAGE, bytes: count * PAGE, id });
    }

    fn step(&mut self, accesses: bool) {
        self.now += 1;
        self.run_gmmu();
        let cycle = self.sms[0].ports.clock.cycle_at_or_after(SimTime(self.now * 1000));
        while let Some(entry) = self.to_sms.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (sm, message) = entry.remove();
            self.sms[sm].tell(message, cycle);
        }
        while let Some(entry) = self.answers.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (sm, response) = entry.remove();
            let fixture = &mut self.sms[sm];
            fixture.pipe.receive(&fixture.specification, response, cycle, &mut Vec::new());
        }
        self.run_driver(accesses);
        for sm in 0..self.sms.len() {
            if accesses && self.numbers.below(6) == 0 {
                self.access(sm, cycle);
            }
            self.forward(sm);
        }
    }
}

#[test]
fn nothing_goes_where_no_page_is_and_nothing_is_left() {
    for (seed, parameters) in [
        "faults: Buffered(entries: 12, per_tlb: 4)",
        "faults: EachCycle, managed_page_sizes: Small, walk_cache_entries: 1, walkers: 1",
        "shootdown_when: EachUpdate, shootdown_scope: Entry, shootdown_latency: 2",
        "shootdown_when: EachUpdate, shootdown_scope: All, faults: EachCycle",
    ]
    .into_iter()
    .enumerate()
    {
        let mut node = Node::new(parameters, seed as u64);
        (0..40_000).for_each(|_| node.step(node.now > 100));
        (0..40_000).for_each(|_| node.step(false));
        for sm in &node.sms {
            assert_eq!((sm.pipe.lines_under_way(), sm.pipe.writes_under_way()), (0, 0), "{parameters}");
            assert!(sm.counts()[..].iter().all(|&count| count > 0), "{parameters}: {:?}", sm.counts());
        }
        assert_eq!((node.gmmu.outstanding(), node.unmappings.len()), (None, 0), "{parameters}");
        assert!(node.requests > 2_000, "{parameters}: {}", node.requests);
        assert!(counter(&node.gmmu, "pages_unmapped") > 200, "{parameters}");
    }
}
