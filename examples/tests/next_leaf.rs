//! The effect of the prefetcher of unified memory, on the node of `topologies/v100_next_leaf.ron` and beside `v100_node`, which differs
//! from it in nothing else.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_examples::UNITS;
use balar_experiments::run_overridden;
use balar_protocol::statistics::Field;

const WITH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/v100_next_leaf.ron");
const WITHOUT: &str = "v100_node";
/// Leaves 0, 1, 2, 4, 8 and 16 of a block are touched by the GPU, and read backwards by the host.
const TOUCHES: (&str, &[(&str, &str)]) = ("page_touch", &[("pattern", "p1"), ("memory", "managed")]);

fn touches(topology: &str, overrides: &[(&str, &str)]) -> RunResult {
    run_overridden(RunOptions::default(), topology, TOUCHES.0, TOUCHES.1, overrides, UNITS)
        .unwrap_or_else(|error| panic!("{topology} {overrides:?}: {error}"))
}

/// KiB of the transfers in a direction, in their order.
fn transfers(result: &RunResult, direction: &str) -> Vec<u64> {
    let table = result.statistics.tables.iter().find(|table| table.name == "unified_memory_transfers");
    let table = table.expect("the driver records transfers");
    let column = |name: &str| table.columns.iter().position(|column| *column == name).expect("it has the column");
    let lines = table.lines.iter().filter(|line| line[column("direction")].to_string() == direction);
    let kib = |line: &Vec<Field>| line[column("bytes")].to_string().parse::<u64>().expect("a number") >> 10;
    lines.map(kib).collect()
}

#[test]
fn each_fault_brings_two_leaves_in_both_directions() {
    let result = touches(WITH, &[]);
    // Leaf 1 comes with leaf 0, and so is touched without a fault. Of the others each brings the rest of its own and the next one.
    assert_eq!(transfers(&result, "to_device"), [4, 124].repeat(5));
    assert_eq!(result.sum("unified_memory", "far_faults"), Some(5));
    // Backwards: leaves 16, 8, 4 and 2 have their next one beside them on the GPU. That of leaf 1 has gone before it, and so has that of 0.
    assert_eq!(transfers(&result, "to_host"), [[4, 124].repeat(4), [4, 60].repeat(2)].concat());
    assert_eq!(result.sum("unified_memory", "host_faults"), Some(6));
}

#[test]
fn no_other_prefetcher_moves_the_same() {
    let own = transfers(&touches(WITH, &[]), "to_device");
    for prefetcher in ["None", "Random", "SequentialLocal", "Tree", "Driver()"] {
        let other = transfers(&touches(WITHOUT, &[("unified_memory.prefetcher", prefetcher)]), "to_device");
        assert_ne!(other, own, "{prefetcher}");
        // The topology's settings of the prefetcher do not count here.
        let set = transfers(&touches(WITH, &[("unified_memory.prefetcher", prefetcher)]), "to_device");
        assert_eq!(set, own, "{prefetcher}");
    }
}

#[test]
fn values_are_right_in_too_little_memory_and_the_number_of_threads_does_not_matter() {
    let parameters = [("size", "256"), ("iterations", "4"), ("steps", "2"), ("memory", "managed")];
    let rows = |threads| {
        let options = RunOptions { threads, ..RunOptions::default() };
        let small = [("unified_memory.gpu_memory", "\"512 KiB\"")];
        let result = run_overridden(options, WITH, "hotspot", &parameters, &small, UNITS).expect("it runs");
        assert_eq!(result.verified(), Some(true));
        assert!(result.sum("unified_memory", "pages_evicted") > Some(0));
        result.statistics.rows
    };
    let reference = rows(1);
    assert_eq!(rows(2), reference);
    assert_eq!(rows(4), reference);
    // Beside a prefetcher of the faulting leaves alone, pages that come ahead do not fault.
    let faults = |topology, overrides: &[(&str, &str)]| {
        let result = run_overridden(RunOptions::default(), topology, "hotspot", &parameters, overrides, UNITS);
        result.expect("it runs").sum("unified_memory", "far_faults").expect("the driver counts them")
    };
    let (own, leaf) = (faults(WITH, &[]), faults(WITHOUT, &[("unified_memory.prefetcher", "SequentialLocal")]));
    assert!(own < leaf, "{own} and {leaf} faults");
}
