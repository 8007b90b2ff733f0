//! The hardware units, one file or folder each.

use crate::catalogue::UnitDefinition;

pub mod copy_engine;
pub mod crossbar;
pub mod cta_scheduler;
pub mod dram;
pub mod gmmu;
pub mod hbm_stack;
pub mod host_cpu;
pub mod host_memory;
pub mod l2_slice;
pub mod link;
pub mod sm;

#[cfg(test)]
mod memory_test_support;

/// Every kind of unit that a topology can name.
pub const UNITS: &[&UnitDefinition] = &[
    &host_cpu::DEFINITION,
    &host_memory::DEFINITION,
    &link::DEFINITION,
    &cta_scheduler::DEFINITION,
    &copy_engine::DEFINITION,
    &sm::DEFINITION,
    &gmmu::DEFINITION,
    &crossbar::DEFINITION,
    &l2_slice::DEFINITION,
    &hbm_stack::DEFINITION,
];
