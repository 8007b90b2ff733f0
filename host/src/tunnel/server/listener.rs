//! Where connections come in: as many wait in the system's queue as the server has no room for.

use crate::tunnel::address::with_address;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Connections that may wait to be accepted; a program that makes more waits in `connect`.
const BACKLOG: i32 = 4096;
/// Descriptors that are left for everything else: rings of new connections, files of results.
const SPARE_DESCRIPTORS: u64 = 32;

/// The socket that programs connect to.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
    /// There are no descriptors for further connections until one ends.
    is_full: bool,
}

/// An event of the listener.
pub enum Accepted {
    /// A connection.
    Connection(OwnedFd),
    /// Nothing that could be taken now.
    Nothing,
    /// There are no descriptors left.
    Full,
}

impl Listener {
    /// Listens at `path`.
    pub fn new(path: &Path) -> io::Result<Listener> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let descriptor = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        with_address(path, |address| Ok(rustix::net::bind(&descriptor, address)?))?;
        rustix::net::listen(&descriptor, BACKLOG)?;
        Ok(Listener { descriptor, is_full: false })
    }

    /// For `poll`.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Is there no room for another connection?
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// A connection has ended, so there may be room for another.
    pub fn make_room(&mut self) {
        self.is_full = false;
    }

    /// Takes the connection that has waited longest.
    pub fn accept(&mut self) -> Accepted {
        loop {
            match rustix::net::accept_with(&self.descriptor, SocketFlags::CLOEXEC) {
                Ok(descriptor) => {
                    // Each thread of a program takes one; how many there are is the program's to choose.
                    let has_room = leaves_room(&descriptor) || (raise_limit() && leaves_room(&descriptor));
                    self.is_full = !has_room;
                    return Accepted::Connection(descriptor);
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.is_full = true;
                    return Accepted::Full;
                }
                Err(_) => return Accepted::Nothing,
            }
        }
    }
}

/// Are there descriptors to spare after this one, the lowest that was free?
fn leaves_room(descriptor: &OwnedFd) -> bool {
    let next = descriptor.as_raw_fd().unsigned_abs();
    getrlimit(Resource::Nofile).current.is_none_or(|limit| u64::from(next) + SPARE_DESCRIPTORS < limit)
}

/// Allows this process as many descriptors as it may have. It is done only when they are needed: the program has been started
/// then, and has the limit that the user gave.
fn raise_limit() -> bool {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
}
