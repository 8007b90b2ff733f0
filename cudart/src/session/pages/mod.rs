//! Pages of the program that become pages of the host window, and its own again.
//!
//! They keep their addresses and every byte, also those that other threads write meanwhile, within the range or beside it: no other
//! thread runs while the bytes are copied and the pages change places.

mod standstill;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, MsyncFlags, ProtFlags};
use standstill::with_others_standing;
use std::ffi::c_void;
use std::os::fd::OwnedFd;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Puts pages of a file where pages of the program are; `window` is where the file's are mapped already, `offset` where they are in
/// the file. They get the bytes of the program's.
///
/// # Errors
///
/// `NOMEM` where the program has no such pages or the system no room; otherwise that the other threads cannot be stopped.
///
/// # Safety
///
/// The program asks for it: the pages are its own memory. Nothing else uses the pages at `window`.
pub unsafe fn replace(first: u64, bytes: u64, window: u64, memory: &OwnedFd, offset: u64) -> Result<(), Errno> {
    // The kernel reports missing pages as an error, without a signal.
    // SAFETY: writes back pages of files, if any, and changes nothing.
    unsafe { rustix::mm::msync(first as *mut c_void, bytes as usize, MsyncFlags::ASYNC)? };
    // SAFETY: the program's pages, which nobody else can write or unmap now, and pages of the window that nobody uses.
    with_others_standing(|| unsafe {
        std::ptr::copy_nonoverlapping(first as *const u8, window as *mut u8, bytes as usize);
        rustix::mm::mmap(
            first as *mut c_void,
            bytes as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            memory,
            offset,
        )
    })?
    .map(|_| ())
}

/// Puts pages of the program's own where it has pages of the window, with the same bytes.
///
/// # Errors
///
/// If the system has no room or the other threads cannot be stopped. Nothing has changed then.
///
/// # Safety
///
/// The pages were put there by [`replace`].
pub unsafe fn restore(first: u64, bytes: u64) -> Result<(), Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new pages.
    let own =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes as usize, protection, MapFlags::PRIVATE)? };
    // SAFETY: pages of this process, which nobody else can write or unmap now, and those just mapped, which take their place.
    let moved = with_others_standing(|| unsafe {
        std::ptr::copy_nonoverlapping(first as *const u8, own.cast::<u8>(), bytes as usize);
        rustix::mm::mremap_fixed(own, bytes as usize, bytes as usize, MremapFlags::MAYMOVE, first as *mut c_void)
    });
    match moved {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) | Err(error) => {
            // SAFETY: nothing refers to the new pages.
            let _ = unsafe { rustix::mm::munmap(own, bytes as usize) };
            Err(error)
        }
    }
}

/// Makes pages of the window zero that the program has just been given: an earlier allocation may have left bytes there. A system gives
/// pages zeroed, and NVIDIA's driver pinned and managed memory as well.
///
/// # Safety
///
/// The pages, as many as hold `bytes` from the page `start` on, are mapped there for writing, and nothing else uses them.
pub unsafe fn clear(start: u64, bytes: u64) {
    let length = bytes.next_multiple_of(PAGE) as usize;
    // SAFETY: the caller's.
    unsafe {
        if rustix::mm::madvise(start as *mut c_void, length, Advice::LinuxRemove).is_err() {
            std::ptr::write_bytes(start as *mut u8, 0, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[test]
    fn no_write_is_lost_while_pages_change_places() {
        const PAGES: u64 = 2;
        const WRITERS: usize = 3;
        let bytes = PAGES * PAGE;
        let file = memfd_create("window", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, bytes).expect("room");
        let (read_write, null) = (ProtFlags::READ | ProtFlags::WRITE, std::ptr::null_mut());
        // SAFETY: new mappings at addresses that the system chooses.
        let (window, own) = unsafe {
            let window =
                rustix::mm::mmap(null, bytes as usize, read_write, MapFlags::SHARED, &file, 0).expect("mapped");
            (window, rustix::mm::mmap_anonymous(null, bytes as usize, read_write, MapFlags::PRIVATE).expect("mapped"))
        };
        // SAFETY: words of the pages, which are there as long as the test lives.
        let words: &[AtomicU64] = unsafe { std::slice::from_raw_parts(own.cast(), bytes as usize / 8) };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (words, stop) = (&words[writer * 300..], &stop);
                    scope.spawn(move || {
                        // A plain read and write of its own word: a page that is replaced between them must not bring back an old value.
                        let mut count = 0;
                        while !stop.load(Ordering::Relaxed) {
                            assert_eq!(words[0].load(Ordering::Relaxed), count, "a write is lost");
                            count += 1;
                            words[0].store(count, Ordering::Relaxed);
                        }
                        count
                    })
                })
                .collect();
            for _ in 0..100 {
                // SAFETY: the pages are the test's, and the window's are used by nobody.
                unsafe {
                    replace(own as u64, bytes, window as u64, &file, 0)
                        .expect("the system lets a process trace another of its user");
                    restore(own as u64, bytes).expect("as above");
                }
            }
            stop.store(true, Ordering::Relaxed);
            for (writer, handle) in writers.into_iter().enumerate() {
                assert_eq!(handle.join().expect("no write is lost"), words[writer * 300].load(Ordering::Relaxed));
            }
        });
        // SAFETY: nobody uses them any longer.
        unsafe {
            rustix::mm::munmap(window, bytes as usize).expect("mapped");
            rustix::mm::munmap(own, bytes as usize).expect("mapped");
        }
    }

    #[test]
    fn memory_that_is_not_there_is_no_signal() {
        let file = memfd_create("window", MemfdFlags::CLOEXEC).expect("a file");
        // SAFETY: nothing is mapped at so low an address.
        assert_eq!(unsafe { replace(PAGE, PAGE, 0, &file, 0) }, Err(Errno::NOMEM));
    }
}
