//! The counters of an SM beyond its kernels' own counters.

use balar_isa::program::Pipe;
use serde::{Deserialize, Serialize};

balar_protocol::counters! {
    /// An SM's cycles, and where its warps spent theirs.
    pub struct SmCounters {
        /// cycles with at least one warp resident
        cycles_active: "cycle",
        /// warp-cycles: resident warps summed over cycles
        warp_cycles_active: "warp-cycle",
        /// warp instructions issued by the schedulers
        inst_issued: "instruction",
        /// CTAs completed
        ctas_completed: "CTA",
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
        /// lines of code that were not in the sub-core's own instruction cache when a warp came to them
        l0_instruction_misses: "line",
        /// lines of code that were not in the SM's instruction cache when a warp came to them
        instruction_cache_misses: "line",
        /// lines of code requested from L2, prefetched ones included
        instruction_requests: "request",
        /// lines of constants that were not in the constant cache
        constant_cache_misses: "line",
        /// lines of constants requested from L2
        constant_requests: "request",
        /// lines requested from L2 by loads
        l1_requests_load: "request",
        /// lines sent to L2 by stores
        l1_requests_store: "request",
        /// sectors of loads that joined a request already under way; they are hits, as hardware counts them
        l1_mshr_merges: "sector",
        /// lines replaced in L1
        l1_evictions: "line",
        /// first-level TLB lookups
        tlb_lookups: "lookup",
        /// first-level TLB misses
        tlb_misses: "lookup",
        /// second-level TLB misses, sent to the GMMU
        tlb_second_level_misses: "lookup",
        /// entries that others replaced, in both levels of the TLB
        tlb_evictions: "entry",
        /// entries dropped because their pages moved, in both levels of the TLB
        tlb_entries_invalidated: "entry",
        /// shootdowns: times that the GMMU had entries dropped
        tlb_shootdowns: "shootdown",
        /// pages that the GMMU said were not resident
        tlb_faults: "fault",
        /// cycles between L1-miss requests and their responses, summed
        l2_round_trip_cycles: "cycle",
        /// cycles requests waited for a place in the crossbar, summed
        request_stall_cycles: "cycle",
        /// most requests that waited for a place in the crossbar
        request_queue_maximum: "request" maximum,
    }
}

/// Why a warp does not issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Stall {
    /// Fixed-latency result.
    Wait,
    /// Global or local memory.
    LongScoreboard,
    /// Shared memory or exchange.
    ShortScoreboard,
    /// CTA barrier.
    Barrier,
    /// Fence.
    Membar,
    /// Arithmetic pipe taken.
    MathPipeThrottle,
    /// Memory pipe full.
    LgThrottle,
    /// Branch.
    BranchResolve,
    /// Outstanding stores at the end.
    Drain,
    /// `nanosleep`.
    Sleeping,
    /// CTA start, or code that is not there.
    NoInstruction,
    /// A constant operand that is not there.
    ImcMiss,
}

impl Stall {
    /// The stall of a warp that waits for a pipe, by its place among [`Pipe::ALL`].
    #[inline]
    pub fn of_pipe(pipe: usize) -> Stall {
        if Pipe::ALL[pipe % Pipe::ALL.len()].is_memory() { Stall::LgThrottle } else { Stall::MathPipeThrottle }
    }

    /// Charges `cycles` warp-cycles to this reason.
    #[inline]
    pub fn charge(self, counters: &mut SmCounters, cycles: u64) {
        *self.counter(counters) += cycles;
    }

    /// Takes back `cycles` warp-cycles that were charged ahead of time.
    pub fn refund(self, counters: &mut SmCounters, cycles: u64) {
        *self.counter(counters) -= cycles;
    }

    #[inline]
    fn counter(self, counters: &mut SmCounters) -> &mut u64 {
        match self {
            Stall::Wait => &mut counters.stall_wait,
            Stall::LongScoreboard => &mut counters.stall_long_scoreboard,
            Stall::ShortScoreboard => &mut counters.stall_short_scoreboard,
            Stall::Barrier => &mut counters.stall_barrier,
            Stall::Membar => &mut counters.stall_membar,
            Stall::MathPipeThrottle => &mut counters.stall_math_pipe_throttle,
            Stall::LgThrottle => &mut counters.stall_lg_throttle,
            Stall::BranchResolve => &mut counters.stall_branch_resolve,
            Stall::Drain => &mut counters.stall_drain,
            Stall::Sleeping => &mut counters.stall_sleeping,
            Stall::NoInstruction => &mut counters.stall_no_instruction,
            Stall::ImcMiss => &mut counters.stall_imc_miss,
        }
    }
}
