//! The balar-actors command line: arguments, progress, and the documents that a run prints.
//!
//! **Invariant:** nothing here changes what is simulated; stdout carries the result alone, everything else is on stderr.

pub mod arguments;
pub mod catalogue;
pub mod exit;
pub mod output;
pub mod result;
pub mod rollup;
pub mod snapshot;
