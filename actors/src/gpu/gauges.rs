//! What the units of GPUs show of their progress on the live board: the names of its gauges.
//!
//! A scheduler and an SM have gauges of their own, whose names end as these say, after the unit's path. Gauges of kernels are shared by all
//! schedulers, and begin as these say, before the kernel's name as its code has it.

/// CTAs that have ended on the GPU of a scheduler, those included that ran for their values alone.
pub const CTAS_DONE: &str = ".ctas_done";
/// Warp instructions that the CTAs on an SM have executed, those under way included. An SM that is busy shows them from time to time.
pub const WARP_INSTRUCTIONS: &str = ".warp_instructions";
/// CTAs of a kernel that have been placed on SMs, of launches that are timed.
pub const KERNEL_CTAS_BEGUN: &str = "kernel_ctas_begun.";
/// Those of them that have ended.
pub const KERNEL_CTAS_ENDED: &str = "kernel_ctas_ended.";
/// Warp instructions of those that have ended.
pub const KERNEL_INSTRUCTIONS: &str = "kernel_instructions.";
