//! Workloads with managed memory: values are right under every policy, counts are those of the study, and nothing depends on threads.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_experiments::run_overridden;
use balar_tests::described;
use balar_tests::page_transfers::page_transfers;

const HARDWARE: &str = "gtx1080ti_node";
const STUDY: &str = "uvmsmart_v100_node";
const MANAGED: (&str, &str) = ("memory", "managed");

/// Hotspot with three arrays of 256 KiB: 192 pages, 12 leaves.
const HOTSPOT: &[(&str, &str)] = &[("size", "256"), ("iterations", "4"), ("steps", "2")];

/// A verified run.
fn managed_on(
    threads: usize,
    topology: &str,
    (workload, parameters): (&str, &[(&str, &str)]),
    overrides: &[(&str, &str)],
) -> RunResult {
    let options = RunOptions { threads, ..RunOptions::default() };
    let parameters: Vec<_> = parameters.iter().copied().chain([MANAGED]).collect();
    run_overridden(options, topology, workload, &parameters, overrides, &[])
        .unwrap_or_else(|error| panic!("{workload} on {topology} with {overrides:?}: {error}"))
}

fn count(result: &RunResult, counter: &str) -> u64 {
    result.sum("unified_memory", counter).unwrap_or_else(|| panic!("no counter {counter}"))
}

fn kib(result: &RunResult, direction: &str) -> u64 {
    result.sum(&format!("migration_link.{direction}"), "bytes").expect("the link counts bytes") >> 10
}

/// Section 5.5 of the study's figures: a fault for each page, and for each leaf.
#[test]
fn faults_are_as_many_as_the_study_counts() {
    for (prefetcher, faults) in [("None", 192), ("SequentialLocal", 12)] {
        let overrides = [("unified_memory.prefetcher", prefetcher)];
        let result = managed_on(1, STUDY, ("hotspot", HOTSPOT), &overrides);
        let found = (count(&result, "far_faults"), kib(&result, "to_device"));
        assert_eq!(found, (faults, 768), "{prefetcher}");
        // Both temperature arrays were written, and come back at once.
        assert_eq!((count(&result, "pages_synchronised"), kib(&result, "to_host")), (128, 512), "{prefetcher}");
    }
}

/// KiB of the transfers in a direction, in their order.
fn transfers(result: &RunResult, to_device: bool) -> Vec<u64> {
    page_transfers(result)
        .iter()
        .filter(|transfer| transfer.to_device == to_device)
        .map(|transfer| transfer.kib)
        .collect()
}

/// The five microbenchmarks whose transfers were traced on a GTX 1080 Ti (section 2.4 of the specification): all 196 of them.
#[test]
fn microbenchmarks_move_what_their_traces_show() {
    let p1 = [4, 60, 4, 60, 4, 124, 4, 252, 4, 508, 4, 1020];
    let pairs = |count: usize| [4, 60].repeat(count);
    let with = |first: Vec<u64>, rest: &[u64]| [&first[..], rest].concat();
    let back = with(pairs(6), &[64]);
    for (pattern, to_device, to_host) in [
        ("p1", p1.to_vec(), back.clone()),
        ("p2", with(pairs(3), &[64, 4, 252, 4, 508, 4, 1020]), with(pairs(5), &[4, 124])),
        ("p3", with(pairs(5), &[64, 64, 64, 4, 508, 4, 1020]), with(pairs(6), &[4, 124, 64, 64])),
        ("boundary", p1.repeat(3), back.repeat(3)),
        ("round_up", with(p1.to_vec(), &[4, 60, 4, 60, 4, 124]), with(with(pairs(3), &[64]), &back)),
    ] {
        // The leaf behind the end of the allocation moved too: the host must have had it, and no trace says why.
        let initial = if pattern == "round_up" { "Host" } else { "Nowhere" };
        let overrides = [("unified_memory.initial_residency", initial)];
        let result = managed_on(1, HARDWARE, ("page_touch", &[("pattern", pattern)]), &overrides);
        assert_eq!(transfers(&result, true), to_device, "{pattern}");
        assert_eq!(transfers(&result, false), to_host, "{pattern}");
    }
}

/// What the host does not initialise is not transferred on hardware: of hotspot's three arrays two are.
#[test]
fn only_what_somebody_has_touched_moves() {
    let result = managed_on(1, HARDWARE, ("hotspot", HOTSPOT), &[]);
    assert_eq!((kib(&result, "to_device"), kib(&result, "to_host")), (512, 256));
    assert!(count(&result, "batches") >= 3, "{}", count(&result, "batches"));
}

#[test]
fn values_are_right_under_every_eviction_policy_in_too_little_memory() {
    let policies = [
        "Driver",
        "LeastRecentBlock",
        "LeastFrequentBlock",
        "LeastRecentPage",
        "RandomPage",
        "SequentialLocal",
        "Tree",
    ];
    for policy in policies {
        for (topology, memory) in [(HARDWARE, "512 KiB"), (STUDY, "640 KiB")] {
            let quoted = format!("\"{memory}\"");
            let overrides = [
                ("unified_memory.eviction", policy),
                ("unified_memory.gpu_memory", quoted.as_str()),
                ("unified_memory.eviction_options", "(partial_leaves: true)"),
            ];
            let result = managed_on(1, topology, ("hotspot", HOTSPOT), &overrides);
            let evicted = count(&result, "pages_evicted");
            assert!(evicted > 0, "{policy} on {topology} evicts");
            let most = result.maximum("unified_memory.gpu[0]", "most_pages_resident").expect("it is counted");
            assert!(most <= 160, "{policy} on {topology}: {most} pages at once");
        }
    }
}

#[test]
fn every_prefetcher_and_shootdown_gives_the_right_values() {
    for prefetcher in ["None", "Random", "SequentialLocal", "Tree", "Driver()"] {
        for scope in ["Entry", "All"] {
            let overrides = [
                ("unified_memory.prefetcher", prefetcher),
                ("gpu.gmmu.shootdown_scope", scope),
                ("gpu.gmmu.shootdown_when", "EachUpdate"),
            ];
            managed_on(1, STUDY, ("vectoradd", &[("elements", "20000")]), &overrides);
        }
    }
}

#[test]
fn nothing_depends_on_threads() {
    for topology in [HARDWARE, STUDY] {
        let quoted = "\"384 KiB\"";
        for overrides in [&[][..], &[("unified_memory.gpu_memory", quoted)]] {
            let text_of = |threads| described(&managed_on(threads, topology, ("hotspot", HOTSPOT), overrides));
            let expected = text_of(1);
            for threads in [1, 2, 4] {
                assert_eq!(expected, text_of(threads), "{topology} {overrides:?}, {threads} threads");
            }
        }
    }
}

/// Kernels that wait for a simulated second and more cost next to nothing: no unit is awake.
#[test]
fn a_stalled_gpu_costs_no_windows() {
    let windows = |fault_time: &str| {
        let overrides = [("migration_link.fault_time", fault_time), ("unified_memory.prefetcher", "None")];
        let result = managed_on(1, STUDY, ("vectoradd", &[("elements", "20000")]), &overrides);
        (result.sim_time, result.windows)
    };
    let (short, fewer) = windows("\"45 us\"");
    let (long, more) = windows("\"20 ms\"");
    assert!(long.0 > 1_000_000_000_000 && short.0 < long.0 / 100, "{short} and {long}");
    // The values' epochs go on; each wake of a window is one of them, or a message.
    assert!(more < 2 * fewer, "{fewer} and {more} windows");
}
