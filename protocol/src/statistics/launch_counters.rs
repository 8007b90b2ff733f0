//! What is counted of kernel launches.

use super::StatisticDefinition;
use crate::counters;
use serde::{Deserialize, Serialize};

counters! {
    /// What the CTAs of a kernel did, summed over its warps; an SM keeps the same counters over all kernels.
    pub struct CtaCounters {
        /// warps started
        warps_launched: "warp",
        /// CTAs started
        ctas_launched: "CTA",
        /// warp instructions executed
        inst_executed: "instruction",
        /// thread instructions executed, lanes inside the active mask
        thread_inst_executed: "instruction",
        /// thread instructions executed whose guard was true
        thread_inst_executed_pred_on: "instruction",
        /// integer thread instructions
        inst_integer: "instruction",
        /// single-precision additions by threads
        flop_sp_add: "operation",
        /// single-precision multiplications by threads
        flop_sp_mul: "operation",
        /// single-precision fused multiply-adds by threads (one each)
        flop_sp_fma: "operation",
        /// double-precision additions by threads
        flop_dp_add: "operation",
        /// double-precision multiplications by threads
        flop_dp_mul: "operation",
        /// double-precision fused multiply-adds by threads (one each)
        flop_dp_fma: "operation",
        /// half-precision operations by threads
        flop_hp: "operation",
        /// thread instructions that convert between types
        inst_bit_convert: "instruction",
        /// control-flow warp instructions
        inst_control: "instruction",
        /// branches whose active threads all went the same way
        branches_uniform: "instruction",
        /// branches whose active threads parted
        branches_divergent: "instruction",
        /// warp instructions that load from global memory
        inst_global_loads: "instruction",
        /// warp instructions that store to global memory
        inst_global_stores: "instruction",
        /// warp instructions that load from shared memory
        inst_shared_loads: "instruction",
        /// warp instructions that store to shared memory
        inst_shared_stores: "instruction",
        /// warp instructions that load from local memory
        inst_local_loads: "instruction",
        /// warp instructions that store to local memory
        inst_local_stores: "instruction",
        /// atomics that return a value
        inst_atomics: "instruction",
        /// atomics that return nothing
        inst_reductions: "instruction",
        /// barriers that warps arrived at
        inst_barriers: "instruction",
        /// shared-memory wavefronts of loads
        shared_wavefronts_load: "wavefront",
        /// shared-memory wavefronts of stores
        shared_wavefronts_store: "wavefront",
        /// shared-memory wavefronts beyond the least possible
        shared_memory_bank_conflicts: "wavefront",
        /// of these wavefronts beyond the least possible, those of loads
        shared_memory_bank_conflicts_load: "wavefront",
        /// sectors that global loads asked L1 for
        l1_sectors_load: "sector",
        /// sectors that global stores sent through L1
        l1_sectors_store: "sector",
        /// bytes that threads asked for in these loads
        l1_bytes_load: "byte",
        /// bytes that threads gave in these stores
        l1_bytes_store: "byte",
        /// sectors of loads that hit in L1, those on their way for another load included
        l1_sector_hits_load: "sector",
        /// sectors of loads that this SM asked the L2 for
        l2_sectors_load: "sector",
        /// sectors of loads that hit in L2, those on their way for another request included
        l2_sector_hits_load: "sector",
        /// of the sectors that the L2 fetched from device memory for loads, neighbours that were not asked for
        dram_sectors_promoted: "sector",
    }
}

counters! {
    /// What units count of a launch beside what its CTAs do: where the cycles of its warps go, and what its requests do in the L2, the
    /// crossbar and the memory of its GPU. The latter have the names that the units give them, after `l2_`, `crossbar_` and `dram_`. What a
    /// line costs when it is replaced is charged to the launch whose request takes its place.
    pub struct UnitCounters {
        /// cycles with at least one of its warps resident, summed over SMs
        cycles_active: "cycle",
        /// warp-cycles: its resident warps summed over cycles
        warp_cycles_active: "warp-cycle",
        /// warp instructions issued by the schedulers
        inst_issued: "instruction",
        /// warp-cycles in which the warp issued
        stall_none_selected: "warp-cycle",
        /// warp-cycles ready to issue while the scheduler chose another warp
        stall_not_selected: "warp-cycle",
        /// warp-cycles waiting for a fixed-latency result
        stall_wait: "warp-cycle",
        /// warp-cycles waiting for global or local memory
        stall_long_scoreboard: "warp-cycle",
        /// warp-cycles waiting for shared memory or an exchange between lanes
        stall_short_scoreboard: "warp-cycle",
        /// warp-cycles waiting at a CTA barrier
        stall_barrier: "warp-cycle",
        /// warp-cycles waiting at a memory fence
        stall_membar: "warp-cycle",
        /// warp-cycles waiting for an arithmetic pipe
        stall_math_pipe_throttle: "warp-cycle",
        /// warp-cycles waiting for room in the memory pipe
        stall_lg_throttle: "warp-cycle",
        /// warp-cycles waiting for a branch to resolve
        stall_branch_resolve: "warp-cycle",
        /// warp-cycles after the last instruction, waiting for outstanding stores
        stall_drain: "warp-cycle",
        /// warp-cycles asleep
        stall_sleeping: "warp-cycle",
        /// warp-cycles from a CTA's arrival to its first instruction, and waiting for code
        stall_no_instruction: "warp-cycle",
        /// warp-cycles waiting for a constant operand that was not in the constant cache
        stall_imc_miss: "warp-cycle",
        /// lines of code that were not in a sub-core's own instruction cache when a warp came to them
        l0_instruction_misses: "line",
        /// lines of code that were not in an SM's instruction cache when a warp came to them
        instruction_cache_misses: "line",
        /// lines of code requested from L2, prefetched ones included
        instruction_requests: "request",
        /// lines of constants that were not in a constant cache
        constant_cache_misses: "line",
        /// lines of constants requested from L2
        constant_requests: "request",
        /// requests that L2 slices took
        l2_requests: "request",
        /// sectors that loads asked the L2 for, those of code and constants included
        l2_sectors_read: "sector",
        /// sectors of these that were in the L2 or on their way there
        l2_sector_hits_read: "sector",
        /// sectors that stores wrote to the L2; each is a hit, as nothing is fetched for it
        l2_sectors_written: "sector",
        /// sectors that atomics and reductions touched in the L2, those of each group of 16 lanes by themselves
        l2_sectors_atomic: "sector",
        /// sectors of atomics and reductions that were in the L2 or on their way there
        l2_sector_hits_atomic: "sector",
        /// requests to the L2 that were atomics
        l2_atomics: "request",
        /// requests to the L2 that were reductions
        l2_reductions: "request",
        /// data bytes between the crossbar and the L2
        l2_bytes: "byte",
        /// cycles that data arrays of the L2 were busy
        l2_data_busy_cycles: "cycle",
        /// dirty sectors that left the L2 for device memory
        l2_sectors_written_back: "sector",
        /// packets from SMs to L2 slices
        crossbar_packets_request: "packet",
        /// packets from L2 slices to SMs
        crossbar_packets_response: "packet",
        /// flits from SMs to L2 slices
        crossbar_flits_request: "flit",
        /// flits from L2 slices to SMs
        crossbar_flits_response: "flit",
        /// sectors read from device memory
        dram_sectors_read: "sector",
        /// sectors written to device memory
        dram_sectors_written: "sector",
        /// time that data buses of device memory carried data
        dram_busy_time: "ps",
        /// requests to device memory that found their row open
        dram_row_hits: "request",
        /// requests to device memory whose bank had no row open
        dram_row_misses: "request",
        /// requests to device memory whose bank had another row open
        dram_row_conflicts: "request",
        /// requests to device memory that read
        dram_requests_read: "request",
        /// time from arrival of a load at device memory to its response, summed over loads
        dram_latency_read: "ps",
    }
}

/// What is counted of a launch: its CTAs' counters, then the units'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounters {
    /// What its CTAs did.
    pub ctas: CtaCounters,
    /// What units counted of its requests.
    pub units: UnitCounters,
}

const OF_CTAS: usize = CtaCounters::DEFINITIONS.len();
const OF_UNITS: usize = UnitCounters::DEFINITIONS.len();

impl KernelCounters {
    /// The counters in order.
    pub const DEFINITIONS: &'static [StatisticDefinition] = &{
        let mut all = [CtaCounters::DEFINITIONS[0]; OF_CTAS + OF_UNITS];
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < OF_CTAS { CtaCounters::DEFINITIONS[at] } else { UnitCounters::DEFINITIONS[at - OF_CTAS] };
            at += 1;
        }
        all
    };

    /// The values, in the order of the definitions.
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.ctas.values().chain(self.units.values())
    }

    /// The counters with these values, in the order of the definitions.
    pub fn of_values(values: impl IntoIterator<Item = u64>) -> KernelCounters {
        let mut values = values.into_iter();
        KernelCounters { ctas: CtaCounters::of_values(values.by_ref()), units: UnitCounters::of_values(values) }
    }

    /// Adds the other's counts to these.
    pub fn add(&mut self, other: &KernelCounters) {
        self.ctas.add(&other.ctas);
        self.units.add(&other.units);
    }

    /// Whether the counter of this name is absent from launches that are not timed: what instructions ask of caches and of the banks of shared
    /// memory is found only where these are simulated.
    pub fn needs_timing(name: &str) -> bool {
        Self::DEFINITIONS.iter().skip(Self::first_of_timing()).any(|definition| definition.name == name)
    }

    /// Where the counters begin that need timing.
    pub(super) fn first_of_timing() -> usize {
        Self::DEFINITIONS.iter().position(|definition| definition.name == "shared_wavefronts_load").unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_timing_is_known_of_every_launch() {
        let needs =
            ["l1_sectors_load", "shared_wavefronts_load", "shared_memory_bank_conflicts", "dram_sectors_promoted"];
        assert!(needs.into_iter().all(KernelCounters::needs_timing));
        let others = ["warps_launched", "inst_executed", "flop_sp_fma", "inst_global_loads", "inst_barriers"];
        assert!(!others.into_iter().any(KernelCounters::needs_timing));
    }
}
