//! What launches can ask for, on every GPU of compute capability 6.0 and later.

/// Threads of a block (CUDA C++ Programming Guide, all compute capabilities).
pub const MAXIMUM_BLOCK_THREADS: u64 = 1024;
/// Extent of a block in x, y, z (CUDA C++ Programming Guide).
pub const MAXIMUM_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Extent of a grid in x, y, z (CUDA C++ Programming Guide).
pub const MAXIMUM_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Registers of a block (CUDA C++ Programming Guide, 6.0, 7.0 and later).
pub const MAXIMUM_BLOCK_REGISTERS: u64 = 65_536;
/// Registers that are given to a warp at once, and the parts of an SM that have their own (CUDA occupancy calculator).
const REGISTER_UNIT: u64 = 256;
const SUB_CORES: u64 = 4;

/// Whether a grid and a block are of sizes that launches can have.
pub fn extents_are_legal(grid: [u32; 3], block: [u32; 3]) -> bool {
    let within = |extent: [u32; 3], maximum: [u32; 3]| {
        extent.into_iter().zip(maximum).all(|(extent, maximum)| (1..=maximum).contains(&extent))
    };
    let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
    within(grid, MAXIMUM_GRID) && within(block, MAXIMUM_BLOCK) && threads <= MAXIMUM_BLOCK_THREADS
}

/// Registers that a block takes: whole warps, in units, by sub-core.
pub fn block_registers(registers_per_thread: u32, threads: u32) -> u64 {
    let warp_registers = (u64::from(registers_per_thread) * 32).next_multiple_of(REGISTER_UNIT);
    warp_registers * u64::from(threads.div_ceil(32)).next_multiple_of(SUB_CORES)
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

    #[test]
    fn blocks_take_registers_by_whole_warps_of_each_sub_core() {
        // 21 warps of 88 registers a thread: 24 warps, 88 * 32 each.
        assert_eq!(block_registers(88, 672), 24 * 88 * 32);
        // 33 threads of 1 register: 4 warps of a unit.
        assert_eq!(block_registers(1, 33), 4 * 256);
    }
}
