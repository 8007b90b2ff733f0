//! Which counters of units are known of each launch, too.

use super::place::Place;
use balar_protocol::statistics::KernelCounters;

/// Numbers of a launch beside its counters.
const LAUNCH_NUMBERS: &[&str] = &[
    "duration_ps",
    "cycles",
    "sm_cycles",
    "grid_size",
    "block_size",
    "threads",
    "registers_per_thread",
    "shared_bytes",
    "occupancy_limit_registers",
    "occupancy_limit_shared_memory",
    "occupancy_limit_warps",
    "occupancy_limit_ctas",
    "occupancy_ctas",
    "occupancy_warps",
];

/// Is this counter of units at a place known of each launch?
pub(super) fn is_of_launches(place: Place, counter: &str) -> bool {
    LAUNCH_NUMBERS.contains(&counter) || place_of_counter(place, counter).is_some()
}

/// The name of a counter of units at a place among the counters of a launch: the name of the place stands in front there.
pub fn place_of_counter(place: Place, counter: &str) -> Option<usize> {
    let unit = match place {
        Place::L2 => "l2_",
        Place::Crossbar => "crossbar_",
        Place::Dram => "dram_",
        _ => "",
    };
    KernelCounters::DEFINITIONS.iter().position(|definition| definition.name.strip_prefix(unit) == Some(counter))
}
