//! Several GPUs, failures, limits.

use super::play::*;
use balar_host::call::Limit;
use balar_host::memory::gpu_base;
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::cuda::FaultCause;

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
    let mut play = Play::new(Program::default().thread(1, failing).thread(0, other), 2);
    // The first launch of GPU 1: the other thread makes one before it, while this one allocates.
    play.faulty = vec![(2, assertion)];
    play.finish();
    let results = play.results(0);
    assert_eq!(results[0], CallResult::Pointer(gpu_base(1)));
    let error = CallResult::Error(CudaError::Assert);
    assert_eq!(results[2..7], [error.clone(), error, CallResult::None, CallResult::None, CallResult::None]);
    assert_eq!(results[7], CallResult::MemoryInfo { free: 64 << 20, total: 64 << 20 });
    assert_eq!(play.results(1), [const { CallResult::None }; 3]);
    assert_eq!(
        play.errors,
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
    );
    play.faulty = vec![(1, cause)];
    play.finish();
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 0"]);
    assert!(play.functions.is_empty() && play.errors.starts_with("cudaErrorLaunchFailure: trap by kernel k"));
    assert_eq!(play.errors.lines().count(), 1);
    let error = CallResult::Error(CudaError::LaunchFailure);
    assert_eq!(play.results(0)[4..], [error.clone(), error]);
}

#[test]
fn host_functions_are_nothing_once_the_program_has_ended() {
    let function = |function| call(Call::HostFunction { stream: 0, function });
    let mut play = Play::new(Program::of(vec![call(launch(0)), function(5), call(launch(0))]), 1);
    play.finish();
    assert!(play.functions.is_empty());
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 0", "gpu 0: launch 2 stream 0"]);
    assert_eq!(play.driver.oldest(), None);
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let mut play = Play::new(Program::default().thread(2, vec![call(launch(0)), call(Call::DeviceReset)]), 2);
    play.finish();
    let error = CallResult::Error(CudaError::InvalidDevice);
    assert_eq!(play.results(0), [error.clone(), error]);
}

#[test]
fn peers_are_enabled_once() {
    let peer = |peer, enabled| call(Call::PeerAccess { peer, enabled });
    let steps = vec![peer(1, true), peer(1, true), peer(1, false), peer(1, false), peer(0, true), peer(2, true)];
    let mut play = Play::new(Program::of(steps), 2);
    play.finish();
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
