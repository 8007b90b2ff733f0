//! Files that are written as a whole or not at all.

use crate::SweepError;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
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

/// An empty file beside `path`, with the permissions that a new file has.
pub(crate) fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder)
}

/// Puts what is in a folder on the disk, and the names in it: only then has the disk had room for it.
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
