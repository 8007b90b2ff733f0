//! How commands print on stdout.

use crate::output;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_record::system::terminal;
use std::io;

/// The width at which tables are folded: that of the terminal, if stdout is one.
pub fn width() -> Option<u16> {
    terminal::width(&io::stdout())
}

/// Prints what a command has to say.
///
/// # Errors
///
/// Where it cannot be written.
pub fn print(text: &str) -> Result<ExitStatus, Failure> {
    output::print(text).map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))?;
    Ok(ExitStatus::Done)
}
