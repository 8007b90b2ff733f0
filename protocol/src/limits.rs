//! What launches can ask for, on every GPU of compute capability 6.0 and later.

use crate::residency::L2Policy;
use crate::sm::{CtaNeeds, SmResources};

/// Threads of a block (CUDA C++ Programming Guide, all compute capabilities).
pub const MAXIMUM_BLOCK_THREADS: u64 = 1024;
/// Extent of a block in x, y, z (CUDA C++ Programming Guide).
pub const MAXIMUM_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Extent of a grid in x, y, z (CUDA C++ Programming Guide).
pub const MAXIMUM_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Registers of a block (CUDA C++ Programming Guide, 6.0, 7.0 and later).
pub const MAXIMUM_BLOCK_REGISTERS: u64 = 65_536;

/// Whether a grid and a block are of sizes that launches can have.
pub fn extents_are_legal(grid: [u32; 3], block: [u32; 3]) -> bool {
    let within = |extent: [u32; 3], maximum: [u32; 3]| {
        extent.into_iter().zip(maximum).all(|(extent, maximum)| (1..=maximum).contains(&extent))
    };
    let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
    within(grid, MAXIMUM_GRID) && within(block, MAXIMUM_BLOCK) && threads <= MAXIMUM_BLOCK_THREADS
}

/// Register files of an SM (CUDA occupancy calculator, "warp allocation granularity").
pub const fn register_files(compute_capability: (u32, u32)) -> u32 {
    match compute_capability {
        (6, 0) => 2,
        _ => 4,
    }
}

/// The units in which a block gets shared memory, bytes (CUDA occupancy calculator).
pub const fn shared_unit(compute_capability: (u32, u32)) -> u32 {
    if compute_capability.0 >= 8 { 128 } else { 256 }
}

/// Shared memory that the system takes of each block, bytes (CUDA C++ Programming Guide, "Shared Memory" of 8.x and 9.0).
pub const fn shared_reserved(compute_capability: (u32, u32)) -> u32 {
    if compute_capability.0 >= 8 { 1024 } else { 0 }
}

/// The most of the L2 that can be set aside for persisting lines, bytes (`persistingL2CacheMaxSize`): 30 of 40 MiB on an A100 40GB, as
/// NVIDIA's forum shows it ("What is the difference: cudaLimitPersistingL2CacheSize, ..."). Other GPUs are taken to have the same share,
/// 12 sixteenths.
pub const fn most_persisting_l2(compute_capability: (u32, u32), l2_bytes: u64) -> u64 {
    if compute_capability.0 >= 8 { l2_bytes / L2Policy::PARTS as u64 * 12 } else { 0 }
}

/// The largest window of an access policy, bytes (`accessPolicyMaxWindowSize`; 128 MiB less a page of 4 KiB on an A100, ibid.).
pub const fn most_access_policy_window(compute_capability: (u32, u32)) -> u64 {
    if compute_capability.0 >= 8 { (128 << 20) - (4 << 10) } else { 0 }
}

/// Registers that a block takes: whole warps, as many on each register file of an SM.
pub fn block_registers(registers_per_thread: u32, threads: u32, register_files: u32) -> u64 {
    CtaNeeds::of_threads(threads, registers_per_thread, 0).registers(register_files)
}

/// The threads of the largest block that the registers allow, in whole warps; `u32::MAX` where a thread has none.
pub fn block_threads(registers_per_thread: u32, register_files: u32) -> u32 {
    let sm = SmResources { registers: MAXIMUM_BLOCK_REGISTERS as u32, register_files, ..SmResources::default() };
    sm.by_registers(&CtaNeeds::of_threads(1, registers_per_thread, 0)).saturating_mul(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_have_limits() {
        assert!(extents_are_legal(MAXIMUM_GRID, [1024, 1, 1]) && extents_are_legal([1; 3], [16, 1, 64]));
        for (grid, block) in
            [([0, 1, 1], [1; 3]), ([1, 65_536, 1], [1; 3]), ([1; 3], [1, 1, 65]), ([1; 3], [32, 32, 2])]
        {
            assert!(!extents_are_legal(grid, block), "{grid:?} {block:?}");
        }
    }

    /// Of 88 registers a thread a file of 16,384 holds five warps, one of 32,768 eleven.
    #[test]
    fn the_largest_block_and_its_registers_agree() {
        assert_eq!((block_threads(88, 4), block_threads(88, 2), block_threads(0, 4)), (20 * 32, 22 * 32, u32::MAX));
        for registers in 1..=255 {
            for files in [2, 4] {
                let most = block_threads(registers, files);
                assert!(block_registers(registers, most, files) <= MAXIMUM_BLOCK_REGISTERS, "{registers} {files}");
                assert!(block_registers(registers, most + 1, files) > MAXIMUM_BLOCK_REGISTERS, "{registers} {files}");
            }
        }
    }
}
