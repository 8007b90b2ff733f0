//! Files of the user: read with a bound, written as a whole or not at all.

use crate::system::printable::Printable;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file or folder that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", .path.display())]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// Why it was not.
    pub cause: io::Error,
}

/// A text that is read is at most this long: /dev/zero has no end.
const MAXIMUM_BYTES: u64 = 256 << 20;
/// A program or library that is read is at most this long.
const MAXIMUM_PROGRAM_BYTES: u64 = 1 << 30;

/// The bytes of a file, or of a pipe.
///
/// # Errors
///
/// Where it cannot be read, or is too long: longer than 1 GiB.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    bytes_at_most(path, MAXIMUM_PROGRAM_BYTES)
}

/// The text of a file, or of a pipe, without the byte-order mark that some editors begin it with.
///
/// # Errors
///
/// Where it cannot be read, is too long, or is not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    read_at_most(path, MAXIMUM_BYTES)
}

/// As [`read()`], of a file that may be as long as a program: the document of a run of many launches.
///
/// # Errors
///
/// Where it cannot be read, is longer than 1 GiB, or is not UTF-8.
pub fn read_long(path: &Path) -> io::Result<String> {
    read_at_most(path, MAXIMUM_PROGRAM_BYTES)
}

fn read_at_most(path: &Path, most: u64) -> io::Result<String> {
    let bytes = bytes_at_most(path, most)?;
    let mut text =
        String::from_utf8(bytes).map_err(|error| damaged(format!("it is not UTF-8: {}", error.utf8_error())))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

fn bytes_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(damaged(format!("it is longer than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

fn damaged(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Writes a file: beside its place, then renamed into it, so that an interruption leaves the earlier file as it was.
///
/// # Errors
///
/// If that fails.
pub fn write(path: &Path, text: &str) -> Result<(), WriteError> {
    write_text_with(path, |file| file.write_all(text.as_bytes()))
}

/// As [`write()`], with a text that is too long to be in memory at once.
///
/// # Errors
///
/// As [`write()`].
pub fn write_text_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    write_with(path, |file| {
        let mut file = Printable::new(file);
        write(&mut file)?;
        file.flush()
    })
}

/// Finds out whether a file could be written, without changing it: worth knowing before a long run.
///
/// # Errors
///
/// If it could not: its folder is not there or takes no file, or it is a folder itself.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    let failed = |cause| WriteError { path: path.to_owned(), cause };
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => Err(failed(io::ErrorKind::IsADirectory.into())),
        // Opening a pipe would wait for its reader.
        Ok(metadata) if !metadata.is_file() => Ok(()),
        _ => {
            let folder = folder_of(&target);
            // That a folder is not there is said more plainly than by a file in it that cannot be made.
            fs::metadata(folder).and_then(|_| tempfile::NamedTempFile::new_in(folder)).map(drop).map_err(failed)
        }
    }
}

/// As [`write()`], with contents that are too long to be in memory at once.
///
/// # Errors
///
/// If that fails.
pub fn write_with(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    whole(path, contents).map_err(|cause| WriteError { path: path.to_owned(), cause })
}

/// The folder that a file is in.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn whole(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let buffered = |file: &mut File| {
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        contents(&mut writer).and_then(|()| writer.flush())
    };
    // The target of a link is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let known = fs::metadata(&target).ok();
    if known.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        // A pipe or a device has no contents to lose.
        return buffered(&mut File::create(&target)?);
    }
    let mode = known.map_or(0o666, |metadata| metadata.permissions().mode());
    let mut beside =
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder_of(&target))?;
    buffered(beside.as_file_mut())?;
    beside.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "\u{feff}.version 7.8").expect("written");
        assert_eq!(read(file.path()).expect("read"), ".version 7.8");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read_at_most(Path::new("/dev/zero"), 1 << 20).expect_err("it has no end");
        assert_eq!(error.to_string(), "it is longer than 1 MiB");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        write(&path, "one").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let before = File::open(&path).expect("open");
        write(&link, "two").expect("written");
        // Whoever reads the file that was there goes on reading it.
        assert_eq!(io::read_to_string(before).expect("read"), "one");
        assert_eq!(fs::read_to_string(&path).expect("read"), "two");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing is left beside");
    }

    #[test]
    fn whether_a_file_can_be_written_is_found_out_without_a_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        check_writable(&folder.path().join("new")).expect("it can be made");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        check_writable(Path::new("/dev/null")).expect("a device");
        assert!(check_writable(folder.path()).expect_err("a folder").to_string().contains("is a directory"));
        let error = check_writable(&folder.path().join("none/new")).expect_err("no folder").to_string();
        assert!(error.contains("none/new: No such file"), "{error}");
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let error = write(Path::new("/nonexistent/stats.json"), "").expect_err("no folder").to_string();
        assert!(error.starts_with("cannot write /nonexistent/stats.json: "), "{error}");
    }
}
