//! Metrics: the counters of a node's units, under the names that users of profilers and of other simulators know.
//!
//! [`METRICS`] is the one table. [`find`] looks a name up in it, in any dialect; a [`Measurement`] gives values, of a run or of a launch.
//!
//! **Invariant:** nothing here prints. A metric that cannot be given is absent, never zero.

mod catalogue;
mod compiled;
mod formula;
mod launch_counters;
mod lookup;
mod measurement;
mod metric;
pub mod node_facts;
mod occupancy;
mod place;
pub mod rollup;
pub mod utilisation;

pub use catalogue::METRICS;
pub use compiled::{CompiledMetric, PlacedUnit, placed_units};
pub use formula::{Fact, Formula, Term, Value};
pub use launch_counters::place_of_counter;
pub use lookup::{Choice, all_names, find, is_like};
pub use measurement::{Measurement, Reading, copies_use_l2, covered};
pub use metric::{Dialect, Metric, RollUpKind};
pub use occupancy::{Limit, Occupancy};
pub use place::{Place, is_in};
