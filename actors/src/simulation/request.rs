//! What to simulate, and why nothing was.

use crate::engine::{EngineError, RunOptions};
use crate::topology::{Topology, TopologyErrors};
use balar_driver::code::loader::LoadError;
use balar_isa::ptx::PtxErrors;
use balar_workloads::WorkloadError;

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
    #[error("topology {0} has no GPU: no part holds a GPU front end, such as a CtaScheduler")]
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
