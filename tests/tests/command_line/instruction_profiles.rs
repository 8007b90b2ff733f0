//! `--profile-instructions` and `disassemble --run`: the counts of instructions in a run, beside the machine code.

use crate::call::{call, call_in};
use balar_tests::assert_snapshot;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const WORKLOAD: &str = "vectoradd:elements=2048,block=128";

/// Runs vectoradd from machine code, with its folder `out`.
fn profiled(options: &[&str]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let fixed = ["--topology", "v100_node", "--output", "out", "--profile-instructions"];
    let workload: &[&str] = if options.contains(&"--workload") { &[] } else { &["--workload", WORKLOAD] };
    let called = call_in(folder.path(), &[&fixed, workload, options].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    folder
}

fn instructions(folder: &Path) -> String {
    fs::read_to_string(folder.join("out/instructions.csv")).expect("it was written")
}

/// The listing of a workload with what ran, in two commands.
#[test]
fn a_workload_is_listed_with_what_its_instructions_did() {
    let folder = profiled(&["--isa", "sass"]);
    let arguments = ["disassemble", "--workload", "vectoradd", "--topology", "v100_node", "--run", "out"];
    let called = call_in(folder.path(), &arguments);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    // 64 warps execute 16 instructions each, from the first to EXIT.
    assert!(called.stdout.contains("\n  // 1024 warp instructions in "), "{}", called.stdout);
    assert_snapshot("cli", "disassemble_vectoradd_after_a_run", &called.stdout);

    let json = call_in(folder.path(), &[&arguments[..], &["--format", "json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let kernel = &document[0]["functions"][0];
    assert_eq!((kernel["name"].as_str(), kernel["run"]["inst_executed"].as_u64()), (Some("vectorAdd"), Some(1024)));
    let load = &kernel["instructions"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| it["text"].as_str().is_some_and(|text| text.starts_with("LDG")));
    let load = &load.expect("there is a load")["run"];
    // 64 warps read 128 bytes each: 4 sectors.
    assert_eq!(
        (load["counters"]["inst_executed"].as_u64(), load["counters"]["l1_sectors_load"].as_u64()),
        (Some(64), Some(256))
    );
    assert!(load["share"].as_f64().is_some_and(|share| share > 0.0 && share < 1.0), "{load}");
    assert!(load["hottest_stall"]["reason"].is_string(), "{load}");
}

/// The file is the same for any number of threads, and the run is what it is without it.
#[test]
fn the_file_does_not_depend_on_threads() {
    for isa in ["ptx", "sass"] {
        let [one, four] = ["1", "4"].map(|threads| profiled(&["--isa", isa, "--threads", threads]));
        let text = instructions(one.path());
        assert_eq!(text, instructions(four.path()));
        let place =
            "gpu,kernel,isa,function,code,address,file,line,source_file,source_line,source_function,inlined_at,text";
        assert!(text.starts_with(&format!("{place},inst_executed,")), "{text}");
        assert!(
            text.lines().skip(1).all(|line| line.starts_with(&format!("gpu,vectorAdd,{isa},vectorAdd,"))),
            "{text}"
        );
        let statistics =
            |folder: &Path, out: &str| fs::read_to_string(folder.join(out).join("stats.csv")).expect("written");
        let arguments = ["--topology", "v100_node", "--workload", WORKLOAD, "--isa", isa, "--output", "plain"];
        assert_eq!(call_in(one.path(), &arguments).code, 0);
        assert_eq!(statistics(one.path(), "out"), statistics(one.path(), "plain"));
        assert!(!one.path().join("plain/instructions.csv").exists());
    }
}

/// A run without the option leaves no profile of an earlier one in its folder.
#[test]
fn a_later_run_removes_what_is_of_other_kernels() {
    let folder = profiled(&[]);
    let arguments = ["--topology", "v100_node", "--workload", WORKLOAD, "--output", "out"];
    assert_eq!(call_in(folder.path(), &arguments).code, 0);
    assert!(!folder.path().join("out/instructions.csv").exists());
}

/// A mistake is named, with the file and what to do.
fn refused(name: &str, folder: &Path, arguments: &[&str]) {
    let called = call_in(folder, arguments);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{}", called.stderr);
    assert_snapshot("errors", name, &called.stderr);
}

#[test]
fn mistakes_are_named() {
    let folder = profiled(&["--isa", "sass"]);
    let path = folder.path();
    let listed = ["disassemble", "--workload", "vectoradd", "--topology", "v100_node"];
    refused("disassemble_run_without_a_profile", path, &[&listed[..], &["--run", "."]].concat());
    refused(
        "disassemble_run_of_another_kernel",
        path,
        &["disassemble", "--workload", "gemm", "--topology", "v100_node", "--run", "out"],
    );
    // The code for sm_75 is other code, of the same name.
    refused(
        "disassemble_run_of_other_code",
        path,
        &["disassemble", "--workload", "vectoradd", "--topology", "t4_node", "--run", "out"],
    );
    let text = instructions(path);
    fs::write(path.join("out/instructions.csv"), text.replacen(",64,", ",many,", 1)).expect("written");
    refused("disassemble_run_with_a_malformed_line", path, &[&listed[..], &["--run", "out"]].concat());
    refused(
        "disassemble_workload_without_machine_code",
        path,
        &["disassemble", "--workload", "vectoradd", "--topology", "p100_node"],
    );

    let of_ptx = profiled(&["--isa", "ptx"]);
    refused("disassemble_run_from_ptx", of_ptx.path(), &[&listed[..], &["--run", "out"]].concat());
    let called = call(&["--topology", "v100_node", "--profile-instructions"]);
    assert_eq!(called.code, 2);
    assert!(called.stderr.contains("--output <DIR>"), "{}", called.stderr);
}
