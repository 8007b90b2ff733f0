//! Whether the machine has a GPU of NVIDIA's, for programs that look for its device files and load no CUDA library where there are none:
//! JAX does so. A simulated node has none of these files, and a run makes none; these functions say that they are there.
//!
//! They are preloaded into Python programs alone, and come before those of the C library. Whatever else a path names is left to the kernel.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};

/// The files that `nvidia-modprobe` makes on a machine with one GPU.
const DEVICE_FILES: [&CStr; 2] = [c"/dev/nvidiactl", c"/dev/nvidia0"];
/// The file in their place: a device that every machine has.
const STANDS_FOR_THEM: &CStr = c"/dev/null";

/// The path that the kernel is asked about in place of `path`.
fn asked(path: *const c_char) -> *const c_char {
    // SAFETY: a path that is not null is a string that ends with a zero byte.
    let is_there = !path.is_null() && DEVICE_FILES.contains(&unsafe { CStr::from_ptr(path) });
    if is_there { STANDS_FOR_THEM.as_ptr() } else { path }
}

/// `fstatat`: the kernel's structure is that of C on x86-64.
fn look(folder: c_int, path: *const c_char, place: *mut c_void, flags: c_int) -> c_int {
    // SAFETY: the kernel checks the addresses; the call sets `errno`.
    unsafe {
        libc::syscall(libc::SYS_newfstatat, c_long::from(folder), asked(path), place, c_long::from(flags)) as c_int
    }
}

/// Defines functions of the C library and exports each as `balar_NAME`.
macro_rules! c_library {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nAs in C.")]
            #[unsafe(export_name = concat!("balar_", stringify!($name)))]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                $body
            }
        )*
    };
}

c_library! {
    fn stat(path: *const c_char, place: *mut c_void) {
        look(libc::AT_FDCWD, path, place, 0)
    }

    fn stat64(path: *const c_char, place: *mut c_void) {
        look(libc::AT_FDCWD, path, place, 0)
    }

    fn __xstat(_version: c_int, path: *const c_char, place: *mut c_void) {
        look(libc::AT_FDCWD, path, place, 0)
    }

    fn __xstat64(_version: c_int, path: *const c_char, place: *mut c_void) {
        look(libc::AT_FDCWD, path, place, 0)
    }

    fn fstatat(folder: c_int, path: *const c_char, place: *mut c_void, flags: c_int) {
        look(folder, path, place, flags)
    }

    fn fstatat64(folder: c_int, path: *const c_char, place: *mut c_void, flags: c_int) {
        look(folder, path, place, flags)
    }

    fn access(path: *const c_char, mode: c_int) {
        // SAFETY: the kernel checks the address; the call sets `errno`.
        unsafe { libc::syscall(libc::SYS_access, asked(path), c_long::from(mode)) as c_int }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_files_are_there_and_other_files_are_what_they_are() {
        let found = |path: &CStr| {
            let mut place = std::mem::MaybeUninit::<libc::stat>::zeroed();
            // SAFETY: the place outlives the call, and is a plain value.
            unsafe { (stat(path.as_ptr(), place.as_mut_ptr().cast()), place.assume_init().st_mode & libc::S_IFMT) }
        };
        assert_eq!(found(c"/dev/nvidiactl"), (0, libc::S_IFCHR));
        assert_eq!(found(c"/dev"), (0, libc::S_IFDIR));
        assert_eq!(found(c"/dev/nvidia-none").0, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT));
        // SAFETY: strings.
        let accessible = |path: &CStr| unsafe { access(path.as_ptr(), libc::F_OK) };
        assert_eq!([c"/dev/nvidia0", c"/", c"/dev/nvidia-none"].map(accessible), [0, 0, -1]);
    }
}
