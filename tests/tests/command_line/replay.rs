//! Runs that are recorded and replayed, by the command line: the same statistics, and the messages about damaged traces.

use crate::call::{Called, call, call_in};
use balar_host::trace::FORMAT_VERSION;
use balar_tests::{assert_snapshot, workloads_on};
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

/// A trace of this version of the format, made by
/// `balar-actors --topology v100_node --workload concurrent:streams=2,elements=256,rounds=2 --record tests/traces/concurrent`: it must be
/// read for as long as the version stays what it is. Its statistics are pinned as those of other runs are.
#[test]
fn a_stored_trace_is_replayed_to_its_pinned_statistics() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/concurrent");
    let called = with(&["replay"], &["--details", trace.to_str().expect("UTF-8")]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let redacted = |line| if str::starts_with(line, "real time") { "real time  [redacted]" } else { line };
    let lines: Vec<&str> = called.stdout.lines().map(redacted).collect();
    assert_snapshot("cli", "replay_of_the_stored_trace", &lines.join("\n"));
}

#[test]
fn a_run_that_is_ended_early_says_so_in_its_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let path = trace.to_str().expect("UTF-8");
    let recorded = with(&[], &["--workload", "vectoradd:elements=5000", "--stop-at", "3 us", "--record", path]);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    let header = fs::read_to_string(trace.join("trace.txt")).expect("a header");
    assert!(header.contains("\nunfinished ended by --stop-at at "), "{header}");
    let refused = replay(&trace, &[]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("did not come to its end: ended by --stop-at at "), "{}", refused.stderr);
    let partial = replay(&trace, &["--partial"]);
    assert!(partial.stderr.contains("is unfinished (ended by --stop-at at "), "{}", partial.stderr);
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

/// `reduction` adds up floating-point numbers by atomics, in the order in which blocks come; 40 SMs give another order than 84. Integers are
/// the same on any node.
#[test]
fn another_node() {
    for (workload, may_differ) in [("reduction", true), ("vectoradd", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().to_str().expect("UTF-8");
        let recorded = call(&["--topology", "t4_node", "--workload", workload, "--quiet", "--record", trace]);
        assert_eq!(recorded.code, 0, "{}", recorded.stderr);
        let called = with(&["replay"], &["--format", "json", trace]);
        assert_eq!(called.code, 0, "{workload}: {}", called.stderr);
        let note = "was recorded on t4_node: on v100_node the data that come back are compared";
        assert!(called.stderr.contains(note), "{}", called.stderr);
        let document: Value = serde_json::from_str(&called.stdout).expect("JSON");
        let differ = &document["results"][0];
        assert_eq!(differ["name"], "results that differ from the recording", "{differ}");
        let count = differ["value"].as_f64().expect("a number");
        // Verified where nothing differs, and otherwise not checked; never wrong.
        let verified = if count == 0.0 { Value::Bool(true) } else { Value::Null };
        assert_eq!(document["verified"], verified, "{workload}");
        assert_eq!(called.stderr.contains("a result differs from the recording"), count > 0.0, "{}", called.stderr);
        assert!(may_differ || count == 0.0, "{workload}: {}", called.stderr);
    }
}

#[test]
fn damaged_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path();
    let version = format!("version {FORMAT_VERSION}");
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
        change("trace.txt", &|bytes| *bytes = String::from_utf8_lossy(bytes).replace(&version, "version 99").into());
    fails(2, &format!("has format version 99, expected {version}"));
    back("trace.txt", good);
    let good = change("trace.txt", &|bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, _) = text.split_once("finished").expect("a finished trace");
        *bytes = format!("{head}unfinished x\n").into();
    });
    fails(2, "is unfinished: the recorded run did not come to its end: x");
    let partial = replay(trace, &["--partial"]);
    assert_eq!(partial.code, 0, "{}", partial.stderr);
    assert!(partial.stderr.contains("is unfinished (x), and is replayed as far as it goes"), "{}", partial.stderr);
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
