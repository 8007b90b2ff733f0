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
    // The help says the same of each study as the list.
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

/// A figure of comma-separated comparisons, by its program and quantity: simulated and reference.
fn figure(rows: &[Vec<String>], program: &str, quantity: &str) -> (Option<f64>, Option<f64>) {
    let row = rows.iter().find(|row| row[1] == program && row[3] == quantity);
    let row = row.unwrap_or_else(|| panic!("no {quantity} of {program} in {rows:?}"));
    (row[4].parse().ok(), row[5].parse().ok())
}

#[test]
fn applications_of_balar_are_beside_the_hardware() {
    let arguments = ["validate", "balar", "applications", "--program", "vectorAdd", "--program", "lud"];
    let called = call(&[&arguments[..], &["--format", "csv"]].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let rows = rows(&called.stdout);
    let alone = balar_experiments::run("v100_node", "vectoradd", &[("elements", "163840")], &[]).expect("it runs");
    let cycles = alone.kernel_cycles("vectorAdd").expect("its kernel ran") as f64;
    assert_eq!(figure(&rows, "vectorAdd", "cycles of all kernels"), (Some(cycles), Some(5271.0)));
    let shares =
        ["lud_diagonal", "lud_perimeter", "lud_internal"].map(|kernel| figure(&rows, kernel, "share of cycles"));
    assert!((shares.iter().map(|share| share.0.expect("it ran")).sum::<f64>() - 100.0).abs() < 1e-3, "{shares:?}");
    assert_eq!(shares.map(|share| share.1), [Some(63.0), Some(22.0), Some(14.0)]);
}

/// The user's program is run, and that it is not the study's LULESH is said.
#[test]
fn a_program_of_the_user_runs_in_the_place_of_lulesh() {
    let program = format!("{} lud:size=64 --repeat 1", env!("CARGO_BIN_EXE_hardware-under-test"));
    let arguments = ["validate", "balar", "applications", "mix", "--program", "LULESH", "--lulesh"];
    let called = call(&[&arguments[..], &[&program]].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let text = called.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("CalcPressureForElems"), "{text}");
    assert!(!text.contains("stands in"), "{text}");
    let comparisons = call(&[&arguments[..], &[&program, "--format", "csv"]].concat());
    let rows = rows(&comparisons.stdout);
    assert_eq!(figure(&rows, "CalcPressureForElems", "share of FP64"), (None, Some(17.0)), "it has no such kernel");
    assert!(rows.iter().all(|row| row[3] != "cycles of all kernels"), "it is not the study's run: {rows:?}");
}

#[test]
fn a_program_that_cannot_run_is_a_failure_of_its_run() {
    let called = call(&["validate", "balar", "mix", "--lulesh", "/nowhere/lulesh -s 22"]);
    assert_eq!(called.code, 1, "{}", called.stderr);
    assert!(called.stderr.contains("/nowhere/lulesh"), "{}", called.stderr);
    assert!(called.stdout.contains("0 of 1 runs"), "{}", called.stdout);
}

/// A folder whose `runner` runs a built-in workload on the simulated node, and then does `rest`.
fn folder_of_runner(rest: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let runner = folder.path().join("runner");
    let text =
        format!("#!/bin/sh\n{} lud:size=64 --repeat 1 || exit\n{rest}\n", env!("CARGO_BIN_EXE_hardware-under-test"));
    fs::write(&runner, text).expect("written");
    fs::set_permissions(&runner, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    folder
}

/// A row's program is run in its folder with its arguments, and its figure is the one that it prints.
#[test]
fn a_program_of_a_folder_prints_its_figure() {
    let folder = folder_of_runner("echo \"kernel=$2 time_ms = 0.004\"; test -x ./runner");
    let arguments = ["validate", "hardware", "--program", "vector_add 262144", "--format", "csv", "--programs"];
    let called = call_in(folder.path(), &[&arguments[..], &["."]].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{}", called.stdout);
    let rows = rows(&called.stdout);
    let expected = ["titanv", "vector_add 262144", "titanv_node", "time_ms", "0.004", "0.00429", "ms"];
    assert_eq!(rows[0][..7], expected, "{rows:?}");
    // The program of the other card is not there.
    assert_eq!((rows.len(), &*rows[1][0], &*rows[1][2]), (2, "rtx2080ti", "recorded"), "{rows:?}");
    let table = call_in(folder.path(), &[&arguments[..4], &["--programs", "."]].concat()).stdout;
    let text = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("runner_sm75. The rows keep their recorded figures."), "{table}");
}

#[test]
fn a_program_of_a_folder_that_fails_or_prints_no_figure_is_named_with_its_row() {
    let arguments = ["validate", "hardware", "titanv", "--program", "vector_add 262144", "--programs", "."];
    for (rest, why) in [
        ("echo time_ms: 4", "it printed no `time_ms=NUMBER`; its last lines: "),
        ("echo no memory; exit 7", "no memory"),
    ] {
        let called = call_in(folder_of_runner(rest).path(), &arguments);
        assert_eq!(called.code, 1, "{}", called.stderr);
        assert!(called.stderr.starts_with("error: vector_add 262144 on titanv_node: run "), "{}", called.stderr);
        assert!(called.stderr.contains(why), "{}", called.stderr);
        assert!(called.stdout.contains("0 of 1 runs"), "{}", called.stdout);
    }
}

/// The clocks of the stand-in: shown, and compared with nothing.
#[test]
fn shock_is_never_counted_as_lulesh() {
    let called = call(&["validate", "balar", "mix", "--format", "json"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!(document["comparisons"], serde_json::json!([]));
    let table = &document["tables"][0];
    assert!(table["notes"][0].as_str().expect("text").starts_with("shock stands in for LULESH"), "{table}");
    // The shares of a row are all of its slots.
    let row = table["rows"][0].as_array().expect("a row");
    let sum: f64 = row[3..].iter().map(|share| share.as_f64().expect("a number")).sum();
    assert!((sum - 100.0).abs() < 1e-6, "{row:?}");
}

#[test]
fn warps_and_instructions_of_a_vector_addition_are_those_of_the_hardware() {
    let called = call(&["validate", "ldms", "vectoradd", "--format", "csv"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let rows = rows(&called.stdout);
    let of = |counter| figure(&rows, counter, "vectorAdd");
    assert_eq!(of("warps for 500,000,000 elements"), (Some(15_625_000.0), Some(15_625_000.0)));
    assert_eq!(of("threads of an instruction"), (Some(32.0), Some(32.0)));
    assert_eq!(of("instructions of a warp, one build"), (Some(16.0), Some(16.0)));
}

#[test]
fn recorded_rows_are_those_of_the_tables() {
    let called = call(&["validate", "volta", "programs", "microbenchmarks", "--format", "csv"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let compared = rows(&called.stdout);
    let mut count = 0;
    for file in ["public_programs", "microbenchmarks"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../validation/{file}.csv"));
        let mut reader = csv::Reader::from_path(path).expect("the table");
        let columns = reader.headers().expect("a header").clone();
        let column = |name: &str| columns.iter().position(|column| column == name).expect(name);
        let (hardware, simulated) = (column("hardware"), column("simulated"));
        let name = columns.iter().position(|column| column == "name").unwrap_or_else(|| column("benchmark"));
        for row in reader.records().map(|row| row.expect("a row")) {
            let found = compared.iter().find(|found| found[1] == row[name]).expect("it is compared");
            for (field, column) in [(4, simulated), (5, hardware)] {
                let [found, expected] =
                    [&found[field], &row[column]].map(|text| text.parse::<f64>().expect("a number"));
                assert!(
                    (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                    "{}: {found} {expected}",
                    &row[name]
                );
            }
            count += 1;
        }
    }
    assert_eq!(compared.len(), count);
}

/// Figures of built-in workloads are found again: those of the table are of the same simulator.
#[test]
fn latencies_run_again() {
    let arguments = ["validate", "volta", "instructions", "latency", "--format", "csv"];
    let chosen = ["--program", "fp32 fma", "--program", "latency, 2 KiB: L1", "--program", "latency, 199.0 KiB: L2"];
    let called = call(&[&arguments[..], &chosen].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let rows = rows(&called.stdout);
    assert_eq!(rows.len(), 3, "{rows:?}");
    for (name, hardware) in [("fp32 fma", 4.12), ("latency, 2 KiB: L1", 27.9), ("latency, 199.0 KiB: L2", 212.2)] {
        let (simulated, reference) = figure(&rows, name, "cycles");
        assert_eq!(reference, Some(hardware));
        assert!((simulated.expect("it ran") / hardware - 1.0).abs() < 0.05, "{name}: {simulated:?}");
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
        "index.html",
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
    let page = read("index.html");
    for name in ["hardware_kernel_time.svg", "shootdown_cycles.svg"] {
        assert!(page.contains(read(name).trim()), "{name} is in the page");
    }
    assert!(
        page.contains("id=\"prefetchers_native\"") && !page.contains("src="),
        "it is whole and needs no other file"
    );
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
        ("validate_lulesh_without_its_study", &["validate", "uvm", "--lulesh", "./lulesh"]),
        ("validate_lulesh_open_quote", &["validate", "balar", "--lulesh", "./lulesh 'a"]),
        ("validate_programs_without_their_study", &["validate", "uvm", "--programs", "/"]),
        ("validate_programs_nowhere", &["validate", "hardware", "--programs", "/nowhere"]),
        ("validate_programs_no_folder", &["validate", "hardware", "--programs", "/dev/null"]),
        ("validate_threads_0", &["validate", "uvm", "--threads", "0"]),
        ("validate_output_without_a_study", &["validate", "--output", "out"]),
        ("validate_unwritable_folder", &["validate", "uvm", "--output", "/dev/null/out"]),
    ] {
        refused(name, &call_in(Path::new("/"), arguments));
    }
}
