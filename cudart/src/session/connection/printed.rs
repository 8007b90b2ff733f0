//! Text that kernels print.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

/// Writes the text where the program's own `printf` writes, so that both stay in order.
pub fn show(text: &[u8], error: &[u8]) {
    // SAFETY: the C library's streams, which it locks itself; the slices are valid for reading.
    unsafe {
        if !text.is_empty() {
            libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), stdout);
        }
        if !error.is_empty() {
            libc::fwrite(error.as_ptr().cast::<c_void>(), 1, error.len(), stderr);
        }
    }
}

/// Text, and text for the standard error stream, that has come where the C library must not be called.
static KEPT: Mutex<(Vec<u8>, Vec<u8>)> = Mutex::new((Vec::new(), Vec::new()));
static IS_KEPT: AtomicBool = AtomicBool::new(false);

/// Keeps text until the next call of any thread shows it.
pub fn keep(text: Vec<u8>, error: Vec<u8>) {
    if !text.is_empty() || !error.is_empty() {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.extend(text);
        kept.1.extend(error);
        IS_KEPT.store(true, Ordering::Release);
    }
}

/// As [`show`], after the kept text.
pub fn show_after_kept(text: &[u8], error: &[u8]) {
    if IS_KEPT.swap(false, Ordering::Acquire) {
        let (text, error) = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
        show(&text, &error);
    }
    show(text, error);
}
