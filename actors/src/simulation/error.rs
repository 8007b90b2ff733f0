//! Why nothing was simulated.

use crate::engine::EngineError;
use crate::topology::TopologyErrors;
use balar_driver::code::loader::LoadError;
use balar_isa::ptx::PtxErrors;

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// No GPU to run on.
    #[error("topology {0} has no GPU: no part holds a GPU front end, such as a CtaScheduler")]
    NoGpu(String),
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
