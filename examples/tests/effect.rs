//! What the prefetcher does, on the node of `topologies/v100_prefetcher.ron` and beside the same node without it.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_examples::UNITS;
use balar_experiments::{run, run_with};
use std::fmt::Write;

const WITH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/v100_prefetcher.ron");
const WITHOUT: &str = "v100_node";
const PASS_THROUGH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/v100_pass_through.ron");

/// One warp chases pointers along ascending lines.
const SEQUENTIAL: &[(&str, &str)] = &[
    ("order", "sequential"),
    ("working_set", "256 KiB"),
    ("stride", "128"),
    ("steps", "2048"),
    ("warm_up_passes", "0"),
];

/// Nodes lie 32 lines apart, in random order: there is no stream.
const RANDOM: &[(&str, &str)] =
    &[("order", "random"), ("working_set", "4 MiB"), ("stride", "4 KiB"), ("steps", "1024"), ("warm_up_passes", "0")];

/// Cycles that a load of the chase took, by the SM's own clock.
fn cycles_per_access(topology: &str, parameters: &[(&str, &str)]) -> (f64, RunResult) {
    let result = run(topology, "pointer_chase", parameters, UNITS).expect("it runs");
    (result.reported("cycles_per_access").expect("the chase measures it"), result)
}

#[test]
fn a_sequential_chase_takes_less_than_half_the_cycles() {
    let (without, _) = cycles_per_access(WITHOUT, SEQUENTIAL);
    let (with, result) = cycles_per_access(WITH, SEQUENTIAL);
    // Five loads share what one took: four lines are under way while the fifth is used.
    assert!(with < 0.5 * without, "{with} cycles with the prefetcher, {without} without");

    // 2048 loads of 2048 lines: three find the stream, the others were fetched ahead. SMs load their code, too.
    let prefetchers = |what| result.sum("gpu.prefetcher", what).expect("it counts that");
    let fetched = ["instruction_requests", "constant_requests"];
    let code: u64 = fetched.iter().map(|what| result.sum("gpu.sm", what).expect("SMs count that")).sum();
    let (loads, misses) = (prefetchers("loads"), prefetchers("buffer_misses"));
    let hits = prefetchers("buffer_hits") + prefetchers("buffer_hits_late");
    assert_eq!((loads, hits + misses), (2048 + code, 2048 + code));
    assert!((3..=3 + code).contains(&misses), "{misses} misses, {code} requests for code");
    // A stream ends with no more than `degree` lines that nobody wants, those of code included, of which not every one is found.
    let unused = prefetchers("prefetches") - prefetchers("prefetches_used");
    assert!(unused <= 4 * prefetchers("streams_found") + code, "{unused} lines were fetched for nothing");

    let mut text = format!("cycles_per_access without = {without:.1}\ncycles_per_access with = {with:.1}\n");
    for row in result.statistics.rows.iter().filter(|row| row.location == "gpu.prefetcher[0]") {
        writeln!(text, "{} {} = {} {}", row.location, row.what, row.value, row.unit).expect("a String takes it");
    }
    insta::assert_snapshot!("sequential_chase", text);
}

#[test]
fn a_random_chase_pays_the_way_through_the_prefetcher_and_nothing_else() {
    let (without, _) = cycles_per_access(PASS_THROUGH, RANDOM);
    let (with, result) = cycles_per_access(WITH, RANDOM);
    // Whatever hits in the buffer is code.
    let code = result.sum("gpu.sm", "instruction_requests").expect("SMs count that");
    assert_eq!(result.sum("gpu.prefetcher", "loads"), Some(1024 + code));
    assert!(result.sum("gpu.prefetcher", "buffer_misses") >= Some(1024));
    // A unit that does nothing in its place costs the same but for loads of code.
    let cost = with - without;
    assert!((-1.0..=1.0).contains(&cost), "{cost} cycles");
}

#[test]
fn passing_through_a_unit_costs_its_cycles() {
    let (without, _) = cycles_per_access(WITHOUT, RANDOM);
    let (with, result) = cycles_per_access(PASS_THROUGH, RANDOM);
    let code = result.sum("gpu.sm", "instruction_requests").expect("SMs count that");
    assert_eq!(result.sum("gpu.between", "loads"), Some(1024 + code));
    assert_eq!(result.maximum("gpu.between", "loads"), result.sum("gpu.between[0]", "loads"));
    // Two cycles each way, and each way up to a cycle until the next tick of its clock.
    let cost = with - without;
    assert!((2.0..=8.0).contains(&cost), "{cost} cycles");
}

/// A buffer that keeps lines longer than the kernel takes, where nothing else drives them out.
#[test]
fn a_warp_that_waits_for_its_stores_gets_them_out_of_the_buffer() {
    let patient = concat!(env!("CARGO_TARGET_TMPDIR"), "/v100_patient_write_buffer.ron");
    let text =
        include_str!("../topologies/v100_write_buffer.ron").replace("WriteBuffer(", "WriteBuffer(timeout: 1000000, ");
    std::fs::write(patient, text).expect("a file");
    let cycles = |topology| {
        let result = run(topology, "bfs", &[("nodes", "1000")], UNITS).expect("it runs");
        let cycles = ["bfs_expand", "bfs_advance"].map(|kernel| result.kernel_cycles(kernel).expect("it ran"));
        (cycles[0] + cycles[1], result)
    };
    let (with, result) = cycles(patient);
    let buffers = |what| result.sum("gpu.buffer", what);
    assert_eq!(buffers("lines_timed_out"), Some(0));
    assert!(buffers("lines_flushed") > Some(0) && buffers("stores_combined") > Some(0));
    let (without, _) = cycles(PASS_THROUGH);
    let cost = with as f64 / without as f64;
    assert!((0.95..1.05).contains(&cost), "{with} cycles with the buffer, {without} without");
}

/// Lanes of bfs write the same word, which a store carries once.
#[test]
fn stores_that_several_lanes_make_to_one_word_pass_a_unit() {
    let result = run(WITH, "bfs", &[("nodes", "1000")], UNITS).expect("it runs");
    assert!(result.sum("gpu.prefetcher", "buffer_hits") > Some(0));
}

#[test]
fn vectors_add_up_and_the_number_of_threads_does_not_matter() {
    let rows = |threads| {
        let options = RunOptions { threads, ..RunOptions::default() };
        let result = run_with(options, WITH, "vectoradd", &[("elements", "4096")], UNITS).expect("it runs");
        assert_eq!(result.verified(), Some(true));
        result.statistics.rows
    };
    let reference = rows(1);
    assert!(reference.iter().any(|row| row.location == "gpu.prefetcher[83]"));
    assert_eq!(rows(2), reference);
    assert_eq!(rows(4), reference);
}
