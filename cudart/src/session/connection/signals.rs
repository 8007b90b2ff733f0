//! Threads of the library, which handle no signals of the program.

/// Calls `spawn` with all signals blocked, which a thread that it starts inherits.
pub(in crate::session) fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid for the calls; any bytes are a set.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}
