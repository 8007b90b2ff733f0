//! Units to copy, and the list that registers them.
//!
//! `docs/prototyping.md` leads through [`stream_prefetcher`]. [`first_unit`] is what `balar-actors new unit` makes, with another name. The program of this crate is the balar-actors command line
//! with these units beside the built-in ones:
//!
//! ```text
//! cargo run --release -p balar-examples -- --topology examples/topologies/v100_prefetcher.ron
//! ```

use balar_actors::catalogue::UnitDefinition;

pub mod first_unit;
pub mod next_leaf_prefetcher;
pub mod stream_prefetcher;
pub mod write_buffer;

/// The units of this crate: one line registers a unit.
pub const UNITS: &[&UnitDefinition] = &[
    // Add yours here.
    &first_unit::DEFINITION,
    &next_leaf_prefetcher::DEFINITION,
    &stream_prefetcher::DEFINITION,
    &write_buffer::DEFINITION,
];
