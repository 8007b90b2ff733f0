//! The binary from outside: arguments, exit codes, formats, error texts.

use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ring.ron");

/// What came of a call.
struct Called {
    code: i32,
    stdout: String,
    stderr: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_balar-actors"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn call(arguments: &[&str]) -> Called {
    let output = command(arguments).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("it ends by itself");
    Called { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The text without the values of the wall clock.
fn redacted(text: &str) -> Vec<&str> {
    let clock = ["real time", "  \"wall_seconds\"", "  \"threads\"", "  \"warp_instructions_per_second\""];
    text.lines().filter(|line| !clock.iter().any(|start| line.starts_with(start))).collect()
}

#[test]
fn mistakes_in_arguments_end_with_2_and_say_what_is_right() {
    for (arguments, said) in [
        (&["--topology", RING, "--thread", "3"][..], "'--threads'"),
        (&["--topology", RING, "--threads", "0"], "0 is not in 1..=1024"),
        (&["--topology", RING, "--format", "yaml"], "table, json, csv"),
        (&["--topology", RING, "--isa", "sass"], "runs no SASS"),
        (&["--topology", RING, "--set", "a.latency"], "expected PATH=VALUE"),
        (&["--topology", RING, "--workload", "vectorad"], "vectoradd"),
        (&["--topology", RING, "--workload", "lud:siz=3"], "size"),
        (&["--topology", "v100_nod"], "v100_node"),
        (&["snapshot", "check", "--topology", RING, "/nonexistent/pinned"], "snapshot accept"),
        (&["units", "crosbar"], "did you mean `Crossbar`?"),
        (&["workloads", "luud"], "lud"),
        (&["replay", "--topology", RING], "replay"),
        (&[], "--topology"),
    ] {
        let called = call(arguments);
        assert_eq!(called.code, 2, "{arguments:?}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{arguments:?}: {}", called.stderr);
        assert_eq!(called.stdout, "", "{arguments:?}");
    }
}

#[test]
fn every_error_of_a_topology_is_reported_with_its_line() {
    let folder = folder();
    let path = folder.path().join("broken.ron");
    let text =
        fs::read_to_string(RING).expect("the ring").replacen("latency", "latncy", 1).replace("\"20 ns\"", "\"20 m\"");
    fs::write(&path, text).expect("written");
    let called = call(&["topology", "check", path.to_str().expect("UTF-8")]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    for said in ["latncy", "latency", "line 5", "line 8", "20 m"] {
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
    }
}

#[test]
fn overrides_reach_the_units() {
    let shown = call(&["topology", "show", RING, "--set", "box.b[*].latency=30 ns"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(shown.stdout.matches("\"30 ns\"").count(), 1, "three alike are one entry: {}", shown.stdout);
    assert!(shown.stdout.contains("\"b[0..3]\": Link("), "{}", shown.stdout);
}

#[test]
fn what_is_shown_loads_as_the_same_topology() {
    let folder = folder();
    let path = folder.path().join("shown.ron");
    let shown = call(&["topology", "show", RING]);
    fs::write(&path, &shown.stdout).expect("written");
    let again = call(&["topology", "show", path.to_str().expect("UTF-8")]);
    assert_eq!((again.code, again.stdout), (0, shown.stdout));
}

#[test]
fn topologies_are_drawn() {
    let dot = call(&["topology", "graph", RING]).stdout;
    assert!(dot.contains("\"box.b[*]\" [label=\"box.b[*]\\n3 x Link\"];"), "{dot}");
    let svg = call(&["topology", "graph", RING, "--format", "svg"]).stdout;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn stdout_carries_the_result_alone() {
    let called = call(&["--topology", RING, "--format", "json"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["topology"], "ring");
    assert_eq!(json["completed"], true);
    assert_eq!(json["statistics"][0]["location"], "a.to_device");
}

#[test]
fn results_are_the_same_bytes_but_for_the_wall_clock() {
    for format in ["table", "json", "csv"] {
        let one = call(&["--topology", RING, "--format", format]).stdout;
        let two = call(&["--topology", RING, "--format", format, "--threads", "2"]).stdout;
        assert_eq!(redacted(&one), redacted(&two));
        assert!(redacted(&one).len() > 20, "{format}: {one}");
    }
}

#[test]
fn csv_has_a_line_for_each_statistic() {
    let csv = call(&["--topology", RING, "--format", "csv"]).stdout;
    let json: serde_json::Value =
        serde_json::from_str(&call(&["--topology", RING, "--format", "json"]).stdout).expect("JSON");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("location,what,value,unit"));
    for row in json["statistics"].as_array().expect("a list") {
        let text = |key: &str| row[key].as_str().map_or_else(|| row[key].to_string(), str::to_owned);
        let line = [text("location"), text("what"), text("value"), text("unit")].join(",");
        assert_eq!(lines.next(), Some(line.as_str()));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_folder_holds_every_artefact() {
    let folder = folder();
    let path = folder.path().join("new/out");
    let called = call(&["--topology", RING, "--format", "csv", "--output", path.to_str().expect("UTF-8")]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read("stats.csv"), called.stdout);
    assert!(read("summary.txt").starts_with("topology   ring\n"));
    assert!(read("kernels.csv").starts_with("launch,name,stream,gpu,grid,block,"));
    assert!(read("stats.json").starts_with("{\n  \"schema\": 1,\n"));
    assert_eq!(read("topology.ron"), call(&["topology", "show", RING]).stdout);
}

#[test]
fn a_folder_that_cannot_be_made_ends_before_the_run() {
    let called = call(&["--topology", RING, "--output", &format!("{RING}/out")]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    assert!(called.stderr.contains("cannot write"), "{}", called.stderr);
}

#[test]
fn snapshots_pin_and_tell_what_moved() {
    let folder = folder();
    let path = folder.path().join("ring.snapshot");
    let file = path.to_str().expect("UTF-8");
    let accepted = call(&["snapshot", "accept", "--topology", RING, file]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    let checked = call(&["snapshot", "check", "--topology", RING, "--threads", "3", file]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    let pinned = fs::read_to_string(&path).expect("written");
    fs::write(&path, pinned.replace("to_host bytes = 0 x3", "to_host bytes = 0, 64, 0")).expect("written");
    let checked = call(&["snapshot", "check", "--topology", RING, file]);
    assert_eq!(checked.code, 1, "{}", checked.stderr);
    let line = checked.stdout.lines().find(|line| line.contains("bytes")).expect("a line");
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(cells, ["box.b[1].to_host", "bytes", "64", "byte", "0", "byte", "-100.00"]);
    fs::write(&path, "something else\n").expect("written");
    let checked = call(&["snapshot", "check", "--topology", RING, file]);
    assert_eq!(checked.code, 2);
    assert!(checked.stderr.contains("is not a snapshot: line 1"), "{}", checked.stderr);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    for arguments in [&["--topology", RING, "--format", "json"][..], &["units"], &["workloads"], &["--help"]] {
        let mut child =
            command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{arguments:?}");
    }
}

#[test]
fn catalogues_list_what_there_is() {
    let units = call(&["units"]);
    assert_eq!(units.code, 0);
    for name in ["Link", "CtaScheduler", "StreamingMultiprocessor", "Crossbar", "L2Slice"] {
        assert!(units.stdout.contains(name), "{name}: {}", units.stdout);
    }
    let link = call(&["units", "Link"]).stdout;
    for word in ["latency", "bandwidth", "up", "down", "queue_maximum"] {
        assert!(link.contains(word), "{word}: {link}");
    }
    let workloads = call(&["workloads", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&workloads).expect("JSON");
    assert!(json.as_array().is_some_and(|list| list.iter().any(|workload| workload["name"] == "lud")));
}

#[test]
fn help_names_the_exit_codes() {
    let help = call(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "70 ", "130 "] {
        assert!(help.stdout.lines().any(|line| line.trim_start().starts_with(code)), "{code}: {}", help.stdout);
    }
}

#[test]
fn logs_go_to_stderr() {
    let output = command(&["--topology", RING, "--format", "csv"]).env("RUST_LOG", "what=?").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("RUST_LOG is ignored"));
    assert!(output.stdout.starts_with(b"location,what,value,unit\n"));
}
