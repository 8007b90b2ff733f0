//! Prefetchers: pages that move besides the ones that faulted.
//!
//! A prefetcher of one's own is a file with a type that implements [`Prefetcher`], and a line in the list of [`PrefetcherChoice`].

mod driver;
mod none;
mod prefetcher;
mod random;
mod sequential_local;
#[cfg(test)]
mod tests;
mod tree;

pub use driver::DriverPrefetcher;
pub use none::OnDemand;
pub use prefetcher::{BlockFaults, Prefetcher};
pub use random::RandomPrefetcher;
pub use sequential_local::SequentialLocalPrefetcher;
pub use tree::TreePrefetcher;

use super::choices::choices;

choices! {
    /// The prefetchers that a topology can name.
    pub enum PrefetcherChoice builds Prefetcher {
        /// Only faulting pages move.
        None => OnDemand,
        /// One more page a fault, at random in the block (UVMSmart).
        Random => RandomPrefetcher,
        /// The rest of the leaves that faulted (UVMSmart).
        SequentialLocal => SequentialLocalPrefetcher,
        /// The tree-based neighbourhood prefetcher of UVMSmart, which cascades.
        Tree => TreePrefetcher,
        /// The driver's: the largest well-filled neighbourhood of each fault.
        Driver(..) => DriverPrefetcher,
    }
}

impl Default for PrefetcherChoice {
    /// The driver's, for it alone reproduces the transfers of the traces in both directions.
    fn default() -> Self {
        PrefetcherChoice::Driver(DriverPrefetcher::default())
    }
}
