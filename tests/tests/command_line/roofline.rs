//! `roofline`: its files on small working sets, points below the ceilings, and mistakes.

use crate::call::{call, call_in};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// Few and small working sets of a GPU with few SMs.
const SMALL: [&str; 9] =
    ["roofline", "--topology", "k20x_node", "--part", "levels", "--growth", "4", "--largest", "64 KiB"];

#[test]
fn the_folder_has_what_is_printed_and_the_formats_of_other_tools() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let run =
        call_in(path, &["--topology", "v100_node", "--workload", "hotspot:size=64", "--output", "run", "--quiet"]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let placed = ["--workload", "throughput:flops=64,blocks=14", "--run", "run", "--by-kernel", "--output"];
    let called = call_in(path, &[&SMALL[..], &placed, &["found", "--jobs", "2"]].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    // Without fonts there are no PNG files, which is said.
    assert!(called.stderr.is_empty() || called.stderr.starts_with("no PNG files"), "{}", called.stderr);
    let read = |name: &str| {
        fs::read_to_string(path.join("found").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert_eq!(called.stdout, read("summary.txt"));
    let placement = read("placement.csv");
    let names: Vec<&str> = placement.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["hotspot", "throughput_fp64_1"], "runs, then workloads, each of a single kernel and so once");
    let document: Value = serde_json::from_str(&read("roofline.json")).expect("JSON");
    let levels = document["empirical"]["gbytes"]["data"].as_array().expect("a list");
    assert_eq!(levels.last().expect("a level")[0], "DRAM");
    assert_eq!(document["spec"]["gbytes"]["data"][2][0], "DRAM");
    assert!(read("data.txt").starts_with("memroofs "));
    let page = read("index.html");
    assert!(page.contains("<h1>Roofline of k20x_node</h1>") && !page.contains("came to"), "{page}");
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is missing in {page}"));
    assert!(at("operations for each byte, FLOP/byte") < at("id=\"ceilings\""), "the roofline comes first");
    assert!(read("roofline.svg").contains("FLOP/byte") && read("bandwidth.svg").contains("working set, KiB"));
    let again = call_in(path, &[&SMALL[..], &placed, &["again", "--jobs", "1"]].concat());
    assert_eq!(again.stdout, called.stdout, "nothing depends on how many run at a time");
    assert_eq!(fs::read(path.join("again/roofline.svg")).expect("read"), read("roofline.svg").into_bytes());
}

/// A breadth-first search computes nothing in floating point.
#[test]
fn what_is_not_drawn_is_said() {
    let folder = TempDir::new().expect("a folder");
    let search = ["--topology", "v100_node", "--workload", "bfs:nodes=1024", "--output", "run", "--quiet"];
    assert_eq!(call_in(folder.path(), &search).code, 0);
    let called = call_in(folder.path(), &[&SMALL[..], &["--run", "run", "--output", "found"]].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    let said = "not drawn, as no floating-point operation was counted: bfs";
    assert!(called.stdout.contains(said), "{}", called.stdout);
    let read = |name: &str| fs::read_to_string(folder.path().join("found").join(name)).expect("a file");
    assert!(read("roofline.svg").contains(said));
    let document: Value = serde_json::from_str(&read("report.json")).expect("JSON");
    let tables = document["tables"].as_array().expect("a list");
    let placement = tables.iter().find(|table| table["name"] == "placement").expect("a table");
    let notes = placement["notes"].as_array().expect("a list");
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let folder = TempDir::new().expect("a folder");
    for (more, said) in [
        (&["--run", "nothing"][..], "cannot read nothing"),
        (&["--run", "."], "it has no stats.json"),
        (&["--workload", "gemmm"], "no workload `gemmm`"),
        (&["--set", "gpu.sm[*].clocks=1 GHz"], "clock"),
        (&["--output", "/proc/nothing"], "/proc/nothing"),
    ] {
        let called = call_in(folder.path(), &[&SMALL[..], more].concat());
        assert_eq!((called.code, &*called.stdout), (2, ""), "{more:?}");
        assert!(called.stderr.contains(said), "{more:?}: {}", called.stderr);
    }
}

#[test]
fn a_limit_of_time_ends_it() {
    let called = call(&["roofline", "--topology", "v100_node", "--max-wall", "0.2"]);
    assert_eq!((called.code, &*called.stdout), (4, ""), "{}", called.stderr);
}
