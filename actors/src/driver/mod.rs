//! The host's side: the CPU with its CUDA driver, the loading of modules, the driver's tables.

pub mod code_cache;
pub mod host_cpu;
pub mod modules;
pub mod tables;
