//! What functions of CUDA do that this library does not implement: they say so and return an error.

use crate::core::thread;
use balar_host::CudaError;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

static CALLS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// How often the program has called each function that is not implemented.
pub fn calls() -> Vec<(String, u64)> {
    let calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    calls.iter().map(|(name, count)| (name.clone(), *count)).collect()
}

/// Where the stub of a function without an implementation jumps to, with its name in place of the function's arguments.
///
/// # Safety
///
/// `name` points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn balar_unimplemented(name: *const c_char) -> c_int {
    // SAFETY: the caller, a stub, passes a string of its own read-only data.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if count(&name) == 1 {
        // Nobody minds where nobody reads it.
        let _ = writeln!(std::io::stderr(), "{}", message(&name));
    }
    if is_of_the_runtime(&name) {
        thread::record_error(CudaError::NotSupported);
    }
    CudaError::NotSupported.code() as c_int
}

/// Counts a call of `name` and says how many there are now.
fn count(name: &str) -> u64 {
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    match calls.get_mut(name) {
        Some(count) => {
            *count += 1;
            *count
        }
        None => {
            calls.insert(name.to_owned(), 1);
            1
        }
    }
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
    fn calls_are_counted_by_name() {
        for _ in 0..3 {
            // SAFETY: a literal that ends with a zero byte.
            let code = unsafe { balar_unimplemented(c"cudaCountedByName".as_ptr()) };
            assert_eq!(code, 801);
        }
        assert_eq!(thread::last_error(true), Err(CudaError::NotSupported));
        assert!(calls().contains(&("cudaCountedByName".to_owned(), 3)));
    }

    #[test]
    fn the_message_names_the_error_of_the_library_asked() {
        let expected = "balar-actors: cudaImportExternalMemory is not implemented: it returns cudaErrorNotSupported";
        assert_eq!(message("cudaImportExternalMemory"), expected);
        assert!(message("cuImportExternalMemory").ends_with("it returns CUDA_ERROR_NOT_SUPPORTED"));
        assert!(message("__cudaGetProcAddress").ends_with("it returns cudaErrorNotSupported"));
    }
}
