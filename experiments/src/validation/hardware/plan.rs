//! Which rows of a card are run, and how.

use super::card::Card;
use crate::validation::Selection;
use crate::validation::programs::{ProgramRun, last_lines};
use crate::validation::recorded::KernelRow;
use crate::validation::runs::{JobError, Running};
use std::collections::BTreeSet;
use std::path::Path;

/// A run that gives the figure of a row. Rows of the same command and label share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KernelJob {
    pub run: ProgramRun,
    /// The label behind which the program prints the figure.
    pub label: &'static str,
}

impl KernelJob {
    /// The run of a row's program; `None` where the folder does not have it.
    fn of(row: &'static KernelRow, card: &Card, folder: &str) -> Option<KernelJob> {
        let program = Path::new(folder).join(&row.program);
        if !program.is_file() {
            return None;
        }
        let arguments = row.arguments.split_whitespace().map(|argument| argument.replace("{folder}", folder));
        let run = ProgramRun {
            command: std::iter::once(format!("{folder}/{}", row.program)).chain(arguments).collect(),
            directory: Some(Path::new(folder).join(&row.directory)),
            topology: card.node,
            overrides: Vec::new(),
            by_instruction: false,
        };
        Some(KernelJob { run, label: &row.value })
    }

    /// Runs the program, and finds the figure in what it prints.
    pub fn figure(&self, running: &Running<'_>) -> Result<f64, JobError> {
        let figures = running.run_program(&self.run)?;
        let failed = |why: &str| {
            let told = match last_lines(&figures.printed) {
                nothing if nothing.is_empty() => "it printed nothing".to_owned(),
                lines => format!("its last lines: {lines}"),
            };
            JobError::Failed(format!("{why}; {told}"))
        };
        // A time that no kernel took is not simulated.
        if figures.launches.is_empty() {
            return Err(failed("it launched no kernel"));
        }
        let found = figures.printed_value(self.label);
        found.ok_or_else(|| failed(&format!("it printed no `{}=NUMBER`", self.label)))
    }
}

/// The chosen rows of a card, and the run of each whose program is there.
pub(super) struct Plan {
    pub card: &'static Card,
    pub rows: Vec<(&'static KernelRow, Option<KernelJob>)>,
}

impl Plan {
    /// What is chosen of a card.
    pub fn of(card: &'static Card, selection: &Selection) -> Plan {
        let rows = card.rows.iter().filter(|row| selection.has_program(&row.name));
        let job = |row| KernelJob::of(row, card, selection.folder.as_deref()?);
        Plan { card, rows: rows.map(|row| (row, job(row))).collect() }
    }

    /// The runs that it needs.
    pub fn jobs(&self) -> impl Iterator<Item = &KernelJob> {
        self.rows.iter().filter_map(|(_, job)| job.as_ref())
    }

    /// The rows that a run is for, each with its node.
    pub fn names_of(&self, job: &KernelJob) -> impl Iterator<Item = String> {
        let rows = self.rows.iter().filter(move |(_, own)| own.as_ref() == Some(job));
        rows.map(|(row, _)| format!("{} on {}", row.name, self.card.node))
    }

    /// The programs of rows that are not run.
    pub fn absent_programs(&self) -> BTreeSet<&'static str> {
        self.rows.iter().filter(|(_, job)| job.is_none()).map(|(row, _)| &*row.program).collect()
    }
}
