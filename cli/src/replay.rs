//! Replaying what was recorded of a program, or a trace of Balar.

use crate::arguments::ReplayOptions;
use crate::exit::ExitStatus;
use crate::failure::{Failure, say};
use crate::node;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::result::RunRecord;
use crate::simulate::{engine_options, listen, refuse_sass};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::LiveBoard;
use balar_actors::simulation::{HostSurroundings, InitialCode, simulate_host_with_code};
use balar_actors::topology;
use balar_host::Host;
use balar_host::trace::{BalarError, BalarReplay, BalarTrace, Header, LineError, Replay, Trace, TraceError};
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::io;

/// A trace of either kind.
enum Recorded {
    Own(Box<Trace>),
    Balar(BalarTrace),
}

/// Replays a trace; returns what came of it, and the topology with everything written out.
///
/// # Errors
///
/// Where the replay cannot begin: a damaged trace, a mistake in the topology or the options.
pub fn run(options: &ReplayOptions, kinds: &[&'static UnitDefinition]) -> Result<(RunRecord, String), Failure> {
    let common = &options.simulation;
    refuse_sass(common, "the same kernels from their PTX")?;
    let interrupt = listen(common)?;
    let topology = node::load(common.topology.as_deref().unwrap_or_default(), &common.set, kinds)?;
    common.selection.check(&topology)?;
    let recorded = open(options)?;
    let (header, code, unfinished) = match &recorded {
        Recorded::Own(trace) => (trace.header.clone(), trace.code()?, trace.header.finished.is_none()),
        Recorded::Balar(trace) => (Header { program: trace.program(), ..Header::default() }, InitialCode::new(), false),
    };
    if unfinished {
        let cause = header.interrupted.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        say(format_args!("{} is unfinished{cause}: it is replayed as far as it goes", options.trace.display()));
    }
    let board = LiveBoard::default();
    let engine_options = engine_options(common, interrupt.flag.clone(), &board);
    let mut recording = Recording::new(common.record.as_deref());
    let start = |surroundings: HostSurroundings| -> io::Result<Box<dyn Host>> {
        let window = surroundings.shared_memory;
        let host: Box<dyn Host> = match recorded {
            Recorded::Own(trace) => {
                Box::new(Replay::new(*trace, window.clone(), !options.unchecked).map_err(io::Error::other)?)
            }
            Recorded::Balar(trace) => Box::new(BalarReplay::new(trace)),
        };
        recording.wrap(host, Header { topology: topology.name.clone(), ..header.clone() }, &code, window)
    };
    let progress = Progress::show(&board, common.quiet);
    let result = simulate_host_with_code(&topology, &code, start, engine_options);
    drop(progress);
    recording.report();
    let mut record = RunRecord::of(result.map_err(Failure::from)?, &topology).ended_by(&interrupt);
    recording.report_ending(&record);
    record.workload = header.program;
    record.parameters = header.parameters;
    Ok((record, topology::show(&topology, None)))
}

/// Finds out what kind of trace it is, and reads it.
fn open(options: &ReplayOptions) -> Result<Recorded, Failure> {
    let folder = &options.trace;
    if Trace::is_at(folder) {
        if let Some(file) = options.ptx.first() {
            let help = "only traces of Balar, which have none of their own, need --ptx".to_owned();
            let message =
                format!("{} holds its code itself, --ptx {} has no place in it", folder.display(), file.display());
            return Err(Failure::sentence(ExitStatus::BadInput, message, Some(help)));
        }
        return Ok(Recorded::Own(Box::new(Trace::open(folder, options.partial)?)));
    }
    if BalarTrace::is_at(folder) {
        return Ok(Recorded::Balar(BalarTrace::open(folder, &options.ptx)?));
    }
    let problem = match folder.metadata() {
        Ok(metadata) if metadata.is_dir() => "it holds neither trace.txt nor cuda_calls.trace".to_owned(),
        Ok(_) => "it is no folder".to_owned(),
        Err(error) => error.to_string(),
    };
    let help = "--record DIR, with any run, records one".to_owned();
    Err(Failure::sentence(
        ExitStatus::BadInput,
        format_args!("{} is not a trace: {problem}", folder.display()),
        Some(help),
    ))
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        let help = error.help();
        Failure::sentence(ExitStatus::BadInput, error, help)
    }
}

impl From<BalarError> for Failure {
    fn from(error: BalarError) -> Failure {
        match error {
            BalarError::Line(error) => Failure::diagnosed(LineReport::from(*error)),
            BalarError::Trace(error) => Failure::from(error),
            error => Failure::input(error),
        }
    }
}

/// A line of a Balar trace that cannot be followed, with its text.
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
