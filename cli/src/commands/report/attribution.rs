//! What warps of each kernel did with their cycles, summed over its launches.

use super::input::RunInput;
use balar_protocol::statistics::KernelCounters;
use balar_record::run_folder::instructions::STALL;
use std::collections::BTreeMap;

/// Where the cycles of a kernel's warps went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelShare {
    /// Cycles that warps issued or waited, by counter.
    pub stalls: BTreeMap<String, u64>,
    /// Cycles of warps, and of SMs that had some of them.
    pub warp_cycles: u64,
    pub sm_cycles: u64,
}

/// By run: what is known of each kernel that was timed.
pub fn by_kernel(runs: &[RunInput]) -> Vec<BTreeMap<String, KernelShare>> {
    runs.iter().map(of_run).collect()
}

fn of_run(run: &RunInput) -> BTreeMap<String, KernelShare> {
    let mut kernels: BTreeMap<String, KernelShare> = BTreeMap::new();
    for launch in run.document().kernels.iter().filter(|launch| launch.is_timed()) {
        // Documents of older versions have none of these.
        let Some(warp_cycles) = launch.counter("warp_cycles_active") else { continue };
        let share = kernels.entry(launch.name.clone()).or_default();
        share.warp_cycles += warp_cycles;
        share.sm_cycles += launch.counter("cycles_active").unwrap_or(0);
        for definition in KernelCounters::DEFINITIONS.iter().filter(|definition| definition.name.starts_with(STALL)) {
            match launch.counter(definition.name) {
                Some(cycles) if cycles > 0 => *share.stalls.entry(definition.name.to_owned()).or_default() += cycles,
                _ => {}
            }
        }
    }
    kernels
}
