//! Functions of the driver by their names, for programs that ask for them at run time.

use crate::abi::exports::{DriverFunction, driver_functions_until};
use crate::session::connection::management::driver_version;
use balar_host::DriverVersion;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::LazyLock;

/// The result of a search (`CUdriverProcAddressQueryResult`, and `cudaDriverEntryPointQueryResult` with the same values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Found {
    /// The function is there.
    Found = 0,
    /// There is no such function.
    Unknown = 1,
    /// It is newer than the version asked for.
    TooNew = 2,
}

/// The function of the driver that `name` means in `version` of CUDA (1000 * major + 10 * minor).
pub fn find(name: &str, version: u32, of_thread: bool) -> (*mut c_void, Found) {
    find_in(driver_version(), name, version, of_thread)
}

/// As [`find`], in a driver of this version, which knows nothing newer.
fn find_in(driver: DriverVersion, name: &str, version: u32, of_thread: bool) -> (*mut c_void, Found) {
    let functions = driver_functions_until(driver.number()).filter(|function| function.name == name);
    let functions: Vec<DriverFunction> = functions.collect();
    let newest = |of_thread: bool| {
        let usable =
            functions.iter().filter(|function| function.of_threads() == of_thread && function.since <= version);
        // Where several have come with the same version, the table has the later one last.
        usable.max_by_key(|function| function.since)
    };
    // A function without a twin has no default stream that matters.
    let function = if of_thread { newest(true).or_else(|| newest(false)) } else { newest(false) };
    match function {
        None if functions.is_empty() => (std::ptr::null_mut(), Found::Unknown),
        None => (std::ptr::null_mut(), Found::TooNew),
        Some(function) => {
            let address = implementation(function.symbol);
            (address, if address.is_null() { Found::Unknown } else { Found::Found })
        }
    }
}

/// The address of the implementation of a function of the driver; null where there is none.
fn implementation(symbol: &str) -> *mut c_void {
    let plain = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds"));
    let name = match plain {
        Some(plain) => format!("balar_{plain}_ptsz"),
        None => format!("balar_{symbol}"),
    };
    let Ok(name) = CString::new(name) else { return std::ptr::null_mut() };
    match *OWN_LIBRARY {
        0 => std::ptr::null_mut(),
        // SAFETY: the handle is of this library, which stays loaded, and the name ends with a zero byte.
        library => unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) },
    }
}

/// The result of `dlopen` for the file that this code is in; 0 if it gives nothing.
static OWN_LIBRARY: LazyLock<usize> = LazyLock::new(|| {
    let own = file_of(find as fn(&str, u32, bool) -> (*mut c_void, Found) as *const c_void);
    let Some(path) = own.and_then(|own| CString::new(own).ok()) else { return 0 };
    // SAFETY: the name ends with a zero byte. Nothing is loaded anew.
    unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) as usize }
});

/// The file of the code that called this library.
pub fn caller() -> Option<String> {
    let mut frames = [std::ptr::null_mut(); 32];
    // SAFETY: there is room for as many frames.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    let own = file_of(find as fn(&str, u32, bool) -> (*mut c_void, Found) as *const c_void)?;
    frames
        .iter()
        .take(usize::try_from(count).unwrap_or(0))
        .find_map(|frame| file_of(*frame).filter(|file| *file != own))
}

/// The file whose code is at an address.
fn file_of(address: *const c_void) -> Option<String> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `info` is valid for the call; the name that it gets is a string that lives as long as the file is loaded.
    unsafe {
        if libc::dladdr(address, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        Some(CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table knows the meaning of each name from a version on; the addresses need the library.
    #[test]
    fn a_name_that_is_not_there_yet_is_said_to_be_newer() {
        let find = |name, version| find_in(DriverVersion::NEWEST, name, version, false).1;
        assert_eq!(find("cuMemAllocAsync", 11000), Found::TooNew);
        assert_eq!(find("cuNeverThere", 13000), Found::Unknown);
    }

    /// CUDA 12.5 has brought `cuCtxCreate_v4`, CUDA 13.0 `cuCtxGetDevice_v2` (cuda.h).
    #[test]
    fn a_driver_knows_no_newer_functions() {
        let old: DriverVersion = "12.4".parse().expect("a version");
        let symbols = |driver: DriverVersion, name: &str| -> Vec<&str> {
            let functions = driver_functions_until(driver.number()).filter(|function| function.name == name);
            functions.map(|function| function.symbol).collect()
        };
        assert_eq!(symbols(old, "cuCtxGetDevice"), ["cuCtxGetDevice"]);
        assert_eq!(symbols(DriverVersion::NEWEST, "cuCtxGetDevice"), ["cuCtxGetDevice", "cuCtxGetDevice_v2"]);
        assert_eq!(symbols(old, "cuCtxCreate"), ["cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3"]);
        assert_eq!(find_in(old, "cuMemPrefetchBatchAsync", 13050, false).1, Found::Unknown);
    }
}
