//! The built-in workloads: properties of all of them, and the statistics of each.

mod code;
mod detail;
mod determinism;
mod instruction_profiles;
mod machine_code;
mod roofline;
mod sampling;
mod snapshots;
mod stall_accounting;
mod timeline;
mod unified_memory;
mod window_cuts;
mod window_invariance;
