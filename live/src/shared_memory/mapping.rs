//! A shared-memory object, mapped as words.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::sync::atomic::AtomicU64;

/// Bytes of a word.
pub const WORD: usize = 8;

/// A mapping of the whole of an object.
#[derive(Debug)]
pub struct Words(MmapRaw);

impl Words {
    /// Maps the first `bytes` of an object, to read and write, or to read alone.
    ///
    /// # Errors
    ///
    /// If the object is shorter, or the system refuses.
    pub fn map(file: &File, bytes: usize, is_writer: bool) -> io::Result<Words> {
        if bytes < WORD || file.metadata()?.len() < bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared memory is shorter than it says"));
        }
        let mut options = MmapOptions::new();
        options.len(bytes);
        Ok(Words(if is_writer { options.map_raw(file)? } else { options.map_raw_read_only(file)? }))
    }

    /// Its words. A reader, which has them mapped to read alone, must not store.
    pub fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins at a page, is as long as this says, lives as long as `self`, and its object never shrinks. Any bits
        // are a number. Other processes write to it at the same time; every access of ours is atomic, and no other reference exists.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / WORD) }
    }
}
