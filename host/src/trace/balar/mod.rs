//! Traces of Balar: a text of calls (`cuda_calls.trace`), a file for each copy, and the CUDA executable.

mod executable;
mod folder;
mod line;
mod program;

pub use folder::{BalarError, BalarTrace, LineError};
pub use program::BalarReplay;

#[cfg(test)]
mod tests;
