//! `validate`: its tables on small programs, its files, how it ends early, and mistakes.

use crate::call::{Called, call, call_in};
use balar_experiments::validation::STUDIES;
use balar_experiments::validation::unified_memory::{PROGRAMS, run_program};
use balar_tests::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Programs whose runs take less than a second each.
const SMALL: [&str; 4] = ["--program", "pathfinder", "--program", "ra"];

/// Lines of comma-separated values as lists of fields, without the header.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.records().map(|row| row.expect("as many fields as the header").iter().map(str::to_owned).collect()).collect()
}

#[test]
fn the_tables_of_small_programs() {
    let parts = ["validate", "uvm", "prefetchers", "shootdowns", "evictions"];
    let called = call(&[&parts[..], &SMALL].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    assert_snapshot("cli", "validate_uvm_small", &called.stdout);
    let one_by_one = call(&[&parts[..], &SMALL, &["--threads", "1"]].concat());
    assert_eq!(one_by_one.stdout, called.stdout, "it does not depend on threads");
}

#[test]
fn the_studies_are_listed() {
    let called = call(&["validate"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    assert_snapshot("cli", "validate", &called.stdout);
    // The help says of each study what the list says.
    let help = call(&["validate", "--help"]).stdout;
    for study in STUDIES {
        assert!(help.contains(&format!("  {}  ", study.name)) && help.contains(study.duration), "{help}");
        let parts: Vec<_> = study.parts.iter().map(|part| part.name).collect();
        assert!(help.contains(&parts.join(", ")), "{help}");
    }
}

/// Each figure of the hardware is beside what a run by itself gives.
#[test]
fn comparisons_are_those_of_the_runs() {
    let called = call(&["validate", "uvm", "hardware", "--program", "ra", "--format", "csv"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let program = PROGRAMS.iter().find(|program| program.name == "ra").expect("it is one of them");
    let found = run_program(Default::default(), "gtx1080ti_node", program, &[]).expect("it runs");
    let expected = [
        ("kernel time", found.kernel_us, 4418.6, "us"),
        ("fault groups", found.batches as f64, 17.0, "group"),
        ("to device", found.to_device_kib as f64, 8192.0, "KiB"),
        ("transfers to device", found.transfers as f64, 382.0, "transfer"),
    ];
    let rows = rows(&called.stdout);
    assert_eq!(rows.len(), expected.len(), "{}", called.stdout);
    for (row, (quantity, simulated, reference, unit)) in rows.iter().zip(expected) {
        let number = |field: usize| row[field].parse::<f64>().expect("a number");
        assert_eq!(
            (row[0].as_str(), row[1].as_str(), row[3].as_str(), row[6].as_str()),
            ("hardware", "ra", quantity, unit)
        );
        assert!((number(4) - simulated).abs() < 1e-6, "{quantity}: {row:?}, {simulated}");
        assert!((number(5) - reference).abs() < 1e-9, "{quantity}: {row:?}");
        assert!(row[7].contains("GTX 1080 Ti"), "{row:?}");
    }
}

/// Every tag of a picture is closed, in turn, and text has no bare marks.
fn assert_well_formed(name: &str, text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        for escape in rest[..at].split('&').skip(1) {
            assert!(escape.contains(';'), "{name}: a bare & before {}", &rest[at..]);
        }
        let end = at + rest[at..].find('>').unwrap_or_else(|| panic!("{name}: a tag has no end"));
        let tag = &rest[at + 1..end];
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag has a name"));
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && text.starts_with("<svg "), "{name}: {open:?} stay open");
}

#[test]
fn every_file_is_written_and_can_be_read() {
    let folder = TempDir::new().expect("a folder");
    let arguments = [&["validate", "uvm"][..], &SMALL, &["--format", "json", "--output", "deep/study"]].concat();
    let called = call_in(folder.path(), &arguments);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let study = folder.path().join("deep/study");
    let mut names: Vec<String> = fs::read_dir(&study)
        .expect("made")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    let expected = [
        "comparisons.csv",
        "hardware_kernel_time.csv",
        "hardware_kernel_time.svg",
        "hardware_transfers.csv",
        "prefetchers_native.csv",
        "prefetchers_native.svg",
        "remote_access.csv",
        "report.json",
        "shootdown_cycles.svg",
        "shootdown_tlb_hits.svg",
        "shootdowns.csv",
        "summary.txt",
    ];
    assert_eq!(names, expected);
    let read = |name: &str| fs::read_to_string(study.join(name)).expect(name);
    for name in expected.iter().filter(|name| name.ends_with(".csv")) {
        assert!(!rows(&read(name)).is_empty(), "{name}");
    }
    for (name, program) in [
        ("hardware_kernel_time.svg", "ra"),
        ("prefetchers_native.svg", "pathfinder"),
        ("shootdown_cycles.svg", "pathfinder"),
        ("shootdown_tlb_hits.svg", "pathfinder"),
    ] {
        let text = read(name);
        assert_well_formed(name, &text);
        assert!(text.contains(program), "{name} names {program}");
    }
    assert_eq!(read("report.json"), called.stdout);
    let document: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!((&document["study"], &document["completed"]), (&Value::from("uvm"), &Value::from(true)));
    let tables = document["tables"].as_array().expect("a list");
    assert_eq!(tables.len(), expected.iter().filter(|name| name.ends_with(".csv")).count() - 1);
    // A folder that is there is written to again.
    let again =
        call_in(folder.path(), &["validate", "uvm", "shootdowns", "--program", "pathfinder", "--output", "deep/study"]);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
    assert_eq!(rows(&read("comparisons.csv")).len(), 4);
}

#[test]
fn a_limit_of_time_leaves_what_has_run() {
    let called = call(&["validate", "uvm", "prefetchers", "--program", "FDTD-2D", "--max-wall", "0.2"]);
    assert_eq!((called.code, called.stderr.as_str()), (4, ""));
    assert!(called.stdout.ends_with("\n0 of 4 runs: the tables are not complete\n"), "{}", called.stdout);
    let rows = called.stdout.lines().filter(|line| line.starts_with(" FDTD-2D")).collect::<Vec<_>>();
    assert_eq!(rows.len(), 4, "{}", called.stdout);
    assert!(rows.iter().all(|row| row.split_whitespace().filter(|cell| *cell == "-").count() == 5), "{rows:?}");
}

#[test]
fn an_interrupt_ends_it_with_what_has_run() {
    let folder = TempDir::new().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["validate", "uvm", "prefetchers", "--program", "FDTD-2D", "--output", "out"]);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    // The folder is made right before signals are listened for.
    while !folder.path().join("out").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stdout.contains("0 of 4 runs"), "{stdout}");
    assert!(stderr.starts_with("interrupted: "), "{stderr}");
    assert!(folder.path().join("out/comparisons.csv").exists(), "what is there is written");
}

/// Nothing ran: stdout is empty, and the text is pinned.
fn refused(name: &str, called: &Called) {
    assert_eq!((called.stdout.as_str(), called.code), ("", 2), "{name}: {}", called.stderr);
    assert_snapshot("errors", name, &format!("exit code 2\n{}", called.stderr));
}

#[test]
fn mistakes_name_what_is_right() {
    for (name, arguments) in [
        ("validate_unknown_study", &["validate", "uvn"][..]),
        ("validate_unknown_part", &["validate", "uvm", "hardwear"]),
        ("validate_unknown_program", &["validate", "uvm", "hardware", "--program", "quicksort"]),
        ("validate_threads_0", &["validate", "uvm", "--threads", "0"]),
        ("validate_output_without_a_study", &["validate", "--output", "out"]),
        ("validate_unwritable_folder", &["validate", "uvm", "--output", "/dev/null/out"]),
    ] {
        refused(name, &call_in(Path::new("/"), arguments));
    }
}
