//! `--log-format`: what `RUST_LOG` asks for, as lines for people and as JSON for programs.

use crate::call::call;
use serde_json::Value;
use std::process::{Command, Stdio};

/// What a small run says with this log.
fn said(level: &str, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["--topology", "v100_node", "--workload", "vectoradd:elements=5000,block=128"]).args(options);
    command.env("RUST_LOG", level).env("BALAR_PTXAS", "").stdin(Stdio::null());
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

/// The lines of a log of JSON.
fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn each_line_of_a_log_of_json_is_json() {
    let lines = lines(&said("debug", &["--log-format", "json"]));
    assert!(lines.iter().all(|line| line["level"].is_string() && line["target"].is_string()), "{lines:?}");
    let messages = || lines.iter().filter_map(|line| line["fields"]["message"].as_str());
    assert_eq!(messages().filter(|message| *message == "the units begin to run").count(), 1);
    let ended = |name: &str| -> Vec<&Value> {
        let closed = lines.iter().filter(|line| line["fields"]["message"] == "close");
        closed.map(|line| &line["span"]).filter(|span| span["name"] == name).collect()
    };
    assert_eq!(ended("run").len(), 1);
    assert_eq!(ended("run")[0]["topology"], "v100_node");
    let launches = ended("kernel_launch");
    assert_eq!(launches.len(), 1);
    let launch = launches[0];
    assert_eq!((&launch["kernel"], &launch["launch"]), (&"vectorAdd".into(), &"0".into()));
    assert_eq!((&launch["process"], &launch["ctas"]), (&0.into(), &40.into()));
    assert_eq!(launch["completed"], true);
    // Three vectors of 5000 floats.
    let copies = ended("copy");
    assert_eq!(copies.len(), 3);
    assert!(copies.iter().all(|copy| copy["bytes"] == 20_000), "{copies:?}");
    let calls = ended("cuda_call");
    let named = |name: &str| calls.iter().filter(|call| call["call"] == name).count();
    assert_eq!(["cudaMalloc", "cudaMemcpy", "cudaLaunchKernel", "cudaFree"].map(named), [3, 3, 1, 3]);
    let around =
        |line: &Value| line["spans"].as_array().is_some_and(|all| all.iter().any(|span| span["name"] == "run"));
    assert!(lines.iter().filter(|line| line["span"]["name"] == "copy").all(around), "they are within the run");
}

#[test]
fn a_log_has_the_spans_that_are_asked_for() {
    let lines = lines(&said("info", &["--log-format", "json"]));
    let names: Vec<&str> = lines.iter().filter_map(|line| line["span"]["name"].as_str()).collect();
    assert!(names.contains(&"run") && !names.contains(&"copy"), "{names:?}");
    assert_eq!(said("warn", &["--log-format", "json"]), "");
    let text = said("info", &[]);
    assert!(text.contains("the units begin to run") && !text.contains("time.busy"), "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_err()), "{text}");
    let wrong = call(&["--topology", "v100_node", "--log-format", "xml"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("[possible values: text, json]"), "{}", wrong.stderr);
}
