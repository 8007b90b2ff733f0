//! What the units of a node share: device memories, loaded programs, the workload.

use crate::device_memory::DeviceMemory;
use std::sync::Arc;

/// A GPU as the host's driver knows it, taken from the topology.
#[derive(Clone, Debug)]
pub struct GpuDescription {
    /// Path of its part: "gpu".
    pub part: String,
    /// Compute capability: (7, 0).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Device memory, bytes.
    pub memory_bytes: u64,
}

/// State that belongs to the node as a whole. Units hold shared references to parts of it from their construction.
#[derive(Default)]
pub struct Node {
    /// The GPUs in the order of the topology.
    pub gpus: Vec<GpuDescription>,
    /// Their device memories, in the same order.
    pub memories: Vec<Arc<DeviceMemory>>,
}

impl Node {
    /// The GPU (index, description) whose part is `part`.
    pub fn gpu(&self, part: &str) -> Option<(usize, &GpuDescription)> {
        self.gpus.iter().enumerate().find(|(_, gpu)| gpu.part == part)
    }
}
