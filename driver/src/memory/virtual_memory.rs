//! Virtual memory management: reserved addresses, memory without an address, and mappings that bring the two together.
//!
//! The simulator has no page tables: bytes are where their address says. So memory that is mapped has its bytes at the reserved
//! addresses, and while it is not, where it was set aside; they are copied when that changes, in no simulated time. One piece of
//! memory cannot be at two addresses at once. Whose memory a mapping is decides how copies to it are timed; kernels' accesses are
//! timed as those to their GPU's memory.

use super::allocator::{DeviceAllocator, OutOfMemory};
use super::devices::Devices;
use crate::effect::{Effects, MemoryChange};
use crate::outcome::{CallOutcome, Failure, NOTHING, Outcome, invalid};
use crate::wait::{Then, Until};
use balar_host::CallResult;
use balar_host::CudaError;
use balar_host::call::{AllocationKind, GRANULARITY, MemoryAccess, PointerDescription, VirtualMemoryCall};
use balar_host::memory::{MAXIMUM_GPUS, Place, place_of};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

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

/// All reserved addresses, and the memory that is mapped there. Processes share the addresses: none can reserve what another one has.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VirtualMemory {
    /// The addresses that can be reserved, and the ones that are reserved, by GPU.
    rooms: Vec<(Range<u64>, DeviceAllocator)>,
    reservations: BTreeMap<u64, Reservation>,
    /// Physical memory, by handle.
    memory: BTreeMap<u64, Physical>,
    /// Mappings, by first address.
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

    /// The owner of an address: the owner of the memory that is mapped there, or the owner that the address alone names.
    pub fn place_of(&self, address: u64) -> Place {
        let mapping = self.holder_of(address);
        mapping.map_or_else(|| place_of(address), |(_, mapping)| Place::Device(mapping.context.gpu() as u32))
    }

    /// A call of virtual memory management. `end`: the end of all that the process was asked for so far.
    pub fn call(
        &mut self,
        context: ContextId,
        call: VirtualMemoryCall,
        end: Until,
        devices: &mut Devices,
        effects: &mut Effects,
    ) -> CallOutcome {
        let process = context.process();
        let gives = |result| Ok(Outcome::Returns(result));
        match call {
            VirtualMemoryCall::Reserve { bytes, alignment } => {
                self.reserve(context, bytes, alignment).and_then(|start| gives(CallResult::Pointer(start)))
            }
            VirtualMemoryCall::Unreserve { pointer, bytes } => {
                self.unreserve(process, pointer, bytes)?;
                NOTHING
            }
            VirtualMemoryCall::Create { bytes } => gives(CallResult::Object(self.create(context, bytes, devices)?)),
            VirtualMemoryCall::Release { handle } => {
                self.find(process, handle)?;
                if let Some(memory) = self.memory.get_mut(&handle) {
                    memory.references -= 1;
                }
                self.end_unused(handle, devices, effects);
                NOTHING
            }
            VirtualMemoryCall::Retain { pointer } => {
                let mapping = self.mapping_of(process, pointer);
                let handle = mapping.map(|(_, mapping)| mapping.handle).ok_or_else(|| nothing_mapped(pointer))?;
                if let Some(memory) = self.memory.get_mut(&handle) {
                    memory.references += 1;
                }
                gives(CallResult::Object(handle))
            }
            VirtualMemoryCall::Owner { handle } => {
                gives(CallResult::Owner(self.find(process, handle)?.context.gpu() as u32))
            }
            VirtualMemoryCall::Map { pointer, bytes, handle } => {
                self.map(process, (pointer, bytes), handle, effects)?;
                NOTHING
            }
            VirtualMemoryCall::Unmap { pointer, bytes } => {
                self.whole_mappings(process, pointer, bytes)?;
                Ok(Outcome::waits(end, Then::Unmap(pointer, bytes)))
            }
            VirtualMemoryCall::SetAccess { pointer, bytes, devices: accesses } => {
                let starts = self.whole_mappings(process, pointer, bytes)?;
                accesses.iter().try_for_each(|(device, _)| devices.check(*device))?;
                starts.into_iter().for_each(|start| self.set_access(start, &accesses, effects));
                NOTHING
            }
            VirtualMemoryCall::GetAccess { pointer, device } => {
                let (_, mapping) = self.mapping_of(process, pointer).ok_or_else(|| nothing_mapped(pointer))?;
                devices.check(device)?;
                let access = mapping.access.get(device as usize).copied().unwrap_or_default();
                gives(CallResult::Access(access))
            }
        }
    }

    fn create(&mut self, context: ContextId, bytes: u64, devices: &mut Devices) -> Result<u64, Failure> {
        check(&[bytes])?;
        if bytes == 0 {
            return Err(invalid("memory of 0 bytes".to_owned()));
        }
        let place = devices.set_aside(context, bytes)?;
        let handle = self.next_handle;
        self.next_handle += 1;
        let memory = Physical { context, bytes, place, references: 1, mapped_at: None, has_bytes: false };
        self.memory.insert(handle, memory);
        Ok(handle)
    }

    /// Ends a memory without references that is not mapped.
    fn end_unused(&mut self, handle: u64, devices: &mut Devices, effects: &mut Effects) {
        let is_used = |memory: &Physical| memory.references > 0 || memory.mapped_at.is_some();
        if self.memory.get(&handle).is_none_or(is_used) {
            return;
        }
        if let Some(memory) = self.memory.remove(&handle) {
            let unused = devices.of(memory.context).free(memory.place);
            effects.zero(unused.unwrap_or_default());
        }
    }

    fn map(
        &mut self,
        process: ProcessId,
        (pointer, bytes): (u64, u64),
        handle: u64,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        check(&[pointer, bytes])?;
        let memory = self.find(process, handle)?;
        if bytes > memory.bytes {
            return Err(invalid(format!("{bytes} bytes of a memory of {}", memory.bytes)));
        }
        self.check_free(process, pointer, bytes)?;
        if let Some(at) = memory.mapped_at {
            let text = format!("the memory is mapped at {at:#x}: memory at two addresses at once is not simulated");
            effects.tell(process, &format!("cuMemMap: {text}"));
            return Err((CudaError::NotSupported, text));
        }
        let (context, place, has_bytes) = (memory.context, memory.place, memory.has_bytes);
        if has_bytes {
            effects.change(MemoryChange::Copy { destination: pointer, source: place, bytes });
        }
        if let Some(memory) = self.memory.get_mut(&handle) {
            memory.mapped_at = Some(pointer);
        }
        let access = [MemoryAccess::None; MAXIMUM_GPUS as usize];
        self.mappings.insert(pointer, Mapping { bytes, handle, context, access });
        Ok(())
    }

    /// Mappings end, now that nothing uses them.
    pub fn unmap(
        &mut self,
        process: ProcessId,
        pointer: u64,
        bytes: u64,
        devices: &mut Devices,
        effects: &mut Effects,
    ) {
        // Another thread may have ended them meanwhile.
        for start in self.whole_mappings(process, pointer, bytes).unwrap_or_default() {
            self.end_mapping(start, devices, effects);
        }
    }

    fn end_mapping(&mut self, start: u64, devices: &mut Devices, effects: &mut Effects) {
        let Some(mapping) = self.mappings.remove(&start) else { return };
        if mapping.gpus() != 0 {
            effects.change(MemoryChange::Unmap { address: start });
        }
        if let Some(memory) = self.memory.get_mut(&mapping.handle) {
            memory.mapped_at = None;
            if memory.references > 0 {
                memory.has_bytes = true;
                let destination = memory.place;
                effects.change(MemoryChange::Copy { destination, source: start, bytes: mapping.bytes });
            }
        }
        // The next memory that is mapped there begins with bytes of its own, or with zeros.
        effects.zero(start..start + mapping.bytes);
        self.end_unused(mapping.handle, devices, effects);
    }

    /// Devices may access the mapping that begins there, or no longer.
    fn set_access(&mut self, start: u64, accesses: &[(u32, MemoryAccess)], effects: &mut Effects) {
        let Some(mapping) = self.mappings.get_mut(&start) else { return };
        for (device, access) in accesses {
            if let Some(before) = mapping.access.get_mut(*device as usize) {
                *before = *access;
            }
        }
        let (bytes, owner) = (mapping.bytes, mapping.context);
        effects.change(match mapping.gpus() {
            0 => MemoryChange::Unmap { address: start },
            gpus => MemoryChange::Open { address: start, bytes, owner, gpus },
        });
    }

    /// Resets a context: its memory ends, and so do mappings and reservations among its addresses.
    pub fn end_context(&mut self, context: ContextId, devices: &mut Devices, effects: &mut Effects) {
        let is_its = |(start, mapping): (&u64, &Mapping)| {
            let slot = place_of(*start) == Place::Device(context.gpu() as u32);
            let is_its = slot && mapping.context.process() == context.process();
            (is_its || mapping.context == context).then_some(*start)
        };
        let mappings: Vec<u64> = self.mappings.iter().filter_map(is_its).collect();
        for start in mappings {
            self.end_mapping(start, devices, effects);
        }
        for memory in self.memory.values_mut().filter(|memory| memory.context == context) {
            memory.references = 0;
        }
        let handles: Vec<u64> = self.memory.keys().copied().collect();
        for handle in handles {
            self.end_unused(handle, devices, effects);
        }
        let is_its = |range: &Reservation| range.slot == context.gpu() && range.process == context.process();
        let reservations = self.reservations.iter().filter(|(_, range)| is_its(range));
        let reservations: Vec<u64> = reservations.map(|(start, _)| *start).collect();
        for start in reservations {
            self.end_reservation(start);
        }
    }
}

/// Refuses a value that is no multiple of the granularity.
fn check(values: &[u64]) -> Result<(), Failure> {
    match values.iter().find(|value| !value.is_multiple_of(GRANULARITY)) {
        Some(value) => Err(invalid(format!("{value:#x} is no multiple of {GRANULARITY:#x}"))),
        None => Ok(()),
    }
}

fn nothing_mapped(pointer: u64) -> Failure {
    invalid(format!("no memory is mapped at {pointer:#x}"))
}
