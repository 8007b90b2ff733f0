//! The functions of the CUDA runtime (`cuda*`).

pub mod capture;
pub mod copy;
pub mod device;
pub mod error;
pub mod event;
pub mod function;
pub mod graph;
pub mod launch;
pub mod memory;
pub mod pool;
pub mod registration;
pub mod stream;
