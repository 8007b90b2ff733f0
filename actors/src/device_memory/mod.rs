//! Values of the node's memories: one flat arena for all GPUs and the host window, written only between windows.
//!
//! **Invariant:** during a window the arena is only read. What units write goes to their [`WriteLog`]s, which [`commit`] applies
//! between windows in the order (time, unit, sequence); so values do not depend on the number of threads.

mod allocations;
mod heap;
mod mapping;
mod print_queue;
mod reading;
mod write_log;

pub(crate) use reading::read_lanes;
pub(crate) use write_log::LoggedKind;
pub use write_log::{AtomicResult, WriteLog};

pub use allocations::Bounds;

use allocations::{Allocations, page_of};
use balar_host::memory::{self, Place};
use balar_isa::texture::Image;
use balar_protocol::UnitId;
use heap::DeviceHeap;
use mapping::Mapping;
use print_queue::PrintQueue;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// GPUs, one bit each.
pub type GpuSet = u8;

const MAXIMUM_GPUS: usize = memory::MAXIMUM_GPUS as usize;
const _: () = assert!(MAXIMUM_GPUS <= GpuSet::BITS as usize);

/// The values of the node's memories, with the allocations that make their addresses legal.
///
/// GPU g's memory begins at [`gpu_base`](memory::gpu_base), the host window at [`HOST_BASE`](memory::HOST_BASE).
#[derive(Debug)]
pub struct DeviceMemory {
    arena: RwLock<Arena>,
    /// What the host window is backed by.
    file: Option<Arc<OwnedFd>>,
    /// By GPU: addresses that programs can reserve.
    reservable: [Range<u64>; MAXIMUM_GPUS],
}

#[derive(Debug)]
pub(crate) struct Arena {
    mapping: Mapping,
    allocations: Allocations,
    /// Scratch of [`commit`]: (time, unit, log, entry).
    order: Vec<(u64, u32, u32, u32)>,
    gpus: [GpuState; MAXIMUM_GPUS],
    /// Texture and surface objects by handle.
    images: BTreeMap<u64, Image>,
}

/// What a GPU's kernels find beside their memory.
#[derive(Debug, Default)]
struct GpuState {
    /// The heap of the loaded modules' kernels; `None` where none of them allocates.
    heap: Option<DeviceHeap>,
    /// Written between windows alone; the host takes what is there in a window of its own, hence the lock.
    printed: Mutex<PrintQueue>,
}

impl DeviceMemory {
    /// First device address an allocation can have: where GPU 0's memory begins.
    pub const BASE: u64 = memory::BASE;

    /// Bytes of the device heap: the default of `cudaLimitMallocHeapSize` (CUDA C++ Programming Guide, "Heap Memory
    /// Allocation": 8 MB).
    pub const DEFAULT_HEAP_BYTES: u64 = 8 << 20;

    /// Bytes of printed text that is not yet taken: the default of `cudaLimitPrintfFifoSize`.
    pub const DEFAULT_PRINT_BYTES: u64 = PrintQueue::DEFAULT_CAPACITY as u64;

    /// The memory of one GPU, all zero, without a host window. Host memory is taken only for pages that are written.
    ///
    /// # Errors
    ///
    /// The host cannot map so much.
    pub fn new(capacity: u64) -> std::io::Result<DeviceMemory> {
        Ok(DeviceMemory::of(Mapping::without_window(&[capacity])?))
    }

    /// The memories of GPUs of these capacities and the host window, all zero. Host memory is taken only for pages that are used.
    /// There is no window where the host limits the address space.
    ///
    /// # Errors
    ///
    /// The host cannot map so much.
    pub fn of_node(capacities: &[u64]) -> std::io::Result<DeviceMemory> {
        Ok(DeviceMemory::of(Mapping::new(capacities)?))
    }

    fn of(mapping: Mapping) -> DeviceMemory {
        let file = mapping.file().cloned();
        let reservable = std::array::from_fn(|gpu| mapping.reservable(gpu));
        let arena = Arena {
            mapping,
            allocations: Allocations::default(),
            order: Vec::new(),
            gpus: std::array::from_fn(|_| GpuState::default()),
            images: BTreeMap::new(),
        };
        DeviceMemory { arena: RwLock::new(arena), file, reservable }
    }

    /// What the host window is backed by, for a program to map its pages: the byte at an address of the window is at the offset
    /// `address - `[`BASE`](memory::BASE). `None` where there is no window.
    pub fn shared_file(&self) -> Option<&Arc<OwnedFd>> {
        self.file.as_ref()
    }

    /// Addresses behind the memory of a GPU that programs can reserve, and map memory of any GPU at. Empty where there is no host
    /// window.
    pub fn reservable(&self, gpu: usize) -> Range<u64> {
        self.reservable.get(gpu).cloned().unwrap_or(0..0)
    }

    /// The state at the start of the window, for as long as the view is held. Taken once per unit and window.
    pub fn view(&self) -> DeviceMemoryView<'_> {
        DeviceMemoryView(self.arena.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Copies `destination.len()` bytes from address `address`; false where that is not inside one allocation.
    #[must_use]
    pub fn read(&self, address: u64, destination: &mut [u8]) -> bool {
        let view = self.view();
        let legal = view.allocation_of(address).is_some_and(|(_, end)| end - address >= destination.len() as u64);
        if legal {
            destination.copy_from_slice(view.bytes(address, destination.len()));
        }
        legal
    }

    /// Takes what the kernels of a GPU have printed up to the start of the window. One unit alone may do so: the host.
    pub fn take_printed(&self, gpu: usize) -> Vec<u8> {
        let view = self.view();
        let state = view.0.gpus.get(gpu);
        state.map_or(Vec::new(), |state| state.printed.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// Applies a log at once, outside any window: for tests and for loading programs before the run.
    pub fn apply(&self, log: &mut WriteLog) {
        let mut arena = self.arena.write().unwrap_or_else(PoisonError::into_inner);
        for entry in 0..log.len() {
            log.apply(entry, &mut arena);
        }
    }
}

/// A read lock on the memories.
pub struct DeviceMemoryView<'a>(RwLockReadGuard<'a, Arena>);

impl DeviceMemoryView<'_> {
    /// The allocation that holds `address`, as (first address, first address after it).
    #[inline]
    pub fn allocation_of(&self, address: u64) -> Option<(u64, u64)> {
        self.0.allocations.range_of(address)
    }

    /// A range around the aligned access of `bytes` at `address`, all of which `gpu` may access: an allocation, or a page that
    /// holds one. `None` where the access is illegal, as to another GPU's memory that was not opened to this one.
    #[inline]
    pub fn legal_range(&self, gpu: usize, address: u64, bytes: u64) -> Option<(u64, u64)> {
        self.0.allocations.range_for(gpu, address, bytes)
    }

    /// Are all the bytes from `address` on in allocations?
    pub fn is_allocated(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let mut at = address;
        while at < end {
            let Some((_, next)) = self.allocation_of(at) else { return false };
            at = next;
        }
        true
    }

    /// Whose memory an address is: that which is mapped there, or as the address alone says.
    pub fn place_of(&self, address: u64) -> Place {
        self.0.allocations.place_of(address)
    }

    /// The texture or surface object with this handle.
    pub fn image(&self, handle: u64) -> Option<Image> {
        self.0.images.get(&handle).copied()
    }

    /// `length` bytes from `address` on, which must lie inside an allocation.
    #[inline]
    pub fn bytes(&self, address: u64, length: usize) -> &[u8] {
        self.0.mapping.bytes(address, length)
    }
}

impl Arena {
    /// Makes a range legal to access; one that is not in the mapping stays illegal.
    fn map(&mut self, address: u64, bytes: u64, bounds: Bounds) {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        if self.mapping.bytes_mut(address, length).is_none() {
            return;
        }
        // The last page of a memory that is no multiple of pages can be cut short.
        let (start, end) = (page_of(address).0, page_of(address + bytes.max(1) - 1).1);
        let whole = self.mapping.bytes_mut(start, (end - start) as usize).is_some();
        self.allocations.insert(address, bytes, if whole { bounds } else { Bounds::Allocations });
    }

    /// As [`Self::map`], of memory of the GPU `owner` at reserved addresses.
    fn map_reserved(&mut self, address: u64, bytes: u64, owner: u8, gpus: GpuSet) {
        if usize::try_from(bytes).is_ok_and(|bytes| self.mapping.bytes_mut(address, bytes).is_some()) {
            self.allocations.insert_reserved(address, bytes, owner, gpus);
        }
    }

    fn allocate(&mut self, gpu: usize, bytes: u64) -> u64 {
        self.gpus[gpu].heap.as_mut().map_or(0, |heap| heap.allocate(bytes))
    }

    fn release(&mut self, gpu: usize, address: u64) -> bool {
        self.gpus[gpu].heap.as_mut().is_some_and(|heap| heap.release(address))
    }

    fn set_image(&mut self, handle: u64, image: Option<Image>) {
        match image {
            Some(image) => self.images.insert(handle, image),
            None => self.images.remove(&handle),
        };
    }

    fn printed(&mut self, gpu: usize) -> &mut PrintQueue {
        self.gpus[gpu].printed.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies the logs of a window, in the order (time, unit, sequence), and leaves the old values of atomics in the logs.
pub fn commit(memory: &DeviceMemory, logs: &mut [(UnitId, WriteLog)]) {
    let mut written = logs.iter_mut().filter(|(_, log)| !log.is_empty());
    let Some((_, first)) = written.next() else { return };
    let mut arena = memory.arena.write().unwrap_or_else(PoisonError::into_inner);
    if written.next().is_none() {
        // The common case: one unit has written, and its log is in order already.
        for entry in 0..first.len() {
            first.apply(entry, &mut arena);
        }
        return;
    }
    let mut order = std::mem::take(&mut arena.order);
    order.clear();
    for (at, (unit, log)) in logs.iter().enumerate() {
        order.extend((0..log.len()).map(|entry| (log.time(entry).0, unit.0, at as u32, entry as u32)));
    }
    order.sort_unstable();
    for &(_, _, log, entry) in &order {
        logs[log as usize].1.apply(entry as usize, &mut arena);
    }
    arena.order = order;
}

#[cfg(test)]
mod tests;
