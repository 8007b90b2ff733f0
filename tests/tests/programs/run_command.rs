//! `balar-actors run` as its user sees it: exit codes, streams, and the ends of a run.

#![expect(clippy::disallowed_types, reason = "the test waits for processes in real time")]

use assert_cmd::Command;
use std::time::{Duration, Instant};

const CLIENT: &str = env!("CARGO_BIN_EXE_tunnel-client");

/// A run of a program: exit code, stdout, stderr.
fn run(options: &[&str], program: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--topology", "v100_node"]).args(options).arg("--").args(program);
    let output = command.timeout(Duration::from_secs(120)).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("not killed"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_exit_code_is_the_programs() {
    for code in ["0", "1", "2", "77", "255"] {
        let (status, out, said) = run(&[], &[CLIENT, "exit", code]);
        assert_eq!((status.to_string().as_str(), out.as_str()), (code, ""), "{said}");
        assert!(said.contains("completed"), "{said}");
    }
    let (status, _, said) = run(&[], &["sh", "-c", "kill -SEGV $$"]);
    assert_eq!(status, 128 + 11);
    assert!(said.contains("sh was killed by SIGSEGV (signal 11)"), "{said}");
}

#[test]
fn the_streams_are_the_programs() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--topology", "v100_node", "--", "cat"]).write_stdin("one\ntwo\n");
    let output = command.timeout(Duration::from_secs(60)).output().expect("runs");
    assert_eq!(output.stdout, b"one\ntwo\n");
}

#[test]
fn the_statistics_go_to_a_folder_or_to_stderr() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let (status, _, said) = run(&["--output", path], &[CLIENT, "copy", "100000", "2"]);
    assert_eq!((status, said.as_str()), (0, ""));
    let text = std::fs::read_to_string(folder.path().join("stats.json")).expect("written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("a document");
    assert_eq!(document["workload"]["name"], "tunnel-client");
    assert_eq!(document["workload"]["parameters"], serde_json::json!({"1": "copy", "2": 100_000, "3": 2}));
    assert_eq!(document["completed"], true);

    let (status, out, said) = run(&["--format", "json"], &[CLIENT, "copy", "100000", "2"]);
    assert_eq!((status, out.as_str()), (0, ""));
    let (header, text) = said.split_once('\n').expect("lines");
    assert_eq!(header, "--- balar-actors: tunnel-client on v100_node ---");
    let printed: serde_json::Value = serde_json::from_str(text).expect("a document");
    // The same run twice: the simulation does not depend on when the program was scheduled.
    assert_eq!(printed["statistics"], document["statistics"]);
    assert_eq!(printed["sim_time_ps"], document["sim_time_ps"]);
}

#[test]
fn a_program_has_the_same_addresses_in_each_run() {
    // The stack, the heap, the libraries and the program itself, in a child, too.
    let script = "exec sh -c 'grep -v balar /proc/self/maps | grep -o ^[0-9a-f]*-[0-9a-f]*'";
    let maps = || run(&[], &["sh", "-c", script]);
    let (status, first, said) = maps();
    assert_eq!(status, 0, "{said}");
    assert!(first.lines().count() > 10, "{first}");
    assert_eq!(first, maps().1);
}

#[test]
fn programs_run_one_after_another_and_at_once() {
    let script = format!("{CLIENT} copy 1000 1 && exec {CLIENT} copy 5000000 1");
    let (status, _, said) = run(&[], &["sh", "-c", &script]);
    assert_eq!(status, 0, "{said}");
    let (status, out, said) = run(&[], &[CLIENT, "twice", CLIENT, "threads", "3", "2"]);
    assert_eq!(status, 0, "{out}{said}");
    let script = format!("{CLIENT} copy 3000000 3 & {CLIENT} copy 5000000 2 && wait $!");
    let (status, out, said) = run(&[], &["sh", "-c", &script]);
    assert_eq!(status, 0, "{out}{said}");
    // Children that make no calls do not matter.
    let (status, _, said) = run(&[], &[CLIENT, "twice", "true"]);
    assert_eq!(status, 0, "{said}");
}

#[test]
fn a_folder_for_temporary_files_may_have_a_long_name() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("x".repeat(150));
    std::fs::create_dir(&folder).expect("new");
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.env("TMPDIR", &folder).args(["run", "--quiet", "--topology", "v100_node", "--", CLIENT, "exit", "5"]);
    let output = command.timeout(Duration::from_secs(60)).output().expect("runs");
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    // Nothing is left.
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
}

#[test]
fn threads_of_a_program_make_calls_at_the_same_time() {
    let (status, out, said) = run(&[], &[CLIENT, "threads", "6", "5"]);
    assert_eq!(status, 0, "{out}{said}");
}

#[test]
fn large_copies_come_back_as_they_went() {
    let (status, out, said) = run(&["--tunnel-page", "64 KiB"], &[CLIENT, "copy", "20000000", "1"]);
    assert_eq!(status, 0, "{out}{said}");
}

#[test]
fn limits_end_the_run_and_the_program() {
    let start = Instant::now();
    let (status, _, said) = run(&["--max-wall", "1"], &[CLIENT, "wait"]);
    assert_eq!(status, 4, "{said}");
    assert!(said.contains("ended by --max-wall"), "{said}");
    let (_, out, said) = run(&["--max-wall", "1"], &[CLIENT, "busy"]);
    assert!(out.contains("failed: the run has reached its limit of real time"), "{out}{said}");
    let (status, out, said) = run(&["--stop-at", "300 us"], &[CLIENT, "busy"]);
    assert_eq!(status, 0, "{said}");
    assert!(out.contains("failed: the simulation is over") && said.contains("partial: --stop-at"), "{out}{said}");
    assert!(start.elapsed() < Duration::from_secs(100));
}

#[test]
fn what_cannot_be_run_is_said() {
    for (options, program, expected) in [
        (&[][..], &["./no-such-program"][..], "no-such-program"),
        (&["--tunnel-page", "5000"], &["true"], "expected a power of two from 4096"),
        (&["--set", "gpu.nothing=1"], &["true"], "`gpu` is a part, not a unit"),
        (&[], &[], "PROGRAM"),
    ] {
        let (status, _, said) = run(options, program);
        assert_eq!(status, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
