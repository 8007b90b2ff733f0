//! The main job: a run of a workload; and what is left to do behind every run.

use crate::commands::report;
use crate::options::simulation::SimulationOptions;
use crate::options::workload::RunOptions;
use crate::output::{self, folder};
use crate::simulation::simulate::{self, Simulated};
use crate::timeline;
use balar_actors::catalogue::UnitDefinition;
use balar_record::ending::Ending;
use balar_record::result::RunRecord;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{BUG, Failure, UNIT_BROKEN, say};
use std::io;

/// Runs a workload and prints its result.
///
/// # Errors
///
/// Where the run cannot begin, or something of its result cannot be written.
pub fn run(options: &RunOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    prepare(&options.simulation)?;
    conclude(&simulate::run(options, kinds)?, &options.simulation, kinds)
}

/// Prints the result of a run when its artefacts have been written. It is printed even where they could not be.
///
/// # Errors
///
/// As [`tell`].
pub fn conclude(
    simulated: &Simulated,
    options: &SimulationOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<ExitStatus, Failure> {
    let told = tell(simulated, options, kinds);
    print_result(&simulated.record, options)?;
    told.map(|()| simulated.record.status())
}

/// Creates the folder for the artefacts, if one is named, and finds out whether the timeline and the report can be written.
///
/// # Errors
///
/// Where they cannot.
pub fn prepare(options: &SimulationOptions) -> Result<(), Failure> {
    timeline::prepare(options)?;
    report::prepare(options)?;
    options.output.as_deref().map_or(Ok(()), folder::prepare).map_err(Failure::input)
}

/// Writes the requested artefacts, and reports problems on stderr.
///
/// # Errors
///
/// What could not be written, or a kernel that is asked for and has not run.
pub fn tell(
    simulated: &Simulated,
    options: &SimulationOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<(), Failure> {
    let Simulated { record, expanded, observation, trace_problem } = simulated;
    let written = options.output.as_deref().map_or(Ok(()), |path| folder::write_asked(path, record, expanded, options));
    let observed = observation.finish(record, expanded);
    let timeline = timeline::write(record, options);
    let report = report::write(record, expanded, observation.take_samples(), options, kinds);
    observation.end(record);
    if let Some(outcome) = &record.statistics.outcome {
        // The output of kernels is not part of the result. A closed stderr is ignored.
        let _ = io::Write::write_all(&mut io::stderr(), &outcome.printed);
    }
    say_problem(record, "error");
    let traced = trace_problem.as_ref().map_or(Ok(()), |problem| Err(Failure::input(problem)));
    let unmatched = options.selection.launches.unmatched(&record.statistics.kernels);
    let chosen = unmatched.filter(|_| record.ending == Ending::Completed).map_or(Ok(()), Err);
    written.and(observed).map_err(Failure::input).and(timeline).and(report).and(traced).and(chosen)
}

/// Says on stderr why a run did not end as it should, if it did not. The line begins with `speaker`: beside the output of a program, the
/// simulator says that the words are its own.
pub fn say_problem(record: &RunRecord, speaker: &str) {
    if let Some(problem) = record.problem() {
        say(format_args!("{speaker}: {problem}"));
    }
    if let Some(refused) = record.refused_launches() {
        say(format_args!("balar-actors: {refused}"));
    }
    match record.status() {
        ExitStatus::Bug => say(BUG),
        ExitStatus::UnitBroken => say(UNIT_BROKEN),
        _ => {}
    }
}

fn print_result(record: &RunRecord, options: &SimulationOptions) -> Result<(), Failure> {
    output::write_result(record, options.format, &options.selection, io::stdout().lock())
        .map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))
}
