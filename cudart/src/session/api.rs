//! How functions of CUDA become exported C functions. Each API has a macro of its own over [`cuda_function!`](crate::cuda_function), which
//! says how an error becomes a code there.

use crate::session::state::process;
use balar_host::CudaError;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of an API function.
pub type Outcome = Result<(), CudaError>;

/// Defines one API function and exports it as `balar_NAME`.
///
/// - `RUNNER, fn`: the body returns an [`Outcome`], of which the function `RUNNER` makes the C function's value.
/// - `RUNNER, stream fn`: also exports `balar_NAME_ptsz`, for which the default stream is the thread's own
///   ([`stream::number`](super::order::stream::number) knows which of the two was called).
/// - `raw fn ... -> T`: the body returns the value itself; a panic returns [`Fallback::FALLBACK`].
///
/// Names that mean different things in different versions end in `_11`, `_12` or `_13`; a library of version V takes the name
/// with its suffix if there is one.
#[macro_export]
macro_rules! cuda_function {
    ($runner:path, $(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nThe arguments are as CUDA wants them for this function.")]
        #[expect(non_snake_case, reason = "CUDA's names")]
        #[unsafe(export_name = concat!("balar_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            $runner(&mut move || -> $crate::session::api::Outcome { $body })
        }
    };
    ($runner:path, $(#[$meta:meta])* stream fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $crate::cuda_function! { $runner, $(#[$meta])* fn $name($($argument: $type),*) $body }
        const _: () = {
            #[unsafe(export_name = concat!("balar_", stringify!($name), "_ptsz"))]
            unsafe extern "C" fn of_thread($($argument: $type),*) -> ::std::ffi::c_int {
                // SAFETY: the contract is the caller's, as in the plain form.
                $crate::session::state::thread::with_default_stream_of_thread(&mut || unsafe { $name($($argument),*) })
            }
        };
    };
    ($(#[$meta:meta])* raw fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nThe arguments are as CUDA wants them for this function.")]
        #[expect(non_snake_case, reason = "CUDA's names")]
        #[unsafe(export_name = concat!("balar_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            $crate::session::api::raw(move || -> $result { $body })
        }
    };
}

/// An outcome as C has it. Both APIs have the same number for the same error.
pub fn code(outcome: Outcome) -> c_int {
    outcome.map_or_else(|error| error.code() as c_int, |()| 0)
}

/// The body of an API function. The code around it is compiled once, not for each of them.
pub type ApiBody<'a> = &'a mut dyn FnMut() -> Outcome;

/// Keeps the thread from being cancelled (`pthread_cancel`) for as long as it lives: a thread that is cancelled in the middle of a call
/// would unwind through code that cannot be unwound, which ends the process. It is cancelled at its next cancellation point after the call.
struct Uncancelled {
    before: c_int,
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` of Linux.
const CANCEL_DISABLE: c_int = 1;

impl Uncancelled {
    fn new() -> Uncancelled {
        let mut before = CANCEL_DISABLE;
        // SAFETY: it writes the state of before to a place of this function, and does nothing else.
        unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut before) };
        Uncancelled { before }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: as above. It is no cancellation point itself, and the state is one that the system gave.
        unsafe { pthread_setcancelstate(self.before, &raw mut disabled) };
    }
}

/// Runs a function's body, unless the process is in a state in which CUDA refuses all calls. A panic becomes an error.
pub fn contained(body: ApiBody) -> Outcome {
    let _uncancelled = Uncancelled::new();
    process::usable()?;
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(CudaError::Unknown))
}

/// Runs the body of a function whose value is no error code.
pub fn raw<T: Fallback>(body: impl FnOnce() -> T) -> T {
    let _uncancelled = Uncancelled::new();
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(T::FALLBACK)
}

/// The result of a function that cannot return its value.
pub trait Fallback {
    /// The value.
    const FALLBACK: Self;
}

impl Fallback for () {
    const FALLBACK: Self = ();
}

/// A level of ranges: none.
impl Fallback for c_int {
    const FALLBACK: Self = -1;
}

impl Fallback for u64 {
    const FALLBACK: Self = 0;
}

impl Fallback for c_char {
    const FALLBACK: Self = 0;
}

impl Fallback for *const c_char {
    const FALLBACK: Self = std::ptr::null();
}

impl Fallback for *mut *mut c_void {
    const FALLBACK: Self = std::ptr::null_mut();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    unsafe extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    }

    /// A thread of C: calls, sleeping in it, and ends. It has no cancellation point but those within the call.
    extern "C" fn call_and_end(state: *mut c_void) -> *mut c_void {
        // SAFETY: the test waits for this thread.
        let state = unsafe { &*state.cast::<AtomicU32>() };
        let outcome = contained(&mut || {
            state.store(1, Ordering::Release);
            // A cancellation point: without the guard, the process would end here.
            while state.load(Ordering::Acquire) == 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        state.store(if outcome.is_ok() { 3 } else { 4 }, Ordering::Release);
        std::ptr::null_mut()
    }

    #[test]
    fn a_thread_that_is_cancelled_in_a_call_finishes_the_call() {
        let state = AtomicU32::new(0);
        let mut thread = 0;
        let place = (&raw const state).cast_mut().cast();
        // SAFETY: the thread gets what it takes, which lives until it has been waited for.
        let made = unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), call_and_end, place) };
        assert_eq!(made, 0);
        while state.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        // SAFETY: it has not been waited for.
        assert_eq!(unsafe { pthread_cancel(thread) }, 0);
        state.store(2, Ordering::Release);
        // SAFETY: once.
        assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
        assert_eq!(state.load(Ordering::Acquire), 3);
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let message = "a panic of a test";
        assert_eq!(code(contained(&mut || panic!("{message}"))), 999);
        assert_eq!(code(contained(&mut || Err(CudaError::InvalidPitchValue))), 12);
        assert_eq!(code(contained(&mut || Ok(()))), 0);
        let text: *const c_char = raw(|| panic!("{message}"));
        assert!(text.is_null());
    }
}
