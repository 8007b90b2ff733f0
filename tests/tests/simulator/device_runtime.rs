//! Kernels' requests to the device runtime: printed text, memory of their own, assertions.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{RunResult, simulate_program};
use balar_host::{Call, CallResult, CudaError};
use balar_tests::built_in;
use balar_tests::steps::{Argument, Seen, Step, Steps, call, download, launch, upload};
use std::collections::BTreeSet;

fn run(steps: Vec<Step>, threads: usize) -> (Seen, RunResult) {
    let (program, seen) = Steps::new(steps);
    let ptx = ("device_runtime.ptx", include_str!("../../device_code/device_runtime.ptx"));
    let options = RunOptions { threads, ..RunOptions::default() };
    let result = simulate_program(&built_in("v100_node"), "device_runtime", ptx, program, options);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let seen = seen.lock().expect("the run is over").clone();
    (seen, result)
}

fn error_of(result: RunResult) -> String {
    result.program.and_then(|program| program.error).expect("the program gave up")
}

const BLOCKS: u32 = 100;
const THREADS: u32 = 40;

#[test]
fn what_kernels_print_arrives_once_and_the_same_for_any_number_of_threads() {
    let values: Vec<i32> = (0..(BLOCKS * THREADS) as i32).map(|n| n * 3 - 1000).collect();
    let steps = || {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        vec![
            call(Call::Malloc { bytes: u64::from(BLOCKS * THREADS * 4) }),
            upload(0, data),
            launch("print_lines", [BLOCKS, 1], [THREADS, 1], &[Argument::Value(0)]),
            call(Call::DeviceSynchronize),
            call(Call::DeviceSynchronize),
        ]
    };
    let (seen, result) = run(steps(), 1);
    assert!(result.completed(), "{:?}", result.program);
    assert_eq!(seen.printed.len(), 1);
    assert_eq!(seen.printed[0].0, 3, "the synchronisation brings the text");
    let text = seen.text();
    let printed = result.program.map(|program| program.printed).expect("the program ended");
    assert_eq!(String::from_utf8(printed).expect("text"), text);
    let mut expected: Vec<String> = Vec::new();
    for block in 0..BLOCKS {
        for thread in 0..THREADS {
            let at = block * THREADS + thread;
            let (value, parity) = (f64::from(values[at as usize]) / 8.0, ["even", "odd"][at as usize % 2]);
            let letter = char::from(b'a' + (at % 26) as u8);
            expected.push(format!("block {block:3} thread {thread:2}: {value:+.3} {parity} {letter}%"));
        }
        expected.push(format!("{} of block {block}", (1u64 << 40) + u64::from(block)));
    }
    let lines: Vec<&str> = text.lines().collect();
    let sorted = |lines: &[String]| lines.iter().cloned().collect::<BTreeSet<String>>();
    assert_eq!(lines.len(), expected.len());
    assert_eq!(sorted(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()), sorted(&expected));
    // The lanes of a warp print in their order.
    for block in 0..BLOCKS {
        let of_warp = lines.iter().filter(|line| line.starts_with(&format!("block {block:3} thread ")));
        let threads: Vec<u32> =
            of_warp.filter_map(|line| line[17..19].trim().parse().ok()).filter(|&t| t < 32).collect();
        assert_eq!(threads, (0..32).collect::<Vec<_>>());
    }
    for threads in [2, 4] {
        assert_eq!(run(steps(), threads).0.text(), text, "{threads} threads");
    }
}

#[test]
fn the_oldest_lines_give_way_where_the_buffer_is_full() {
    // 35200 lines of 31 bytes: more than the buffer's 1 MiB.
    let line = |line: u32, thread: u32| format!("line {line:07} of thread {thread:07}\n");
    assert_eq!(line(0, 0).len(), 31);
    let (seen, result) =
        run(vec![launch("print_much", [1, 1], [32, 1], &[Argument::Word(1100)]), call(Call::DeviceSynchronize)], 1);
    let text = seen.text();
    let kept = (1 << 20) / 31;
    assert_eq!(text.len(), kept * 31);
    let first = 1100 * 32 - kept as u32;
    assert!(text.starts_with(&line(first / 32, first % 32)));
    assert!(text.ends_with(&line(1099, 31)));
    let printed = result.program.map(|program| program.printed).expect("the program ended");
    let lost = 1100 * 32 - kept;
    let notice = format!(
        "balar-actors: {lost} outputs of printf are lost: the buffer holds 1048576 bytes (cudaLimitPrintfFifoSize)\n"
    );
    assert_eq!(String::from_utf8(printed).expect("text"), text + &notice);
}

#[test]
fn threads_allocate_blocks_of_their_own() {
    const WORDS: u32 = 9;
    let allocate = |bytes: u32| {
        let steps = vec![
            call(Call::Malloc { bytes: 8 * 128 }),
            call(Call::Malloc { bytes: 4 * 128 }),
            launch(
                "allocate",
                [4, 1],
                [32, 1],
                &[Argument::Value(0), Argument::Value(1), Argument::Word(WORDS), Argument::Word(bytes)],
            ),
            download(0, 8 * 128),
            download(1, 4 * 128),
        ];
        let (seen, result) = run(steps, 1);
        assert!(result.completed(), "{:?}", result.program);
        let addresses: Vec<u64> =
            seen.words(0).chunks(2).map(|pair| u64::from(pair[1]) << 32 | u64::from(pair[0])).collect();
        (addresses, seen.words(1))
    };
    let (addresses, sums) = allocate(4 * WORDS);
    let distinct: BTreeSet<u64> = addresses.iter().copied().collect();
    assert!(distinct.iter().all(|address| *address != 0 && address % 16 == 0));
    // Blocks that live at once do not overlap: those of one CTA at least.
    for block in addresses.chunks(32) {
        let mut sorted = block.to_vec();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 36), "{sorted:x?}");
    }
    for (at, sum) in sums.iter().enumerate() {
        let other = at / 32 * 32 + (at + 1) % 32;
        assert_eq!(*sum as usize, (0..WORDS as usize).map(|word| other + word).sum::<usize>());
    }
    // 128 blocks of 100 kB are more than the heap's 8 MiB: some threads get none, and none gets another's.
    let (addresses, sums) = allocate(100_000);
    let given = addresses.iter().filter(|address| **address != 0).count();
    assert!((32..128).contains(&given), "{given} blocks of 100 kB");
    let empty = sums.iter().filter(|sum| **sum == u32::MAX).count();
    assert_eq!(given + empty, 128);
}

#[test]
fn a_block_that_is_freed_twice_is_reported() {
    let steps =
        |again| vec![launch("free_twice", [2, 1], [32, 1], &[Argument::Word(again)]), call(Call::DeviceSynchronize)];
    let (seen, _) = run(steps(0), 1);
    assert_eq!(seen.results, [CallResult::None, CallResult::None]);
    let (seen, result) = run(steps(1), 1);
    assert_eq!(seen.error(), Some(CudaError::LaunchFailure));
    let error = error_of(result);
    assert!(error.contains("where no block of the device heap begins by kernel free_twice (launch 0)"), "{error}");
    assert!(error.contains("thread (3, 0, 0)"), "{error}");
}

#[test]
fn a_failed_assertion_is_reported_as_the_cuda_runtime_words_it() {
    let data: Vec<u8> = (0..64u32).flat_map(u32::to_le_bytes).collect();
    let (seen, result) = run(
        vec![
            call(Call::Malloc { bytes: 256 }),
            upload(0, data),
            launch("check", [2, 1], [32, 1], &[Argument::Value(0), Argument::Word(43)]),
            call(Call::DeviceSynchronize),
        ],
        1,
    );
    assert_eq!(seen.error(), Some(CudaError::Assert));
    let error = error_of(result);
    let expected = "block: [1,0,0], thread: [11,0,0] Assertion `values[at] < limit` failed.";
    assert!(error.contains("cudaErrorAssert (710): ") && error.contains("device_runtime.cu:"), "{error}");
    assert!(error.contains(expected) && error.contains("check"), "{error}");
}

#[test]
fn a_trap_ends_the_kernel() {
    let (seen, result) = run(vec![launch("stop", [1, 1], [32, 1], &[]), call(Call::DeviceSynchronize)], 1);
    assert_eq!(seen.error(), Some(CudaError::LaunchFailure));
    assert!(error_of(result).contains("trap by kernel stop (launch 0), block (0, 0, 0), thread (7, 0, 0)"));
}
