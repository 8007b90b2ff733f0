//! What the prefetcher does, on the node of `topologies/v100_prefetcher.ron` and beside the same node without it.

use balar_actors::engine::RunOptions;
use balar_actors::kinds::UNITS;
use balar_actors::simulation::{BuiltInWorkloads, RunResult, SimulationRequest, simulate};
use balar_actors::topology::{LoadOptions, PartLibrary, TopologySource, load};
use std::fmt::Write;

const WITH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/v100_prefetcher.ron");
const WITHOUT: &str = "v100_node";

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

fn run(topology: &str, workload: &str, parameters: &[(&str, &str)], threads: usize) -> RunResult {
    let kinds: Vec<_> = UNITS.iter().chain(balar_examples::UNITS).copied().collect();
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds: &kinds, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &[] };
    let topology = load(&TopologySource::from(topology), &options).unwrap_or_else(|errors| panic!("{errors:?}"));
    let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let workload = Some((workload.to_owned(), parameters));
    let options = RunOptions { threads, ..RunOptions::default() };
    let result = simulate(SimulationRequest { topology, workload, ptx: Vec::new(), options }).expect("a simulation");
    assert_eq!(result.verified(), Some(true), "{:?}", result.program);
    result
}

/// Cycles that a load of the chase took, by the SM's own clock.
fn cycles_per_access(result: &RunResult) -> f64 {
    let results = &result.program.as_ref().expect("the program ended").results;
    results.iter().find(|(name, _, _)| name == "cycles_per_access").expect("the chase measures it").1
}

/// A counter, summed over the row `units`: "gpu.sm".
fn sum(result: &RunResult, units: &str, what: &str) -> u64 {
    let rows = result.statistics.rows.iter();
    let of_row = |location: &str| location.strip_prefix(units).is_some_and(|rest| rest.starts_with('['));
    rows.filter(|row| of_row(&row.location) && row.what == what).map(|row| row.value).sum()
}

#[test]
fn a_sequential_chase_takes_less_than_half_the_cycles() {
    let without = cycles_per_access(&run(WITHOUT, "pointer_chase", SEQUENTIAL, 1));
    let result = run(WITH, "pointer_chase", SEQUENTIAL, 1);
    let with = cycles_per_access(&result);
    // Five loads share what one took: four lines are under way while the fifth is used.
    assert!(with < 0.5 * without, "{with} cycles with the prefetcher, {without} without");

    // 2048 loads of 2048 lines: three find the stream, the others were fetched ahead. SMs load their code, too.
    let prefetchers = |what| sum(&result, "gpu.prefetcher", what);
    let code = sum(&result, "gpu.sm", "instruction_requests");
    let (loads, misses) = (prefetchers("loads"), prefetchers("buffer_misses"));
    let hits = prefetchers("buffer_hits") + prefetchers("buffer_hits_late");
    assert_eq!((loads, hits + misses), (2048 + code, 2048 + code));
    assert!((3..=3 + code).contains(&misses), "{misses} misses, {code} requests for code");
    // A stream ends with no more than `degree` lines that nobody wants.
    let unused = prefetchers("prefetches") - prefetchers("prefetches_used");
    assert!(unused <= 4 * prefetchers("streams_found"), "{unused} lines were fetched for nothing");

    let mut text = format!("cycles_per_access without = {without:.1}\ncycles_per_access with = {with:.1}\n");
    for row in result.statistics.rows.iter().filter(|row| row.location == "gpu.prefetcher[0]") {
        writeln!(text, "{} {} = {} {}", row.location, row.what, row.value, row.unit).expect("a String takes it");
    }
    insta::assert_snapshot!("sequential_chase", text);
}

#[test]
fn a_random_chase_pays_the_way_through_the_prefetcher_and_nothing_else() {
    let without = cycles_per_access(&run(WITHOUT, "pointer_chase", RANDOM, 1));
    let result = run(WITH, "pointer_chase", RANDOM, 1);
    // Whatever hits in the buffer is code.
    let code = sum(&result, "gpu.sm", "instruction_requests");
    assert_eq!(sum(&result, "gpu.prefetcher", "loads"), 1024 + code);
    assert!(sum(&result, "gpu.prefetcher", "buffer_misses") >= 1024);
    // Two cycles of forwarding each way, and each way up to a cycle until the next tick of its clock.
    let cost = cycles_per_access(&result) - without;
    assert!((2.0..=8.0).contains(&cost), "{cost} cycles");
}

#[test]
fn vectors_add_up_and_the_number_of_threads_does_not_matter() {
    let rows = |threads| run(WITH, "vectoradd", &[("elements", "4096")], threads).statistics.rows;
    let reference = rows(1);
    assert!(reference.iter().any(|row| row.location == "gpu.prefetcher[83]"));
    assert_eq!(rows(2), reference);
    assert_eq!(rows(4), reference);
}
