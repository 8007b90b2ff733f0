//! The functions of the CUDA runtime (`cuda*`).

pub mod array;
pub mod array_copy;
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
pub mod library;
pub mod managed;
pub mod memory;
pub mod occupancy;
pub mod pointer;
pub mod pool;
pub mod registration;
pub mod stream;
pub mod symbol;
pub mod texture;
pub mod texture_reference;
pub mod version;
