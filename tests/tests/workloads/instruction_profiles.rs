//! The counts by instruction are the counts of the SMs, and counting them changes nothing.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{IsaChoice, RunResult};
use balar_protocol::SimTime;
use balar_tests::{described, run_as, small, workloads_on};
use std::collections::BTreeMap;

fn run(topology: &str, workload: &str, isa: IsaChoice, options: RunOptions) -> RunResult {
    run_as(topology, workload, small(workload), isa, options)
}

fn profiling(threads: usize) -> RunOptions {
    RunOptions { profile_instructions: true, threads, ..RunOptions::default() }
}

/// Sums over all instructions of all kernels, by counter.
fn by_instruction(result: &RunResult) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for profile in result.profiles.as_ref().expect("it was asked for") {
        for pc in 0..profile.program.len() as u32 {
            for (column, count) in profile.columns.iter().zip(profile.counts(pc)) {
                *sums.entry(column.name).or_insert(0) += count;
            }
        }
    }
    sums
}

/// What the SMs count of executions alone: those of accesses of L1 with a lane that the guard did not keep from it.
const ACCESSES: [(&str, &str, [&str; 2]); 2] = [
    ("l1_accesses_load", "l1_sectors_load", ["inst_global_loads", "inst_local_loads"]),
    ("l1_accesses_store", "l1_sectors_store", ["inst_global_stores", "inst_local_stores"]),
];

/// Every counter of the profile has the sum that the SMs have.
fn sums_are_those_of_the_sms(result: &RunResult, name: &str) {
    let sums = by_instruction(result);
    assert!(sums.len() > 20 && sums.contains_key("stall_not_selected"), "{name}: {sums:?}");
    for (accesses, sectors, executions) in ACCESSES {
        let (accesses, sectors) = (sums[accesses], sums[sectors]);
        let executions: u64 = executions.iter().filter_map(|counter| result.sum("gpu.sm", counter)).sum();
        // An access has a sector at least, and at most 32 lanes with 16 bytes each.
        assert!(
            accesses <= executions && accesses <= sectors && sectors <= 64 * accesses,
            "{name}: {accesses} {sectors}"
        );
    }
    for (counter, sum) in sums.iter().filter(|(counter, _)| ACCESSES.iter().all(|(own, ..)| own != *counter)) {
        assert_eq!(Some(*sum), result.sum("gpu.sm", counter), "{name}: {counter}");
    }
    // All reasons that the SMs have are there.
    let of_sms = result.statistics.rows.iter().filter(|row| row.location.starts_with("gpu.sm["));
    let mut reasons = of_sms.filter(|row| row.what.starts_with("stall_"));
    assert!(reasons.all(|row| sums.contains_key(row.what)), "{name}");
}

/// All that a run says of its instructions.
fn text(result: &RunResult) -> String {
    let profiles = result.profiles.as_ref().expect("it was asked for");
    let counts = profiles.iter().flat_map(|profile| {
        let rows = profile.program.locations();
        rows.map(|(pc, location)| format!("{} {location:?} {:?}\n", profile.gpu, profile.counts(pc)))
    });
    counts.collect()
}

#[test]
fn sums_are_those_of_the_sms_and_nothing_else_moves() {
    for (topology, isa) in [("v100_node", IsaChoice::Sass), ("v100_node", IsaChoice::Ptx), ("t4_node", IsaChoice::Sass)]
    {
        for workload in workloads_on(topology) {
            let name = format!("{} on {topology}, {isa:?}", workload.name);
            let result = run(topology, workload.name, isa, profiling(1));
            sums_are_those_of_the_sms(&result, &name);
            let plain = run(topology, workload.name, isa, RunOptions::default());
            assert!(plain.profiles.is_none());
            assert_eq!(described(&result), described(&plain), "{name}");
        }
    }
}

#[test]
fn threads_change_nothing() {
    // Several kernels, several at once, barriers, and atomics that loads wait for.
    for workload in ["lud", "concurrent", "histogram", "bfs"] {
        for isa in [IsaChoice::Sass, IsaChoice::Ptx] {
            let [one, four] = [1, 4].map(|threads| text(&run("v100_node", workload, isa, profiling(threads))));
            assert!(one.len() > 1000 && one == four, "{workload}, {isa:?}");
        }
    }
}

/// What has been counted moves with the units that are saved and restored.
#[test]
fn units_that_are_handed_over_go_on_counting() {
    let plain = run("v100_node", "lud", IsaChoice::Sass, profiling(1));
    let hand_over_at = (1..20).map(|part| SimTime(plain.sim_time.0 * part / 20)).collect();
    let handed_over = run("v100_node", "lud", IsaChoice::Sass, RunOptions { hand_over_at, ..profiling(1) });
    assert_eq!(text(&plain), text(&handed_over));
}

/// Warps that leave in the middle of a wait give back what they were charged ahead.
#[test]
fn a_run_that_ends_early_has_sums_as_well() {
    for isa in [IsaChoice::Sass, IsaChoice::Ptx] {
        let end = run("v100_node", "lud", isa, RunOptions::default()).sim_time;
        for part in [3, 5, 8] {
            let stop_at = Some(SimTime(end.0 * part / 9));
            let result = run("v100_node", "lud", isa, RunOptions { stop_at, ..profiling(1) });
            sums_are_those_of_the_sms(&result, &format!("{part} ninths of lud, {isa:?}"));
        }
    }
}
