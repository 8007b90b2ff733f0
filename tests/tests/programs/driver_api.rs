//! A program of CUDA's driver API runs: contexts, modules of PTX, launches, copies, linking of PTX and of machine code, functions by name.

use assert_cmd::Command;
use std::time::Duration;

#[test]
fn a_program_of_the_driver_api_runs() {
    // With one device, and with two that have parts of one array.
    for topology in ["v100_node", "two_v100_node"] {
        run_on(topology);
    }
}

fn run_on(topology: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--topology", topology, "--", env!("CARGO_BIN_EXE_driver-client")]);
    let output = command.timeout(Duration::from_secs(120)).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&output.stdout), "passed\n", "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}
