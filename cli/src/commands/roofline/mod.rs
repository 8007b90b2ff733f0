//! The `roofline` command: what a node can do at most, measured and by its parameters, and programs below that.

pub mod placed;

use crate::options::roofline::RooflineOptions;
use crate::options::workload::WorkloadChoice;
use crate::output::{self, folder, study};
use crate::simulation::interrupt::Interrupt;
use crate::simulation::node;
use crate::simulation::ptxas;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine;
use balar_actors::simulation::CodeChoice;
use balar_actors::topology::Topology;
use balar_charts::PngError;
use balar_experiments::roofline::{
    MeasureError, Measurements, Part, Placed, Running, Settings, data_txt, measure, report, roofline_json,
};
use balar_experiments::validation::report::Report;
use balar_experiments::{SimulationRequest, simulate};
use balar_record::ending::Ending;
use balar_record::json;
use balar_record::run_folder::RunFolder;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::files;
use balar_record::system::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Measures a node, places what is asked for below its ceilings, prints all that, and writes it where that is asked for.
///
/// # Errors
///
/// Where the topology, a workload or a run is not as it should be, a microbenchmark fails, or the result cannot be written.
pub fn run(options: &RooflineOptions, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let topology = node::load(&options.topology, &options.set, kinds)?;
    // Runs are read before anything is measured: a mistake is told at once.
    let runs: Vec<RunFolder> = options.runs.iter().map(|path| RunFolder::read(path)).collect::<Result<_, _>>()?;
    options.output.as_deref().map_or(Ok(()), folder::prepare).map_err(Failure::input)?;
    let interrupt = Interrupt::listen(options.max_wall)
        .map_err(|error| Failure::input(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let code = ptxas::code_choice_of(options.isa, None)?;
    let found = match place_and_measure(options, &topology, &runs, &interrupt, code) {
        Ok(found) => found,
        Err(MeasureOrFailure::Measure(MeasureError::Interrupted)) => return Ok(ended_by(&interrupt)),
        Err(MeasureOrFailure::Measure(error)) => return Err(Failure::input(error)),
        Err(MeasureOrFailure::Failure(failure)) => return Err(failure),
    };
    let (measured, placed) = found;
    let report = report(&measured, &placed);
    if let Some(path) = &options.output {
        study::write(path, &report).map_err(Failure::input)?;
        write_for_tools(path, &measured, &placed)?;
        write_pictures(path, &report)?;
    }
    let text = study::text(&report, options.format, terminal::width(&io::stdout()));
    output::print(&text).map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))?;
    Ok(ExitStatus::Done)
}

/// What ends the command without a result.
enum MeasureOrFailure {
    Measure(MeasureError),
    Failure(Failure),
}

impl From<MeasureError> for MeasureOrFailure {
    fn from(error: MeasureError) -> MeasureOrFailure {
        MeasureOrFailure::Measure(error)
    }
}

fn place_and_measure(
    options: &RooflineOptions,
    topology: &Topology,
    runs: &[RunFolder],
    interrupt: &Interrupt,
    code: CodeChoice,
) -> Result<(Measurements, Vec<Placed>), MeasureOrFailure> {
    let folders = options.runs.iter().zip(runs);
    let of_folder = |(path, run): (&PathBuf, &RunFolder)| {
        (path.display().to_string(), placed::of_document(&run.document, options.by_kernel))
    };
    let mut sources: Vec<(String, Vec<Placed>)> = folders.map(of_folder).collect();
    for choice in &options.workloads {
        let request = SimulationRequest {
            topology: topology.clone(),
            workload: Some((choice.name.clone(), choice.parameters.clone())),
            ptx: Vec::new(),
            code: code.clone(),
            options: engine::RunOptions { interrupt: interrupt.flag.clone(), ..engine::RunOptions::default() },
        };
        let result = simulate(request).map_err(|error| MeasureOrFailure::Failure(Failure::input(error)))?;
        if !result.completed() {
            if interrupt.flag.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(MeasureError::Interrupted.into());
            }
            let failure = Failure::input(format_args!("workload {} did not come to its end", choice.name));
            return Err(MeasureOrFailure::Failure(failure));
        }
        sources.push((label(choice), placed::of_result(&choice.name, &result, options.by_kernel)));
    }
    let bar = bar(options.quiet);
    let progress = |ended: usize, planned: usize| {
        bar.set_length(planned as u64);
        bar.set_position(ended as u64);
    };
    let jobs = options.jobs.map_or_else(|| thread::available_parallelism().map_or(1, NonZero::get), usize::from);
    let running = Running { jobs, code, interrupt: interrupt.flag.clone(), progress: &progress };
    let measured = measure(topology, &settings(options), &running);
    bar.finish_and_clear();
    Ok((measured?, placed::together(sources)))
}

/// A workload as `--workload` takes it.
fn label(choice: &WorkloadChoice) -> String {
    let parameters: Vec<String> = choice.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if parameters.is_empty() { choice.name.clone() } else { format!("{}:{}", choice.name, parameters.join(",")) }
}

fn settings(options: &RooflineOptions) -> Settings {
    let mut parts: Vec<Part> = options.parts.iter().flat_map(|choice| choice.parts()).collect();
    parts.sort_unstable();
    parts.dedup();
    Settings {
        parts,
        growth: options.growth,
        largest: options.largest.map(|size| size.0),
        blocks: options.blocks,
        threads: options.threads,
    }
}

fn ended_by(interrupt: &Interrupt) -> ExitStatus {
    match interrupt.ending() {
        Ending::Terminated => ExitStatus::Terminated,
        Ending::WallLimit => ExitStatus::DeadlockOrLimit,
        _ => ExitStatus::Interrupted,
    }
}

/// Files of other tools' formats.
fn write_for_tools(path: &Path, measured: &Measurements, placed: &[Placed]) -> Result<(), Failure> {
    let document = json::to_text(&roofline_json(measured));
    files::write(&path.join("roofline.json"), &document).map_err(Failure::input)?;
    files::write(&path.join("data.txt"), &data_txt(measured, placed)).map_err(Failure::input)
}

/// The charts as PNG. Without fonts on this system there are none, which is said: the SVG files are there.
fn write_pictures(path: &Path, report: &Report) -> Result<(), Failure> {
    for chart in &report.charts {
        match balar_charts::png(&chart.svg) {
            Ok(bytes) => {
                let file = path.join(format!("{}.png", chart.name));
                files::write_with(&file, |out| out.write_all(&bytes)).map_err(Failure::input)?;
            }
            Err(PngError::NoFonts) => {
                say(format_args!("no PNG files are written: {}", PngError::NoFonts));
                return Ok(());
            }
            Err(error) => return Err(Failure::bug(error)),
        }
    }
    Ok(())
}

/// A bar on stderr, if that is a terminal and the user has not asked for quiet.
fn bar(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} [{bar:24}] {pos}/{len} runs of this part, {elapsed}");
    let bar =
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
