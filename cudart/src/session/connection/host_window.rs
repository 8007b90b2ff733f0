//! The host window: pinned and managed memory, mapped where devices know it.

use crate::session::state::process;
use balar_host::memory::{BASE, HOST_BASE, HOST_BYTES};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The host window is there.
static WINDOW: AtomicBool = AtomicBool::new(false);

/// Maps the host window where devices know it. Only pages that are used take memory.
pub fn map(memory: Option<&OwnedFd>) {
    let Some(memory) = memory else { return };
    // SAFETY: a range that nothing else is mapped at: the kernel refuses it otherwise.
    let mapped = unsafe {
        rustix::mm::mmap(
            HOST_BASE as *mut c_void,
            HOST_BYTES as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED_NOREPLACE | MapFlags::NORESERVE,
            memory,
            HOST_BASE - BASE,
        )
    };
    match mapped {
        Ok(_) => {
            // Otherwise a core dump would have the size of the window.
            // SAFETY: the mapping just made.
            let _ = unsafe {
                rustix::mm::madvise(HOST_BASE as *mut c_void, HOST_BYTES as usize, rustix::mm::Advice::LinuxDontDump)
            };
            WINDOW.store(true, Ordering::Relaxed);
        }
        Err(error) => process::say(&format!(
            "no pinned and managed memory: {HOST_BYTES} bytes at {HOST_BASE:#x} cannot be mapped: {error}"
        )),
    }
}

/// Is it there?
pub fn is_mapped() -> bool {
    WINDOW.load(Ordering::Relaxed)
}
