//! Each host thread's part of CUDA's state.

use crate::session::state::named_ranges::OpenRange;
use crate::session::state::process;
use crate::session::state::tunnel::{Tunnel, tunnels};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

/// The state of a thread.
#[derive(Default)]
pub struct Thread {
    /// The current device.
    pub device: Cell<u32>,
    /// Launch configurations (`__cudaPushCallConfiguration`) that no launch has taken yet.
    pub configurations: RefCell<Vec<PushedConfiguration>>,
    /// The thread's tunnel.
    pub(in crate::session) tunnel: Arc<Tunnel>,
    /// Whether it uses its tunnel.
    is_in_call: Cell<bool>,
    /// The number by which others find its tunnel.
    shown_as: Cell<Option<u32>>,
    /// The thread's own default streams: the simulator's numbers by device.
    pub default_streams: RefCell<BTreeMap<u32, u32>>,
    /// Whether the default stream of the function being called is the thread's own.
    default_stream_of_thread: Cell<bool>,
    /// Stream capture's mode of the thread (`cudaThreadExchangeStreamCaptureMode`).
    pub capture_mode: Cell<i32>,
    /// Named ranges that it has begun and not ended, by their domains, the last on top.
    pub pushed_ranges: RefCell<BTreeMap<u64, Vec<OpenRange>>>,
    /// Contexts of the driver that were made current, the last on top.
    pub contexts: RefCell<Vec<u64>>,
}

/// A thread uses its tunnel as long as this lives.
pub(in crate::session) struct InCall<'a>(&'a Cell<bool>);

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Thread {
    /// Begins to use the tunnel, unless it is in use.
    pub(in crate::session) fn begin_call(&self) -> Option<InCall<'_>> {
        (!self.is_in_call.replace(true)).then_some(InCall(&self.is_in_call))
    }

    /// Has it made a call of CUDA?
    pub(in crate::session) fn has_tunnel(&self) -> bool {
        self.shown_as.get().is_some()
    }

    /// Lets others find the tunnel.
    pub(in crate::session) fn show_tunnel(&self) {
        let number = own_number();
        self.shown_as.set(Some(number));
        tunnels().insert(number, Arc::clone(&self.tunnel));
    }
}

/// A launch configuration, between `<<<...>>>` and the launch.
#[derive(Clone, Copy, Debug)]
pub struct PushedConfiguration {
    /// Blocks.
    pub grid: crate::abi::arguments::Dim3,
    /// Threads of a block.
    pub block: crate::abi::arguments::Dim3,
    /// Dynamic shared memory, bytes.
    pub shared_bytes: usize,
    /// The stream's handle.
    pub stream: usize,
}

thread_local! {
    // No destructor: at the process's end destructors of the program's own objects run after those of the main thread's locals.
    static THREAD: Cell<*const Thread> = const { Cell::new(std::ptr::null()) };
}

/// Calls `use_it` with the state of the calling thread.
pub fn with<T>(use_it: impl FnOnce(&Thread) -> T) -> T {
    // SAFETY: the pointer is this thread's, from a box that lives until the thread's end.
    use_it(unsafe { &*state() })
}

/// The state of the calling thread, which is made at its first call.
fn state() -> *const Thread {
    let mut pointer = THREAD.get();
    if pointer.is_null() {
        pointer = Box::into_raw(Box::<Thread>::default());
        THREAD.set(pointer);
        end_with_thread(pointer);
    }
    pointer
}

/// Arranges that the state is dropped when the thread ends. The main thread's state stays until the process has ended.
fn end_with_thread(pointer: *const Thread) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for the call; `end` takes what `pthread_setspecific` was given.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key exists. If it cannot be set, the state is never dropped, which is harmless.
        unsafe { libc::pthread_setspecific(*key, pointer.cast()) };
    }
}

unsafe extern "C" fn end(state: *mut c_void) {
    THREAD.set(std::ptr::null());
    // SAFETY: the pointer that `with` made of a box, which nothing else frees; the thread no longer uses it.
    let thread = unsafe { Box::from_raw(state.cast::<Thread>()) };
    // In a forked child another thread of its parent may hold the lock for ever.
    if let Some(number) = thread.shown_as.get().filter(|_| !process::is_forked()) {
        tunnels().remove(&number);
    }
    drop(thread);
}

/// Calls a function whose default stream is the thread's own.
pub fn with_default_stream_of_thread(call: &mut dyn FnMut() -> c_int) -> c_int {
    let before = with(|thread| thread.default_stream_of_thread.replace(true));
    let result = call();
    with(|thread| thread.default_stream_of_thread.set(before));
    result
}

/// Whether the default stream of the function being called is the thread's own.
pub fn default_stream_is_of_thread() -> bool {
    with(|thread| thread.default_stream_of_thread.get())
}

/// The kernel's number of the calling thread.
pub fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// The thread's current device.
pub fn device() -> u32 {
    with(|thread| thread.device.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_stream_is_the_threads_only_within_such_a_call() {
        assert_eq!(with_default_stream_of_thread(&mut || c_int::from(default_stream_is_of_thread())), 1);
        assert!(!default_stream_is_of_thread());
    }
}
