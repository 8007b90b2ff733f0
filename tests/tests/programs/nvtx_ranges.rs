//! `--detail nvtx=NAME`: what a program does within its ranges is timed, and a recorded trace knows of them.

use assert_cmd::Command;
use std::path::Path;
use std::time::Duration;

const CLIENT: &str = env!("CARGO_BIN_EXE_nvtx-client");
const VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// What `balar-actors` prints with these arguments, and says.
fn balar(arguments: &[&str], injection: Option<&str>) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(arguments).env_remove(VARIABLE).envs(injection.map(|path| (VARIABLE, path)));
    let output = command.timeout(Duration::from_secs(120)).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {out}{said}");
    (out, said)
}

/// The kernels that were timed, by the folder of a run.
fn timed(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("stats.json")).expect("written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("a document");
    let kernels = document["kernels"].as_array().expect("launches");
    assert_eq!(kernels.len(), 9);
    let timed = kernels.iter().filter(|kernel| kernel["detail"] == "timed");
    timed.map(|kernel| kernel["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn what_lies_within_ranges_of_a_name_is_timed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (run, trace, replayed) = (path("run"), path("trace"), path("replayed"));
    let node = ["--topology", "v100_node", "--quiet"];
    let expected: [(&str, &[&str]); 4] = [
        ("nvtx=solve", &["pushed", "inner", "started", "wide", "registered"]),
        ("nvtx=early", &["before"]),
        ("nvtx=of a thread", &["of_thread"]),
        ("nvtx=nothing", &[]),
    ];
    let arguments = |output, record: &str| -> Vec<String> {
        let rest = ["--detail", expected[0].0, "--output", output, "--record", record, "--", CLIENT];
        ["run"].iter().chain(&node).chain(&rest).map(|text| (*text).to_owned()).collect()
    };
    let recorded = arguments(&run, &trace);
    let recorded: Vec<&str> = recorded.iter().map(String::as_str).collect();
    let (out, said) = balar(&recorded, None);
    assert_eq!(out, "ranges\n", "{said}");
    assert_eq!(timed(Path::new(&run)), expected[0].1);
    for (number, (option, kernels)) in expected.iter().enumerate() {
        let output = format!("{replayed}{number}");
        let rest = ["--detail", option, "--output", &output, &trace];
        balar(&["replay"].iter().chain(&node).chain(&rest).copied().collect::<Vec<_>>(), None);
        assert_eq!(timed(Path::new(&output)), *kernels, "{option}");
    }
}

#[test]
fn ranges_are_heard_only_where_they_choose_something() {
    let run = ["run", "--topology", "v100_node", "--quiet", "--detail"];
    let with = |detail: &'static str, injection| {
        balar(&run.iter().chain(&[detail, "--", CLIENT]).copied().collect::<Vec<_>>(), injection)
    };
    assert_eq!(with("profiler", None).0, "no ranges\n");
    let (out, said) = with("nvtx=solve", Some("/nonexistent/of_a_tool.so"));
    assert_eq!(out, "ranges\n");
    assert!(said.contains("NVTX_INJECTION64_PATH is replaced for this run"), "{said}");
}
