//! Every cycle of every warp is charged to one reason, and nothing is lost between the units of the memory system.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_protocol::SimTime;
use balar_protocol::statistics::KernelRecord;
use balar_tests::{parameters, run, small, small_run, sum, verified, workloads_on};
use std::collections::BTreeMap;

/// Counters of one unit by name.
fn counters<'a>(result: &'a RunResult, location: &str) -> BTreeMap<&'a str, u64> {
    let rows = result.statistics.rows.iter().filter(|row| row.location == location);
    rows.map(|row| (row.what, row.value)).collect()
}

/// Paths of the SMs.
fn sms(result: &RunResult) -> Vec<String> {
    let rows = result.statistics.rows.iter().filter(|row| row.what == "warp_cycles_active");
    let paths: Vec<String> = rows.map(|row| row.location.clone()).collect();
    assert!(paths.len() >= 56, "SMs of a P100 at least");
    paths
}

#[test]
fn every_warp_cycle_has_one_reason() {
    for topology in ["v100_node", "p100_node"] {
        for workload in workloads_on(topology) {
            let result = small_run(topology, workload.name);
            let mut active = 0;
            for sm in sms(&result) {
                let counters = counters(&result, &sm);
                let charged: u64 =
                    counters.iter().filter(|(what, _)| what.starts_with("stall_")).map(|(_, value)| value).sum();
                let warp_cycles = counters["warp_cycles_active"];
                assert_eq!(charged, warp_cycles, "{} on {topology}, {sm}: {counters:?}", workload.name);
                // Whoever issues is charged for it. An instruction that the hardware does in several passes is charged for
                // the first of them, and one that is folded into another for none.
                let charged = counters["stall_none_selected"];
                assert!(charged <= counters["inst_issued"], "{}, {sm}: {counters:?}", workload.name);
                assert!(charged <= counters["inst_executed"], "{}, {sm}: {counters:?}", workload.name);
                assert!(counters["cycles_active"] <= warp_cycles, "{}, {sm}", workload.name);
                assert!(warp_cycles <= 64 * counters["cycles_active"], "an SM has 64 warps: {}, {sm}", workload.name);
                active += warp_cycles;
            }
            assert!(active > 0, "{} on {topology}", workload.name);
        }
    }
}

/// 163840 elements are 5120 whole warps, and the grid fits the vectors: no lane is ever idle.
#[test]
fn vectoradd_has_whole_warps_without_divergence() {
    let result = verified("v100_node", "vectoradd", parameters("elements=163840"));
    let kernel = result.statistics.kernels.first().expect("a kernel has run").counters;
    assert_eq!((kernel.ctas.warps_launched, kernel.ctas.ctas_launched), (5120, 640));
    assert_eq!(kernel.ctas.thread_inst_executed, 32 * kernel.ctas.inst_executed);
    assert_eq!(kernel.ctas.branches_divergent, 0);
    // Two vectors of 4-byte floats are read and one is written, in 32-byte sectors.
    assert_eq!((kernel.ctas.l1_sectors_load, kernel.ctas.l1_sectors_store), (2 * 163_840 * 4 / 32, 163_840 * 4 / 32));
    assert_eq!((kernel.ctas.inst_global_loads, kernel.ctas.inst_global_stores), (2 * 5120, 5120));
    // One addition for each element.
    assert_eq!(kernel.ctas.flop_sp_add, 163_840);
}

/// The units that count what launches have by this name, and their own name of it.
fn counted_by(name: &str) -> (&str, &str) {
    let units = [("l2_", "gpu.l2"), ("crossbar_", "gpu.crossbar"), ("dram_", "gpu.hbm")];
    // What SMs count has no such name in front, or is of what comes back to them.
    let of_sms = ["l2_sectors_load", "l2_sector_hits_load", "dram_sectors_promoted"];
    let found = units.iter().find_map(|(front, unit)| Some((*unit, name.strip_prefix(front)?)));
    found.filter(|_| !of_sms.contains(&name)).unwrap_or(("gpu.sm", name))
}

/// What kernel records say is what their units say; what copies use as well does at least as much.
#[test]
fn kernels_sum_up_to_their_units() {
    for workload in ["lud", "reduction", "concurrent", "hotspot", "histogram"] {
        let result = small_run("v100_node", workload);
        for (index, definition) in balar_protocol::statistics::KernelCounters::DEFINITIONS.iter().enumerate() {
            let kernels = result.statistics.kernels.iter();
            let of_kernels: u64 = kernels.filter_map(|kernel| kernel.counters.values().nth(index)).sum();
            let (unit, name) = counted_by(definition.name);
            let of_units = sum(&result, unit, name);
            let what = format!("{workload}: {}: {of_kernels} of {of_units}", definition.name);
            if workload == "concurrent" && definition.name == "cycles_active" {
                assert!(of_kernels >= of_units, "launches that share an SM are active on it at the same time: {what}");
            } else if unit == "gpu.sm" || name.contains("atomic") || name.contains("reductions") {
                assert_eq!(of_kernels, of_units, "{what}");
            } else {
                assert!(of_kernels <= of_units && (of_kernels > 0 || of_units == 0 || name.contains("writ")), "{what}");
            }
        }
        let (launched, completed) =
            (sum(&result, "gpu.scheduler", "ctas_launched"), sum(&result, "gpu.scheduler", "ctas_completed"));
        assert_eq!((launched, completed), (sum(&result, "gpu.sm", "ctas_launched"), launched), "{workload}");
        assert_eq!(sum(&result, "gpu.sm", "ctas_completed"), completed, "{workload}");
    }
}

/// Where a run is stopped in the middle of kernels, what the CTAs under way have done so far is told of their launches, too: the sums over
/// launches are what SMs have counted.
#[test]
fn kernels_of_a_stopped_run_sum_up_to_their_sms() {
    let whole = small_run("v100_node", "lud");
    let kernels: Vec<_> = whole.statistics.kernels.iter().collect();
    let longest = kernels.iter().max_by_key(|kernel| kernel.end_ps - kernel.start_ps).expect("kernels have run");
    let mut was_under_way = false;
    for part in 1..8 {
        let stop_at = longest.start_ps + (longest.end_ps - longest.start_ps) * part / 8;
        let options = RunOptions { stop_at: Some(SimTime(stop_at)), ..RunOptions::default() };
        let result = run("v100_node", "lud", small("lud"), options);
        for (index, definition) in balar_protocol::statistics::KernelCounters::DEFINITIONS.iter().enumerate() {
            let (unit, name) = counted_by(definition.name);
            if unit != "gpu.sm" {
                continue;
            }
            let kernels = result.statistics.kernels.iter();
            let of_kernels: u64 = kernels.filter_map(|kernel| kernel.counters.values().nth(index)).sum();
            assert_eq!(of_kernels, sum(&result, unit, name), "{}, stopped at {stop_at} ps", definition.name);
        }
        let ended = |kernel: KernelRecord| kernel.counters.ctas.ctas_launched - kernel.ctas_unfinished;
        let (launched, completed) = (sum(&result, "gpu.sm", "ctas_launched"), sum(&result, "gpu.sm", "ctas_completed"));
        assert_eq!(result.statistics.kernels.iter().map(ended).sum::<u64>(), completed, "at {stop_at} ps");
        was_under_way |= launched > completed;
    }
    assert!(was_under_way, "no CTA was under way at any of these times");
}

/// Sectors from the SMs and copy engines to the L2, and from there to the memory.
#[test]
fn memory_traffic_is_conserved() {
    for topology in ["v100_node", "p100_node", "v100_sxm2_node"] {
        for workload in workloads_on(topology) {
            let result = small_run(topology, workload.name);
            let name = format!("{} on {topology}", workload.name);
            let of = |location: &str, what: &str| sum(&result, location, what);
            // The crossbar delivers every packet, and each request is answered once.
            let requests = of("gpu.crossbar", "packets_request");
            assert_eq!(requests, of("gpu.l2", "requests"), "{name}");
            assert_eq!(requests, of("gpu.crossbar", "packets_response"), "{name}: a request is without response");
            // Loads of the SMs, of data, code and constants, and of the copy engine are all that the L2 reads for others. A line
            // of code or constants is 4 sectors, one that is copied at most 4.
            let by_copies =
                4 * (of("gpu.copy_engine.to_device", "line_loads") + of("gpu.copy_engine.to_host", "line_loads"));
            let by_sms = of("gpu.sm", "l2_sectors_load");
            let lines = of("gpu.sm", "instruction_requests") + of("gpu.sm", "constant_requests");
            let with_code = by_sms + 4 * lines;
            let read = of("gpu.l2", "sectors_read");
            assert!(
                with_code <= read && read <= with_code + by_copies,
                "{name}: {read}, not {with_code} and at most {by_copies} of copies"
            );
            assert_eq!(read, of("gpu.l2", "sector_hits_read") + of("gpu.l2", "sector_misses_read"), "{name}");
            // L1 asks the L2 for what it does not have, and no more than it was asked for.
            let (asked, hits) = (of("gpu.sm", "l1_sectors_load"), of("gpu.sm", "l1_sector_hits_load"));
            assert_eq!(asked, hits + by_sms, "{name}: {asked} asked, {hits} hits, {by_sms} sent");
            assert!(of("gpu.sm", "l1_mshr_merges") <= hits, "{name}: those on their way are hits");
            // What the L2 fetches the memory reads, and what it writes back the memory writes.
            assert_eq!(of("gpu.l2", "sectors_filled"), of("gpu.hbm", "sectors_read"), "{name}");
            assert_eq!(of("gpu.l2", "sectors_written_back"), of("gpu.hbm", "sectors_written"), "{name}");
            assert_eq!(of("gpu.l2", "fills"), of("gpu.hbm", "requests_read"), "{name}");
            // What the program copies is what the copy engine moves.
            for (direction, channel) in [("bytes_host_to_device", "to_device"), ("bytes_device_to_host", "to_host")] {
                assert_eq!(of("cpu", direction), of(&format!("gpu.copy_engine.{channel}"), direction), "{name}");
            }
        }
    }
}
