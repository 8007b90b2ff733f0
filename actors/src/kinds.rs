//! Every kind of unit that comes with the simulator.

use crate::catalogue::UnitDefinition;
use crate::gpu::{copy_engine, crossbar, cta_scheduler, gmmu, hbm_stack, l2_slice, sm};
use crate::host_cpu;
use crate::node::{host_memory, link, migration_link, unified_memory_driver};
use crate::prototyping::PASS_THROUGH;

/// Every kind of unit that a topology can name.
pub const UNITS: &[&UnitDefinition] = &[
    &host_cpu::DEFINITION,
    &host_memory::DEFINITION,
    &link::DEFINITION,
    &migration_link::DEFINITION,
    &unified_memory_driver::DEFINITION,
    &cta_scheduler::DEFINITION,
    &copy_engine::DEFINITION,
    &sm::DEFINITION,
    &gmmu::DEFINITION,
    &crossbar::DEFINITION,
    &l2_slice::DEFINITION,
    &hbm_stack::DEFINITION,
    &PASS_THROUGH,
];

/// Does this kind of unit come with the simulator? Whatever else a topology names is its user's own.
pub fn is_built_in(kind: &UnitDefinition) -> bool {
    UNITS.iter().any(|own| own.name == kind.name)
}
