//! Sweeps: many runs of one simulation with different parameters, shared by any number of processes, and their results in one place.
//!
//! ```text
//!   Points (every combination) ──► Definition ──► SweepFolder ──► worker: a process for each point ──► collect: CSV, SQLite, a chart
//! ```
//!
//! | room | what it has |
//! |---|---|
//! | `values`, `points` | lists of values, and their combinations |
//! | `quantity` | values as numbers on an axis |
//! | `definition` | the definition of a sweep, and how two definitions differ |
//! | `folder` | the protocol of the folder: which process has a point, when it is finished |
//! | `summary` | the summary of a point |
//! | `process` | the process of a point, from its start to its end |
//! | `worker` | points, several at a time, as long as there are any |
//! | `collect` | the results of all points |
//!
//! **Invariant:** a point is finished when its folder has its name. It gets its name by one renaming, with everything in it on the disk.
//! Results hold nothing of the wall clock, of threads or of the processes that ran them: the same sweep gives the same bytes.

pub mod collect;
pub mod definition;
mod files;
pub mod folder;
pub mod points;
mod process;
pub mod quantity;
pub mod summary;
pub mod values;
pub mod worker;

use std::io;
use std::path::PathBuf;

/// A failure that ends a sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file or folder.
    #[error("cannot {what} {}: {cause}", .path.display())]
    File {
        /// The operation that failed: "read", "write", "lock".
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The cause, by the operating system.
        cause: io::Error,
    },
    /// A run did not write the files that it should have written.
    #[error("point {index}: {problem}")]
    NotWritten {
        /// The point.
        index: usize,
        /// The message of the run.
        problem: String,
    },
    /// The process of a point could not be started or watched.
    #[error("point {index}: cannot run {program}: {cause}")]
    Process {
        /// The point.
        index: usize,
        /// The program.
        program: String,
        /// The cause, by the operating system.
        cause: io::Error,
    },
    /// The folder has another sweep.
    #[error("{} is of another sweep: {difference}", .file.display())]
    OtherDefinition {
        /// The file that defines the sweep of the folder.
        file: PathBuf,
        /// The difference.
        difference: String,
    },
    /// The folder is of another version.
    #[error("{} was written by version {found} of balar-actors, and this is version {own}", .file.display())]
    OtherVersion {
        /// The file that defines the sweep of the folder.
        file: PathBuf,
        /// Its version.
        found: String,
        /// This version.
        own: String,
    },
    /// The folder has no sweep.
    #[error("{} is no folder of a sweep: it has no {}", .0.display(), definition::FILE)]
    NoSweep(PathBuf),
    /// A file is not as it is written here.
    #[error("{}: {problem}", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The mistake.
        problem: String,
    },
    /// Others are at work in the folder.
    #[error("{} is in use: another sweep works in it", .0.display())]
    InUse(PathBuf),
    /// The request is of no use with this sweep.
    #[error("{0}")]
    Unsuitable(String),
}

impl SweepError {
    /// The remedy for the user.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            SweepError::OtherDefinition { .. } => Some(
                "name another folder, give the options that it was begun with, or --restart, which removes its points",
            ),
            SweepError::OtherVersion { .. } => {
                Some("go on with that version, name another folder, or give --restart, which removes its points")
            }
            SweepError::NoSweep(_) => Some("`balar-actors sweep ... --output DIR` writes one"),
            SweepError::InUse(_) => Some("wait until it has ended, or end it"),
            SweepError::NotWritten { .. } => {
                Some("with room for files, the same command goes on where this one stopped")
            }
            SweepError::File { what: "lock", .. } => Some(
                "processes that share a sweep need a file system with locks: a local one, or NFS with its lock service",
            ),
            _ => None,
        }
    }
}
