//! Values of device memory: one flat arena a GPU, written only between windows.
//!
//! **Invariant:** during a window the arena is only read. What units write goes to their [`WriteLog`]s, which [`commit`] applies
//! between windows in the order (time, unit, sequence); so values do not depend on the number of threads.

mod heap;
mod print_queue;
mod write_log;

pub use write_log::{AtomicResult, WriteLog};
pub(crate) use write_log::{LoggedKind, read_lanes};

use balar_isa::texture::Image;
use balar_protocol::UnitId;
use heap::DeviceHeap;
use memmap2::{MmapMut, MmapOptions};
use print_queue::PrintQueue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// The values of one GPU's device memory, with the allocations that make its addresses legal.
#[derive(Debug)]
pub struct DeviceMemory {
    arena: RwLock<Arena>,
}

#[derive(Debug)]
pub(crate) struct Arena {
    bytes: MmapMut,
    /// (first address, first address after it), sorted, disjoint.
    allocations: Vec<(u64, u64)>,
    /// Scratch of [`commit`]: (time, unit, log, entry).
    order: Vec<(u64, u32, u32, u32)>,
    /// The heap of the loaded modules' kernels; `None` where none of them allocates.
    heap: Option<DeviceHeap>,
    /// Texture and surface objects by handle.
    images: BTreeMap<u64, Image>,
    /// Written between windows alone; the host takes what is there in a window of its own, hence the lock.
    printed: Mutex<PrintQueue>,
}

impl DeviceMemory {
    /// First device address an allocation can have.
    pub const BASE: u64 = 0x7000_0000_0000;

    /// A memory of `capacity` bytes, all zero. Host memory is taken only for pages that are written.
    pub fn new(capacity: u64) -> std::io::Result<DeviceMemory> {
        let length = usize::try_from(capacity).map_err(std::io::Error::other)?;
        let bytes = MmapOptions::new().len(length.max(1)).no_reserve_swap().map_anon()?;
        let printed = Mutex::new(PrintQueue::new(PrintQueue::DEFAULT_CAPACITY));
        let arena =
            Arena { bytes, allocations: Vec::new(), order: Vec::new(), heap: None, images: BTreeMap::new(), printed };
        Ok(DeviceMemory { arena: RwLock::new(arena) })
    }

    /// The state at the start of the window, for as long as the view is held. Taken once per unit and window.
    pub fn view(&self) -> DeviceMemoryView<'_> {
        DeviceMemoryView(self.arena.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Copies `destination.len()` bytes from device address `address`; false where that is not inside one allocation.
    #[must_use]
    pub fn read(&self, address: u64, destination: &mut [u8]) -> bool {
        let view = self.view();
        let legal = view.allocation_of(address).is_some_and(|(_, end)| end - address >= destination.len() as u64);
        if legal {
            destination.copy_from_slice(view.bytes(address, destination.len()));
        }
        legal
    }

    /// Bytes of the device heap: the default of `cudaLimitMallocHeapSize` (CUDA C++ Programming Guide, "Heap Memory
    /// Allocation": 8 MB).
    pub const DEFAULT_HEAP_BYTES: u64 = 8 << 20;

    /// Lets kernels allocate from this range. All of it is legal to access, live block or not, as on the GPU.
    pub fn set_heap(&self, start: u64, bytes: u64) {
        let mut arena = self.arena.write().unwrap_or_else(PoisonError::into_inner);
        arena.map(start, bytes);
        arena.heap = Some(DeviceHeap::new(start, bytes));
    }

    /// Can kernels allocate?
    pub fn has_heap(&self) -> bool {
        self.view().0.heap.is_some()
    }

    /// Takes what kernels have printed up to the start of the window. One unit alone may do so: the host.
    pub fn take_printed(&self) -> Vec<u8> {
        self.view().0.printed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Applies a log at once, outside any window: for tests and for loading programs before the run.
    pub fn apply(&self, log: &mut WriteLog) {
        let mut arena = self.arena.write().unwrap_or_else(PoisonError::into_inner);
        for entry in 0..log.len() {
            log.apply(entry, &mut arena);
        }
    }
}

/// A read lock on a device memory.
pub struct DeviceMemoryView<'a>(RwLockReadGuard<'a, Arena>);

impl DeviceMemoryView<'_> {
    /// The allocation that holds `address`, as (first address, first address after it).
    pub fn allocation_of(&self, address: u64) -> Option<(u64, u64)> {
        let allocations = &self.0.allocations;
        let next = allocations.partition_point(|&(start, _)| start <= address);
        let allocation = allocations.get(next.checked_sub(1)?)?;
        (address < allocation.1).then_some(*allocation)
    }

    /// The texture or surface object with this handle.
    pub fn image(&self, handle: u64) -> Option<Image> {
        self.0.images.get(&handle).copied()
    }

    /// `length` bytes from `address` on, which must lie inside an allocation.
    #[inline]
    pub fn bytes(&self, address: u64, length: usize) -> &[u8] {
        let offset = (address - DeviceMemory::BASE) as usize;
        &self.0.bytes[offset..offset + length]
    }
}

impl Arena {
    fn bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let offset = usize::try_from(address.checked_sub(DeviceMemory::BASE)?).ok()?;
        self.bytes.get_mut(offset..offset.checked_add(length)?)
    }

    fn map(&mut self, address: u64, bytes: u64) {
        let at = self.allocations.partition_point(|&(start, _)| start < address);
        self.allocations.insert(at, (address, address + bytes));
    }

    fn unmap(&mut self, address: u64) {
        self.allocations.retain(|&(start, _)| start != address);
    }

    fn allocate(&mut self, bytes: u64) -> u64 {
        self.heap.as_mut().map_or(0, |heap| heap.allocate(bytes))
    }

    fn release(&mut self, address: u64) -> bool {
        self.heap.as_mut().is_some_and(|heap| heap.release(address))
    }

    fn set_image(&mut self, handle: u64, image: Option<Image>) {
        match image {
            Some(image) => self.images.insert(handle, image),
            None => self.images.remove(&handle),
        };
    }

    fn print(&mut self, record: &[u8]) {
        self.printed.get_mut().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    fn copy_within(&mut self, destination: u64, source: u64, bytes: u64) {
        let (Some(to), Some(from)) =
            (destination.checked_sub(DeviceMemory::BASE), source.checked_sub(DeviceMemory::BASE))
        else {
            return;
        };
        let length = self.bytes.len() as u64;
        if to.saturating_add(bytes) <= length && from.saturating_add(bytes) <= length {
            self.bytes.copy_within(from as usize..(from + bytes) as usize, to as usize);
        }
    }
}

/// Applies the logs of a window, in the order (time, unit, sequence), each to the memory of its unit's GPU (the first field),
/// and leaves the old values of atomics in the logs.
pub fn commit(memories: &[Arc<DeviceMemory>], logs: &mut [(usize, UnitId, WriteLog)]) {
    for (index, memory) in memories.iter().enumerate() {
        let mut of_memory = logs.iter().filter(|(memory, _, log)| *memory == index && !log.is_empty());
        let Some(_) = of_memory.next() else { continue };
        let single = of_memory.next().is_none();
        let mut arena = memory.arena.write().unwrap_or_else(PoisonError::into_inner);
        if single {
            // The common case: one unit has written, and its log is in order already.
            let (_, _, log) = logs
                .iter_mut()
                .find(|(memory, _, log)| *memory == index && !log.is_empty())
                .expect("one log was found above");
            for entry in 0..log.len() {
                log.apply(entry, &mut arena);
            }
            continue;
        }
        let mut order = std::mem::take(&mut arena.order);
        order.clear();
        for (at, (memory, unit, log)) in logs.iter().enumerate() {
            if *memory == index {
                order.extend((0..log.len()).map(|entry| (log.time(entry).0, unit.0, at as u32, entry as u32)));
            }
        }
        order.sort_unstable();
        for &(_, _, log, entry) in &order {
            logs[log as usize].2.apply(entry as usize, &mut arena);
        }
        arena.order = order;
    }
}

#[cfg(test)]
mod tests;
