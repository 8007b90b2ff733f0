//! The functions of the CUDA runtime (`cuda*`).

pub mod copy;
pub mod device;
pub mod error;
pub mod function;
pub mod launch;
pub mod memory;
pub mod registration;
