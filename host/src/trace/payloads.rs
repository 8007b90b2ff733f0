//! The bulk data of a trace: each content once, compressed, named by its checksum.

use super::error::TraceError;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The content of a payload: its checksum (XXH3, 128 bits) and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PayloadId {
    /// The checksum.
    pub hash: u128,
    /// Bytes, uncompressed.
    pub length: u64,
}

impl PayloadId {
    /// The name of this content.
    pub fn of(data: &[u8]) -> PayloadId {
        PayloadId { hash: xxh3_128(data), length: data.len() as u64 }
    }
}

/// Name of the file in the folder of a trace.
pub(super) const FILE: &str = "payloads.bin";
/// The first bytes of the file.
const MAGIC: &[u8; 16] = b"balar payloads\0\x01";
/// Checksum, length, compressed length.
const HEADER_BYTES: usize = 16 + 8 + 8;

/// Writes payloads.
pub(super) struct PayloadWriter {
    path: PathBuf,
    file: BufWriter<File>,
    known: BTreeSet<PayloadId>,
}

impl PayloadWriter {
    pub fn create(folder: &Path) -> Result<PayloadWriter, TraceError> {
        let path = folder.join(FILE);
        let file = File::create(&path).map_err(TraceError::system("write", &path))?;
        let mut writer = PayloadWriter { path, file: BufWriter::new(file), known: BTreeSet::new() };
        let started = writer.file.write_all(MAGIC);
        writer.check(started)?;
        Ok(writer)
    }

    /// Adds `data` where it is not yet there, and names it.
    pub fn add(&mut self, data: &[u8]) -> Result<PayloadId, TraceError> {
        let id = PayloadId::of(data);
        if self.known.insert(id) {
            let written = self.append(id, data);
            self.check(written)?;
        }
        Ok(id)
    }

    fn append(&mut self, id: PayloadId, data: &[u8]) -> io::Result<()> {
        let mut encoder = FrameEncoder::new(Vec::new());
        encoder.write_all(data)?;
        let compressed = encoder.finish().map_err(io::Error::other)?;
        self.file.write_all(&id.hash.to_le_bytes())?;
        self.file.write_all(&id.length.to_le_bytes())?;
        self.file.write_all(&(compressed.len() as u64).to_le_bytes())?;
        self.file.write_all(&compressed)
    }

    pub fn flush(&mut self) -> Result<(), TraceError> {
        let flushed = self.file.flush();
        self.check(flushed)
    }

    fn check(&self, result: io::Result<()>) -> Result<(), TraceError> {
        result.map_err(TraceError::system("write", &self.path))
    }
}

/// Reads payloads. All are checked when the file is opened.
#[derive(Debug)]
pub(super) struct PayloadReader {
    path: PathBuf,
    file: File,
    /// Where each is: the place of its compressed bytes, and their number.
    places: BTreeMap<PayloadId, (u64, u64)>,
}

impl PayloadReader {
    /// Opens the payloads of a trace. In an unfinished one (`partial`), a last payload that is cut off is left out.
    pub fn open(folder: &Path, partial: bool) -> Result<PayloadReader, TraceError> {
        let path = folder.join(FILE);
        let file = File::open(&path).map_err(TraceError::system("read", &path))?;
        let size = file.metadata().map_err(TraceError::system("read", &path))?.len();
        let mut reader = PayloadReader { path, file, places: BTreeMap::new() };
        reader.index(size, partial)?;
        Ok(reader)
    }

    fn index(&mut self, size: u64, partial: bool) -> Result<(), TraceError> {
        let path = self.path.clone();
        let mut input = BufReader::with_capacity(1 << 18, &self.file);
        let mut magic = [0; 16];
        if size < 16 || input.read_exact(&mut magic).is_err() || magic != *MAGIC {
            return Err(TraceError::damaged(&path, 0, "expected the payloads of a trace"));
        }
        let mut offset = MAGIC.len() as u64;
        let mut places = BTreeMap::new();
        while offset < size {
            let left = size - offset;
            let mut header = [0; HEADER_BYTES];
            if left < HEADER_BYTES as u64 || input.read_exact(&mut header).is_err() {
                if partial {
                    break;
                }
                return Err(TraceError::damaged(
                    &path,
                    offset,
                    format!("the file ends inside a payload, {left} bytes"),
                ));
            }
            let (hash, lengths) = header.split_at(16);
            let (length, compressed) = lengths.split_at(8);
            let id = PayloadId { hash: u128::from_le_bytes(array(hash)), length: u64::from_le_bytes(array(length)) };
            let compressed = u64::from_le_bytes(array(compressed));
            let start = offset + HEADER_BYTES as u64;
            let Some(end) = start.checked_add(compressed).filter(|&end| end <= size) else {
                if partial {
                    break;
                }
                let cause = format!("a payload of {compressed} bytes, the file has {} more", size - start);
                return Err(TraceError::damaged(&path, offset, cause));
            };
            let mut limited = (&mut input).take(compressed);
            check_content(&mut limited, id).map_err(|cause| TraceError::damaged(&path, offset, cause))?;
            let skip = limited.limit() as i64;
            input.seek_relative(skip).map_err(TraceError::system("read", &path))?;
            places.insert(id, (start, compressed));
            offset = end;
        }
        self.places = places;
        Ok(())
    }

    pub fn contains(&self, id: PayloadId) -> bool {
        self.places.contains_key(&id)
    }

    /// The bytes of a payload.
    pub fn read(&self, id: PayloadId) -> Result<Arc<[u8]>, TraceError> {
        let missing = || TraceError::damaged(&self.path, 0, format!("payload {:032x} is missing", id.hash));
        let &(start, compressed) = self.places.get(&id).ok_or_else(missing)?;
        let changed = |cause: String| TraceError::damaged(&self.path, start, cause);
        let source = FileRange { file: &self.file, at: start, end: start + compressed };
        let length = usize::try_from(id.length).map_err(|_| changed("larger than the address space".to_owned()))?;
        // The length was found to be true when the file was opened.
        let mut data = Vec::with_capacity(length);
        FrameDecoder::new(source)
            .take(id.length + 1)
            .read_to_end(&mut data)
            .map_err(|error| changed(format!("a payload cannot be decompressed: {error}")))?;
        if PayloadId::of(&data) != id {
            return Err(changed("the payload has changed while the trace is replayed".to_owned()));
        }
        Ok(data.into())
    }
}

/// Decompresses a payload and compares it with its name.
fn check_content(compressed: &mut impl Read, id: PayloadId) -> Result<(), String> {
    let mut hasher = Xxh3::new();
    let mut decoder = FrameDecoder::new(compressed).take(id.length.saturating_add(1));
    let mut length = 0u64;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match decoder.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("a payload cannot be decompressed: {error}")),
        }
    }
    if length != id.length {
        let more = if length > id.length { "more than" } else { "fewer than" };
        return Err(format!("a payload holds {more} the {} bytes that were recorded", id.length));
    }
    if hasher.digest128() != id.hash {
        return Err("a payload is not the recorded one: its checksum differs".to_owned());
    }
    Ok(())
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

/// A range of a file, read without moving its position.
struct FileRange<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for FileRange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..left], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
