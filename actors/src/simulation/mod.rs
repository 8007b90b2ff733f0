//! From a topology and a host program to a result: builds the node, runs it, collects the results.

mod description;
mod error;
mod figures;
mod node;
mod result;

pub use balar_driver::code::{
    Assembled, Assembler, AssemblyError, CodeChoice, CubinForm, IsaChoice, NamedCubin, NamedText, Replacement,
};
use balar_driver::code::{is_cubin, runs_on};
pub use description::{describe, driver_version};
pub use error::SimulationError;
pub use node::check_units;
pub use result::RunResult;

use crate::catalogue::timeline::Timeline;
use crate::catalogue::{InstructionProfiles, Surroundings};
use crate::engine::{self, EpochHook, Epochs, HandOver, RunOptions, RunReport, UnitEntry};
use crate::host_cpu::Start;
use crate::topology::{self, Topology};
use balar_driver::code::ModuleSource;
use balar_driver::code::loader::LoadError;
use balar_host::trace::CodeFile;
use balar_host::{Host, HostProgram, NodeDescription, SingleThread};
use balar_protocol::statistics::KernelRecord;
use node::Node;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tracing::field::Empty;
use tracing::{debug, info, info_span};

/// Code that is loaded from the start: for each GPU files (name, bytes) of PTX, which are linked with each other, and a cubin of the same.
pub type InitialCode = Vec<Vec<CodeFile>>;

/// The code of a run's kernels.
#[derive(Clone, Debug, Default)]
pub struct DeviceCode {
    /// The code that is loaded from the start.
    pub initial: InitialCode,
    /// Which code is loaded of the modules that programs bring, and whether the PTX that is loaded from the start is assembled.
    pub choice: CodeChoice,
}

impl DeviceCode {
    /// The code that is loaded for a GPU from the start, if any.
    fn of_gpu(&self, gpu: usize, compute_capability: (u32, u32)) -> Result<Option<ModuleSource>, LoadError> {
        let Some(files) = self.initial.get(gpu).filter(|files| !files.is_empty()) else { return Ok(None) };
        let (cubins, texts): (Vec<_>, Vec<_>) = files.iter().cloned().partition(|(name, _)| is_cubin(name));
        if self.choice.isa != IsaChoice::Ptx
            && let Some(cubin) = cubins.into_iter().find(|(_, bytes)| runs_on(bytes, compute_capability))
        {
            return Ok(Some(ModuleSource::machine(vec![cubin])));
        }
        let named = |(name, bytes): CodeFile| -> NamedText { (name, String::from_utf8_lossy(&bytes).into()) };
        self.choice.of_texts(texts.into_iter().map(named).collect(), compute_capability).map(Some)
    }
}

/// Runs a host program of one's own, with the kernels of a PTX text (name, text) on every GPU, to its end.
///
/// # Errors
///
/// Where nothing could be simulated. A simulated program that fails, a deadlock or a time limit is a result, not an error.
pub fn simulate_program(
    topology: &Topology,
    name: &'static str,
    (file, text): (&str, &str),
    program: Box<dyn HostProgram>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let initial = vec![vec![(file.to_owned(), text.as_bytes().into())]; topology.gpus().len()];
    let code = DeviceCode { initial, ..DeviceCode::default() };
    let host = Box::new(SingleThread::new(program));
    let mut result = simulate_host_with_code(topology, &code, |_| Ok(host), options)?;
    result.workload = name;
    Ok(result)
}

/// The facts about its node that a host program needs which is not built in.
#[derive(Debug)]
pub struct HostSurroundings {
    /// The devices, as programs see them.
    pub description: NodeDescription,
    /// The file that the host window is backed by ([`DeviceMemory::shared_file`](crate::memory::DeviceMemory::shared_file)).
    pub shared_memory: Option<Arc<OwnedFd>>,
}

/// Runs a host that `start` makes once there is a node, with nothing loaded, to its end. `choice` decides which code of the modules that it
/// brings runs.
///
/// # Errors
///
/// Where nothing could be simulated, and where `start` fails. A simulated program that fails, a deadlock or a time limit is a result, not
/// an error.
pub fn simulate_host(
    topology: &Topology,
    choice: CodeChoice,
    start: impl FnOnce(HostSurroundings) -> std::io::Result<Box<dyn Host>>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    simulate_host_with_code(topology, &DeviceCode { choice, ..DeviceCode::default() }, start, options)
}

/// As [`simulate_host`], with code that is loaded from the start.
///
/// # Errors
///
/// As [`simulate_host`], and where the code cannot be loaded.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate_host_with_code(
    topology: &Topology,
    code: &DeviceCode,
    start: impl FnOnce(HostSurroundings) -> std::io::Result<Box<dyn Host>>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let begin = std::time::Instant::now();
    let _span = info_span!("simulation", topology = topology.name).entered();
    let mut node = Node::of(topology)?;
    for gpu in 0..node.gpus.len() {
        let source = code.of_gpu(gpu, node.gpus[gpu].compute_capability);
        let failed = |error| SimulationError::Load { gpu: node.gpus[gpu].part.clone(), error };
        let Some(source) = source.map_err(failed)? else { continue };
        info_span!("load", gpu = node.gpus[gpu].part).in_scope(|| node.load_module(gpu, &source))?;
        debug!(gpu = node.gpus[gpu].part, parts = source.names(), "code is loaded");
    }
    let shared_memory = node.memory.shared_file().cloned();
    let mut description = describe(topology);
    // Where nothing is timed, no pages move.
    description.moves_managed_memory &= !options.detail.times_nothing();
    let surroundings = HostSurroundings { description, shared_memory };
    let host = start(surroundings).map_err(SimulationError::Host)?;
    let mut result = run(topology, node, host, code.choice.clone(), options)?;
    result.wall = begin.elapsed();
    Ok(result)
}

/// Runs a prepared node. How long that took is the caller's to say.
fn run(
    topology: &Topology,
    node: Node,
    host: Box<dyn Host>,
    code: CodeChoice,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let Node { gpus, memory, tables } = node;
    let loaded = Arc::clone(&tables.code);
    let codes = Arc::clone(&tables.programs);
    let board = options.progress.clone().unwrap_or_default();
    let epochs = Epochs::new(memory.epoch(), Arc::clone(&memory) as Arc<dyn EpochHook>);
    let profiles = options.profile_instructions.then(|| Arc::new(InstructionProfiles::of(&gpus)));
    let mut surroundings = Surroundings::new(gpus, Some(memory), board);
    surroundings.instruction_profiles = profiles.clone();
    surroundings.watches_launches = options.watch.is_some();
    let timeline = options.timeline.map(|detail| Arc::new(Timeline::new(detail)));
    surroundings.timeline = timeline.clone();
    let (detail, other_nodes) = (options.detail.clone(), topology::BUILT_IN_NODES);
    surroundings.give(Start { host: Some(host), tables, code, detail, other_nodes });
    let built = info_span!("build").in_scope(|| topology::build(topology, &surroundings)).map_err(Box::new)?;
    debug!(units = built.len(), wires = topology.wires.len(), "the units are built");
    let mut units = Vec::with_capacity(built.len());
    for ((path, unit, wires), expanded) in built.into_iter().zip(&topology.units) {
        units.push(UnitEntry { path, unit, wires, weight: expanded.kind.weight });
    }
    let mut hand_over = HandOver::default();
    if !options.hand_over_at.is_empty() {
        hand_over.at = Arc::clone(&options.hand_over_at);
        let twins = topology::build(topology, &surroundings).map_err(Box::new)?;
        // The host CPU has no state that can be written: its program is another process, or a thread of this one.
        hand_over.twins = twins.into_iter().map(|(_, twin, _)| twin.save().is_ok().then_some(twin)).collect();
        hand_over.codes = Some(codes);
    }
    let simulation = engine::Simulation { units, epochs, hand_over };
    let threads = options.threads.max(1);
    let detail = options.detail.clone();
    info!(threads, "the units begin to run");
    let span = info_span!("run", topology = topology.name, threads, end_picoseconds = Empty);
    let report = span.in_scope(|| engine::run(simulation, options))?;
    span.record("end_picoseconds", report.end.0);
    drop(span);
    let RunReport { end, outcome, mut statistics, windows, messages, shard_busy, given_up, .. } = report;
    // A unit that has not returned may hold the memory that it writes to.
    let has_returned = given_up.is_none();
    for kernel in statistics.kernels.iter() {
        let KernelRecord { launch, name, gpu, cycles, start_ps, end_ps, .. } = kernel;
        debug!(launch = launch.0, name = &*name, gpu = &*gpu, cycles, start_ps, end_ps, "a kernel has run");
    }
    info!(?outcome, simulated_ps = end.0, windows, messages, ?shard_busy, "the simulation has ended");
    Ok(RunResult {
        topology: topology.name.clone(),
        workload: "",
        parameters: Vec::new(),
        isa: loaded.isa(),
        outcome,
        given_up,
        program: statistics.outcome.take(),
        sim_time: end,
        wall: Duration::ZERO,
        threads,
        statistics,
        profiles: profiles.filter(|_| has_returned).map(|profiles| profiles.take()),
        timeline: timeline.filter(|_| has_returned).map(|timeline| timeline.take()),
        detail,
        windows,
        messages,
    })
}
