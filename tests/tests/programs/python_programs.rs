//! Python programs (`tests/python`) with the packages that people use, unmodified.
//!
//! The packages are those that `tools/cuda-toolchain --python FOLDER` installs; `BALAR_CUDA_TOOLCHAIN` names the folder.

use crate::cuda_toolchain::Toolchain;
use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NUMBA: &str = "PASS vector addition\nPASS reduction in shared memory\nPASS cuda.reduce\n";

/// The folder of the packages.
fn packages() -> PathBuf {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the packages");
    toolchain.python_packages()
}

/// Runs `tests/python/SCRIPT` with options of Python and variables, and compares what it prints.
#[track_caller]
fn check(folder: &Path, script: &str, options: &[&str], variables: &[(&str, &Path)], expected: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--quiet", "--topology", "v100_node", "--"]);
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
    check(&folder, "numba_kernels.py", &[], &[], NUMBA);
}

/// The part of Numba that numba-cuda takes the place of calls the driver through `ctypes`. It is there where Python does not read what
/// packages say to its start.
#[test]
#[ignore = "needs Python packages: tools/cuda-toolchain --python"]
fn numba_with_ctypes_runs() {
    let folder = packages();
    let variables = [("PYTHONPATH", &*folder.join("site")), ("CUDA_HOME", &*folder.join("cuda"))];
    check(&folder, "numba_kernels.py", &["-S"], &variables, NUMBA);
}
