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

use crate::arguments::Format;
use crate::result::RunRecord;
use selection::Selection;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

/// The result in the format asked for. `width` is the terminal's, where there is one; tables fit it.
pub fn text(record: &RunRecord, format: Format, selection: &Selection, width: Option<u16>) -> String {
    match format {
        Format::Table if selection.details || selection.is_partial() => details::text(record, selection, width),
        Format::Table => summary::text(record, width),
        Format::Json => json::text(record),
        Format::Csv => comma_separated::statistics(record, selection),
    }
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
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
