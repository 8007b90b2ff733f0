//! Memory calls: device memory, pinned and managed memory, what an address is.

use crate::Driver;
use crate::allocator::{DeviceAllocator, OutOfMemory};
use crate::calls::{CallOutcome, NOTHING, Outcome};
use crate::effect::MemoryChange;
use crate::order::work::Work;
use crate::wait::{Then, Until, Wait};
use balar_host::CudaError;
use balar_host::call::{AllocationKind, BUILT_IN_MODULE, PointerDescription};
use balar_host::memory::{END, HOST_BASE, MANAGED_BASE, Place, place_of};
use balar_host::{Call, CallResult};
use balar_protocol::managed::ManagedMessage;
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

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

    /// Frees the allocation that begins at `address`: what kind it was, or `None` where none does.
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

    /// The process is gone, and what it had was freed.
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

impl Driver {
    /// The memory of a device: where an allocation begins.
    pub(crate) fn allocate_device(&mut self, context: ContextId, bytes: u64) -> Result<u64, (CudaError, String)> {
        let process = context.process();
        let allocator = &mut self.state.memories[context.gpu()];
        let address =
            allocator.allocate(process, bytes).map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        let reserved = allocator.reserved();
        self.change(MemoryChange::Map { process, address, bytes });
        self.state.totals.device_memory_maximum = self.state.totals.device_memory_maximum.max(reserved);
        Ok(address)
    }

    /// Pinned or managed memory: whole pages, for a program maps it.
    pub(crate) fn allocate_window(
        &mut self,
        context: ContextId,
        kind: AllocationKind,
        bytes: u64,
    ) -> Result<u64, (CudaError, String)> {
        let allocated = self.state.window.allocate(kind, context, bytes);
        let address = allocated.map_err(|error| (CudaError::MemoryAllocation, format!("host window: {error}")))?;
        self.change(MemoryChange::Map { process: context.process(), address, bytes });
        if kind == AllocationKind::Managed {
            self.tell_managed(context.process(), address, bytes);
        }
        self.state.totals.host_window_maximum = self.state.totals.host_window_maximum.max(self.state.window.reserved());
        Ok(address)
    }

    /// An allocation ends, now that nothing uses it.
    pub(crate) fn end_allocation(&mut self, address: u64) {
        let freed = match place_of(address) {
            Place::Device(device) => {
                let Some(memory) = self.state.memories.get_mut(device as usize) else { return };
                let owner = memory.owner(address);
                let unused = memory.free(address);
                if let Some(owner) = owner {
                    self.context(ContextId::new(owner, device as usize)).ending.remove(&address);
                }
                self.zero(unused.clone().unwrap_or_default());
                unused.is_some()
            }
            Place::HostWindow => {
                let kind = self.state.window.free(address);
                if kind == Some(AllocationKind::Managed) {
                    self.tell_unified_memory(ManagedMessage::Free { address });
                }
                kind.is_some()
            }
            Place::Elsewhere => false,
        };
        if freed {
            self.end_imports_of(address);
            self.change(MemoryChange::Unmap { address });
        }
    }

    /// Bytes that nobody uses any more become zero.
    pub(crate) fn zero(&mut self, unused: Range<u64>) {
        if !unused.is_empty() {
            self.change(MemoryChange::Zero { address: unused.start, bytes: unused.end - unused.start });
        }
    }

    /// Is the whole range inside one allocation that the process may access, or in mapped memory that some device may access?
    pub(crate) fn is_allocated(&mut self, process: ProcessId, address: u64, bytes: u64) -> bool {
        if self.state.virtual_memory.is_reservable(address) {
            return self.state.virtual_memory.is_accessible(process, address, bytes);
        }
        match place_of(address) {
            Place::Device(device) => {
                let gpu = device as usize;
                let Some(memory) = self.state.memories.get(gpu) else { return false };
                let built_in = ContextId::new(process, gpu);
                match memory.holder(address, bytes) {
                    Some((base, owner)) => owner == process || self.process(process).imports.holds(base),
                    None => address >= memory.end() && self.symbols.holds(built_in, BUILT_IN_MODULE, address, bytes),
                }
            }
            Place::HostWindow => self.state.window.contains(process, address, bytes),
            Place::Elsewhere => false,
        }
    }

    /// A call about memory.
    pub(crate) fn memory_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let process = context.process();
        match call {
            Call::Malloc { bytes: 0 } | Call::MallocHost { bytes: 0 } => Ok(Outcome::Returns(CallResult::Pointer(0))),
            Call::MallocManaged { bytes: 0 } => Err((CudaError::InvalidValue, "managed memory of 0 bytes".to_owned())),
            Call::Malloc { bytes } => {
                let allocated = self.allocate_device(context, bytes);
                self.or_wait_for_ended(allocated, Call::Malloc { bytes })
            }
            Call::MallocAsync { bytes, stream } => {
                self.find_stream(context, stream)?;
                if bytes == 0 {
                    return Ok(pointer(0));
                }
                match self.allocate_device(context, bytes) {
                    // What streams are to free may make room.
                    Err(_) if !self.context(context).ending.is_empty() => {
                        let until = Until::ContextBefore { context, number: self.state.operations.next() };
                        let then = Then::Again(Box::new(Call::MallocAsync { bytes, stream }));
                        Ok(Outcome::Waits(Wait { until, then }))
                    }
                    allocated => self.or_wait_for_ended(allocated, Call::MallocAsync { bytes, stream }),
                }
            }
            Call::MallocHost { bytes } => self.allocate_window(context, AllocationKind::Host, bytes).map(pointer),
            Call::MallocManaged { bytes } => self.allocate_window(context, AllocationKind::Managed, bytes).map(pointer),
            Call::Free { pointer: 0 } | Call::FreeHost { pointer: 0 } => NOTHING,
            Call::Free { pointer } => {
                let owner = self.owner_of(process, pointer)?;
                let number = self.state.operations.next();
                let until = if self.has_unified_memory && self.state.window.get(pointer).is_some() {
                    // Pages may be on their way to any GPU.
                    Until::ProcessBefore(process, number)
                } else {
                    Until::ContextBefore { context: owner, number }
                };
                Ok(Outcome::Waits(Wait { until, then: Then::Free(pointer) }))
            }
            Call::FreeHost { pointer } => {
                let is_its = |(kind, owner): (AllocationKind, ContextId)| {
                    kind == AllocationKind::Host && owner.process() == process
                };
                if !self.state.window.get(pointer).is_some_and(is_its) {
                    return Err((CudaError::InvalidValue, format!("no pinned memory begins at {pointer:#x}")));
                }
                let until = Until::ProcessBefore(process, self.state.operations.next());
                Ok(Outcome::Waits(Wait { until, then: Then::Free(pointer) }))
            }
            Call::MemoryInfo => {
                let (free, total) = self.memory_of_gpu(context.gpu());
                Ok(Outcome::Returns(CallResult::MemoryInfo { free, total }))
            }
            Call::PointerInfo { pointer } => {
                Ok(Outcome::Returns(CallResult::PointerInfo(self.describe_pointer(process, pointer))))
            }
            other => Err(crate::calls::not_modelled(&other)),
        }
    }

    /// Bytes of a GPU's memory that are not allocated, and all bytes; none of a GPU that there is not.
    pub fn memory_of_gpu(&self, gpu: usize) -> (u64, u64) {
        let Some((gpu, memory)) = self.gpus.get(gpu).zip(self.state.memories.get(gpu)) else { return (0, 0) };
        (gpu.memory_bytes.saturating_sub(memory.reserved()), gpu.memory_bytes)
    }

    /// What is allocated, or where there is no room, but processes that have ended are to give theirs back: a wait for it.
    fn or_wait_for_ended(&self, allocated: Result<u64, (CudaError, String)>, again: Call) -> CallOutcome {
        if allocated.is_err() && self.has_ended_processes() {
            return Ok(Outcome::Waits(Wait { until: Until::EndedProcesses, then: Then::Again(Box::new(again)) }));
        }
        allocated.map(pointer)
    }

    /// What ends an allocation of a device in the order of a stream. Nothing ends at address 0.
    pub(crate) fn free_in_order(&mut self, context: ContextId, pointer: u64) -> Result<Work, (CudaError, String)> {
        if pointer == 0 {
            return Ok(Work::Free(0));
        }
        if !matches!(place_of(pointer), Place::Device(_)) {
            return Err(no_allocation(pointer));
        }
        let owner = self.owner_of(context.process(), pointer)?;
        self.context(owner).ending.insert(pointer);
        Ok(Work::Free(pointer))
    }

    /// Pinned memory of a process that has ended goes with it.
    pub(crate) fn end_pinned(&mut self, process: ProcessId) {
        for address in self.state.window.of_process(process) {
            self.end_allocation(address);
        }
    }

    /// The context whose work a `cudaFree` of this address waits for.
    fn owner_of(&mut self, process: ProcessId, pointer: u64) -> Result<ContextId, (CudaError, String)> {
        let owner = match place_of(pointer) {
            Place::Device(device) => {
                let owner = self.state.memories.get(device as usize).and_then(|memory| memory.owner(pointer));
                let owner = owner.filter(|owner| *owner == process).map(|_| ContextId::new(process, device as usize));
                owner.filter(|&owner| !self.context(owner).ending.contains(&pointer))
            }
            Place::HostWindow => {
                let allocation = self.state.window.get(pointer);
                let is_its = |(kind, owner): &(AllocationKind, ContextId)| {
                    *kind == AllocationKind::Managed && owner.process() == process
                };
                allocation.filter(is_its).map(|(_, owner)| owner)
            }
            Place::Elsewhere => None,
        };
        owner.ok_or_else(|| no_allocation(pointer))
    }

    fn describe_pointer(&mut self, process: ProcessId, pointer: u64) -> Option<PointerDescription> {
        if let Some(mapped) = self.state.virtual_memory.describe(process, pointer) {
            return Some(mapped);
        }
        match place_of(pointer) {
            Place::Device(device) => {
                let (base, bytes, owner) = self.state.memories.get(device as usize)?.allocation_of(pointer)?;
                if owner != process && !self.process(process).imports.holds(base) {
                    return None;
                }
                Some(PointerDescription { kind: AllocationKind::Device, device, base, bytes })
            }
            Place::HostWindow => {
                let (base, bytes, owner) = self.state.window.allocation_of(pointer)?;
                let (kind, context) = self.state.window.get(base)?;
                let device = context.gpu() as u32;
                (owner == process).then_some(PointerDescription { kind, device, base, bytes })
            }
            Place::Elsewhere => None,
        }
    }
}

fn pointer(address: u64) -> Outcome {
    Outcome::Returns(CallResult::Pointer(address))
}

fn no_allocation(pointer: u64) -> (CudaError, String) {
    (CudaError::InvalidValue, format!("no allocation begins at {pointer:#x}"))
}
