//! The units of a GPU, one file or folder each.

pub mod copy_engine;
pub mod crossbar;
pub mod cta_scheduler;
pub mod gmmu;
pub mod hbm_stack;
pub mod l2_slice;
pub mod sm;
