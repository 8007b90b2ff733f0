//! Managed memory whose pages move: the messages to the driver of unified memory and their times, and the waits for it. The test plays that
//! driver.
//!
//! CUDA's rules that need no time are tested beside the CUDA driver (`driver/tests/rules/managed.rs`).

use super::test_support::*;
use crate::memory::WriteLog;
use balar_host::call::AdviceChange;
use balar_host::memory::MANAGED_BASE;
use balar_host::{Call, CallResult};
use balar_protocol::SimTime;
use balar_protocol::managed::ManagedMessage;

/// The cost of a call that waits for nothing, and of reading the clock.
const CALL: u64 = US / 10;
const READ: u64 = 53_000;
/// The cost of an allocation, and of a launch.
const MALLOC: u64 = 3 * US;
const LAUNCH: u64 = US;
/// A kernel, or a move of pages, with the ways there and back.
const THERE_AND_BACK: u64 = 2 * WIRE;

fn allocate() -> Step {
    call(Call::MallocManaged { bytes: 8192 })
}

fn read_clock() -> Step {
    call(Call::ReadClock)
}

fn prefetch(device: Option<u32>) -> Call {
    Call::Prefetch { pointer: MANAGED_BASE, bytes: 8192, device, stream: 0 }
}

fn run_with_driver(steps: Vec<Step>) -> Play {
    let mut play = Play::with_unified_memory(Program::of(steps), 1);
    play.until(300);
    play
}

#[test]
fn a_stream_waits_for_its_prefetch() {
    let play = run_with_driver(vec![
        allocate(),
        call(prefetch(Some(0))),
        call(launch(0)),
        read_clock(),
        call(Call::StreamSynchronize { stream: 0 }),
        read_clock(),
    ]);
    let allocated = MALLOC + WIRE;
    let asked = MALLOC + CALL + WIRE;
    assert_eq!(
        play.managed,
        [
            (allocated, ManagedMessage::Allocate { address: MANAGED_BASE, bytes: 8192 }),
            (asked, ManagedMessage::Prefetch { address: MANAGED_BASE, bytes: 8192, target: Some(0), id: 0 }),
        ]
    );
    let launched = asked + MOVE + THERE_AND_BACK;
    assert_eq!(play.trace, [(launched, "gpu 0: launch 1 stream 0".to_owned())]);
    let returned = launched + KERNEL + WIRE + US / 2;
    assert_eq!(play.times(0), [MALLOC + CALL + LAUNCH + READ, returned + READ], "the call itself does not wait");
}

#[test]
fn the_programs_own_accesses_cost_what_they_wait() {
    let touch = |write| call(Call::TouchManaged { pointer: MANAGED_BASE + 1, bytes: 5000, write });
    let play = run_with_driver(vec![allocate(), touch(true), read_clock(), touch(false), read_clock()]);
    let first = MALLOC + MOVE + THERE_AND_BACK;
    let second = first + READ + MOVE + THERE_AND_BACK;
    assert_eq!(play.times(0), [first + READ, second + READ]);
    let touched = |write, id| ManagedMessage::Touch { address: MANAGED_BASE + 1, bytes: 5000, write, id };
    assert_eq!(play.managed[1..], [(MALLOC + WIRE, touched(true, 0)), (first + READ + WIRE, touched(false, 1))]);
    assert_eq!((play.unit.counters.calls, play.unit.counters.calls_memory), (1, 1), "the allocation alone is a call");
    assert_eq!(play.unit.counters.cycles_waiting, 2 * (MOVE + THERE_AND_BACK) / 1000);
}

#[test]
fn the_program_writes_and_reads_values_when_its_pages_are_there() {
    let write = |at, data: &[u8]| call(Call::WriteManaged { pointer: MANAGED_BASE + at, data: data.to_vec().into() });
    for has_driver in [true, false] {
        let steps = vec![
            allocate(),
            write(0, b"abcdef"),
            write(2, b"xy"),
            call(Call::ReadManaged { pointer: MANAGED_BASE, bytes: 6 }),
            call(Call::DeviceSynchronize),
            call(Call::ReadManaged { pointer: MANAGED_BASE, bytes: 6 }),
        ];
        let program = Program::of(steps);
        let mut play = if has_driver { Play::with_unified_memory(program, 1) } else { Play::new(program, 1, "") };
        play.until(4 + if has_driver { 62 } else { 0 });
        let data = |bytes: &[u8]| CallResult::Data(bytes.to_vec().into());
        assert_eq!(play.results(0)[1..4], [CallResult::None, CallResult::None, data(b"abxyef")]);
        // A device writes.
        let mut log = WriteLog::default();
        log.write(SimTime(0), MANAGED_BASE + 1, &b"ZZ"[..].into(), 0..2);
        play.memory.apply(&mut log);
        play.until(200);
        assert_eq!(play.results(0)[5], data(if has_driver { b"aZZyef" } else { b"abxyef" }));
    }
}

#[test]
fn a_synchronised_device_is_idle_before_the_driver_is_asked() {
    let play = run_with_driver(vec![
        call(Call::DeviceSynchronize),
        read_clock(),
        allocate(),
        call(launch(0)),
        call(Call::DeviceSynchronize),
        read_clock(),
        call(Call::DeviceSynchronize),
        read_clock(),
    ]);
    let [first, second, third] = play.times(0)[..] else { panic!("three times") };
    assert_eq!(first, CALL + READ, "without managed memory there is nobody to ask");
    let idle = first + MALLOC + LAUNCH + KERNEL + THERE_AND_BACK;
    assert_eq!(second, idle + MOVE + THERE_AND_BACK + US / 2 + READ);
    assert_eq!(third, second + CALL + MOVE + THERE_AND_BACK + US / 2 + READ);
    let asked: Vec<u64> = play
        .managed
        .iter()
        .filter(|(_, message)| matches!(message, ManagedMessage::Synchronise { .. }))
        .map(|(time, _)| *time)
        .collect();
    assert_eq!(asked, [idle + WIRE, second + CALL + WIRE]);
}

#[test]
fn advice_and_other_memory_are_told() {
    let advice = AdviceChange::PreferredLocation(Some(0));
    let play = run_with_driver(vec![
        allocate(),
        call(Call::Malloc { bytes: 3 << 20 }),
        call(Call::Advise { pointer: MANAGED_BASE + 1, bytes: 1, advice }),
        read_clock(),
        call(Call::Free { pointer: MANAGED_BASE }),
    ]);
    let advised = 2 * MALLOC + CALL;
    assert_eq!(
        play.managed[1..],
        [
            (2 * MALLOC + WIRE, ManagedMessage::Reserved { gpu: 0, bytes: 4 << 20 }),
            (advised + WIRE, ManagedMessage::Advise { address: MANAGED_BASE, bytes: 4096, advice }),
            (advised + READ + MALLOC + WIRE, ManagedMessage::Free { address: MANAGED_BASE }),
        ]
    );
    assert_eq!(play.times(0), [advised + READ]);
}

#[test]
fn without_the_port_nothing_is_sent_and_nothing_costs_more() {
    let advice = AdviceChange::ReadMostly(true);
    let touch = Call::TouchManaged { pointer: MANAGED_BASE, bytes: 8192, write: true };
    let play = run(vec![
        allocate(),
        call(Call::Advise { pointer: MANAGED_BASE, bytes: 8192, advice }),
        call(touch),
        read_clock(),
        call(prefetch(Some(0))),
        call(launch(0)),
        call(Call::DeviceSynchronize),
        read_clock(),
    ]);
    assert!(play.managed.is_empty());
    let launched = MALLOC + READ + CALL + LAUNCH;
    let synchronised = launched + KERNEL + THERE_AND_BACK + US / 2;
    assert_eq!(play.times(0), [MALLOC + READ, synchronised + READ]);
    assert_eq!(play.unit.counters.calls, 4);
}
