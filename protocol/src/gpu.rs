//! What a GPU has, as the host's driver knows it.

use crate::quantity::Frequency;
use crate::sm::SmCapability;

/// A GPU as the host's driver knows it: what the units of its part provide.
#[derive(Clone, Debug)]
pub struct GpuDescription {
    /// Path of its part: "gpu".
    pub part: String,
    /// Compute capability: (7, 0).
    pub compute_capability: (u32, u32),
    /// Its SMs, in the order of the topology.
    pub sms: Vec<SmCapability>,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// Clock of the memory's interface, the slowest where they differ; `None` without device memory.
    pub memory_clock: Option<Frequency>,
    /// Width of the memory's interface, bits.
    pub memory_bus_bits: u32,
    /// Capacity of the L2 cache, bytes.
    pub l2_bytes: u64,
    /// The SMs that a network joins, of each group within which a cluster of CTAs is placed (a GPC); `None` without such a network.
    pub cluster_groups: Option<Vec<u32>>,
}

impl GpuDescription {
    /// Streaming multiprocessors.
    pub fn sm_count(&self) -> u32 {
        self.sms.len() as u32
    }

    /// What every SM has: of each resource the least of any. `None` where there is no SM.
    pub fn smallest_sm(&self) -> Option<SmCapability> {
        self.sms.iter().copied().reduce(|least, sm| least.least(&sm))
    }
}
