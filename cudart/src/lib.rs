//! The CUDA runtime library that real programs load.

pub mod core;
pub mod driver;
pub mod exports;
pub mod nvrtc;
pub mod runtime;
pub mod stub_library;
pub mod types;
pub mod unimplemented;
