//! The resources of an SM for CTAs are declared at the SM: the scheduler, the driver and the SM itself follow an override of them.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{CodeChoice, RunResult, SimulationError, check_units, describe};
use balar_experiments::{SimulationRequest, simulate};
use balar_tests::{built_in_with, parameters};

/// A triad of 1172 CTAs of eight warps: fourteen for each of the 84 SMs, so that the resources of an SM limit the resident CTAs.
const STREAM: &str = "operation=triad,elements=300000,block=256,launches=1";

/// Runs a workload on a V100 with these overrides.
fn run(workload: &str, given: &str, overrides: &[&str]) -> RunResult {
    let topology = built_in_with("v100_node", overrides);
    let workload = Some((workload.to_owned(), parameters(given)));
    let request = SimulationRequest {
        topology,
        workload,
        ptx: Vec::new(),
        code: CodeChoice::default(),
        options: RunOptions::default(),
    };
    simulate(request).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
}

/// As [`run`], with a right result.
fn verified(workload: &str, given: &str, overrides: &[&str]) -> RunResult {
    let result = run(workload, given, overrides);
    assert!(result.completed(), "{overrides:?}: {:?} {:?}", result.outcome, result.program);
    assert_eq!(result.verified(), Some(true), "{overrides:?}: {:?}", result.program);
    result
}

/// Warps that an SM had on average while it had any, over the SMs whose path ends as asked for.
fn mean_warps(result: &RunResult, of: impl Fn(&str) -> bool) -> f64 {
    let sum = |what: &str| -> u64 {
        let rows = result.statistics.rows.iter().filter(|row| row.what == what && row.location.contains(".sm["));
        rows.filter(|row| of(&row.location)).map(|row| row.value).sum()
    };
    sum("warp_cycles_active") as f64 / sum("cycles_active") as f64
}

fn cycles(result: &RunResult) -> u64 {
    result.statistics.kernels.iter().map(|kernel| kernel.cycles).sum()
}

#[test]
fn an_override_of_an_sm_limits_what_is_resident() {
    let all = |_: &str| true;
    let default = verified("stream", STREAM, &[]);
    let full = mean_warps(&default, all);
    assert!(full > 40.0 && full <= 64.0, "{full}");
    for (given, most) in [
        // Half the warp slots: four CTAs of eight warps.
        ("gpu.sm[*].warps=32", 32.0),
        // Two CTAs of eight warps.
        ("gpu.sm[*].ctas=2", 16.0),
        // A thread of the triad takes at least 16 registers: 8192 are two CTAs of 256 threads at most.
        ("gpu.sm[*].registers=8192", 16.0),
    ] {
        let limited = verified("stream", STREAM, &[given]);
        let mean = mean_warps(&limited, all);
        // Each SM has more CTAs to run than fit, so that it is full but for its first and last ones.
        assert!(mean <= most && mean > 0.5 * most, "{given}: {mean} warps");
        assert_ne!(cycles(&limited), cycles(&default), "{given}");
    }
}

#[test]
fn sms_of_one_gpu_may_differ() {
    let result = verified("stream", STREAM, &["gpu.sm[0].warps=32", "gpu.sm[1].ctas=1"]);
    let of = |path: &'static str| mean_warps(&result, move |location| location.ends_with(path));
    assert!(of(".sm[0]") <= 32.0 && of(".sm[1]") <= 8.0, "{} {}", of(".sm[0]"), of(".sm[1]"));
    assert!(of(".sm[2]") > 32.0, "{}", of(".sm[2]"));
}

#[test]
fn programs_see_the_least_of_all_sms() {
    let overrides = ["gpu.sm[3].warps=32", "gpu.sm[4].ctas=7", "gpu.sm[5].registers=32768"];
    let overrides = [&overrides[..], &["gpu.sm[6].shared_carve_outs=[\"0 B\", \"64 KiB\"]"]].concat();
    let device = describe(&built_in_with("v100_node", &overrides)).devices.remove(0);
    assert_eq!((device.sm_threads, device.sm_warps, device.sm_ctas), (1024, 32, 7));
    assert_eq!((device.sm_registers, device.sm_shared_bytes), (32768, 64 << 10));
}

#[test]
fn a_block_that_fits_no_sm_is_an_error_of_its_launch() {
    let text = |result: &RunResult| format!("{:?}", result.program);
    // Eight warps.
    let result = run("stream", STREAM, &["gpu.sm[*].warps=4"]);
    let said = text(&result);
    assert!(said.contains("too large for every SM of gpu") && said.contains("8 warps"), "{said}");
    let result = run("stream", STREAM, &["gpu.sm[*].registers=256"]);
    assert!(text(&result).contains("one has 2048 threads, 64 warps, 256 registers"), "{}", text(&result));
    // One SM that can hold it is enough.
    verified("stream", STREAM, &["gpu.sm[1..84].warps=4"]);
}

#[test]
fn what_the_model_does_not_support_is_refused() {
    for (given, says) in [
        ("gpu.sm[*].warps=0", "expected 1 to 64"),
        ("gpu.sm[*].warps=68", "expected 1 to 64"),
        ("gpu.sm[*].warps=33", "expected a multiple of the number of sub-cores"),
        ("gpu.sm[7].sub_cores=3", "expected a multiple of the number of sub-cores"),
        ("gpu.sm[*].sub_cores=0", "expected 1 to 8"),
        ("gpu.sm[*].sub_cores=9", "expected 1 to 8"),
        ("gpu.sm[*].ctas=0", "expected 1 to 64"),
        ("gpu.sm[*].ctas=65", "expected 1 to 64"),
        ("gpu.sm[*].registers=0", "expected 256 to 1048576"),
        ("gpu.sm[*].shared_carve_outs=[]", "expected at least one size"),
        (
            "gpu.sm[*].shared_carve_outs=[\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\",\"8 KiB\"]",
            "expected at most 16 sizes, found 17",
        ),
        ("gpu.sm[*].l1_ways=2147483648", "expected 1 to 64"),
        ("gpu.sm[*].instruction_prefetch=4294967295", "expected at most 8192"),
        ("gpu.sm[*].unified_memory=64KiB", "a size is larger than the unified memory"),
    ] {
        let error = check_units(&built_in_with("v100_node", &[given])).expect_err(given);
        let SimulationError::Topology(errors) = error else { panic!("{given}: {error}") };
        let text = errors.render();
        assert!(text.contains(says), "{given}: {text}");
        assert_eq!(errors.errors.len(), 1, "one mistake, one report: {text}");
    }
}
