//! The parts of a program: its name, its parameters, its demands on an SM, code that it shares.

use super::timing::Timing;
use crate::operation::Instruction;
use crate::sass;
use std::sync::Arc;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSlot {
    /// Offset in the parameter block, bytes.
    pub offset: u32,
    /// Size, bytes.
    pub bytes: u32,
}

/// The demands of a kernel on an SM.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// 32-bit registers of a thread, the estimate that limits occupancy: as many as the GPU's own assembler would name. Warps get
    /// them in units of the SM's.
    pub registers_per_thread: u32,
    /// Static shared memory, bytes.
    pub shared_bytes: u32,
    /// Shared memory before it that belongs to the system, and that addresses count, bytes: of machine code for Hopper.
    pub reserved_shared_bytes: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// `.maxntid`, where given.
    pub maximum_threads: Option<u32>,
    /// `.reqntid`, where given.
    pub required_block: Option<[u32; 3]>,
    /// Its needs of clusters.
    pub clusters: ClusterNeeds,
}

/// What a kernel says of the clusters of its launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterNeeds {
    /// CTAs of a cluster in each dimension (`.reqnctapercluster`), where given.
    pub required: Option<[u32; 3]>,
    /// A launch must name the clusters, where the kernel does not (`.explicitcluster`).
    pub is_explicit: bool,
    /// CTAs that a cluster can have (`.maxclusterrank`), where given.
    pub maximum_size: Option<u32>,
}

impl Resources {
    /// The shared memory that addresses of a CTA can reach, where its launch has so much static and dynamic memory together, bytes.
    pub fn addressed_shared_bytes(&self, of_launch: u32) -> u32 {
        of_launch.saturating_add(self.reserved_shared_bytes)
    }
}

/// A kernel's name, shared.
pub type KernelName = Arc<str>;

/// Code that follows a program's own and that other programs have, too: functions of a module of machine code.
#[derive(Debug, Default)]
pub(crate) struct SharedCode {
    pub timings: Vec<Timing>,
    pub instructions: Vec<Instruction>,
    /// The instructions as they were decoded; those of the device runtime's functions, at the end, have none.
    pub decoded: Vec<sass::Instruction>,
}
