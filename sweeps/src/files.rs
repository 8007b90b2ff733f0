//! Files that are written as a whole or not at all.

use crate::SweepError;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An error of a file or folder.
pub(crate) fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> SweepError {
    move |cause| SweepError::File { what, path: path.to_owned(), cause }
}

/// Writes a file beside its place and renames it into it. The folder must be there.
pub(crate) fn write(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), SweepError> {
    let whole = || {
        let mut beside = beside(path)?;
        let mut writer = BufWriter::with_capacity(1 << 16, beside.as_file_mut());
        contents(&mut writer)?;
        writer.flush()?;
        drop(writer);
        beside.as_file().sync_all()?;
        beside.persist(path).map(drop).map_err(|error| error.error)
    };
    whole().map_err(failed("write", path))
}

/// How names of files begin that are being written.
const BESIDE: &str = ".being-written-";
/// Bytes of a text file at most: a longer one is none of ours.
const LONGEST: u64 = 64 << 20;

/// An empty file beside `path`, with the permissions that a new file has. This process has it locked while it writes it.
pub(crate) fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    loop {
        let builder = &mut tempfile::Builder::new();
        let builder = builder.prefix(BESIDE).permissions(fs::Permissions::from_mode(0o666));
        let file = builder.tempfile_in(folder)?;
        // Another process may take it for one that is left, and remove it before it is locked.
        if flock(file.as_file(), FlockOperation::NonBlockingLockExclusive).is_ok() && file.path().exists() {
            return Ok(file);
        }
    }
}

/// Removes the files of a folder that processes were writing when they were killed.
pub(crate) fn remove_unfinished(folder: &Path) -> Result<(), SweepError> {
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let entry = entry.map_err(failed("read", folder))?;
        if !entry.file_name().to_string_lossy().starts_with(BESIDE) {
            continue;
        }
        let path = entry.path();
        // Whoever writes it has it locked; a process that has just finished has renamed it.
        let Ok(file) = File::open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            match fs::remove_file(&path) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &path)(cause)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads a text file, which is not long.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    if File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)? as u64 > LONGEST {
        return Err(io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok(text)
}

/// Puts the contents of a folder on the disk, and the names in it: only then is it certain that the disk has room.
pub(crate) fn sync(folder: &Path) -> Result<(), SweepError> {
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let entry = entry.map_err(failed("read", folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(failed("read", &path))?;
        if kind.is_dir() {
            sync(&path)?;
        } else if kind.is_file() {
            File::open(&path).and_then(|file| file.sync_all()).map_err(failed("write", &path))?;
        }
    }
    File::open(folder).and_then(|file| file.sync_all()).map_err(failed("write", folder))
}

/// A value of text keys and numbers as a line of JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("text keys and numbers always serialise into memory")
}
