//! Studies: simulated beside measured.
//!
//! A [`Study`] has parts. Each part names the runs that it needs ([`Point`](runs::Point)) and makes tables, charts and comparisons of their
//! figures. Another study is a file with a [`Study`], and a line in [`STUDIES`].
//!
//! `runs.rs` makes many runs at a time, `report.rs` has tables and comparisons, `agreement.rs` how well columns agree, `side_by_side.rs` rows with a reference each,
//! `recorded.rs` the tables of `validation/`, `programs.rs` programs of the user's, `instruction_mix.rs` classes of instructions; `balar`, `unified_memory`, `ldms` and
//! `volta` are the studies.

pub mod agreement;
pub mod balar;
pub mod instruction_mix;
pub mod ldms;
pub mod programs;
mod recorded;
pub mod report;
pub mod roofline;
pub mod runs;
mod side_by_side;
pub mod unified_memory;
pub mod volta;

use report::Report;
use runs::{RunError, Running};
use std::collections::BTreeMap;

/// Simulated beside measured, on a subject.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// The two sides of its comparisons.
    pub summary: &'static str,
    /// How long all of it takes.
    pub duration: &'static str,
    /// The parts that can be chosen.
    pub parts: &'static [PartDescription],
    /// The programs that can be chosen.
    pub programs: fn() -> Vec<&'static str>,
    /// Programs that the user may bring.
    pub user_programs: &'static [&'static str],
    /// Runs it.
    pub run: fn(&Selection, &Running<'_>) -> Result<Report, RunError>,
}

/// A part of a study.
#[derive(Clone, Copy, Debug)]
pub struct PartDescription {
    /// Its name on the command line.
    pub name: &'static str,
    /// The two sides of its comparisons.
    pub summary: &'static str,
}

/// The choice of runs of a study.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of parts; all where empty.
    pub parts: Vec<String>,
    /// Names of programs; all where empty.
    pub programs: Vec<String>,
    /// Programs of the user's: names, and the words of the command that runs each.
    pub commands: BTreeMap<String, Vec<String>>,
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

/// All studies.
pub const STUDIES: &[&Study] = &[&balar::STUDY, &unified_memory::STUDY, &ldms::STUDY, &roofline::STUDY, &volta::STUDY];
