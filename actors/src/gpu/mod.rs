//! The units of a GPU, one file or folder each.

mod cluster_barriers;
pub mod copy_engine;
pub mod crossbar;
pub mod cta_scheduler;
pub mod gauges;
pub mod gmmu;
pub mod hbm_stack;
pub mod l2_slice;
mod line_owners;
mod places;
pub mod sm;
pub mod sm_network;
pub mod tlb;

use serde::Deserialize;

/// The contents of caches when a kernel begins.
///
/// A cache takes a launch as a kernel's beginning where it is later than all that it has seen: profilers, for which this is, run kernels
/// one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CachesBetweenKernels {
    /// The lines that the kernels and copies before it left.
    Kept,
    /// Nothing, as where a profiler empties caches before each kernel that it measures. Dirty lines count as written back by the profiler,
    /// before the kernel and in no time.
    Flushed,
}
