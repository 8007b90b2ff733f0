//! The migration protocol: what the driver of unified memory on the host, GMMUs and migration links say to each other.
//!
//! The host's driver is the client. It asks a GMMU for faults, has pages mapped and unmapped, and has faulting requests replayed; it
//! asks a migration link to carry bytes. It alone knows where pages are and decides what moves; a GMMU knows what its GPU may access.

use crate::ports::Side;
use crate::time::SimTime;
use crate::translation::{Aperture, PageAccess};
use serde::{Deserialize, Serialize};

/// An entry of a GPU's fault buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FaultEntry {
    /// Virtual address of the page.
    pub page: u64,
    /// What it was to be accessed for.
    pub access: PageAccess,
    /// The TLB that faulted, by the GMMU's own number.
    pub tlb: u16,
}

/// Faults that are served together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// In the order in which they came.
    pub entries: Vec<FaultEntry>,
    /// Faults that found the buffer full since the last fetch.
    pub overflows: u32,
}

/// What of the TLBs is invalidated when pages are unmapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShootdownScope {
    /// The entry of each page, one after the other.
    Entry,
    /// All entries of a range at once.
    #[default]
    Range,
    /// Everything.
    All,
}

/// Which way pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// From the host's memory to the GPU's.
    ToDevice,
    /// From the GPU's memory to the host's.
    ToHost,
}

/// Messages of the migration protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationMessage {
    /// To a GMMU: pages of this range are only there where they have been mapped, from now on; or it is no such range any more.
    Manage {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// From now on, or no longer.
        managed: bool,
    },
    /// To a GMMU: the oldest faults are wanted, at most so many; [`MigrationMessage::Faults`] answers.
    Fetch {
        /// The most.
        limit: u32,
    },
    /// To a GMMU: pages may be accessed.
    Map {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Whose memory they lie in.
        aperture: Aperture,
        /// Stores and atomics are allowed.
        writable: bool,
        /// Requests that wait for these pages go on at once. Otherwise they wait for a replay.
        replay: bool,
    },
    /// To a GMMU: pages may no longer be accessed; [`MigrationMessage::Unmapped`] answers when no TLB has them.
    Unmap {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// The driver's number, echoed.
        id: u32,
    },
    /// To a GMMU: all requests that have faulted are tried again.
    Replay {
        /// Faults still in the buffer are dropped first; they come again where they must.
        flush: bool,
    },
    /// From a GMMU: there are faults in the buffer, which was empty.
    Pending,
    /// From a GMMU: what was fetched, or what faulted in one cycle.
    Faults(Box<Faults>),
    /// From a GMMU: no TLB has the pages any more.
    Unmapped {
        /// The driver's number.
        id: u32,
    },
    /// From a GMMU: how often a TLB has used a page that is followed.
    Used {
        /// Virtual address of the page.
        page: u64,
        /// Requests that went there.
        requests: u32,
        /// One of them changed the page.
        written: bool,
    },
    /// To a migration link: carry this. [`MigrationMessage::Transferred`] answers.
    Transfer {
        /// The driver's number, echoed.
        id: u32,
        /// Bytes of contiguous pages.
        bytes: u64,
        /// Which way.
        direction: Direction,
        /// Faults that are serviced on the link before the pages move, where a link does that.
        faults: u32,
    },
    /// From a migration link: it is there.
    Transferred {
        /// The driver's number.
        id: u32,
        /// When it began to cross the link.
        began: SimTime,
    },
}

impl MigrationMessage {
    /// Which side sends it.
    pub const fn sender(&self) -> Side {
        match self {
            MigrationMessage::Manage { .. }
            | MigrationMessage::Fetch { .. }
            | MigrationMessage::Map { .. }
            | MigrationMessage::Unmap { .. }
            | MigrationMessage::Replay { .. }
            | MigrationMessage::Transfer { .. } => Side::Client,
            MigrationMessage::Pending
            | MigrationMessage::Faults(_)
            | MigrationMessage::Unmapped { .. }
            | MigrationMessage::Used { .. }
            | MigrationMessage::Transferred { .. } => Side::Server,
        }
    }
}
