//! Pins the statistics of workloads on every built-in topology, small: one node whole, of the others named counters.
//!
//! `INSTA_UPDATE=always cargo test -p balar-tests` accepts what moved; `git diff snapshots` shows it.

use balar_actors::simulation::{IsaChoice, RunResult};
use balar_protocol::statistics::KernelCounters;
use balar_record::metrics::rollup::roll_up;
use balar_tests::{TOPOLOGIES, assert_snapshot, small, small_run, verified, verified_as, workloads_on};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The run, its kernels with the counters that are not zero, and a line for each counter of a kind of unit. Counters that
/// are zero everywhere share a line, so that a diff shows which of them begin to count.
fn text(result: &RunResult) -> String {
    let mut text = format!("simulated {} ps\n", result.sim_time.picoseconds());
    let mut line = |line: String| writeln!(text, "{line}").expect("a String takes every byte");
    for (name, value, unit) in result.program.iter().flat_map(|program| &program.results) {
        line(format!("reported {name} = {value} {unit}"));
    }
    for kernel in result.statistics.kernels.iter() {
        let size = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        line(format!(
            "\nkernel {} {} grid {} block {} stream {} registers {} shared {}",
            kernel.launch,
            kernel.name,
            size(kernel.grid),
            size(kernel.block),
            kernel.stream,
            kernel.registers_per_thread,
            kernel.shared_bytes
        ));
        line(format!("  start {} ps, end {} ps, {} cycles", kernel.start_ps, kernel.end_ps, kernel.cycles));
        for (definition, value) in KernelCounters::DEFINITIONS.iter().zip(kernel.counters.ctas.values()) {
            if value != 0 {
                line(format!("  {} {value}", definition.name));
            }
        }
    }
    let roll_ups = roll_up(&result.statistics.rows);
    let mut rest = &roll_ups[..];
    while let Some(first) = rest.first() {
        let (unit, others) = rest.split_at(rest.iter().take_while(|row| row.location == first.location).count());
        line(format!("\n{} ({})", first.location, first.instances));
        for row in unit.iter().filter(|row| row.max != 0) {
            let spread = if row.instances == 1 { String::new() } else { format!(" ({}..{})", row.min, row.max) };
            line(format!("  {} {}{spread} {}", row.what, row.sum, row.unit));
        }
        let zeros: Vec<&str> = unit.iter().filter(|row| row.max == 0).map(|row| row.what).collect();
        if !zeros.is_empty() {
            line(format!("  zero: {}", zeros.join(" ")));
        }
        rest = others;
    }
    text
}

/// The node whose statistics are pinned whole. The others share its units: of them some counters tell what a parameter has moved.
const WHOLE: &str = "v100_node";

/// The workloads whose statistics are pinned.
const PINNED: [&str; 10] = [
    "vectoradd",
    "lud",
    "reduction",
    "gemm",
    "hotspot",
    "concurrent",
    "pointer_chase",
    "stream",
    "shared_chase",
    "alu_latency",
];

/// Counters of device memory, of which a node has one kind.
const MEMORY: &[&str] = &["sectors_read", "sectors_written", "row_hits", "row_conflicts"];

/// Counters that are pinned of every other node, by unit: how much work came to it, how much of this it had at hand, and what warps waited for.
const NAMED: [(&str, &[&str]); 11] = [
    ("cpu", &["calls", "cycles_waiting"]),
    ("command_link.to_device", &["messages"]),
    ("data_link.to_device", &["bytes"]),
    ("gpu.copy_engine.to_device", &["bytes_host_to_device"]),
    ("gpu.copy_engine.to_host", &["bytes_device_to_host"]),
    (
        "gpu.sm[*]",
        &[
            "cycles_active",
            "inst_issued",
            "stall_wait",
            "stall_long_scoreboard",
            "stall_short_scoreboard",
            "stall_barrier",
            "shared_memory_bank_conflicts",
            "instruction_requests",
            "constant_cache_misses",
            "l1_sectors_load",
            "l1_sector_hits_load",
            "l1_sectors_store",
            "tlb_misses",
        ],
    ),
    ("gpu.crossbar", &["packets_request", "flits_request", "flits_response"]),
    ("gpu.l2[*]", &["sectors_read", "sector_hits_read", "sectors_written", "sectors_atomic", "sectors_written_back"]),
    ("gpu.hbm[*]", MEMORY),
    ("gpu.gddr6[*]", MEMORY),
    ("gpu.gmmu", &["requests", "walks"]),
];

/// The sums of kernels, and the [`NAMED`] counters over all units of a row.
fn named(title: &str, result: &RunResult) -> String {
    let mut text = kernel_sums(title, result);
    for (name, value, unit) in result.program.iter().flat_map(|program| &program.results) {
        writeln!(text, "  reported {name} = {value} {unit}").expect("a String takes every byte");
    }
    let roll_ups = roll_up(&result.statistics.rows);
    for (location, counters) in NAMED {
        let unit: BTreeMap<&str, u64> =
            roll_ups.iter().filter(|row| row.location == location).map(|row| (row.what, row.sum)).collect();
        if unit.is_empty() && counters == MEMORY {
            continue;
        }
        let values = counters.iter().map(|counter| {
            let value = unit.get(counter).unwrap_or_else(|| panic!("{location} counts no {counter}"));
            format!(" {counter} {value}")
        });
        writeln!(text, "  {location}:{}", values.collect::<String>()).expect("a String takes every byte");
    }
    text
}

#[test]
fn all_statistics_of_one_node() {
    for workload in PINNED {
        assert_snapshot(&format!("statistics/{WHOLE}"), workload, &text(&small_run(WHOLE, workload)));
    }
}

#[test]
fn named_counters_of_the_other_nodes() {
    for topology in TOPOLOGIES.into_iter().filter(|topology| *topology != WHOLE) {
        let text: String = PINNED.into_iter().map(|workload| named(workload, &small_run(topology, workload))).collect();
        assert_snapshot(&format!("statistics/{topology}"), "named_counters", &text);
    }
}

/// The name and time of a run, and for each of its kernels its launches, and the cycles and warp instructions of all of them.
fn kernel_sums(workload: &str, result: &RunResult) -> String {
    let mut text = format!("{workload} {} ps\n", result.sim_time.picoseconds());
    let mut sums: BTreeMap<Arc<str>, [u64; 3]> = BTreeMap::new();
    for kernel in result.statistics.kernels.iter() {
        let sum = sums.entry(kernel.name).or_default();
        let instructions = kernel.counters.ctas.inst_executed;
        for (sum, more) in sum.iter_mut().zip([1, kernel.cycles, instructions]) {
            *sum += more;
        }
    }
    for (name, [launches, cycles, instructions]) in sums {
        let line = format!("  {name}: {launches} launches, {cycles} cycles, {instructions} instructions");
        writeln!(text, "{line}").expect("a String takes every byte");
    }
    text
}

/// The other workloads: the sums of their kernels.
#[test]
fn kernels_of_the_other_workloads() {
    for topology in ["v100_node", "p100_node"] {
        // A P100 has no tensor cores, for one thing.
        let others = workloads_on(topology).filter(|workload| !PINNED.contains(&workload.name));
        let text: String =
            others.map(|workload| kernel_sums(workload.name, &small_run(topology, workload.name))).collect();
        assert_snapshot(&format!("statistics/{topology}"), "other_workloads", &text);
    }
}

/// All workloads where PTX runs on a GPU that has machine code of them.
#[test]
fn kernels_as_ptx() {
    let topology = "v100_node";
    let text: String = workloads_on(topology)
        .map(|workload| workload.name)
        .map(|name| kernel_sums(name, &verified_as(topology, name, small(name), IsaChoice::Ptx)))
        .collect();
    assert_snapshot(&format!("statistics/{topology}"), "as_ptx", &text);
}

/// The other operations and orders of the microbenchmarks, on one node.
#[test]
fn named_counters_of_other_parameters() {
    let others = [
        ("pointer_chase", "cache=cg,working_set=64KiB,steps=256"),
        ("pointer_chase", "order=sequential,cache=cg,working_set=16MiB,stride=64KiB,steps=256,warm_up_passes=0"),
        ("stream", "operation=read,elements=20000"),
        ("stream", "operation=write,elements=20000"),
        ("shared_chase", "stride=2,nodes=64,steps=256,threads=32"),
        ("alu_latency", "operation=fp64_fma,steps=256,threads=64"),
    ];
    let of = |(workload, parameters): (&str, &str)| {
        let result = verified("v100_sxm2_node", workload, balar_tests::parameters(parameters));
        named(&format!("{workload}:{parameters}"), &result)
    };
    assert_snapshot("statistics/v100_sxm2_node", "other_parameters", &others.map(of).concat());
}
