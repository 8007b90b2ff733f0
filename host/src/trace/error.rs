//! Mistakes in traces.

use std::io;
use std::path::{Path, PathBuf};

/// Why a trace cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system refuses an operation.
    #[error("cannot {doing} {}: {source}", .path.display())]
    System {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A folder of something else.
    #[error("{} is not a trace: {reason}", .path.display())]
    NotATrace {
        /// The folder or file.
        path: PathBuf,
        /// The file as it is, and as it was expected.
        reason: String,
    },
    /// A trace of another version of the format.
    #[error("{} has format version {found}, expected version {expected}", .path.display())]
    Version {
        /// The file that says so.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that this program reads.
        expected: u32,
    },
    /// A line of the header, or of a trace that is text.
    #[error("{}:{line}: {problem}\n  {text}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The line.
        text: String,
        /// The mistake in it, and the expected text.
        problem: String,
    },
    /// A file that is not as it was written.
    #[error("{}, byte {offset}: {cause}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// The mistake.
        cause: String,
    },
    /// The trace of a run that did not come to its end.
    #[error("{} is unfinished: {}", .path.display(), unfinished(.cause.as_deref()))]
    Unfinished {
        /// The folder.
        path: PathBuf,
        /// The cause of the recorded run's end, where the trace says so.
        cause: Option<String>,
    },
}

fn unfinished(cause: Option<&str>) -> String {
    match cause {
        Some(cause) => format!("the recorded run did not come to its end: {cause}"),
        None => "the recorded run did not come to its end, or is still going on".to_owned(),
    }
}

impl TraceError {
    /// The remedy for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            TraceError::Unfinished { .. } => Some("`--partial` replays the part that is there".to_owned()),
            TraceError::Version { .. } => Some("record the program again with this version".to_owned()),
            TraceError::Damaged { .. } => Some(
                "the trace is not as it was recorded: copy it again from where it comes, or record it again".to_owned(),
            ),
            _ => None,
        }
    }

    pub(super) fn system(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TraceError {
        let path = path.to_owned();
        move |source| TraceError::System { doing, path, source }
    }

    pub(super) fn damaged(path: &Path, offset: u64, cause: impl Into<String>) -> TraceError {
        TraceError::Damaged { path: path.to_owned(), offset, cause: cause.into() }
    }
}
