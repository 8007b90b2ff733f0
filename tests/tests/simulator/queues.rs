//! Queues with an end between an SM and memory: traffic through the smallest ones comes to its end, and each says how long it stood.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{CodeChoice, RunResult};
use balar_experiments::{SimulationRequest, simulate};
use balar_tests::{built_in_with, small};

/// Each queue on the way from an SM to memory and back at its smallest size. One access of a warp touches up to 32 lines.
const SMALLEST: [&str; 12] = [
    "gpu.sm[*].request_queue=32",
    "gpu.sm[*].l1_mshrs=32",
    "gpu.sm[*].store_queue=32",
    "gpu.crossbar.request_queue=1",
    "gpu.crossbar.response_queue=1",
    "gpu.crossbar.slice_queue=1",
    "gpu.l2[*].answer_queue=1",
    "gpu.l2[*].atomic_queue=1",
    "gpu.l2[*].mshr_entries=1",
    "gpu.l2[*].mshr_merges=1",
    "gpu.l2[*].write_back_entries=1",
    "gpu.l2[*].dirty_ways=1",
];

/// Runs a workload at its small size on a V100 with these overrides.
fn run(workload: &str, overrides: &[&str], threads: usize) -> RunResult {
    let request = SimulationRequest {
        topology: built_in_with("v100_node", overrides),
        workload: Some((workload.to_owned(), small(workload))),
        ptx: Vec::new(),
        code: CodeChoice::default(),
        options: RunOptions { threads, ..RunOptions::default() },
    };
    let result = simulate(request).unwrap_or_else(|error| panic!("{workload}: {error}"));
    assert!(result.completed(), "{workload}: {:?} {:?}", result.outcome, result.program);
    assert_ne!(result.verified(), Some(false), "{workload}: {:?}", result.program);
    result
}

/// A counter, over all units.
fn sum(result: &RunResult, what: &str) -> u64 {
    let rows = result.statistics.rows.iter().filter(|row| row.what == what && row.location.ends_with(']'));
    rows.map(|row| row.value).sum()
}

fn cycles(result: &RunResult) -> u64 {
    result.statistics.kernels.iter().map(|kernel| kernel.cycles).sum()
}

/// Loads, stores, atomics and reductions, to few lines and to many.
#[test]
fn traffic_through_the_smallest_queues_comes_to_its_end() {
    let mut stalls = [0; 8];
    for workload in ["random_access", "histogram", "spmv", "transpose", "bfs", "scan", "shock"] {
        let (usual, smallest) = (run(workload, &[], 1), run(workload, &SMALLEST, 1));
        assert!(cycles(&smallest) > cycles(&usual), "{workload}");
        assert_eq!(run(workload, &SMALLEST, 3).statistics.rows, smallest.statistics.rows, "{workload}");
        let counters = [
            "request_stall_cycles",
            "stall_cycles_answer",
            "stall_cycles_atomic",
            "stall_cycles_crossbar",
            "stall_cycles_mshr",
            "stall_cycles_merge",
            "stall_lg_throttle",
            "request_queue_maximum",
        ];
        for (stall, counter) in stalls.iter_mut().zip(counters) {
            *stall += sum(&smallest, counter);
        }
    }
    assert!(stalls.iter().all(|&stall| stall > 0), "every queue was full at some time: {stalls:?}");
}

/// The SM holds as many requests back as it has room for, and no more.
#[test]
fn a_queue_is_never_longer_than_it_is() {
    let result = run("random_access", &SMALLEST, 1);
    let longest = |what: &str| {
        let rows = result.statistics.rows.iter().filter(|row| row.what == what && row.location.ends_with(']'));
        rows.map(|row| row.value).max().expect("units")
    };
    assert!(longest("request_queue_maximum") <= 32, "{}", longest("request_queue_maximum"));
    assert_eq!(longest("queue_maximum"), 1, "of the slices");
}
