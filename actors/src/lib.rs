//! The engine, the topology language and the hardware units of balar-actors.
//!
//! From the ground up: [`engine`] (units, messages, windows), [`memory`] (values), [`catalogue`] (what a kind of unit declares), the
//! units themselves ([`gpu`] and [`node`] beside [`host_cpu`]), [`topology`], [`simulation`]. [`unified_memory`] holds policies as plain functions. [`prototyping`] is for units of one's own.

pub mod catalogue;
pub mod dram;
pub mod engine;
pub mod gpu;
pub mod host_cpu;
pub mod interleave;
pub mod kinds;
pub mod lines;
pub mod memory;
pub mod node;
pub mod prototyping;
pub mod simulation;
mod slab;
#[cfg(test)]
mod test_support;
pub mod topology;
pub mod unified_memory;
