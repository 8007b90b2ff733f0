//! A program's messages to profilers.

pub mod named_ranges;
pub mod profiler;
