//! The managed-memory protocol: what the host CPU asks of the driver of unified memory.
//!
//! The host CPU is the client. What has an `id` is answered when it is over: a touch by [`ManagedMessage::Touched`], all else by
//! [`ManagedMessage::Done`]. The rest takes effect at once.

use crate::context::ProcessId;
use crate::ports::Side;
use serde::{Deserialize, Serialize};

/// What a program advises of a range (`cudaMemAdvise`). A location is a GPU, or `None` for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdviceChange {
    /// Set or unset: it is mostly read, so readers get copies.
    ReadMostly(bool),
    /// Set: its pages are to lie there.
    PreferredLocation(Option<u8>),
    /// Unset.
    NoPreferredLocation,
    /// Set or unset: this processor accesses it from wherever it is.
    AccessedBy(Option<u8>, bool),
}

/// Pages of one run that the host may access, from the one that was touched in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPages {
    /// Address of the first.
    pub address: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Whether it may write them without a further touch: no other processor has copies.
    pub writable: bool,
}

/// Messages of the managed-memory protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManagedMessage {
    /// An allocation begins.
    Allocate {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// The allocation that begins at the address ends.
    Free {
        /// First address.
        address: u64,
    },
    /// Advice about a range.
    Advise {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// What is advised.
        advice: AdviceChange,
    },
    /// Bring a range somewhere.
    Prefetch {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// A GPU, or `None` for the host.
        target: Option<u8>,
        /// The host CPU's number.
        id: u32,
    },
    /// The program reads or writes a range, from its first byte to its last.
    Touch {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Does it write?
        write: bool,
        /// The host CPU's number.
        id: u32,
    },
    /// A process has waited for what its GPUs do.
    Synchronise {
        /// The host CPU's number.
        id: u32,
        /// The process.
        process: ProcessId,
    },
    /// What the host accesses of the allocation that begins at the address is not told, from now on: all of it is on the host, and is
    /// there again after each synchronisation of the process.
    AssumeHostAccesses {
        /// First address.
        address: u64,
        /// The process.
        process: ProcessId,
    },
    /// So much of a GPU's memory is allocated otherwise.
    Reserved {
        /// The GPU.
        gpu: u8,
        /// Bytes.
        bytes: u64,
    },
    /// It is over.
    Done {
        /// The host CPU's number.
        id: u32,
    },
    /// A touch is over.
    Touched {
        /// The host CPU's number.
        id: u32,
        /// The pages around the last byte touched that the host may access now; `None` where that has left the host again.
        pages: Option<HostPages>,
    },
}

impl ManagedMessage {
    /// Which side sends it.
    pub const fn sender(&self) -> Side {
        match self {
            ManagedMessage::Done { .. } | ManagedMessage::Touched { .. } => Side::Server,
            _ => Side::Client,
        }
    }
}
