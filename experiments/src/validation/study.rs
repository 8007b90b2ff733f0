//! What a study is, and what can be chosen of it.

use super::report::Report;
use super::runs::{RunError, Running};
use std::collections::BTreeMap;

/// Simulated beside measured, on a subject.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it compares with what.
    pub summary: &'static str,
    /// How long all of it takes.
    pub duration: &'static str,
    /// What can be chosen of it.
    pub parts: &'static [PartDescription],
    /// The programs that can be chosen.
    pub programs: fn() -> Vec<&'static str>,
    /// Programs that the user may bring.
    pub user_programs: &'static [&'static str],
    /// Whether it runs programs that the user has in a folder.
    pub takes_folder: bool,
    /// Runs it.
    pub run: fn(&Selection, &Running<'_>) -> Result<Report, RunError>,
}

/// A part of a study.
#[derive(Clone, Copy, Debug)]
pub struct PartDescription {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it compares with what.
    pub summary: &'static str,
}

/// What is to be run of a study.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of parts; all where empty.
    pub parts: Vec<String>,
    /// Names of programs; all where empty.
    pub programs: Vec<String>,
    /// Programs of the user's: names, and the words of the command that runs each.
    pub commands: BTreeMap<String, Vec<String>>,
    /// The folder of programs of the user's, from the root; recorded figures take the place of their runs where there is none.
    pub folder: Option<String>,
}

impl Selection {
    /// Whether a part is wanted.
    pub fn has_part(&self, name: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| part == name)
    }

    /// Whether a program is wanted.
    pub fn has_program(&self, name: &str) -> bool {
        self.programs.is_empty() || self.programs.iter().any(|program| program == name)
    }
}
