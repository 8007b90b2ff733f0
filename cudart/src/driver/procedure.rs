//! Functions by their names: `cuGetProcAddress`, and the texts of errors.

use super::error;
use super::export_table::{self, Identifier};
use crate::abi::arguments::{In, Out, Text};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::procedure::{Found, caller, find};
use crate::session::state::{process, thread};
use balar_host::{CudaError, DriverVersion};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

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

    early fn cuGetExportTable(place: Out<*const c_void>, identifier: In<[u8; 16]>) {
        place.check()?;
        let identifier = Identifier(identifier.get()?);
        match export_table::find(identifier) {
            Some(table) => place.set(table.address()),
            None => {
                place.set(std::ptr::null())?;
                say_missing(identifier);
                Err(CudaError::NotSupported)
            }
        }
    }
}

/// Tells the user once of a table that is not there, and who wants it.
fn say_missing(identifier: Identifier) {
    static SAID: Mutex<BTreeSet<Identifier>> = Mutex::new(BTreeSet::new());
    // NVRTC asks for a table of its own and does without.
    let Some(caller) = caller().filter(|caller| !caller.contains("libnvrtc")) else { return };
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(identifier) {
        process::say(&format!(
            "{caller} asks for the table {identifier} of private functions of the driver, which the simulator does not have"
        ));
    }
}
