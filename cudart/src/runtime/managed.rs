//! Managed memory, and advice about it. Every page is resident wherever it is used: advice changes nothing, and is kept.

use crate::abi::arguments::{In, Out};
use crate::abi::stream::StreamHandle;
use crate::cuda_api;
use crate::session::operation::{self, Operation};
use crate::session::process;
use crate::session::ranges::{self, Place, Sharing};
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

/// `cudaMemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// `cudaMemLocationType`.
    pub kind: c_int,
    /// The device, or node of the host.
    pub number: c_int,
}

impl Location {
    const INVALID: Location = Location { kind: 0, number: INVALID };
    const HOST: c_int = 2;

    /// A device, or `cudaCpuDeviceId`.
    pub fn of_device(device: c_int) -> Location {
        if device == CPU { Location { kind: Location::HOST, number: 0 } } else { Location { kind: 1, number: device } }
    }

    /// The device; `None` for the host.
    pub fn device(self) -> Result<Option<u32>, CudaError> {
        match self.kind {
            1 => process::device_of(self.number).map(|_| Some(self.number as u32)),
            // The host, one of its nodes, the node of the calling thread.
            2..=4 => Ok(None),
            _ => Err(CudaError::InvalidValue),
        }
    }

    /// As a number of the older functions.
    fn number_or_cpu(self) -> c_int {
        match self.kind {
            0 => INVALID,
            1 => self.number,
            _ => CPU,
        }
    }
}

/// What the program has advised, by the start of the allocation.
static ADVICE: Mutex<BTreeMap<u64, Advice>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Debug)]
struct Advice {
    read_mostly: bool,
    preferred: Location,
    accessed_by: Vec<c_int>,
    prefetched: Location,
}

impl Default for Advice {
    fn default() -> Self {
        Advice {
            read_mostly: false,
            preferred: Location::INVALID,
            accessed_by: Vec::new(),
            prefetched: Location::INVALID,
        }
    }
}

fn advice() -> MutexGuard<'static, BTreeMap<u64, Advice>> {
    ADVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The start of the managed allocation that the range is in.
fn managed(address: u64, bytes: usize) -> Result<u64, CudaError> {
    process::description()?;
    if bytes == 0 || !matches!(ranges::place(address, bytes as u64), Place::Managed(_)) {
        return Err(CudaError::InvalidValue);
    }
    Ok(ranges::find(address).map_or(address, |range| range.start))
}

/// The end of managed memory: nothing advised is kept.
pub fn forget(start: u64) {
    advice().remove(&start);
}

fn advise(address: u64, bytes: usize, kind: c_int, location: Location) -> Result<(), CudaError> {
    let start = managed(address, bytes)?;
    if (3..=6).contains(&kind) && kind != 4 {
        location.device()?;
    }
    let mut all = advice();
    let advice = all.entry(start).or_default();
    let number = location.number_or_cpu();
    match kind {
        1 => advice.read_mostly = true,
        2 => advice.read_mostly = false,
        3 => advice.preferred = location,
        4 => advice.preferred = Location::INVALID,
        5 => {
            if !advice.accessed_by.contains(&number) {
                advice.accessed_by.push(number);
            }
        }
        6 => advice.accessed_by.retain(|other| *other != number),
        _ => return Err(CudaError::InvalidValue),
    }
    Ok(())
}

fn prefetch(address: u64, bytes: usize, location: Location, stream: StreamHandle) -> Result<(), CudaError> {
    let start = managed(address, bytes)?;
    let device = location.device()?;
    advice().entry(start).or_default().prefetched = location;
    let call = Call::Prefetch { pointer: address, bytes: bytes as u64, device, stream: 0 };
    operation::enqueue(stream, Operation::Call(call), true).map(|_| ())
}

/// Writes the value of a `cudaMemRangeAttribute`.
///
/// # Safety
///
/// `place` is null or valid for writing `room` bytes.
unsafe fn attribute(
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
        2 => vec![advice.preferred.number_or_cpu()],
        3 => {
            let mut devices = advice.accessed_by;
            devices.resize(room / size_of::<c_int>(), INVALID);
            devices
        }
        4 => vec![advice.prefetched.number_or_cpu()],
        5 => vec![advice.preferred.kind],
        6 => vec![advice.preferred.number],
        7 => vec![advice.prefetched.kind],
        8 => vec![advice.prefetched.number],
        _ => return Err(CudaError::InvalidValue),
    };
    for (index, value) in values.into_iter().enumerate() {
        // SAFETY: there is room for as many as `room` says, and for one at least.
        unsafe { place.cast::<c_int>().add(index).write_unaligned(value) };
    }
    Ok(())
}

cuda_api! {
    fn cudaMallocManaged(pointer: Out<u64>, bytes: usize, flags: u32) {
        pointer.check()?;
        if bytes == 0 || !ATTACHMENTS.contains(&flags) {
            return Err(CudaError::InvalidValue);
        }
        pointer.set(ranges::allocate(Sharing::Managed, bytes as u64, flags)?)
    }

    stream fn cudaMemPrefetchAsync(pointer: u64, bytes: usize, device: c_int, stream: StreamHandle) {
        prefetch(pointer, bytes, Location::of_device(device), stream)
    }

    stream fn cudaMemPrefetchAsync_v2(
        pointer: u64,
        bytes: usize,
        location: Location,
        flags: u32,
        stream: StreamHandle,
    ) {
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        prefetch(pointer, bytes, location, stream)
    }

    stream fn cudaMemPrefetchAsync_13(
        pointer: u64,
        bytes: usize,
        location: Location,
        flags: u32,
        stream: StreamHandle,
    ) {
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        prefetch(pointer, bytes, location, stream)
    }

    fn cudaMemAdvise(pointer: u64, bytes: usize, kind: c_int, device: c_int) {
        advise(pointer, bytes, kind, Location::of_device(device))
    }

    fn cudaMemAdvise_v2(pointer: u64, bytes: usize, kind: c_int, location: Location) {
        advise(pointer, bytes, kind, location)
    }

    fn cudaMemAdvise_13(pointer: u64, bytes: usize, kind: c_int, location: Location) {
        advise(pointer, bytes, kind, location)
    }

    fn cudaMemRangeGetAttribute(place: *mut c_void, room: usize, kind: c_int, pointer: u64, bytes: usize) {
        // SAFETY: CUDA's contract.
        unsafe { attribute(place, room, kind, pointer, bytes) }
    }

    fn cudaMemRangeGetAttributes(
        places: In<*mut c_void>,
        rooms: In<usize>,
        kinds: In<c_int>,
        count: usize,
        pointer: u64,
        bytes: usize,
    ) {
        if count == 0 {
            return Err(CudaError::InvalidValue);
        }
        let (places, rooms, kinds) = (places.array(count)?, rooms.array(count)?, kinds.array(count)?);
        for ((place, room), kind) in places.into_iter().zip(rooms).zip(kinds) {
            // SAFETY: CUDA's contract.
            unsafe { attribute(place, room, kind, pointer, bytes)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_devices_or_the_host() {
        assert_eq!(Location::of_device(CPU).device(), Ok(None));
        assert_eq!(Location::of_device(3), Location { kind: 1, number: 3 });
        assert_eq!(Location::of_device(CPU).number_or_cpu(), CPU);
        assert_eq!(Location::INVALID.device(), Err(CudaError::InvalidValue));
        assert_eq!(Location::INVALID.number_or_cpu(), INVALID);
    }
}
