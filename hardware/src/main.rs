//! The program `balar-hardware`.

use std::process::ExitCode;

fn main() -> ExitCode {
    balar_hardware::main()
}
