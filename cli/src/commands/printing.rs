//! How commands print on stdout.

use crate::output;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_record::system::terminal;
use std::io::{self, Write};

/// Columns of a table with sentences where stdout is no terminal.
const PIPE_WIDTH: u16 = 140;

/// The width at which tables are folded: that of the terminal, if stdout is one.
pub fn width() -> Option<u16> {
    terminal::width(&io::stdout())
}

/// Prints bytes that need not be text: a picture.
///
/// # Errors
///
/// Where they cannot be written.
pub fn print_bytes(bytes: &[u8]) -> Result<ExitStatus, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::input(format_args!("cannot write the result: {error}")))
        }
        _ => Ok(ExitStatus::Done),
    }
}

/// The width at which tables with sentences in them are folded, also where stdout is no terminal, unless they are a list of all that there
/// is: of these, each line has one for tools that look for it.
pub fn folded(name: Option<&str>) -> Option<u16> {
    width().or(name.map(|_| PIPE_WIDTH))
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
