//! Timing does not know the engine: where windows end, whether a run pauses, and whether units are saved and restored half way
//! changes no byte of the statistics.

use balar_actors::catalogue::Surroundings;
use balar_actors::engine::{LiveBoard, RunOptions, WindowCut};
use balar_actors::memory::DeviceMemory;
use balar_actors::simulation::RunResult;
use balar_actors::topology;
use balar_protocol::SimTime;
use balar_tests::{TOPOLOGIES, built_in, described, run, small, small_run};
use std::sync::Arc;

/// What a run says, but for the number of its windows.
fn text(result: &RunResult, what: &str) -> String {
    assert!(result.completed(), "{what}: {:?} {:?}", result.outcome, result.program);
    described(result)
}

fn assert_same(expected: &str, actual: &str, what: &str) {
    let differs = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    assert!(differs.is_none(), "{what}: {differs:?}");
    assert_eq!(expected.len(), actual.len(), "{what}");
}

/// Moments all over a run, from its first picosecond to beyond its end; neither multiples of each other nor of any clock.
fn moments(end: SimTime) -> Arc<[SimTime]> {
    const COUNT: u64 = 40;
    (1..=COUNT).map(|moment| SimTime(end.0 / COUNT * moment + moment * moment * 7919 % 99_991)).collect()
}

/// Compares runs of `workload` whose windows end elsewhere with one whose windows are as long as they can be.
fn does_not_know_windows(topology: &str, workload: &str) {
    let at = |options| run(topology, workload, small(workload), options);
    let reference = small_run(topology, workload);
    let expected = text(&reference, workload);
    let moments = moments(reference.sim_time);
    let cut = |divisor, at| RunOptions { cut: WindowCut { divisor, at }, ..RunOptions::default() };
    for (options, what) in [
        (cut(2, Arc::default()), "windows cut to a half"),
        (cut(7, Arc::default()), "windows cut to a seventh"),
        (cut(1, Arc::clone(&moments)), "a run that pauses and goes on"),
        (RunOptions { hand_over_at: moments, ..RunOptions::default() }, "units saved and restored"),
    ] {
        let (what, result) = (format!("{workload} on {topology}, {what}"), at(options));
        assert_same(&expected, &text(&result, &what), &what);
    }
}

#[test]
fn every_workload_on_the_v100() {
    for workload in balar_workloads::workloads() {
        does_not_know_windows("v100_node", workload.name);
    }
}

/// Copies pass through the L2 on one of them; the other has other clocks.
#[test]
fn some_workloads_on_the_other_nodes() {
    for workload in ["vectoradd", "reduction", "concurrent", "histogram"] {
        does_not_know_windows("v100_sxm2_node", workload);
        does_not_know_windows("p100_node", workload);
    }
}

/// Without this, units could stay where they are and the runs above would show nothing.
#[test]
fn every_unit_but_the_host_can_be_handed_over() {
    for name in TOPOLOGIES {
        let topology = built_in(name);
        let gpus = topology.gpus();
        let capacities: Vec<u64> = gpus.iter().map(|gpu| gpu.memory_bytes).collect();
        let memory = DeviceMemory::of_node(&capacities).expect("the system maps without reserving");
        let surroundings = Surroundings::new(gpus, Some(Arc::new(memory)), LiveBoard::default());
        let built = topology::build(&topology, &surroundings).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let unsaved: Vec<_> = built.iter().filter(|(_, unit, _)| unit.save().is_err()).map(|unit| &unit.0).collect();
        assert_eq!(unsaved, ["cpu"], "{name}");
    }
}
