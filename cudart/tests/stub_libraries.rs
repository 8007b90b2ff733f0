//! The dynamic linker of the system loads the written libraries, and programs find every function in them.

use balar_cudart::abi::exports::{LIBRARIES, Library};
use balar_cudart::stub_library;
use balar_host::DriverVersion;
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared library of this package: cargo puts it beside the tests.
fn implementation() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.with_file_name("libbalar_cudart.so")
}

fn written(folder: &Path) -> Vec<PathBuf> {
    stub_library::write(folder, &implementation(), DriverVersion::NEWEST).unwrap()
}

/// Loads a library the way a program does that has every symbol bound at its start.
fn load(path: &Path) -> *mut c_void {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the library has no initialiser; the one behind it is our own.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: dlerror returns a string after a failure.
        panic!("{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
    }
    handle
}

/// The function that a program gets which links against `name` of `library`.
fn function(handle: *mut c_void, library: &Library, name: &str) -> *mut c_void {
    symbol(handle, library.versioned.then_some(library.soname), name)
}

fn symbol(handle: *mut c_void, version: Option<&str>, name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    let version = version.map(|version| CString::new(version).unwrap());
    // SAFETY: the handle is of a loaded library and the names end with a zero byte.
    unsafe {
        match version {
            Some(version) => libc::dlvsym(handle, name.as_ptr(), version.as_ptr()),
            None => libc::dlsym(handle, name.as_ptr()),
        }
    }
}

#[test]
fn every_name_is_found_by_its_version() {
    let folder = tempfile::tempdir().unwrap();
    for (library, path) in LIBRARIES.iter().zip(written(folder.path())) {
        let handle = load(&path);
        for name in library.names() {
            let address = function(handle, library, name);
            assert!(!address.is_null(), "{name} of {}", library.soname);
            let mut found = libc::Dl_info {
                dli_fname: std::ptr::null(),
                dli_fbase: std::ptr::null_mut(),
                dli_sname: std::ptr::null(),
                dli_saddr: std::ptr::null_mut(),
            };
            // SAFETY: dladdr writes the structure; its strings live as long as the library.
            let symbol = unsafe {
                libc::dladdr(address, &raw mut found);
                CStr::from_ptr(found.dli_sname)
            };
            assert_eq!(symbol.to_str().unwrap(), name);
        }
        assert!(function(handle, library, "cudaNeverExported").is_null());
        assert!(symbol(handle, Some("libcudart.so.10.2"), "cudaMalloc").is_null());
    }
}

#[test]
fn a_function_without_an_implementation_returns_not_supported() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["cudaVDPAUGetDevice", "cudaVDPAUGetDevice", "cudaVDPAUGetDevice", "cuVDPAUGetDevice"];
    for ((library, path), name) in LIBRARIES.iter().zip(written(folder.path())).zip(names) {
        let address = function(load(&path), library, name);
        // SAFETY: a function of the C calling convention that ignores its arguments.
        let code = unsafe {
            let function: extern "C" fn(usize, usize, usize) -> c_int = std::mem::transmute(address);
            function(1, 2, 3)
        };
        assert_eq!(code, 801, "{name} of {}", library.soname);
    }
}

/// The system's own check of a library and everything that it needs: every symbol found, nothing to warn of.
#[test]
fn the_dynamic_linker_has_nothing_to_complain_of() {
    let folder = tempfile::tempdir().unwrap();
    for path in written(folder.path()) {
        let preloaded = Command::new("/bin/true").env("LD_PRELOAD", &path).env("LD_BIND_NOW", "1").output().unwrap();
        assert!(preloaded.status.success());
        assert_eq!(String::from_utf8_lossy(&preloaded.stderr), "", "{}", path.display());
    }
}

#[test]
fn a_library_that_is_not_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [first, ..] = &written(folder.path())[..] else { panic!("no library is written") };
    let error = stub_library::write(folder.path(), first, DriverVersion::NEWEST).unwrap_err().to_string();
    assert!(error.contains("does not export `balar_unimplemented`"), "{error}");
    let error = stub_library::write(folder.path(), Path::new("/nowhere/library.so"), DriverVersion::NEWEST)
        .unwrap_err()
        .to_string();
    assert!(error.contains("/nowhere/library.so"), "{error}");
}
