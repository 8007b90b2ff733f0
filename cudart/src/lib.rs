//! The CUDA runtime library that real programs load.

pub mod exports;
pub mod stub_library;
pub mod types;
pub mod unimplemented;
