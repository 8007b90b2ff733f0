//! The binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    balar_cli::app::main(&[]).into()
}
