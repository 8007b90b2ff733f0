//! Functions by their names: `cuGetProcAddress`, and the texts of errors.

use super::error;
use crate::abi::arguments::{Out, Text};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::procedure::{Found, caller, find};
use crate::session::{process, thread};
use balar_host::{CudaError, DriverVersion};
use std::ffi::{CStr, c_char, c_int, c_void};

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`: no functions whose default stream is the thread's.
const LEGACY_STREAM: u64 = 1;
/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`: such functions where there are any.
const PER_THREAD_STREAM: u64 = 2;

fn search(symbol: Text, place: Out<*mut c_void>, version: c_int, flags: u64) -> Result<Found, CudaError> {
    let name = symbol.get()?;
    place.check()?;
    // An older driver than the caller knows has what it has: libraries of its major version run on it.
    let version = u32::try_from(version).ok().filter(|version| *version <= DriverVersion::NEWEST.number());
    let version = version.ok_or(CudaError::InvalidValue)?;
    if flags > PER_THREAD_STREAM {
        return Err(CudaError::InvalidValue);
    }
    let of_thread = flags == PER_THREAD_STREAM || (flags != LEGACY_STREAM && thread::default_stream_is_of_thread());
    let (address, found) = find(&name, version, of_thread);
    place.set(address)?;
    Ok(found)
}

fn text_of(
    code: c_int,
    place: Out<*const c_char>,
    which: impl Fn((&'static CStr, &'static CStr)) -> &'static CStr,
) -> Outcome {
    let texts = u32::try_from(code).ok().and_then(error::texts);
    place.set(texts.map_or(std::ptr::null(), |texts| which(texts).as_ptr()))?;
    if texts.is_some() { Ok(()) } else { Err(CudaError::InvalidValue) }
}

driver_api! {
    early fn cuGetErrorName(code: c_int, place: Out<*const c_char>) {
        text_of(code, place, |(name, _)| name)
    }

    early fn cuGetErrorString(code: c_int, place: Out<*const c_char>) {
        text_of(code, place, |(_, text)| text)
    }

    // The two with twins search for functions with twins.
    early stream fn cuGetProcAddress(symbol: Text, place: Out<*mut c_void>, version: c_int, flags: u64) {
        match search(symbol, place, version, flags)? {
            Found::Found => Ok(()),
            Found::Unknown | Found::TooNew => Err(CudaError::SymbolNotFound),
        }
    }

    early stream fn cuGetProcAddress_v2(symbol: Text, place: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_int>) {
        let found = search(symbol, place, version, flags)?;
        status.set_if_wanted(found as c_int);
        Ok(())
    }

    early fn cuGetExportTable(place: Out<*const c_void>, identifier: *const c_void) {
        static SAID: std::sync::Once = std::sync::Once::new();
        if place.is_null() || identifier.is_null() {
            return Err(CudaError::InvalidValue);
        }
        // NVRTC asks for them too and does without.
        if let Some(caller) = caller().filter(|caller| !caller.contains("libnvrtc")) {
            SAID.call_once(|| {
                process::say(&format!(
                    "{caller} asks for private functions of the driver, which the simulator does not have. A CUDA runtime that is \
                     linked statically does so: link with `-cudart shared`"
                ));
            });
        }
        place.set(std::ptr::null())?;
        Err(CudaError::NotSupported)
    }
}
