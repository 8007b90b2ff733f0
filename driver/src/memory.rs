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
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pinned and managed memory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostWindow {
    pinned: DeviceAllocator,
    managed: DeviceAllocator,
    /// The device that was current when each allocation was made.
    devices: BTreeMap<u64, usize>,
}

impl HostWindow {
    /// Nothing is allocated; nothing can be, where the memory has no host window.
    pub fn new(exists: bool) -> HostWindow {
        let room = |start: u64, end: u64| if exists { end - start } else { 0 };
        HostWindow {
            pinned: DeviceAllocator::of_pages(HOST_BASE, room(HOST_BASE, MANAGED_BASE)),
            managed: DeviceAllocator::of_pages(MANAGED_BASE, room(MANAGED_BASE, END)),
            devices: BTreeMap::new(),
        }
    }

    /// Allocates `bytes`, which is not zero: whole pages, for a program maps them.
    pub fn allocate(&mut self, kind: AllocationKind, device: usize, bytes: u64) -> Result<u64, OutOfMemory> {
        let allocator = if kind == AllocationKind::Managed { &mut self.managed } else { &mut self.pinned };
        let address = allocator.allocate(bytes)?;
        self.devices.insert(address, device);
        Ok(address)
    }

    /// Frees the allocation that begins at `address`; false where none does.
    pub fn free(&mut self, address: u64) -> bool {
        self.devices.remove(&address);
        self.managed.free(address) || self.pinned.free(address)
    }

    /// The kind and device of the allocation that begins at `address`.
    pub fn get(&self, address: u64) -> Option<(AllocationKind, usize)> {
        let kind = if address < MANAGED_BASE { AllocationKind::Host } else { AllocationKind::Managed };
        self.devices.get(&address).map(|device| (kind, *device))
    }

    /// Managed memory that was made for a device.
    pub fn managed_of(&self, device: usize) -> Vec<u64> {
        let managed = self.devices.range(MANAGED_BASE..).filter(|(_, owner)| **owner == device);
        managed.map(|(address, _)| *address).collect()
    }

    /// Is the whole range inside one allocation?
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        self.pinned.contains(address, bytes) || self.managed.contains(address, bytes)
    }

    /// The allocation that holds `address`: where it begins, and its bytes.
    pub fn allocation_of(&self, address: u64) -> Option<(u64, u64)> {
        self.pinned.allocation_of(address).or_else(|| self.managed.allocation_of(address))
    }

    /// Bytes taken by allocations.
    pub fn reserved(&self) -> u64 {
        self.pinned.reserved() + self.managed.reserved()
    }
}

impl Driver {
    /// The memory of a device: where an allocation begins.
    pub(crate) fn allocate_device(&mut self, device: usize, bytes: u64) -> Result<u64, (CudaError, String)> {
        let allocator = &mut self.state.contexts[device].allocator;
        let address = allocator.allocate(bytes).map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        let reserved = allocator.reserved();
        self.change(MemoryChange::Map { address, bytes });
        self.state.totals.device_memory_maximum = self.state.totals.device_memory_maximum.max(reserved);
        Ok(address)
    }

    /// Pinned or managed memory: whole pages, for a program maps it.
    pub(crate) fn allocate_window(
        &mut self,
        device: usize,
        kind: AllocationKind,
        bytes: u64,
    ) -> Result<u64, (CudaError, String)> {
        let allocated = self.state.window.allocate(kind, device, bytes);
        let address = allocated.map_err(|error| (CudaError::MemoryAllocation, format!("host window: {error}")))?;
        self.change(MemoryChange::Map { address, bytes });
        self.state.totals.host_window_maximum = self.state.totals.host_window_maximum.max(self.state.window.reserved());
        Ok(address)
    }

    /// An allocation ends, now that nothing uses it.
    pub(crate) fn end_allocation(&mut self, address: u64) {
        let freed = match place_of(address) {
            Place::Device(device) => {
                let Some(context) = self.state.contexts.get_mut(device as usize) else { return };
                context.ending.remove(&address);
                context.allocator.free(address)
            }
            Place::HostWindow => self.state.window.free(address),
            Place::Elsewhere => false,
        };
        if freed {
            self.change(MemoryChange::Unmap { address });
        }
    }

    /// Is the whole range inside one allocation, or in mapped memory that some device may access?
    pub(crate) fn is_allocated(&self, address: u64, bytes: u64) -> bool {
        if self.state.virtual_memory.is_reservable(address) {
            return self.state.virtual_memory.is_accessible(address, bytes);
        }
        match place_of(address) {
            Place::Device(device) => self.state.contexts.get(device as usize).is_some_and(|context| {
                let allocator = &context.allocator;
                allocator.contains(address, bytes)
                    || (address >= allocator.end()
                        && self.symbols.holds(device as usize, BUILT_IN_MODULE, address, bytes))
            }),
            Place::HostWindow => self.state.window.contains(address, bytes),
            Place::Elsewhere => false,
        }
    }

    /// A call about memory.
    pub(crate) fn memory_call(&mut self, device: usize, call: Call) -> CallOutcome {
        match call {
            Call::Malloc { bytes: 0 } | Call::MallocHost { bytes: 0 } => Ok(Outcome::Returns(CallResult::Pointer(0))),
            Call::MallocManaged { bytes: 0 } => Err((CudaError::InvalidValue, "managed memory of 0 bytes".to_owned())),
            Call::Malloc { bytes } => self.allocate_device(device, bytes).map(pointer),
            Call::MallocAsync { bytes, stream } => {
                self.find_stream(device, stream)?;
                if bytes == 0 {
                    return Ok(pointer(0));
                }
                match self.allocate_device(device, bytes) {
                    // What streams are to free may make room.
                    Err(_) if !self.state.contexts[device].ending.is_empty() => {
                        let until = Until::DeviceBefore { device, number: self.state.operations.next() };
                        let then = Then::Again(Box::new(Call::MallocAsync { bytes, stream }));
                        Ok(Outcome::Waits(Wait { until, then }))
                    }
                    allocated => allocated.map(pointer),
                }
            }
            Call::MallocHost { bytes } => self.allocate_window(device, AllocationKind::Host, bytes).map(pointer),
            Call::MallocManaged { bytes } => self.allocate_window(device, AllocationKind::Managed, bytes).map(pointer),
            Call::Free { pointer: 0 } | Call::FreeHost { pointer: 0 } => NOTHING,
            Call::Free { pointer } => {
                let owner = self.owner_of(pointer)?;
                let until = Until::DeviceBefore { device: owner, number: self.state.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Free(pointer) }))
            }
            Call::FreeHost { pointer } => {
                if self.state.window.get(pointer).is_none_or(|(kind, _)| kind != AllocationKind::Host) {
                    return Err((CudaError::InvalidValue, format!("no pinned memory begins at {pointer:#x}")));
                }
                let until = Until::AllBefore(self.state.operations.next());
                Ok(Outcome::Waits(Wait { until, then: Then::Free(pointer) }))
            }
            Call::FreeAsync { pointer, stream } => {
                let key = self.find_stream(device, stream)?;
                if pointer == 0 {
                    return NOTHING;
                }
                if !matches!(place_of(pointer), Place::Device(_)) {
                    return Err(no_allocation(pointer));
                }
                let owner = self.owner_of(pointer)?;
                self.state.contexts[owner].ending.insert(pointer);
                self.push(key, Work::Free(pointer), &[]);
                NOTHING
            }
            Call::MemoryInfo => {
                let context = &self.state.contexts[device];
                let total = context.memory_bytes;
                let free = total.saturating_sub(context.allocator.reserved());
                Ok(Outcome::Returns(CallResult::MemoryInfo { free, total }))
            }
            Call::PointerInfo { pointer } => {
                Ok(Outcome::Returns(CallResult::PointerInfo(self.describe_pointer(pointer))))
            }
            Call::Prefetch { pointer, bytes, device: target, stream } => {
                let key = self.find_stream(device, stream)?;
                if target.is_some_and(|target| target as usize >= self.state.contexts.len()) {
                    return Err((CudaError::InvalidDevice, format!("there is no device {target:?}")));
                }
                if pointer < MANAGED_BASE || !self.state.window.contains(pointer, bytes) {
                    let text = format!("{bytes} bytes at {pointer:#x} are not managed memory");
                    return Err((CudaError::InvalidValue, text));
                }
                self.push(key, Work::Nothing, &[]);
                NOTHING
            }
            Call::VirtualMemory(call) => self.virtual_memory_call(device, call),
            other => Err(crate::calls::not_modelled(&other)),
        }
    }

    /// The device whose work a `cudaFree` of this address waits for.
    fn owner_of(&self, pointer: u64) -> Result<usize, (CudaError, String)> {
        let owner = match place_of(pointer) {
            Place::Device(device) => {
                let context = self.state.contexts.get(device as usize);
                let live = context
                    .filter(|context| context.allocator.is_allocation(pointer) && !context.ending.contains(&pointer));
                live.map(|_| device as usize)
            }
            Place::HostWindow => {
                let allocation = self.state.window.get(pointer);
                allocation.filter(|(kind, _)| *kind == AllocationKind::Managed).map(|(_, device)| device)
            }
            Place::Elsewhere => None,
        };
        owner.ok_or_else(|| no_allocation(pointer))
    }

    fn describe_pointer(&self, pointer: u64) -> Option<PointerDescription> {
        if let Some(mapped) = self.state.virtual_memory.describe(pointer) {
            return Some(mapped);
        }
        match place_of(pointer) {
            Place::Device(device) => {
                let (base, bytes) = self.state.contexts.get(device as usize)?.allocator.allocation_of(pointer)?;
                Some(PointerDescription { kind: AllocationKind::Device, device, base, bytes })
            }
            Place::HostWindow => {
                let (base, bytes) = self.state.window.allocation_of(pointer)?;
                let (kind, device) = self.state.window.get(base)?;
                Some(PointerDescription { kind, device: device as u32, base, bytes })
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
