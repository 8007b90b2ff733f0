//! Pages of memory that both ends of a connection map: a ring that bulk data goes through.

use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Pages of a connection's ring.
pub const PAGES: u64 = 1024;
/// Bytes of a page, unless the user says otherwise: as much as a page of the operating system.
pub const DEFAULT_PAGE_BYTES: u64 = 4096;
/// Sizes of a page that are accepted: powers of two in this range.
pub const PAGE_BYTES: std::ops::RangeInclusive<u64> = 4096..=4 << 20;

/// The ring of a connection.
///
/// The other end may write it at any time, whatever it promised: bytes are copied in and out, never looked at in place.
#[derive(Debug)]
pub struct SharedPages {
    map: MmapRaw,
    page_bytes: u64,
}

impl SharedPages {
    /// A new ring, and the file that the other end maps. It vanishes with the last process that has it.
    ///
    /// # Errors
    ///
    /// Where the system has no memory or descriptors for it.
    pub fn create(page_bytes: u64) -> io::Result<(SharedPages, OwnedFd)> {
        let file = rustix::fs::memfd_create("balar-actors-tunnel", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, page_bytes * PAGES)?;
        // No process can truncate the file while it is mapped.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((SharedPages::map(file.as_fd(), page_bytes, PAGES)?, file))
    }

    /// Maps a ring that the other end has made.
    ///
    /// # Errors
    ///
    /// Where the file is shorter than it should be, or cannot be mapped.
    pub fn map(file: BorrowedFd<'_>, page_bytes: u64, pages: u64) -> io::Result<SharedPages> {
        let bytes = page_bytes.checked_mul(pages).filter(|bytes| *bytes > 0 && pages >= 4);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(io::ErrorKind::InvalidInput)?;
        let length = rustix::fs::fstat(file)?.st_size;
        if (length as u64) < bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared pages are shorter than announced"));
        }
        let map = memmap2::MmapOptions::new().len(bytes).map_raw(&file)?;
        Ok(SharedPages { map, page_bytes })
    }

    /// Bytes of the ring.
    pub fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes that are moved at a time: whole pages, an eighth of the ring, so that both ends work at the same time.
    pub fn chunk(&self) -> u64 {
        (self.len() / 8 / self.page_bytes).max(1) * self.page_bytes
    }

    /// Copies bytes into the ring; `position` counts from the start of the transfer.
    pub fn write(&self, position: u64, mut bytes: &[u8]) {
        let mut start = (position % self.len()) as usize;
        while !bytes.is_empty() {
            let now = bytes.len().min(self.map.len() - start);
            // SAFETY: `start + now` is within the map, whose file cannot shrink; the ring is nobody's Rust object.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(start), now) };
            bytes = &bytes[now..];
            start = 0;
        }
    }

    /// Copies bytes out of the ring.
    ///
    /// # Safety
    ///
    /// `destination` is valid for writes of `bytes` bytes.
    pub unsafe fn read(&self, position: u64, mut destination: *mut u8, mut bytes: usize) {
        let mut start = (position % self.len()) as usize;
        while bytes > 0 {
            let now = bytes.min(self.map.len() - start);
            // SAFETY: as in `write`; the destination is the caller's promise.
            unsafe {
                std::ptr::copy_nonoverlapping(self.map.as_ptr().add(start), destination, now);
                destination = destination.add(now);
            }
            bytes -= now;
            start = 0;
        }
    }

    /// Bytes in the ring, in place, up to its end at most. For the program's side: the simulator leaves them alone until it
    /// is told that they have been taken.
    pub fn slice(&self, position: u64, bytes: usize) -> &[u8] {
        let start = (position % self.len()) as usize;
        let bytes = bytes.min(self.map.len() - start);
        // SAFETY: within the map, which is initialised memory of a file that cannot shrink.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(start), bytes) }
    }
}
