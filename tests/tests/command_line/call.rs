//! Calls of the binary.

use std::path::Path;
use std::process::{Command, Stdio};

/// What came of a call.
pub struct Called {
    /// Its exit code.
    pub code: i32,
    /// The result.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}

/// Calls the binary in this folder.
pub fn call_in(folder: &Path, arguments: &[&str]) -> Called {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(arguments).current_dir(folder).env_remove("RUST_LOG").stdin(Stdio::null());
    let output = command.output().expect("the binary runs");
    // Its name here is not the one its users know.
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8").replace("command-line-under-test", "balar-actors");
    let code = output.status.code().expect("it ends by itself");
    Called { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Calls the binary in the folder of this package, where no topology lies.
pub fn call(arguments: &[&str]) -> Called {
    call_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}
