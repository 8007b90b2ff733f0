//! The functions of CUDA that this library does not implement: they say so, are counted in the results of the run, and return an error.

use crate::runtime::last_error;
use crate::session::connection;
use balar_host::{Call, CudaError};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// The functions that have been named on stderr.
static NAMED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Where the stub of a function without an implementation jumps to, with its name in place of the function's arguments.
///
/// # Safety
///
/// `name` points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn balar_unimplemented(name: *const c_char) -> c_int {
    // SAFETY: the caller, a stub, passes a string of its own read-only data.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if is_new(&name) {
        // The line is lost if nobody reads standard error.
        let _ = writeln!(std::io::stderr(), "{}", message(&name));
    }
    // Its error is the same where there is no simulator to count it.
    let _ = connection::call(&Call::NotImplemented { function: name.to_string() });
    if is_of_the_runtime(&name) {
        last_error::record(CudaError::NotSupported);
    }
    CudaError::NotSupported.code() as c_int
}

fn is_new(name: &str) -> bool {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned())
}

fn message(name: &str) -> String {
    let error = if is_of_the_runtime(name) { "cudaErrorNotSupported" } else { "CUDA_ERROR_NOT_SUPPORTED" };
    format!("balar-actors: {name} is not implemented: it returns {error}")
}

fn is_of_the_runtime(name: &str) -> bool {
    name.trim_start_matches('_').starts_with("cuda")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_returns_the_error_and_the_first_is_named() {
        for _ in 0..3 {
            // SAFETY: a literal that ends with a zero byte.
            let code = unsafe { balar_unimplemented(c"cudaNamedOnce".as_ptr()) };
            assert_eq!(code, 801);
        }
        assert_eq!(last_error::get(true), Err(CudaError::NotSupported));
        assert!(!is_new("cudaNamedOnce") && is_new("cudaNamedNever"));
    }

    #[test]
    fn the_message_names_the_error_of_the_library_asked() {
        let expected = "balar-actors: cudaImportExternalMemory is not implemented: it returns cudaErrorNotSupported";
        assert_eq!(message("cudaImportExternalMemory"), expected);
        assert!(message("cuImportExternalMemory").ends_with("it returns CUDA_ERROR_NOT_SUPPORTED"));
        assert!(message("__cudaGetProcAddress").ends_with("it returns cudaErrorNotSupported"));
    }
}
