//! All memory of the node: whose every address is, and how allocations begin and end.

use super::devices::Devices;
use super::host_window::HostWindow;
use super::imports::Imports;
use super::module_room::ModuleRoom;
use super::unified::UnifiedMemory;
use super::virtual_memory::VirtualMemory;
use crate::code::tables::SymbolTable;
use crate::effect::{Effect, Effects, MemoryChange};
use crate::order::Order;
use crate::order::work::Work;
use crate::outcome::{CallOutcome, Failure, NOTHING, Outcome, invalid, not_modelled, own_handle};
use crate::wait::{Then, Until};
use balar_host::call::{AllocationKind, BUILT_IN_MODULE, PointerDescription, VirtualMemoryCall};
use balar_host::memory::{MANAGED_BASE, Place, place_of};
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::managed::AdviceChange;
use balar_protocol::{ContextId, GpuDescription, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The memory of the node, for all processes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    devices: Devices,
    /// Pinned and managed memory.
    window: HostWindow,
    virtual_memory: VirtualMemory,
    /// The driver of unified memory.
    pub unified: UnifiedMemory,
    /// The memory that processes have opened of each other.
    imports: Imports,
    /// The allocations that streams are to free, by context.
    ending: BTreeMap<ContextId, BTreeSet<u64>>,
    /// Bytes of pinned and managed memory, the most at once.
    window_maximum: u64,
}

impl Memory {
    /// Nothing is allocated. `reservable`, by GPU: addresses without memory that programs can reserve.
    /// There is pinned and managed memory where there is a host window, and pages move where there is a driver of unified memory.
    pub fn new(
        gpus: &[GpuDescription],
        reservable: &[Range<u64>],
        has_host_window: bool,
        has_unified_memory: bool,
    ) -> Memory {
        Memory {
            devices: Devices::new(gpus),
            window: HostWindow::new(has_host_window),
            virtual_memory: VirtualMemory::new(reservable),
            unified: UnifiedMemory::new(has_unified_memory),
            imports: Imports::default(),
            ending: BTreeMap::new(),
            window_maximum: 0,
        }
    }

    /// Bytes of pinned and managed memory, the most at once; the same of one GPU's memory.
    pub fn maxima(&self) -> (u64, u64) {
        (self.window_maximum, self.devices.maximum())
    }

    /// Bytes of a GPU's memory that are not allocated, and all bytes; 0 for a GPU that does not exist.
    pub fn of_gpu(&self, gpu: usize) -> (u64, u64) {
        let Some(memory) = self.devices.all().get(gpu) else { return (0, 0) };
        (memory.capacity().saturating_sub(memory.reserved()), memory.capacity())
    }

    /// Device memory that a program asks for: where an allocation begins.
    pub fn allocate_device(&mut self, context: ContextId, bytes: u64, effects: &mut Effects) -> Result<u64, Failure> {
        let address = self.devices.allocate(context, bytes)?;
        effects.change(MemoryChange::Map { process: context.process(), address, bytes });
        self.devices.note_taken(context);
        Ok(address)
    }

    /// Device memory that a kernel finds with these bytes in it.
    pub fn allocate_with(&mut self, context: ContextId, value: &[u8], effects: &mut Effects) -> Result<u64, Failure> {
        let bytes = value.len() as u64;
        let address = self.devices.allocate(context, bytes)?;
        effects.change(MemoryChange::Map { process: context.process(), address, bytes });
        effects.change(MemoryChange::Write { address, bytes: value.into() });
        Ok(address)
    }

    /// An allocation of a context ends, and another of so many bytes takes its place. Gives its address.
    pub fn replace(
        &mut self,
        context: ContextId,
        address: u64,
        bytes: u64,
        effects: &mut Effects,
    ) -> Result<u64, Failure> {
        self.end(address, effects);
        self.devices.allocate(context, bytes)
    }

    /// Pinned or managed memory: whole pages, for a program maps it.
    fn allocate_window(
        &mut self,
        context: ContextId,
        kind: AllocationKind,
        bytes: u64,
        effects: &mut Effects,
    ) -> CallOutcome {
        let allocated = self.window.allocate(kind, context, bytes);
        let address = allocated.map_err(|error| (CudaError::MemoryAllocation, format!("host window: {error}")))?;
        effects.change(MemoryChange::Map { process: context.process(), address, bytes });
        if kind == AllocationKind::Managed {
            self.unified.allocated(context.process(), address, bytes, effects);
        }
        self.window_maximum = self.window_maximum.max(self.window.reserved());
        Ok(Outcome::pointer(address))
    }

    /// Memory for the modules of a context.
    pub fn for_modules(&mut self, context: ContextId) -> ModuleRoom<'_> {
        let Memory { devices, window, unified, .. } = self;
        ModuleRoom::new(context, devices.of(context), window, unified)
    }

    /// A module was loaded in a context.
    pub fn module_loaded(&mut self, context: ContextId) {
        self.devices.note_taken(context);
    }

    /// An allocation ends, now that nothing uses it.
    pub fn end(&mut self, address: u64, effects: &mut Effects) {
        let freed = match place_of(address) {
            Place::Device(device) => {
                let Some(memory) = self.devices.all_mut().get_mut(device as usize) else { return };
                let owner = memory.owner(address);
                let unused = memory.free(address);
                if let Some(owner) = owner {
                    self.is_not_ending(ContextId::new(owner, device as usize), address);
                }
                effects.zero(unused.clone().unwrap_or_default());
                unused.is_some()
            }
            Place::HostWindow => {
                let kind = self.window.free(address);
                if kind == Some(AllocationKind::Managed) {
                    self.unified.freed(address, effects);
                }
                kind.is_some()
            }
            Place::Elsewhere => false,
        };
        if freed {
            self.imports.forget(address);
            effects.change(MemoryChange::Unmap { address });
        }
    }

    /// No stream is to free an allocation of the context any more.
    pub fn is_not_ending(&mut self, context: ContextId, address: u64) {
        if let Some(ending) = self.ending.get_mut(&context) {
            ending.remove(&address);
        }
    }

    fn is_ending(&self, context: ContextId, address: u64) -> bool {
        self.ending.get(&context).is_some_and(|ending| ending.contains(&address))
    }

    /// The owner of an address: the owner of the memory that is mapped there, or the owner that the address alone names.
    pub fn place_of(&self, address: u64) -> Place {
        self.virtual_memory.place_of(address)
    }

    /// Is the whole range inside one allocation that the process may access, or in mapped memory that some device may access? The variables
    /// of built-in modules are allocated from the start.
    pub fn is_allocated(&self, process: ProcessId, address: u64, bytes: u64, symbols: &SymbolTable) -> bool {
        if self.virtual_memory.is_reservable(address) {
            return self.virtual_memory.is_accessible(process, address, bytes);
        }
        match place_of(address) {
            Place::Device(device) => {
                let gpu = device as usize;
                let Some(memory) = self.devices.all().get(gpu) else { return false };
                let built_in = ContextId::new(process, gpu);
                match memory.holder(address, bytes) {
                    Some((base, owner)) => owner == process || self.imports.holds(process, base),
                    None => address >= memory.end() && symbols.holds(built_in, BUILT_IN_MODULE, address, bytes),
                }
            }
            Place::HostWindow => self.window.contains(process, address, bytes),
            Place::Elsewhere => false,
        }
    }

    /// A call about memory. `has_ended_processes`: are there ended processes that have not given their memory back yet?
    pub fn call(
        &mut self,
        context: ContextId,
        call: Call,
        order: &Order,
        has_ended_processes: bool,
        effects: &mut Effects,
    ) -> CallOutcome {
        let process = context.process();
        match call {
            Call::Malloc { bytes: 0 } | Call::MallocAsync { bytes: 0, .. } | Call::MallocHost { bytes: 0 } => {
                Ok(Outcome::pointer(0))
            }
            Call::MallocManaged { bytes: 0 } => Err(invalid("managed memory of 0 bytes".to_owned())),
            Call::Malloc { bytes } => {
                let allocated = self.allocate_device(context, bytes, effects);
                or_wait_for_ended(allocated, has_ended_processes, Call::Malloc { bytes })
            }
            Call::MallocAsync { bytes, stream } => {
                let again = Call::MallocAsync { bytes, stream };
                match self.allocate_device(context, bytes, effects) {
                    // What streams are to free may make room.
                    Err(_) if self.ending.get(&context).is_some_and(|ending| !ending.is_empty()) => {
                        Ok(Outcome::waits(order.end_of_context(context), Then::Again(Box::new(again))))
                    }
                    allocated => or_wait_for_ended(allocated, has_ended_processes, again),
                }
            }
            Call::MallocHost { bytes } => self.allocate_window(context, AllocationKind::Host, bytes, effects),
            Call::MallocManaged { bytes } => self.allocate_window(context, AllocationKind::Managed, bytes, effects),
            Call::Free { pointer: 0 } | Call::FreeHost { pointer: 0 } => NOTHING,
            Call::Free { pointer } => {
                let owner = self.owner_of(process, pointer)?;
                let until = if self.unified.exists() && self.window.get(pointer).is_some() {
                    // Pages may be on their way to any GPU.
                    order.end_of_process(process)
                } else {
                    order.end_of_context(owner)
                };
                Ok(Outcome::waits(until, Then::Free(pointer)))
            }
            Call::FreeHost { pointer } => {
                let is_its = |(kind, owner): (AllocationKind, ContextId)| {
                    kind == AllocationKind::Host && owner.process() == process
                };
                if !self.window.get(pointer).is_some_and(is_its) {
                    return Err(invalid(format!("no pinned memory begins at {pointer:#x}")));
                }
                Ok(Outcome::waits(order.end_of_process(process), Then::Free(pointer)))
            }
            Call::MemoryInfo => {
                let (free, total) = self.of_gpu(context.gpu());
                Ok(Outcome::Returns(CallResult::MemoryInfo { free, total }))
            }
            Call::PointerInfo { pointer } => {
                Ok(Outcome::Returns(CallResult::PointerInfo(self.describe(process, pointer))))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// A call of virtual memory management. `end`: the end of all that the process was asked for so far.
    pub fn virtual_memory_call(
        &mut self,
        context: ContextId,
        call: VirtualMemoryCall,
        end: Until,
        effects: &mut Effects,
    ) -> CallOutcome {
        self.virtual_memory.call(context, call, end, &mut self.devices, effects)
    }

    /// Mappings end, now that nothing uses them.
    pub fn unmap(&mut self, process: ProcessId, pointer: u64, bytes: u64, effects: &mut Effects) {
        self.virtual_memory.unmap(process, pointer, bytes, &mut self.devices, effects);
    }

    /// Advice, and the program's own accesses of managed memory.
    pub fn managed_call(&mut self, process: ProcessId, call: Call, effects: &mut Effects) -> CallOutcome {
        match call {
            Call::Advise { pointer, bytes, advice } => {
                self.check_managed(process, pointer, bytes)?;
                let location = match advice {
                    AdviceChange::PreferredLocation(location) | AdviceChange::AccessedBy(location, _) => location,
                    AdviceChange::ReadMostly(_) | AdviceChange::NoPreferredLocation => None,
                };
                self.check_location(location.map(u32::from))?;
                self.unified.advise(pointer, bytes, advice, effects);
                NOTHING
            }
            Call::TouchManaged { pointer, bytes, write } => {
                self.check_managed(process, pointer, bytes)?;
                Ok(self.unified.touch((pointer, bytes), write, effects, Then::Touched))
            }
            Call::AssumeHostAccesses => {
                self.unified.assume_host_accesses(process, &self.window, effects);
                NOTHING
            }
            Call::WriteManaged { pointer, data } => {
                self.check_managed(process, pointer, data.len())?;
                let bytes = data.data().cloned().unwrap_or_default();
                Ok(self.unified.touch((pointer, data.len()), true, effects, |_| Then::Write(pointer, bytes)))
            }
            Call::ReadManaged { pointer, bytes } => {
                self.check_managed(process, pointer, bytes)?;
                Ok(self.unified.touch((pointer, bytes), false, effects, |_| Then::Read(pointer, bytes)))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// The work of a prefetch in its stream. `target`: a GPU, or `None` for the host.
    pub fn prefetch(&self, process: ProcessId, pointer: u64, bytes: u64, target: Option<u32>) -> Result<Work, Failure> {
        self.check_location(target)?;
        self.check_managed(process, pointer, bytes)?;
        Ok(self.unified.prefetch(pointer, bytes, target))
    }

    /// The next step when a process has waited for a device.
    pub fn after_synchronisation(&self, process: ProcessId) -> Then {
        self.unified.after_synchronisation(process, &self.window)
    }

    /// The next step when a process has waited for a stream or an event.
    pub fn after_wait(&self, process: ProcessId) -> Then {
        self.unified.after_wait(process, &self.window)
    }

    /// Tells the changes of memory that is not managed, before work uses it.
    pub fn tell_reserved(&mut self, into: &mut Vec<Effect>) {
        let reserved = self.devices.all().iter().map(|memory| memory.reserved());
        self.unified.tell_reserved(reserved, into);
    }

    /// Work that ends an allocation of a device in the order of a stream. Nothing ends at address 0.
    pub fn free_in_order(&mut self, process: ProcessId, pointer: u64) -> Result<Work, Failure> {
        if pointer == 0 {
            return Ok(Work::Free(0));
        }
        if !matches!(place_of(pointer), Place::Device(_)) {
            return Err(no_allocation(pointer));
        }
        let owner = self.owner_of(process, pointer)?;
        self.ending.entry(owner).or_default().insert(pointer);
        Ok(Work::Free(pointer))
    }

    /// The handle by which other processes can open an allocation.
    pub fn handle_of(&self, process: ProcessId, pointer: u64) -> Result<u64, Failure> {
        match self.devices.at(pointer).and_then(|memory| memory.allocation_of(pointer)) {
            Some((base, _, owner)) if owner == process => Ok(base),
            _ => Err(invalid(format!("no device memory of this process is at {pointer:#x}"))),
        }
    }

    /// A process opens the memory of another one. Gives the GPU that has it.
    pub fn open(&mut self, process: ProcessId, base: u64, effects: &mut Effects) -> Result<Option<u32>, Failure> {
        match self.devices.at(base).and_then(|memory| memory.owner(base)) {
            None => return Err(invalid(format!("no device memory has the handle {base:#x}"))),
            Some(owner) if owner == process => return Err(own_handle()),
            Some(_) => {}
        }
        self.imports.open(process, base, effects);
        Ok(match place_of(base) {
            Place::Device(gpu) => Some(gpu),
            Place::HostWindow | Place::Elsewhere => None,
        })
    }

    /// Refuses to close memory that a process has not opened.
    pub fn check_open(&self, process: ProcessId, pointer: u64) -> Result<(), Failure> {
        if self.imports.holds(process, pointer) {
            return Ok(());
        }
        Err(invalid(format!("no memory of another process was opened at {pointer:#x}")))
    }

    /// Memory that a process has opened is closed once.
    pub fn close(&mut self, process: ProcessId, base: u64, effects: &mut Effects) {
        self.imports.close(process, base, effects);
    }

    /// All memory of a context ends that is not pinned: nothing uses it.
    pub fn end_context(&mut self, context: ContextId, effects: &mut Effects) {
        self.virtual_memory.end_context(context, &mut self.devices, effects);
        let starts: Vec<u64> = self.devices.of(context).starts(context.process()).collect();
        for address in starts {
            self.end(address, effects);
        }
        for address in self.window.managed_of(context) {
            self.end(address, effects);
        }
        self.ending.remove(&context);
    }

    /// A process is gone, and its contexts are: the rest of its memory ends.
    pub fn end_process(&mut self, process: ProcessId, effects: &mut Effects) {
        for address in self.window.of_process(process) {
            self.end(address, effects);
        }
        self.imports.close_all(process, effects);
        self.devices.all_mut().iter_mut().for_each(|memory| memory.forget(process));
        self.window.forget(process);
        self.unified.forget(process);
    }

    /// The context whose work a `cudaFree` of this address waits for.
    fn owner_of(&self, process: ProcessId, pointer: u64) -> Result<ContextId, Failure> {
        let owner = match place_of(pointer) {
            Place::Device(device) => {
                let owner = self.devices.at(pointer).and_then(|memory| memory.owner(pointer));
                let owner = owner.filter(|owner| *owner == process).map(|_| ContextId::new(process, device as usize));
                owner.filter(|&owner| !self.is_ending(owner, pointer))
            }
            Place::HostWindow => {
                let allocation = self.window.get(pointer);
                let is_its = |(kind, owner): &(AllocationKind, ContextId)| {
                    *kind == AllocationKind::Managed && owner.process() == process
                };
                allocation.filter(is_its).map(|(_, owner)| owner)
            }
            Place::Elsewhere => None,
        };
        owner.ok_or_else(|| no_allocation(pointer))
    }

    fn describe(&self, process: ProcessId, pointer: u64) -> Option<PointerDescription> {
        if let Some(mapped) = self.virtual_memory.describe(process, pointer) {
            return Some(mapped);
        }
        match place_of(pointer) {
            Place::Device(device) => {
                let (base, bytes, owner) = self.devices.at(pointer)?.allocation_of(pointer)?;
                if owner != process && !self.imports.holds(process, base) {
                    return None;
                }
                Some(PointerDescription { kind: AllocationKind::Device, device, base, bytes })
            }
            Place::HostWindow => {
                let (base, bytes, owner) = self.window.allocation_of(pointer)?;
                let (kind, context) = self.window.get(base)?;
                let device = context.gpu() as u32;
                (owner == process).then_some(PointerDescription { kind, device, base, bytes })
            }
            Place::Elsewhere => None,
        }
    }

    /// Refuses a range that is not wholly in one managed allocation of the process.
    fn check_managed(&self, process: ProcessId, pointer: u64, bytes: u64) -> Result<(), Failure> {
        if bytes > 0 && pointer >= MANAGED_BASE && self.window.contains(process, pointer, bytes) {
            return Ok(());
        }
        Err(invalid(format!("{bytes} bytes at {pointer:#x} are not managed memory")))
    }

    /// Refuses a GPU that there is not; the host is always there.
    fn check_location(&self, gpu: Option<u32>) -> Result<(), Failure> {
        gpu.map_or(Ok(()), |gpu| self.devices.check(gpu))
    }
}

/// The allocated address. Where there is no room, but ended processes have memory to give back, a wait for that.
fn or_wait_for_ended(allocated: Result<u64, Failure>, has_ended_processes: bool, again: Call) -> CallOutcome {
    if allocated.is_err() && has_ended_processes {
        return Ok(Outcome::waits(Until::EndedProcesses, Then::Again(Box::new(again))));
    }
    allocated.map(Outcome::pointer)
}

fn no_allocation(pointer: u64) -> Failure {
    invalid(format!("no allocation begins at {pointer:#x}"))
}
