//! The policies of unified memory: which pages move, when, where to, and at what cost.
//!
//! Everything here is a function of its arguments, or a small state with operations: no units, no messages. A GMMU and a host driver
//! ask these policies and act upon the answers.
//!
//! - The places of pages: [`PageSet`], [`Tree`], [`allocation`], [`residency`], [`thrashing`]
//! - Moves on a fault: [`batch`], [`prefetch`], [`transfers`]
//! - Making room: [`eviction`]
//! - Remote access to pages that stay: [`remote_access`]
//! - Costs: [`bandwidth`], [`batch::BatchCosts`], [`synchronisation`]
//!
//! Words: a *page* is 4 KiB, a *leaf* 64 KiB (UVMSmart's basic block, the driver's big page), a *block* 2 MiB (UVMSmart's tree of 32
//! leaves, the driver's VA block).
//!
//! Sources, named at each item: "UVMSmart" is the public simulator behind the studies of ISCA 2019, IPDPS 2020 and DATE 2021 (commit
//! bafab5d); "the driver" is NVIDIA's open kernel modules 595.45.04; "traces" are nvprof traces of a GTX 1080 Ti that UVMSmart's
//! microbenchmarks quote. Where UVMSmart and the driver differ there are both, and the driver's rule is the default.
//!
//! **Invariant:** nothing here iterates a hashed collection, reads a clock or draws from a generator that it was not given.

pub mod allocation;
pub mod bandwidth;
pub mod batch;
mod choices;
pub mod eviction;
mod pages;
pub mod prefetch;
mod processor;
pub mod remote_access;
pub mod residency;
pub mod synchronisation;
pub mod thrashing;
pub mod transfers;
mod tree;

pub use pages::PageSet;
pub use processor::{Access, Processor, ProcessorSet};
pub use tree::{Node, Tree};

use rand_core::Rng;
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4 << 10;
/// Bytes of a leaf.
pub const LEAF_BYTES: u64 = 64 << 10;
/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 2 << 20;
/// Pages of a leaf.
pub const LEAF_PAGES: usize = (LEAF_BYTES / PAGE_BYTES) as usize;
/// Pages of a block.
pub const BLOCK_PAGES: usize = (BLOCK_BYTES / PAGE_BYTES) as usize;
/// Leaves of a block.
pub const BLOCK_LEAVES: usize = (BLOCK_BYTES / LEAF_BYTES) as usize;

/// The number of a block in the caller's table. Policies only tell blocks apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockId(pub u32);

/// A number below `bound`, all alike but for 2^-32 of `bound`; 0 where `bound` is 0.
fn uniform(random: &mut Pcg32, bound: usize) -> usize {
    ((u128::from(random.next_u32()) * bound as u128) >> 32) as usize
}
