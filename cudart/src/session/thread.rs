//! What CUDA keeps for each host thread.

use super::connection::Connection;
use super::process;
use balar_host::CudaError;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::OnceLock;

/// The state of a thread.
#[derive(Default)]
pub struct Thread {
    /// The current device.
    pub device: Cell<u32>,
    /// What `cudaGetLastError` gives.
    last_error: Cell<Option<LastError>>,
    /// Launch configurations (`__cudaPushCallConfiguration`) that no launch has taken yet.
    pub configurations: RefCell<Vec<Configuration>>,
    /// The thread's tunnel, from its first call on.
    pub(super) connection: RefCell<Option<Connection>>,
    /// The thread's own default streams: the simulator's numbers by device.
    pub default_streams: RefCell<BTreeMap<u32, u32>>,
    /// Whether the default stream of the function being called is the thread's own.
    default_stream_of_thread: Cell<bool>,
    /// Stream capture's mode of the thread (`cudaThreadExchangeStreamCaptureMode`).
    pub capture_mode: Cell<i32>,
    /// Contexts of the driver that were made current, the last on top.
    pub contexts: RefCell<Vec<u64>>,
    /// A function of the driver calls one of the runtime.
    in_driver: Cell<bool>,
}

/// A launch configuration, between `<<<...>>>` and the launch.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Blocks.
    pub grid: crate::abi::arguments::Dim3,
    /// Threads of a block.
    pub block: crate::abi::arguments::Dim3,
    /// Dynamic shared memory, bytes.
    pub shared_bytes: usize,
    /// The stream's handle.
    pub stream: usize,
}

#[derive(Clone, Copy)]
struct LastError {
    error: CudaError,
    /// How often devices had been reset when it happened: a reset ends errors that stay.
    resets: u64,
}

thread_local! {
    // No destructor: at the process's end destructors of the program's own objects run after those of the main thread's locals.
    static THREAD: Cell<*const Thread> = const { Cell::new(std::ptr::null()) };
}

/// Calls `use_it` with the state of the calling thread.
pub fn with<T>(use_it: impl FnOnce(&Thread) -> T) -> T {
    let mut pointer = THREAD.get();
    if pointer.is_null() {
        pointer = Box::into_raw(Box::<Thread>::default());
        THREAD.set(pointer);
        end_with_thread(pointer);
    }
    // SAFETY: the pointer is this thread's, from a box that lives until the thread's end.
    use_it(unsafe { &*pointer })
}

/// Has the state dropped when the thread ends. The main thread's stays until the process has ended.
fn end_with_thread(pointer: *const Thread) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for the call; `end` takes what `pthread_setspecific` was given.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key exists. Where it cannot be set the state is never dropped, which harms nobody.
        unsafe { libc::pthread_setspecific(*key, pointer.cast()) };
    }
}

unsafe extern "C" fn end(state: *mut c_void) {
    THREAD.set(std::ptr::null());
    // SAFETY: the pointer that `with` made of a box, which nothing else frees; the thread no longer uses it.
    drop(unsafe { Box::from_raw(state.cast::<Thread>()) });
}

/// Makes `error` what the thread's `cudaGetLastError` gives.
pub fn record_error(error: CudaError) {
    // "Not ready" is an answer, no error.
    if error != CudaError::NotReady {
        with(|thread| {
            // An error that stays is not hidden by the errors that follow from it.
            if !thread.last_error.get().is_some_and(LastError::stays) {
                thread.last_error.set(Some(LastError { error, resets: process::resets() }));
            }
        });
    }
}

/// The thread's last error, which is forgotten if `forget`; one after which the device works no longer stays.
pub fn last_error(forget: bool) -> Result<(), CudaError> {
    with(|thread| {
        let Some(last) = thread.last_error.get() else { return Ok(()) };
        if last.ended_by_reset() {
            thread.last_error.set(None);
            return Ok(());
        }
        if forget && !last.stays() {
            thread.last_error.set(None);
        }
        Err(last.error)
    })
}

impl LastError {
    fn stays(self) -> bool {
        super::device::is_sticky(self.error) && self.resets == process::resets()
    }

    fn ended_by_reset(self) -> bool {
        super::device::is_sticky(self.error) && self.resets != process::resets()
    }
}

/// Makes a call of the runtime within one of the driver, whose errors are no last error.
pub fn keeping_last_error<T>(call: impl FnOnce() -> T) -> T {
    let (error, outside) = with(|thread| (thread.last_error.get(), thread.in_driver.replace(true)));
    let result = call();
    with(|thread| {
        thread.last_error.set(error);
        thread.in_driver.set(outside);
    });
    result
}

/// Whether a function of the driver is what the program has called.
pub fn is_in_driver() -> bool {
    with(|thread| thread.in_driver.get())
}

/// Calls a function whose default stream is the thread's own.
pub fn with_default_stream_of_thread<T>(call: impl FnOnce() -> T) -> T {
    let before = with(|thread| thread.default_stream_of_thread.replace(true));
    let result = call();
    with(|thread| thread.default_stream_of_thread.set(before));
    result
}

/// Whether the default stream of the function being called is the thread's own.
pub fn default_stream_is_of_thread() -> bool {
    with(|thread| thread.default_stream_of_thread.get())
}

/// The thread's current device.
pub fn device() -> u32 {
    with(|thread| thread.device.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own: the last error is the thread's.
    fn in_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().expect("the test's thread ends well");
    }

    #[test]
    fn an_error_is_given_once() {
        in_a_thread(|| {
            record_error(CudaError::InvalidValue);
            record_error(CudaError::NotReady);
            assert_eq!(last_error(false), Err(CudaError::InvalidValue));
            assert_eq!(last_error(true), Err(CudaError::InvalidValue));
            assert_eq!(last_error(true), Ok(()));
        });
    }

    #[test]
    fn an_error_that_ends_the_device_stays() {
        in_a_thread(|| {
            record_error(CudaError::IllegalAddress);
            record_error(CudaError::InvalidValue);
            assert_eq!(last_error(true), Err(CudaError::IllegalAddress));
            assert_eq!(last_error(true), Err(CudaError::IllegalAddress));
        });
    }

    #[test]
    fn the_default_stream_is_the_threads_only_within_such_a_call() {
        assert!(with_default_stream_of_thread(default_stream_is_of_thread));
        assert!(!default_stream_is_of_thread());
    }
}
