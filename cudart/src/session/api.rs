//! How functions of CUDA are written: [`cuda_api!`](crate::cuda_api) makes exported C functions of bodies that return `Result<(), CudaError>`.

use super::{process, thread};
use balar_host::CudaError;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an API function gives.
pub type Outcome = Result<(), CudaError>;

/// Defines API functions and exports each as `balar_NAME`.
///
/// - `fn`: a runtime function. The body's error becomes the thread's last error and the function's value.
/// - `stream fn`: also exports `balar_NAME_ptsz`, for which the default stream is the thread's own
///   ([`stream::number`](super::stream::number) knows which of the two was called).
/// - `quiet fn`, `quiet stream fn`: the last error stays as it is: functions about errors, and those of the driver.
/// - `raw fn ... -> T`: the body gives the value; a panic gives [`Fallback::FALLBACK`].
///
/// Names that mean different things in different versions end in `_11`, `_12` or `_13`; a library of version V takes the name
/// with its suffix if there is one.
#[macro_export]
macro_rules! cuda_api {
    () => {};
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { @one recorded, [$(#[$meta])*], $name, [$($argument: $type),*], $body }
        $crate::cuda_api! { $($rest)* }
    };
    ($(#[$meta:meta])* stream fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { @two recorded, [$(#[$meta])*], $name, [$($argument: $type),*], $body }
        $crate::cuda_api! { $($rest)* }
    };
    ($(#[$meta:meta])* quiet fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { @one quiet, [$(#[$meta])*], $name, [$($argument: $type),*], $body }
        $crate::cuda_api! { $($rest)* }
    };
    ($(#[$meta:meta])* quiet stream fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { @two quiet, [$(#[$meta])*], $name, [$($argument: $type),*], $body }
        $crate::cuda_api! { $($rest)* }
    };
    ($(#[$meta:meta])* raw fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nThe arguments are what CUDA wants for this function.")]
        #[expect(non_snake_case, reason = "CUDA's names")]
        #[unsafe(export_name = concat!("balar_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            $crate::session::api::raw(move || -> $result { $body })
        }
        $crate::cuda_api! { $($rest)* }
    };
    (@one $form:ident, [$(#[$meta:meta])*], $name:ident, [$($argument:ident: $type:ty),*], $body:block) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nThe arguments are what CUDA wants for this function.")]
        #[expect(non_snake_case, reason = "CUDA's names")]
        #[unsafe(export_name = concat!("balar_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            $crate::session::api::$form(move || -> $crate::session::api::Outcome { $body })
        }
    };
    (@two $form:ident, [$(#[$meta:meta])*], $name:ident, [$($argument:ident: $type:ty),*], $body:block) => {
        $crate::cuda_api! { @one $form, [$(#[$meta])*], $name, [$($argument: $type),*], $body }
        const _: () = {
            #[unsafe(export_name = concat!("balar_", stringify!($name), "_ptsz"))]
            unsafe extern "C" fn of_thread($($argument: $type),*) -> ::std::ffi::c_int {
                // SAFETY: the contract is the caller's, as in the plain form.
                $crate::session::thread::with_default_stream_of_thread(move || unsafe { $name($($argument),*) })
            }
        };
    };
}

/// The code of an outcome as C has it.
fn code(outcome: Outcome) -> c_int {
    outcome.map_or_else(|error| error.code() as c_int, |()| 0)
}

/// Runs a function's body where the process is in a state for it.
fn contained(body: impl FnOnce() -> Outcome) -> Outcome {
    process::usable()?;
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(CudaError::Unknown))
}

/// Runs the body of a function that sets the last error.
pub fn recorded(body: impl FnOnce() -> Outcome) -> c_int {
    if !thread::is_in_driver() {
        super::context::use_runtime();
    }
    let outcome = contained(body);
    if let Err(error) = outcome {
        thread::record_error(error);
    }
    code(outcome)
}

/// Runs the body of a function that leaves the last error as it is.
pub fn quiet(body: impl FnOnce() -> Outcome) -> c_int {
    code(contained(body))
}

/// Runs the body of a function whose value is no error code.
pub fn raw<T: Fallback>(body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(T::FALLBACK)
}

/// What a function gives that cannot give its value.
pub trait Fallback {
    /// The value.
    const FALLBACK: Self;
}

impl Fallback for () {
    const FALLBACK: Self = ();
}

impl Fallback for c_char {
    const FALLBACK: Self = 0;
}

impl Fallback for c_int {
    const FALLBACK: Self = CUDA_ERROR_UNKNOWN;
}

impl Fallback for u32 {
    const FALLBACK: Self = CUDA_ERROR_UNKNOWN as u32;
}

impl Fallback for *const c_char {
    const FALLBACK: Self = std::ptr::null();
}

impl Fallback for *mut c_void {
    const FALLBACK: Self = std::ptr::null_mut();
}

impl Fallback for *mut *mut c_void {
    const FALLBACK: Self = std::ptr::null_mut();
}

const CUDA_ERROR_UNKNOWN: c_int = 999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let message = "a panic of a test";
        assert_eq!(quiet(|| panic!("{message}")), 999);
        assert_eq!(quiet(|| Err(CudaError::InvalidPitchValue)), 12);
        assert_eq!(quiet(|| Ok(())), 0);
        let text: *const c_char = raw(|| panic!("{message}"));
        assert!(text.is_null());
    }
}
