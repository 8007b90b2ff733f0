//! From a topology and a workload to a result: builds the node, runs it, collects what came of it.

use crate::device_memory::{DeviceMemory, WriteLog};
use crate::engine::node::{KernelInfo, Node};
use crate::engine::{self, EngineError, Outcome, RunOptions, RunReport, UnitEntry};
use crate::topology::{self, Topology, TopologyErrors, WorkloadCatalogue};
use balar_host::{Host, HostProgram, NodeDescription, SingleThread};
use balar_isa::module::PtxModule;
use balar_isa::ptx::{self, PtxErrors};
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
    /// The module's variables do not fit.
    #[error("the variables of {file} need {bytes} bytes, more than the device memory of {gpu}")]
    Variables {
        /// The PTX file.
        file: String,
        /// The GPU.
        gpu: String,
        /// What they need.
        bytes: u64,
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
    /// The workload's name.
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
    let mut node = Node { gpus: topology.gpus(), ..Node::default() };
    map_memory(&mut node)?;
    // Units are built for a program; which one does not matter to them.
    let descriptor = balar_workloads::find("vectoradd")?;
    node.workload =
        std::sync::Mutex::new(Some(Box::new(SingleThread::new(descriptor.program(&descriptor.parameters_from([])?)?))));
    topology::build(topology, &node).map_err(Box::new)?;
    Ok(())
}

/// Maps the memories of all GPUs, and the host window.
fn map_memory(node: &mut Node) -> Result<(), SimulationError> {
    let capacities: Vec<u64> = node.gpus.iter().map(|gpu| gpu.memory_bytes).collect();
    let memory = DeviceMemory::of_node(&capacities).map_err(|source| SimulationError::DeviceMemory {
        gpus: node.gpus.iter().map(|gpu| gpu.part.as_str()).collect::<Vec<_>>().join(", "),
        bytes: capacities.iter().sum(),
        source,
    })?;
    node.memory = Some(Arc::new(memory));
    Ok(())
}

/// Runs a simulation to its end.
///
/// # Errors
///
/// Where nothing could be simulated. A simulated program that fails, a deadlock or a time limit is a result, not an error.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate(request: SimulationRequest) -> Result<RunResult, SimulationError> {
    let start = std::time::Instant::now();
    let (descriptor, parameters) = workload(&request)?;
    let topology = &request.topology;
    let node = prepare_node(topology, descriptor, &parameters, &request.ptx)?;
    let mut result = run(topology, node, descriptor.name, request.options)?;
    result.parameters = parameters.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    result.wall = start.elapsed();
    Ok(result)
}

/// Runs a host program of one's own, with the kernels of a PTX text (name, text) on every GPU, to its end.
///
/// # Errors
///
/// As [`simulate`].
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate_program(
    topology: &Topology,
    name: &'static str,
    (file, text): (&str, &str),
    program: Box<dyn HostProgram>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let start = std::time::Instant::now();
    let mut node = empty_node(topology)?;
    for index in 0..node.gpus.len() {
        load_modules(&mut node, index, &[(file.to_owned(), text.to_owned())])?;
    }
    node.workload = std::sync::Mutex::new(Some(Box::new(SingleThread::new(program))));
    let mut result = run(topology, node, name, options)?;
    result.wall = start.elapsed();
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
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate_host(
    topology: &Topology,
    start: impl FnOnce(HostSurroundings) -> std::io::Result<Box<dyn Host>>,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    let begin = std::time::Instant::now();
    let node = empty_node(topology)?;
    let shared_memory = node.memory.as_ref().and_then(|memory| memory.shared_file().cloned());
    let surroundings = HostSurroundings { description: crate::description::describe(topology), shared_memory };
    let host = start(surroundings).map_err(SimulationError::Host)?;
    node.workload.lock().unwrap_or_else(std::sync::PoisonError::into_inner).replace(host);
    let mut result = run(topology, node, "", options)?;
    result.wall = begin.elapsed();
    Ok(result)
}

/// Runs a prepared node. How long that took is the caller's to say.
fn run(
    topology: &Topology,
    mut node: Node,
    workload: &'static str,
    options: RunOptions,
) -> Result<RunResult, SimulationError> {
    node.board = options.progress.clone().unwrap_or_default();
    let built = topology::build(topology, &node).map_err(Box::new)?;
    let mut units = Vec::with_capacity(built.len());
    for ((path, unit, wires), expanded) in built.into_iter().zip(&topology.units) {
        units.push(UnitEntry { path, unit, wires, weight: weight(expanded.kind.name) });
    }
    let simulation = engine::Simulation { units, memory: node.memory.clone() };
    let threads = options.threads.max(1);
    let RunReport { end, outcome, mut statistics, windows, messages, .. } = engine::run(simulation, options)?;
    Ok(RunResult {
        topology: topology.name.clone(),
        workload,
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

/// A node whose GPUs have memories, and nothing loaded.
fn empty_node(topology: &Topology) -> Result<Node, SimulationError> {
    let mut node = Node { gpus: topology.gpus(), ..Node::default() };
    if node.gpus.is_empty() {
        return Err(SimulationError::NoGpu(topology.name.clone()));
    }
    map_memory(&mut node)?;
    Ok(node)
}

fn prepare_node(
    topology: &Topology,
    descriptor: &'static Descriptor,
    parameters: &Parameters,
    ptx: &[(String, String)],
) -> Result<Node, SimulationError> {
    let mut node = empty_node(topology)?;
    for index in 0..node.gpus.len() {
        let gpu = &node.gpus[index];
        let (major, minor) = gpu.compute_capability;
        let own;
        let texts = match ptx {
            [_, ..] => ptx,
            [] => {
                let capability = major * 10 + minor;
                let text = descriptor.ptx_for(capability).ok_or_else(|| SimulationError::NoCode {
                    workload: descriptor.name,
                    gpu: gpu.part.clone(),
                    major,
                    minor,
                })?;
                own = [(format!("{}.ptx", descriptor.name), text.to_owned())];
                &own
            }
        };
        load_modules(&mut node, index, texts)?;
    }
    node.workload = std::sync::Mutex::new(Some(Box::new(SingleThread::new(descriptor.program(parameters)?))));
    Ok(node)
}

/// Reads PTX texts for one GPU and links them: their variables get the end of the device memory, their kernels go to the tables.
fn load_modules(node: &mut Node, gpu: usize, texts: &[(String, String)]) -> Result<(), SimulationError> {
    let mut trees = Vec::with_capacity(texts.len());
    for (file, text) in texts {
        trees.push(ptx::parse(file, text).map_err(Box::new)?);
    }
    let file = || texts.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>().join(", ");
    // CUDA reserves a heap for every context; here only kernels that may allocate cost memory.
    let functions = || trees.iter().flat_map(|tree| &tree.functions).filter(|function| &*function.name == "malloc");
    let allocates = functions().count() > 0 && functions().all(|function| function.body.is_none());
    let module = PtxModule::link(trees).map_err(Box::new)?;
    let base = balar_host::memory::gpu_base(gpu);
    let mut end = base + node.gpus[gpu].memory_bytes;
    let mut addresses = Vec::new();
    let mut log = WriteLog::default();
    for variable in module.variables() {
        let alignment = variable.alignment.max(256).next_power_of_two();
        let start = end.checked_sub(variable.bytes).map(|start| start & !(alignment - 1));
        let Some(start) = start.filter(|&start| start >= base) else {
            let bytes = module.variables().iter().map(|variable| variable.bytes).sum();
            let gpu = node.gpus[gpu].part.clone();
            return Err(SimulationError::Variables { file: file(), gpu, bytes });
        };
        log.map(SimTime::ZERO, start, variable.bytes.max(1));
        node.symbols.insert(gpu, &variable.name, start);
        addresses.push(start);
        end = start;
    }
    for (index, &address) in addresses.iter().enumerate() {
        if let Some(bytes) = module.initial_value(index, &addresses) {
            let bytes: Arc<[u8]> = bytes.into();
            log.write(SimTime::ZERO, address, &bytes, 0..bytes.len());
        }
    }
    if allocates {
        let bytes = DeviceMemory::DEFAULT_HEAP_BYTES;
        let start = end.checked_sub(bytes).map(|start| start & !255).filter(|&start| start >= base);
        let Some(start) = start else {
            let gpu = node.gpus[gpu].part.clone();
            return Err(SimulationError::Variables { file: file(), gpu, bytes });
        };
        log.set_heap(SimTime::ZERO, gpu, start, bytes);
        end = start;
    }
    if let Some(memory) = &node.memory {
        memory.apply(&mut log);
    }
    node.gpus[gpu].memory_bytes = end - base;
    for (name, program) in module.programs(&addresses) {
        let program = match program {
            Ok(program) => program,
            Err(errors) => {
                let lines = errors.errors.iter().map(|error| format!("{error}, in `{}`", error.line_text.trim()));
                node.kernels.insert_refused(gpu, name, lines.collect::<Vec<_>>().join("\n").into());
                continue;
            }
        };
        let info = KernelInfo {
            name: program.name().clone(),
            resources: program.resources().clone(),
            parameter_bytes: program.parameter_bytes(),
            program: node.programs.add(program),
        };
        node.kernels.insert(gpu, info);
    }
    Ok(())
}
