//! The engine, the topology language and the hardware units of balar-actors.
//!
//! From the ground up: [`engine`] (units, messages, windows), [`memory`] (values), [`catalogue`] (the declarations of a kind of unit), the
//! units themselves ([`gpu`] and [`node`] beside [`host_cpu`]), [`topology`], [`simulation`]. [`unified_memory`] holds policies as plain
//! functions. [`prototyping`] is for units of your own.
//!
//! | folder | what it holds |
//! |---|---|
//! | `engine` | units, messages, windows and value epochs; it knows nothing of GPUs |
//! | `memory` | the values of the node's memories, the logs of units' writes, the addresses that each context may access |
//! | `catalogue` | the declarations of a kind of unit; counts by instruction; the activity of units over time (`timeline`) |
//! | `interleave`, `lines`, `dram` | how addresses spread over slices, sets and banks; ranges of addresses as requests for lines; memory channels |
//! | `unified_memory` | policies without units and messages, which the driver of unified memory asks |
//! | `gpu`, `node`, `host_cpu` | the units |
//! | `kinds` | the list of kinds that come with the simulator |
//! | `topology` | the topology language, the picture of a node, and the units built of it |
//! | `simulation` | the memories, the code loaded from the start, the facts that programs can ask for, and the result of a run |
//!
//! **Invariant:** no two folders import each other. **Invariant:** a property of a unit stands once, at its kind; others learn of it by capabilities
//! (`catalogue/capability.rs`), and nothing looks for units by the names of their kinds.

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
