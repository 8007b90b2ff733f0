//! Runs that are recorded and replayed, by the command line: the same statistics, and what is said where a trace is damaged.

use crate::call::{Called, call, call_in};
use balar_tests::workloads_on;
use serde_json::Value;
use std::fs;
use std::path::Path;

const TOPOLOGY: [&str; 2] = ["--topology", "v100_node"];

fn with<'a>(first: &[&'a str], rest: &[&'a str]) -> Called {
    call(&[first, &TOPOLOGY, rest].concat())
}

/// What a run says, but for what may differ: the wall clock, the threads, and what the program itself measured and checked.
fn result(called: &Called) -> Value {
    let mut document: Value =
        serde_json::from_str(&called.stdout).unwrap_or_else(|error| panic!("{error}: {}", called.stderr));
    let fields = document.as_object_mut().expect("an object");
    assert!(fields["statistics"].as_array().is_some_and(|rows| !rows.is_empty()));
    for field in ["wall_seconds", "warp_instructions_per_second", "threads", "results", "verified"] {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    document
}

/// Records a workload's small variant in `folder`; gives the run's result.
fn record(workload: &str, small: &str, folder: &Path) -> Value {
    let choice = format!("{workload}:{small}");
    let choice = choice.trim_end_matches(':');
    let folder = folder.to_str().expect("UTF-8");
    let called = with(&[], &["--workload", choice, "--format", "json", "--record", folder]);
    assert_eq!(called.code, 0, "{workload}: {}", called.stderr);
    result(&called)
}

fn replay(folder: &Path, options: &[&str]) -> Called {
    with(&["replay"], &[options, &["--format", "json", folder.to_str().expect("UTF-8")]].concat())
}

fn small(workload: &str) -> &'static str {
    balar_workloads::find(workload).expect("a workload").small
}

#[test]
fn every_workload() {
    for workload in workloads_on("v100_node") {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("trace");
        let recorded = record(workload.name, workload.small, &trace);
        let replayed = replay(&trace, &[]);
        assert_eq!(replayed.code, 0, "{}: {}", workload.name, replayed.stderr);
        assert_eq!(result(&replayed), recorded, "{}", workload.name);
    }
}

/// Copies that are waited for, streams, and text that kernels print.
#[test]
fn any_number_of_threads() {
    for workload in ["vectoradd", "concurrent", "device_print"] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("trace");
        let again = folder.path().join("again");
        let recorded = record(workload, small(workload), &trace);
        for threads in ["2", "4"] {
            let replayed = replay(&trace, &["--threads", threads]);
            assert_eq!(replayed.code, 0, "{workload}: {}", replayed.stderr);
            assert_eq!(result(&replayed), recorded, "{workload}, {threads} threads");
        }
        // A replay is recorded as any other run, and says the same.
        let replayed = replay(&trace, &["--record", again.to_str().expect("UTF-8")]);
        assert_eq!(result(&replayed), recorded, "{workload}");
        for file in ["events.bin", "payloads.bin", "trace.txt"] {
            let (first, second) = (fs::read(trace.join(file)), fs::read(again.join(file)));
            assert_eq!(first.expect("a file"), second.expect("a file"), "{workload}: {file}");
        }
    }
}

#[test]
fn another_topology() {
    let folder = tempfile::tempdir().expect("a folder");
    record("vectoradd", small("vectoradd"), folder.path());
    let trace = folder.path().to_str().expect("UTF-8");
    // The data are the same on a node of the same memory, whatever the time.
    let slower = with(&["replay"], &["--set", "gpu.sm[*].clock=900 MHz", trace]);
    assert_eq!(slower.code, 0, "{}", slower.stderr);
}

#[test]
fn damaged_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path();
    record("vectoradd", "elements=100", trace);
    let fails = |code: i32, said: &str| {
        let called = replay(trace, &[]);
        assert_eq!(called.code, code, "{said}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
        assert!(called.stdout.is_empty(), "{}", called.stdout);
    };
    let change = |file: &str, change: &dyn Fn(&mut Vec<u8>)| -> Vec<u8> {
        let path = trace.join(file);
        let good = fs::read(&path).expect("a file");
        let mut changed = good.clone();
        change(&mut changed);
        fs::write(&path, changed).expect("written");
        good
    };
    let back = |file: &str, good: Vec<u8>| fs::write(trace.join(file), good).expect("written");

    let good = change("events.bin", &|bytes| bytes.truncate(bytes.len() - 3));
    fails(2, "events.bin, byte ");
    back("events.bin", good);
    let good = change("payloads.bin", &|bytes| bytes[100] ^= 1);
    fails(2, "payloads.bin, byte ");
    back("payloads.bin", good);
    let good =
        change("trace.txt", &|bytes| *bytes = String::from_utf8_lossy(bytes).replace("version 4", "version 9").into());
    fails(2, "has format version 9, expected version 3");
    back("trace.txt", good);
    let good = change("trace.txt", &|bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, _) = text.split_once("finished").expect("a finished trace");
        *bytes = format!("{head}unfinished x\n").into();
    });
    fails(2, "is unfinished");
    let partial = replay(trace, &["--partial"]);
    assert_eq!(partial.code, 0, "{}", partial.stderr);
    assert!(partial.stderr.contains("as far as it goes"), "{}", partial.stderr);
    back("trace.txt", good);
    assert_eq!(replay(trace, &[]).code, 0);

    let nothing = tempfile::tempdir().expect("a folder");
    let called = call_in(nothing.path(), &["replay", "--topology", "v100_node", "."]);
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("neither trace.txt nor cuda_calls.trace"), "{}", called.stderr);
    fs::write(nothing.path().join("notes"), "text").expect("written");
    let called =
        call_in(nothing.path(), &["--topology", "v100_node", "--workload", "vectoradd:elements=32", "--record", "."]);
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("it holds other files"), "{}", called.stderr);
}
