//! The request for a simulation, and the reasons why it is refused.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{CodeChoice, SimulationError};
use balar_actors::topology::Topology;
use balar_workloads::WorkloadError;

/// The request for a simulation.
#[derive(Clone, Debug)]
pub struct SimulationRequest {
    /// The node.
    pub topology: Topology,
    /// The workload instead of the topology's own: its name and `key=value` parameters.
    pub workload: Option<(String, Vec<(String, String)>)>,
    /// PTX texts (name, text) to take the kernels from, linked with each other, instead of the workload's own; none where empty.
    pub ptx: Vec<(String, String)>,
    /// Which of the workload's own code runs, and whether PTX is assembled.
    pub code: CodeChoice,
    /// How to run it.
    pub options: RunOptions,
}

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The topology has no workload and none was asked for.
    #[error("topology {0} has no workload of its own; name one, such as vectoradd")]
    NoWorkload(String),
    /// The workload, or a parameter of it.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
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
    /// There is no machine code for the GPU.
    #[error("workload {workload} has no machine code for sm_{major}{minor}, which {gpu} runs")]
    NoMachineCode {
        /// The workload.
        workload: &'static str,
        /// The GPU.
        gpu: String,
        /// Its compute capability.
        major: u32,
        /// Its compute capability, second digit.
        minor: u32,
    },
    /// The node, or its code.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}
