//! Managed memory, and advice about it.

use crate::abi::arguments::{In, Out};
use crate::abi::pool::MemLocation;
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::memory::managed;
use std::ffi::{c_int, c_void};

runtime_api! {
    fn cudaMallocManaged(pointer: Out<u64>, bytes: usize, flags: u32) {
        pointer.check()?;
        pointer.set(managed::allocate(bytes, flags)?)
    }

    stream fn cudaMemPrefetchAsync(pointer: u64, bytes: usize, device: c_int, stream: StreamHandle) {
        managed::prefetch(pointer, bytes, managed::location_of(device), 0, stream)
    }

    stream fn cudaMemPrefetchAsync_v2(
        pointer: u64,
        bytes: usize,
        location: MemLocation,
        flags: u32,
        stream: StreamHandle,
    ) {
        managed::prefetch(pointer, bytes, location, flags, stream)
    }

    stream fn cudaMemPrefetchAsync_13(
        pointer: u64,
        bytes: usize,
        location: MemLocation,
        flags: u32,
        stream: StreamHandle,
    ) {
        managed::prefetch(pointer, bytes, location, flags, stream)
    }

    fn cudaMemAdvise(pointer: u64, bytes: usize, kind: c_int, device: c_int) {
        managed::advise(pointer, bytes, kind, managed::location_of(device))
    }

    fn cudaMemAdvise_v2(pointer: u64, bytes: usize, kind: c_int, location: MemLocation) {
        managed::advise(pointer, bytes, kind, location)
    }

    fn cudaMemAdvise_13(pointer: u64, bytes: usize, kind: c_int, location: MemLocation) {
        managed::advise(pointer, bytes, kind, location)
    }

    fn cudaMemRangeGetAttribute(place: *mut c_void, room: usize, kind: c_int, pointer: u64, bytes: usize) {
        // SAFETY: CUDA's contract.
        unsafe { managed::attribute(place, room, kind, pointer, bytes) }
    }

    fn cudaMemRangeGetAttributes(
        places: In<*mut c_void>,
        rooms: In<usize>,
        kinds: In<c_int>,
        count: usize,
        pointer: u64,
        bytes: usize,
    ) {
        // SAFETY: CUDA's contract.
        unsafe { managed::attributes(places, rooms, kinds, count, (pointer, bytes)) }
    }
}
