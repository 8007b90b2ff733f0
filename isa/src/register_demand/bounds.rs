//! The most registers that a kernel's directives leave it.

use crate::ptx::ast::PerformanceDirectives;

/// Registers of an SM (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 64 Ki from 5.0 on).
const SM_REGISTERS: u32 = 64 << 10;
/// Threads of an SM at most; more than that can be resident on no GPU (the same table).
const SM_THREADS: u32 = 2048;
/// Registers are given to warps in units of this many (CUDA occupancy calculator).
const WARP_UNIT: u32 = 256;
/// Warps are spread over this many sub-cores. Each sub-core has its part of the registers.
const SUB_CORES: u32 = 4;
const WARP_LANES: u32 = 32;
/// An instruction can name 255.
const MOST_REGISTERS: u32 = 255;
/// The assembler takes no smaller limit (ptxas 12.9: "adjusting per thread register count to lower bound of 24").
const LEAST_LIMIT: u32 = 24;

/// The bound of `.maxnreg`, and of the CTAs that `.maxntid` or `.reqntid` and `.minnctapersm` want resident. `.maxnreg` takes the
/// place of the bound that the size of one CTA implies. As ptxas does, `.minnctapersm` is ignored without a size, or where that
/// many threads fit on no SM.
pub(super) fn most_registers(directives: &PerformanceDirectives) -> u32 {
    let mut most = MOST_REGISTERS;
    if let Some(limit) = directives.maximum_registers {
        most = most.min(limit.max(LEAST_LIMIT));
    }
    let sizes = directives.required_threads.or(directives.maximum_threads);
    let threads = sizes.map(|sizes| sizes.iter().fold(1u32, |product, size| product.saturating_mul((*size).max(1))));
    if let Some(threads) = threads {
        let fits = |ctas: &u32| *ctas > 0 && threads.saturating_mul(*ctas) <= SM_THREADS;
        let ctas = directives.minimum_ctas_per_sm.filter(fits);
        if ctas.is_some() || directives.maximum_registers.is_none() {
            let warps =
                (threads.div_ceil(WARP_LANES)).saturating_mul(ctas.unwrap_or(1)).checked_next_multiple_of(SUB_CORES);
            let of_a_warp = SM_REGISTERS / warps.unwrap_or(u32::MAX) / WARP_UNIT * WARP_UNIT;
            // Larger blocks than any GPU takes are for the launch to refuse.
            most = most.min((of_a_warp / WARP_LANES).max(LEAST_LIMIT));
        }
    }
    most
}
