//! The managed-memory protocol: what the host CPU asks of the driver of unified memory.
//!
//! The host CPU is the client. What has an `id` is answered by [`ManagedMessage::Done`] when it is over; the rest takes effect at once.

use crate::message::Side;
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
    /// The program has waited for all that its GPUs do.
    Synchronise {
        /// The host CPU's number.
        id: u32,
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
}

impl ManagedMessage {
    /// Which side sends it.
    pub const fn sender(&self) -> Side {
        match self {
            ManagedMessage::Done { .. } => Side::Server,
            _ => Side::Client,
        }
    }
}
