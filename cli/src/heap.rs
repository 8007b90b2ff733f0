//! Memory of the process: huge pages below the heap.
//!
//! The state of a simulated node is larger than the processor's caches and looked at all over, so that the way from an address to its
//! page costs as much as the rest of a cache miss. With pages of 2 MiB, streaming through memory simulates 1.1 times as fast.

/// Places the C library's heap of this process on huge pages. Must be called before threads are started. If the system refuses, the
/// simulation is slower and otherwise the same.
pub fn prefer_huge_pages() {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    glibc::prefer_huge_pages();
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod glibc {
    use balar_host::huge_pages;
    use std::ptr::NonNull;

    /// Bytes by which the heap grows: address space alone, memory comes when it is used.
    const STEP: usize = 256 << 20;
    /// A block that is larger has a mapping of its own: the most that the C library takes for this.
    const LARGEST_IN_HEAP: usize = 32 << 20;

    pub fn prefer_huge_pages() {
        let options = [
            // One heap for all threads, which hardly allocate while they simulate.
            (libc::M_ARENA_MAX, 1),
            (libc::M_MMAP_THRESHOLD, LARGEST_IN_HEAP),
            (libc::M_TRIM_THRESHOLD, STEP),
            (libc::M_TOP_PAD, STEP),
        ];
        // SAFETY: these are parameters of the allocator, each with a value in its range.
        let set = options.iter().all(|&(option, value)| unsafe { libc::mallopt(option, value as libc::c_int) } == 1);
        if !set {
            return;
        }
        // The first block that does not fit the present heap makes it grow by a step.
        drop(std::hint::black_box(Vec::<u8>::with_capacity(huge_pages::BYTES)));
        // SAFETY: this only asks where the heap ends.
        let end = unsafe { libc::sbrk(0) }.cast::<u8>();
        if let Some(first) = NonNull::new(end.wrapping_sub(STEP)) {
            // SAFETY: the heap is this process's, and what lies before it.
            unsafe { huge_pages::prefer(first, STEP) };
        }
    }
}
