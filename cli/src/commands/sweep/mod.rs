//! The `sweep` command: many runs of one simulation with different parameters. The mechanism is `balar_sweeps`'.
//!
//! | room | what it has |
//! |---|---|
//! | `keys` | what keys mean, and mistakes in them |
//! | `points` | the processes of points, and what goes into them |
//! | `failure` | what is told of a sweep that cannot go on |
//! | `figures` | what the run of a point found |
//! | `results` | what is collected and printed |
//! | `progress` | the bar |

mod failure;
mod figures;
mod keys;
mod points;
mod progress;
mod results;

use crate::options::sweep::{SweepCommand, SweepOptions};
use crate::simulation::interrupt::Interrupt;
use crate::simulation::node;
use balar_actors::catalogue::UnitDefinition;
use balar_record::ending::Ending;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::files;
use balar_sweeps::definition::Definition;
use balar_sweeps::folder::SweepFolder;
use balar_sweeps::points::{Points, Setting, read_file};
use balar_sweeps::worker::{self, Outcome, Running};
use failure::sweep_failure;
use points::{PointRuns, VERSION};
use progress::SweepBar;
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

/// What the first signal is answered with.
const NOTE: &str = "interrupted: the points that run are given up; once more ends them at once";

/// Runs the points of a sweep, or collects their results.
///
/// # Errors
///
/// A mistake in what is asked for, or a folder that cannot be read or written.
pub fn run(options: &SweepOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    match &options.command {
        Some(SweepCommand::Collect { folder, results }) => results::collect_folder(folder, results, kinds),
        None => run_points(options, kinds),
    }
}

fn run_points(options: &SweepOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let path = options.output.as_deref().unwrap_or(Path::new("."));
    let collecting = results::collecting(&options.results, kinds)?;
    let points = points_of(options)?;
    let checked = keys::check(&options.common, &options.program, &points, kinds)?;
    node::tell(&checked.notes);
    let range = range(options, points.values.len())?;
    let inputs = points::inputs(options, &checked)?;
    let defining = points::defining_options(&options.common);
    let definition = Definition::new(VERSION, defining, options.program.clone(), inputs, points);
    let interrupt = Interrupt::listen_with(None, NOTE)
        .map_err(|error| Failure::input(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let folder = SweepFolder::open(path, definition, options.restart).map_err(sweep_failure)?;
    let runs = PointRuns { common: &options.common, program: &options.program, definition: &folder.definition, kinds };
    let bar = SweepBar::show(range.len(), options.quiet);
    let running = Running {
        jobs: options.jobs.map_or_else(|| jobs(options.common.limits.threads), usize::from),
        points: range.clone(),
        retry_failed: options.retry_failed,
        interrupt: &interrupt.flag,
        progress: &|progress| bar.update(progress),
    };
    let outcome = worker::run(&folder, &runs, &running);
    bar.end();
    let outcome = outcome.map_err(sweep_failure)?;
    let is_ended = interrupt.flag.load(Ordering::Relaxed) && outcome.progress.finished < range.len();
    if is_ended {
        tell_failures(&folder, &outcome);
        say(format_args!(
            "{} of {} points are finished; the same command goes on with the others",
            outcome.progress.finished,
            range.len()
        ));
        return Ok(match interrupt.ending() {
            Ending::Terminated => ExitStatus::Terminated,
            _ => ExitStatus::Interrupted,
        });
    }
    results::conclude(&folder, &runs, range, options.range.is_some(), &options.results, &collecting)?;
    tell_failures(&folder, &outcome);
    Ok(if outcome.failed.is_empty() { ExitStatus::Done } else { ExitStatus::Wrong })
}

/// The points of the file and of the options.
fn points_of(options: &SweepOptions) -> Result<Points, Failure> {
    let file: Vec<Setting> = match &options.points.points_file {
        None => Vec::new(),
        Some(path) => {
            let text = files::read(path)
                .map_err(|error| Failure::input(format_args!("cannot read {}: {error}", path.display())))?;
            let help = "expected points such as [{\"gpu.clock\": \"500 MHz\", \"workload.edge\": 8}, ...]";
            read_file(&text).map_err(|problem| Failure::mistake(format_args!("{}:{problem}", path.display()), help))?
        }
    };
    if file.is_empty() && options.points.set.is_empty() {
        let help = "--set 'gpu.clock=500 MHz,1312 MHz' gives a key values, --points-file names a list of points";
        return Err(Failure::mistake("nothing is swept", help));
    }
    Points::of(&file, &options.points.set).map_err(Failure::input)
}

/// The points that are to be run.
fn range(options: &SweepOptions, count: usize) -> Result<Range<usize>, Failure> {
    let Some(range) = &options.range else { return Ok(0..count) };
    if range.start >= count || (range.end > count && range.end != usize::MAX) {
        let end = if range.end == usize::MAX { String::new() } else { range.end.to_string() };
        let points = if count == 1 { "1 point".to_owned() } else { format!("{count} points") };
        let message = format_args!("--points {}..{end}: the sweep has {points}", range.start);
        return Err(Failure::mistake(message, format!("0..{count} are all")));
    }
    Ok(range.start..range.end.min(count))
}

/// Points at the same time, so that each CPU has one thread.
fn jobs(threads: u16) -> usize {
    let available = thread::available_parallelism().map_or(1, NonZero::get);
    (available / usize::from(threads)).max(1)
}

fn tell_failures(folder: &SweepFolder, outcome: &Outcome) {
    for failed in &outcome.failed {
        let point = folder.definition.point_in_words(failed.index);
        say(format_args!("error: point {} ({point}): {}", failed.index, failed.what));
    }
    let failed = outcome.failed.len();
    if failed > 0 {
        let points = if failed == 1 { "1 point".to_owned() } else { format!("{failed} points") };
        let place = folder.path.join("points");
        say(format_args!("{points} failed; --retry-failed runs them again, their folders are in {}", place.display()));
    }
}
