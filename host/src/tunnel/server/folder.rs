//! The folder of a run: the socket, and the libraries that the program loads.

#![expect(
    clippy::disallowed_types,
    reason = "the tunnel runs in real time: it waits for programs, and does not simulate"
)]

use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How the names of such folders begin.
const PREFIX: &str = "balar-actors-";
/// The file that a living simulator has locked.
const LOCK: &str = "lock";
/// How often a folder is made that others remove, and how long they have for it.
const ATTEMPTS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(1);
/// The socket.
const SOCKET: &str = "socket";

/// A private folder, which no other user can enter. It is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFolder {
    path: PathBuf,
    _lock: OwnedFd,
}

impl SocketFolder {
    /// A name for a folder of this process, below the system's folder for temporary files. Nothing is made yet.
    pub fn choose() -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        std::env::temp_dir().join(format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos()))
    }

    /// Creates a private folder, and removes those that killed simulators have left in the same place.
    ///
    /// # Errors
    ///
    /// Where it cannot be made, or is there already.
    pub fn create(path: PathBuf) -> io::Result<SocketFolder> {
        if let Some(parent) = path.parent() {
            remove_all_abandoned(parent);
        }
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        for attempt in 0..ATTEMPTS {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => match lock(&path, true) {
                    Ok(Some(lock)) if is_lock_of(&lock, &path) => return Ok(SocketFolder { path, _lock: lock }),
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(error)),
                    // Another run that begins found it before it was locked, took it for abandoned, and removes it.
                    _ => {}
                },
                Err(error) if attempt > 0 && error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(named(error)),
            }
            std::thread::sleep(PAUSE);
        }
        Err(named(io::ErrorKind::AddrInUse.into()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its socket is.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks a folder; `None` where its simulator lives. The lock goes with its process, however that ends.
fn lock(folder: &Path, create: bool) -> io::Result<Option<OwnedFd>> {
    let flags =
        OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | if create { OFlags::CREATE } else { OFlags::empty() };
    let file = rustix::fs::open(folder.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Is this lock's file still in the folder?
fn is_lock_of(lock: &OwnedFd, folder: &Path) -> bool {
    let held = rustix::fs::fstat(lock).map(|file| file.st_ino);
    held.is_ok_and(|held| fs::symlink_metadata(folder.join(LOCK)).is_ok_and(|file| file.ino() == held))
}

/// Is this a folder of a run, by its name and owner?
pub fn is_socket_folder(folder: &Path) -> bool {
    let named = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let own = fs::symlink_metadata(folder)
        .is_ok_and(|data| data.is_dir() && data.uid() == rustix::process::geteuid().as_raw());
    named && own
}

/// Removes the folder of a simulator that is known to have ended, even if it was still creating the folder.
pub fn remove_folder(folder: &Path) {
    if is_socket_folder(folder) {
        // Another process may be removing it, too: an error is ignored.
        let _ = fs::remove_dir_all(folder);
    }
}

/// Removes the folder of a simulator that has ended.
pub fn remove_abandoned(folder: &Path) {
    if is_socket_folder(folder)
        && let Ok(Some(lock)) = lock(folder, false)
    {
        // Another process may be removing it, too: an error is ignored.
        let _ = fs::remove_dir_all(folder);
        drop(lock);
    }
}

fn remove_all_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        remove_abandoned(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_living_stay_and_others_go() {
        let parent = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).expect("new");
            path
        };
        let living = make("balar-actors-1-0");
        let held = lock(&living, true).expect("a file").expect("free");
        let dead = make("balar-actors-2-0");
        drop(lock(&dead, true).expect("a file").expect("free"));
        fs::write(dead.join("libcudart.so.12"), "x").expect("written");
        let young = make("balar-actors-3-0");
        let foreign = make("something-else");
        fs::write(foreign.join(LOCK), "").expect("written");
        remove_all_abandoned(parent.path());
        assert!(living.exists() && young.exists() && foreign.exists() && !dead.exists());
        drop(held);
        remove_all_abandoned(parent.path());
        assert!(!living.exists());
    }

    #[test]
    fn runs_that_begin_at_once_leave_each_others_folders() {
        let parent = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let parent = parent.path();
                scope.spawn(move || {
                    for number in 0..100 {
                        let path = parent.join(format!("{PREFIX}{thread}-{number}"));
                        let folder = SocketFolder::create(path).expect("a folder of one's own");
                        fs::write(folder.socket(), "").expect("it is there");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner() {
        let folder = SocketFolder::create(SocketFolder::choose()).expect("a folder");
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).expect("made").mode() & 0o777, 0o700);
        assert!(is_socket_folder(&path));
        drop(folder);
        assert!(!path.exists());
    }
}
