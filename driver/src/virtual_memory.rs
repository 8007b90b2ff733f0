//! Virtual memory management: reserved addresses, memory without an address, and mappings that bring the two together.
//!
//! The simulator has no page tables: bytes are where their address says. So memory that is mapped has its bytes at the reserved
//! addresses, and while it is not, where it was set aside; they are copied when that changes, in no simulated time. One piece of
//! memory cannot be at two addresses at once. Whose memory a mapping is decides how copies to it are timed; kernels' accesses are
//! timed as those to their GPU's memory.

use crate::Driver;
use crate::allocator::{DeviceAllocator, OutOfMemory};
use crate::calls::{CallOutcome, NOTHING, Outcome};
use crate::effect::MemoryChange;
use crate::wait::{Then, Until, Wait};
use balar_host::CallResult;
use balar_host::CudaError;
use balar_host::call::{AllocationKind, GRANULARITY, MemoryAccess, PointerDescription, VirtualMemoryCall};
use balar_host::memory::{MAXIMUM_GPUS, Place, place_of};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

type Failure = (CudaError, String);

/// A range of addresses without memory.
#[derive(Debug, Serialize, Deserialize)]
struct Reservation {
    bytes: u64,
    process: ProcessId,
    /// The GPU whose addresses it is of.
    slot: usize,
    /// Where its place among them begins: before it, where it is aligned.
    taken: u64,
}

/// Memory that programs know by a handle.
#[derive(Debug, Serialize, Deserialize)]
struct Physical {
    context: ContextId,
    bytes: u64,
    /// Where it was set aside.
    place: u64,
    /// References of the program: it ends without them once it is not mapped.
    references: u64,
    mapped_at: Option<u64>,
    /// It was mapped before: its bytes are at `place` while it is not mapped.
    has_bytes: bool,
}

/// The first bytes of a memory at reserved addresses.
#[derive(Debug, Serialize, Deserialize)]
struct Mapping {
    bytes: u64,
    handle: u64,
    context: ContextId,
    access: [MemoryAccess; MAXIMUM_GPUS as usize],
}

impl Mapping {
    /// The GPUs that may access it.
    fn gpus(&self) -> u8 {
        let bits = self.access.iter().enumerate().filter(|(_, access)| **access != MemoryAccess::None);
        bits.fold(0, |set, (gpu, _)| set | 1 << gpu)
    }
}

/// All reserved addresses, and what is mapped there. Processes share the addresses: none can reserve what another one has.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VirtualMemory {
    /// By GPU: the addresses that can be reserved, and those of them that are.
    rooms: Vec<(Range<u64>, DeviceAllocator)>,
    reservations: BTreeMap<u64, Reservation>,
    /// By handle.
    memory: BTreeMap<u64, Physical>,
    /// By first address.
    mappings: BTreeMap<u64, Mapping>,
    next_handle: u64,
}

impl VirtualMemory {
    /// Nothing is reserved. By GPU: the addresses that can be.
    pub fn new(reservable: &[Range<u64>]) -> VirtualMemory {
        let room = |range: &Range<u64>| {
            let allocator = DeviceAllocator::new(range.start, range.end - range.start);
            (range.clone(), allocator)
        };
        VirtualMemory {
            rooms: reservable.iter().map(room).collect(),
            reservations: BTreeMap::new(),
            memory: BTreeMap::new(),
            mappings: BTreeMap::new(),
            next_handle: 1,
        }
    }

    /// Is it an address that can be reserved?
    pub fn is_reservable(&self, address: u64) -> bool {
        let Place::Device(slot) = place_of(address) else { return false };
        self.rooms.get(slot as usize).is_some_and(|(room, _)| room.contains(&address))
    }

    /// Is all of the range in mappings of the process that some device may access?
    pub fn is_accessible(&self, process: ProcessId, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        let mut at = address;
        while at < end {
            match self.mapping_of(process, at) {
                Some((start, mapping)) if mapping.gpus() != 0 => at = start + mapping.bytes,
                _ => return false,
            }
        }
        true
    }

    /// The mapping of the process that holds an address.
    pub fn describe(&self, process: ProcessId, address: u64) -> Option<PointerDescription> {
        let (base, mapping) = self.mapping_of(process, address)?;
        let device = mapping.context.gpu() as u32;
        Some(PointerDescription { kind: AllocationKind::Device, device, base, bytes: mapping.bytes })
    }

    fn mapping_of(&self, process: ProcessId, address: u64) -> Option<(u64, &Mapping)> {
        self.holder_of(address).filter(|(_, mapping)| mapping.context.process() == process)
    }

    /// The mapping of any process.
    fn holder_of(&self, address: u64) -> Option<(u64, &Mapping)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some((*start, mapping))
    }

    /// Where the mappings begin that the range consists of.
    fn whole_mappings(&self, process: ProcessId, pointer: u64, bytes: u64) -> Result<Vec<u64>, Failure> {
        let mut starts = Vec::new();
        let mut covered = 0;
        while covered < bytes {
            let mapping = pointer.checked_add(covered).and_then(|at| self.mappings.get(&at));
            let Some(mapping) = mapping.filter(|mapping| mapping.context.process() == process) else { break };
            starts.push(pointer + covered);
            covered += mapping.bytes;
        }
        if covered == bytes && bytes > 0 {
            return Ok(starts);
        }
        Err(invalid(format!("{bytes} bytes at {pointer:#x} are not one or several whole mappings")))
    }

    fn reserve(&mut self, context: ContextId, bytes: u64, alignment: u64) -> Result<u64, Failure> {
        let (process, slot) = (context.process(), context.gpu());
        check(&[bytes])?;
        if bytes == 0 || (alignment != 0 && !alignment.is_power_of_two()) {
            return Err(invalid(format!("addresses for {bytes} bytes, aligned to {alignment}")));
        }
        let exhausted = |slot: usize| {
            let text = format!("no {bytes} addresses are left behind the memory of device {slot}");
            (CudaError::MemoryAllocation, text)
        };
        let wanted = bytes.checked_add(alignment.saturating_sub(GRANULARITY)).ok_or_else(|| exhausted(slot))?;
        let (_, room) = self.rooms.get_mut(slot).ok_or_else(|| exhausted(slot))?;
        let taken = room.allocate(process, wanted).map_err(|_: OutOfMemory| exhausted(slot))?;
        let start = taken.next_multiple_of(alignment.max(GRANULARITY));
        self.reservations.insert(start, Reservation { bytes, process, slot, taken });
        Ok(start)
    }

    fn unreserve(&mut self, process: ProcessId, pointer: u64, bytes: u64) -> Result<(), Failure> {
        if self.reservations.get(&pointer).is_none_or(|range| range.bytes != bytes || range.process != process) {
            return Err(invalid(format!("no {bytes} addresses were reserved at {pointer:#x}")));
        }
        if let Some((at, _)) = self.mappings.range(pointer..pointer + bytes).next() {
            return Err(invalid(format!("memory is mapped at {at:#x}, so its addresses cannot be freed")));
        }
        self.end_reservation(pointer);
        Ok(())
    }

    fn end_reservation(&mut self, pointer: u64) {
        let Some(range) = self.reservations.remove(&pointer) else { return };
        if let Some((_, room)) = self.rooms.get_mut(range.slot) {
            let _was_taken = room.free(range.taken);
        }
    }

    /// Refuses addresses that are not reserved, or have memory already.
    fn check_free(&self, process: ProcessId, pointer: u64, bytes: u64) -> Result<(), Failure> {
        let reservation = self.reservations.range(..=pointer).next_back().filter(|(_, range)| range.process == process);
        let room = reservation.and_then(|(start, range)| range.bytes.checked_sub(pointer - start));
        if bytes == 0 || room.is_none_or(|room| room < bytes) {
            return Err(invalid(format!(
                "{bytes} bytes at {pointer:#x} are not inside one range of reserved addresses"
            )));
        }
        let before = self.mappings.range(..pointer + bytes).next_back();
        if before.is_some_and(|(start, mapping)| start + mapping.bytes > pointer) {
            return Err(invalid(format!("memory is mapped in the {bytes} bytes at {pointer:#x} already")));
        }
        Ok(())
    }

    fn find(&self, process: ProcessId, handle: u64) -> Result<&Physical, Failure> {
        let is_its = |memory: &&Physical| memory.references > 0 && memory.context.process() == process;
        // What is mapped alone has no handle any more.
        let memory = self.memory.get(&handle).filter(is_its);
        memory.ok_or_else(|| invalid(format!("no memory has the handle {handle}")))
    }
}

impl Driver {
    /// Whose memory an address is: that which is mapped there, or as the address alone says.
    pub(crate) fn place_of(&self, address: u64) -> Place {
        let mapping = self.state.virtual_memory.holder_of(address);
        mapping.map_or_else(|| place_of(address), |(_, mapping)| Place::Device(mapping.context.gpu() as u32))
    }

    /// A call of virtual memory management.
    pub(crate) fn virtual_memory_call(&mut self, context: ContextId, call: VirtualMemoryCall) -> CallOutcome {
        let process = context.process();
        let gives = |result| Ok(Outcome::Returns(result));
        match call {
            VirtualMemoryCall::Reserve { bytes, alignment } => self
                .state
                .virtual_memory
                .reserve(context, bytes, alignment)
                .and_then(|start| gives(CallResult::Pointer(start))),
            VirtualMemoryCall::Unreserve { pointer, bytes } => {
                self.state.virtual_memory.unreserve(process, pointer, bytes)?;
                NOTHING
            }
            VirtualMemoryCall::Create { bytes } => gives(CallResult::Object(self.create_memory(context, bytes)?)),
            VirtualMemoryCall::Release { handle } => {
                self.state.virtual_memory.find(process, handle)?;
                if let Some(memory) = self.state.virtual_memory.memory.get_mut(&handle) {
                    memory.references -= 1;
                }
                self.end_unused(handle);
                NOTHING
            }
            VirtualMemoryCall::Retain { pointer } => {
                let mapping = self.state.virtual_memory.mapping_of(process, pointer);
                let handle = mapping.map(|(_, mapping)| mapping.handle).ok_or_else(|| nothing_mapped(pointer))?;
                if let Some(memory) = self.state.virtual_memory.memory.get_mut(&handle) {
                    memory.references += 1;
                }
                gives(CallResult::Object(handle))
            }
            VirtualMemoryCall::Owner { handle } => {
                gives(CallResult::Owner(self.state.virtual_memory.find(process, handle)?.context.gpu() as u32))
            }
            VirtualMemoryCall::Map { pointer, bytes, handle } => {
                self.map(context, pointer, bytes, handle)?;
                NOTHING
            }
            VirtualMemoryCall::Unmap { pointer, bytes } => {
                self.state.virtual_memory.whole_mappings(process, pointer, bytes)?;
                let until = Until::ProcessBefore(process, self.state.operations.next());
                Ok(Outcome::Waits(Wait { until, then: Then::Unmap(pointer, bytes) }))
            }
            VirtualMemoryCall::SetAccess { pointer, bytes, devices } => {
                self.set_access(process, pointer, bytes, &devices)?;
                NOTHING
            }
            VirtualMemoryCall::GetAccess { pointer, device } => {
                let (_, mapping) =
                    self.state.virtual_memory.mapping_of(process, pointer).ok_or_else(|| nothing_mapped(pointer))?;
                self.check_device(device)?;
                let access = mapping.access.get(device as usize).copied().unwrap_or_default();
                gives(CallResult::Access(access))
            }
        }
    }

    fn check_device(&self, device: u32) -> Result<(), Failure> {
        let exists = (device as usize) < self.gpus.len();
        if exists { Ok(()) } else { Err((CudaError::InvalidDevice, format!("there is no device {device}"))) }
    }

    fn create_memory(&mut self, context: ContextId, bytes: u64) -> Result<u64, Failure> {
        check(&[bytes])?;
        if bytes == 0 {
            return Err(invalid("memory of 0 bytes".to_owned()));
        }
        let allocator = &mut self.state.memories[context.gpu()];
        let place = allocator.set_aside(context.process(), bytes);
        let place = place.map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        let reserved = allocator.reserved();
        self.state.totals.device_memory_maximum = self.state.totals.device_memory_maximum.max(reserved);
        let handle = self.state.virtual_memory.next_handle;
        self.state.virtual_memory.next_handle += 1;
        let memory = Physical { context, bytes, place, references: 1, mapped_at: None, has_bytes: false };
        self.state.virtual_memory.memory.insert(handle, memory);
        Ok(handle)
    }

    /// Ends a memory without references that is not mapped.
    fn end_unused(&mut self, handle: u64) {
        let is_used = |memory: &Physical| memory.references > 0 || memory.mapped_at.is_some();
        if self.state.virtual_memory.memory.get(&handle).is_none_or(is_used) {
            return;
        }
        if let Some(memory) = self.state.virtual_memory.memory.remove(&handle) {
            let unused = self.state.memories[memory.context.gpu()].free(memory.place);
            self.zero(unused.unwrap_or_default());
        }
    }

    fn map(&mut self, context: ContextId, pointer: u64, bytes: u64, handle: u64) -> Result<(), Failure> {
        let process = context.process();
        check(&[pointer, bytes])?;
        let memory = self.state.virtual_memory.find(process, handle)?;
        if bytes > memory.bytes {
            return Err(invalid(format!("{bytes} bytes of a memory of {}", memory.bytes)));
        }
        self.state.virtual_memory.check_free(process, pointer, bytes)?;
        if let Some(at) = memory.mapped_at {
            let text = format!("the memory is mapped at {at:#x}: memory at two addresses at once is not simulated");
            self.tell(process, &format!("cuMemMap: {text}"));
            return Err((CudaError::NotSupported, text));
        }
        let (context, place, has_bytes) = (memory.context, memory.place, memory.has_bytes);
        if has_bytes {
            self.change(MemoryChange::Copy { destination: pointer, source: place, bytes });
        }
        if let Some(memory) = self.state.virtual_memory.memory.get_mut(&handle) {
            memory.mapped_at = Some(pointer);
        }
        let access = [MemoryAccess::None; MAXIMUM_GPUS as usize];
        self.state.virtual_memory.mappings.insert(pointer, Mapping { bytes, handle, context, access });
        Ok(())
    }

    /// Mappings end, now that nothing uses them.
    pub(crate) fn unmap(&mut self, context: ContextId, pointer: u64, bytes: u64) {
        let process = context.process();
        // Another thread may have ended them meanwhile.
        for start in self.state.virtual_memory.whole_mappings(process, pointer, bytes).unwrap_or_default() {
            self.end_mapping(start);
        }
    }

    fn end_mapping(&mut self, start: u64) {
        let Some(mapping) = self.state.virtual_memory.mappings.remove(&start) else { return };
        if mapping.gpus() != 0 {
            self.change(MemoryChange::Unmap { address: start });
        }
        if let Some(memory) = self.state.virtual_memory.memory.get_mut(&mapping.handle) {
            memory.mapped_at = None;
            if memory.references > 0 {
                memory.has_bytes = true;
                let destination = memory.place;
                self.change(MemoryChange::Copy { destination, source: start, bytes: mapping.bytes });
            }
        }
        // What is mapped there next begins with bytes of its own, or with zeros.
        self.zero(start..start + mapping.bytes);
        self.end_unused(mapping.handle);
    }

    fn set_access(
        &mut self,
        process: ProcessId,
        pointer: u64,
        bytes: u64,
        devices: &[(u32, MemoryAccess)],
    ) -> Result<(), Failure> {
        let starts = self.state.virtual_memory.whole_mappings(process, pointer, bytes)?;
        devices.iter().try_for_each(|(device, _)| self.check_device(*device))?;
        for start in starts {
            let Some(mapping) = self.state.virtual_memory.mappings.get_mut(&start) else { continue };
            for (device, access) in devices {
                if let Some(place) = mapping.access.get_mut(*device as usize) {
                    *place = *access;
                }
            }
            let (bytes, owner) = (mapping.bytes, mapping.context);
            match mapping.gpus() {
                0 => self.change(MemoryChange::Unmap { address: start }),
                gpus => self.change(MemoryChange::Open { address: start, bytes, owner, gpus }),
            }
        }
        Ok(())
    }

    /// A context is reset: its memory ends, and what is mapped or reserved among its addresses.
    pub(crate) fn end_virtual_memory(&mut self, context: ContextId) {
        let is_its = |(start, mapping): (&u64, &Mapping)| {
            let slot = place_of(*start) == Place::Device(context.gpu() as u32);
            let is_its = slot && mapping.context.process() == context.process();
            (is_its || mapping.context == context).then_some(*start)
        };
        let mappings: Vec<u64> = self.state.virtual_memory.mappings.iter().filter_map(is_its).collect();
        for start in mappings {
            self.end_mapping(start);
        }
        for memory in self.state.virtual_memory.memory.values_mut().filter(|memory| memory.context == context) {
            memory.references = 0;
        }
        let handles: Vec<u64> = self.state.virtual_memory.memory.keys().copied().collect();
        for handle in handles {
            self.end_unused(handle);
        }
        let reservations = self
            .state
            .virtual_memory
            .reservations
            .iter()
            .filter(|(_, range)| range.slot == context.gpu() && range.process == context.process());
        let reservations: Vec<u64> = reservations.map(|(start, _)| *start).collect();
        for start in reservations {
            self.state.virtual_memory.end_reservation(start);
        }
    }
}

/// Refuses what is no multiple of the granularity.
fn check(values: &[u64]) -> Result<(), Failure> {
    match values.iter().find(|value| !value.is_multiple_of(GRANULARITY)) {
        Some(value) => Err(invalid(format!("{value:#x} is no multiple of {GRANULARITY:#x}"))),
        None => Ok(()),
    }
}

fn nothing_mapped(pointer: u64) -> Failure {
    invalid(format!("no memory is mapped at {pointer:#x}"))
}

fn invalid(text: String) -> Failure {
    (CudaError::InvalidValue, text)
}
