//! The program's dealings with the operating system: its exit code, reports on stderr, files, the terminal, and a process that clears away
//! behind it.
//!
//! **Invariant:** nothing here knows of the record of a run, of options and of commands.

pub mod exit;
pub mod failure;
pub mod files;
pub mod janitor;
pub mod printable;
pub mod terminal;
