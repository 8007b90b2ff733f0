//! `compare`: what differs between two runs: kernels, in time and in cause; counters, by row of units; and what went in.
//!
//! | room | what it has |
//! |---|---|
//! | `inputs` | topology, workload, code, version |
//! | `kernels` | kernels side by side: times, figures, stalls |
//! | `counters` | counters of the whole run, the most significant changes first |
//! | `table`, `machine_readable` | how it is printed |
//! | `options` | what is asked for |

pub(crate) mod counters;
pub(crate) mod inputs;
pub(crate) mod kernels;
mod machine_readable;
mod options;
mod table;
#[cfg(test)]
mod tests;

pub use options::{COMPARE_HELP, CompareOptions};

use crate::failure::Failure;
use crate::hotspots::{TableFormat, is_named};
use crate::run_folder::RunFolder;
use balar_actors::catalogue::UnitDefinition;
use counters::CounterChange;
use inputs::InputDifference;
use kernels::{KernelPair, LaunchPair, Stalls};
use serde::Serialize;

/// Two values of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair<T> {
    /// In the first run.
    pub before: T,
    /// In the second run.
    pub after: T,
}

impl<T> Pair<T> {
    fn map<U>(self, of: impl Fn(T) -> U) -> Pair<U> {
        Pair { before: of(self.before), after: of(self.after) }
    }
}

impl Pair<f64> {
    /// The second less the first.
    fn change(self) -> f64 {
        self.after - self.before
    }

    /// The change in percent of the first; `None` where that is zero.
    fn percent(self) -> Option<f64> {
        (self.before != 0.0).then(|| self.change() / self.before * 100.0)
    }
}

/// Two runs side by side.
#[derive(Debug)]
struct Comparison {
    runs: Pair<RunFolder>,
    /// What went in that differs.
    inputs: Vec<InputDifference>,
    /// What could not be compared, in words.
    notes: Vec<String>,
    /// Kernels of both, those first whose time changed most.
    kernels: Vec<KernelPair>,
    /// Kernels that only one has: names and calls.
    only: Pair<Vec<(String, u64)>>,
    /// Launches of both.
    launches: Vec<LaunchPair>,
    /// Where the warps of the whole run spent their cycles.
    stalls: Stalls,
    /// Counters of the whole run that differ, the most significant change first.
    counters: Vec<CounterChange>,
    /// Values that the programs report about themselves, where they differ.
    results: Vec<(String, String, Pair<Option<f64>>)>,
}

impl Comparison {
    fn of(
        runs: Pair<RunFolder>,
        options: &CompareOptions,
        kinds: &[&'static UnitDefinition],
    ) -> Result<Comparison, Failure> {
        let mut notes = Vec::new();
        let inputs = inputs::differences(&Pair { before: &runs.before, after: &runs.after }, kinds, &mut notes);
        let chosen = |name: &str| options.kernel.as_ref().is_none_or(|regex| is_named(regex, name));
        let profiles = Pair { before: runs.before.instructions()?, after: runs.after.instructions()? };
        if let Some(regex) = &options.kernel
            && !runs
                .before
                .document
                .kernels
                .iter()
                .chain(&runs.after.document.kernels)
                .any(|launch| chosen(&launch.name))
        {
            let message = format_args!("--kernel {regex}: no kernel of the two runs has such a name");
            return Err(Failure::mistake(message, "without --kernel, all are compared"));
        }
        let (kernels, only) = kernels::pairs(&runs, &profiles, chosen);
        if kernels.iter().any(|kernel| kernel.stalls.is_none()) {
            notes.push("stalls by kernel are known where both runs have --profile-instructions".to_owned());
        }
        let documents = Pair { before: &runs.before.document, after: &runs.after.document };
        let mut results = Vec::new();
        for result in &documents.before.results {
            let other = documents.after.results.iter().find(|other| other.name == result.name);
            let values = Pair { before: result.value, after: other.and_then(|other| other.value) };
            if values.before != values.after {
                results.push((result.name.clone(), result.unit.clone(), values));
            }
        }
        Ok(Comparison {
            inputs,
            notes,
            kernels,
            only,
            launches: kernels::launches(&documents, chosen),
            stalls: counters::stalls(&documents),
            counters: counters::changes(&documents),
            results,
            runs,
        })
    }

    /// Simulated time of the whole runs, ps; zero where nothing was timed.
    fn time(&self) -> Pair<u64> {
        let of = |run: &RunFolder| run.document.sim_time_ps.unwrap_or_default();
        Pair { before: of(&self.runs.before), after: of(&self.runs.after) }
    }

    /// Did the same happen in both?
    fn is_alike(&self) -> bool {
        let ends = |run: &RunFolder| {
            let document = &run.document;
            (document.completed, document.verified, document.ended_by.clone(), document.sim_time_ps)
        };
        ends(&self.runs.before) == ends(&self.runs.after)
            && self.only.before.is_empty()
            && self.only.after.is_empty()
            && self.counters.is_empty()
            && self.results.is_empty()
            && self.launches.iter().all(LaunchPair::is_alike)
            && self.kernels.iter().all(KernelPair::is_alike)
    }
}

/// What is printed of two runs.
///
/// # Errors
///
/// One of them cannot be read, or no kernel has the name that is asked for.
pub fn run(options: &CompareOptions, kinds: &[&'static UnitDefinition], width: Option<u16>) -> Result<String, Failure> {
    let runs = Pair { before: RunFolder::read(&options.before)?, after: RunFolder::read(&options.after)? };
    let comparison = Comparison::of(runs, options, kinds)?;
    Ok(match options.format {
        TableFormat::Table => table::text(&comparison, options, width),
        TableFormat::Csv => machine_readable::csv(&comparison),
        TableFormat::Json => machine_readable::json(&comparison),
    })
}
