//! The keys of operations and streams.

use serde::{Deserialize, Serialize};

/// An operation, by its place in the order in which the program asked for them.
pub type OperationNumber = u64;

/// A stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum StreamKey {
    /// The legacy default stream of a device, by its number.
    Legacy(usize),
    /// One that the program made.
    Own(u32),
}

impl StreamKey {
    /// The number that programs and results know it by.
    pub fn number(self) -> u32 {
        match self {
            StreamKey::Legacy(_) => 0,
            StreamKey::Own(stream) => stream,
        }
    }
}
