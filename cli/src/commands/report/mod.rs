//! `--report FILE` and `report RUN...`: what a run did, or what two did, as one page of HTML. docs/report.md says what is on it.
//!
//! ```text
//!   RunRecord, samples of the Watcher ─┐
//!   folder of --output ────────────────┴─► RunInput ──► sections ──► balar_report::Page ──► HTML
//! ```
//!
//! | room | what it has |
//! |---|---|
//! | `input` | a run, wherever it comes from |
//! | `over_time` | series of the samples that were kept while it went on, or of samples.jsonl |
//! | `attribution` | what belongs to which kernel of what was sampled |
//! | `head`, `node`, `kernels`, `ranges`, `stalls`, `roofline`, `charts`, `balance`, `links`, `unified_memory`, `differences` | the sections |
//! | `units` | numbers in units of measure |
//!
//! **Invariant:** nothing on the page depends on threads or on real time.

mod attribution;
mod balance;
mod charts;
mod differences;
mod head;
mod input;
mod kernels;
mod links;
mod node;
mod over_time;
mod ranges;
mod roofline;
mod stalls;
mod unified_memory;
mod units;
use crate::options::report::ReportOptions;
use crate::options::simulation::SimulationOptions;
use crate::series::sample_keeper::Samples;
use balar_actors::catalogue::UnitDefinition;
use balar_record::result::RunRecord;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_record::system::files;
use balar_report::Page;
use input::RunInput;
use std::path::Path;

/// Finds out before the run whether its report can be written.
///
/// # Errors
///
/// Where it cannot.
pub fn prepare(options: &SimulationOptions) -> Result<(), Failure> {
    options.report.as_deref().map_or(Ok(()), |path| writable("--report", path))
}

fn writable(option: &str, path: &Path) -> Result<(), Failure> {
    files::check_writable(path).map_err(|error| {
        Failure::mistake(format_args!("{option}: {error}"), "name a file in a folder that can be written to")
    })
}

/// Writes the report of a run that has ended, where one was asked for.
///
/// # Errors
///
/// Where it cannot be written. The rest of the result is worth printing nevertheless.
pub fn write(
    record: &RunRecord,
    expanded: &str,
    samples: Samples,
    options: &SimulationOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<(), Failure> {
    let Some(path) = &options.report else { return Ok(()) };
    let run = RunInput::of_record(record, expanded, samples, kinds)?;
    files::write(path, &page(&[run], kinds).html()).map_err(|error| {
        let message = format_args!("the report is missing: {error}");
        Failure::sentence(ExitStatus::BadInput, message, Some("all other results of the run are complete".to_owned()))
    })
}

/// Writes the report of one or two runs that lie in folders.
///
/// # Errors
///
/// One cannot be read, or the page cannot be written.
pub fn run(options: &ReportOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    if options.runs.len() > 2 {
        let message = format_args!("report: {} runs are named, and a page shows one or two", options.runs.len());
        return Err(Failure::mistake(message, "`balar-actors compare` and stats.csv are for tables of more"));
    }
    writable("--output", &options.output)?;
    let runs: Result<Vec<RunInput>, Failure> =
        options.runs.iter().map(|path| RunInput::of_folder(path, kinds)).collect();
    let mut runs = runs?;
    if let [before, after] = &mut runs[..] {
        (before.label, after.label) = ("A", "B");
    }
    files::write(&options.output, &page(&runs, kinds).html()).map_err(Failure::input)?;
    Ok(ExitStatus::Done)
}

fn page(runs: &[RunInput], kinds: &[&'static UnitDefinition]) -> Page {
    let kernels = attribution::by_kernel(runs);
    let sections = [
        node::section(runs, kinds),
        kernels::section(runs, &kernels),
        ranges::section(runs),
        stalls::section(runs, &kernels),
        roofline::section(runs),
        charts::section(runs),
        balance::section(runs),
        links::section(runs),
        unified_memory::section(runs),
        differences::section(runs, kinds),
    ];
    Page {
        title: head::title(runs),
        runs: runs.iter().map(head::run).collect(),
        tiles: head::tiles(runs),
        sections: sections.into_iter().flatten().collect(),
        footer: head::footer(runs),
    }
}
