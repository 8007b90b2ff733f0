//! The CUDA runtime library that real programs load.

pub mod abi;
pub mod driver;
pub mod nvrtc;
pub mod runtime;
pub mod session;
pub mod stub_library;
pub mod unimplemented;
