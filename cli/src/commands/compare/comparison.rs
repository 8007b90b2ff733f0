//! Two runs side by side.

use super::counters::{self, CounterChange};
use super::inputs::{self, InputDifference};
use super::kernels::{self, KernelPair, LaunchPair, Stalls};
use super::pair::Pair;
use crate::options::compare::CompareOptions;
use balar_actors::catalogue::UnitDefinition;
use balar_record::kernel_name::is_named;
use balar_record::run_folder::RunFolder;
use balar_record::system::failure::Failure;

/// Two runs side by side.
#[derive(Debug)]
pub struct Comparison {
    pub runs: Pair<RunFolder>,
    /// What went in that differs.
    pub inputs: Vec<InputDifference>,
    /// What could not be compared, in words.
    pub notes: Vec<String>,
    /// Kernels of both, those first whose time changed most.
    pub kernels: Vec<KernelPair>,
    /// Kernels that only one has: names and calls.
    pub only: Pair<Vec<(String, u64)>>,
    /// Launches of both.
    pub launches: Vec<LaunchPair>,
    /// Where the warps of the whole run spent their cycles.
    pub stalls: Stalls,
    /// Counters of the whole run that differ, the most significant change first.
    pub counters: Vec<CounterChange>,
    /// Values that the programs report about themselves, where they differ.
    pub results: Vec<(String, String, Pair<Option<f64>>)>,
}

impl Comparison {
    pub fn of(
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
    pub fn time(&self) -> Pair<u64> {
        let of = |run: &RunFolder| run.document.sim_time_ps.unwrap_or_default();
        Pair { before: of(&self.runs.before), after: of(&self.runs.after) }
    }

    /// Did the same happen in both?
    pub fn is_alike(&self) -> bool {
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
