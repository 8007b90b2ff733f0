//! The state of a load from a constant bank while its lines are under way.

use serde::{Deserialize, Serialize};

/// A load that waits for lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConstantLoad {
    /// The warp, and which of those that have had its slot.
    pub warp: u16,
    /// See [`Self::warp`].
    pub generation: u32,
    /// The instruction.
    pub pc: u32,
    /// Addresses of its lines. At least one line is not there.
    pub lines: Vec<u64>,
    /// Cycles from when its lines are there until its result can be read.
    pub latency: u64,
}
