//! The watcher of the program's own accesses, which therefore hears of each call.

use balar_host::{Call, CallResult, CudaError};
use std::sync::OnceLock;

/// Hears of every call of the program, and of every function of the program that a stream has come to.
pub trait CallWatcher: Sync {
    /// A call begins.
    fn begins(&self, call: &Call) -> Before;

    /// It has returned.
    fn returned(&self, device: u32, call: &Call, result: &Result<CallResult, CudaError>, before: Before);

    /// A stream has come to a function of the program, which is about to be called.
    fn function_begins(&self);
}

/// The watcher's knowledge before a call.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Calls that have given devices work.
    pub given: u64,
    /// Managed memory that the call frees, whose accesses are no longer seen: its place may be given away before the call has returned.
    pub freed: Vec<WatchedMemory>,
}

/// Managed memory whose accesses are seen.
#[derive(Clone, Copy, Debug)]
pub struct WatchedMemory {
    /// First address.
    pub start: u64,
    /// The first address after its pages.
    pub end: u64,
    /// The program's number of the device that was current.
    pub device: u32,
}

static WATCHER: OnceLock<&'static dyn CallWatcher> = OnceLock::new();

/// Installs the watcher: from now on it hears of calls.
pub fn install(watcher: &'static dyn CallWatcher) {
    // Whoever came first stays.
    let _ = WATCHER.set(watcher);
}

/// A call that is not a touch begins.
pub(super) fn begins(call: &Call) -> Before {
    WATCHER.get().map(|watcher| watcher.begins(call)).unwrap_or_default()
}

/// It has returned.
pub(super) fn returned(device: u32, call: &Call, result: &Result<CallResult, CudaError>, before: Before) {
    if let Some(watcher) = WATCHER.get() {
        watcher.returned(device, call, result, before);
    }
}

/// A stream has come to a function of the program, which is about to be called.
pub(super) fn function_begins() {
    if let Some(watcher) = WATCHER.get() {
        watcher.function_begins();
    }
}
