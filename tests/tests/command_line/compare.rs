//! `compare`: two runs side by side.

use crate::call::call_in;
use balar_tests::assert_snapshot;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn run(folder: &Path, output: &str, arguments: &[&str]) {
    let fixed = ["--topology", "v100_node", "--workload", "lud:size=64", "--isa", "ptx", "--quiet", "--output", output];
    let called = call_in(folder, &[&fixed, arguments].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
}

#[test]
fn what_differs_is_told_with_its_cause() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    run(path, "before", &["--profile-instructions"]);
    run(path, "again", &["--profile-instructions", "--threads", "2"]);
    run(
        path,
        "after",
        &["--profile-instructions", "--set", "gpu.sm[*].latencies.integer=9", "--set", "gpu.l2[*].ways=8"],
    );
    let compared = |arguments: &[&str]| {
        let called = call_in(path, &[&["compare"], arguments].concat());
        assert_eq!((called.code, called.stderr.as_str()), (0, ""));
        called.stdout
    };
    let alike = compared(&["before", "again"]);
    assert!(alike.contains("\nthe runs are alike: 10 launches and "), "{alike}");
    assert_snapshot("cli", "compare_lud", &compared(&["before", "after"]));
    let json: serde_json::Value =
        serde_json::from_str(&compared(&["before", "after", "--format", "json", "--kernel", "diagonal"]))
            .expect("JSON");
    let [kernel] = &json["kernels"].as_array().expect("a list")[..] else { panic!("one kernel: {json}") };
    assert_eq!((&kernel["name"], &kernel["calls"]["before"]), (&"lud_diagonal".into(), &4.into()));
    assert_eq!(json["launches"].as_array().map(Vec::len), Some(4));
    let integer = serde_json::json!(
        {"location": "gpu.sm[*]", "what": "latencies.integer", "units": 84, "before": "4", "after": "9"}
    );
    assert!(json["inputs"].as_array().expect("a list").contains(&integer), "{}", json["inputs"]);
    // A document alone has no topology to compare.
    let document = compared(&["before/stats.json", "after"]);
    assert!(
        document.contains("note: parameters of the topologies are not compared: folders of --output"),
        "{document}"
    );
}

#[test]
fn mistakes_are_named() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    run(path, "out", &[]);
    let refused = |name: &str, arguments: &[&str]| {
        let called = call_in(path, arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{}", called.stderr);
        assert_snapshot("errors", name, &called.stderr);
    };
    fs::create_dir(path.join("empty")).expect("made");
    let text = fs::read_to_string(path.join("out/stats.json")).expect("written");
    fs::write(path.join("cut.json"), &text[..300]).expect("written");
    fs::write(path.join("other.json"), text.replacen("\"schema\": 1", "\"schema\": 2", 1)).expect("written");
    fs::write(path.join("list.json"), "[1, 2]").expect("written");
    refused("compare_with_nothing", &["compare", "out", "nowhere"]);
    refused("compare_with_an_empty_folder", &["compare", "empty", "out"]);
    refused("compare_with_a_document_that_is_cut_off", &["compare", "out", "cut.json"]);
    refused("compare_with_another_schema", &["compare", "out", "other.json"]);
    refused("compare_with_another_document", &["compare", "out", "list.json"]);
    refused("compare_unknown_kernel", &["compare", "out", "out", "--kernel", "gemm"]);
}
