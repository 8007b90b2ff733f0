//! The summary of a point whose run has ended: `point.json` in its folder.

use crate::SweepError;
use crate::files;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The file in the folder of a point.
pub const FILE: &str = "point.json";

/// How the run of a point ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointStatus {
    /// Done; the result is verified, or has no check.
    Done,
    /// The result is wrong.
    WrongResult,
    /// Bad arguments, topology, workload or code.
    BadConfiguration,
    /// The simulated program failed.
    ProgramFailed,
    /// Deadlock, or the limit of real time.
    LimitOrDeadlock,
    /// A unit of the user's own broke a rule.
    UnitBroken,
    /// A bug in the simulator.
    Bug,
    /// The process was killed: by the system, for want of memory, or by a user.
    Killed,
}

impl PointStatus {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            PointStatus::Done => "done",
            PointStatus::WrongResult => "wrong_result",
            PointStatus::BadConfiguration => "bad_configuration",
            PointStatus::ProgramFailed => "program_failed",
            PointStatus::LimitOrDeadlock => "limit_or_deadlock",
            PointStatus::UnitBroken => "unit_broken",
            PointStatus::Bug => "bug",
            PointStatus::Killed => "killed",
        }
    }

    /// Its meaning, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            PointStatus::Done => "done",
            PointStatus::WrongResult => "wrong result",
            PointStatus::BadConfiguration => "bad configuration",
            PointStatus::ProgramFailed => "the program failed",
            PointStatus::LimitOrDeadlock => "time limit or deadlock",
            PointStatus::UnitBroken => "a unit broke a rule",
            PointStatus::Bug => "a bug",
            PointStatus::Killed => "killed",
        }
    }
}

/// The summary of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointSummary {
    /// Its number, from 0.
    pub index: usize,
    /// Its settings.
    pub settings: Settings,
    /// The hash of its settings and of the options of the sweep.
    pub configuration_hash: String,
    /// The hash of the inputs: the topology written out, the code, the program; `None` where a mistake in it kept it from being known.
    pub input_hash: Option<String>,
    /// The version of the simulator.
    pub version: String,
    /// How it ended.
    pub status: PointStatus,
    /// The exit code of its process; `None` where a signal killed it.
    pub exit_code: Option<i32>,
    /// The number of that signal.
    pub signal: Option<i32>,
    /// The last message of its process about a failure.
    pub problem: Option<String>,
    /// How long it took, in seconds of real time.
    pub wall_seconds: f64,
}

/// The settings of a point: keys with texts.
pub type Settings = serde_json::Map<String, serde_json::Value>;

impl PointSummary {
    /// Reads the summary in a point's folder; `None` where there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not as it should be.
    pub fn read(folder: &Path) -> Result<Option<PointSummary>, SweepError> {
        let file = folder.join(FILE);
        let text = match files::read_text(&file) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(files::failed("read", &file)(cause)),
        };
        let damaged = |error: serde_json::Error| SweepError::Damaged { file, problem: error.to_string() };
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }
}

/// Why a run ended, as far as the system and the run's own document tell it.
#[derive(Clone, Copy, Debug, Default)]
pub struct End<'a> {
    /// The exit code.
    pub code: Option<i32>,
    /// Why the run ended, as its document says; `None` where it wrote none.
    pub ended_by: Option<&'a str>,
    /// Does a program run, whose exit code is that of the run?
    pub is_program: bool,
}

impl End<'_> {
    /// The status that this end means; `None` where a run that has begun did not write its document, or was ended from outside.
    pub fn meaning(self) -> Option<PointStatus> {
        let End { code, ended_by, is_program } = self;
        let Some(code) = code else { return Some(PointStatus::Killed) };
        if is_program && code != 0 && matches!(ended_by, Some("completed" | "program_killed")) {
            return Some(PointStatus::ProgramFailed);
        }
        match (code, ended_by) {
            (0, Some(_)) => Some(PointStatus::Done),
            (1, Some(_)) => Some(PointStatus::WrongResult),
            (2, None) => Some(PointStatus::BadConfiguration),
            (3, _) => Some(PointStatus::ProgramFailed),
            (4, _) => Some(PointStatus::LimitOrDeadlock),
            (5, _) => Some(PointStatus::UnitBroken),
            (70 | 101, _) => Some(PointStatus::Bug),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_have_a_meaning() {
        let meaning = |code, ended_by, is_program| End { code, ended_by, is_program }.meaning();
        for (code, ended_by, is_program, status) in [
            (Some(0), Some("completed"), false, Some(PointStatus::Done)),
            (Some(0), Some("stop_time"), false, Some(PointStatus::Done)),
            (Some(1), Some("completed"), false, Some(PointStatus::WrongResult)),
            // The document could not be written, or a part of it.
            (Some(0), None, false, None),
            (Some(2), Some("completed"), false, None),
            (Some(2), None, false, Some(PointStatus::BadConfiguration)),
            (Some(3), Some("completed"), false, Some(PointStatus::ProgramFailed)),
            (Some(4), Some("wall_limit"), false, Some(PointStatus::LimitOrDeadlock)),
            (Some(70), None, false, Some(PointStatus::Bug)),
            (Some(143), Some("terminated"), false, None),
            (None, None, false, Some(PointStatus::Killed)),
            // Programs have exit codes of their own.
            (Some(1), Some("completed"), true, Some(PointStatus::ProgramFailed)),
            (Some(2), Some("completed"), true, Some(PointStatus::ProgramFailed)),
            (Some(139), Some("program_killed"), true, Some(PointStatus::ProgramFailed)),
            (Some(4), Some("wall_limit"), true, Some(PointStatus::LimitOrDeadlock)),
            (Some(0), Some("completed"), true, Some(PointStatus::Done)),
        ] {
            assert_eq!(meaning(code, ended_by, is_program), status, "{code:?} {ended_by:?} {is_program}");
        }
    }
}
