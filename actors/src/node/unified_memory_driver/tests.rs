use super::*;
use crate::engine::Bench;
use crate::test_support::{Arrival, Numbers, check_cuts_and_states, counter, with_context};
use crate::unified_memory::bandwidth::TransferCurve;
use balar_protocol::ProcessId;
use balar_protocol::managed::AdviceChange;
use balar_protocol::migration::{Direction, FaultEntry, Faults};
use balar_protocol::translation::{Aperture, PageAccess};

const HOST: PortId = PortId(0);
const GMMU: PortId = PortId(1);
const BASE: u64 = 0x4000_0000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const US: u64 = 1_000_000;

/// GPU i has its GMMU at port 2i + 1 and its link at the one behind.
fn driver_of(gpus: u32, parameters: &str) -> UnifiedMemoryDriver {
    let memory = if parameters.contains("gpu_memory") { "" } else { r#"gpu_memory: "1 GiB","# };
    let parameters = UnifiedMemoryDriverParameters::from_ron(&format!("({memory} {parameters})")).expect(parameters);
    let ports = std::iter::once(("host", 0)).chain((0..gpus).flat_map(|gpu| [("gmmu", gpu), ("link", gpu)]));
    let ports: Vec<_> = ports.collect();
    with_context(&ports, 1, |context| UnifiedMemoryDriver::new(parameters, context)).expect("a driver")
}

/// What was sent, in words: transfers as "in 4@0" or "out 4@0" cannot name pages, so bytes alone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// KiB to the GPU.
    In(u64),
    /// KiB to the host.
    Out(u64),
    /// First and last KiB of a mapped range, whose memory, and whether it may be written.
    Map(u64, u64, Aperture, bool),
    /// First and last KiB of a range that is unmapped.
    Unmap(u64, u64),
    Replay,
    /// A request of the host CPU is done.
    Done(u32),
}

/// GPUs and a host CPU that do as a test says. What takes no number of a GPU is of the first one.
struct Node {
    unit: UnifiedMemoryDriver,
    bench: Bench,
    curve: TransferCurve,
    now: u64,
    /// Faults that wait to be fetched, by GPU.
    buffers: Vec<Vec<FaultEntry>>,
    events: Vec<(u64, Event)>,
    /// What the last touch gave: first KiB, KiB, and whether they may be written.
    touched: Option<(u64, u64, bool)>,
}

impl Node {
    fn new(parameters: &str) -> Node {
        Node::with_gpus(1, parameters)
    }

    fn with_gpus(gpus: u8, parameters: &str) -> Node {
        Node {
            unit: driver_of(gpus.into(), parameters),
            bench: Bench::new(&vec![SimTime(1000); 1 + 2 * usize::from(gpus)]),
            curve: TransferCurve::default(),
            now: 0,
            buffers: vec![Vec::new(); gpus.into()],
            events: Vec::new(),
            touched: None,
        }
    }

    fn ask(&mut self, message: ManagedMessage) -> Vec<Event> {
        self.bench.deliver(SimTime(self.now), HOST, Payload::Managed(message));
        self.settle()
    }

    fn allocate(&mut self, kib: u64) -> &mut Node {
        self.ask(ManagedMessage::Allocate { address: BASE, bytes: kib * KIB });
        self
    }

    fn touch(&mut self, kib: u64, bytes: u64, write: bool) -> Vec<Event> {
        self.ask(ManagedMessage::Touch { address: BASE + kib * KIB, bytes, write, id: 1 })
    }

    /// The GPU faults on the pages at these KiB in one batch.
    fn fault(&mut self, pages: &[u64], access: PageAccess) -> Vec<Event> {
        self.has_faults(0, pages, access);
        self.settle()
    }

    /// A GPU says that it has faults on the pages at these KiB.
    fn has_faults(&mut self, gpu: u8, pages: &[u64], access: PageAccess) {
        let entry = |&kib: &u64| FaultEntry { page: BASE + kib * KIB, access, tlb: 0 };
        self.buffers[usize::from(gpu)].extend(pages.iter().map(entry));
        let gmmu = PortId(GMMU.0 + 2 * u16::from(gpu));
        self.bench.deliver(SimTime(self.now), gmmu, Payload::Migration(MigrationMessage::Pending));
    }

    /// The batches that are over: GPU, begin and end.
    fn batches(&self) -> Vec<(u8, SimTime, SimTime)> {
        self.unit.state.records.batches.iter().map(|batch| (batch.gpu, batch.began, batch.ended)).collect()
    }

    /// The GPU's faults of one cycle, which it tells by itself.
    fn fault_at_once(&mut self, pages: &[u64]) -> Vec<Event> {
        let entry = |&kib: &u64| FaultEntry { page: BASE + kib * KIB, access: PageAccess::Read, tlb: 0 };
        let faults = Faults { entries: pages.iter().map(entry).collect(), overflows: 0 };
        let message = MigrationMessage::Faults(Box::new(faults));
        self.bench.deliver(SimTime(self.now), GMMU, Payload::Migration(message));
        self.settle()
    }

    /// Runs until nothing happens any more, and gives what did.
    fn settle(&mut self) -> Vec<Event> {
        let before = self.events.len();
        loop {
            let start = self.bench.next_event();
            if start == SimTime::MAX {
                break;
            }
            let window = Window { start, until: start + SimTime(1000) };
            self.bench.call(&mut self.unit, window).unwrap_or_else(|broken| panic!("{broken}"));
            for (time, port, payload) in self.bench.take_sent() {
                self.answer(time, port, payload);
            }
            self.now = self.now.max(self.bench.asleep_since().0);
        }
        self.events[before..].iter().map(|(_, event)| event.clone()).collect()
    }

    fn answer(&mut self, time: SimTime, port: PortId, payload: Payload) {
        let kib = |address: u64| (address - BASE) / KIB;
        let (event, answer) = match payload {
            Payload::Managed(ManagedMessage::Done { id }) => (Some(Event::Done(id)), None),
            Payload::Managed(ManagedMessage::Touched { id, pages }) => {
                self.touched = pages.map(|pages| (kib(pages.address), pages.bytes / KIB, pages.writable));
                (Some(Event::Done(id)), None)
            }
            Payload::Migration(message) => match message {
                MigrationMessage::Fetch { limit } => {
                    let buffer = &mut self.buffers[usize::from((port.0 - GMMU.0) / 2)];
                    let count = buffer.len().min(limit as usize);
                    let faults = Faults { entries: buffer.drain(..count).collect(), overflows: 0 };
                    (None, Some((MigrationMessage::Faults(Box::new(faults)), 1)))
                }
                MigrationMessage::Transfer { id, bytes, direction, .. } => {
                    let event = if direction == Direction::ToDevice { Event::In } else { Event::Out };
                    let time = self.curve.time(bytes).0;
                    (Some(event(bytes / KIB)), Some((MigrationMessage::Transferred { id, began: SimTime::ZERO }, time)))
                }
                MigrationMessage::Map { address, bytes, aperture, writable, .. } => {
                    (Some(Event::Map(kib(address), kib(address + bytes), aperture, writable)), None)
                }
                MigrationMessage::Unmap { address, bytes, id } => {
                    let event = Event::Unmap(kib(address), kib(address + bytes));
                    (Some(event), Some((MigrationMessage::Unmapped { id }, US)))
                }
                MigrationMessage::Replay { .. } => (Some(Event::Replay), None),
                _ => (None, None),
            },
            other => panic!("unexpected {other:?}"),
        };
        self.events.extend(event.map(|event| (time.0, event)));
        if let Some((message, after)) = answer {
            self.bench.deliver(SimTime(time.0 + after), port, Payload::Migration(message));
        }
    }

    fn count(&self, name: &str) -> u64 {
        counter(&self.unit, name)
    }
}

/// KiB of the transfers to the GPU.
fn arrived(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| if let Event::In(kib) = event { Some(*kib) } else { None }).collect()
}

/// KiB of the transfers to the host.
fn left(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| if let Event::Out(kib) = event { Some(*kib) } else { None }).collect()
}

#[test]
fn microbenchmark_p1_moves_what_its_trace_shows_in_both_directions() {
    // Section 2.4 of the specification, rows "P1 HtoD" and "P1 DtoH".
    let mut node = Node::new("");
    node.allocate(2048).touch(0, 2 * MIB, true);
    let blocks = [
        (0, vec![4, 60]),
        (1, vec![4, 60]),
        (2, vec![4, 124]),
        (4, vec![4, 252]),
        (8, vec![4, 508]),
        (16, vec![4, 1020]),
    ];
    for (block, expected) in &blocks {
        let events = node.fault(&[block * 64], PageAccess::Read);
        assert_eq!(&arrived(&events), expected, "block {block}");
        assert_eq!(events.last(), Some(&Event::Replay));
    }
    assert_eq!((node.count("batches"), node.count("far_faults"), node.count("pages_to_device")), (6, 6, 512));
    // A page of each batch was asked for.
    assert_eq!(node.count("pages_prefetched"), 506);
    for (block, expected) in [
        (16, vec![4, 60]),
        (8, vec![4, 60]),
        (4, vec![4, 60]),
        (2, vec![4, 60]),
        (1, vec![4, 60]),
        (0, vec![4, 60, 64]),
    ] {
        let events = node.touch(block * 64, 4, false);
        assert_eq!(left(&events), expected, "block {block}");
        assert_eq!(events.last(), Some(&Event::Done(1)));
    }
    assert_eq!((node.count("host_faults"), node.count("pages_to_host")), (6, 7 * 16));
    // Six of the 112 pages had been asked for; of the others there was no report of use.
    assert_eq!(node.count("pages_prefetched_unused"), 106);
}

#[test]
fn what_nobody_has_touched_is_made_and_not_transferred() {
    let mut node = Node::new("");
    let events = node.allocate(2048).fault(&[0, 128], PageAccess::Write);
    assert_eq!(arrived(&events), []);
    assert_eq!((node.count("pages_populated"), node.count("pages_to_device")), (32, 0));
    // The prefetcher chose 30 of them, and none of these moved.
    assert_eq!(node.count("pages_prefetched"), 0);
    let mut node = Node::new("initial_residency: Host");
    assert_eq!(arrived(&node.allocate(2048).fault(&[0], PageAccess::Write)), [4, 60]);
    assert_eq!((node.count("pages_to_device"), node.count("pages_prefetched")), (16, 15));
}

#[test]
fn faults_of_one_cycle_are_served_at_once_by_the_cascading_tree() {
    let mut node = Node::new("initial_residency: Host, prefetcher: Tree, split: AfterFault, host_access: Eager");
    node.allocate(512);
    // Row SEED-1.
    for (block, expected) in
        [(1, vec![4, 60]), (3, vec![4, 60]), (5, vec![4, 60]), (7, vec![4, 60]), (0, vec![4, 60, 64, 64, 64])]
    {
        let events = node.fault_at_once(&[block * 64]);
        assert_eq!(arrived(&events), expected, "block {block}");
        assert!(!events.contains(&Event::Replay), "who waits goes on as pages arrive");
    }
    assert_eq!((node.count("far_faults"), node.count("batches")), (5, 0));
}

#[test]
fn a_full_memory_gives_the_block_that_came_first() {
    let mut node = Node::new(r#"gpu_memory: "4 MiB", prefetcher: SequentialLocal"#);
    node.allocate(3 * 2048).touch(0, 6 * MIB, true);
    let all = |block: u64| (0..32).map(|leaf| block * 2048 + leaf * 64).collect::<Vec<_>>();
    for block in 0..2 {
        let events = node.fault(&all(block), PageAccess::Write);
        assert_eq!((arrived(&events).iter().sum::<u64>(), left(&events)), (2048, vec![]));
    }
    let events = node.fault(&[2 * 2048], PageAccess::Read);
    assert_eq!((left(&events), arrived(&events)), (vec![2048], vec![4, 60]));
    let unmapped = events.iter().position(|event| *event == Event::Unmap(0, 2048)).expect("unmapped");
    let written = events.iter().position(|event| *event == Event::Out(2048)).expect("written back");
    let comes = events.iter().position(|event| *event == Event::In(4)).expect("comes");
    assert!(
        unmapped < written && written < comes,
        "a page leaves when no TLB has it, and another comes into its frame then"
    );
    assert_eq!((node.count("evictions"), node.count("pages_evicted"), node.count("pages_thrashed")), (1, 512, 0));
    assert_eq!(arrived(&node.fault(&[0], PageAccess::Read)), [4, 60]);
    assert_eq!(node.count("pages_thrashed"), 16);
}

#[test]
fn a_memory_that_is_too_small_for_anything_is_bypassed() {
    let mut node = Node::new(r#"gpu_memory: "8 KiB""#);
    node.allocate(64).touch(0, 64 * KIB, true);
    let events = node.fault(&[0, 4, 8], PageAccess::Read);
    assert_eq!(arrived(&events), [8]);
    assert!(events.contains(&Event::Map(8, 12, Aperture::Host, true)), "{events:?}");
    assert_eq!(events.last(), Some(&Event::Replay));
}

#[test]
fn a_touch_tells_which_pages_the_host_may_access_around_it() {
    let mut node = Node::new("");
    node.allocate(2048).touch(0, 2 * MIB, true);
    assert_eq!(node.touched, Some((0, 2048, true)));
    // A page that nobody has touched is made alone.
    let mut node = Node::new("");
    node.allocate(2048).touch(4, 1, true);
    assert_eq!(node.touched, Some((4, 4, true)));
    node.touch(8, 1, false);
    assert_eq!(node.touched, Some((4, 8, true)));
    // All of the block goes to the GPU, and comes back leaf by leaf.
    node.touch(0, 2 * MIB, true);
    let leaves: Vec<_> = (0..32).map(|leaf| leaf * 64).collect();
    node.fault(&leaves, PageAccess::Write);
    let before = node.count("host_faults");
    node.touch(100, 1, false);
    assert_eq!(node.touched, Some((64, 64, true)));
    node.touch(0, 1, true);
    assert_eq!((node.touched, node.count("host_faults") - before), (Some((0, 128, true)), 2));
    // What is there already takes no time, but for the way of the question and the answer.
    let start = node.now;
    assert_eq!(node.touch(127, 1, true), [Event::Done(1)]);
    assert_eq!(node.count("host_faults") - before, 2);
    assert!(node.now - start <= 2000, "{} ps", node.now - start);
    // Of what is gone, nothing is there.
    node.ask(ManagedMessage::Free { address: BASE });
    node.touch(0, 1, false);
    assert_eq!(node.touched, None);
}

#[test]
fn the_host_has_copies_that_it_may_not_write_unasked() {
    let mut node = Node::new("");
    node.allocate(64).touch(0, 64 * KIB, true);
    let advice = AdviceChange::ReadMostly(true);
    node.ask(ManagedMessage::Advise { address: BASE, bytes: 32 * KIB, advice });
    node.fault(&[0, 4], PageAccess::Read);
    node.touch(0, 1, false);
    let copied = node.touched.expect("the host has a copy");
    assert_eq!((copied.0, copied.2), (0, false), "the GPU has a copy, too");
    node.touch(0, 1, true);
    assert_eq!(node.touched, Some((0, 4, true)));

    // The GPU may not, either, where it had the pages alone.
    let mut node = Node::new("");
    node.allocate(64).fault(&[0], PageAccess::Write);
    node.ask(ManagedMessage::Advise { address: BASE, bytes: 64 * KIB, advice });
    let events = node.touch(0, 1, false);
    assert!(events.contains(&Event::Map(0, 64, Aperture::Device, false)), "{events:?}");
    node.fault(&[0], PageAccess::Write);
    assert_eq!(node.count("duplicates_ended"), 1);
}

#[test]
fn what_the_host_is_assumed_to_access_comes_back_at_each_synchronisation_of_its_process() {
    for parameters in ["", "host_access: Eager"] {
        let mut node = Node::new(parameters);
        node.allocate(2048);
        node.ask(ManagedMessage::AssumeHostAccesses { address: BASE, process: ProcessId(3) });
        assert_eq!(node.count("pages_populated"), 512);
        let leaves: Vec<_> = (0..32).map(|leaf| leaf * 64).collect();
        assert_eq!(arrived(&node.fault(&leaves, PageAccess::Read)).iter().sum::<u64>(), 2048, "all was on the host");
        let other = node.ask(ManagedMessage::Synchronise { id: 8, process: ProcessId::FIRST });
        assert_eq!(other, [Event::Done(8)], "{parameters}");
        let own = node.ask(ManagedMessage::Synchronise { id: 9, process: ProcessId(3) });
        assert_eq!(own.last(), Some(&Event::Done(9)));
        // Whoever keeps copies has them already.
        assert_eq!(left(&own).iter().sum::<u64>(), if parameters.is_empty() { 2048 } else { 0 });
        assert_eq!(arrived(&node.fault(&leaves, PageAccess::Read)).iter().sum::<u64>(), 2048, "{parameters}");
    }
}

#[test]
fn an_eager_synchronisation_brings_back_what_was_changed() {
    let mut node = Node::new("initial_residency: Host, prefetcher: Tree, host_access: Eager");
    node.allocate(4096);
    let all: Vec<_> = (0..64).map(|leaf| leaf * 64).collect();
    node.fault_at_once(&all);
    for page in 0..1024 {
        let used = MigrationMessage::Used { page: BASE + page * 4096, requests: 1, written: true };
        node.bench.deliver(SimTime(node.now), GMMU, Payload::Migration(used));
    }
    node.settle();
    let start = node.now;
    let events = node.ask(ManagedMessage::Synchronise { id: 9, process: ProcessId::FIRST });
    assert_eq!(left(&events), [4, 60, 4, 60, 4, 124, 4, 252, 4, 508, 4, 1020].repeat(2));
    assert_eq!(events.last(), Some(&Event::Done(9)));
    // Section 3: 351.726 us for 4 MiB at 1481 MHz, where each transfer is rounded down to a cycle; here to a picosecond, and wires take time.
    let us = (node.now - start) as f64 / US as f64;
    assert!((351.7..352.0).contains(&us), "{us}");
    assert_eq!((node.count("pages_synchronised"), node.count("synchronisations")), (1024, 1));
    assert_eq!(node.ask(ManagedMessage::Synchronise { id: 10, process: ProcessId::FIRST }), [Event::Done(10)]);
}

#[test]
fn advice_is_followed() {
    let advise = |advice| ManagedMessage::Advise { address: BASE, bytes: 64 * KIB, advice };
    // Mostly read: the host keeps its copy, and nobody may write until one does.
    let mut node = Node::new("");
    node.allocate(64).touch(0, 64 * KIB, true);
    node.ask(advise(AdviceChange::ReadMostly(true)));
    let events = node.fault(&[0], PageAccess::Read);
    assert!(events.contains(&Event::Map(0, 4, Aperture::Device, false)), "{events:?}");
    assert_eq!((arrived(&events), node.touch(0, 64 * KIB, false)), (vec![4, 60], vec![Event::Done(1)]));
    let events = node.fault(&[0], PageAccess::Write);
    assert_eq!(events, [Event::Map(0, 4, Aperture::Device, true), Event::Replay]);
    assert_eq!((node.count("pages_duplicated"), node.count("duplicates_ended")), (16, 1));

    // Preferred on the host: the GPU accesses it there.
    let mut node = Node::new("");
    node.allocate(64).touch(0, 64 * KIB, true);
    node.ask(advise(AdviceChange::PreferredLocation(None)));
    assert_eq!(node.fault(&[8], PageAccess::Write), [Event::Map(8, 12, Aperture::Host, true), Event::Replay]);
    node.ask(advise(AdviceChange::NoPreferredLocation));
    node.ask(advise(AdviceChange::AccessedBy(Some(0), true)));
    assert_eq!(node.fault(&[12], PageAccess::Read), [Event::Map(12, 16, Aperture::Host, true), Event::Replay]);
    node.ask(advise(AdviceChange::AccessedBy(Some(0), false)));
    assert_eq!(arrived(&node.fault(&[16], PageAccess::Read)), [16, 4, 44].map(|kib| if kib == 16 { 8 } else { kib }));
}

#[test]
fn prefetches_of_the_program_go_both_ways() {
    let mut node = Node::new("");
    node.allocate(4096).touch(0, 4 * MIB, true);
    let prefetch = |target, id| ManagedMessage::Prefetch { address: BASE + 1024 * KIB, bytes: 2 * MIB, target, id };
    let events = node.ask(prefetch(Some(0), 5));
    assert_eq!((arrived(&events), events.last()), (vec![1024, 1024], Some(&Event::Done(5))));
    assert_eq!(node.ask(prefetch(Some(0), 6)), [Event::Done(6)], "it is there");
    let events = node.ask(prefetch(None, 7));
    assert_eq!((left(&events), events.last()), (vec![1024, 1024], Some(&Event::Done(7))));
    assert_eq!(node.count("pages_user_prefetched"), 1024);
}

#[test]
fn a_page_over_which_both_fight_is_throttled_and_pinned() {
    let mut node = Node::new("");
    node.allocate(64).touch(0, 64 * KIB, true);
    for _ in 0..40 {
        node.fault(&[0], PageAccess::Write);
        node.touch(0, 4, true);
        if node.count("pages_pinned") > 0 {
            break;
        }
    }
    assert!(node.count("faults_throttled") >= 1, "{}", node.count("faults_throttled"));
}

#[test]
fn an_allocation_can_end_while_its_pages_are_on_their_way() {
    let mut node = Node::new("");
    node.allocate(2048).touch(0, 2 * MIB, true);
    let prefetch = ManagedMessage::Prefetch { address: BASE, bytes: 2 * MIB, target: Some(0), id: 3 };
    node.bench.deliver(SimTime(node.now), HOST, Payload::Managed(prefetch));
    let free = Payload::Managed(ManagedMessage::Free { address: BASE });
    node.bench.deliver(SimTime(node.now + 60 * US), HOST, free);
    assert_eq!(node.settle().last(), Some(&Event::Done(3)));
    assert_eq!((node.unit.state.gpus[0].used, node.unit.outstanding()), (0, None));
}

/// Two GPUs of four blocks fault at once on the pages at these KiB. How long the batch of the second one takes, and by how much both
/// overlap.
fn batches_of_two_gpus(first: u64, second: u64) -> (SimTime, SimTime) {
    let mut node = Node::with_gpus(2, "");
    node.allocate(4 * 2048).touch(0, 8 * MIB, true);
    // What a process needs once is paid before.
    node.fault(&[6144], PageAccess::Read);
    node.has_faults(0, &[first], PageAccess::Read);
    node.has_faults(1, &[second], PageAccess::Read);
    node.settle();
    let mut batches = node.batches().split_off(1);
    batches.sort_unstable();
    let [(0, began, ended), (1, other_began, other_ended)] = batches[..] else { panic!("{batches:?}") };
    let overlap = ended.min(other_ended).0.saturating_sub(began.max(other_began).0);
    assert_eq!((node.count("batches"), node.count("pages_to_device"), node.unit.outstanding()), (3, 48, None));
    (other_ended - other_began, SimTime(overlap))
}

#[test]
fn batches_of_two_gpus_are_served_at_once() {
    // What a batch of one page in a new block takes, when the process has had one before.
    let mut alone = Node::new("");
    alone.allocate(4 * 2048).touch(0, 8 * MIB, true);
    for block in 0..2 {
        alone.fault(&[block * 2048], PageAccess::Read);
    }
    let (_, began, ended) = alone.batches()[1];
    // In another block, a GPU takes no notice of the other one.
    assert_eq!(batches_of_two_gpus(0, 2048), (ended - began, ended - began));
    // In one block, its batch begins as early, and waits while the host works on the block for the other GPU.
    let (time, overlap) = batches_of_two_gpus(0, 1024);
    assert!(time > ended - began && overlap > SimTime::ZERO, "{time:?} {overlap:?}");
}

#[test]
fn parameters_out_of_range_are_errors() {
    let problems = |parameters: &str| -> String {
        let parameters = UnifiedMemoryDriverParameters::from_ron(&format!("({parameters})")).expect(parameters);
        let ports = [("host", 0), ("gmmu", 0), ("link", 0)];
        match with_context(&ports, 1, |context| UnifiedMemoryDriver::new(parameters, context)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    // The last value of each range, and the one behind it.
    for (legal, illegal, problem) in [
        ("free_buffer_percent: 99", "free_buffer_percent: 100", "free_buffer_percent: expected at most 99, found 100"),
        ("batch_entries: 1", "batch_entries: 0", "batch_entries: expected 1 to 1048576, found 0"),
        (
            r#"gpu_memory: "4 KiB""#,
            r#"gpu_memory: "4095 B""#,
            "gpu_memory: expected 0 B or at least 4 KiB, found 4095 B",
        ),
        (
            "prefetcher: Driver(threshold_percent: 100)",
            "prefetcher: Driver(threshold_percent: 101)",
            "prefetcher.threshold_percent: expected at most 100, found 101",
        ),
        (
            "prefetcher_when_full: Some(Driver(minimum_faults: 1))",
            "prefetcher_when_full: Some(Driver(minimum_faults: 0))",
            "prefetcher_when_full.minimum_faults: expected at least 1, found 0",
        ),
        (
            "eviction_options: (reserve_percent: 99)",
            "eviction_options: (reserve_percent: 100)",
            "eviction_options.reserve_percent: expected at most 99, found 100",
        ),
        (
            "remote_access: (threshold: 134217727)",
            "remote_access: (threshold: 134217728)",
            "remote_access.threshold: expected 1 to 134217727, found 134217728",
        ),
        (
            "remote_access: (penalty: 1)",
            "remote_access: (penalty: 0)",
            "remote_access.penalty: expected at least 1, found 0",
        ),
        (
            "thrashing: Some((threshold: 1))",
            "thrashing: Some((threshold: 0))",
            "thrashing.threshold: expected at least 1, found 0",
        ),
        (
            r#"thrashing: Some((lapse: "1 s"))"#,
            r#"thrashing: Some((lapse: "0 s"))"#,
            "thrashing.lapse: expected 1 ps to 1 s, found 0 ps",
        ),
        ("thrashing: Some((nap: 1))", "thrashing: Some((nap: 0))", "thrashing.nap: expected at least 1, found 0"),
        ("thrashing: Some((epoch: 1))", "thrashing: Some((epoch: 0))", "thrashing.epoch: expected at least 1, found 0"),
        (
            r#"costs: (new_block: "1 s")"#,
            r#"costs: (new_block: "1001 ms")"#,
            "costs.new_block: expected at most 1 s, found 1001 ms",
        ),
        (r#"host_fault_time: "1 s""#, r#"host_fault_time: "2 s""#, "host_fault_time: expected at most 1 s, found 2 s"),
    ] {
        assert_eq!((problems(legal), problems(illegal)), (String::new(), problem.to_owned()), "{legal}, {illegal}");
    }
    assert_eq!(problems("batch_entries: 0, free_buffer_percent: 100").matches("expected").count(), 2, "all of them");
}

#[test]
fn nothing_depends_on_windows_and_a_state_goes_on() {
    for gpus in [1, 2, 3] {
        check_random_script(gpus);
    }
}

/// Faults of GPUs, touches of the host, prefetches and advice at random.
fn check_random_script(gpus: u16) {
    let mut numbers = Numbers::new(5);
    let mut script: Vec<Arrival> = vec![
        (SimTime(0), HOST, Payload::Managed(ManagedMessage::Allocate { address: BASE, bytes: 6 * MIB })),
        (
            SimTime(1),
            HOST,
            Payload::Managed(ManagedMessage::Touch { address: BASE, bytes: 3 * MIB, write: true, id: 1 }),
        ),
    ];
    for id in 0..40 {
        let address = BASE + numbers.below(6 * MIB);
        let (bytes, write) = (1 + numbers.below(300 * KIB), numbers.below(2) == 0);
        let gpu = numbers.below(gpus.into()) as u16;
        let target = if write { Some(gpu as u8) } else { None };
        let (port, payload) = match numbers.below(if gpus == 1 { 4 } else { 5 }) {
            0 => (HOST, Payload::Managed(ManagedMessage::Touch { address, bytes, write, id })),
            1 => (HOST, Payload::Managed(ManagedMessage::Prefetch { address, bytes, target, id })),
            4 => {
                let advice = match id % 3 {
                    0 => AdviceChange::ReadMostly(write),
                    1 => AdviceChange::PreferredLocation(target),
                    _ => AdviceChange::AccessedBy(Some(gpu as u8), write),
                };
                (HOST, Payload::Managed(ManagedMessage::Advise { address, bytes, advice }))
            }
            _ => (PortId(GMMU.0 + 2 * gpu), Payload::Migration(MigrationMessage::Pending)),
        };
        script.push((SimTime(2000 + numbers.below(90 * US)), port, payload));
    }
    script.sort_by_key(|arrival| arrival.0);
    let mut faults = Numbers::new(9);
    let reply = |(time, port, payload): &Arrival| {
        let answer = |message, after: u64| vec![(SimTime(time.0 + after), *port, Payload::Migration(message))];
        match payload {
            Payload::Migration(MigrationMessage::Fetch { .. }) => {
                let entry = |_| {
                    let access = if faults.below(2) == 0 { PageAccess::Read } else { PageAccess::Write };
                    FaultEntry { page: BASE + faults.below(6 * MIB) / 4096 * 4096, access, tlb: 0 }
                };
                let faults = Faults { entries: (0..8).map(entry).collect(), overflows: 0 };
                answer(MigrationMessage::Faults(Box::new(faults)), 3000)
            }
            Payload::Migration(MigrationMessage::Transfer { id, bytes, .. }) => {
                answer(MigrationMessage::Transferred { id: *id, began: *time }, 2000 + bytes / 16)
            }
            Payload::Migration(MigrationMessage::Unmap { id, .. }) => {
                answer(MigrationMessage::Unmapped { id: *id }, 2500)
            }
            _ => Vec::new(),
        }
    };
    let costs = r#"gpu_memory: "3 MiB", host_fault_time: "100 ns", host_populate_time: "1 ns", eviction: LeastRecentPage,
        costs: (interrupt: "30 ns", process: "50 ns", new_block: "20 ns", transfer: "30 ns", block: "10 ns", map: "1 ns", replay: "9 ns")"#;
    let ports = 1 + 2 * usize::from(gpus);
    check_cuts_and_states(
        || Box::new(driver_of(gpus.into(), costs)),
        ports,
        SimTime(1000),
        script,
        reply,
        SimTime(250 * US),
    );
}
