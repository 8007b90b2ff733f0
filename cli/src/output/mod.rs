//! What a run prints and writes.

pub mod comma_separated;
pub mod folder;
pub mod json;
pub mod summary;

use crate::arguments::Format;
use crate::result::RunRecord;
use std::io::{self, Write};

/// The result in the format asked for. `width` is the terminal's, where there is one; it folds tables.
pub fn text(record: &RunRecord, format: Format, width: Option<u16>) -> String {
    match format {
        Format::Table => summary::text(record, width),
        Format::Json => json::text(record),
        Format::Csv => comma_separated::statistics(record),
    }
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
