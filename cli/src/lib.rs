//! The balar-actors command line: arguments, progress, and the documents that a run prints.
//!
//! **Invariant:** nothing here changes what is simulated; stdout carries the result alone, everything else is on stderr.

pub mod app;
pub mod arguments;
pub mod catalogue;
pub mod compare;
pub mod detail;
pub mod disassemble;
pub mod exit;
pub mod failure;
pub mod files;
mod heap;
pub mod hotspots;
pub mod interrupt;
pub mod interruptible;
pub mod kernel_name;
pub mod live;
pub mod metric_listing;
pub mod metrics;
pub mod node;
pub mod node_facts;
pub mod observation;
pub mod output;
pub mod progress;
pub mod ptx;
mod ptxas;
pub mod ranges;
pub mod recording;
pub mod replay;
pub mod report;
pub mod result;
pub mod rollup;
pub mod roofline;
pub mod run;
pub mod run_folder;
pub mod series;
pub mod simulate;
pub mod snapshot;
pub mod sweep;
pub mod terminal;
pub mod timeline;
pub mod timing;
pub mod unfinished;
mod utilisation;
pub mod validate;
pub mod watch;
