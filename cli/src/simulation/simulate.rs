//! From options to the record of a run.

use crate::options::detail;
use crate::options::simulation::{Isa, SimulationOptions, check_detail};
use crate::options::workload::{Compiler, RunOptions};
use crate::simulation::interrupt::Interrupt;
use crate::simulation::interruptible::{self, InterruptibleHost};
use crate::simulation::launch_limit::LaunchLimit;
use crate::simulation::node;
use crate::simulation::observation::Observation;
use crate::simulation::progress::Progress;
use crate::simulation::ptxas::code_choice;
use crate::simulation::recording::Recording;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine;
use balar_actors::simulation::{CodeChoice, RunResult};
use balar_actors::topology::{self, Topology};
use balar_experiments::{RequestError, SimulationRequest, simulate_wrapped};
use balar_host::Host;
use balar_host::trace::Header;
use balar_live::WhatRuns;
use balar_protocol::SimTime;
use balar_protocol::statistics::StatisticSink;
use balar_record::metrics::node_facts::NodeFacts;
use balar_record::result::RunRecord;
use balar_record::system::failure::Failure;
use balar_record::system::files;
use balar_record::timing::Timing;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What came of a run.
pub struct Simulated {
    /// Its result.
    pub record: RunRecord,
    /// The topology with everything written out.
    pub expanded: String,
    /// Who has watched it.
    pub observation: Observation,
    /// Why the trace that was asked for is not whole, if it is not.
    pub trace_problem: Option<String>,
}

/// Runs what the options ask for.
///
/// # Errors
///
/// If the run cannot begin: a mistake in the topology, the workload or the options, or a lack of resources.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn run(options: &RunOptions, kinds: &[&'static UnitDefinition]) -> Result<Simulated, Failure> {
    let common = &options.simulation;
    check_detail(common)?;
    let choice = code_choice(common)?;
    check_isa(options, &choice)?;
    let topology = node::of_simulation(common, kinds)?;
    common.selection.check(&topology)?;
    // A topology may come from a pipe: until it is read, signals end the process as they do by default.
    let interrupt = listen(common)?;
    let ptx = match options.work.compiler {
        Some(compiler) => vec![built_in_ptx(compiler, options, &topology)?],
        None => options.work.ptx.iter().map(|path| ptx(path)).collect::<Result<_, _>>()?,
    };
    let chosen = options.work.workload.as_ref().map(|choice| choice.name.as_str());
    let own = topology.workload.as_ref().map(|workload| workload.name.as_str());
    let workload = chosen.or(own).unwrap_or_default().to_owned();
    let observation = Observation::prepare(common, &topology, WhatRuns { name: workload, is_program: false })?;
    let request = SimulationRequest {
        topology: topology.clone(),
        workload: options.work.workload.as_ref().map(|choice| (choice.name.clone(), choice.parameters.clone())),
        ptx,
        code: choice,
        options: engine_options(common, interrupt.flag.clone(), &observation),
    };
    let progress = Progress::show(&observation.board(), common.quiet);
    tracing::debug!(topology = topology.name, threads = common.limits.threads, "the simulation begins");
    let begun = std::time::Instant::now();
    let limit = LaunchLimit::new(options.launch_limit.launches);
    let watched = simulate_watched(request, Recording::new(common.record.as_deref()), &limit, &interrupt);
    drop(progress);
    let mut trace_problem = None;
    let mut record = match watched.map_err(|error| Failure::input(format_args!("cannot start a thread: {error}")))? {
        Some(watched) => {
            trace_problem = watched.recording.problem();
            let mut record =
                RunRecord::of(watched.result.map_err(request_failure)?, &topology).interrupted_by(interrupt.ending());
            if watched.check_given_up {
                record.ending = interrupt.ending();
            }
            limit.note_in(&mut record);
            watched.recording.report_ending(&record);
            record
        }
        None => {
            let own = topology.workload.as_ref().map(|workload| (&workload.name, &workload.parameters));
            let chosen = options.work.workload.as_ref().map(|choice| (&choice.name, &choice.parameters)).or(own);
            let program = chosen.map(|(name, given)| (name.clone(), given.clone())).unwrap_or_default();
            nothing_ran(program, common, &topology, &interrupt, begun.elapsed())
        }
    };
    record.chosen_launches = common.selection.launches.of(&record.statistics.kernels);
    record.series = observation.take_counters();
    let expanded = topology::show(&topology, Some((&record.workload, &record.parameters)));
    Ok(Simulated { record, expanded, observation, trace_problem })
}

/// The result of a run on a thread of its own.
struct Watched {
    result: Result<RunResult, RequestError>,
    recording: Recording,
    /// Was the check of the result abandoned?
    check_given_up: bool,
}

/// Simulates; returns `None` if the run was interrupted before the simulation began.
fn simulate_watched(
    request: SimulationRequest,
    mut recording: Recording,
    limit: &LaunchLimit,
    interrupt: &Interrupt,
) -> io::Result<Option<Watched>> {
    let given_up = Arc::<AtomicBool>::default();
    let begun = Arc::<AtomicBool>::default();
    let (told, begins, own, limit) = (given_up.clone(), begun.clone(), interrupt.clone(), limit.clone());
    let work = move || {
        let topology = request.topology.name.clone();
        let result = simulate_wrapped(request, |host, program| {
            let header = Header {
                program: program.name.to_owned(),
                topology,
                parameters: program.parameters.clone(),
                ..Header::default()
            };
            let host = recording.wrap(limit.around(host), header, &program.code, program.shared_memory)?;
            begins.store(true, Ordering::Relaxed);
            Ok(Box::new(InterruptibleHost::new(host, own, told)) as Box<dyn Host>)
        });
        Watched { result, recording, check_given_up: false }
    };
    let watched = interruptible::run(interrupt, || !begun.load(Ordering::Relaxed), work)?;
    Ok(watched.map(|watched| Watched { check_given_up: given_up.load(Ordering::Relaxed), ..watched }))
}

/// The record of a run that was interrupted while its program was made or read, and its code loaded.
pub fn nothing_ran(
    (workload, parameters): (String, Vec<(String, String)>),
    options: &SimulationOptions,
    topology: &Topology,
    interrupt: &Interrupt,
    wall: Duration,
) -> RunRecord {
    RunRecord {
        topology: topology.name.clone(),
        workload,
        parameters,
        isa: "ptx".to_owned(),
        ending: interrupt.ending(),
        sim_time: SimTime(0),
        wall,
        threads: usize::from(options.limits.threads),
        statistics: StatisticSink::default(),
        timing: Timing::Everything,
        profiles: None,
        timeline: None,
        series: Vec::new(),
        node: NodeFacts::of(topology),
        chosen_launches: None,
        given_up: None,
    }
}

/// Rejects `--isa sass` where PTX is named and nothing assembles it.
fn check_isa(options: &RunOptions, choice: &CodeChoice) -> Result<(), Failure> {
    let named = match (options.work.ptx.is_empty(), options.work.compiler) {
        (false, _) => "--ptx",
        (true, Some(_)) => "--compiler",
        (true, None) => return Ok(()),
    };
    if options.simulation.code.isa != Isa::Sass || choice.assembler.is_some() {
        return Ok(());
    }
    let message = format!("--isa sass: {named} names PTX, and there is no ptxas");
    let help = "--isa ptx, or auto, runs it; --ptxas names an assembler";
    Err(Failure::mistake(message, help))
}

/// Listens for signals, and for the end of the time that the options grant.
pub fn listen(options: &SimulationOptions) -> Result<Interrupt, Failure> {
    Interrupt::listen(options.limits.max_wall)
        .map_err(|error| Failure::input(format_args!("cannot listen for Ctrl-C: {error}")))
}

/// Options of the engine.
pub fn engine_options(
    options: &SimulationOptions,
    interrupt: Arc<AtomicBool>,
    observation: &Observation,
) -> engine::RunOptions {
    engine::RunOptions {
        threads: usize::from(options.limits.threads),
        stop_at: options.limits.stop_at,
        max_wall: options.limits.max_wall,
        interrupt,
        progress: Some(observation.board()),
        profile_instructions: options.profile_instructions,
        watch: observation.watch(),
        timeline: options.timeline.as_ref().map(|_| options.timeline_detail.into()),
        detail: detail::choice(&options.detail),
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
    let Some(name) = options.work.workload.as_ref().map(|choice| choice.name.as_str()).or(own) else {
        return Err(request_failure(RequestError::NoWorkload(topology.name.clone())));
    };
    let workload = balar_workloads::find(name).map_err(Failure::input)?;
    let (major, minor) = topology.gpus().first().map_or((0, 0), |gpu| gpu.compute_capability);
    let code = workload.code_of(compiler, major * 10 + minor).ok_or_else(|| {
        Failure::input(format_args!("workload {} has no PTX built by {}", workload.name, compiler.name()))
    })?;
    Ok((code.file.to_owned(), code.text.to_owned()))
}

/// Why a workload cannot be simulated, as it is told.
pub fn request_failure(error: RequestError) -> Failure {
    match error {
        RequestError::Simulation(error) => Failure::from(error),
        error => Failure::input(error),
    }
}
