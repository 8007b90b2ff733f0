//! The memory in which kernels put the parameters of their launches, behind a header with the rest.

use super::heap::DeviceHeap;
use balar_protocol::device_launch::BYTES_A_LAUNCH;
use serde::{Deserialize, Serialize};

/// Bytes of the header of a buffer: the kernel's address, its grid and its block with the dynamic shared memory. A buffer that was asked
/// for by its size has none of these. The parameters begin at a multiple of this.
pub(crate) const HEADER_BYTES: u64 = 64;

/// The launch in the header of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchHeader {
    /// The address of the kernel.
    pub kernel: u64,
    /// The grid, packed as the device runtime does.
    pub grid: u64,
    /// The block and the dynamic shared memory, packed as the device runtime does.
    pub block: u64,
}

/// A grid in 64 bits: 31 of x, 16 each of y and z, which grids that are legal do not exceed.
pub(crate) fn pack_grid([x, y, z]: [u32; 3]) -> u64 {
    u64::from(x) << 32 | u64::from(y & 0xffff) << 16 | u64::from(z & 0xffff)
}

/// Reads a grid that [`pack_grid`] has packed.
pub(crate) fn unpack_grid(packed: u64) -> [u32; 3] {
    [(packed >> 32) as u32, (packed >> 16) as u32 & 0xffff, packed as u32 & 0xffff]
}

/// A block and its dynamic shared memory in 64 bits: 11 each of x and y, 10 of z, which blocks that are legal do not exceed.
pub(crate) fn pack_block([x, y, z]: [u32; 3], shared_bytes: u32) -> u64 {
    u64::from(x & 0x7ff) << 53 | u64::from(y & 0x7ff) << 42 | u64::from(z & 0x3ff) << 32 | u64::from(shared_bytes)
}

/// Reads a block that [`pack_block`] has packed.
pub(crate) fn unpack_block(packed: u64) -> ([u32; 3], u32) {
    ([(packed >> 53) as u32, (packed >> 42) as u32 & 0x7ff, (packed >> 32) as u32 & 0x3ff], packed as u32)
}

/// The buffers of a context. So many launches may wait as `cudaLimitDevRuntimePendingLaunchCount` says.
#[derive(Debug)]
pub(crate) struct LaunchPool {
    heap: DeviceHeap,
    /// How many buffers there can be at once.
    most: usize,
}

impl LaunchPool {
    /// An empty pool of `bytes` from `start` on.
    pub fn new(start: u64, bytes: u64) -> LaunchPool {
        LaunchPool { heap: DeviceHeap::new(start, bytes), most: (bytes / BYTES_A_LAUNCH) as usize }
    }

    /// The address of a buffer's header, with room for so many bytes behind it; `None` where as many launches wait as may.
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        if self.heap.live() >= self.most {
            return None;
        }
        let bytes = bytes.checked_next_multiple_of(HEADER_BYTES)?.checked_add(HEADER_BYTES)?;
        Some(self.heap.allocate(bytes)).filter(|address| *address != 0)
    }

    /// A buffer is needed no more, by the address behind its header.
    pub fn release(&mut self, buffer: u64) {
        let _was_there = self.heap.release(buffer.wrapping_sub(HEADER_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_launches_wait_as_may() {
        let mut pool = LaunchPool::new(0x1000, 2 * BYTES_A_LAUNCH);
        assert_eq!([8, 4096, 8].map(|bytes| pool.allocate(bytes)), [Some(0x1000), Some(0x1080), None]);
        pool.release(0x1040);
        assert_eq!(pool.allocate(60), Some(0x1000));
    }

    #[test]
    fn what_a_launch_is_to_be_is_kept() {
        let grid = [i32::MAX as u32, 65_535, 65_535];
        assert_eq!(unpack_grid(pack_grid(grid)), grid);
        for block in [[1024, 1, 1], [1, 1024, 1], [16, 1, 64]] {
            assert_eq!(unpack_block(pack_block(block, u32::MAX)), (block, u32::MAX));
        }
    }
}
