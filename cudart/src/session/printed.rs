//! What kernels print.

use std::ffi::c_void;

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
