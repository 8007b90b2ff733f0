//! The translation protocol: virtual to physical page addresses, between the TLBs of an SM and the GMMU.
//!
//! The SM is the client: it sends requests, tells when a range is dropped, and how often it uses pages whose use somebody follows. The
//! GMMU is the server: it answers each request with a response, after a [`TranslationMessage::Fault`] where the page must be migrated
//! first, and asks for ranges to be dropped before their pages move.
//!
//! What an instruction means is executed when it issues, so a fault is a matter of time alone: the request waits in the SM and goes
//! on, and no instruction is executed again.

use crate::ports::Side;
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

/// Whose memory a page lies in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Aperture {
    /// The GPU's own.
    #[default]
    Device,
    /// The host's, over the link.
    Host,
}

/// How a request accesses its page, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PageAccess {
    /// A load.
    #[default]
    Read,
    /// A store.
    Write,
    /// An atomic operation.
    Atomic,
}

impl PageAccess {
    /// Does it change the value?
    #[inline]
    pub const fn writes(self) -> bool {
        !matches!(self, PageAccess::Read)
    }
}

/// What a TLB may keep of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Translation {
    /// Virtual address of the page.
    pub page: u64,
    /// Binary logarithm of the bytes around `page`, naturally aligned, of which all the same is true. A TLB may keep one entry for as much of
    /// them as its entries reach.
    pub valid_bits: u8,
    /// Whose memory it is. Within it an address is that of the program: pages have the addresses of their frames.
    pub aperture: Aperture,
    /// Stores and atomics may go there, too.
    pub writable: bool,
    /// Somebody wants to know how often the page is used.
    pub followed: bool,
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
        /// What the page is accessed for.
        access: PageAccess,
    },
    /// The page is resident: the TLB may cache it.
    Response {
        /// The request's number.
        id: u32,
        /// The translation.
        translation: Translation,
    },
    /// The page cannot be used now: a Nack. Of [`FaultKind::NotResident`], a `Response` follows when the page has been migrated; the
    /// others end the kernel. Accesses to other pages than the one of `page_bits` around the address are not part of it.
    Fault {
        /// The request's number.
        id: u32,
        /// The faulting virtual address.
        address: u64,
        /// Binary logarithm of the page's bytes.
        page_bits: u8,
        /// Why.
        kind: FaultKind,
    },
    /// More requests wait for the page of a request that the GMMU has not answered, or has answered with a fault: each of them is a fault
    /// as well. It is said of pages of which a TLB knows that they can fault.
    Joined {
        /// Virtual address, any byte of the page.
        address: u64,
        /// The number of the request that they wait with.
        id: u32,
        /// How many.
        requests: u32,
        /// The strongest of their accesses.
        access: PageAccess,
    },
    /// How often a TLB has used a followed page since it last said so.
    Used {
        /// Virtual address of the page.
        page: u64,
        /// Requests that went there.
        requests: u32,
        /// One of them changed the page.
        written: bool,
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
            TranslationMessage::Request { .. }
            | TranslationMessage::Joined { .. }
            | TranslationMessage::Used { .. }
            | TranslationMessage::Invalidated { .. } => Side::Client,
            TranslationMessage::Response { .. }
            | TranslationMessage::Fault { .. }
            | TranslationMessage::Invalidate { .. } => Side::Server,
        }
    }
}
