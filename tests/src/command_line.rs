//! The command line, as the binary of another package that its users run: tests have the path of their own package's
//! binaries alone.

use std::process::ExitCode;

fn main() -> ExitCode {
    balar_cli::app::main(&[]).into()
}
