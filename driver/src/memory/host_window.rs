//! Pinned and managed memory: addresses that the program maps, too.

use super::allocator::{DeviceAllocator, OutOfMemory};
use balar_host::call::AllocationKind;
use balar_host::memory::{END, HOST_BASE, MANAGED_BASE};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pinned and managed memory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostWindow {
    pinned: DeviceAllocator,
    managed: DeviceAllocator,
    /// The context that was current when each allocation was made.
    contexts: BTreeMap<u64, ContextId>,
}

impl HostWindow {
    /// Nothing is allocated; nothing can be, where the memory has no host window.
    pub fn new(exists: bool) -> HostWindow {
        let room = |start: u64, end: u64| if exists { end - start } else { 0 };
        HostWindow {
            pinned: DeviceAllocator::of_pages(HOST_BASE, room(HOST_BASE, MANAGED_BASE)),
            managed: DeviceAllocator::of_pages(MANAGED_BASE, room(MANAGED_BASE, END)),
            contexts: BTreeMap::new(),
        }
    }

    /// Allocates `bytes`, which is not zero: whole pages, for a program maps them.
    pub fn allocate(&mut self, kind: AllocationKind, context: ContextId, bytes: u64) -> Result<u64, OutOfMemory> {
        let allocator = if kind == AllocationKind::Managed { &mut self.managed } else { &mut self.pinned };
        let address = allocator.allocate(context.process(), bytes)?;
        self.contexts.insert(address, context);
        Ok(address)
    }

    /// Frees the allocation that begins at `address`, and gives its kind; `None` where no allocation begins there.
    pub fn free(&mut self, address: u64) -> Option<AllocationKind> {
        self.contexts.remove(&address);
        // Whoever is given these pages next finds them zero: the program takes them so (`MADV_REMOVE` of what it has mapped).
        if self.managed.free(address).is_some() {
            return Some(AllocationKind::Managed);
        }
        self.pinned.free(address).map(|_| AllocationKind::Host)
    }

    /// The kind and context of the allocation that begins at `address`.
    pub fn get(&self, address: u64) -> Option<(AllocationKind, ContextId)> {
        let kind = if address < MANAGED_BASE { AllocationKind::Host } else { AllocationKind::Managed };
        self.contexts.get(&address).map(|context| (kind, *context))
    }

    /// Managed memory that was made for a context.
    pub fn managed_of(&self, context: ContextId) -> Vec<u64> {
        let managed = self.contexts.range(MANAGED_BASE..).filter(|(_, owner)| **owner == context);
        managed.map(|(address, _)| *address).collect()
    }

    /// Managed memory of a process.
    pub fn managed_of_process(&self, process: ProcessId) -> Vec<u64> {
        let its = self.contexts.range(MANAGED_BASE..).filter(|(_, owner)| owner.process() == process);
        its.map(|(address, _)| *address).collect()
    }

    /// Has a process any managed memory?
    pub fn has_managed(&self, process: ProcessId) -> bool {
        self.contexts.range(MANAGED_BASE..).any(|(_, owner)| owner.process() == process)
    }

    /// All that a process has.
    pub fn of_process(&self, process: ProcessId) -> Vec<u64> {
        let its = self.contexts.iter().filter(|(_, owner)| owner.process() == process);
        its.map(|(address, _)| *address).collect()
    }

    /// The process is gone, and its memory was freed.
    pub fn forget(&mut self, process: ProcessId) {
        self.pinned.forget(process);
        self.managed.forget(process);
    }

    /// Is the whole range inside one allocation of the process?
    pub fn contains(&self, process: ProcessId, address: u64, bytes: u64) -> bool {
        let holder = self.pinned.holder(address, bytes).or_else(|| self.managed.holder(address, bytes));
        holder.is_some_and(|(_, owner)| owner == process)
    }

    /// The allocation that holds `address`: where it begins, its bytes, and whose it is.
    pub fn allocation_of(&self, address: u64) -> Option<(u64, u64, ProcessId)> {
        self.pinned.allocation_of(address).or_else(|| self.managed.allocation_of(address))
    }

    /// Bytes taken by allocations.
    pub fn reserved(&self) -> u64 {
        self.pinned.reserved() + self.managed.reserved()
    }
}
