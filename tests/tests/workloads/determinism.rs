//! A run's statistics are the same bytes for any number of threads and any placement of units on them.

use balar_actors::engine::{Placement, RunOptions};
use balar_tests::{described, run, small, small_run};

/// Compares a run with the same one again, and with some on more threads and otherwise placed.
fn is_deterministic(topology: &str, workload: &str, others: &[(usize, Placement)]) {
    let text_of = |threads, placement| {
        let result =
            run(topology, workload, small(workload), RunOptions { threads, placement, ..RunOptions::default() });
        assert!(result.completed(), "{workload} on {topology}: {:?} {:?}", result.outcome, result.program);
        assert!(!result.statistics.kernels.is_empty(), "{workload} on {topology}");
        described(&result)
    };
    let expected = described(&small_run(topology, workload));
    for &(threads, placement) in [(1, Placement::Balanced)].iter().chain(others) {
        let actual = text_of(threads, placement);
        let differs = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
        assert!(differs.is_none(), "{workload} on {topology}, {threads} threads, {placement:?}: {differs:?}");
        assert_eq!(expected.len(), actual.len(), "{workload} on {topology}, {threads} threads, {placement:?}");
    }
}

/// With two and four threads, and the PTX of every compiler: `code`.
#[test]
fn every_workload_on_the_v100() {
    for workload in balar_workloads::workloads() {
        is_deterministic("v100_node", workload.name, &[(3, Placement::Shuffled(7))]);
    }
}

/// Barriers and divergence, atomics, streams: on the other nodes.
#[test]
fn some_workloads_on_the_other_nodes() {
    for topology in ["p100_node", "v100_sxm2_node"] {
        for workload in ["lud", "reduction", "concurrent"] {
            is_deterministic(topology, workload, &[2, 4].map(|threads| (threads, Placement::Balanced)));
        }
    }
}

/// Where a run is cut short is a simulated time, and so is what it says then.
#[test]
fn a_run_that_is_stopped() {
    let text_of = |threads| {
        let stop_at = Some(balar_protocol::SimTime::from_nanoseconds(30_000));
        let result = run("v100_node", "lud", small("lud"), RunOptions { threads, stop_at, ..RunOptions::default() });
        assert!(!result.completed());
        described(&result)
    };
    let expected = text_of(1);
    assert_eq!(expected, text_of(2));
    assert_eq!(expected, text_of(4));
}
