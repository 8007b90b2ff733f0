//! Kernels `vectorAdd` from a file of PTX, under the workload vectoradd, which checks their sums.

use crate::call::{Called, call_in};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Runs the kernel on so many threads, with these further arguments.
pub fn run_kernel(ptx: &str, threads: &str, arguments: &[&str]) -> Called {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("kernel.ptx"), ptx).expect("written");
    let workload = ["--workload", "vectoradd:elements=5120,block=128", "--ptx", "kernel.ptx"];
    call_in(folder.path(), &[&workload, &["--format", "json", "--threads", threads], arguments].concat())
}

/// The sums are right, each cycle of each warp has one reason, and the statistics are the same on two threads. Gives the cycles in which warps
/// stalled for these reasons.
pub fn verified<const REASONS: usize>(
    name: &str,
    ptx: &str,
    arguments: &[&str],
    reasons: [&str; REASONS],
) -> [u64; REASONS] {
    let called = run_kernel(ptx, "1", arguments);
    assert_eq!(called.code, 0, "{name}: {}", called.stderr);
    let json: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!((&json["completed"], &json["verified"]), (&true.into(), &true.into()), "{name}: {}", called.stderr);
    let rows = json["statistics"].as_array().expect("a list");
    let sum = |chosen: &dyn Fn(&str) -> bool| -> u64 {
        let rows = rows.iter().filter(|row| {
            row["what"].as_str().is_some_and(chosen)
                && row["location"].as_str().is_some_and(|place| place.contains("sm"))
        });
        rows.filter_map(|row| row["value"].as_u64()).sum()
    };
    assert_eq!(sum(&|what| what.starts_with("stall_")), sum(&|what| what == "warp_cycles_active"), "{name}");
    let other: Value = serde_json::from_str(&run_kernel(ptx, "2", arguments).stdout).expect("JSON");
    assert!(json["statistics"] == other["statistics"], "{name}: two threads give other statistics");
    reasons.map(|reason| sum(&|what| what == reason))
}
