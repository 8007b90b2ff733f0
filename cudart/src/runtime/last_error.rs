//! The last error of each thread (`cudaGetLastError`). Functions of the runtime set it; those of the driver leave it as it is.

use crate::session::devices::device;
use crate::session::state::process;
use balar_host::CudaError;
use std::cell::Cell;

#[derive(Clone, Copy)]
struct LastError {
    error: CudaError,
    /// How often devices had been reset when it happened: a reset ends errors that stay.
    resets: u64,
}

thread_local! {
    // Has no destructor: objects of the program that end late can still call CUDA.
    static LAST: Cell<Option<LastError>> = const { Cell::new(None) };
}

/// Makes `error` the thread's last error.
pub fn record(error: CudaError) {
    // "Not ready" is an answer and no error. An error that stays is not hidden by the errors that follow from it.
    if error != CudaError::NotReady && !LAST.get().is_some_and(LastError::stays) {
        LAST.set(Some(LastError { error, resets: process::resets() }));
    }
}

/// The thread's last error, which is forgotten if `forget`, unless the device no longer works after it.
pub fn get(forget: bool) -> Result<(), CudaError> {
    let Some(last) = LAST.get() else { return Ok(()) };
    if last.ended_by_reset() {
        LAST.set(None);
        return Ok(());
    }
    if forget && !last.stays() {
        LAST.set(None);
    }
    Err(last.error)
}

impl LastError {
    fn stays(self) -> bool {
        device::is_sticky(self.error) && self.resets == process::resets()
    }

    fn ended_by_reset(self) -> bool {
        device::is_sticky(self.error) && self.resets != process::resets()
    }
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
            record(CudaError::InvalidValue);
            record(CudaError::NotReady);
            assert_eq!(get(false), Err(CudaError::InvalidValue));
            assert_eq!(get(true), Err(CudaError::InvalidValue));
            assert_eq!(get(true), Ok(()));
        });
    }

    #[test]
    fn an_error_that_ends_the_device_stays() {
        in_a_thread(|| {
            record(CudaError::IllegalAddress);
            record(CudaError::InvalidValue);
            assert_eq!(get(true), Err(CudaError::IllegalAddress));
            assert_eq!(get(true), Err(CudaError::IllegalAddress));
        });
    }
}
