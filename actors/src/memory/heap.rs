//! The heap of device memory from which kernels allocate.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks of the device heap. The smallest free range that is large enough is taken, the one with the lowest address among equals;
/// so the same calls in the same order always get the same addresses.
#[derive(Debug)]
pub(crate) struct DeviceHeap {
    /// Where its range begins.
    start: u64,
    /// Free ranges: first address, bytes. No two touch.
    free: BTreeMap<u64, u64>,
    /// The same ranges as (bytes, first address).
    by_size: BTreeSet<(u64, u64)>,
    /// Live blocks: first address, bytes.
    live: BTreeMap<u64, u64>,
}

/// Alignment of a block (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation": 16 bytes).
const ALIGNMENT: u64 = 16;

impl DeviceHeap {
    /// An empty heap of `bytes` from `start` on.
    pub fn new(start: u64, bytes: u64) -> DeviceHeap {
        let first = start.next_multiple_of(ALIGNMENT);
        let bytes = (start + bytes).saturating_sub(first) & !(ALIGNMENT - 1);
        let mut heap = DeviceHeap { start, free: BTreeMap::new(), by_size: BTreeSet::new(), live: BTreeMap::new() };
        if bytes > 0 {
            heap.add_free(first, bytes);
        }
        heap
    }

    /// How many blocks are live.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Where its range begins.
    pub fn start(&self) -> u64 {
        self.start
    }

    fn add_free(&mut self, address: u64, bytes: u64) {
        self.free.insert(address, bytes);
        self.by_size.insert((bytes, address));
    }

    fn remove_free(&mut self, address: u64) -> Option<u64> {
        let bytes = self.free.remove(&address)?;
        self.by_size.remove(&(bytes, address));
        Some(bytes)
    }

    /// The address of a new block; 0 where `bytes` is 0 or no free range is large enough.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let Some(bytes) = bytes.checked_next_multiple_of(ALIGNMENT).filter(|&bytes| bytes > 0) else { return 0 };
        let Some(&(length, address)) = self.by_size.range((bytes, 0)..).next() else { return 0 };
        self.remove_free(address);
        if length > bytes {
            self.add_free(address + bytes, length - bytes);
        }
        self.live.insert(address, bytes);
        address
    }

    /// Ends a block. False where none begins at `address`.
    #[must_use]
    pub fn release(&mut self, address: u64) -> bool {
        let Some(mut bytes) = self.live.remove(&address) else { return false };
        let mut first = address;
        if let Some(after) = self.remove_free(address + bytes) {
            bytes += after;
        }
        if let Some((&before, &length)) = self.free.range(..address).next_back()
            && before + length == address
        {
            self.remove_free(before);
            first = before;
            bytes += length;
        }
        self.add_free(first, bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_range_that_fits_is_taken() {
        let mut heap = DeviceHeap::new(0x1000, 256);
        let blocks = [32, 16, 64, 1].map(|bytes| heap.allocate(bytes));
        assert_eq!(blocks, [0x1000, 0x1020, 0x1030, 0x1070]);
        assert!(heap.release(blocks[0]) && heap.release(blocks[2]));
        // 32 bytes free at 0x1000, 64 at 0x1030, 128 at 0x1080.
        assert_eq!([48, 20, 100, 100].map(|bytes| heap.allocate(bytes)), [0x1030, 0x1000, 0x1080, 0]);
    }

    #[test]
    fn neighbours_are_joined() {
        let mut heap = DeviceHeap::new(0x1000, 64);
        let blocks = [16; 4].map(|bytes| heap.allocate(bytes));
        assert_eq!(heap.allocate(1), 0);
        for at in [0, 2, 1, 3] {
            assert!(heap.release(blocks[at]));
        }
        assert_eq!(heap.allocate(64), 0x1000);
    }

    #[test]
    fn only_live_blocks_can_be_released() {
        let mut heap = DeviceHeap::new(0x1008, 64);
        let block = heap.allocate(40);
        assert_eq!((block, heap.allocate(16), heap.allocate(0), heap.allocate(u64::MAX)), (0x1010, 0, 0, 0));
        assert!(!heap.release(block + 16) && heap.release(block) && !heap.release(block));
    }
}
