//! The main job by the command line: where it works, its output, and the fields of the result document.

use crate::call::{call, call_in};
use balar_tests::TOPOLOGIES;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SMALL: &str = "vectoradd:elements=2048";

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn is_count(value: &Value) -> bool {
    value.is_u64()
}

fn is_size(value: &Value) -> bool {
    value.as_array().is_some_and(|sides| sides.len() == 3 && sides.iter().all(Value::is_u64))
}

/// A field of the documented schema: its name, and whether a value has its type.
type Field = (&'static str, fn(&Value) -> bool);

const DOCUMENT: [Field; 14] = [
    ("schema", |value| value == &Value::from(1)),
    ("program", |value| value == "balar-actors"),
    ("version", Value::is_string),
    ("topology", Value::is_string),
    ("workload", Value::is_object),
    ("isa", |value| value == "sass"),
    ("completed", Value::is_boolean),
    ("verified", |value| value.is_boolean() || value.is_null()),
    ("sim_time_ps", is_count),
    ("wall_seconds", Value::is_f64),
    ("threads", is_count),
    ("warp_instructions_per_second", Value::is_f64),
    ("kernels", Value::is_array),
    ("statistics", Value::is_array),
];

const KERNEL: [Field; 12] = [
    ("launch", is_count),
    ("name", Value::is_string),
    ("stream", is_count),
    ("gpu", Value::is_string),
    ("grid", is_size),
    ("block", is_size),
    ("start_ps", is_count),
    ("end_ps", is_count),
    ("cycles", is_count),
    ("warps_launched", is_count),
    ("inst_executed", is_count),
    ("thread_inst_executed", is_count),
];

const STATISTIC: [Field; 4] =
    [("location", Value::is_string), ("what", Value::is_string), ("value", is_count), ("unit", Value::is_string)];

fn has_fields(value: &Value, fields: &[Field]) {
    for (name, is_right) in fields {
        let field = value.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(is_right(field), "{name}: {field}");
    }
}

/// The document of interface.md: names and types.
#[test]
fn json_has_the_documented_schema() {
    for workload in [SMALL, "concurrent:streams=2,elements=500,rounds=4"] {
        let called = call(&["--topology", "v100_node", "--workload", workload, "--format", "json"]);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""));
        let document = json(&called.stdout);
        has_fields(&document, &DOCUMENT);
        has_fields(&document["workload"], &[("name", Value::is_string), ("parameters", Value::is_object)]);
        let list = |key: &str| document[key].as_array().expect("a list");
        assert!(!list("kernels").is_empty() && list("statistics").len() > 1000);
        list("kernels").iter().for_each(|kernel| has_fields(kernel, &KERNEL));
        list("statistics").iter().for_each(|row| has_fields(row, &STATISTIC));
        let launches: Vec<u64> = list("kernels").iter().filter_map(|kernel| kernel["launch"].as_u64()).collect();
        assert_eq!(launches, (0..launches.len() as u64).collect::<Vec<_>>(), "launches are numbered from 0");
    }
}

fn topology_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies").join(format!("{name}.ron"))
}

/// By name, with its extension, and by path, from a folder that holds nothing.
#[test]
fn topologies_are_found_from_any_folder() {
    let folder = TempDir::new().expect("a folder");
    for name in TOPOLOGIES {
        let path = topology_file(name);
        let mut results = Vec::new();
        for topology in [name, &format!("{name}.ron"), path.to_str().expect("UTF-8")] {
            let called = call_in(folder.path(), &["--topology", topology, "--workload", SMALL, "--format", "csv"]);
            assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{topology}");
            results.push(called.stdout);
        }
        assert!(results[0] == results[1] && results[0] == results[2], "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is written unasked");
}

/// A copy that its owner edits, in a folder of its own with its part.
#[test]
fn a_topology_file_can_be_copied() {
    let folder = TempDir::new().expect("a folder");
    fs::copy(topology_file("v100_node"), folder.path().join("mine.ron")).expect("copied");
    let called = call_in(folder.path(), &["--topology", "mine.ron", "--workload", SMALL, "--format", "json"]);
    assert_eq!(called.code, 0, "its part is among those built in: {}", called.stderr);
    assert_eq!(json(&called.stdout)["verified"], true);
}

/// The main job as the README has it: table 3-5 of SAND2019-10389 has 163840 elements, 640 blocks of 256 threads.
#[test]
fn the_main_job_is_verified() {
    for topology in TOPOLOGIES {
        let called = call(&["--topology", topology, "--format", "json"]);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{topology}");
        let document = json(&called.stdout);
        assert_eq!((&document["completed"], &document["verified"]), (&true.into(), &true.into()));
        assert_eq!(document["workload"]["name"], "vectoradd");
        assert_eq!(document["workload"]["parameters"]["elements"], 163_840);
        let kernel = &document["kernels"][0];
        assert_eq!(kernel["grid"], serde_json::json!([640, 1, 1]));
        assert_eq!(kernel["block"], serde_json::json!([256, 1, 1]));
        assert_eq!(kernel["warps_launched"], 5120);
    }
}

#[test]
fn a_stopped_run_says_how_far_it_came() {
    for (time, picoseconds) in [("5 us", 5_000_000), ("12345 ps", 12_345)] {
        let called = call(&["--topology", "v100_node", "--workload", SMALL, "--stop-at", time, "--format", "json"]);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""));
        let document = json(&called.stdout);
        has_fields(&document, &DOCUMENT);
        assert_eq!((&document["completed"], &document["verified"]), (&false.into(), &Value::Null));
        assert_eq!(document["sim_time_ps"], picoseconds);
    }
    let after = call(&["--topology", "v100_node", "--workload", SMALL, "--stop-at", "10 s", "--format", "json"]);
    assert_eq!(json(&after.stdout)["completed"], true, "a time after the end changes nothing");
}

/// `--output DIR` holds what `--format` prints, and stdout carries the result alone besides.
#[test]
fn the_output_folder_holds_the_result() {
    let folder = TempDir::new().expect("a folder");
    let called = call_in(
        folder.path(),
        &["--topology", "v100_node", "--workload", SMALL, "--format", "json", "--output", "a/b"],
    );
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let written = folder.path().join("a/b");
    assert_eq!(fs::read_to_string(written.join("stats.json")).expect("written"), called.stdout);
    let csv = fs::read_to_string(written.join("stats.csv")).expect("written");
    let rows = json(&called.stdout)["statistics"].as_array().map(Vec::len);
    assert_eq!(Some(csv.lines().count() - 1), rows, "a line for each row and a header");
}

/// Kernels print to stderr: stdout has the result alone.
#[test]
fn what_kernels_print_is_on_stderr() {
    let original = include_str!("../../../workloads/vectoradd/vectoradd.sm_70.ptx");
    let declarations = "\
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 greeting[7] = {104, 101, 108, 108, 111, 10, 0};
.visible .entry";
    let statement = "mad.lo.s32 \t%r1, %r3, %r4, %r5;";
    let printing = format!(
        "{statement}\n.reg .pred %q; .reg .b64 %text; setp.ne.s32 %q, %r1, 0; @%q bra others;\n\
         mov.u64 %text, greeting; cvta.global.u64 %text, %text;\n\
         {{ .param .b64 format; st.param.b64 [format], %text; .param .b64 none; st.param.b64 [none], 0;\n\
         .param .b32 result; call.uni (result), vprintf, (format, none); }}\nothers:"
    );
    let text = original.replacen(".visible .entry", declarations, 1).replacen(statement, &printing, 1);
    assert!(text.len() > original.len() + printing.len(), "both places were found");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("greets.ptx"), text).expect("it can be written");
    let arguments = ["--topology", "v100_node", "--workload", SMALL, "--ptx", "greets.ptx", "--format", "json"];
    let called = call_in(folder.path(), &arguments);
    assert_eq!((called.code, called.stderr.as_str()), (0, "hello\n"));
    assert_eq!(json(&called.stdout)["verified"], true);
}
