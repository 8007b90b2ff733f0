//! Programs with line information, as compilers leave it in PTX and machine code: the lines that `hotspots` tells.

use crate::cuda_toolchain::{Compiler, Toolchain};
use std::time::Duration;

/// How long a program may take to build or to run before something must be wrong with it.
const LIMIT: Duration = Duration::from_secs(240);

/// What `hotspots --by line` has of the only kernel of a program.
fn lines(toolchain: &Toolchain, program: &std::path::Path, topology: &str, isa: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder");
    let command = |arguments: &[&str]| {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
        command.args(arguments).current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path()).timeout(LIMIT);
        command.env("BALAR_PTXAS", toolchain.ptxas());
        command
    };
    let options = ["--topology", topology, "--isa", isa, "--output", "out", "--profile-instructions"];
    let run = command(&["run", "--quiet"]).args(options).arg("--").arg(program).output().expect("it ran");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let arguments = ["hotspots", "out", "--by", "line", "--format", "json"];
    let told = command(&arguments).output().expect("it ran");
    assert!(told.status.success() && told.stderr.is_empty(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("JSON")
}

/// Line 7 adds two vectors of 10000 elements of 4 bytes: it reads 2 x 1250 sectors of 32 bytes and writes 1250.
#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn compilers_and_assemblers_leave_lines_that_are_told() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    for (compiler, option, topologies) in [
        // For the V100, its PTX is assembled by ptxas 12.9.
        (Compiler::Nvcc13, "-lineinfo", &["t4_node", "v100_node"][..]),
        (Compiler::Clang12, "-gline-tables-only", &["v100_node"]),
    ] {
        let built = toolchain.build(compiler, "vectoradd", &[option], LIMIT);
        let program = built.unwrap_or_else(|error| panic!("{error}"));
        for topology in topologies {
            for isa in ["ptx", "sass"] {
                let kernels = lines(&toolchain, &program, topology, isa);
                let rows = kernels[0]["rows"].as_array().expect("rows");
                let is_line = |row: &&serde_json::Value| {
                    row["line"] == 7 && row["file"].as_str().is_some_and(|file| file.ends_with("/vectoradd.cu"))
                };
                let line =
                    rows.iter().find(is_line).unwrap_or_else(|| panic!("{compiler:?} {topology} {isa}: {rows:?}"));
                let counters = ["l1_sectors_load", "l1_sectors_store"].map(|name| line["counters"][name].as_u64());
                assert_eq!(counters, [Some(2500), Some(1250)], "{compiler:?} {topology} {isa}");
            }
        }
    }
}
