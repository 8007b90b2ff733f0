//! What a run prints and writes.

pub mod comma_separated;
pub mod details;
pub mod folder;
pub mod json;
pub mod kernel_table;
pub mod memory_levels;
pub mod selection;
pub mod summary;
pub mod table;

use crate::arguments::{Format, SimulationOptions};
use crate::result::RunRecord;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

/// Writes the result to `stream` as the options ask. Tables fit the stream where it is a terminal. That the reader has gone (`| head`) is
/// no error.
///
/// # Errors
///
/// Any other failure to write.
pub fn write_result(
    record: &RunRecord,
    options: &SimulationOptions,
    stream: impl Write + AsFd + IsTerminal,
) -> io::Result<()> {
    let (width, selection) = (terminal_width(&stream), &options.selection);
    write_with(stream, |stream| match options.format {
        Format::Table if selection.details || selection.is_partial() => {
            stream.write_all(details::text(record, selection, width).as_bytes())
        }
        Format::Table => stream.write_all(summary::text(record, width).as_bytes()),
        Format::Json => json::write(record, stream),
        Format::Csv => comma_separated::statistics(record, selection, stream),
    })
}

/// Columns of the terminal that `stream` is; `None` where it is none.
pub fn terminal_width(stream: &(impl AsFd + IsTerminal)) -> Option<u16> {
    let size = if stream.is_terminal() { rustix::termios::tcgetwinsize(stream).ok()? } else { return None };
    // A terminal that does not know its size has zero.
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Writes `text` to stdout. That the reader has gone (`| head`) is no error.
///
/// # Errors
///
/// Any other failure to write.
pub fn print(text: &str) -> io::Result<()> {
    write_with(io::stdout().lock(), |stdout| stdout.write_all(text.as_bytes()))
}

fn write_with(stream: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut stream = BufWriter::with_capacity(1 << 16, stream);
    match write(&mut stream).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
