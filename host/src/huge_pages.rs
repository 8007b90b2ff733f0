//! Huge pages for large memory: the first access to a small page costs more than writing it.

use std::ptr::NonNull;

/// Bytes of a huge page.
pub const BYTES: usize = 2 << 20;

/// Asks for huge pages below the whole ones among `bytes` bytes from `at` on. Where that is refused, all is slower.
///
/// # Safety
///
/// The mapped part of these bytes must belong to this process.
pub unsafe fn prefer(at: NonNull<u8>, bytes: usize) {
    let skipped = at.align_offset(BYTES);
    let whole = bytes.saturating_sub(skipped) & !(BYTES - 1);
    if whole > 0 {
        let first = at.as_ptr().wrapping_add(skipped).cast();
        // SAFETY: the caller says whose the range is; the advice changes nothing of its contents.
        let _ = unsafe { rustix::mm::madvise(first, whole, rustix::mm::Advice::LinuxHugepage) };
    }
}
