//! The translation protocol: virtual to physical page addresses, between the TLBs of an SM and the GMMU.
//!
//! The SM is the client: it sends requests, and tells when a range is dropped. The GMMU is the server: it answers each request with a
//! response, after a fault where the page must be migrated first, and asks for ranges to be dropped before their pages move. The
//! GMMU of this project maps every page onto itself and so sends responses alone; faults and shootdowns are for one that migrates.

use crate::message::Side;
use serde::{Deserialize, Serialize};

/// Why the GMMU could not answer with a translation at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// No mapping exists: an illegal address.
    Unmapped,
    /// The page is not resident in device memory and is being migrated: a far fault.
    NotResident,
    /// The page is mapped, but not for this access.
    Protection,
}

/// Messages of the translation protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TranslationMessage {
    /// A TLB asks for the page that holds `address`.
    Request {
        /// Virtual address, any byte of the page.
        address: u64,
        /// The requester's own number, echoed.
        id: u32,
        /// Does the access write?
        write: bool,
    },
    /// The page is resident: the TLB may cache it.
    Response {
        /// The request's number.
        id: u32,
        /// Virtual address of the page.
        page: u64,
        /// Physical address of the page.
        frame: u64,
        /// Page size in bytes, as its binary logarithm.
        page_bits: u8,
    },
    /// The page cannot be used now. Of [`FaultKind::NotResident`], a `Response` follows when the page has been migrated; the others end
    /// the kernel.
    Fault {
        /// The request's number.
        id: u32,
        /// The faulting virtual address.
        address: u64,
        /// Why.
        kind: FaultKind,
    },
    /// Drop every translation inside the range: a TLB shootdown.
    Invalidate {
        /// First virtual address.
        address: u64,
        /// Bytes from there.
        bytes: u64,
        /// The GMMU's number, echoed.
        id: u32,
    },
    /// The range has been dropped and no access to it is under way.
    Invalidated {
        /// The GMMU's number.
        id: u32,
    },
}

impl TranslationMessage {
    /// Which side sends it.
    pub const fn sender(&self) -> Side {
        match self {
            TranslationMessage::Request { .. } | TranslationMessage::Invalidated { .. } => Side::Client,
            TranslationMessage::Response { .. }
            | TranslationMessage::Fault { .. }
            | TranslationMessage::Invalidate { .. } => Side::Server,
        }
    }
}
