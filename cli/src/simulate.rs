//! From options to the record of a run.

use crate::arguments::{Isa, RunOptions};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::node;
use crate::progress::Progress;
use crate::result::{Ending, RunRecord};
use balar_actors::device_memory::DeviceMemory;
use balar_actors::engine::node::Node;
use balar_actors::engine::{self, EngineError, LiveBoard, Outcome, RunReport, Simulation, UnitEntry};
use balar_actors::topology::{self, Topology};
use std::sync::Arc;
use std::time::Duration;

/// Runs what the options ask for; returns what came of it, and the topology with everything written out.
///
/// # Errors
///
/// Where the run cannot begin: a mistake in the topology, the workload or the options, or a system without means.
pub fn run(options: &RunOptions) -> Result<(RunRecord, String), Failure> {
    if options.isa == Isa::Sass {
        let help = "--isa ptx, or auto, runs the same kernels from their PTX".to_owned();
        let message = "--isa sass: this version runs no SASS";
        return Err(Failure::sentence(ExitStatus::BadInput, message, Some(help)));
    }
    let topology = node::load(options.topology.as_deref().unwrap_or_default(), &options.set)?;
    let (workload, parameters) = workload(options, &topology)?;
    let simulation = simulation(&topology)?;
    let interrupt = crate::interrupt::listen()
        .map_err(|error| Failure::input(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let board = LiveBoard::default();
    let run_options = engine::RunOptions {
        threads: usize::from(options.threads),
        stop_at: options.stop_at,
        max_wall: options.max_wall,
        interrupt,
        progress: Some(board.clone()),
        ..engine::RunOptions::default()
    };
    let progress = Progress::show(&board, options.quiet);
    let (report, wall) = timed(|| engine::run(simulation, run_options));
    drop(progress);
    let report: RunReport = report.map_err(|error| match error {
        EngineError::Internal(_) => Failure::bug(error),
        EngineError::ZeroLatencyWire { .. } | EngineError::UnknownUnit { .. } => Failure::bug(error),
        EngineError::Threads(cause) => Failure::input(format_args!("cannot start the simulation's threads: {cause}")),
    })?;
    for lost in &report.lost_statistics {
        crate::failure::say(format_args!("the statistics of {} are missing: {}", lost.path, lost.message));
    }
    let record = RunRecord {
        topology: topology.name.clone(),
        workload,
        parameters,
        isa: "ptx",
        ending: Ending::from(&report.outcome),
        sim_time: report.end,
        wall,
        threads: usize::from(options.threads),
        statistics: report.statistics,
    };
    let workload = (!record.workload.is_empty()).then_some((record.workload.as_str(), &record.parameters[..]));
    let expanded = node::expanded(&topology, workload);
    Ok((record, expanded))
}

/// The workload of a run with all its parameters, defaults included.
type Workload = (String, Vec<(String, String)>);

/// What the command line asks for, or else the topology; nothing where neither does.
fn workload(options: &RunOptions, topology: &Topology) -> Result<Workload, Failure> {
    let chosen = options.workload.as_ref().map(|choice| (&choice.name, &choice.parameters));
    let chosen = chosen.or_else(|| topology.workload.as_ref().map(|spec| (&spec.name, &spec.parameters)));
    let Some((name, settings)) = chosen else { return Ok(Workload::default()) };
    let descriptor = balar_workloads::find(name).map_err(Failure::input)?;
    let settings = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let parameters = descriptor.parameters_from(settings).map_err(Failure::input)?;
    let shown = parameters.iter().map(|(key, value)| (key.to_owned(), value.to_string()));
    Ok((descriptor.name.to_owned(), shown.collect()))
}

/// The units of a topology, built and wired.
fn simulation(topology: &Topology) -> Result<Simulation, Failure> {
    let gpus = topology.gpus();
    let memories = gpus.iter().map(|gpu| DeviceMemory::new(gpu.memory_bytes).map(Arc::new));
    let memories = memories
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::input(format_args!("cannot reserve the device memory: {error}")))?;
    let node = Node { gpus, memories: memories.clone(), ..Node::default() };
    let built = topology::build(topology, &node).map_err(Failure::diagnosed)?;
    let units = built.into_iter().zip(&topology.units).map(|((path, unit, wires), expanded)| {
        let memory = node.gpu(&expanded.part).map_or(0, |(index, _)| index);
        UnitEntry { path, unit, wires, weight: 1, memory }
    });
    Ok(Simulation { units: units.collect(), memories })
}

#[expect(clippy::disallowed_types, reason = "how long a run took is reported, and redacted where runs are compared")]
fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Ending {
        match outcome {
            Outcome::Finished => Ending::Completed,
            Outcome::StoppedAt => Ending::StopTime,
            Outcome::WallLimit => Ending::WallLimit,
            Outcome::Interrupted => Ending::Interrupted,
            Outcome::Deadlock(report) => {
                let waiting = report.waiting.iter().map(|unit| format!("\n  {}: {}", unit.path, unit.waits_for));
                Ending::Deadlock(format!("deadlock at {}:{}", report.time, waiting.collect::<String>()))
            }
            Outcome::UnitPanic { path, time, message } => {
                Ending::UnitPanic(format!("{path} panicked in the window from {time}: {message}"))
            }
        }
    }
}
