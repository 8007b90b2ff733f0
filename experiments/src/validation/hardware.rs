//! Kernels of a public program beside the cards that they were measured on: the times that the program prints.
//!
//! The rows are those of `validation/titanv_kernels.csv` and `validation/rtx2080ti_kernels.csv`. The program is not ours: where the user has
//! it built in a folder, it runs as `validation/run_programs` runs it. Where it is not, the recorded figures stand in.

mod card;
mod plan;
mod table;

use super::report::Report;
use super::runs::{self, RunError, Running};
use super::{Selection, Study};
use card::{CARDS, RTX2080TI, TITANV};
use plan::{KernelJob, Plan};

/// The study of cards.
pub const STUDY: Study = Study {
    name: "hardware",
    summary: "kernels of a public program beside a TITAN V and a GeForce RTX 2080 Ti",
    duration: "a second; with --programs minutes",
    parts: &[TITANV.description, RTX2080TI.description],
    programs,
    user_programs: &[],
    takes_folder: true,
    run,
};

fn programs() -> Vec<&'static str> {
    let mut names: Vec<&str> = CARDS.iter().flat_map(|card| card.rows.iter()).map(|row| &*row.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn run(selection: &Selection, running: &Running<'_>) -> Result<Report, RunError> {
    let cards = CARDS.into_iter().filter(|card| selection.has_part(card.description.name));
    let plans: Vec<Plan> = cards.map(|card| Plan::of(card, selection)).collect();
    let jobs = plans.iter().flat_map(Plan::jobs).cloned().collect();
    let runs = runs::make_jobs(running, jobs, |_| 0, |job: &KernelJob| job.figure(running))?;
    let mut report = runs.report(STUDY.name, |job| {
        let names: Vec<_> = plans.iter().flat_map(|plan| plan.names_of(job)).collect();
        format!("{}: {}", names.join(", "), job.run.command_line())
    });
    for plan in &plans {
        table::enter(plan, selection, &runs, &mut report);
    }
    Ok(report)
}

#[cfg(test)]
mod tests;
