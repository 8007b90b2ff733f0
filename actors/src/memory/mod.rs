//! Values of the node's memories: one flat arena for all GPUs and the host window, written only between windows.
//!
//! **Invariant:** within a value epoch the arena is only read. The writes of units go to their [`Writer`]s; at the end of the epoch all of
//! them are applied in the order (time, unit, sequence). So values depend neither on threads nor on windows.
//!
//! A load that meets an atomic of its own unit and epoch waits for that atomic's response: the result of an atomic is known at the end of
//! the epoch, long before its response arrives. Kernels' requests to the device runtime go the same way: printed records, allocations from
//! the device heap and buffers for the parameters of launches are log entries, applied in the same order. Descriptors of textures and
//! surfaces lie beside the values of device memory, and log entries of the host write them.
//!
//! An address says whose memory it is; one write log may write to all of it. The host window is backed by a file that a program maps at the same
//! addresses, so nothing is copied between them. Virtual memory management has no page tables either: behind each GPU's memory are addresses that programs
//! reserve. Memory that is mapped there has its bytes there; unmapped, it has them where it was set aside. So one memory cannot be at two addresses at
//! once: the second `cuMemMap` is refused. A mapping knows whose memory it is and who may access it. Read-only access is not enforced: stores succeed. A copy
//! that crosses from one mapping into the memory of another is timed by where it begins.
//!
//! | file | what it holds |
//! |---|---|
//! | `arena`, `mapping` | one arena for all GPUs and the host window, and what contexts have beside it |
//! | `allocations` | which addresses are legal for whom, and whose memory is mapped at reserved ones |
//! | `heap`, `print_queue`, `launch_pool` | device heaps, printed text, parameters of what kernels launch |
//! | `writer`, `write_log` | what a unit writes in an epoch |
//! | `merge` | the order in which logs take effect |

mod access_pattern;
mod allocations;
mod arena;
mod heap;
mod launch_pool;
mod mapping;
mod merge;
mod print_queue;
mod reading;
pub mod transfer;
mod write_log;
mod writer;

pub(crate) use access_pattern::AccessPattern;
pub(crate) use mapping::Bytes;
pub(crate) use reading::{read_lanes, read_slice};
pub(crate) use write_log::LoggedKind;
pub use write_log::{AtomicResult, Unknown, WriteLog};
pub use writer::{SavedWriter, Writer};

pub use allocations::{Bounds, GpuSet};

use crate::engine::EpochHook;
use crate::engine::epoch_end;
use arena::Arena;
use balar_host::memory::{self, Place};
use balar_isa::texture::Image;
use balar_protocol::{ContextId, ProcessId, SimTime};
pub use launch_pool::LaunchHeader;
pub(crate) use launch_pool::{HEADER_BYTES, pack_block, pack_grid, unpack_block, unpack_grid};
use mapping::Mapping;
use merge::Merge;
use print_queue::PrintQueue;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use writer::{Shelf, Waiting};

pub use print_queue::Printed;

const MAXIMUM_GPUS: usize = memory::MAXIMUM_GPUS as usize;

/// The values of the node's memories, with the allocations that make their addresses legal.
///
/// GPU g's memory begins at [`gpu_base`](memory::gpu_base), the host window at [`HOST_BASE`](memory::HOST_BASE).
#[derive(Debug)]
pub struct DeviceMemory {
    arena: RwLock<Arena>,
    /// The file behind the host window.
    file: Option<Arc<OwnedFd>>,
    /// The addresses that programs can reserve, by GPU.
    reservable: [Range<u64>; MAXIMUM_GPUS],
    /// How long a value epoch is.
    epoch: SimTime,
    /// The writes of this epoch.
    waiting: Waiting,
    end: Mutex<EpochEnd>,
}

/// Scratch of the end of an epoch.
#[derive(Debug, Default)]
struct EpochEnd {
    shelves: Vec<(u32, Arc<Shelf>)>,
    #[expect(clippy::vec_box, reason = "a log changes places with one on a shelf, which a pointer does fastest")]
    logs: Vec<Box<WriteLog>>,
    merge: Merge,
}

impl DeviceMemory {
    /// How long a value epoch is where a node does not say: as long as the wires of the shipped GPUs, so that an epoch needs no window
    /// of its own, and an eighth of the fastest atomic's way to L2 and back on a V100 (160 ns), so that a value is known before its answer.
    pub const DEFAULT_EPOCH: SimTime = SimTime::from_nanoseconds(20);

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
        let (epoch, waiting) = (DeviceMemory::DEFAULT_EPOCH, Waiting::default());
        let arena = RwLock::new(Arena::of(mapping));
        DeviceMemory { arena, file, reservable, epoch, waiting, end: Mutex::default() }
    }

    /// With value epochs of `epoch`, which is above zero, in place of [`Self::DEFAULT_EPOCH`].
    #[must_use]
    pub fn with_epoch(self, epoch: SimTime) -> DeviceMemory {
        DeviceMemory { epoch, ..self }
    }

    /// How long a value epoch is.
    pub fn epoch(&self) -> SimTime {
        self.epoch
    }

    /// The end of the epoch that `time` is in: writes of that epoch can be seen from its end on.
    pub fn epoch_end(&self, time: SimTime) -> SimTime {
        epoch_end(self.epoch, time)
    }

    /// A way to write for unit number `unit`.
    pub fn writer(self: &Arc<Self>, unit: u32) -> Writer {
        Writer::new(Arc::clone(self), unit)
    }

    /// The file behind the host window, for a program to map its pages: the byte at an address of the window is at the offset
    /// `address - `[`BASE`](memory::BASE). `None` where there is no window.
    pub fn shared_file(&self) -> Option<&Arc<OwnedFd>> {
        self.file.as_ref()
    }

    /// Addresses behind the memory of a GPU that programs can reserve, and map memory of any GPU at. Empty where there is no host
    /// window.
    pub fn reservable(&self, gpu: usize) -> Range<u64> {
        self.reservable.get(gpu).cloned().unwrap_or(0..0)
    }

    /// Says that most of the bytes from `address` on will soon be written: where the host can, it backs them with huge pages. Nothing
    /// that can be read changes.
    pub fn expect_writes(&self, address: u64, bytes: u64) {
        self.view().0.mapping.expect_writes(address, bytes);
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
            view.read(address, destination);
        }
        legal
    }

    /// Takes the text that the kernels of a context have printed up to the start of the window. One unit alone may do so: the host.
    pub fn take_printed(&self, context: ContextId) -> Printed {
        let view = self.view();
        let state = view.0.contexts.get(&context);
        state.map_or(Printed::default(), |state| state.printed.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// Applies a log at once, outside any window: for tests and for loading programs before the run.
    pub fn apply(&self, log: &mut WriteLog) {
        let mut arena = self.arena.write().unwrap_or_else(PoisonError::into_inner);
        log.put_in_order();
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

    /// A range around the aligned access of `bytes` at `address` that kernels of `context` may access wholly: an allocation, or a page that
    /// holds one. `None` where the access is illegal, as to memory of another GPU that was not opened to this one, or of another process.
    #[inline]
    pub fn legal_range(&self, context: ContextId, address: u64, bytes: u64) -> Option<(u64, u64)> {
        self.0.allocations.range_for(context, address, bytes)
    }

    /// Has a kernel accessed memory of another GPU than its own, up to the last window that all units have run?
    pub fn peer_accessed(&self) -> bool {
        self.0.allocations.peer_accessed()
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

    /// The owner of an address: the owner of the memory that is mapped there, or the owner that the address alone names.
    pub fn place_of(&self, address: u64) -> Place {
        self.0.allocations.place_of(address)
    }

    /// The texture or surface object with this handle of a process.
    pub fn image(&self, process: ProcessId, handle: u64) -> Option<Image> {
        self.0.images.get(&(process, handle)).copied()
    }

    /// Copies the bytes from `address` on, which must lie inside an allocation, out.
    pub fn read(&self, address: u64, destination: &mut [u8]) {
        self.bytes(address, destination.len()).read(0, destination);
    }

    /// `length` bytes from `address` on, which must lie inside an allocation.
    #[inline]
    pub(crate) fn bytes(&self, address: u64, length: usize) -> Bytes<'_> {
        self.0.mapping.bytes(address, length)
    }
}

impl EpochHook for DeviceMemory {
    /// Applies the logs of the epoch, in the order (time, unit, sequence), and leaves the old values of atomics in them.
    fn epoch_ends(&self) {
        if !self.waiting.any() {
            return;
        }
        let mut arena = self.arena.write().unwrap_or_else(PoisonError::into_inner);
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.take(&mut end.shelves);
        end.apply(&mut arena);
        end.shelves.clear();
    }
}

impl EpochEnd {
    fn apply(&mut self, arena: &mut Arena) {
        let EpochEnd { shelves, logs, merge } = self;
        logs.resize_with(shelves.len().max(logs.len()), Box::default);
        for (at, ((unit, shelf), log)) in shelves.iter().zip(&mut *logs).enumerate() {
            shelf.swap(log);
            log.put_in_order();
            merge.add(*unit, at, log.time(0));
        }
        merge.run(|log, entry| {
            logs[log].apply(entry, arena);
            logs[log].time(entry + 1)
        });
        for ((_, shelf), log) in shelves.iter().zip(logs) {
            log.set_applied();
            shelf.swap(log);
        }
    }
}

#[cfg(test)]
mod tests;
