//! Programs on the whole unit: the returns of calls, and the effects of failures and of the ends of processes. The test plays the GPUs.
//!
//! CUDA's rules that need no time are tested beside the driver (`driver/tests/rules`).

use super::test_support::*;
use crate::memory::{DeviceMemory, WriteLog};
use balar_host::call::{GRANULARITY, MemoryAccess, VirtualMemoryCall};
use balar_host::memory::{MANAGED_BASE, gpu_base};
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::SimTime;
use balar_protocol::cuda::FaultCause;
use std::sync::{Arc, OnceLock};

const CALL: u64 = US / 10;
const READ: u64 = 53_000;

/// Steps that begin later, when another process has made its calls.
fn later(microseconds: u64, steps: Vec<Step>) -> Vec<Step> {
    let mut all = vec![call(Call::Compute { nanoseconds: microseconds * 1000 })];
    all.extend(steps);
    all
}

/// The results of those steps.
fn results_of(play: &Play, thread: u32) -> Vec<CallResult> {
    play.results(thread)[1..].to_vec()
}

#[test]
fn managed_variables_have_their_values_when_the_call_returns() {
    let memory: Arc<OnceLock<Arc<DeviceMemory>>> = Arc::default();
    let seen = memory.clone();
    let text = ".version 7.0 .target sm_70 .address_size 64
        .visible .global .attribute(.managed) .align 8 .u64 both = 291;";
    let steps = vec![
        call(Call::ModuleLoad { images: vec![text.as_bytes().to_vec().into()], name: "app".to_owned() }),
        Box::new(move |_: &[CallResult]| {
            let mut bytes = [0; 8];
            assert!(seen.get().is_some_and(|memory| memory.read(MANAGED_BASE, &mut bytes)));
            assert_eq!(u64::from_le_bytes(bytes), 291);
            Call::ReadClock
        }),
    ];
    let mut play = Play::new(Program::of(steps), 1, "");
    memory.set(play.memory.clone()).expect("set once");
    play.until(5);
    assert_eq!(play.times(0).len(), 1);
}

#[test]
fn a_query_says_not_ready_and_costs_time_so_that_polling_ends() {
    let mut steps = vec![call(launch(0))];
    steps.extend((0..60).map(|_| call(Call::StreamQuery { stream: 0 })));
    let play = run(steps);
    let results = play.results(0);
    // The launch returns at 1 us, its kernel is done at 6.04 us, and a query takes 0.1 us.
    let waits = results.iter().filter(|result| **result == CallResult::Error(CudaError::NotReady)).count();
    assert_eq!(waits, 50);
    assert!(results[51..].iter().all(|result| *result == CallResult::None));
}

#[test]
fn an_event_tells_when_the_work_before_it_was_done() {
    let event = |timed| call(Call::EventCreate { timed });
    let play = run(vec![
        event(true),
        event(true),
        event(false),
        call(Call::EventElapsed { start: 1, end: 2 }),
        call(Call::EventQuery { event: 2 }),
        call(Call::EventRecord { event: 1, stream: 0 }),
        call(launch(0)),
        call(launch(0)),
        call(Call::EventRecord { event: 2, stream: 0 }),
        call(Call::EventRecord { event: 3, stream: 0 }),
        call(Call::EventQuery { event: 2 }),
        call(Call::EventElapsed { start: 1, end: 2 }),
        call(Call::EventSynchronize { event: 2 }),
        call(Call::ReadClock),
        call(Call::EventQuery { event: 2 }),
        call(Call::EventElapsed { start: 1, end: 2 }),
        call(Call::EventElapsed { start: 2, end: 1 }),
        call(Call::EventElapsed { start: 1, end: 3 }),
        call(Call::EventElapsed { start: 1, end: 9 }),
        call(Call::EventDestroy { event: 2 }),
        call(Call::EventQuery { event: 2 }),
    ]);
    let results = play.results(0);
    let error = CallResult::Error;
    assert_eq!(results[3..5], [error(CudaError::InvalidResourceHandle), CallResult::None], "never recorded");
    assert_eq!(results[10..12], [error(CudaError::NotReady), error(CudaError::NotReady)]);
    // Recorded at 0.6 us with nothing to wait for; the second launch is sent at 2.6 us.
    let elapsed = (2 * US + KERNEL + 2 * WIRE) as i64;
    assert_eq!(play.times(0), [6 * CALL + elapsed as u64 + US / 2 + READ]);
    assert_eq!(results[14], CallResult::None);
    assert_eq!(results[15], CallResult::Elapsed { picoseconds: elapsed });
    assert_eq!(results[16], CallResult::Elapsed { picoseconds: -elapsed });
    assert_eq!(results[17..19], [error(CudaError::InvalidResourceHandle), error(CudaError::InvalidResourceHandle)]);
    assert_eq!(results[20], error(CudaError::InvalidResourceHandle));
}

#[test]
fn threads_go_on_at_the_same_time() {
    let waiting = vec![call(launch(0)), call(Call::DeviceSynchronize), call(Call::ReadClock)];
    let computing = vec![call(Call::Compute { nanoseconds: 3000 }), call(Call::ReadClock)];
    let mut play = Play::new(Program::new().thread(0, waiting).thread(0, computing), 1, "");
    play.until(50);
    assert_eq!(play.times(0), [US + KERNEL + 2 * WIRE + US / 2 + READ]);
    assert_eq!(play.times(1), [3 * US + READ]);
    assert!(play.unit.ended);
}

#[test]
fn a_thread_that_wakes_while_others_wait_is_asked_for() {
    let waiting = vec![call(launch(0)), call(Call::Compute { nanoseconds: 100_000 })];
    let late = vec![call(Call::ReadClock)];
    let program = Program::new().thread(0, waiting).thread(0, late).asleep(2);
    let mut play = Play::new(program, 1, "");
    play.until(200);
    // It sleeps when the program is asked at 0 us and at 1 us; the next time is 20 us later.
    assert_eq!(play.times(1), [21 * US + READ]);
}

#[test]
fn host_time_delays_calls() {
    let steps = || vec![call(Call::ReadClock), call(Call::ReadClock)];
    for (extra, expected) in
        [("", 0), (r#", host_time: Fixed("2 us")"#, 2 * US), (r#", host_time: Measured(clock: "3 GHz")"#, 12 * US)]
    {
        let mut play = Play::new(Program::of(steps()).taking(4 * US), 1, extra);
        play.until(100);
        assert_eq!(play.times(0), [expected + READ, 2 * (expected + READ)]);
    }
}

#[test]
fn a_stream_waits_for_a_host_function() {
    let play = run(vec![
        new_stream(),
        call(launch(1)),
        call(Call::HostFunction { stream: 1, function: 17 }),
        call(launch(1)),
        call(Call::StreamSynchronize { stream: 1 }),
        call(Call::CallbackDone { function: 17 }),
    ]);
    let seen = play.seen.lock().expect("one thread");
    assert_eq!(seen.functions, [17]);
    assert_eq!(seen.results[&CALLBACKS], [CallResult::None]);
    // The function runs when the first kernel is done, and lets the second one begin at once.
    assert_eq!(play.trace[1].0 - play.trace[0].0, KERNEL + 2 * WIRE);
    assert_eq!(play.unit.counters.host_functions, 2);
    assert_eq!(seen.results[&balar_host::ThreadId(0)][5], CallResult::Error(CudaError::InvalidValue), "it has run");
}

#[test]
fn bytes_go_along_with_the_memory() {
    // The GPU has 64 MiB: addresses behind them are reserved.
    let at = |segment: u64| gpu_base(0) + (64 << 20) + segment * GRANULARITY;
    let virtual_call = |of| call(Call::VirtualMemory(of));
    let (bytes, handle) = (GRANULARITY, 1);
    let map = |segment| virtual_call(VirtualMemoryCall::Map { pointer: at(segment), bytes, handle });
    let open = |segment, access| {
        virtual_call(VirtualMemoryCall::SetAccess { pointer: at(segment), bytes, devices: vec![(0, access)] })
    };
    // The test's GPUs do not fill: what they would have written is put there, and moved when the mapping ends.
    let mut play = Play::new(
        Program::of(vec![
            virtual_call(VirtualMemoryCall::Reserve { bytes: 4 * GRANULARITY, alignment: 0 }),
            virtual_call(VirtualMemoryCall::Create { bytes }),
            map(0),
            open(0, MemoryAccess::ReadWrite),
            call(Call::Compute { nanoseconds: 50_000 }),
            virtual_call(VirtualMemoryCall::Unmap { pointer: at(0), bytes }),
            map(3),
            open(3, MemoryAccess::Read),
        ]),
        1,
        "",
    );
    play.until(30);
    let mut log = WriteLog::default();
    log.fill(SimTime(0), at(0), GRANULARITY, 0x0102_0304, 4);
    play.memory.apply(&mut log);
    play.until(200);
    assert_eq!(play.results(0).len(), 8);
    let mut found = [0; 8];
    assert!(play.memory.read(at(4) - 8, &mut found) && !play.memory.read(at(0), &mut [0; 8]));
    assert_eq!(found, [4, 3, 2, 1, 4, 3, 2, 1]);
}

#[test]
fn a_failed_context_is_its_own_and_a_reset_revives_it() {
    let assertion = FaultCause::AssertionFailed {
        message: "x > 0".to_owned(),
        file: "a.cu".to_owned(),
        line: 3,
        function: "void k()".to_owned(),
        lanes: 0b1100,
    };
    let failing = vec![
        call(Call::Malloc { bytes: 64 }),
        call(launch(0)),
        call(Call::DeviceSynchronize),
        call(Call::MemoryInfo),
        call(Call::DeviceReset),
        call(launch(0)),
        call(Call::DeviceSynchronize),
        call(Call::MemoryInfo),
    ];
    let other = vec![call(launch(0)), call(launch(0)), call(Call::DeviceSynchronize)];
    let mut play = Play::new(Program::new().thread(1, failing).thread(0, other), 2, "");
    // The first launch of GPU 1: the other thread's two come first.
    play.faulty = vec![(3, assertion)];
    play.until(100);
    let results = play.results(0);
    assert_eq!(results[0], CallResult::Pointer(gpu_base(1)));
    let error = CallResult::Error(CudaError::Assert);
    assert_eq!(results[2..7], [error.clone(), error, CallResult::None, CallResult::None, CallResult::None]);
    assert_eq!(results[7], CallResult::MemoryInfo { free: 64 << 20, total: 64 << 20 });
    assert_eq!(play.results(1), [const { CallResult::None }; 3]);
    assert_eq!(
        play.seen.lock().expect("one thread").errors,
        "a.cu:3: void k(): block: [1,0,0], thread: [2,0,0] Assertion `x > 0` failed.\n\
         a.cu:3: void k(): block: [1,0,0], thread: [3,0,0] Assertion `x > 0` failed.\n"
    );
    assert!(play.words().contains(&"gpu 1: reset") && !play.is_mapped(gpu_base(1)));
}

#[test]
fn what_a_process_had_goes_with_it_once_its_work_is_done() {
    // All of the GPU's 64 MiB; the other process asks for them while the first one's kernel runs.
    let bytes = 60 << 20;
    let first = vec![call(Call::Malloc { bytes }), call(launch(0))];
    let second = vec![call(Call::Malloc { bytes }), call(Call::MemoryInfo)];
    let program = Program::of(first).ending(0, false).thread(0, second).of_process(1).asleep(3);
    let mut play = Play::new(program, 1, "");
    play.until(400);
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 0"], "its kernel is not ended");
    assert_eq!(play.results(1)[0], CallResult::Pointer(gpu_base(0)), "the allocation waits until there is room");
    assert_eq!(play.results(1)[1], CallResult::MemoryInfo { free: 4 << 20, total: 64 << 20 });
}

#[test]
fn of_a_killed_process_nothing_more_begins() {
    let first = vec![
        call(Call::Malloc { bytes: 4096 }),
        new_stream(),
        call(launch(1)),
        call(Call::HostFunction { stream: 1, function: 5 }),
        call(launch(1)),
        call(Call::DeviceSynchronize),
    ];
    let second = vec![call(launch(0)), call(Call::DeviceSynchronize)];
    let program = Program::of(first).ending(0, true).thread(0, later(60, second)).of_process(1);
    let mut play = Play::new(program, 1, "");
    play.until(400);
    let words = play.words();
    assert_eq!(words.iter().filter(|word| word.contains("launch")).count(), 2, "{words:?}");
    assert!(words.contains(&"gpu 0: abort of process 0"), "{words:?}");
    assert!(!play.is_mapped(gpu_base(0)));
    assert_eq!(results_of(&play, 1), [CallResult::None, CallResult::None]);
    assert_eq!(play.seen.lock().expect("one thread").functions, [0; 0], "nobody is left to run its functions");
}
