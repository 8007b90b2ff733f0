//! The values of all memories, what makes their addresses legal, and what contexts and processes have beside them.

use super::allocations::{Allocations, Bounds, GpuSet, page_of};
use super::heap::DeviceHeap;
use super::launch_pool::{HEADER_BYTES, LaunchHeader, LaunchPool};
use super::mapping::Mapping;
use super::print_queue::PrintQueue;
use balar_isa::texture::Image;
use balar_protocol::{ContextId, ProcessId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Arena {
    pub(super) mapping: Mapping,
    pub(super) allocations: Allocations,
    pub(super) contexts: BTreeMap<ContextId, ContextState>,
    /// Texture and surface objects by process and handle.
    pub(super) images: BTreeMap<(ProcessId, u64), Image>,
}

/// What a context's kernels find beside their memory.
#[derive(Debug, Default)]
pub(super) struct ContextState {
    /// The heap of the loaded modules' kernels; `None` where none of them allocates.
    heap: Option<DeviceHeap>,
    /// What launches of kernels wait in; `None` where no loaded kernel launches any.
    launches: Option<LaunchPool>,
    /// Written between windows alone; the host takes what is there in a window of its own, hence the lock.
    pub(super) printed: Mutex<PrintQueue>,
}

impl Arena {
    /// Nothing is allocated in this mapping yet.
    pub(super) fn of(mapping: Mapping) -> Arena {
        Arena { mapping, allocations: Allocations::default(), contexts: BTreeMap::new(), images: BTreeMap::new() }
    }

    /// Makes a range legal to access; one that is not in the mapping stays illegal.
    pub(super) fn map(&mut self, process: ProcessId, address: u64, bytes: u64, bounds: Bounds) {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        if !self.mapping.contains(address, length) {
            return;
        }
        // The last page of a memory that is no multiple of pages can be cut short.
        let (start, end) = (page_of(address).0, page_of(address + bytes.max(1) - 1).1);
        let whole = self.mapping.contains(start, (end - start) as usize);
        self.allocations.insert(process, address, bytes, if whole { bounds } else { Bounds::Allocations });
    }

    /// As [`Self::map`], of memory of the GPU `owner` at reserved addresses.
    pub(super) fn map_reserved(&mut self, process: ProcessId, address: u64, bytes: u64, owner: u8, gpus: GpuSet) {
        if usize::try_from(bytes).is_ok_and(|bytes| self.mapping.contains(address, bytes)) {
            self.allocations.insert_reserved(process, address, bytes, owner, gpus);
        }
    }

    /// Gives a context's kernels a heap in place of the one before; one of 0 bytes is none.
    pub(super) fn set_heap(&mut self, context: ContextId, start: u64, bytes: u64) {
        let heap = (bytes > 0).then(|| DeviceHeap::new(start, bytes));
        if let Some(old) = std::mem::replace(&mut self.contexts.entry(context).or_default().heap, heap) {
            self.allocations.remove(old.start());
        }
        if bytes > 0 {
            self.map(context.process(), start, bytes, Bounds::Allocations);
        }
    }

    /// Gives a context's kernels room for launches that wait, in place of the one before, which has been unmapped.
    pub(super) fn set_launch_pool(&mut self, context: ContextId, start: u64, bytes: u64) {
        self.contexts.entry(context).or_default().launches = Some(LaunchPool::new(start, bytes));
        self.map(context.process(), start, bytes, Bounds::Allocations);
    }

    /// The address of a buffer for the parameters of a launch, of so many bytes, with a header before it; 0 where there is none.
    pub(super) fn allocate_launch(&mut self, context: ContextId, bytes: u64, header: LaunchHeader) -> u64 {
        let pool = self.contexts.get_mut(&context).and_then(|context| context.launches.as_mut());
        let Some(address) = pool.and_then(|pool| pool.allocate(bytes)) else { return 0 };
        for (place, word) in [header.kernel, header.grid, header.block].into_iter().enumerate() {
            if let Some(memory) = self.mapping.bytes_mut(address + 8 * place as u64, 8) {
                memory.update(|memory| memory.copy_from_slice(&word.to_le_bytes()));
            }
        }
        address + HEADER_BYTES
    }

    pub(super) fn release_launch(&mut self, context: ContextId, buffer: u64) {
        if let Some(pool) = self.contexts.get_mut(&context).and_then(|context| context.launches.as_mut()) {
            pool.release(buffer);
        }
    }

    pub(super) fn allocate(&mut self, context: ContextId, bytes: u64) -> u64 {
        self.heap(context).map_or(0, |heap| heap.allocate(bytes))
    }

    pub(super) fn release(&mut self, context: ContextId, address: u64) -> bool {
        self.heap(context).is_some_and(|heap| heap.release(address))
    }

    fn heap(&mut self, context: ContextId) -> Option<&mut DeviceHeap> {
        self.contexts.get_mut(&context)?.heap.as_mut()
    }

    pub(super) fn set_image(&mut self, process: ProcessId, handle: u64, image: Option<Image>) {
        match image {
            Some(image) => self.images.insert((process, handle), image),
            None => self.images.remove(&(process, handle)),
        };
    }

    pub(super) fn printed(&mut self, context: ContextId) -> &mut PrintQueue {
        self.contexts.entry(context).or_default().printed.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
