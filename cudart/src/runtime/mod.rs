//! The functions of the CUDA runtime (`cuda*`).

pub mod attributes;
pub mod capture;
pub mod copy;
pub mod device;
pub mod device_properties;
pub mod error;
pub mod event;
pub mod fill;
pub mod function;
pub mod graph;
pub mod host_memory;
pub mod launch;
pub mod managed;
pub mod memory;
pub mod pointer;
pub mod pool;
pub mod registration;
pub mod stream;
pub mod symbol;
