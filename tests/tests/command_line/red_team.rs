//! Hostile input, and surroundings that fail: no input ends the program without a word, and every run ends.

use crate::call::{call, call_in};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A call by a shell that prepares the surroundings first; `$BIN` is the program.
fn by_shell(folder: &Path, script: &str) -> (Option<i32>, String) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("BIN", env!("CARGO_BIN_EXE_command-line-under-test")).env_remove("RUST_LOG");
    let output = shell.current_dir(folder).stdin(Stdio::null()).output().expect("a shell");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

/// A batch of faults that is larger than the memory is served in parts, and what never fits is used in the host's memory.
#[test]
fn a_memory_smaller_than_a_batch_does_not_stop_the_driver() {
    for (topology, memory) in
        [("v100_node", "4 KiB"), ("v100_node", "64 KiB"), ("gtx1080ti_node", "4 KiB"), ("gtx1080ti_node", "60 KiB")]
    {
        let set = format!("unified_memory.gpu_memory=\"{memory}\"");
        let workload = "vectoradd:elements=16384,memory=managed";
        let called =
            call(&["--topology", topology, "--workload", workload, "--quiet", "--max-wall", "60", "--set", &set]);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{topology} {memory}");
    }
}

#[test]
fn values_that_a_unit_cannot_honour_are_refused_by_name() {
    for (topology, setting, text) in [
        ("gtx1080ti_node", "gpu.crossbar.request_header_flits=4294967295", "at most 1024, found 4294967295"),
        ("v100_node", "gpu.gmmu.walkers=4294967295", "expected 1 to 65536, found 4294967295"),
        ("v100_node", "gpu.crossbar.slice_queue=4294967295", "expected 1 to 65536, found 4294967295"),
        ("v100_node", "gpu.sm[*].unified_memory=\"1 TiB\"", "expected at most 16 MiB, found 1 TiB"),
    ] {
        let called = call(&["--topology", topology, "--workload", "vectoradd:elements=2048", "--set", setting]);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{setting}");
        let (path, _) = setting.split_once('=').expect("a value");
        let parameter = path.rsplit('.').next().expect("a name");
        // Long lines are folded.
        let said = called.stderr.split_whitespace().filter(|word| *word != "\u{2502}").collect::<Vec<_>>().join(" ");
        assert!(said.contains(parameter) && said.contains(text), "{setting}: {}", called.stderr);
    }
}

/// A run goes on without the object that `watch` reads where the system has no room for it.
#[test]
fn shared_memory_that_is_full_stops_no_run() {
    let folder = TempDir::new().expect("a folder");
    let script = "unshare -Urm sh -c 'mount -t tmpfs -o size=4k tmpfs /dev/shm && \
                  exec \"$BIN\" --topology v100_node --workload vectoradd:elements=2048 --live --quiet'";
    let (may_unshare, _) = by_shell(folder.path(), "unshare -Urm mount -t tmpfs -o size=4k tmpfs /dev/shm");
    if may_unshare != Some(0) {
        // The system grants no file systems of one's own; the writer's own tests look at objects without room.
        return;
    }
    let (code, said) = by_shell(folder.path(), script);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("the run is not published in shared memory") || said.contains("no longer published"),
        "{said}"
    );
}

/// A trace that cannot be written whole is told by the exit code, too.
#[test]
fn a_recording_that_fails_is_a_failure() {
    let folder = TempDir::new().expect("a folder");
    let script = "ulimit -f 64; trap '' XFSZ; exec \"$BIN\" --topology v100_node --workload vectoradd:elements=65536 --quiet \
                  --record trace >/dev/null";
    let (code, said) = by_shell(folder.path(), script);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error: the trace is unfinished"), "{said}");
}

/// SIGTERM is passed on to a program. One that does not heed it loses its node.
#[test]
fn a_program_that_ignores_sigterm_does_not_keep_the_run() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args([
        "run",
        "--topology",
        "v100_node",
        "--quiet",
        "--",
        "sh",
        "-c",
        "trap '' TERM; sleep 0.5; echo ready; exec sleep 600",
    ]);
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("the program has not ended since SIGTERM"), "{said}");
}

/// A program that stands still in the middle of a call does not keep the run, either.
#[test]
fn a_program_that_is_stopped_does_not_keep_the_run() {
    let folder = TempDir::new().expect("a folder");
    let options = ["run", "--topology", "v100_node", "--quiet", "--max-wall", "1", "--", "sh", "-c", "kill -STOP $$"];
    assert_eq!(call_in(folder.path(), &options).code, 4);
}

/// Control characters in the names of a foreign file do not reach the terminal.
#[test]
fn names_of_a_foreign_file_are_text() {
    let folder = TempDir::new().expect("a folder");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/vectoradd/built");
    let mut found = 0;
    for file in fs::read_dir(built).expect("there").map(|entry| entry.expect("an entry").path()) {
        let mut bytes = fs::read(&file).expect("a file");
        let name = b"vectorAdd";
        let places: Vec<usize> = (0..bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(name)).collect();
        for at in places {
            bytes[at..at + 4].copy_from_slice(b"\x1b[2J");
        }
        let path = folder.path().join("hostile.cubin");
        fs::write(&path, bytes).expect("written");
        let called = call_in(folder.path(), &["disassemble", "hostile.cubin"]);
        if called.code == 0 {
            found += usize::from(called.stdout.contains("\\u001b[2J"));
        }
        let shown = format!("{}{}", called.stdout, called.stderr);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{}", file.display());
    }
    assert!(found > 0, "no name was shown");
}
