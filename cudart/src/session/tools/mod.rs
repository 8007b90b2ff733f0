//! What a program tells profilers.

pub mod named_ranges;
pub mod profiler;
