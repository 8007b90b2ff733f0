//! NVTX: kernels belong to the ranges that their threads were in, and `--detail nvtx=NAME` times the work of a program within them. A
//! recorded trace knows of ranges.

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

/// The launches of the run that wrote a folder.
fn kernels(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("stats.json")).expect("written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("a document");
    let kernels = document["kernels"].as_array().expect("launches").clone();
    assert_eq!(kernels.len(), 9);
    kernels
}

/// The kernels that were timed, by the folder of a run.
fn timed(folder: &Path) -> Vec<String> {
    let kernels = kernels(folder);
    let timed = kernels.iter().filter(|kernel| kernel["detail"] == "timed");
    timed.map(|kernel| kernel["name"].as_str().expect("a name").to_owned()).collect()
}

/// The range of each kernel, likewise.
fn ranges(folder: &Path) -> Vec<(String, Option<String>)> {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    kernels(folder).iter().map(|kernel| (text(&kernel["name"]).expect("a name"), text(&kernel["range"]))).collect()
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
        assert_eq!(ranges(Path::new(&output)), ranges(Path::new(&run)), "{option}");
    }
}

#[test]
fn kernels_are_of_the_innermost_ranges_of_their_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (run, page, timeline) = (path("run"), path("page.html"), path("timeline"));
    let options = ["run", "--topology", "v100_node", "--output", &run, "--report", &page, "--timeline", &timeline];
    let (out, said) = balar(&[&options[..], &["--", CLIENT]].concat(), None);
    assert_eq!(out, "ranges\n", "{said}");
    let expected = [
        ("before", Some("early")),
        ("pushed", Some("solve")),
        ("inner", Some("solve > inner")),
        ("popped", None),
        ("started", Some("solve")),
        ("other", Some("solver")),
        ("wide", Some("solve")),
        ("registered", Some("solve")),
        ("of_thread", None),
    ];
    let expected = expected.map(|(kernel, range)| (kernel.to_owned(), range.map(str::to_owned)));
    assert_eq!(ranges(Path::new(&run)), expected);
    let read = |path: &str| String::from_utf8_lossy(&std::fs::read(path).expect("written")).into_owned();
    // The table of the summary, of the page, the column, and the slices.
    let summary = read(&format!("{run}/summary.txt"));
    let line =
        |name: &str| summary.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name}: {summary}"));
    let count = |name: &str| line(name).split_whitespace().nth(2).map(str::to_owned);
    assert_eq!((count(" solve"), count("   inner"), count("(in no range)")), (some("5"), some("1"), some("2")));
    assert!(read(&page).contains("Innermost ranges by name"), "the page has a table of ranges");
    let table = read(&format!("{run}/kernels.csv"));
    assert!(table.lines().any(|line| line.ends_with(",solve > inner")), "{table}");
    // A thread that does not call CUDA tells nothing: the simulation would wait for it.
    let timeline = read(&timeline);
    assert!(timeline.contains("inner") && !timeline.contains("of a thread"), "the timeline has slices of ranges");
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn ranges_are_heard_unless_a_tool_hears_them() {
    let run = ["run", "--topology", "v100_node", "--quiet", "--detail"];
    let with = |detail: &'static str, injection| {
        balar(&run.iter().chain(&[detail, "--", CLIENT]).copied().collect::<Vec<_>>(), injection)
    };
    assert_eq!(with("profiler", None).0, "ranges\n");
    let (out, said) = with("nvtx=solve", Some("/nonexistent/of_a_tool.so"));
    assert_eq!(out, "ranges\n");
    assert!(said.contains("NVTX_INJECTION64_PATH is replaced for this run"), "{said}");
}
