//! Managed memory, prefetches, and advice about it. Advice goes to the simulator and is kept here as well, for programs that ask.

use crate::abi::arguments::In;
use crate::abi::pool::{MemLocation, location_type};
use crate::abi::stream::StreamHandle;
use crate::session::addresses::pointer::{Known, known};
use crate::session::addresses::ranges::{self, Sharing};
use crate::session::connection::{self, description};
use crate::session::order::operation::Operation;
use crate::session::order::{batch, enqueue};
use balar_host::call::{AdviceChange, AllocationKind};
use balar_host::{Call, CudaError};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaCpuDeviceId`.
const CPU: c_int = -1;
/// `cudaInvalidDeviceId`.
const INVALID: c_int = -2;
/// `cudaMemAttachGlobal`, `cudaMemAttachHost`.
const ATTACHMENTS: std::ops::RangeInclusive<u32> = 1..=2;

const NOWHERE: MemLocation = MemLocation { kind: 0, id: INVALID };

/// The location that a number of the older functions means: a device, or `cudaCpuDeviceId`.
pub fn location_of(device: c_int) -> MemLocation {
    if device == CPU {
        MemLocation { kind: location_type::HOST, id: 0 }
    } else {
        MemLocation { kind: location_type::DEVICE, id: device }
    }
}

/// The device at a location; `None` for the host.
fn device_at(location: MemLocation) -> Result<Option<u32>, CudaError> {
    match location.kind {
        location_type::DEVICE => description::device_of(location.id).map(|_| Some(location.id as u32)),
        location_type::HOST | location_type::HOST_NUMA | location_type::HOST_NUMA_CURRENT => Ok(None),
        _ => Err(CudaError::InvalidValue),
    }
}

/// A location as a number of the older functions.
fn number_of(location: MemLocation) -> c_int {
    match location.kind {
        0 => INVALID,
        location_type::DEVICE => location.id,
        _ => CPU,
    }
}

/// The program's advice, by the start of the allocation.
static ADVICE: Mutex<BTreeMap<u64, Advice>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Debug)]
struct Advice {
    read_mostly: bool,
    preferred: MemLocation,
    accessed_by: Vec<c_int>,
    prefetched: MemLocation,
}

impl Default for Advice {
    fn default() -> Self {
        Advice { read_mostly: false, preferred: NOWHERE, accessed_by: Vec::new(), prefetched: NOWHERE }
    }
}

impl Advice {
    fn take(&mut self, change: AdviceChange, location: MemLocation) {
        let number = number_of(location);
        match change {
            AdviceChange::ReadMostly(set) => self.read_mostly = set,
            AdviceChange::PreferredLocation(_) => self.preferred = location,
            AdviceChange::NoPreferredLocation => self.preferred = NOWHERE,
            AdviceChange::AccessedBy(_, true) if self.accessed_by.contains(&number) => {}
            AdviceChange::AccessedBy(_, true) => self.accessed_by.push(number),
            AdviceChange::AccessedBy(_, false) => self.accessed_by.retain(|other| *other != number),
        }
    }
}

fn advice() -> MutexGuard<'static, BTreeMap<u64, Advice>> {
    ADVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates managed memory.
pub fn allocate(bytes: usize, flags: u32) -> Result<u64, CudaError> {
    if bytes == 0 || !ATTACHMENTS.contains(&flags) {
        return Err(CudaError::InvalidValue);
    }
    ranges::allocate(Sharing::Managed, bytes as u64, flags)
}

/// The start of the managed allocation that the range is in, all of it.
fn managed(address: u64, bytes: usize) -> Result<u64, CudaError> {
    description::description()?;
    let holds = |known: &Known| {
        let room = known.bytes - (address - known.base);
        known.kind == AllocationKind::Managed && (1..=room).contains(&(bytes as u64))
    };
    known(address)?.filter(holds).map(|known| known.base).ok_or(CudaError::InvalidValue)
}

/// The end of managed memory: nothing advised is kept.
pub fn forget(start: u64) {
    advice().remove(&start);
}

/// The change by advice of this kind (`cudaMemoryAdvise`). Advice that needs no location has any.
fn change_of(kind: c_int, location: MemLocation) -> Result<AdviceChange, CudaError> {
    let place = || {
        let device = device_at(location)?;
        device.map(|device| u8::try_from(device).map_err(|_| CudaError::InvalidDevice)).transpose()
    };
    match kind {
        1 => Ok(AdviceChange::ReadMostly(true)),
        2 => Ok(AdviceChange::ReadMostly(false)),
        3 => Ok(AdviceChange::PreferredLocation(place()?)),
        4 => Ok(AdviceChange::NoPreferredLocation),
        5 => Ok(AdviceChange::AccessedBy(place()?, true)),
        6 => Ok(AdviceChange::AccessedBy(place()?, false)),
        _ => Err(CudaError::InvalidValue),
    }
}

/// Advice about managed memory (`cudaMemAdvise`).
pub fn advise(address: u64, bytes: usize, kind: c_int, location: MemLocation) -> Result<(), CudaError> {
    let start = managed(address, bytes)?;
    let change = change_of(kind, location)?;
    connection::done(&Call::Advise { pointer: address, bytes: bytes as u64, advice: change })?;
    advice().entry(start).or_default().take(change, location);
    Ok(())
}

/// Prefetches managed memory to a location, in the order of a stream. `flags` are 0.
pub fn prefetch(
    address: u64,
    bytes: usize,
    location: MemLocation,
    flags: u32,
    stream: StreamHandle,
) -> Result<(), CudaError> {
    if flags != 0 {
        return Err(CudaError::InvalidValue);
    }
    let start = managed(address, bytes)?;
    let device = device_at(location)?;
    let call = Call::Prefetch { pointer: address, bytes: bytes as u64, device, stream: 0 };
    enqueue::enqueue(stream, Operation::Call(call), true)?;
    advice().entry(start).or_default().prefetched = location;
    Ok(())
}

/// Ranges of managed memory that a call does something with at once: their addresses and sizes, each in one allocation.
#[derive(Clone, Copy, Debug)]
pub struct RangeBatch {
    /// The first address of each range.
    pub pointers: In<u64>,
    /// The bytes of each range.
    pub sizes: In<usize>,
    /// How many there are.
    pub count: usize,
    /// Must be 0.
    pub flags: u64,
}

impl RangeBatch {
    /// The ranges, which are worked on in the order of a stream.
    fn ranges(self, stream: StreamHandle) -> Result<Vec<(u64, usize)>, CudaError> {
        let RangeBatch { pointers, sizes, count, flags } = self;
        batch::check_stream(stream)?;
        if count == 0 || flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        let ranges: Vec<(u64, usize)> = pointers.array(count)?.into_iter().zip(sizes.array(count)?).collect();
        ranges.iter().try_for_each(|&(pointer, bytes)| managed(pointer, bytes).map(drop))?;
        Ok(ranges)
    }
}

/// Where ranges of a batch go: each location is for the ranges from its first one on.
#[derive(Clone, Copy, Debug)]
pub struct BatchLocations {
    /// The locations.
    pub locations: In<MemLocation>,
    /// The number of the first range of each location.
    pub firsts: In<usize>,
    /// How many there are.
    pub kinds: usize,
}

/// Prefetches ranges, in the order of a stream. Contents that are discarded before may come as they are.
pub fn prefetch_batch(asked: RangeBatch, to: BatchLocations, stream: StreamHandle) -> Result<(), CudaError> {
    let BatchLocations { locations, firsts, kinds } = to;
    let ranges = asked.ranges(stream)?;
    let firsts = batch::firsts(firsts, kinds, asked.count)?;
    let locations = locations.array(kinds)?;
    locations.iter().try_for_each(|location| device_at(*location).map(drop))?;
    for (index, (pointer, bytes)) in ranges.into_iter().enumerate() {
        let location = locations[firsts.partition_point(|first| *first <= index) - 1];
        prefetch(pointer, bytes, location, 0, stream)?;
    }
    Ok(())
}

/// Discards the contents of ranges, in the order of a stream: they may stay as they are.
pub fn discard_batch(asked: RangeBatch, stream: StreamHandle) -> Result<(), CudaError> {
    asked.ranges(stream).map(drop)
}

/// Writes the value of a `cudaMemRangeAttribute`.
///
/// # Safety
///
/// `place` is null or valid for writing `room` bytes.
pub unsafe fn attribute(
    place: *mut c_void,
    room: usize,
    attribute: c_int,
    address: u64,
    bytes: usize,
) -> Result<(), CudaError> {
    let start = managed(address, bytes)?;
    if place.is_null() || room < size_of::<c_int>() || !room.is_multiple_of(size_of::<c_int>()) {
        return Err(CudaError::InvalidValue);
    }
    let advice = advice().get(&start).cloned().unwrap_or_default();
    let values = match attribute {
        1 => vec![c_int::from(advice.read_mostly)],
        2 => vec![number_of(advice.preferred)],
        3 => {
            let mut devices = advice.accessed_by;
            devices.resize(room / size_of::<c_int>(), INVALID);
            devices
        }
        4 => vec![number_of(advice.prefetched)],
        5 => vec![advice.preferred.kind as c_int],
        6 => vec![advice.preferred.id],
        7 => vec![advice.prefetched.kind as c_int],
        8 => vec![advice.prefetched.id],
        _ => return Err(CudaError::InvalidValue),
    };
    for (index, value) in values.into_iter().enumerate() {
        // SAFETY: there is room for as many as `room` says, and for one at least.
        unsafe { place.cast::<c_int>().add(index).write_unaligned(value) };
    }
    Ok(())
}

/// Writes the values of several attributes.
///
/// # Safety
///
/// The arrays have `count` entries, each a place and the bytes that it has.
pub unsafe fn attributes(
    places: In<*mut c_void>,
    rooms: In<usize>,
    kinds: In<c_int>,
    count: usize,
    (address, bytes): (u64, usize),
) -> Result<(), CudaError> {
    if count == 0 {
        return Err(CudaError::InvalidValue);
    }
    let (places, rooms, kinds) = (places.array(count)?, rooms.array(count)?, kinds.array(count)?);
    for ((place, room), kind) in places.into_iter().zip(rooms).zip(kinds) {
        // SAFETY: the caller's promise.
        unsafe { attribute(place, room, kind, address, bytes)? };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_devices_or_the_host() {
        assert_eq!(device_at(location_of(CPU)), Ok(None));
        assert_eq!(location_of(3), MemLocation { kind: 1, id: 3 });
        assert_eq!(number_of(location_of(CPU)), CPU);
        assert_eq!(device_at(NOWHERE), Err(CudaError::InvalidValue));
        assert_eq!(number_of(NOWHERE), INVALID);
    }

    #[test]
    fn only_advice_with_a_location_has_one() {
        use AdviceChange::{AccessedBy, NoPreferredLocation, PreferredLocation, ReadMostly};
        let nowhere = |kind| change_of(kind, NOWHERE);
        assert_eq!([1, 2, 4].map(nowhere), [Ok(ReadMostly(true)), Ok(ReadMostly(false)), Ok(NoPreferredLocation)]);
        assert_eq!([0, 3, 5, 6, 7].map(nowhere), [Err(CudaError::InvalidValue); 5]);
        let host = |kind| change_of(kind, location_of(CPU));
        let expected = [PreferredLocation(None), AccessedBy(None, true), AccessedBy(None, false)];
        assert_eq!([3, 5, 6].map(host), expected.map(Ok));
    }

    #[test]
    fn advice_is_kept_until_it_is_taken_back() {
        let (gpu, host) = (location_of(1), location_of(CPU));
        let mut advice = Advice::default();
        for (change, location) in [
            (AdviceChange::ReadMostly(true), NOWHERE),
            (AdviceChange::PreferredLocation(Some(1)), gpu),
            (AdviceChange::AccessedBy(Some(1), true), gpu),
            (AdviceChange::AccessedBy(Some(1), true), gpu),
            (AdviceChange::AccessedBy(None, true), host),
        ] {
            advice.take(change, location);
        }
        assert_eq!((advice.read_mostly, advice.preferred, advice.accessed_by.clone()), (true, gpu, vec![1, CPU]));
        advice.take(AdviceChange::AccessedBy(Some(1), false), gpu);
        advice.take(AdviceChange::NoPreferredLocation, NOWHERE);
        advice.take(AdviceChange::ReadMostly(false), NOWHERE);
        assert_eq!((advice.read_mostly, advice.preferred, advice.accessed_by), (false, NOWHERE, vec![CPU]));
    }
}
