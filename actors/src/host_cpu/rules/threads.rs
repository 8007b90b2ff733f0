//! Threads of the program, several GPUs, failures.

use super::super::test_support::*;
use crate::engine::Unit;
use balar_host::call::Limit;
use balar_host::memory::gpu_base;
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::cuda::FaultCause;

const READ: u64 = 53_000;

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
fn a_failure_drops_what_has_not_begun() {
    let cause = FaultCause::Trap;
    let mut play = Play::new(
        Program::of(vec![
            call(launch(0)),
            call(Call::Malloc { bytes: 64 }),
            call(Call::memset(gpu_base(0), 1, 64, 0, true)),
            call(Call::HostFunction { stream: 0, function: 5 }),
            call(Call::DeviceSynchronize),
            call(Call::EventCreate { timed: true }),
        ]),
        1,
        "",
    );
    play.faulty = vec![(1, cause)];
    play.until(50);
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 0"]);
    let seen = play.seen.lock().expect("one thread");
    assert!(seen.functions.is_empty() && seen.errors.starts_with("cudaErrorLaunchFailure: trap by kernel k"));
    assert_eq!(seen.errors.lines().count(), 1);
    let error = CallResult::Error(CudaError::LaunchFailure);
    assert_eq!(seen.results[&balar_host::ThreadId(0)][4..], [error.clone(), error]);
}

#[test]
fn host_functions_are_nothing_once_the_program_has_ended() {
    let function = |function| call(Call::HostFunction { stream: 0, function });
    let mut play = Play::new(Program::of(vec![call(launch(0)), function(5), call(launch(0))]), 1, "");
    play.until(100);
    assert!(play.seen.lock().expect("one thread").functions.is_empty());
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 0", "gpu 0: launch 2 stream 0"]);
    assert_eq!(play.unit.outstanding(), None);
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let mut play = Play::new(Program::new().thread(2, vec![call(launch(0)), call(Call::DeviceReset)]), 2, "");
    play.until(10);
    let error = CallResult::Error(CudaError::InvalidDevice);
    assert_eq!(play.results(0), [error.clone(), error]);
}

#[test]
fn peers_are_enabled_once() {
    let peer = |peer, enabled| call(Call::PeerAccess { peer, enabled });
    let steps = vec![peer(1, true), peer(1, true), peer(1, false), peer(1, false), peer(0, true), peer(2, true)];
    let mut play = Play::new(Program::of(steps), 2, "");
    play.until(10);
    let error = CallResult::Error;
    assert_eq!(
        play.results(0),
        [
            CallResult::None,
            error(CudaError::PeerAccessAlreadyEnabled),
            CallResult::None,
            error(CudaError::PeerAccessNotEnabled),
            error(CudaError::InvalidDevice),
            error(CudaError::InvalidDevice),
        ]
    );
}

#[test]
fn limits_are_those_of_cuda_until_they_are_set() {
    let get = |limit| call(Call::GetLimit { limit });
    let set = |limit, bytes| call(Call::SetLimit { limit, bytes });
    let play = run(vec![
        get(Limit::Stack),
        get(Limit::PrintQueue),
        get(Limit::Heap),
        set(Limit::Stack, 65_537),
        set(Limit::PrintQueue, 4096),
        set(Limit::Heap, 1 << 20),
        get(Limit::Stack),
        get(Limit::PrintQueue),
        get(Limit::Heap),
        set(Limit::Stack, 1 << 20),
        call(Call::DeviceReset),
        get(Limit::Heap),
    ]);
    let size = CallResult::Size;
    let results = play.results(0);
    assert_eq!(results[..3], [size(1024), size(1 << 20), size(8 << 20)]);
    assert_eq!(results[6..9], [size(65_552), size(4096), size(1 << 20)]);
    assert_eq!(results[9], CallResult::Error(CudaError::InvalidValue));
    assert_eq!(results[11], size(8 << 20));
}
