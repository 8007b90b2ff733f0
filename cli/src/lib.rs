//! The balar-actors command line: arguments, progress, and the documents that a run prints.
//!
//! | room | what it has |
//! |---|---|
//! | `app` | from the command line to the exit code: it calls the command that is asked for |
//! | `arguments` | the tree of commands, as clap knows it |
//! | `commands` | the commands |
//! | `log` | what happens in a run, on stderr |
//! | `simulation` | a run: its node, who watches it, what ends it early |
//! | `output`, `series`, `timeline` | what a run prints and writes: its result, samples, and what happened when |
//! | `options` | what every option is and means |
//!
//! Each room knows those below it alone, and below all of them are the crates `balar_record`, a run when it has ended, and `balar_live`, a run
//! that is looked at while it goes on.
//!
//! **Invariant:** nothing here changes what is simulated; stdout carries the result alone, everything else is on stderr.

pub mod app;
pub mod arguments;
pub mod commands;
mod heap;
pub mod log;
pub mod options;
pub mod output;
pub mod series;
pub mod simulation;
pub mod timeline;
