//! Windows are run without allocating: buffers travel with commands and reports and are used again.

use balar_actors::engine::{Inbox, NextWake, Outbox, RunOptions, Simulation, Unit, UnitEntry, Window, Wire, run};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Payload, PortId, SimTime, UnitId};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts calls.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged; a GlobalAlloc is the only way to count allocations.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps GlobalAlloc's rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps GlobalAlloc's rules.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps GlobalAlloc's rules.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends `messages` in every window.
struct Talker {
    messages: u64,
}

impl Unit for Talker {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while inbox.take().is_some() {}
        for message in 0..self.messages {
            out.send(PortId((message % 2) as u16), window.start, Payload::Custom([message, 0, 0]));
        }
        NextWake::At(window.until)
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

/// Allocations of a run of `windows` windows over 30 units.
fn allocations(threads: usize, windows: u64, messages: u64) -> u64 {
    let wire = |unit: u32| Wire { unit: UnitId(unit % 30), port: PortId(0), latency: SimTime(10) };
    let units = (0..30).map(|unit| {
        let wires = vec![wire(unit + 1), wire(unit + 7)];
        UnitEntry { path: String::new(), unit: Box::new(Talker { messages }), wires, weight: 1 }
    });
    let simulation = Simulation { units: units.collect(), ..Simulation::default() };
    let options = RunOptions { threads, stop_at: Some(SimTime(10 * windows)), ..RunOptions::default() };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let report = run(simulation, options).expect("the network is sound");
    assert_eq!(report.windows, windows);
    assert_eq!(report.messages, 30 * messages * (windows - 1));
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn a_steady_state_does_not_allocate() {
    const MORE: u64 = 10_000;
    // The difference between a long and a short run is the cost of the additional windows.
    let of_windows = |threads, messages| {
        let short = allocations(threads, 1_000, messages);
        allocations(threads, 1_000 + MORE, messages).saturating_sub(short)
    };
    // One shard runs many windows on one command; each command and report costs actix two boxes or so.
    assert!(of_windows(1, 40) < MORE / 20, "{} in {MORE} windows", of_windows(1, 40));
    // Two shards: at most two actix messages per shard and window (none where a shard is found waiting), at most three allocations
    // each; that is a hundredth of the 1200 unit messages of a window, which therefore cost none.
    let two = of_windows(2, 40);
    assert!(two <= 4 * 3 * MORE + 1_000, "{two} in {MORE} windows");
}
