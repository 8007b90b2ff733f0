//! Writes the folder of a trace.

use super::error::TraceError;
use super::event::Event;
use super::header::{self, Header};
use super::payloads::{PayloadId, PayloadWriter};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Name of the file of events.
pub(super) const FILE: &str = "events.bin";
/// The first bytes of the file.
pub(super) const MAGIC: &[u8; 16] = b"balar events\0\0\0\x01";
/// The bytes before an event: its length and the lower half of its checksum (XXH3, 64 bits).
pub(super) const RECORD_HEADER_BYTES: usize = 8;

/// The lower half of the checksum of an event.
pub(super) fn checksum(event: &[u8]) -> u32 {
    xxh3_64(event) as u32
}

/// Writes a trace.
///
/// A run that is killed leaves the events that it has written so far, which readers see as unfinished.
pub struct TraceWriter {
    folder: PathBuf,
    header: Header,
    path: PathBuf,
    events: BufWriter<File>,
    payloads: PayloadWriter,
    /// Number and bytes of the events.
    written: (u64, u64),
}

impl TraceWriter {
    /// A trace in `folder`, which is made where it is missing. A trace that is there is replaced.
    ///
    /// # Errors
    ///
    /// Where files cannot be written, or the folder holds something else.
    pub fn create(folder: &Path, mut header: Header) -> Result<TraceWriter, TraceError> {
        fs::create_dir_all(folder).map_err(TraceError::system("make the folder", folder))?;
        let mut entries = fs::read_dir(folder).map_err(TraceError::system("read", folder))?;
        if entries.next().is_some() && !Header::path(folder).is_file() {
            let reason = format!("it holds other files, and no {}; a trace wants a folder of its own", header::FILE);
            return Err(TraceError::NotATrace { path: folder.to_owned(), reason });
        }
        (header.finished, header.interrupted) = (None, None);
        header.write(folder)?;
        let path = folder.join(FILE);
        let file = File::create(&path).map_err(TraceError::system("write", &path))?;
        let payloads = PayloadWriter::create(folder)?;
        let events = BufWriter::new(file);
        let written = (0, MAGIC.len() as u64);
        let mut writer = TraceWriter { folder: folder.to_owned(), header, path, events, payloads, written };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    /// Stores bulk data.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn payload(&mut self, data: &[u8]) -> Result<PayloadId, TraceError> {
        self.payloads.add(data)
    }

    /// Writes an event.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn event(&mut self, event: &Event) -> Result<(), TraceError> {
        if self.header.finished.take().is_some() {
            self.header.write(&self.folder)?;
        }
        let encoded = postcard::to_stdvec(event);
        let bytes = encoded.map_err(std::io::Error::other).map_err(TraceError::system("write", &self.path))?;
        let length = u32::try_from(bytes.len()).map_err(std::io::Error::other);
        let length = length.map_err(TraceError::system("write", &self.path))?;
        self.put(&length.to_le_bytes())?;
        self.put(&checksum(&bytes).to_le_bytes())?;
        self.put(&bytes)?;
        self.written = (self.written.0 + 1, self.written.1 + (RECORD_HEADER_BYTES + bytes.len()) as u64);
        Ok(())
    }

    /// Hands the events so far to the system: they are there even where this process is killed.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        // Payloads first: no event refers to one that is not there.
        self.payloads.flush()?;
        self.events.flush().map_err(TraceError::system("write", &self.path))
    }

    /// Says that the trace is complete. An event that comes later makes it unfinished again.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn finish(&mut self) -> Result<(), TraceError> {
        self.flush()?;
        self.header.finished = Some(self.written);
        self.header.write(&self.folder)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.events.write_all(bytes).map_err(TraceError::system("write", &self.path))
    }
}
