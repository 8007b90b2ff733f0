//! A simulation allocates while it is built and for each launch, copy and CTA, but not for each cycle or instruction.

use balar_actors::simulation::RunResult;
use balar_tests::{parameters, verified};
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

/// A run and its allocations.
fn counted(workload: &str, text: &str) -> (RunResult, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let result = verified("v100_node", workload, parameters(text));
    (result, ALLOCATIONS.load(Ordering::Relaxed) - before)
}

/// Additional allocations, warp instructions and windows of the larger of two runs.
fn difference(workload: &str, small: &str, large: &str) -> (u64, u64, u64) {
    // The first run of a process allocates for it: threads, tables.
    counted(workload, small);
    let (first, few) = counted(workload, small);
    let (second, many) = counted(workload, large);
    let instructions = second.warp_instructions() - first.warp_instructions();
    (many.saturating_sub(few), instructions, second.windows - first.windows)
}

/// One test, since all count with the same counter.
#[test]
fn cycles_and_instructions_do_not_allocate() {
    // One thread of one CTA: what grows is loads, instructions, messages through the whole memory system, and cycles.
    for (workload, small, large) in [
        ("pointer_chase", "cache=ca,working_set=8KiB,steps=1024", "cache=ca,working_set=8KiB,steps=16384"),
        // Long enough for messages to have been in every span of every calendar once.
        ("pointer_chase", "cache=cg,working_set=64KiB,steps=4096", "cache=cg,working_set=64KiB,steps=16384"),
        ("shared_chase", "steps=1024", "steps=16384"),
        ("alu_latency", "steps=1024", "steps=32768"),
    ] {
        let (allocations, instructions, windows) = difference(workload, small, large);
        assert!(instructions > 2_000 && windows > 2_000, "{workload} {large}: {instructions}, {windows}");
        // The engine tells a shard to run up to 256 windows by one command, which costs actix a few boxes.
        let commands = windows / 256 + 16;
        assert!(
            allocations <= 8 * commands + 64,
            "{workload} {large}: {allocations} allocations for {instructions} instructions in {windows} windows"
        );
    }
    // One launch of CTAs of 256 threads each: four times the work for each CTA at as many CTAs.
    let (allocations, instructions, windows) = difference("gemm", "m=128,n=128,k=64", "m=128,n=128,k=512");
    assert!(instructions > 10_000, "gemm: {instructions}");
    assert!(
        allocations <= 8 * (windows / 256 + 16) + instructions / 100,
        "gemm: {allocations} allocations for {instructions} instructions in {windows} windows"
    );
    // As many instructions for each CTA, and 48 more CTAs: a few allocations for each, and for the pages copied.
    let (allocations, instructions, windows) = difference("gemm", "size=128", "size=256");
    assert!(instructions > 10_000, "gemm: {instructions}");
    assert!(
        allocations <= 8 * (windows / 256 + 16) + instructions / 50,
        "gemm: {allocations} allocations for {instructions} instructions in {windows} windows"
    );
    // Matrix products: more of them for each warp. Calls through pointers, recursion and virtual functions: more CTAs.
    for (workload, small, large) in [
        ("tensor_gemm", "k_steps=4", "k_steps=64"),
        // Its CTAs send for the first time in many spans of their calendars: the short run is long enough for most of them.
        ("grid_sync", "iterations=12", "iterations=36"),
        ("virtual_dispatch", "elements=8192", "elements=32768"),
    ] {
        let (allocations, instructions, windows) = difference(workload, small, large);
        assert!(instructions > 10_000, "{workload}: {instructions}");
        assert!(
            allocations <= 8 * (windows / 256 + 16) + instructions / 50,
            "{workload}: {allocations} allocations for {instructions} instructions in {windows} windows"
        );
    }
}
