//! `balar-hardware`, as a binary of this package: see `command_line.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    balar_hardware::main()
}
