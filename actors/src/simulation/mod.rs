//! From a topology and a workload to a result: builds the node, runs it, collects what came of it.

mod description;

pub use description::describe;

use crate::catalogue::{GpuDescription, Surroundings};
use crate::driver::host_cpu::Driver;
use crate::driver::modules::{LoadError, LoadRequest, ModuleMemory, NamedText, Room};
use crate::driver::tables::DriverTables;
use crate::engine::{
    self, EngineError, EpochHook, Epochs, HandOver, LiveBoard, Outcome, RunOptions, RunReport, UnitEntry,
};
use crate::memory::{Bounds, DeviceMemory, WriteLog};
use crate::topology::{self, Topology, TopologyErrors, WorkloadCatalogue};
use balar_host::call::BUILT_IN_MODULE;
use balar_host::memory::gpu_base;
use balar_host::{Host, HostProgram, NodeDescription, SingleThread};
use balar_isa::ptx::PtxErrors;
use balar_protocol::SimTime;
use balar_protocol::statistics::{ProgramOutcome, StatisticSink, Verification};
use balar_workloads::{Descriptor, Parameters, WorkloadError};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct SimulationRequest {
    /// The node.
    pub topology: Topology,
    /// The workload instead of the topology's own: its name and `key=value` parameters.
    pub workload: Option<(String, Vec<(String, String)>)>,
    /// PTX texts (name, text) to take the kernels from, linked with each other, instead of the workload's own; none where empty.
    pub ptx: Vec<(String, String)>,
    /// How to run it.
    pub options: RunOptions,
}

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The topology has no workload and none was asked for.
    #[error("topology {0} has no workload of its own; name one, such as vectoradd")]
    NoWorkload(String),
    /// The workload, or a parameter of it.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// No GPU to run on.
    #[error("topology {0} has no GPU: no part holds a CtaScheduler")]
    NoGpu(String),
    /// There is no code for the GPU.
    #[error("workload {workload} has no code that compute capability {major}.{minor} of {gpu} can run")]
    NoCode {
        /// The workload.
        workload: &'static str,
        /// The GPU.
        gpu: String,
        /// Its compute capability.
        major: u32,
        /// Its compute capability, second digit.
        minor: u32,
    },
    /// The PTX text.
    #[error(transparent)]
    Ptx(#[from] Box<PtxErrors>),
    /// A unit could not be built.
    #[error(transparent)]
    Topology(#[from] Box<TopologyErrors>),
    /// The host cannot map the simulated device memory.
    #[error("cannot map {bytes} bytes for the device memory of {gpus}: {source}")]
    DeviceMemory {
        /// The GPUs.
        gpus: String,
        /// Their memory size.
        bytes: u64,
        /// Why.
        source: std::io::Error,
    },
    /// The code cannot be loaded.
    #[error("{gpu}: {error}")]
    Load {
        /// The GPU.
        gpu: String,
        /// Why.
        error: LoadError,
    },
    /// The host program could not be started.
    #[error("cannot start the program: {0}")]
    Host(std::io::Error),
    /// The engine refused the node.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What came of a simulation.
#[derive(Debug)]
pub struct RunResult {
    /// The topology's name.
    pub topology: String,
    /// The workload's name; empty of a host that is not built in.
    pub workload: &'static str,
    /// Its parameters, defaults included.
    pub parameters: Vec<(String, String)>,
    /// Which code ran.
    pub isa: &'static str,
    /// How the run ended.
    pub outcome: Outcome,
    /// How the simulated program ended; `None` where the run ended before.
    pub program: Option<ProgramOutcome>,
    /// When the last thing happened.
    pub sim_time: SimTime,
    /// Wall-clock time of the run, building the node included.
    pub wall: Duration,
    /// Shards used.
    pub threads: usize,
    /// Rows of all units, and kernel launches.
    pub statistics: StatisticSink,
    /// Windows run.
    pub windows: u64,
    /// Messages delivered.
    pub messages: u64,
}

impl RunResult {
    /// Did the run go to the end of the simulated program?
    pub fn completed(&self) -> bool {
        self.outcome == Outcome::Finished && self.program.as_ref().is_some_and(|program| program.finished)
    }

    /// Is the program's result right? `None` where it has no check or did not get there.
    pub fn verified(&self) -> Option<bool> {
        match self.program.as_ref().map(|program| &program.verification)? {
            Verification::NotChecked => None,
            Verification::Passed => Some(true),
            Verification::Failed(_) => Some(false),
        }
    }

    /// Warp instructions executed, over all GPUs.
    pub fn warp_instructions(&self) -> u64 {
        self.statistics.rows.iter().filter(|row| row.what == "inst_executed").map(|row| row.value).sum()
    }
}

/// The built-in workloads, for the topology loader.
pub struct BuiltInWorkloads;

impl WorkloadCatalogue for BuiltInWorkloads {
    fn names(&self) -> Vec<String> {
        balar_workloads::workloads().iter().map(|workload| workload.name.to_owned()).collect()
    }

    fn parameters(&self, workload: &str) -> Vec<String> {
        let descriptor = balar_workloads::find(workload);
        descriptor.map_or(Vec::new(), |found| found.parameters.iter().map(|key| key.name.to_owned()).collect())
    }

    fn check(&self, workload: &str, parameter: &str, value: &str) -> Result<(), String> {
        let descriptor = balar_workloads::find(workload).map_err(|error| error.to_string())?;
        descriptor.parameters_from([(parameter, value)]).map(drop).map_err(|error| error.to_string())
    }
}

/// Builds every unit of a topology and drops them: what a unit itself refuses comes to light without a run.
///
/// # Errors
///
/// Every value that a unit refuses, or a device memory that the host cannot map.
pub fn check_units(topology: &Topology) -> Result<(), SimulationError> {
    let gpus = topology.gpus();
    let memory = map_memory(topology, &gpus)?;
    let surroundings = Surroundings::new(gpus, Some(memory), LiveBoard::default());
    topology::build(topology, &surroundings).map_err(Box::new)?;
    Ok(())
}

/// Maps the memories of all GPUs, and the host window.
fn map_memory(topology: &Topology, gpus: &[GpuDescription]) -> Result<Arc<DeviceMemory>, SimulationError> {
    let capacities: Vec<u64> = gpus.iter().map(|gpu| gpu.memory_bytes).collect();
    let memory = DeviceMemory::of_node(&capacities).map_err(|source| SimulationError::DeviceMemory {
        gpus: gpus.iter().map(|gpu| gpu.part.as_str()).collect::<Vec<_>>().join(", "),
        bytes: capacities.iter().sum(),
        source,
    })?;
    Ok(Arc::new(memory.with_epoch(topology.value_epoch)))
}

/// Runs a simulation to its end.
///
/// # Errors
///
/// Where nothing could be simulated. A simulated program that fails, a deadlock or a time limit is a result, not an error.
pub fn simulate(request: SimulationRequest) -> Result<RunResult, SimulationError> {
    simulate_wrapped(request, |host, _| Ok(host))
}

/// Code that is loaded from the start: for each GPU the texts (file name, PTX), which are linked with each other.
pub type InitialCode = Vec<Vec<(String, String)>>;

/// A built-in workload that is about to run.
#[derive(Debug)]
pub struct BuiltInProgram {
    /// The workload's name.
    pub name: &'static str,
    /// Its parameters, defaults included.
    pub parameters: Vec<(String, String)>,
    /// Its code.
    pub code: InitialCode,
    /// The file that the host window is backed by ([`DeviceMemory::shared_file`]).
    pub shared_memory: Option<Arc<OwnedFd>>,
}

/// As [`simulate`], with something between the workload and the simulated host CPU, such as a recorder: `wrap` makes it.
///
/// # Errors
///
/// As [`simulate`], and where `wrap` fails.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate_wrapped(
    request: SimulationRequest,
    wrap: impl FnOnce(Box<dyn Host>, BuiltInProgram) -> std::io::Result<Box<dyn Host>>,
) -> Result<RunResult, SimulationError> {
    let start = std::time::Instant::now();
    let (descriptor, parameters) = workload(&request)?;
    let program = descriptor.program(&parameters)?;
    let parameters: Vec<(String, String)> =
        parameters.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    let code = initial_code(&request.topology, descriptor, request.ptx)?;
    let begin = |surroundings: HostSurroundings| {
        let (parameters, code) = (parameters.clone(), code.clone());
        let shared_memory = surroundings.shared_memory;
        let built_in = BuiltInProgram { name: descriptor.name, parameters, code, shared_memory };
        wrap(Box::new(SingleThread::new(program)), built_in)
    };
    let mut result = simulate_host_with_code(&request.topology, &code, begin, request.options)?;
    result.workload = descriptor.name;
    result.parameters = parameters;
    result.wall = start.elapsed();
    Ok(result)
}

/// Runs a host program of one's own, with the kernels of a PTX text (name, text) on every GPU, to its end.
///
/// # Errors
///
/// As [`simulate`].
pub fn simulate_program(
    topology: &Topology,
    name: &'static str,
    (file, text): (&str, &str),
    program: Box<dyn HostProgram>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let code = vec![vec![(file.to_owned(), text.to_owned())]; topology.gpus().len()];
    let host = Box::new(SingleThread::new(program));
    let mut result = simulate_host_with_code(topology, &code, |_| Ok(host), options)?;
    result.workload = name;
    Ok(result)
}

/// What a host program that is not built in needs to know of its node.
#[derive(Debug)]
pub struct HostSurroundings {
    /// The devices, as programs see them.
    pub description: NodeDescription,
    /// The file that the host window is backed by ([`DeviceMemory::shared_file`]).
    pub shared_memory: Option<Arc<OwnedFd>>,
}

/// Runs a host that `start` makes once there is a node, with nothing loaded, to its end.
///
/// # Errors
///
/// As [`simulate`], and where `start` fails.
pub fn simulate_host(
    topology: &Topology,
    start: impl FnOnce(HostSurroundings) -> std::io::Result<Box<dyn Host>>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    simulate_host_with_code(topology, &InitialCode::new(), start, options)
}

/// As [`simulate_host`], with code that is loaded from the start.
///
/// # Errors
///
/// As [`simulate_host`], and where the code cannot be loaded.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate_host_with_code(
    topology: &Topology,
    code: &InitialCode,
    start: impl FnOnce(HostSurroundings) -> std::io::Result<Box<dyn Host>>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let begin = std::time::Instant::now();
    let mut node = Node::of(topology)?;
    for (gpu, texts) in code.iter().enumerate().take(node.gpus.len()).filter(|(_, texts)| !texts.is_empty()) {
        let texts: Vec<NamedText> = texts.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
        node.load_modules(gpu, &texts)?;
    }
    let shared_memory = node.memory.shared_file().cloned();
    let surroundings = HostSurroundings { description: describe(topology), shared_memory };
    let host = start(surroundings).map_err(SimulationError::Host)?;
    let mut result = run(topology, node, host, options)?;
    result.wall = begin.elapsed();
    Ok(result)
}

/// Runs a prepared node. How long that took is the caller's to say.
fn run(
    topology: &Topology,
    node: Node,
    host: Box<dyn Host>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let Node { gpus, memory, tables } = node;
    let codes = Arc::clone(&tables.programs);
    let board = options.progress.clone().unwrap_or_default();
    let epochs = Epochs::new(memory.epoch(), Arc::clone(&memory) as Arc<dyn EpochHook>);
    let surroundings = Surroundings::new(gpus, Some(memory), board);
    surroundings.give(Driver { host: Some(host), tables });
    let built = topology::build(topology, &surroundings).map_err(Box::new)?;
    let mut units = Vec::with_capacity(built.len());
    for ((path, unit, wires), expanded) in built.into_iter().zip(&topology.units) {
        units.push(UnitEntry { path, unit, wires, weight: weight(expanded.kind.name) });
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
    let RunReport { end, outcome, mut statistics, windows, messages, .. } = engine::run(simulation, options)?;
    Ok(RunResult {
        topology: topology.name.clone(),
        workload: "",
        parameters: Vec::new(),
        isa: "ptx",
        outcome,
        program: statistics.outcome.take(),
        sim_time: end,
        wall: Duration::ZERO,
        threads,
        statistics,
        windows,
        messages,
    })
}

fn workload(request: &SimulationRequest) -> Result<(&'static Descriptor, Parameters), SimulationError> {
    let (name, given) = match (&request.workload, &request.topology.workload) {
        (Some((name, given)), _) => (name, given),
        (None, Some(own)) => (&own.name, &own.parameters),
        (None, None) => return Err(SimulationError::NoWorkload(request.topology.name.clone())),
    };
    let descriptor = balar_workloads::find(name)?;
    let parameters = descriptor.parameters_from(given.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
    Ok((descriptor, parameters))
}

/// How much work a kind of unit is to simulate, relative to the others.
fn weight(kind: &str) -> u32 {
    match kind {
        "StreamingMultiprocessor" => 16,
        "Crossbar" => 32,
        "L2Slice" => 4,
        "HbmStack" => 8,
        _ => 2,
    }
}

/// A node before its units are built: memories, and what is loaded.
struct Node {
    gpus: Vec<GpuDescription>,
    memory: Arc<DeviceMemory>,
    tables: DriverTables,
}

impl Node {
    /// Nothing is loaded.
    fn of(topology: &Topology) -> Result<Node, SimulationError> {
        let gpus = topology.gpus();
        if gpus.is_empty() {
            return Err(SimulationError::NoGpu(topology.name.clone()));
        }
        let memory = map_memory(topology, &gpus)?;
        Ok(Node { gpus, memory, tables: DriverTables::default() })
    }

    /// Loads PTX texts for one GPU as its built-in module; their variables get the end of the device memory.
    fn load_modules(&mut self, gpu: usize, texts: &[NamedText]) -> Result<(), SimulationError> {
        let description = &self.gpus[gpu];
        let base = gpu_base(gpu);
        let mut room = EndOfMemory { base, end: base + description.memory_bytes };
        let request = LoadRequest {
            gpu,
            compute_capability: description.compute_capability,
            module: BUILT_IN_MODULE,
            texts,
            heap_bytes: Some(DeviceMemory::DEFAULT_HEAP_BYTES),
            bounds: Bounds::default(),
        };
        let mut log = WriteLog::default();
        let loaded = self.tables.loader().load(&request, SimTime::ZERO, &mut log, &mut room);
        loaded.map_err(|error| match error {
            LoadError::Ptx(errors) => SimulationError::Ptx(errors),
            error => SimulationError::Load { gpu: description.part.clone(), error },
        })?;
        self.memory.apply(&mut log);
        self.gpus[gpu].memory_bytes = room.end - base;
        Ok(())
    }
}

/// The code of a workload for each GPU: `ptx`, or what the workload has for its compute capability.
fn initial_code(
    topology: &Topology,
    descriptor: &'static Descriptor,
    ptx: Vec<(String, String)>,
) -> Result<InitialCode, SimulationError> {
    let gpus = topology.gpus();
    if !ptx.is_empty() {
        return Ok(vec![ptx; gpus.len()]);
    }
    let of_gpu = |gpu: GpuDescription| {
        let (major, minor) = gpu.compute_capability;
        let text = descriptor.ptx_for(major * 10 + minor);
        let text = text.ok_or(SimulationError::NoCode { workload: descriptor.name, gpu: gpu.part, major, minor })?;
        Ok(vec![(format!("{}.ptx", descriptor.name), text.to_owned())])
    };
    gpus.into_iter().map(of_gpu).collect()
}

/// Memory from the end of a GPU's downwards, before the run: what the built-in module has, it keeps.
struct EndOfMemory {
    base: u64,
    end: u64,
}

impl ModuleMemory for EndOfMemory {
    fn allocate(&mut self, _: Room, bytes: u64, alignment: u64) -> Option<u64> {
        let start = self.end.checked_sub(bytes)? & !(alignment - 1);
        if start < self.base {
            return None;
        }
        self.end = start;
        Some(start)
    }

    // The run does not begin where loading fails.
    fn free(&mut self, _: u64) {}
}
