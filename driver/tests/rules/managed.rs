//! Managed memory whose pages move: advice, prefetches, and the program's own accesses.

use super::play::*;
use balar_host::call::{AdviceChange, GraphNode};
use balar_host::memory::MANAGED_BASE;
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::ProcessId;
use balar_protocol::managed::ManagedMessage;

fn malloc_managed(bytes: u64) -> Step {
    call(Call::MallocManaged { bytes })
}

fn prefetch(pointer: u64, bytes: u64, device: Option<u32>, stream: u32) -> Step {
    call(Call::Prefetch { pointer, bytes, device, stream })
}

fn advise(pointer: u64, bytes: u64, advice: AdviceChange) -> Step {
    call(Call::Advise { pointer, bytes, advice })
}

fn play(steps: Vec<Step>) -> Play {
    let mut play = Play::with_unified_memory(Program::of(steps), 2);
    play.finish();
    play
}

/// What the driver of unified memory was told, without the memory that is allocated otherwise.
fn told(play: &Play) -> Vec<ManagedMessage> {
    let other = |message: &&ManagedMessage| !matches!(message, ManagedMessage::Reserved { .. });
    play.managed.iter().filter(other).copied().collect()
}

const INVALID_VALUE: CallResult = CallResult::Error(CudaError::InvalidValue);
const INVALID_DEVICE: CallResult = CallResult::Error(CudaError::InvalidDevice);

#[test]
fn advice_is_about_whole_pages_of_managed_memory() {
    use AdviceChange::{AccessedBy, NoPreferredLocation, PreferredLocation, ReadMostly};
    let base = MANAGED_BASE;
    let play = play(vec![
        malloc_managed(10_000),
        call(Call::Malloc { bytes: 100 }),
        call(Call::MallocHost { bytes: 100 }),
        advise(base, 10_000, ReadMostly(true)),
        advise(base + 5000, 100, PreferredLocation(Some(1))),
        advise(base + 4095, 2, AccessedBy(None, true)),
        advise(base, 1, NoPreferredLocation),
        advise(base, 10_001, ReadMostly(true)),
        advise(base + 10_000, 1, ReadMostly(true)),
        advise(base, 0, ReadMostly(true)),
        advise(base, u64::MAX, ReadMostly(true)),
        advise(first(), 100, ReadMostly(true)),
        advise(balar_host::memory::HOST_BASE, 100, ReadMostly(true)),
        advise(0x1000, 100, ReadMostly(true)),
        advise(base, 100, PreferredLocation(Some(2))),
        advise(base, 100, AccessedBy(Some(9), false)),
    ]);
    let results = play.results(0);
    assert_eq!(results[3..7], [const { CallResult::None }; 4]);
    assert_eq!(results[7..14], [INVALID_VALUE; 7]);
    assert_eq!(results[14..], [INVALID_DEVICE; 2]);
    let advised = |address, bytes, advice| ManagedMessage::Advise { address, bytes, advice };
    assert_eq!(
        told(&play)[1..5],
        [
            advised(base, 12_288, ReadMostly(true)),
            advised(base + 4096, 4096, PreferredLocation(Some(1))),
            advised(base, 8192, AccessedBy(None, true)),
            advised(base, 4096, NoPreferredLocation),
        ]
    );
}

#[test]
fn a_prefetch_takes_its_turn_in_its_stream_in_both_directions() {
    let play = play(vec![
        malloc_managed(8192),
        new_stream(),
        new_stream(),
        call(launch(1)),
        prefetch(MANAGED_BASE + 100, 4096, Some(1), 1),
        call(launch(1)),
        prefetch(MANAGED_BASE, 8192, None, 1),
        // Another stream does not wait.
        call(launch(2)),
        call(Call::StreamQuery { stream: 1 }),
        call(Call::StreamSynchronize { stream: 1 }),
        call(Call::ReadClock),
    ]);
    let expected = [
        (0, "gpu 0: launch 1 stream 1".to_owned()),
        (0, "gpu 0: launch 3 stream 2".to_owned()),
        (KERNEL, "prefetch of 8192 to Some(1)".to_owned()),
        (KERNEL + MOVE, "gpu 0: launch 2 stream 1".to_owned()),
        (KERNEL + MOVE + KERNEL, "prefetch of 8192 to None".to_owned()),
    ];
    assert_eq!(play.trace, expected);
    assert_eq!(play.results(0)[8], CallResult::Error(CudaError::NotReady));
    assert_eq!(play.times(0), [KERNEL + MOVE + KERNEL + MOVE]);
}

#[test]
fn prefetches_are_checked() {
    let play = play(vec![
        malloc_managed(8192),
        call(Call::Malloc { bytes: 100 }),
        prefetch(MANAGED_BASE + 4096, 4096, Some(0), 0),
        prefetch(MANAGED_BASE + 4096, 4097, Some(0), 0),
        prefetch(MANAGED_BASE, 0, Some(0), 0),
        prefetch(first(), 100, Some(0), 0),
        prefetch(MANAGED_BASE, 1, Some(2), 0),
        prefetch(MANAGED_BASE, 1, Some(0), 7),
    ]);
    let stream = CallResult::Error(CudaError::InvalidResourceHandle);
    let expected = [CallResult::None, INVALID_VALUE, INVALID_VALUE, INVALID_VALUE, INVALID_DEVICE, stream];
    assert_eq!(play.results(0)[2..], expected);
    assert_eq!(play.words(), ["prefetch of 4096 to Some(0)"]);
}

#[test]
fn graphs_have_prefetches_as_nodes() {
    let node = |call: Call, dependencies: &[u32]| GraphNode::of(Some(call), dependencies.to_vec());
    let to = |device| Call::Prefetch { pointer: MANAGED_BASE, bytes: 4096, device, stream: 0 };
    let nodes = vec![node(to(Some(0)), &[]), node(launch(0), &[0]), node(to(None), &[1])];
    let play = play(vec![
        malloc_managed(4096),
        new_stream(),
        call(Call::GraphLaunch { nodes, conditions: Vec::new(), stream: 1 }),
        call(Call::StreamSynchronize { stream: 1 }),
        call(Call::ReadClock),
    ]);
    let times: Vec<u64> = play.trace.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, MOVE, MOVE + KERNEL]);
    assert_eq!(play.times(0), [MOVE + KERNEL + MOVE]);
}

#[test]
fn accesses_of_the_program_wait_for_their_pages() {
    let read = |pointer, bytes| call(Call::ReadManaged { pointer, bytes });
    let play = play(vec![
        malloc_managed(100),
        call(Call::TouchManaged { pointer: MANAGED_BASE + 7, bytes: 90, write: true }),
        call(Call::ReadClock),
        call(Call::WriteManaged { pointer: MANAGED_BASE, data: vec![1, 2].into() }),
        read(MANAGED_BASE, 2),
        call(Call::ReadClock),
        call(Call::TouchManaged { pointer: MANAGED_BASE, bytes: 101, write: false }),
        call(Call::WriteManaged { pointer: MANAGED_BASE + 99, data: vec![1, 2].into() }),
        read(MANAGED_BASE, 101),
        read(MANAGED_BASE, 0),
    ]);
    assert_eq!(play.times(0), [MOVE, 3 * MOVE]);
    assert_eq!(play.results(0)[6..], [INVALID_VALUE; 4]);
    let touch = |address, bytes, write, id| ManagedMessage::Touch { address, bytes, write, id };
    let touched =
        [touch(MANAGED_BASE + 7, 90, true, 0), touch(MANAGED_BASE, 2, true, 1), touch(MANAGED_BASE, 2, false, 2)];
    assert_eq!(told(&play)[1..4], touched);
}

#[test]
fn a_device_is_synchronised_when_it_is_idle_and_there_is_managed_memory() {
    let own = |process: u64| vec![call(Call::Compute { nanoseconds: process * 100_000 }), call(launch(0))];
    let mut first = own(0);
    first.extend([call(Call::DeviceSynchronize), malloc_managed(1), call(launch(0)), call(Call::DeviceSynchronize)]);
    first.push(call(Call::ReadClock));
    let mut second = own(1);
    second.extend([call(Call::DeviceSynchronize), call(Call::ReadClock)]);
    let program = Program::default().thread(0, first).thread(0, second).of_process(1);
    let mut play = Play::with_unified_memory(program, 1);
    play.finish();
    // Without managed memory a synchronisation is over with the kernel, as it is for another process.
    assert_eq!(play.times(0), [KERNEL + KERNEL + MOVE]);
    assert_eq!(play.times(1), [100 + KERNEL]);
    let synchronised = |message: &&ManagedMessage| matches!(message, ManagedMessage::Synchronise { .. });
    assert_eq!(play.managed.iter().filter(synchronised).count(), 1);
}

#[test]
fn managed_memory_begins_and_ends_with_its_calls_modules_and_processes() {
    let text = ".version 7.0 .target sm_70 .address_size 64
        .visible .global .attribute(.managed) .align 8 .u64 both = 291;";
    let module = || call(Call::ModuleLoad { images: vec![text.as_bytes().to_vec().into()], name: "app".to_owned() });
    let steps = vec![
        malloc_managed(5000),
        call(Call::MallocHost { bytes: 1 }),
        module(),
        call(Call::ModuleUnload { module: 1 }),
        Box::new(|results: &[CallResult]| Call::Free { pointer: pointer(results, 0) }) as Step,
        malloc_managed(1),
        module(),
    ];
    let program = Program::default().thread(0, steps).of_process(1).ending(1, false);
    let mut play = Play::with_unified_memory(program, 1);
    play.finish();
    let (array, variable) = (MANAGED_BASE, MANAGED_BASE + 8192);
    let began = |address, bytes| ManagedMessage::Allocate { address, bytes };
    let ended = |address| ManagedMessage::Free { address };
    let expected = [began(array, 5000), began(variable, 8), ended(variable), ended(array)];
    let told = told(&play);
    assert_eq!(told[..4], expected);
    let mut left = std::collections::BTreeSet::new();
    for message in &told {
        match *message {
            ManagedMessage::Allocate { address, .. } => assert!(left.insert(address)),
            ManagedMessage::Free { address } => assert!(left.remove(&address)),
            _ => {}
        }
    }
    assert_eq!((told.len(), left.len()), (8, 0), "{told:?}");
}

#[test]
fn managed_memory_is_freed_when_no_device_uses_it() {
    let free = |results: &[CallResult]| Call::Free { pointer: pointer(results, 0) };
    let other = vec![call(Call::Compute { nanoseconds: 1000 }), prefetch(MANAGED_BASE, 1, Some(1), 0)];
    let steps =
        vec![malloc_managed(1), call(Call::Compute { nanoseconds: 2000 }), Box::new(free), call(Call::ReadClock)];
    let mut play = Play::with_unified_memory(Program::default().thread(0, steps).thread(1, other), 2);
    play.finish();
    assert_eq!(play.times(0), [1 + MOVE]);
    assert_eq!(told(&play).last(), Some(&ManagedMessage::Free { address: MANAGED_BASE }));
}

#[test]
fn what_is_allocated_of_a_device_otherwise_is_told_when_it_changes() {
    let play = play(vec![
        call(Call::Malloc { bytes: 3 << 20 }),
        call(Call::MemoryInfo),
        malloc_managed(1),
        call(Call::FreeAsync { pointer: first(), stream: 0 }),
        call(Call::DeviceSynchronize),
    ]);
    let reserved: Vec<ManagedMessage> =
        play.managed.iter().filter(|message| matches!(message, ManagedMessage::Reserved { .. })).copied().collect();
    let told = |bytes| ManagedMessage::Reserved { gpu: 0, bytes };
    assert_eq!(reserved, [told(4 << 20), told(0)]);
}

#[test]
fn a_killed_process_waits_for_a_prefetch_that_has_begun() {
    let steps = vec![
        malloc_managed(4096),
        prefetch(MANAGED_BASE, 4096, Some(0), 0),
        prefetch(MANAGED_BASE, 4096, None, 0),
        call(Call::TouchManaged { pointer: MANAGED_BASE, bytes: 1, write: false }),
    ];
    let program = Program::default().thread(0, steps).of_process(1).ending(1, true);
    let mut play = Play::with_unified_memory(program, 1);
    play.until(MOVE - 1);
    assert!(play.driver.has_ended_processes() && play.is_mapped(MANAGED_BASE));
    play.finish();
    assert!(!play.driver.has_ended_processes() && !play.is_mapped(MANAGED_BASE));
    assert_eq!(play.words(), ["prefetch of 4096 to Some(0)", "gpu 0: abort of process 1"]);
}

#[test]
fn where_pages_do_not_move_nobody_is_told_and_nothing_waits() {
    let steps = vec![
        malloc_managed(4096),
        call(Call::Malloc { bytes: 4096 }),
        call(launch(0)),
        prefetch(MANAGED_BASE, 4096, Some(0), 0),
        call(launch(0)),
        advise(MANAGED_BASE, 4096, AdviceChange::ReadMostly(true)),
        advise(MANAGED_BASE, 4097, AdviceChange::ReadMostly(true)),
        call(Call::TouchManaged { pointer: MANAGED_BASE, bytes: 4096, write: true }),
        call(Call::TouchManaged { pointer: MANAGED_BASE, bytes: 4097, write: true }),
        call(Call::ReadClock),
        call(Call::DeviceSynchronize),
        call(Call::ReadClock),
    ];
    let program = Program::of(steps).ending(ProcessId::FIRST.0, false);
    let mut play = Play::new(program, 1);
    play.finish();
    assert_eq!(play.managed, []);
    assert_eq!(play.times(0), [0, KERNEL]);
    let results = play.results(0);
    assert_eq!([&results[5], &results[7]], [&CallResult::None; 2]);
    assert_eq!([&results[6], &results[8]], [&INVALID_VALUE; 2]);
}

#[test]
fn copies_and_fills_wait_for_their_pages_in_the_order_of_their_stream() {
    let other = MANAGED_BASE + 8192;
    let play = play(vec![
        malloc_managed(8192),
        malloc_managed(4096),
        call(Call::Malloc { bytes: 4096 }),
        call(launch(0)),
        call(Call::memset(MANAGED_BASE + 100, 1, 8000, 0, true)),
        call(Call::copy_within(other, MANAGED_BASE, 10, 0, true)),
        call(Call::copy_within(first(), other + 5, 10, 0, false)),
        call(Call::ReadClock),
        call(Call::copy_to_device(first(), vec![1; 8].into(), 0, false)),
        call(Call::ReadClock),
    ]);
    let prefetch = |address, bytes, id| ManagedMessage::Prefetch { address, bytes, target: Some(0), id };
    let expected = [
        prefetch(MANAGED_BASE, 8192, 0),
        // Both ends of the copy.
        prefetch(other, 4096, 1),
        prefetch(MANAGED_BASE, 4096, 2),
        prefetch(other, 4096, 3),
    ];
    assert_eq!(told(&play)[2..], expected);
    let end = KERNEL + 3 * (MOVE + COPY);
    assert_eq!(play.times(0), [end, end + COPY], "memory that is not managed waits for nobody");
    assert_eq!(play.operations.len(), 4);
}

#[test]
fn a_process_that_tells_of_no_accesses_has_its_memory_back_after_each_wait() {
    let assumed = |address| ManagedMessage::AssumeHostAccesses { address, process: ProcessId::FIRST };
    let play = play(vec![
        malloc_managed(4096),
        call(Call::StreamSynchronize { stream: 0 }),
        call(Call::AssumeHostAccesses),
        malloc_managed(1),
        call(Call::EventCreate { timed: false }),
        call(Call::EventRecord { event: 1, stream: 0 }),
        call(Call::StreamSynchronize { stream: 0 }),
        call(Call::EventSynchronize { event: 1 }),
        call(Call::DeviceSynchronize),
        call(Call::ReadClock),
    ]);
    let began = |address, bytes| ManagedMessage::Allocate { address, bytes };
    let synchronised = |id| ManagedMessage::Synchronise { id, process: ProcessId::FIRST };
    let (one, two) = (MANAGED_BASE, MANAGED_BASE + 4096);
    let expected = [
        began(one, 4096),
        assumed(one),
        began(two, 1),
        assumed(two),
        synchronised(0),
        synchronised(1),
        synchronised(2),
    ];
    assert_eq!(told(&play), expected);
    assert_eq!(play.times(0), [3 * MOVE]);
}
