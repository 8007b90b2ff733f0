//! Kernels that access pinned and managed memory, and bytes beside allocations.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::Call;
use balar_tests::steps::{Argument, DOUBLE, Steps, call, download, launch, read_managed, upload, write_managed};
use balar_tests::{built_in, built_in_with};

const BLOCKS: u32 = 64;
const THREADS: u32 = 256;
const BYTES: u64 = (BLOCKS * THREADS) as u64 * 4;

#[test]
fn pinned_memory_is_reached_over_the_link_and_managed_memory_on_the_device() {
    let words: Vec<u32> = (0..BLOCKS * THREADS).map(|n| n * 3 + 1).collect();
    let data = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (pinned, device, managed) = (0, 1, 2);
    let double = |from, to| launch("double", [BLOCKS, 1], [THREADS, 1], &[Argument::Value(from), Argument::Value(to)]);
    let (program, seen) = Steps::new(vec![
        call(Call::MallocHost { bytes: BYTES }),
        call(Call::Malloc { bytes: BYTES }),
        call(Call::MallocManaged { bytes: BYTES }),
        upload(pinned, data),
        double(pinned, device),
        double(device, managed),
        double(managed, pinned),
        call(Call::DeviceSynchronize),
        download(device, BYTES),
        download(managed, BYTES),
        download(pinned, BYTES),
    ]);
    // A node without a driver of unified memory: managed memory is on the device.
    let node = built_in("qv100_node");
    let result = simulate_program(&node, "host_memory", ("double.ptx", DOUBLE), program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?}", result.program);
    let seen = seen.lock().expect("the run is over");
    for (copy, factor) in [2, 4, 8].into_iter().enumerate() {
        assert_eq!(seen.words(copy), words.iter().map(|word| word * factor).collect::<Vec<_>>());
    }
    let times: Vec<u64> = result.statistics.kernels.iter().map(|kernel| kernel.end_ps - kernel.start_ps).collect();
    // The link moves 15.75 bytes a nanosecond in each direction.
    let least = BYTES * 1_000_000 / 15_750;
    assert!(times[0] > least && times[2] > least, "reads and writes of {BYTES} bytes over the link: {times:?}");
    assert!(times[1] < least, "memory of the device is faster: {times:?}");
}

#[test]
fn the_host_reads_and_writes_managed_memory_itself() {
    let words: Vec<u32> = (0..BLOCKS * THREADS).map(|n| n * 5 + 1).collect();
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (first, second) = (0, 1);
    let double = |from, to| launch("double", [BLOCKS, 1], [THREADS, 1], &[Argument::Value(from), Argument::Value(to)]);
    let (program, seen) = Steps::new(vec![
        call(Call::MallocManaged { bytes: BYTES }),
        call(Call::MallocManaged { bytes: BYTES }),
        write_managed(first, data),
        double(first, second),
        call(Call::DeviceSynchronize),
        read_managed(second, BYTES),
        // A part of the kernel's writes is overwritten before the next one reads it.
        write_managed(second, vec![0; 64]),
        double(second, first),
        call(Call::DeviceSynchronize),
        read_managed(first, BYTES),
        read_managed(second, 128),
    ]);
    let node = built_in("v100_node");
    let result = simulate_program(&node, "managed_memory", ("double.ptx", DOUBLE), program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?}", result.program);
    let seen = seen.lock().expect("the run is over");
    let doubled: Vec<u32> = words.iter().map(|word| word * 2).collect();
    let overwritten: Vec<u32> = doubled.iter().enumerate().map(|(n, word)| if n < 16 { 0 } else { *word }).collect();
    assert_eq!(seen.words(0), doubled);
    assert_eq!(seen.words(1), overwritten.iter().map(|word| word * 2).collect::<Vec<_>>());
    assert_eq!(seen.words(2), overwritten[..32]);
}

#[test]
fn a_kernel_reads_beside_its_allocation_as_far_as_the_page_goes() {
    let words: Vec<u32> = (1..=32).collect();
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let run = |overrides: &[&str]| {
        let (short, whole) = (0, 1);
        let (program, seen) = Steps::new(vec![
            call(Call::Malloc { bytes: 128 }),
            call(Call::Malloc { bytes: 256 }),
            upload(short, data.clone()),
            launch("double", [1, 1], [64, 1], &[Argument::Value(short), Argument::Value(whole)]),
            call(Call::DeviceSynchronize),
            download(whole, 256),
        ]);
        let node = built_in_with("v100_node", overrides);
        let result = simulate_program(&node, "beside", ("double.ptx", DOUBLE), program, RunOptions::default());
        let result = result.unwrap_or_else(|error| panic!("{error}"));
        let seen = seen.lock().expect("the run is over");
        (result.program.and_then(|program| program.error), (seen.error().is_none()).then(|| seen.words(0)))
    };
    let doubled: Vec<u32> = words.iter().map(|word| word * 2).chain([0; 32]).collect();
    assert_eq!(run(&[]), (None, Some(doubled)));
    let (error, _) = run(&["cpu.bounds=Allocations"]);
    let error = error.expect("32 lanes read beside the allocation");
    assert!(error.contains("illegal address") && error.contains("4-byte global load by kernel double"), "{error}");
}
