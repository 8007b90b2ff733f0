//! The balar-actors command line: arguments, progress, and the documents that a run prints.
//!
//! **Invariant:** nothing here changes what is simulated; stdout carries the result alone, everything else is on stderr.

pub mod app;
pub mod arguments;
pub mod commands;
mod heap;
pub mod options;
pub mod output;
pub mod series;
pub mod simulation;
pub mod timeline;
