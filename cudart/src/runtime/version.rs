//! Versions, functions of the driver by name, and questions of tools.

use super::last_error;
use crate::abi::arguments::{Out, Text};
use crate::runtime_api;
use crate::session::code::procedure::{self, Found};
use crate::session::connection::management::driver_version;
use crate::session::state::{process, thread};
use crate::session::tools::profiler;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

/// The versions of the runtime libraries, 1000 * major + 10 * minor.
const RUNTIME_11: c_int = 11_080;
const RUNTIME_12: c_int = 12_090;
const RUNTIME_13: c_int = 13_050;

/// `cudaEnableLegacyStream`, `cudaEnablePerThreadDefaultStream`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

fn entry_point(
    symbol: Text,
    place: Out<*mut c_void>,
    version: c_int,
    flags: u64,
    status: Option<Out<c_int>>,
) -> Result<(), CudaError> {
    let name = symbol.get()?;
    place.check()?;
    let of_thread = match flags {
        0 => thread::default_stream_is_of_thread(),
        LEGACY => false,
        PER_THREAD => true,
        _ => return Err(CudaError::InvalidValue),
    };
    let version = u32::try_from(version).map_err(|_| CudaError::InvalidValue)?;
    let (address, found) = procedure::find(&name, version, of_thread);
    place.set(address)?;
    match status {
        Some(status) => {
            status.set_if_wanted(found as c_int);
            Ok(())
        }
        None if found == Found::Found => Ok(()),
        None => Err(CudaError::SymbolNotFound),
    }
}

/// Where the functions of a runtime lead that is newer than the driver.
#[unsafe(no_mangle)]
pub extern "C" fn balar_insufficient_driver() -> c_int {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        process::say(&format!(
            "the program's CUDA runtime is newer than the driver of the node, of CUDA {} (`driver_version` of its HostCpu): its \
             calls return cudaErrorInsufficientDriver",
            driver_version()
        ));
    });
    last_error::record(CudaError::InsufficientDriver);
    CudaError::InsufficientDriver.code() as c_int
}

runtime_api! {
    fn cudaRuntimeGetVersion_11(version: Out<c_int>) {
        version.set(RUNTIME_11)
    }

    fn cudaRuntimeGetVersion_12(version: Out<c_int>) {
        version.set(RUNTIME_12)
    }

    fn cudaRuntimeGetVersion_13(version: Out<c_int>) {
        version.set(RUNTIME_13)
    }

    fn cudaDriverGetVersion(version: Out<c_int>) {
        version.set(driver_version().number() as c_int)
    }

    stream fn cudaGetDriverEntryPoint_11(symbol: Text, place: Out<*mut c_void>, flags: u64) {
        entry_point(symbol, place, RUNTIME_11, flags, None)
    }

    stream fn cudaGetDriverEntryPoint_12(symbol: Text, place: Out<*mut c_void>, flags: u64, status: Out<c_int>) {
        entry_point(symbol, place, RUNTIME_12, flags, Some(status))
    }

    stream fn cudaGetDriverEntryPoint_13(symbol: Text, place: Out<*mut c_void>, flags: u64, status: Out<c_int>) {
        entry_point(symbol, place, RUNTIME_13, flags, Some(status))
    }

    stream fn cudaGetDriverEntryPointByVersion(
        symbol: Text,
        place: Out<*mut c_void>,
        version: u32,
        flags: u64,
        status: Out<c_int>,
    ) {
        entry_point(symbol, place, version as c_int, flags, Some(status))
    }

    /// NVIDIA's own tools and libraries ask for tables of undocumented functions.
    quiet fn cudaGetExportTable(place: Out<*const c_void>, _identifier: *const c_void) {
        place.set(std::ptr::null())?;
        Err(CudaError::NotSupported)
    }

    fn cudaProfilerStart() {
        profiler::start()
    }

    fn cudaProfilerStop() {
        profiler::stop()
    }

    fn cudaProfilerInitialize(_configuration: *const c_void, _output: *const c_void, _mode: c_int) {
        Ok(())
    }

    /// Devices have double precision, so that nothing is converted.
    fn cudaSetDoubleForDevice(_value: *mut f64) {
        Ok(())
    }

    fn cudaSetDoubleForHost(_value: *mut f64) {
        Ok(())
    }
}
