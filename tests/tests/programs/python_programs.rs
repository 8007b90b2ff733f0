//! Python programs (`tests/python`) with the packages that people use, unmodified.
//!
//! The packages are those that `tools/cuda-toolchain --python FOLDER` installs; `BALAR_CUDA_TOOLCHAIN` names the folder.

use crate::cuda_toolchain::Toolchain;
use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TRITON: &str = "PASS vector addition\nPASS sums of rows\n";
const TRITON_PRODUCTS: &str = "PASS product in fp16\nPASS product in bf16\nPASS product in tf32\nPASS attention\n";
const CUPY: &str = "PASS RawKernel\nPASS elementwise kernels\nPASS sum\nPASS sort and argsort\n";
const NUMBA: &str = "PASS vector addition\nPASS reduction in shared memory\nPASS cuda.reduce\n";

/// The folder of the packages, and an assembler.
fn packages() -> (PathBuf, PathBuf) {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the packages");
    (toolchain.python_packages(), toolchain.ptxas())
}

/// The options that PTX and machine code run with.
const PTX: &[&str] = &["--topology", "v100_node"];
const MACHINE_CODE: &[&str] = &["--topology", "t4_node", "--isa", "sass"];

/// Runs `tests/python/SCRIPT` with options of `run` and of Python and variables, and compares what it prints.
#[track_caller]
fn check(
    (folder, ptxas): &(PathBuf, PathBuf),
    script: &str,
    [run, options]: [&[&str]; 2],
    variables: &[(&str, &Path)],
    expected: &str,
) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command
        .args(["run", "--quiet"])
        .args(run)
        .arg("--")
        .env("BALAR_PTXAS", ptxas)
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.arg(folder.join("bin/python")).args(["-B", "-W", "ignore"]).args(options).arg(script);
    command.envs(variables.iter().copied()).timeout(Duration::from_secs(240));
    let output = command.output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("not implemented"), "{said}");
}

/// The package numba-cuda calls the driver through the bindings of NVIDIA's package for Python.
#[test]
#[ignore = "needs Python packages: tools/cuda-toolchain --python"]
fn numba_with_nvidias_bindings_runs() {
    let folder = packages();
    check(&folder, "numba_kernels.py", [PTX, &[]], &[], NUMBA);
    check(&folder, "numba_kernels.py", [MACHINE_CODE, &[]], &[], NUMBA);
}

/// The part of Numba that numba-cuda takes the place of calls the driver through `ctypes`. It is there where Python does not read what
/// packages say to its start.
#[test]
#[ignore = "needs Python packages: tools/cuda-toolchain --python"]
fn numba_with_ctypes_runs() {
    let folder = packages();
    let variables = [("PYTHONPATH", &*folder.0.join("site")), ("CUDA_HOME", &*folder.0.join("cuda"))];
    check(&folder, "numba_kernels.py", [PTX, &["-S"]], &variables, NUMBA);
}

/// Triton's compiler makes cubins, which are loaded as they are.
#[test]
#[ignore = "needs Python packages: tools/cuda-toolchain --python"]
fn kernels_of_triton_run() {
    let folder = packages();
    let cache = tempfile::tempdir().expect("a folder");
    let variables = [("TRITON_CACHE_DIR", cache.path())];
    check(&folder, "triton_kernels.py", [MACHINE_CODE, &[]], &variables, TRITON);
    // Triton multiplies matrices on tensor cores from Ampere on.
    for topology in ["a100_sxm_80gb_node", "h100_sxm_node"] {
        let options = ["--topology", topology, "--isa", "sass", "--check-hazards"];
        check(&folder, "triton_kernels.py", [&options, &[]], &variables, TRITON);
        check(&folder, "triton_products.py", [&options, &[]], &variables, TRITON_PRODUCTS);
    }
}

/// Its libraries ask the driver for private tables, and bring hundreds of images.
#[test]
#[ignore = "needs Python packages: tools/cuda-toolchain --python"]
fn kernels_of_cupy_run() {
    let folder = packages();
    let cache = tempfile::tempdir().expect("a folder");
    let variables = [("CUPY_CACHE_DIR", cache.path())];
    check(&folder, "cupy_kernels.py", [&["--topology", "v100_node"], &[]], &variables, CUPY);
    check(&folder, "cupy_kernels.py", [&["--topology", "t4_node"], &[]], &variables, CUPY);
}
