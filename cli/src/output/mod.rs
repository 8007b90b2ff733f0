//! What a run prints and writes.

pub mod comma_separated;
pub mod details;
pub mod folder;
pub mod kernel_table;
pub mod launch_values;
pub mod memory_levels;
pub mod profiler;
pub mod range_table;
pub mod sections;
pub mod sst;
pub mod study;
pub mod study_page;
pub mod summary;
pub mod table;

use crate::options::format::Format;
use crate::options::selection::Selection;
use balar_record::json;
use balar_record::result::RunRecord;
use balar_record::system::printable::Printable;
use balar_record::system::terminal;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

/// Writes the result to `stream` in a format. Tables fit the stream where it is a terminal. That the reader has gone (`| head`) is
/// no error.
///
/// # Errors
///
/// Any other failure to write.
pub fn write_result(
    record: &RunRecord,
    format: Format,
    selection: &Selection,
    stream: impl Write + AsFd + IsTerminal,
) -> io::Result<()> {
    let width = terminal::width(&stream);
    write_with(stream, |stream| match format {
        Format::Table if selection.sections => stream.write_all(sections::text(record, width).as_bytes()),
        Format::Table if selection.details || selection.is_partial() => {
            stream.write_all(details::text(record, selection, width).as_bytes())
        }
        Format::Table => stream.write_all(summary::text(record, width).as_bytes()),
        Format::Json => json::write(record, stream),
        Format::Csv => comma_separated::statistics(record, selection, stream),
        Format::Nvprof => profiler::nvprof(record, selection, stream),
        Format::NcuCsv => profiler::ncu(record, selection, stream),
        Format::SstCsv => sst::write(record, selection, stream),
    })
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
    let mut stream = Printable::new(BufWriter::with_capacity(1 << 16, stream));
    match write(&mut stream).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
