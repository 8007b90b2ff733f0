//! The engine, the topology language and the hardware units of balar-actors.

pub mod catalogue;
pub mod description;
pub mod device_memory;
pub mod engine;
pub mod modules;
pub mod simulation;
pub mod topology;
pub mod units;
