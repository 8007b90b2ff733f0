//! `--detail` by the command line: its output, its refusals, and replays.

use crate::call::{Called, call};
use serde_json::Value;
use std::path::Path;

fn with(arguments: &[&str]) -> Called {
    let all: Vec<&str> =
        ["--topology", "v100_node", "--workload", "lud:size=64", "--quiet"].iter().chain(arguments).copied().collect();
    let called = call(&all);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{arguments:?}");
    called
}

fn document(arguments: &[&str]) -> Value {
    let all: Vec<&str> = arguments.iter().chain(&["--format", "json"]).copied().collect();
    serde_json::from_str(&with(&all).stdout).expect("JSON")
}

#[test]
fn times_that_were_not_simulated_are_null() {
    let (timed, none) = (document(&[]), document(&["--detail", "none"]));
    assert_eq!((&none["sim_time_ps"], &none["verified"]), (&Value::Null, &Value::Bool(true)));
    let kernels = |document: &Value| document["kernels"].as_array().expect("launches").clone();
    for (kernel, like) in kernels(&none).iter().zip(kernels(&timed)) {
        assert_eq!((&kernel["detail"], &like["detail"]), (&"functional".into(), &"timed".into()));
        for field in ["start_ps", "end_ps", "cycles", "inst_executed_per_cycle", "l1_sectors_load", "l1_hit_rate_load"]
        {
            assert!(kernel[field].is_null() && !like[field].is_null(), "{field}");
        }
        for field in ["name", "grid", "inst_executed", "thread_inst_executed", "flop_sp_fma", "inst_shared_loads"] {
            assert_eq!(kernel[field], like[field], "{field}");
        }
    }
    let rows = none["statistics"].as_array().expect("rows");
    assert!(
        rows.iter().all(|row| row["unit"] != "cycle" && !row["location"].as_str().is_some_and(|at| at.contains("sm[")))
    );
    assert!(rows.iter().any(|row| row["what"] == "kernels_completed" && row["value"] == 10));
    let metrics = none["metrics"].as_array().expect("metrics");
    assert!(metrics.iter().all(|metric| metric["unit"] != "cycle"), "{metrics:?}");
}

#[test]
fn one_kernel_of_several_is_timed() {
    let mixed = document(&["--detail", "kernel=^lud_perimeter$", "--detail", "launch=0"]);
    assert!(mixed["sim_time_ps"].is_u64());
    for kernel in mixed["kernels"].as_array().expect("launches") {
        let is_timed = kernel["name"] == "lud_perimeter" || kernel["launch"] == 0;
        assert_eq!(kernel["detail"], if is_timed { "timed" } else { "functional" });
        assert_eq!(kernel["cycles"].is_u64(), is_timed, "{kernel}");
    }
    let table = with(&["--detail", "kernel=^lud_perimeter$"]).stdout;
    assert!(table.contains("\ndetail     3 of 10 launches timed, the others for their values alone\n"), "{table}");
    let row = table.lines().find(|line| line.ends_with("lud_internal (functional)")).expect("a row of its own");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[..5], ["-", "-", "3", "-", "-"], "{table}");
    let listed = with(&["--detail", "kernel=^lud_perimeter$", "--format", "ncu-csv"]).stdout;
    let of = |name: &str, metric: &str| listed.lines().any(|line| line.contains(name) && line.contains(metric));
    assert!(of("lud_perimeter", "gpu__time_duration") && !of("lud_internal", "gpu__time_duration"), "{listed}");
    assert!(of("lud_perimeter", "sm__inst_executed.sum") && of("lud_internal", "sm__inst_executed.sum"), "{listed}");
}

#[test]
fn a_table_without_times_says_so() {
    for arguments in [&["--detail", "none"] as &[&str], &["--detail", "kernel=nothing_has_this_name"]] {
        let table = with(arguments).stdout;
        assert!(table.contains("\ndetail     nothing was timed: values alone\n"), "{table}");
        assert!(!table.contains("simulated") && !table.contains("GB/s") && !table.contains("stall_long"), "{table}");
    }
}

#[test]
fn files_have_empty_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    with(&["--detail", "launch=1..3", "--output", path.to_str().expect("UTF-8")]);
    let mut reader = csv::Reader::from_path(path.join("kernels.csv")).expect("a file");
    let header = reader.headers().expect("a header").clone();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    for (number, row) in reader.records().map(|row| row.expect("a row")).enumerate() {
        let is_timed = (1..3).contains(&number);
        assert_eq!(&row[column("detail")], if is_timed { "timed" } else { "functional" });
        for name in ["start_ps", "end_ps", "cycles", "l1_sectors_load", "inst_executed_per_cycle"] {
            assert_eq!(row[column(name)].is_empty(), !is_timed, "{name} of launch {number}");
        }
        assert!(!row[column("inst_executed")].is_empty());
    }
}

#[test]
fn mistakes_are_named() {
    let none = ["--detail", "none"];
    for (arguments, said) in [
        (&["--detail", "kernels=lud"] as &[&str], "expected all, none, kernel=REGEX, launch=3,7..9"),
        (&["--detail", "launch=7..7"], "the end is not included"),
        (&["--detail", "kernel=("], "unclosed group"),
        (&[none[0], none[1], "--stop-at", "3 us"], "--stop-at: with --detail none no time is simulated"),
        (
            &[none[0], none[1], "--profile-instructions", "--output", "out"],
            "--profile-instructions: with --detail none",
        ),
        (&["--profile-from-start", "maybe"], "maybe"),
    ] {
        let all: Vec<&str> = ["--topology", "v100_node"].iter().chain(arguments).copied().collect();
        let called = call(&all);
        assert_eq!(called.code, 2, "{arguments:?}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{arguments:?}: {}", called.stderr);
    }
}

#[test]
fn a_trace_is_replayed_for_its_values() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/concurrent");
    let trace = trace.to_str().expect("UTF-8");
    for threads in ["1", "2"] {
        let called = call(&["replay", "--topology", "v100_node", "--detail", "none", "--threads", threads, trace]);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "the data that the device computes are compared");
        assert!(called.stdout.contains("nothing was timed"), "{}", called.stdout);
    }
}
