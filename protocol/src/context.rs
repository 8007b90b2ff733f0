//! Whose work and memory it is: processes, and their contexts on GPUs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A process of the program that runs on a node, numbered from 0 in the order of their first calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// There is no other in most runs.
    pub const FIRST: ProcessId = ProcessId(0);
    /// Processes that a run can have.
    pub const LIMIT: u32 = 1 << (u32::BITS - ContextId::GPU_BITS);
}

impl fmt::Display for ProcessId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The context of a process on a GPU: what kernels run in. It decides which memory they may access, and whom their faults concern.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContextId(u32);

impl ContextId {
    /// Bits of a GPU's number.
    const GPU_BITS: u32 = 4;
    /// Numbers of GPUs: more than a node can have, so that one that there is not has a number, too.
    pub const GPUS: usize = 1 << Self::GPU_BITS;

    /// The context of `process`, which is below [`ProcessId::LIMIT`], on GPU number `gpu`, which is below [`Self::GPUS`].
    pub const fn new(process: ProcessId, gpu: usize) -> ContextId {
        debug_assert!(process.0 < ProcessId::LIMIT && gpu < ContextId::GPUS);
        ContextId(process.0 << Self::GPU_BITS | gpu as u32)
    }

    /// The context of the first process on GPU number `gpu`.
    pub const fn first(gpu: usize) -> ContextId {
        ContextId::new(ProcessId::FIRST, gpu)
    }

    /// Whose it is.
    pub const fn process(self) -> ProcessId {
        ProcessId(self.0 >> Self::GPU_BITS)
    }

    /// The number of its GPU.
    pub const fn gpu(self) -> usize {
        self.0 as usize & (Self::GPUS - 1)
    }
}

impl fmt::Debug for ContextId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {} on GPU {}", self.process(), self.gpu())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_tells_its_process_and_gpu() {
        let context = ContextId::new(ProcessId(70_000), 5);
        assert_eq!((context.process(), context.gpu()), (ProcessId(70_000), 5));
        assert_eq!(ContextId::first(7), ContextId::new(ProcessId(0), 7));
        let last = ContextId::new(ProcessId(ProcessId::LIMIT - 1), ContextId::GPUS - 1);
        assert_eq!((last.process().0 + 1, last.gpu()), (ProcessId::LIMIT, 15));
    }
}
