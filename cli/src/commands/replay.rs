//! Replays of recorded programs and of Balar's traces.

use crate::options::replay::ReplayOptions;
use crate::options::simulation::check_detail;
use crate::simulation::interrupt::Interrupt;
use crate::simulation::interruptible;
use crate::simulation::node;
use crate::simulation::observation::Observation;
use crate::simulation::progress::Progress;
use crate::simulation::ptxas::code_choice;
use crate::simulation::recording::Recording;
use crate::simulation::simulate::{Simulated, engine_options, listen, nothing_ran};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::RunOptions;
use balar_actors::simulation::{
    DeviceCode, HostSurroundings, InitialCode, RunResult, SimulationError, simulate_host_with_code,
};
use balar_actors::topology::{self, Topology};
use balar_host::Host;
use balar_host::trace::{BalarError, BalarReplay, BalarTrace, Header, LineError, Replay, Trace, TraceError};
use balar_live::WhatRuns;
use balar_record::result::RunRecord;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A trace of either kind.
enum Recorded {
    Own(Box<Trace>),
    Balar(BalarTrace),
}

/// Replays a trace.
///
/// # Errors
///
/// Where the replay cannot begin: a damaged trace, a mistake in the topology or the options.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn run(options: &ReplayOptions, kinds: &[&'static UnitDefinition]) -> Result<Simulated, Failure> {
    let common = &options.simulation;
    check_detail(common)?;
    let topology = node::of_simulation(common, kinds)?;
    common.selection.check(&topology)?;
    // A topology may come from a pipe: until it is read, signals end the process as they do by default.
    let interrupt = listen(common)?;
    let work = WhatRuns { name: options.trace.display().to_string(), is_program: false };
    let observation = Observation::prepare(common, &topology, work)?;
    let progress = Progress::show(&observation.board(), common.quiet);
    let begun = std::time::Instant::now();
    let engine_options = engine_options(common, interrupt.flag.clone(), &observation);
    let watched = replay_watched(options, &topology, engine_options, &interrupt);
    drop(progress);
    let mut trace_problem = None;
    let mut record = match watched.map_err(|error| Failure::input(format_args!("cannot start a thread: {error}")))? {
        Some(replayed) => {
            let Replayed { result, header, recording, first_difference } = replayed?;
            trace_problem = recording.problem();
            let mut record =
                RunRecord::of(result.map_err(Failure::from)?, &topology).interrupted_by(interrupt.ending());
            recording.report_ending(&record);
            if let Some(difference) = first_difference.get() {
                say(format_args!(
                    "note: a result differs from the recording, which was on {}: {difference}",
                    header.topology
                ));
            }
            (record.workload, record.parameters) = (header.program, header.parameters);
            record
        }
        None => {
            let program = (options.trace.display().to_string(), Vec::new());
            nothing_ran(program, common, &topology, &interrupt, begun.elapsed())
        }
    };
    record.chosen_launches = common.selection.launches.of(&record.statistics.kernels);
    record.series = observation.take_counters();
    Ok(Simulated { record, expanded: topology::show(&topology, None), observation, trace_problem })
}

/// What comes of a replay.
struct Replayed {
    result: Result<RunResult, SimulationError>,
    header: Header,
    recording: Recording,
    /// On another node than the recording's: the first difference from it.
    first_difference: Arc<OnceLock<String>>,
}

/// Reads the trace and replays it on a thread of its own; `None` where the interrupt came before the simulation began.
fn replay_watched(
    options: &ReplayOptions,
    topology: &Topology,
    engine_options: RunOptions,
    interrupt: &Interrupt,
) -> io::Result<Option<Result<Replayed, Failure>>> {
    let begun = Arc::<AtomicBool>::default();
    let (options, topology, begins) = (options.clone(), topology.clone(), begun.clone());
    let work = move || replay(&options, &topology, engine_options, &begins);
    interruptible::run(interrupt, || !begun.load(Ordering::Relaxed), work)
}

/// Reads the trace and replays it; `begins` is set when everything is read and the simulation begins.
fn replay(
    options: &ReplayOptions,
    topology: &Topology,
    engine_options: RunOptions,
    begins: &AtomicBool,
) -> Result<Replayed, Failure> {
    let recorded = open(options)?;
    let (header, code, unfinished) = match &recorded {
        Recorded::Own(trace) => {
            (trace.header.clone(), trace.code().map_err(trace_failure)?, trace.header.finished.is_none())
        }
        Recorded::Balar(trace) => (Header { program: trace.program(), ..Header::default() }, InitialCode::new(), false),
    };
    if unfinished {
        let cause = header.interrupted.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        say(format_args!("{} is unfinished{cause}, and is replayed as far as it goes", options.trace.display()));
    }
    if !options.simulation.quiet {
        say_what_is_compared(&header, topology, options);
    }
    let loaded = DeviceCode { initial: code.clone(), choice: code_choice(&options.simulation)? };
    let mut recording = Recording::new(options.simulation.record.as_deref());
    let mut first_difference = Arc::default();
    let start = |surroundings: HostSurroundings| -> io::Result<Box<dyn Host>> {
        let window = surroundings.shared_memory;
        let host: Box<dyn Host> = match recorded {
            Recorded::Own(trace) => {
                let replay = Replay::new(*trace, window.clone(), !options.unchecked).map_err(io::Error::other)?;
                first_difference = replay.first_difference();
                Box::new(replay.on(&topology.name))
            }
            Recorded::Balar(trace) => Box::new(BalarReplay::new(trace)),
        };
        let header = Header { topology: topology.name.clone(), ..header.clone() };
        let host = recording.wrap(host, header, &code, window)?;
        begins.store(true, Ordering::Relaxed);
        Ok(host)
    };
    let result = simulate_host_with_code(topology, &loaded, start, engine_options);
    Ok(Replayed { result, header, recording, first_difference })
}

/// Says what a replay on another node than the recording's compares, and what it does not.
fn say_what_is_compared(header: &Header, topology: &Topology, options: &ReplayOptions) {
    // Traces of Balar do not say where they were recorded.
    if header.topology.is_empty() || header.topology == topology.name {
        return;
    }
    let data = if options.unchecked {
        "not compared (--unchecked)"
    } else {
        "compared, and may differ where they depend on an order"
    };
    say(format_args!(
        "note: {} was recorded on {}: on {} the data that come back are {data}; times and the text that kernels print are not \
         compared; addresses have to be the same",
        options.trace.display(),
        header.topology,
        topology.name
    ));
}

/// The folder of a trace that is named by its folder, or by the file in it that lists the calls.
fn folder_of(trace: &Path) -> PathBuf {
    let is_main_file = trace.file_name().is_some_and(|name| name == "trace.txt" || name == "cuda_calls.trace");
    match trace.parent() {
        Some(folder) if is_main_file && !trace.is_dir() => Path::new(".").join(folder),
        _ => trace.to_owned(),
    }
}

/// Finds out what kind of trace it is, and reads it.
fn open(options: &ReplayOptions) -> Result<Recorded, Failure> {
    let folder = &folder_of(&options.trace);
    if Trace::is_at(folder) {
        if let Some(file) = options.ptx.first() {
            let help = "--ptx is for traces of Balar, which may come without code".to_owned();
            let message =
                format!("{} contains its own code, so --ptx {} cannot be used", folder.display(), file.display());
            return Err(Failure::sentence(ExitStatus::BadInput, message, Some(help)));
        }
        return Ok(Recorded::Own(Box::new(Trace::open(folder, options.partial).map_err(trace_failure)?)));
    }
    if BalarTrace::is_at(folder) {
        return Ok(Recorded::Balar(BalarTrace::open(folder, &options.ptx).map_err(balar_failure)?));
    }
    let problem = match folder.metadata() {
        Ok(metadata) if metadata.is_dir() => "it holds neither trace.txt nor cuda_calls.trace".to_owned(),
        Ok(_) => "a trace is a folder of several files, this is one file or a pipe".to_owned(),
        Err(error) => error.to_string(),
    };
    let help = "--record DIR, with any run, records one".to_owned();
    Err(Failure::sentence(
        ExitStatus::BadInput,
        format_args!("{} is not a trace: {problem}", folder.display()),
        Some(help),
    ))
}

/// Why a trace cannot be replayed, as it is told.
fn trace_failure(error: TraceError) -> Failure {
    let help = error.help();
    Failure::sentence(ExitStatus::BadInput, error, help)
}

/// Why a trace of Balar cannot be replayed, as it is told.
fn balar_failure(error: BalarError) -> Failure {
    match error {
        BalarError::Line(error) => Failure::diagnosed(LineReport::from(*error)),
        BalarError::Trace(error) => trace_failure(error),
        error => Failure::input(error),
    }
}

/// A line of a Balar trace that cannot be replayed, with its text.
#[derive(Debug)]
struct LineReport {
    error: String,
    problem: String,
    at: std::ops::Range<usize>,
    source: NamedSource<String>,
}

impl From<LineError> for LineReport {
    fn from(error: LineError) -> LineReport {
        let name = error.path.display().to_string();
        LineReport {
            error: format!("{name}:{}: {}", error.line, error.problem),
            problem: error.problem,
            at: error.at,
            source: NamedSource::new(name, error.text),
        }
    }
}

impl fmt::Display for LineReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.error)
    }
}

impl std::error::Error for LineReport {}

impl Diagnostic for LineReport {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.problem.clone()), self.at.clone());
        Some(Box::new(std::iter::once(label)))
    }
}
