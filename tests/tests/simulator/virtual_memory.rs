//! Kernels on memory that is mapped at reserved addresses.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::Call;
use balar_host::call::{GRANULARITY, MemoryAccess, VirtualMemoryCall};
use balar_tests::built_in;
use balar_tests::steps::{Argument, DOUBLE, Step, Steps, call, download, launch, upload, value};

const THREADS: u32 = 256;
const BYTES: u64 = THREADS as u64 * 4;

/// A call about the addresses that call number `of` reserved, or the memory that it made.
fn about(of: usize, make: impl Fn(u64) -> VirtualMemoryCall + Send + 'static) -> Step {
    Box::new(move |results| Call::VirtualMemory(make(value(results, of))))
}

/// Maps the memory of call `handle` at the addresses of call `range`.
fn map(range: usize, handle: usize) -> Step {
    Box::new(move |results| {
        let (pointer, handle) = (value(results, range), value(results, handle));
        Call::VirtualMemory(VirtualMemoryCall::Map { pointer, bytes: GRANULARITY, handle })
    })
}

fn open(range: usize) -> Step {
    about(range, |pointer| {
        let devices = vec![(0, MemoryAccess::ReadWrite)];
        VirtualMemoryCall::SetAccess { pointer, bytes: GRANULARITY, devices }
    })
}

fn unmap(range: usize) -> Step {
    about(range, |pointer| VirtualMemoryCall::Unmap { pointer, bytes: GRANULARITY })
}

fn beginning() -> Vec<Step> {
    let of = |wanted| call(Call::VirtualMemory(wanted));
    let reserve = || of(VirtualMemoryCall::Reserve { bytes: GRANULARITY, alignment: 0 });
    vec![reserve(), reserve(), of(VirtualMemoryCall::Create { bytes: GRANULARITY }), map(0, 2), open(0)]
}

fn double() -> Step {
    launch("double", [1, 1], [THREADS, 1], &[Argument::Value(0), Argument::Value(0)])
}

#[test]
fn values_stay_with_the_memory_wherever_it_is_mapped() {
    let words: Vec<u32> = (0..THREADS).map(|n| n * 3 + 1).collect();
    let data = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (first, second) = (Argument::Value(0), Argument::Value(1));
    let mut steps = beginning();
    steps.extend([
        upload(0, data),
        launch("double", [1, 1], [THREADS, 1], &[first, first]),
        // Waits for the kernel.
        unmap(0),
        map(1, 2),
        open(1),
        launch("double", [1, 1], [THREADS, 1], &[second, second]),
        download(1, BYTES),
    ]);
    let (program, seen) = Steps::new(steps);
    let node = built_in("v100_node");
    let result = simulate_program(&node, "mapped", ("double.ptx", DOUBLE), program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?}", result.program);
    let seen = seen.lock().expect("the run is over");
    assert_eq!(seen.words(0), words.iter().map(|word| word * 4).collect::<Vec<_>>());
}

#[test]
fn memory_that_is_not_open_or_no_longer_mapped_is_illegal() {
    let failure = |mut steps: Vec<Step>| {
        steps.extend([double(), call(Call::DeviceSynchronize)]);
        let (program, _) = Steps::new(steps);
        let node = built_in("v100_node");
        let result = simulate_program(&node, "faults", ("double.ptx", DOUBLE), program, RunOptions::default());
        let result = result.unwrap_or_else(|error| panic!("{error}"));
        result.program.and_then(|program| program.error)
    };
    assert_eq!(failure(beginning()), None);
    let mut unopened = beginning();
    unopened.pop();
    let mut ended = beginning();
    ended.push(unmap(0));
    for steps in [unopened, ended] {
        let error = failure(steps).expect("the kernel accesses addresses alone");
        assert!(error.contains("illegal address") && error.contains("by kernel double"), "{error}");
    }
}
