//! Eviction: the pages that leave the memory of a GPU when it is full.
//!
//! A policy of one's own is a file with a type that implements [`EvictionPolicy`], and a line in the list of [`EvictionChoice`].
//! When an eviction is due says [`Frames`].

mod blocks;
mod driver;
mod frames;
mod least_frequent;
mod leaves;
mod pages;
mod policy;
mod recency;
#[cfg(test)]
mod tests;

pub use blocks::LeastRecentBlock;
pub use driver::DriverEviction;
pub use frames::Frames;
pub use least_frequent::LeastFrequentBlock;
pub use leaves::{SequentialLocalEviction, TreeEviction};
pub use pages::{LeastRecentPage, RandomPage};
pub use policy::{ChunkUse, EvictionOptions, EvictionPolicy, MemoryView, Victim};

use serde::Deserialize;

/// Declares the policies that a topology can name. All are built from the same options.
macro_rules! eviction_choices {
    ($( $(#[$about:meta])+ $choice:ident => $type:ty ),* $(,)?) => {
        /// The eviction policies that a topology can name.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        pub enum EvictionChoice {
            $( $(#[$about])+ $choice, )*
        }

        impl EvictionChoice {
            /// The choices, in the order of their list.
            pub const ALL: &'static [EvictionChoice] = &[$(EvictionChoice::$choice),*];

            /// The policy for an empty memory.
            pub fn build(self, options: EvictionOptions) -> Box<dyn EvictionPolicy> {
                match self {
                    $( EvictionChoice::$choice => Box::new(<$type>::new(options)), )*
                }
            }
        }
    };
}

eviction_choices! {
    /// Whole blocks, the one least recently accessed first (UVMSmart's default).
    LeastRecentBlock => LeastRecentBlock,
    /// Whole blocks, the one least often accessed first (UVMSmart).
    LeastFrequentBlock => LeastFrequentBlock,
    /// Single pages, the one least recently accessed first (UVMSmart).
    LeastRecentPage => LeastRecentPage,
    /// Single pages at random (UVMSmart).
    RandomPage => RandomPage,
    /// Leaves of 64 KiB, of the block least recently accessed (UVMSmart).
    SequentialLocal => SequentialLocalEviction,
    /// Such a leaf, and the rest of neighbourhoods that are less than half full (UVMSmart).
    Tree => TreeEviction,
    /// Whole blocks in the order in which the driver has given them memory.
    #[default]
    Driver => DriverEviction,
}
