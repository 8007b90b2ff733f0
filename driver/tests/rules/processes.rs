//! Several processes on one node.

use super::play::*;
use balar_host::call::IpcCall;
use balar_host::memory::gpu_base;
use balar_host::{Bytes, Call, CallResult, CudaError};
use balar_protocol::cuda::FaultCause;

/// A segment, which no two processes share.
const SEGMENT: u64 = 2 << 20;

fn event() -> Call {
    Call::EventCreate { timed: false }
}

fn copy_to(destination: u64) -> Call {
    Call::copy_to_device(destination, Bytes::from(vec![1; 16]), 0, false)
}

fn error(result: &CallResult) -> Option<CudaError> {
    match result {
        CallResult::Error(error) => Some(*error),
        _ => None,
    }
}

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

fn ipc(call: IpcCall) -> Call {
    Call::Ipc(call)
}

#[test]
fn nothing_of_one_process_has_a_meaning_for_another() {
    let own = vec![call(Call::Malloc { bytes: 256 }), new_stream(), call(event()), call(Call::DeviceSynchronize)];
    let foreign = [
        copy_to(gpu_base(0)),
        Call::Free { pointer: gpu_base(0) },
        Call::PointerInfo { pointer: gpu_base(0) },
        Call::StreamSynchronize { stream: 1 },
        Call::EventSynchronize { event: 1 },
        Call::Malloc { bytes: 256 },
    ];
    let program = Program::of(own).thread(0, later(100, foreign.map(call).into())).of_process(1);
    let mut play = Play::new(program, 1);
    play.finish();
    assert_eq!(play.results(0)[..3], [CallResult::Pointer(gpu_base(0)), CallResult::Stream(1), CallResult::Event(1)]);
    let results = results_of(&play, 1);
    assert_eq!(
        results[..5].iter().map(error).collect::<Vec<_>>(),
        [
            Some(CudaError::InvalidValue),
            Some(CudaError::InvalidValue),
            None,
            Some(CudaError::InvalidResourceHandle),
            Some(CudaError::InvalidResourceHandle)
        ]
    );
    assert_eq!(results[2], CallResult::PointerInfo(None));
    assert_eq!(results[5], CallResult::Pointer(gpu_base(0) + SEGMENT), "segments are not shared");
}

#[test]
fn a_fault_concerns_the_process_whose_kernel_it_is_alone() {
    let steps = || vec![call(launch(0)), call(Call::DeviceSynchronize), call(Call::MemoryInfo)];
    let program = Program::of(steps()).thread(0, steps()).of_process(1);
    let mut play = Play::new(program, 1);
    play.faulty.push((1, FaultCause::Trap));
    play.finish();
    assert_eq!(play.results(0)[1..].iter().map(error).collect::<Vec<_>>(), [Some(CudaError::LaunchFailure); 2]);
    assert_eq!(play.results(1)[1..].iter().map(error).collect::<Vec<_>>(), [None; 2]);
}

#[test]
fn what_a_process_had_goes_with_it_once_its_work_is_done() {
    // All of the GPU's 64 MiB; the other process asks for them while the first one's kernel runs.
    let bytes = 60 << 20;
    let first = vec![call(Call::Malloc { bytes }), call(launch(0))];
    let second = later(1, vec![call(Call::Malloc { bytes }), call(Call::MemoryInfo)]);
    let program = Program::of(first).ending(0, false).thread(0, second).of_process(1);
    let mut play = Play::new(program, 1);
    play.finish();
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 0"], "its kernel is not ended");
    let results = results_of(&play, 1);
    assert_eq!(results[0], CallResult::Pointer(gpu_base(0)), "the allocation waits until there is room");
    assert_eq!(results[1], CallResult::MemoryInfo { free: 4 << 20, total: 64 << 20 });
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
    let mut play = Play::new(program, 1);
    play.finish();
    let words = play.words();
    assert_eq!(words.iter().filter(|word| word.contains("launch")).count(), 2, "{words:?}");
    assert!(words.contains(&"gpu 0: abort of process 0"), "{words:?}");
    assert!(!play.is_mapped(gpu_base(0)));
    assert_eq!(results_of(&play, 1), [CallResult::None, CallResult::None]);
    assert_eq!(play.functions, [0; 0], "nobody is left to run its functions");
}

#[test]
fn processes_share_memory_by_handles() {
    let base = gpu_base(0);
    let owner = vec![
        call(Call::Malloc { bytes: 1 << 20 }),
        call(ipc(IpcCall::MemoryHandle { pointer: base + 5 })),
        call(ipc(IpcCall::OpenMemory { handle: base })),
        call(ipc(IpcCall::MemoryHandle { pointer: base + (1 << 30) })),
    ];
    let other = vec![
        call(copy_to(base)),
        call(ipc(IpcCall::OpenMemory { handle: base })),
        call(copy_to(base)),
        call(Call::Free { pointer: base }),
        call(ipc(IpcCall::OpenMemory { handle: base + 256 })),
        call(ipc(IpcCall::CloseMemory { pointer: base })),
        call(copy_to(base)),
        call(ipc(IpcCall::CloseMemory { pointer: base })),
    ];
    let program = Program::of(owner).thread(0, later(200, other)).of_process(1);
    let mut play = Play::new(program, 1);
    play.finish();
    let invalid = Some(CudaError::InvalidValue);
    let results = play.results(0);
    assert_eq!(results[1], CallResult::Object(base), "the handle is that of the whole allocation");
    assert_eq!(error(&results[2]), Some(CudaError::DeviceUninitialized), "a process cannot open its own");
    assert_eq!(error(&results[3]), invalid);
    let results = results_of(&play, 1);
    assert_eq!(results[1], CallResult::Pointer(base));
    let errors: Vec<_> = results.iter().map(error).collect();
    assert_eq!(errors, [invalid, None, None, invalid, invalid, None, invalid, invalid]);
}

#[test]
fn processes_wait_for_each_others_events() {
    let owner = vec![
        call(event()),
        call(ipc(IpcCall::EventHandle { event: 1 })),
        call(launch(0)),
        call(Call::EventRecord { event: 1, stream: 0 }),
        call(Call::EventCreate { timed: true }),
        call(ipc(IpcCall::EventHandle { event: 2 })),
        call(Call::Compute { nanoseconds: 3000 }),
        call(Call::EventDestroy { event: 1 }),
    ];
    let other = vec![
        call(ipc(IpcCall::OpenEvent { handle: 1 })),
        call(Call::StreamWaitEvent { stream: 0, event: 1 }),
        call(launch(0)),
        call(Call::EventQuery { event: 1 }),
        call(Call::EventSynchronize { event: 1 }),
        call(Call::EventQuery { event: 1 }),
        call(ipc(IpcCall::OpenEvent { handle: 7 })),
    ];
    let program = Program::of(owner).thread(0, later(2, other)).of_process(1);
    let mut play = Play::new(program, 1);
    play.finish();
    let errors: Vec<_> = play.results(0).iter().map(error).collect();
    let unfit = Some(CudaError::InvalidResourceHandle);
    assert_eq!(errors, [None, None, None, None, None, unfit, None, None], "an event with times is not shared");
    let errors: Vec<_> = results_of(&play, 1).iter().map(error).collect();
    assert_eq!(errors, [None, None, None, Some(CudaError::NotReady), None, None, unfit]);
    let times: Vec<u64> = play.trace.iter().map(|(time, _)| *time).collect();
    assert!(times[1] >= times[0] + KERNEL, "the second kernel waits for the first: {:?}", play.trace);
}
