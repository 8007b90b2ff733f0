//! Statistics: a unit declares its counters in one table, and every output is made from it.
//!
//! From the ground up: [`counters!`](crate::counters) and what it declares; the counters of launches; the records of launches, one and many
//! ([`kernel_records`]), and what units count [by launch](by_launch); the sink that takes all of it from the units.

pub mod by_launch;
mod counters;
mod kernel_record;
pub mod kernel_records;
mod launch_counters;
mod outcome;
mod sink;

pub use by_launch::LaunchTotals;
pub use counters::{CounterSet, CounterSink, StatisticDefinition};
pub use kernel_record::KernelRecord;
pub use kernel_records::KernelRecords;
pub use launch_counters::{CtaCounters, KernelCounters, UnitCounters};
pub use outcome::{ProgramOutcome, Verification};
pub use sink::{DataTable, Field, StatisticRow, StatisticSink};
