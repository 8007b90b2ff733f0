//! Stands in for pages of the operating system where Miri interprets the code, which knows none: smaller memories from the heap.

use rustix::fd::OwnedFd;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

/// Bytes of the host window.
pub(super) const WINDOW_BYTES: u64 = 64 << 10;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

/// A slot with room for reserved addresses, in slots without it.
pub(super) const SLOTS_WITH_ROOM: u64 = 2;

fn layout(bytes: usize) -> io::Result<Layout> {
    Layout::from_size_align(bytes, 4096).map_err(io::Error::other)
}

/// `bytes` for reading and writing, all zero.
pub(super) fn map(bytes: usize) -> io::Result<NonNull<u8>> {
    let layout = layout(bytes.max(1))?;
    // SAFETY: the layout is not of zero bytes.
    NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Bytes for the GPUs and a host window behind them. No file backs the window.
pub(super) fn map_with_window(devices: usize, window: usize) -> io::Result<(NonNull<u8>, Option<OwnedFd>)> {
    Ok((map(devices + window)?, None))
}

/// Nothing is to be asked for here.
///
/// # Safety
///
/// None is needed; the pages of a system need it.
pub(super) unsafe fn expect_writes(_: NonNull<u8>, _: usize) {}

/// Nothing is given back here.
///
/// # Safety
///
/// None is needed; the pages of a system need it.
pub(super) unsafe fn give_back(_: NonNull<u8>, _: usize) -> bool {
    false
}

/// Ends a mapping.
///
/// # Safety
///
/// The range was made by [`map`] or [`map_with_window`], and nothing refers to it any more.
pub(super) unsafe fn unmap(first: NonNull<u8>, length: usize) {
    if let Ok(layout) = layout(length.max(1)) {
        // SAFETY: the caller's promise; `map` used the same layout.
        unsafe { dealloc(first.as_ptr(), layout) };
    }
}
