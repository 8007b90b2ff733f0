//! Device memory as the CUDA driver hands it out.
//!
//! Allocations are aligned to 256 bytes. Allocations below 2 MiB share segments of 2 MiB, and larger ones take whole segments, as CUDA's
//! do: so the addresses of a program, and with them its cache sets and pages, lie as on hardware. The smallest free range that holds a
//! request is taken; freed ranges join their neighbours. Processes share the memory, but no segment of it: the memory that a process may
//! access ends at whole pages.
//!
//! **Invariant:** segments without an owner are zero, as the segments of a GPU that was never used. Freeing the last allocation of a
//! segment says that it must be cleared. No process finds the bytes of another one.

use balar_protocol::ProcessId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Alignment of allocations, bytes (CUDA C++ Programming Guide: at least 256).
const ALIGNMENT: u64 = 256;
/// Alignment of pinned and managed memory, bytes: a program maps whole pages of it.
const PAGE: u64 = 4096;
/// Bytes of a segment.
const SEGMENT: u64 = 2 << 20;

/// Device memory is exhausted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of device memory: {requested} bytes requested, {free} of {capacity} bytes free, the largest free range has {largest}"
)]
pub(crate) struct OutOfMemory {
    pub requested: u64,
    pub free: u64,
    pub capacity: u64,
    pub largest: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Allocation {
    /// Bytes as asked for.
    requested: u64,
    /// Bytes taken.
    reserved: u64,
    /// Whose it is.
    process: ProcessId,
    /// Whether programs know it by this address.
    is_addressed: bool,
}

/// Free ranges by first address.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FreeRanges(BTreeMap<u64, u64>);

impl FreeRanges {
    /// Cuts `bytes` from the smallest range that has them; the lowest among equals.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let fitting = self.0.iter().filter(|(_, length)| **length >= bytes);
        let (start, length) = fitting.min_by_key(|(_, length)| **length).map(|(start, length)| (*start, *length))?;
        self.0.remove(&start);
        if length > bytes {
            self.0.insert(start + bytes, length - bytes);
        }
        Some(start)
    }

    /// Gives a range back and joins it with its neighbours, but not across multiples of `boundary` where one is given.
    /// Returns the joined range.
    fn give(&mut self, mut start: u64, mut length: u64, boundary: Option<u64>) -> (u64, u64) {
        let joins = |at: u64| boundary.is_none_or(|boundary| !at.is_multiple_of(boundary));
        let before = self.0.range(..start).next_back().map(|(start, length)| (*start, *length));
        if let Some((before, bytes)) = before.filter(|(before, bytes)| before + bytes == start && joins(start)) {
            self.0.remove(&before);
            start = before;
            length += bytes;
        }
        let end = start + length;
        if let Some(bytes) = self.0.get(&end).copied().filter(|_| joins(end)) {
            self.0.remove(&end);
            length += bytes;
        }
        self.0.insert(start, length);
        (start, length)
    }
}

/// The allocations of one GPU.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceAllocator {
    base: u64,
    capacity: u64,
    alignment: u64,
    reserved: u64,
    /// Whole segments.
    segments: FreeRanges,
    /// The free ranges within segments that a process's small allocations share, by process.
    small: BTreeMap<ProcessId, FreeRanges>,
    allocations: BTreeMap<u64, Allocation>,
}

impl DeviceAllocator {
    /// Nothing is allocated of `capacity` bytes from `base`, a multiple of the segment size, on.
    pub fn new(base: u64, capacity: u64) -> DeviceAllocator {
        DeviceAllocator::aligned(base, capacity, ALIGNMENT)
    }

    /// As [`DeviceAllocator::new`]; allocations are whole pages.
    pub fn of_pages(base: u64, capacity: u64) -> DeviceAllocator {
        DeviceAllocator::aligned(base, capacity, PAGE)
    }

    fn aligned(base: u64, capacity: u64, alignment: u64) -> DeviceAllocator {
        let mut segments = FreeRanges::default();
        let usable = capacity - capacity % SEGMENT;
        if usable > 0 {
            segments.give(base, usable, None);
        }
        DeviceAllocator {
            base,
            capacity,
            alignment,
            reserved: 0,
            segments,
            small: BTreeMap::new(),
            allocations: BTreeMap::new(),
        }
    }

    /// Allocates `bytes`, which is not zero, for a process.
    pub fn allocate(&mut self, process: ProcessId, bytes: u64) -> Result<u64, OutOfMemory> {
        self.take(process, bytes, true)
    }

    /// Takes `bytes`, which is not zero, that are no allocation of a program at the address where they lie.
    pub fn set_aside(&mut self, process: ProcessId, bytes: u64) -> Result<u64, OutOfMemory> {
        self.take(process, bytes, false)
    }

    fn take(&mut self, process: ProcessId, bytes: u64, is_addressed: bool) -> Result<u64, OutOfMemory> {
        let unit = if bytes < SEGMENT { self.alignment } else { SEGMENT };
        let Some(reserved) = bytes.checked_next_multiple_of(unit) else { return Err(self.exhausted(bytes)) };
        let address = if bytes >= SEGMENT {
            self.segments.take(reserved)
        } else {
            let small = self.small.entry(process).or_default();
            small.take(reserved).or_else(|| {
                let segment = self.segments.take(SEGMENT)?;
                small.give(segment, SEGMENT, Some(SEGMENT));
                small.take(reserved)
            })
        };
        let Some(address) = address else { return Err(self.exhausted(bytes)) };
        self.reserved += reserved;
        self.allocations.insert(address, Allocation { requested: bytes, reserved, process, is_addressed });
        Ok(address)
    }

    /// Frees the allocation that begins at `address`: the whole segments that nobody has any more, none or some, which the caller makes
    /// zero. `None` where no allocation begins there.
    #[must_use]
    pub fn free(&mut self, address: u64) -> Option<Range<u64>> {
        let allocation = self.allocations.remove(&address)?;
        self.reserved -= allocation.reserved;
        if allocation.requested >= SEGMENT {
            self.segments.give(address, allocation.reserved, None);
            return Some(address..address + allocation.reserved);
        }
        let small = self.small.entry(allocation.process).or_default();
        let (start, length) = small.give(address, allocation.reserved, Some(SEGMENT));
        if length < SEGMENT {
            return Some(address..address);
        }
        small.0.remove(&start);
        self.segments.give(start, length, None);
        Some(start..start + length)
    }

    /// Whose allocation begins at `address`.
    pub fn owner(&self, address: u64) -> Option<ProcessId> {
        self.allocations.get(&address).filter(|allocation| allocation.is_addressed).map(|allocation| allocation.process)
    }

    /// The allocation that holds `address`: where it begins, its bytes, and whose it is.
    pub fn allocation_of(&self, address: u64) -> Option<(u64, u64, ProcessId)> {
        let (start, allocation) = self.allocations.range(..=address).next_back()?;
        let is_in = allocation.is_addressed && address - start < allocation.requested;
        is_in.then_some((*start, allocation.requested, allocation.process))
    }

    /// Where all allocations of a process begin.
    pub fn starts(&self, process: ProcessId) -> impl Iterator<Item = u64> + '_ {
        self.allocations.iter().filter(move |(_, allocation)| allocation.process == process).map(|(start, _)| *start)
    }

    /// The process is gone, and its memory was freed.
    pub fn forget(&mut self, process: ProcessId) {
        self.small.remove(&process);
    }

    /// Bytes of the memory.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The first address after the range that allocations are taken from.
    pub fn end(&self) -> u64 {
        self.base + self.capacity
    }

    /// Bytes taken by allocations.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The allocation that the whole range is inside of: where it begins, and whose it is.
    pub fn holder(&self, address: u64, bytes: u64) -> Option<(u64, ProcessId)> {
        let (start, allocation) = self.allocations.range(..=address).next_back()?;
        let offset = address - start;
        let holds = allocation.is_addressed && offset <= allocation.requested && allocation.requested - offset >= bytes;
        holds.then_some((*start, allocation.process))
    }

    fn exhausted(&self, requested: u64) -> OutOfMemory {
        let ranges = self.segments.0.values().chain(self.small.values().flat_map(|small| small.0.values()));
        let largest = ranges.copied().max().unwrap_or(0);
        OutOfMemory { requested, free: self.capacity - self.reserved, capacity: self.capacity, largest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7000_0000_0000;
    const P: ProcessId = ProcessId(0);

    #[test]
    fn small_allocations_share_a_segment() {
        let mut allocator = DeviceAllocator::new(BASE, 16 << 20);
        assert_eq!(allocator.allocate(P, 1), Ok(BASE));
        assert_eq!(allocator.allocate(P, 257), Ok(BASE + 256));
        assert_eq!(allocator.allocate(P, 655_360), Ok(BASE + 768));
        assert_eq!(allocator.allocate(P, 3 << 20), Ok(BASE + SEGMENT), "two segments of its own");
        assert_eq!(allocator.allocate(P, (2 << 20) - 1), Ok(BASE + 3 * SEGMENT), "does not fit the shared segment");
        let holder = |address, bytes| allocator.holder(address, bytes);
        assert_eq!((holder(BASE + 256, 257), holder(BASE + 256, 258)), (Some((BASE + 256, P)), None));
        assert_eq!((holder(BASE + 256 + 300, 1), holder(BASE - 1, 1)), (None, None));
    }

    #[test]
    fn freed_ranges_join_and_the_smallest_that_fits_is_taken() {
        let mut allocator = DeviceAllocator::new(BASE, 16 << 20);
        let at: Vec<u64> =
            [1024, 256, 512, 256].iter().map(|&bytes| allocator.allocate(P, bytes).expect("fits")).collect();
        assert!(allocator.free(at[0]).is_some() && allocator.free(at[2]).is_some());
        assert_eq!(allocator.allocate(P, 500), Ok(at[2]), "best fit, not first fit");
        assert!(allocator.free(at[2]).is_some() && allocator.free(at[1]).is_some() && allocator.free(at[1]).is_none());
        assert_eq!(allocator.allocate(P, 1024 + 256 + 512), Ok(at[0]), "three neighbours have joined");
        assert_eq!(allocator.free(at[0]), Some(at[0]..at[0]), "others are in its segment");
        assert_eq!(allocator.free(at[3]), Some(BASE..BASE + SEGMENT), "the last one of the segment");
        assert_eq!(allocator.reserved, 0);
        assert_eq!(allocator.allocate(P, 16 << 20), Ok(BASE), "empty segments go back");
    }

    #[test]
    fn what_is_set_aside_takes_room_and_is_no_allocation() {
        let mut allocator = DeviceAllocator::new(BASE, 4 << 20);
        assert_eq!(allocator.set_aside(P, 2 << 20), Ok(BASE));
        assert_eq!((allocator.owner(BASE), allocator.holder(BASE, 1)), (None, None));
        assert_eq!(allocator.allocation_of(BASE), None);
        assert_eq!((allocator.reserved(), allocator.allocate(P, 3 << 20).is_err()), (2 << 20, true));
        assert_eq!(allocator.free(BASE), Some(BASE..BASE + SEGMENT));
        assert!(allocator.allocate(P, 3 << 20).is_ok());
    }

    #[test]
    fn processes_share_the_memory_and_no_segment() {
        let mut allocator = DeviceAllocator::new(BASE, 6 << 20);
        let other = ProcessId(1);
        assert_eq!(
            [P, other, P, other].map(|process| allocator.allocate(process, 256)),
            [0, SEGMENT, 256, SEGMENT + 256].map(|at| Ok(BASE + at))
        );
        assert_eq!(allocator.starts(other).collect::<Vec<_>>(), [BASE + SEGMENT, BASE + SEGMENT + 256]);
        assert_eq!(allocator.owner(BASE + SEGMENT), Some(other));
        assert_eq!(allocator.allocate(ProcessId(2), 1), Ok(BASE + 2 * SEGMENT));
        assert!(allocator.allocate(ProcessId(3), 1).is_err(), "what is left of others' segments is not for it");
        assert!(allocator.free(BASE + SEGMENT).is_some() && allocator.free(BASE + SEGMENT + 256).is_some());
        allocator.forget(other);
        assert_eq!(allocator.allocate(ProcessId(3), SEGMENT), Ok(BASE + SEGMENT), "an empty segment is for all");
    }

    #[test]
    fn exhaustion_tells_the_sizes() {
        let mut allocator = DeviceAllocator::new(BASE, 4 << 20);
        assert_eq!(allocator.allocate(P, 4096), Ok(BASE));
        let error = allocator.allocate(P, 3 << 20).expect_err("one segment is left");
        assert_eq!(
            error.to_string(),
            "out of device memory: 3145728 bytes requested, 4190208 of 4194304 bytes free, the largest free range has 2097152"
        );
        assert!(allocator.allocate(P, u64::MAX).is_err());
        assert!(DeviceAllocator::new(BASE, 0).allocate(P, 1).is_err());
    }
}
