//! Errors: the last one of a thread, their names and texts.

use crate::runtime::last_error;
use crate::runtime_api;
use balar_host::CudaError;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, PoisonError};

runtime_api! {
    quiet fn cudaGetLastError() {
        last_error::get(true)
    }

    quiet fn cudaPeekAtLastError() {
        last_error::get(false)
    }

    raw fn cudaGetErrorName(error: c_int) -> *const c_char {
        text(of_code(error).map_or("unrecognized error code", Named::name))
    }

    raw fn cudaGetErrorString(error: c_int) -> *const c_char {
        text(of_code(error).map_or("unrecognized error code", Named::description))
    }
}

/// An error code, or that of success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named {
    Success,
    Error(CudaError),
}

fn of_code(code: c_int) -> Option<Named> {
    if code == 0 {
        return Some(Named::Success);
    }
    CudaError::from_code(u32::try_from(code).ok()?).map(Named::Error)
}

impl Named {
    fn name(self) -> &'static str {
        match self {
            Named::Success => "cudaSuccess",
            Named::Error(error) => error.name(),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Named::Success => "no error",
            Named::Error(error) => error.description(),
        }
    }
}

/// A text for C that stays where it is.
pub fn text(text: &'static str) -> *const c_char {
    static TEXTS: Mutex<BTreeMap<&'static str, CString>> = Mutex::new(BTreeMap::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    // The heap block of a CString does not move with it.
    texts.entry(text).or_insert_with(|| CString::new(text).unwrap_or_default()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn read(pointer: *const c_char) -> String {
        // SAFETY: a text that ends with a zero byte.
        unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
    }

    #[test]
    fn errors_have_names_and_texts() {
        // SAFETY: any number is allowed.
        unsafe {
            assert_eq!(read(cudaGetErrorName(0)), "cudaSuccess");
            assert_eq!(read(cudaGetErrorString(0)), "no error");
            assert_eq!(read(cudaGetErrorName(2)), "cudaErrorMemoryAllocation");
            assert_eq!(read(cudaGetErrorString(700)), "an illegal memory access was encountered");
            assert_eq!(read(cudaGetErrorString(-5)), "unrecognized error code");
        }
    }
}
