//! Pages of the operating system.

use balar_host::huge_pages;
use balar_host::memory::{BASE, END, HOST_BASE, HOST_BYTES};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::io;
use std::ptr::{NonNull, null_mut};

/// Bytes of the host window.
pub(super) const WINDOW_BYTES: u64 = HOST_BYTES;

/// A slot with room for reserved addresses, in slots without it. Programs reserve more than a GPU has, several times.
pub(super) const SLOTS_WITH_ROOM: u64 = 8;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

/// Maps `bytes` for reading and writing, all zero.
pub(super) fn map(bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address that the system chooses.
    let at = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, private())? };
    NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// Maps `devices` bytes for the GPUs and a host window behind them. Gives the file behind the window, from `HOST_BASE - BASE` on.
pub(super) fn map_with_window(devices: usize, window: usize) -> io::Result<(NonNull<u8>, Option<OwnedFd>)> {
    let length = devices.checked_add(window).ok_or_else(|| io::Error::other("larger than the address space"))?;
    let file = memfd_create("balar-actors", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, END - BASE)?;
    // A program has the file, too: without its pages under our mapping, our next access would be our end.
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let first = map(length).or_else(|_| map_backed(length, devices))?;
    // SAFETY: the range is the end of the mapping just made, which nothing refers to yet.
    let shared = unsafe {
        let at = first.as_ptr().add(devices);
        mmap(at.cast(), window, ProtFlags::READ | ProtFlags::WRITE, shared(), &file, HOST_BASE - BASE)
    };
    if let Err(error) = shared {
        // SAFETY: nothing refers to the mapping.
        unsafe { unmap(first, length) };
        return Err(error.into());
    }
    Ok((first, Some(file)))
}

/// Maps `length` bytes where the system promises no memory that it does not have (`vm.overcommit_memory` 2). The first `devices` bytes can
/// be used: a file is behind them, which the system does not count. No program gets that file.
fn map_backed(length: usize, devices: usize) -> io::Result<NonNull<u8>> {
    let file = memfd_create("balar-actors-devices", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, devices as u64)?;
    // SAFETY: new mappings at addresses that the system chooses; the second lies within the first, which nothing refers to yet.
    let at = unsafe {
        let at = mmap_anonymous(null_mut(), length, ProtFlags::empty(), private())?;
        if let Err(error) = mmap(at, devices, ProtFlags::READ | ProtFlags::WRITE, shared(), &file, 0) {
            // Nothing is lost where the range cannot be given back.
            let _ = munmap(at, length);
            return Err(error.into());
        }
        at
    };
    NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// Asks for huge pages below the whole ones among `bytes` bytes from `at` on.
///
/// # Safety
///
/// The bytes are part of a mapping.
pub(super) unsafe fn expect_writes(at: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller says.
    unsafe { huge_pages::prefer(at, bytes) };
}

/// Gives the memory of whole pages back, which are zero from now on; false where the system does not do that.
///
/// # Safety
///
/// The pages are part of a mapping, and nothing refers to their bytes but as [`SharedBytes`](super::SharedBytes).
pub(super) unsafe fn give_back(at: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: as the caller says. Of a file its pages go, too; what no file is behind is zero when it is next read.
    unsafe {
        match madvise(at.as_ptr().cast(), bytes, Advice::LinuxRemove) {
            Ok(()) => true,
            Err(Errno::INVAL) => madvise(at.as_ptr().cast(), bytes, Advice::LinuxDontNeed).is_ok(),
            Err(_) => false,
        }
    }
}

fn private() -> MapFlags {
    MapFlags::PRIVATE | MapFlags::NORESERVE
}

fn shared() -> MapFlags {
    MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED
}

/// Ends a mapping.
///
/// # Safety
///
/// The range was mapped by [`map`] or [`map_with_window`], and nothing refers to it any more.
pub(super) unsafe fn unmap(first: NonNull<u8>, length: usize) {
    // SAFETY: the caller's promise.
    let unmapped = unsafe { munmap(first.as_ptr().cast(), length) };
    debug_assert!(unmapped.is_ok(), "a mapping of ours can be ended");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_changes_the_length_of_what_programs_map() {
        let (devices, window) = (1 << 20, 1 << 20);
        let (first, file) = map_with_window(devices, window).expect("mapped");
        let file = file.expect("a file");
        for length in [0, HOST_BASE - BASE, END - BASE + 4096] {
            assert_eq!(ftruncate(&file, length), Err(rustix::io::Errno::PERM), "{length}");
        }
        // SAFETY: nothing refers to the mapping.
        unsafe { unmap(first, devices + window) };
    }
}
