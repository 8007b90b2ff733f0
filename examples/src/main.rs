//! The balar-actors command line with the units of this crate beside the built-in ones.

use std::process::ExitCode;

fn main() -> ExitCode {
    balar_cli::app::main(balar_examples::UNITS).into()
}
