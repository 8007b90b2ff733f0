//! The results of NVRTC, the run-time compiler, when a program asks for machine code.
//!
//! NVRTC compiles to PTX and, for a real GPU, on to machine code. NVIDIA's driver takes either; the simulated one takes PTX. So a program
//! that calls `nvrtcGetCUBIN` gets the PTX of the same compilation.

use crate::session::state::process;
use std::ffi::{CStr, c_char, c_int, c_void};

/// `NVRTC_ERROR_INTERNAL_ERROR`.
const INTERNAL_ERROR: c_int = 11;

/// NVRTC's function of that name, in the library that the program has loaded.
fn of_nvrtc(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero byte; the call looks through the libraries of the process.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        process::say(&format!("NVRTC has no {}", name.to_string_lossy()));
    }
    (!found.is_null()).then_some(found)
}

/// `nvrtcGetCUBINSize`: the size of the result of [`balar_nvrtcGetCUBIN`], bytes.
///
/// # Safety
///
/// The arguments are those of NVRTC's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn balar_nvrtcGetCUBINSize(program: *mut c_void, bytes: *mut usize) -> c_int {
    type GetPtxSize = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    let Some(function) = of_nvrtc(c"nvrtcGetPTXSize") else { return INTERNAL_ERROR };
    // SAFETY: it is NVRTC's function, which takes what the caller has passed.
    unsafe { std::mem::transmute::<*mut c_void, GetPtxSize>(function)(program, bytes) }
}

/// `nvrtcGetCUBIN`: the PTX of the program.
///
/// # Safety
///
/// The arguments are those of NVRTC's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn balar_nvrtcGetCUBIN(program: *mut c_void, code: *mut c_char) -> c_int {
    type GetPtx = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
    let Some(function) = of_nvrtc(c"nvrtcGetPTX") else { return INTERNAL_ERROR };
    // SAFETY: it is NVRTC's function, which takes what the caller has passed.
    unsafe { std::mem::transmute::<*mut c_void, GetPtx>(function)(program, code) }
}
