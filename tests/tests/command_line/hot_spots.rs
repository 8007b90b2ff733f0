//! `hotspots`: where the cycles of kernels went, with the source lines that PTX and machine code name.

use crate::call::{Called, call_in};
use balar_tests::assert_snapshot;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const WORKLOAD: &str = "vectoradd:elements=2048,block=128";

fn device_code(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("device_code").join(name)
}

/// A folder with a run of the kernel of lines.cu, from PTX or from what ptxas made of it, in its folder `out`.
fn profiled(isa: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let (ptx, cubin) = (device_code("lines.ptx"), device_code("lines.sm_70.cubin"));
    // It stands for ptxas 12.9, which is not on every machine.
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release 12.9, V12.9.86'; else cat > /dev/null; cat '{}'; fi\n",
        cubin.display()
    );
    let ptxas = folder.path().join("ptxas");
    // Written by another process: a file that this one has open for writing would be busy.
    let write = Command::new("sh")
        .args(["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\""])
        .arg(&ptxas)
        .arg(script)
        .status();
    assert!(write.expect("a shell").success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["--topology", "v100_node", "--workload", WORKLOAD, "--output", "out", "--profile-instructions"]);
    command.args(["--isa", isa, "--quiet", "--ptx"]).arg(ptx);
    command.current_dir(folder.path()).env_remove("RUST_LOG").stdin(Stdio::null());
    command.env("BALAR_PTXAS", ptxas).env("XDG_CACHE_HOME", folder.path().join("cache"));
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn hotspots(folder: &Path, arguments: &[&str]) -> Called {
    call_in(folder, &[&["hotspots", "out"], arguments].concat())
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let called = hotspots(folder, &[arguments, &["--format", "json"]].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    serde_json::from_str(&called.stdout).expect("JSON")
}

/// Sums of every counter over the rows of all kernels.
fn sums(kernels: &serde_json::Value) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let rows = kernels.as_array().expect("a list").iter().flat_map(|kernel| kernel["rows"].as_array().expect("rows"));
    for (name, count) in rows.flat_map(|row| row["counters"].as_object().expect("counters")) {
        *sums.entry(name.clone()).or_insert(0) += count.as_u64().expect("a number");
    }
    sums
}

/// By instruction, line and function the sums are the same, and they are the SMs' own counters.
#[test]
fn sums_are_the_counters_of_the_sms() {
    for isa in ["ptx", "sass"] {
        let folder = profiled(isa);
        let by_instruction = sums(&json(folder.path(), &["--by", "instruction"]));
        assert_eq!(by_instruction, sums(&json(folder.path(), &["--by", "line"])));
        assert_eq!(by_instruction, sums(&json(folder.path(), &["--by", "function"])));
        let statistics = fs::read_to_string(folder.path().join("out/stats.csv")).expect("written");
        let mut compared = 0;
        for (name, sum) in by_instruction.iter().filter(|(name, _)| !name.starts_with("l1_accesses_")) {
            let of_sms = statistics.lines().filter(|line| line.starts_with("gpu.sm["));
            let of_sms =
                of_sms.map(|line| line.split(',').collect::<Vec<_>>()).filter(|cells| cells[1] == name.as_str());
            let of_sms: u64 = of_sms.map(|cells| cells[2].parse::<u64>().expect("a number")).sum();
            assert_eq!(*sum, of_sms, "{isa} {name}");
            compared += u64::from(of_sms > 0);
        }
        assert!(compared >= 15, "{compared} counters are more than zero");
        // The weights of a flame graph are all warp cycles.
        let called = hotspots(folder.path(), &["--folded", "out.folded"]);
        assert_eq!(called.code, 0, "{}", called.stderr);
        let folded = fs::read_to_string(folder.path().join("out.folded")).expect("written");
        let weights = folded.lines().map(|line| line.rsplit_once(' ').expect("a weight").1);
        let weights: u64 = weights.map(|weight| weight.parse::<u64>().expect("a number")).sum();
        let cycles: u64 =
            by_instruction.iter().filter(|(name, _)| name.starts_with("stall_")).map(|(_, sum)| sum).sum();
        assert_eq!(weights, cycles);
    }
}

/// The lines are those of lines.cu. 64 warps: a load reads 128 bytes, four sectors; a shared access of every fourth word takes four
/// wavefronts where one would do.
#[test]
fn lines_are_those_of_the_source() {
    for (isa, frame) in [
        ("ptx", "vectorAdd;lines.cu:17;sum;lines.cu:7;add.f32 "),
        ("sass", "vectorAdd;lines.cu:17;sum;lines.cu:7;0x0190 FADD "),
    ] {
        let folder = profiled(isa);
        let lines = json(folder.path(), &["--by", "line"]);
        let line = |number: u64| {
            let rows = lines[0]["rows"].as_array().expect("rows");
            rows.iter().find(|row| row["line"] == number).unwrap_or_else(|| panic!("{isa}: line {number}"))
        };
        for (number, counter, expected) in [
            (14, "l1_sectors_load", 256),
            (14, "l1_accesses_load", 64),
            (14, "shared_memory_bank_conflicts", 192),
            (17, "l1_sectors_load", 256),
            (17, "l1_sectors_store", 256),
            (17, "shared_memory_bank_conflicts", 192),
            (7, "inst_executed", 64),
        ] {
            assert_eq!(line(number)["counters"][counter], expected, "{isa}: line {number}, {counter}");
        }
        assert_eq!((&line(7)["file"], &line(7)["function"]), (&"lines.cu".into(), &"_Z3sumff".into()));
        assert_eq!((&line(14)["sectors_per_access"], &line(14)["lanes"]), (&4.0.into(), &32.0.into()));
        assert_eq!(hotspots(folder.path(), &["--folded", "f"]).code, 0);
        let folded = fs::read_to_string(folder.path().join("f")).expect("written");
        assert!(folded.lines().any(|line| line.starts_with(frame)), "{folded}");
    }
}

#[test]
fn what_is_printed() {
    let folder = profiled("sass");
    let printed = |arguments: &[&str]| {
        let called = hotspots(folder.path(), arguments);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""));
        called.stdout
    };
    let source = device_code("");
    let source = source.to_str().expect("UTF-8");
    let text = [
        printed(&["--limit", "5"]),
        printed(&["--by", "line", "--sort", "conflicts", "--limit", "3"]),
        printed(&["--by", "function", "--kernel", "^vectorAdd$"]),
        printed(&["--listing", "--source", source]),
    ];
    assert_snapshot("cli", "hotspots_of_lines", &text.join("\n"));
    let csv = printed(&["--format", "csv", "--by", "line", "--limit", "1"]);
    assert!(
        csv.starts_with("kernel,isa,function,file,line,address,text,instructions,share,warp_cycles,lanes,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 2);
    // Without the source the code is listed.
    let called = hotspots(folder.path(), &["--listing"]);
    assert_eq!(called.code, 0);
    assert!(
        called.stderr.contains("not found, so that the code is listed: lines.cu; --source DIR"),
        "{}",
        called.stderr
    );
    assert!(called.stdout.contains("  00190  FADD R7, R0, R3\n"), "{}", called.stdout);
}

#[test]
fn mistakes_are_named() {
    let folder = profiled("ptx");
    let path = folder.path();
    let refused = |name: &str, arguments: &[&str]| {
        let called = call_in(path, arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{}", called.stderr);
        assert_snapshot("errors", name, &called.stderr);
    };
    fs::create_dir(path.join("empty")).expect("made");
    fs::create_dir(path.join("plain")).expect("made");
    fs::copy(path.join("out/stats.json"), path.join("plain/stats.json")).expect("copied");
    refused("hotspots_of_no_folder", &["hotspots", "nowhere"]);
    refused("hotspots_of_an_empty_folder", &["hotspots", "empty"]);
    refused("hotspots_without_a_profile", &["hotspots", "plain"]);
    refused("hotspots_of_an_unknown_kernel", &["hotspots", "out", "--kernel", "gemm"]);
    refused("hotspots_by_an_unknown_column", &["hotspots", "out", "--sort", "stall_waits"]);
}
