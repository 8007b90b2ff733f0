//! The layout of containers.

use super::error::FatbinError;
use super::payload;

/// The first word of a container.
pub const MAGIC: u32 = 0xba55_ed50;

/// The version of the container format.
const VERSION: u16 = 1;
/// Bytes of a container's header.
const HEADER_BYTES: u64 = 16;
/// Bytes that the header of every entry has.
const ENTRY_BYTES: u64 = 64;
/// Entries of a container.
const MAXIMUM_ENTRIES: usize = 4096;

/// The kind of code in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A PTX text.
    Ptx,
    /// A cubin.
    Elf,
    /// Something else, by its number.
    Other(u16),
}

/// One container.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    /// Where it begins in the image.
    pub offset: u64,
    /// Its entries, in order.
    pub entries: Vec<Entry<'a>>,
}

/// An entry: one form of the code.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Where it begins in the image.
    pub offset: u64,
    /// The kind of its code.
    pub kind: EntryKind,
    /// The architecture that it is for: 75.
    pub architecture: u32,
    /// (major, minor): the version of a PTX text, or the binary interface of a cubin.
    pub version: (u16, u16),
    /// Its flags, the compression among them.
    pub flags: u64,
    /// The name that it was given, if any.
    pub name: Option<String>,
    /// Its bytes in the container, padding included.
    pub(super) payload: &'a [u8],
    /// Where that begins in the image.
    pub(super) payload_offset: u64,
    /// Bytes of it without the padding; 0 where it is not compressed.
    pub(super) compressed_bytes: u32,
    /// Bytes once it is decompressed.
    pub(super) uncompressed_bytes: u64,
}

impl Entry<'_> {
    /// Its bytes, decompressed.
    ///
    /// # Errors
    ///
    /// The compressed data is broken, or longer than [`MAXIMUM_PAYLOAD_BYTES`](super::MAXIMUM_PAYLOAD_BYTES).
    pub fn data(&self) -> Result<Vec<u8>, FatbinError> {
        payload::data(self)
    }

    /// As [`Self::data`], for a PTX text.
    ///
    /// # Errors
    ///
    /// See [`Self::data`]; and it is no text.
    pub fn text(&self) -> Result<String, FatbinError> {
        let mut data = self.data()?;
        let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
        data.truncate(end);
        String::from_utf8(data).map_err(|error| {
            let what = format!("PTX with the byte {} that no text has", error.utf8_error().valid_up_to());
            FatbinError { offset: self.payload_offset, what }
        })
    }
}

/// Bytes of an image, with the place of the first one for messages.
#[derive(Clone, Copy)]
struct Part<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Part<'a> {
    fn error(&self, at: u64, what: String) -> FatbinError {
        FatbinError { offset: self.offset + at, what }
    }

    /// `length` bytes from `at` on.
    fn take(&self, at: u64, length: u64, what: &str) -> Result<Part<'a>, FatbinError> {
        let range = usize::try_from(at).ok().zip(at.checked_add(length).and_then(|end| usize::try_from(end).ok()));
        let bytes = range.and_then(|(start, end)| self.bytes.get(start..end));
        let rest = (self.bytes.len() as u64).saturating_sub(at);
        let error =
            || self.error(at, format!("{what} of {length} bytes, expected no more than the {rest} that are there"));
        Ok(Part { bytes: bytes.ok_or_else(error)?, offset: self.offset + at })
    }

    /// A number at a place that the part has.
    fn number<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[at..at + N]);
        bytes
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.number(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.number(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.number(at))
    }
}

/// The containers of an image: at least one, with nothing but zeros between them and after them.
///
/// # Errors
///
/// A mistake in the format.
pub fn containers(image: &[u8]) -> Result<Vec<Container<'_>>, FatbinError> {
    let image = Part { bytes: image, offset: 0 };
    let mut containers = Vec::new();
    let mut at = 0;
    loop {
        let (container, length) = container(image.take(at, image.bytes.len() as u64 - at, "an image")?)?;
        containers.push(container);
        at += length;
        let rest = &image.bytes[at as usize..];
        let Some(zeros) = rest.iter().position(|&byte| byte != 0) else { return Ok(containers) };
        at += zeros as u64;
    }
}

/// The container that a part begins with, and its length.
fn container(part: Part<'_>) -> Result<(Container<'_>, u64), FatbinError> {
    let header = part.take(0, HEADER_BYTES, "a container's header")?;
    let (magic, version, header_bytes) = (header.u32(0), header.u16(4), u64::from(header.u16(6)));
    if magic != MAGIC {
        return Err(part.error(0, format!("a container that begins with {magic:#010x}, expected {MAGIC:#010x}")));
    }
    if version != VERSION {
        return Err(part.error(4, format!("a container of version {version}, expected {VERSION}")));
    }
    if header_bytes < HEADER_BYTES {
        return Err(
            part.error(6, format!("a container's header of {header_bytes} bytes, expected at least {HEADER_BYTES}"))
        );
    }
    let body = part.take(header_bytes, header.u64(8), "a container")?;
    let mut entries = Vec::new();
    let mut at = 0;
    while at < body.bytes.len() as u64 {
        if entries.len() == MAXIMUM_ENTRIES {
            return Err(body.error(at, format!("more entries than the {MAXIMUM_ENTRIES} that a container can have")));
        }
        let (entry, length) = entry(body.take(at, body.bytes.len() as u64 - at, "an entry")?)?;
        entries.push(entry);
        at += length;
    }
    Ok((Container { offset: part.offset, entries }, header_bytes + body.bytes.len() as u64))
}

/// The entry that a part begins with, and its length.
fn entry(part: Part<'_>) -> Result<(Entry<'_>, u64), FatbinError> {
    let fixed = part.take(0, ENTRY_BYTES, "an entry's header")?;
    let header_bytes = u64::from(fixed.u32(4));
    if header_bytes < ENTRY_BYTES {
        return Err(
            part.error(4, format!("an entry's header of {header_bytes} bytes, expected at least {ENTRY_BYTES}"))
        );
    }
    let header = part.take(0, header_bytes, "an entry's header")?;
    let payload = part.take(header_bytes, fixed.u64(8), "an entry's data")?;
    let compressed_bytes = fixed.u32(16);
    if u64::from(compressed_bytes) > payload.bytes.len() as u64 {
        let there = payload.bytes.len();
        return Err(
            part.error(16, format!("{compressed_bytes} compressed bytes, expected no more than the entry's {there}"))
        );
    }
    let (name_at, name_bytes) = (u64::from(fixed.u32(32)), u64::from(fixed.u32(36)));
    let name = match name_bytes {
        0 => None,
        _ => {
            let name = header.take(name_at, name_bytes, "an entry's name")?;
            Some(String::from_utf8_lossy(name.bytes).trim_end_matches('\0').to_owned())
        }
    };
    let entry = Entry {
        offset: part.offset,
        kind: match fixed.u16(0) {
            1 => EntryKind::Ptx,
            2 => EntryKind::Elf,
            other => EntryKind::Other(other),
        },
        architecture: fixed.u32(28),
        version: (fixed.u16(26), fixed.u16(24)),
        flags: fixed.u64(40),
        name,
        payload: payload.bytes,
        payload_offset: payload.offset,
        compressed_bytes,
        uncompressed_bytes: fixed.u64(56),
    };
    Ok((entry, header_bytes + payload.bytes.len() as u64))
}
