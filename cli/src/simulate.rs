//! From options to the record of a run.

use crate::arguments::{Compiler, Isa, RunOptions, SimulationOptions};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::files;
use crate::node;
use crate::node_facts::NodeFacts;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::result::{Ending, RunRecord};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::{self, EngineError, LiveBoard, Outcome};
use balar_actors::simulation::{RunResult, SimulationError, SimulationRequest, simulate_wrapped};
use balar_actors::topology::{self, Topology};
use balar_host::trace::Header;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs what the options ask for; returns what came of it, and the topology with everything written out.
///
/// # Errors
///
/// Where the run cannot begin: a mistake in the topology, the workload or the options, or a system without means.
pub fn run(options: &RunOptions, kinds: &[&'static UnitDefinition]) -> Result<(RunRecord, String), Failure> {
    let common = &options.simulation;
    refuse_sass(common, "the same kernels from their PTX")?;
    let topology = node::load(common.topology.as_deref().unwrap_or_default(), &common.set, kinds)?;
    common.selection.check(&topology)?;
    let ptx = match options.compiler {
        Some(compiler) => vec![built_in_ptx(compiler, options, &topology)?],
        None => options.ptx.iter().map(|path| ptx(path)).collect::<Result<_, _>>()?,
    };
    let interrupt = listen()?;
    let board = LiveBoard::default();
    let request = SimulationRequest {
        topology: topology.clone(),
        workload: options.workload.as_ref().map(|choice| (choice.name.clone(), choice.parameters.clone())),
        ptx,
        options: engine_options(common, interrupt, &board),
    };
    let progress = Progress::show(&board, common.quiet);
    tracing::debug!(topology = topology.name, threads = common.threads, "the simulation begins");
    let mut recording = Recording::new(common.record.as_deref());
    let result = simulate_wrapped(request, |host, program| {
        let (program_name, topology) = (program.name.to_owned(), topology.name.clone());
        let header =
            Header { program: program_name, topology, parameters: program.parameters.clone(), ..Header::default() };
        recording.wrap(host, header, &program.code, program.shared_memory)
    });
    drop(progress);
    recording.report();
    let record = RunRecord::of(result.map_err(Failure::from)?, &topology);
    recording.report_ending(&record);
    let expanded = topology::show(&topology, Some((&record.workload, &record.parameters)));
    Ok((record, expanded))
}

/// Refuses `--isa sass`; `instead` is what `--isa ptx` runs.
pub fn refuse_sass(options: &SimulationOptions, instead: &str) -> Result<(), Failure> {
    if options.isa != Isa::Sass {
        return Ok(());
    }
    let help = format!("--isa ptx, or auto, runs {instead}");
    Err(Failure::sentence(ExitStatus::BadInput, "--isa sass: this version runs no SASS", Some(help)))
}

/// Listens for Ctrl-C.
pub fn listen() -> Result<Arc<AtomicBool>, Failure> {
    crate::interrupt::listen().map_err(|error| Failure::input(format_args!("cannot listen for Ctrl-C: {error}")))
}

/// How the engine is to run, as the options have it.
pub fn engine_options(
    options: &SimulationOptions,
    interrupt: Arc<AtomicBool>,
    board: &LiveBoard,
) -> engine::RunOptions {
    engine::RunOptions {
        threads: usize::from(options.threads),
        stop_at: options.stop_at,
        max_wall: options.max_wall,
        interrupt,
        progress: Some(board.clone()),
        ..engine::RunOptions::default()
    }
}

/// Name and text of a PTX file.
fn ptx(path: &Path) -> Result<(String, String), Failure> {
    let text =
        files::read(path).map_err(|error| Failure::input(format_args!("cannot read {}: {error}", path.display())))?;
    Ok((path.display().to_string(), text))
}

/// File name and text of the PTX that a compiler made of the workload.
fn built_in_ptx(compiler: Compiler, options: &RunOptions, topology: &Topology) -> Result<(String, String), Failure> {
    let compiler = match compiler {
        Compiler::Nvrtc => balar_workloads::Compiler::Nvrtc,
        Compiler::Nvcc => balar_workloads::Compiler::Nvcc,
        Compiler::Clang => balar_workloads::Compiler::Clang,
    };
    let own = topology.workload.as_ref().map(|workload| workload.name.as_str());
    let Some(name) = options.workload.as_ref().map(|choice| choice.name.as_str()).or(own) else {
        return Err(Failure::from(SimulationError::NoWorkload(topology.name.clone())));
    };
    let workload = balar_workloads::find(name).map_err(Failure::input)?;
    let (major, minor) = topology.gpus().first().map_or((0, 0), |gpu| gpu.compute_capability);
    let code = workload.code_of(compiler, major * 10 + minor).ok_or_else(|| {
        Failure::input(format_args!("workload {} has no PTX built by {}", workload.name, compiler.name()))
    })?;
    Ok((code.file.to_owned(), code.text.to_owned()))
}

impl RunRecord {
    /// What came of a simulation of `topology`.
    pub fn of(result: RunResult, topology: &Topology) -> RunRecord {
        let mut statistics = result.statistics;
        statistics.outcome = result.program;
        // The host numbers its launches from 1, the result from 0, in the order of launching.
        for kernel in &mut statistics.kernels {
            kernel.launch.0 = kernel.launch.0.saturating_sub(1);
        }
        statistics.kernels.sort_by_key(|kernel| kernel.launch);
        RunRecord {
            topology: result.topology,
            workload: result.workload.to_owned(),
            parameters: result.parameters,
            isa: result.isa,
            ending: Ending::from(&result.outcome),
            sim_time: result.sim_time,
            wall: result.wall,
            threads: result.threads,
            statistics,
            node: NodeFacts::of(topology),
        }
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Failure {
        match error {
            SimulationError::Topology(errors) => Failure::diagnosed(*errors),
            SimulationError::Ptx(errors) => Failure::diagnosed(*errors),
            SimulationError::Engine(EngineError::Threads(_)) => Failure::input(error),
            SimulationError::Engine(_) => Failure::bug(error),
            _ => Failure::input(error),
        }
    }
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Ending {
        match outcome {
            Outcome::Finished => Ending::Completed,
            Outcome::StoppedAt => Ending::StopTime,
            Outcome::WallLimit => Ending::WallLimit,
            Outcome::Interrupted => Ending::Interrupted,
            Outcome::Deadlock(report) => Ending::Deadlock(report.to_string()),
            Outcome::UnitBroken { path, time, message } => {
                Ending::UnitBroken(format!("{path} broke a rule at {time}: {message}"))
            }
            Outcome::UnitPanic { path, time, message } => {
                Ending::UnitPanic(format!("{path} panicked in the window from {time}: {message}"))
            }
        }
    }
}
