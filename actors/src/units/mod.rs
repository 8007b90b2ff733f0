//! The hardware units, one file or folder each.

use crate::catalogue::UnitDefinition;

pub mod copy_engine;
pub mod crossbar;
pub mod cta_scheduler;
pub mod hbm_stack;
pub mod host_cpu;
pub mod l2_slice;
pub mod link;
pub mod sm;
pub mod dram;
pub mod host_memory;
pub mod gmmu;

#[cfg(test)]
mod memory_test_support;

/// Every kind of unit that a topology can name.
pub const UNITS: &[&UnitDefinition] = &[
    &host_cpu::DEFINITION,
    &link::DEFINITION,
    &cta_scheduler::DEFINITION,
    &copy_engine::DEFINITION,
    &sm::DEFINITION,
    &crossbar::DEFINITION,
    &l2_slice::DEFINITION,
    &hbm_stack::DEFINITION,
    &host_memory::DEFINITION,
    &gmmu::DEFINITION,
];
