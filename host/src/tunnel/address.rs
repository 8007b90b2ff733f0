//! Where the socket of a run is.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Calls `use_it` with the address of the socket at `path`.
///
/// An address has room for 107 bytes, and folders for temporary files may have longer names: then the socket's folder is opened,
/// and the address names it by its descriptor, which is short.
///
/// # Errors
///
/// Where the folder cannot be opened, and errors of `use_it`.
pub fn with_address<T>(path: &Path, use_it: impl FnOnce(&SocketAddrUnix) -> io::Result<T>) -> io::Result<T> {
    match SocketAddrUnix::new(path) {
        Err(Errno::NAMETOOLONG) => {}
        address => return use_it(&address?),
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    use_it(&SocketAddrUnix::new(short)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket};

    #[test]
    fn sockets_are_found_at_the_end_of_long_paths() {
        let parent = tempfile::tempdir().expect("a folder");
        for length in [1, 100, 250] {
            let folder = parent.path().join("x".repeat(length));
            std::fs::create_dir(&folder).expect("new");
            let path = folder.join("socket");
            let new = || socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
            let (listener, client) = (new(), new());
            with_address(&path, |address| Ok(bind(&listener, address)?)).expect("bound");
            assert!(path.exists(), "{length}");
            listen(&listener, 1).expect("listens");
            with_address(&path, |address| Ok(connect(&client, address)?)).expect("connected");
        }
    }
}
