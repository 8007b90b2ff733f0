//! The folder of a sweep, which any number of processes may share.
//!
//! ```text
//!   DIR/sweep.json              the definition
//!   DIR/points/0007/            a finished point: the folder of its run, with point.json
//!   DIR/points/0007.partial-x/  a point that is being run
//!   DIR/locks/0007              locked by who runs the point (flock); gone when it is finished
//!   DIR/locks/sweep             locked by everybody who works in the folder, together
//! ```
//!
//! The system releases the locks of a process that ends, however it ends. A partial folder whose point is not locked was left by such a
//! process; it is removed.

use crate::SweepError;
use crate::definition::{self, Definition};
use crate::files::{self, failed};
use crate::summary::{self, PointSummary, Settings};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const POINTS: &str = "points";
const LOCKS: &str = "locks";
const PARTIAL: &str = ".partial-";

/// The folder of a sweep.
#[derive(Debug)]
pub struct SweepFolder {
    /// Where it is.
    pub path: PathBuf,
    /// The definition of its sweep.
    pub definition: Definition,
    /// Held while points may be run.
    _shared: Option<File>,
}

/// A point that nobody else runs.
#[derive(Debug)]
pub struct Claim<'a> {
    folder: &'a SweepFolder,
    index: usize,
    lock: PathBuf,
    file: File,
}

/// The folder of a point that is being run; it is removed unless the point is finished.
#[derive(Debug)]
pub struct PartialPoint(TempDir);

impl PartialPoint {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl SweepFolder {
    /// Makes the folder, or opens it if it has this sweep; with `restart`, whatever sweep it has is removed first.
    ///
    /// # Errors
    ///
    /// It has another sweep, or one of another version; others work in it and it is to begin anew; or it cannot be read or written.
    pub fn open(path: &Path, definition: Definition, restart: bool) -> Result<SweepFolder, SweepError> {
        for folder in [path, &path.join(POINTS), &path.join(LOCKS)] {
            fs::create_dir_all(folder).map_err(failed("write", folder))?;
        }
        let shared = path.join(LOCKS).join("sweep");
        let file = open_lock(&shared).map_err(failed("write", &shared))?;
        if restart {
            if !try_lock(&file, true).map_err(failed("lock", &shared))? {
                return Err(SweepError::InUse(path.to_owned()));
            }
            // A folder that is no sweep's keeps its contents.
            if path.join(definition::FILE).exists() {
                clear(path)?;
            }
        }
        // Whoever begins anew is at it for a moment only.
        flock(&file, FlockOperation::LockShared).map_err(|error| failed("lock", &shared)(error.into()))?;
        let found = match Definition::read(path, &definition.version) {
            Err(SweepError::NoSweep(_)) => {
                create(path, &definition)?;
                Definition::read(path, &definition.version)?
            }
            found => found?,
        };
        if let Some(difference) = found.difference(&definition) {
            return Err(SweepError::OtherDefinition { file: path.join(definition::FILE), difference });
        }
        let folder = SweepFolder { path: path.to_owned(), definition: found, _shared: Some(file) };
        folder.remove_what_is_left()?;
        Ok(folder)
    }

    /// Opens a folder to read its results.
    ///
    /// # Errors
    ///
    /// It has no sweep, or one of another version, or cannot be read.
    pub fn read(path: &Path, version: &str) -> Result<SweepFolder, SweepError> {
        let definition = Definition::read(path, version)?;
        Ok(SweepFolder { path: path.to_owned(), definition, _shared: None })
    }

    /// Points.
    pub fn len(&self) -> usize {
        self.definition.points.len()
    }

    /// Has it no point?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folder of a finished point.
    pub fn point(&self, index: usize) -> PathBuf {
        self.path.join(POINTS).join(name(index))
    }

    /// The summary of a point; `None` where it is not finished.
    ///
    /// # Errors
    ///
    /// That cannot be read, or is of something else.
    pub fn summary(&self, index: usize) -> Result<Option<PointSummary>, SweepError> {
        let folder = self.point(index);
        let summary = PointSummary::read(&folder)?;
        match &summary {
            Some(found) if found.index != index => {
                let problem = format!("it is of point {}", found.index);
                Err(SweepError::Damaged { file: folder.join(summary::FILE), problem })
            }
            None if folder.exists() => {
                let problem = format!("it has no {}: remove it to have the point run again", summary::FILE);
                Err(SweepError::Damaged { file: folder, problem })
            }
            _ => Ok(summary),
        }
    }

    /// Are all points finished?
    ///
    /// # Errors
    ///
    /// See [`SweepFolder::summary`].
    pub fn is_complete(&self) -> Result<bool, SweepError> {
        for index in 0..self.len() {
            if self.summary(index)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The settings of a point.
    pub fn settings(&self, index: usize) -> Settings {
        let set = self.definition.keys.iter().zip(&self.definition.points[index]);
        set.filter_map(|(key, value)| Some((key.clone(), value.clone()?.into()))).collect()
    }

    /// Takes a point; `None` while another process has it.
    ///
    /// # Errors
    ///
    /// The lock cannot be made.
    pub fn claim(&self, index: usize) -> Result<Option<Claim<'_>>, SweepError> {
        let lock = self.path.join(LOCKS).join(name(index));
        loop {
            let file = open_lock(&lock).map_err(failed("write", &lock))?;
            if !try_lock(&file, true).map_err(failed("lock", &lock))? {
                return Ok(None);
            }
            // Who had the lock before may have removed the file in between; then it locks nothing.
            let own = file.metadata().map_err(failed("read", &lock))?;
            match fs::metadata(&lock) {
                Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => {
                    return Ok(Some(Claim { folder: self, index, lock, file }));
                }
                _ => {}
            }
        }
    }

    /// Removes files that nobody writes any more, and partial folders whose points nobody runs.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn remove_what_is_left(&self) -> Result<(), SweepError> {
        files::remove_unfinished(&self.path)?;
        let points = self.path.join(POINTS);
        for entry in fs::read_dir(&points).map_err(failed("read", &points))? {
            let entry = entry.map_err(failed("read", &points))?;
            let file_name = entry.file_name();
            let index = file_name.to_str().and_then(|name| name.split_once(PARTIAL)?.0.parse().ok());
            let Some(index) = index else { continue };
            // While the claim is held, nobody makes another.
            if let Some(_claim) = self.claim(index)? {
                fs::remove_dir_all(entry.path()).map_err(failed("remove", &entry.path()))?;
            }
        }
        Ok(())
    }
}

impl Claim<'_> {
    /// The point.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Makes an empty folder for the run, and removes a folder that an earlier run of the point has left.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn begin(&self) -> Result<PartialPoint, SweepError> {
        let done = self.folder.point(self.index);
        match fs::remove_dir_all(&done) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &done)(cause)),
            _ => {}
        }
        let points = self.folder.path.join(POINTS);
        let prefix = format!("{}{PARTIAL}", name(self.index));
        let folder =
            tempfile::Builder::new().prefix(&prefix).permissions(Permissions::from_mode(0o777)).tempdir_in(&points);
        folder.map(PartialPoint).map_err(failed("write", &points))
    }

    /// Makes the point a finished one.
    ///
    /// # Errors
    ///
    /// Something in its folder is not on the disk, or it cannot be renamed. The point is not finished then.
    pub fn finish(&self, partial: PartialPoint, summary: &PointSummary) -> Result<(), SweepError> {
        let file = partial.path().join(summary::FILE);
        files::write(&file, |file| {
            serde_json::to_writer_pretty(&mut *file, summary)?;
            file.write_all(b"\n")
        })?;
        files::sync(partial.path())?;
        let done = self.folder.point(self.index);
        fs::rename(partial.path(), &done).map_err(failed("write", &done))?;
        // It has its name; there is nothing to remove any more.
        let _ = partial.0.keep();
        let points = self.folder.path.join(POINTS);
        File::open(&points).and_then(|folder| folder.sync_all()).map_err(failed("write", &points))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // A lock that stays is no harm: nobody holds it. The file goes first, so that nobody locks one that is about to go.
        let _ = fs::remove_file(&self.lock);
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The name of a point's folder; in order up to ten thousand.
fn name(index: usize) -> String {
    format!("{index:04}")
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Locks a file, for this process alone or together with others; `false` while others have it.
fn try_lock(file: &File, alone: bool) -> io::Result<bool> {
    let operation =
        if alone { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes the definition, unless another process has done so in the meantime.
fn create(path: &Path, definition: &Definition) -> Result<(), SweepError> {
    let file = path.join(definition::FILE);
    let whole = || {
        let mut beside = files::beside(&file)?;
        io::Write::write_all(beside.as_file_mut(), definition.text().as_bytes())?;
        beside.as_file().sync_all()?;
        match beside.persist_noclobber(&file) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    };
    whole().map_err(failed("write", &file))
}

/// Removes the sweep of a folder: its definition, its points, and their collected results.
fn clear(path: &Path) -> Result<(), SweepError> {
    let file = path.join(definition::FILE);
    let is_absent = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
    let results = crate::collect::figures::FILES.iter().map(|name| path.join(name));
    for file in std::iter::once(file).chain(results) {
        match fs::remove_file(&file) {
            Err(cause) if !is_absent(&cause) => return Err(failed("remove", &file)(cause)),
            _ => {}
        }
    }
    let points = path.join(POINTS);
    fs::remove_dir_all(&points).map_err(failed("remove", &points))?;
    fs::create_dir(&points).map_err(failed("write", &points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::tests::definition;
    use crate::summary::PointStatus;

    fn summary(folder: &SweepFolder, index: usize) -> PointSummary {
        PointSummary {
            index,
            settings: folder.settings(index),
            configuration_hash: folder.definition.configuration_hash(index),
            input_hash: None,
            version: folder.definition.version.clone(),
            status: PointStatus::Done,
            exit_code: Some(0),
            signal: None,
            problem: None,
            wall_seconds: 1.5,
        }
    }

    #[test]
    fn what_a_killed_process_was_writing_goes() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("sweep");
        SweepFolder::open(&path, definition(&["1", "2"]), false).expect("a new one");
        let result = path.join("results.csv");
        let (_, left) = files::beside(&result).expect("a file").keep().expect("kept");
        let written = files::beside(&result).expect("a file");
        SweepFolder::open(&path, definition(&["1", "2"]), false).expect("the same");
        assert!(!left.exists() && written.path().exists());
    }

    #[test]
    fn a_point_is_finished_when_its_summary_is_there() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("deep/sweep");
        let folder = SweepFolder::open(&path, definition(&["1", "2"]), false).expect("opened");
        assert_eq!((folder.len(), folder.is_complete().expect("read")), (2, false));
        let claim = folder.claim(1).expect("a lock").expect("free");
        let partial = claim.begin().expect("a folder");
        fs::write(partial.path().join("stats.json"), "{}").expect("written");
        assert_eq!(folder.summary(1).expect("read"), None);
        claim.finish(partial, &summary(&folder, 1)).expect("finished");
        assert_eq!(folder.summary(1).expect("read"), Some(summary(&folder, 1)));
        drop(claim);
        let mut left: Vec<_> =
            fs::read_dir(path.join(POINTS)).expect("there").map(|it| it.expect("it").file_name()).collect();
        left.sort();
        assert_eq!(left, ["0001"]);
        assert_eq!(fs::read_dir(path.join(LOCKS)).expect("there").count(), 1, "the lock of the sweep alone");
        assert_eq!(fs::metadata(folder.point(1)).expect("there").permissions().mode() & 0o700, 0o700);
    }

    #[test]
    fn a_point_is_of_one_worker_until_that_lets_go_of_it() {
        let parent = tempfile::tempdir().expect("a folder");
        let one = SweepFolder::open(parent.path(), definition(&["1", "2"]), false).expect("opened");
        let other = SweepFolder::open(parent.path(), definition(&["1", "2"]), false).expect("opened");
        let claim = one.claim(0).expect("a lock").expect("free");
        assert!(other.claim(0).expect("a lock").is_none());
        assert!(other.claim(1).expect("a lock").is_some());
        let partial = claim.begin().expect("a folder");
        let path = partial.path().to_owned();
        other.remove_what_is_left().expect("read");
        assert!(path.exists(), "it is in use");
        // As if the worker had been killed: its lock goes, its folder stays.
        std::mem::forget(partial);
        drop(claim);
        other.remove_what_is_left().expect("removed");
        assert!(!path.exists());
        assert!(other.claim(0).expect("a lock").is_some());
    }

    #[test]
    fn another_sweep_is_refused_until_the_folder_begins_anew() {
        let parent = tempfile::tempdir().expect("a folder");
        let first = SweepFolder::open(parent.path(), definition(&["1", "2"]), false).expect("opened");
        let error = SweepFolder::open(parent.path(), definition(&["1", "3"]), false).expect_err("another");
        assert!(error.to_string().contains("sweep.json is of another sweep: its point 1 is `a=2`"), "{error}");
        let error = SweepFolder::open(parent.path(), definition(&["1", "3"]), true).expect_err("in use");
        assert!(matches!(error, SweepError::InUse(_)), "{error}");
        let claim = first.claim(0).expect("a lock").expect("free");
        claim.finish(claim.begin().expect("a folder"), &summary(&first, 0)).expect("finished");
        drop(claim);
        drop(first);
        let anew = SweepFolder::open(parent.path(), definition(&["1", "3"]), true).expect("opened");
        assert_eq!(anew.summary(0).expect("read"), None);
    }

    #[test]
    fn what_is_no_sweep_is_not_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let own = parent.path().join("points/mine");
        fs::create_dir_all(&own).expect("made");
        let folder = SweepFolder::open(parent.path(), definition(&["1"]), true).expect("opened");
        assert!(own.exists() && folder.summary(0).expect("read").is_none());
    }

    #[test]
    fn a_folder_without_its_summary_is_named() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = SweepFolder::open(parent.path(), definition(&["1"]), false).expect("opened");
        fs::create_dir(folder.point(0)).expect("made");
        let error = folder.summary(0).expect_err("damaged").to_string();
        assert!(error.contains("0000: it has no point.json"), "{error}");
    }
}
