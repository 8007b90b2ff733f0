//! The steps of an executable graph: the work for a node of the graph.

use crate::session::addresses::copy::{Copy, Side};
use crate::session::graph::node::Work;
use balar_host::call::CopyEnd;

/// Pinned memory of a step.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Staging {
    pub address: u64,
    pub bytes: u64,
}

/// A node of an executable graph.
#[derive(Clone, Debug)]
pub struct Step {
    /// The graph's node.
    pub node: u64,
    /// Its work.
    pub work: Work,
    /// The steps it waits for.
    pub dependencies: Vec<u32>,
    /// Whether it does it.
    pub is_enabled: bool,
    /// The steps of a conditional node's graphs.
    pub graphs: Vec<Vec<Step>>,
}

impl Staging {
    /// All rows of a copy without gaps.
    pub(in crate::session) fn rows(self, copy: &Copy) -> CopyEnd {
        let row_pitch = copy.shape.width;
        CopyEnd::Memory { address: self.address, row_pitch, slice_pitch: row_pitch * copy.shape.height }
    }
}

/// The work of a step on memory of the program alone.
#[derive(Clone, Copy)]
pub(in crate::session) struct ProgramMemory {
    pub(in crate::session) is_read: bool,
    pub(in crate::session) is_written: bool,
}

impl ProgramMemory {
    /// It does nothing to it.
    pub fn is_none(self) -> bool {
        !self.is_read && !self.is_written
    }
}

impl Step {
    pub(in crate::session) fn program_memory(&self) -> ProgramMemory {
        let (is_read, is_written) = match &self.work {
            Work::Host(_) => (true, true),
            Work::Copy(work) => {
                let (destination, source) = work.copy.sides();
                (matches!(source, Side::Host(_)), matches!(destination, Side::Host(_)))
            }
            _ => (false, false),
        };
        ProgramMemory { is_read, is_written }
    }
}
