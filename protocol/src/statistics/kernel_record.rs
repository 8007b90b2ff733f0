//! What became of a kernel launch.

use super::KernelCounters;
use crate::context::ProcessId;
use crate::detail::Detail;
use crate::launch::LaunchId;
use crate::ranges::RangePath;
use std::sync::Arc;

/// What a kernel launch did, as the CTA scheduler saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    /// The launch.
    pub launch: LaunchId,
    /// The process that launched it.
    pub process: ProcessId,
    /// The kernel's name.
    pub name: Arc<str>,
    /// Its stream.
    pub stream: u32,
    /// Path of the GPU it ran on.
    pub gpu: Arc<str>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Shared memory of a CTA, bytes.
    pub shared_bytes: u32,
    /// How closely it was simulated.
    pub detail: Detail,
    /// Its process was between `cudaProfilerStart` and `cudaProfilerStop`.
    pub is_profiled: bool,
    /// The innermost named range that the thread was in that launched it, or the kernel that did.
    pub range: Option<RangePath>,
    /// The launch whose kernel has launched it, where no host has.
    pub parent: Option<LaunchId>,
    /// When the scheduler started it, ps. Of a launch that was not timed this tells the order alone.
    pub start_ps: u64,
    /// When its last CTA ended, ps; of a launch that was still running at the end of the run, that end. Of a launch that was not timed
    /// this tells the order alone.
    pub end_ps: u64,
    /// SM-clock cycles from start to end; 0 of a launch that was not timed.
    pub cycles: u64,
    /// Did it end as it should?
    pub completed: bool,
    /// Sums over its CTAs; of a launch that did not run to its end, over those that had begun by then.
    pub counters: KernelCounters,
    /// Of these CTAs, those that have not run to their end.
    pub ctas_unfinished: u64,
}

impl KernelRecord {
    /// Picoseconds from start to end; `None` of a launch that was not timed.
    pub fn duration_ps(&self) -> Option<u64> {
        self.detail.is_timed().then(|| self.end_ps.saturating_sub(self.start_ps))
    }

    /// SM-clock cycles from start to end; `None` of a launch that was not timed.
    pub fn timed_cycles(&self) -> Option<u64> {
        self.detail.is_timed().then_some(self.cycles)
    }

    /// The values of the counters in the order of their definitions; `None` of those that a launch which was not timed does not have.
    pub fn known_counters(&self) -> impl Iterator<Item = Option<u64>> {
        let known = if self.detail.is_timed() { usize::MAX } else { KernelCounters::first_of_timing() };
        self.counters.values().enumerate().map(move |(at, value)| (at < known).then_some(value))
    }
}
