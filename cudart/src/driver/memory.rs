//! Device, host and managed memory, and attributes of addresses.

use crate::abi::arguments::{In, Out};
use crate::abi::driver::{DevicePointer, MEMORY_DEVICE, MEMORY_HOST};
use crate::abi::pool::{MemAccessDesc, MemLocation, MemPoolProps};
use crate::abi::stream::StreamHandle;
use crate::session::addresses::pointer::{Known, known};
use crate::session::api::Outcome;
use crate::session::contexts::context;
use crate::session::memory::managed::{self, BatchLocations, RangeBatch};
use crate::session::memory::{device_memory, host_memory, pool};
use crate::{driver_api, forwards};
use balar_host::CudaError;
use balar_host::call::AllocationKind;
use std::ffi::{c_int, c_void};

/// Refuses an allocation of zero bytes, which the runtime allows.
fn refuse_none(bytes: usize) -> Outcome {
    if bytes == 0 { Err(CudaError::InvalidValue) } else { Ok(()) }
}

/// Writes an attribute of an address (`CUpointer_attribute`).
fn write_attribute(place: *mut c_void, attribute: u32, known: &Known) -> Outcome {
    let byte = |value: bool| write(place, u8::from(value));
    match attribute {
        1 => write(place, context::primary(known.device)),
        2 => write(place, if known.kind == AllocationKind::Host { MEMORY_HOST } else { MEMORY_DEVICE }),
        3 => write(place, known.for_devices),
        4 => write(place, known.for_host.ok_or(CudaError::InvalidValue)?),
        // Synchronous copies are synchronous without this attribute.
        6 => write(place, 0_u32),
        7 => write(place, known.base),
        8 => write(place, u32::from(known.kind == AllocationKind::Managed)),
        9 => write(place, known.device as c_int),
        // Memory of devices can be shared with other processes.
        10 => byte(known.kind == AllocationKind::Device),
        15 => byte(false),
        11 | 19 => write(place, known.base),
        12 | 18 => write(place, known.bytes),
        13 => byte(true),
        14 | 17 => write(place, 0_u64),
        // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE.
        16 => write(place, 3_u64),
        _ => Err(CudaError::InvalidValue),
    }
}

fn write<T>(place: *mut c_void, value: T) -> Outcome {
    // SAFETY: the caller of the API passes memory that has room for the attribute's type.
    unsafe { Out::new(place.cast::<T>()) }.set(value)
}

/// Writes an attribute of an address that CUDA does not know.
fn write_unknown(place: *mut c_void, attribute: u32) -> Outcome {
    match attribute {
        2 | 6 | 8 => write(place, 0_u32),
        9 => write(place, -2_i32),
        10 | 13 | 15 => write(place, 0_u8),
        1..=20 => write(place, 0_u64),
        _ => Err(CudaError::InvalidValue),
    }
}

forwards! {
    context fn cuMemFree_v2(pointer: DevicePointer) => memory::device_memory::free;
    context fn cuMemHostRegister(pointer: u64, bytes: usize, flags: u32) => memory::host_memory::register;
    context fn cuMemHostRegister_v2(pointer: u64, bytes: usize, flags: u32) => memory::host_memory::register;
    context fn cuMemHostUnregister(pointer: u64) => memory::host_memory::unregister;
    stream fn cuMemPrefetchAsync_v2(
        pointer: u64, bytes: usize, location: MemLocation, flags: u32, stream: StreamHandle,
    ) => memory::managed::prefetch;
    context fn cuMemAdvise_v2(pointer: u64, bytes: usize, advice: c_int, location: MemLocation) => memory::managed::advise;

    stream fn cuMemFreeAsync(pointer: u64, stream: StreamHandle) => memory::pool::free;
    context fn cuDeviceSetMemPool(device: c_int, pool: u64) => memory::pool::set_current_of;
    context fn cuMemPoolDestroy(pool: u64) => memory::pool::destroy;
    context fn cuMemPoolTrimTo(pool: u64, keep: usize) => memory::pool::trim;
    context fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: Out<u64>) => memory::pool::get_attribute;
    context fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: In<u64>) => memory::pool::change_attribute;
}

driver_api! {
    stream fn cuMemDiscardAndPrefetchBatchAsync(
        pointers: In<u64>,
        sizes: In<usize>,
        count: usize,
        locations: In<MemLocation>,
        firsts: In<usize>,
        kinds: usize,
        flags: u64,
        stream: StreamHandle,
    ) {
        let to = BatchLocations { locations, firsts, kinds };
        managed::prefetch_batch(RangeBatch { pointers, sizes, count, flags }, to, stream)
    }

    stream fn cuMemDiscardBatchAsync(
        pointers: In<u64>,
        sizes: In<usize>,
        count: usize,
        flags: u64,
        stream: StreamHandle,
    ) {
        managed::discard_batch(RangeBatch { pointers, sizes, count, flags }, stream)
    }

    stream fn cuMemPrefetchBatchAsync(
        pointers: In<u64>,
        sizes: In<usize>,
        count: usize,
        locations: In<MemLocation>,
        firsts: In<usize>,
        kinds: usize,
        flags: u64,
        stream: StreamHandle,
    ) {
        let to = BatchLocations { locations, firsts, kinds };
        managed::prefetch_batch(RangeBatch { pointers, sizes, count, flags }, to, stream)
    }

    context fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let (available, all) = device_memory::info()?;
        free.set(available as usize)?;
        total.set(all as usize)
    }

    context fn cuMemAlloc_v2(pointer: Out<u64>, bytes: usize) {
        refuse_none(bytes)?;
        pointer.check()?;
        pointer.set(device_memory::allocate(bytes as u64)?)
    }

    context fn cuMemAllocPitch_v2(pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element_bytes: u32) {
        if width == 0 || height == 0 || ![4, 8, 16].contains(&element_bytes) {
            return Err(CudaError::InvalidValue);
        }
        pointer.check()?;
        pitch.check()?;
        let (address, row) = device_memory::allocate_rows(width as u64, Some(height as u64))?;
        pointer.set(address)?;
        pitch.set(row as usize)
    }

    context fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, pointer: DevicePointer) {
        let known = known(pointer)?.ok_or(CudaError::SymbolNotFound)?;
        base.set_if_wanted(known.base);
        bytes.set_if_wanted(known.bytes as usize);
        Ok(())
    }

    context fn cuMemAllocHost_v2(pointer: Out<u64>, bytes: usize) {
        refuse_none(bytes)?;
        pointer.check()?;
        pointer.set(host_memory::allocate(bytes, 0)?)
    }

    context fn cuMemHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) {
        refuse_none(bytes)?;
        pointer.check()?;
        pointer.set(host_memory::allocate(bytes, flags)?)
    }

    context fn cuMemFreeHost(pointer: u64) {
        // Nothing is at 0: NVIDIA's runtime passes it on from `cudaFreeHost`, which takes it.
        host_memory::free(pointer)
    }

    context fn cuMemHostGetDevicePointer_v2(place: Out<u64>, pointer: u64, flags: u32) {
        place.check()?;
        place.set(host_memory::device_pointer(pointer, flags)?)
    }

    context fn cuMemHostGetFlags(flags: Out<u32>, pointer: u64) {
        flags.check()?;
        flags.set(host_memory::flags(pointer)?)
    }

    context fn cuMemAllocManaged(pointer: Out<u64>, bytes: usize, flags: u32) {
        pointer.check()?;
        pointer.set(managed::allocate(bytes, flags)?)
    }

    stream fn cuMemPrefetchAsync(pointer: u64, bytes: usize, device: c_int, stream: StreamHandle) {
        managed::prefetch(pointer, bytes, managed::location_of(device), 0, stream)
    }

    context fn cuMemAdvise(pointer: u64, bytes: usize, advice: c_int, device: c_int) {
        managed::advise(pointer, bytes, advice, managed::location_of(device))
    }

    context fn cuMemRangeGetAttribute(place: *mut c_void, room: usize, kind: c_int, pointer: u64, bytes: usize) {
        // SAFETY: CUDA's contract.
        unsafe { managed::attribute(place, room, kind, pointer, bytes) }
    }

    context fn cuMemRangeGetAttributes(
        places: In<*mut c_void>, rooms: In<usize>, kinds: In<c_int>, count: usize, pointer: u64, bytes: usize,
    ) {
        // SAFETY: CUDA's contract.
        unsafe { managed::attributes(places, rooms, kinds, count, (pointer, bytes)) }
    }

    stream fn cuMemAllocAsync(pointer: Out<u64>, bytes: usize, stream: StreamHandle) {
        refuse_none(bytes)?;
        pointer.check()?;
        pointer.set(pool::allocate(bytes as u64, None, stream)?)
    }

    stream fn cuMemAllocFromPoolAsync(pointer: Out<u64>, bytes: usize, pool: u64, stream: StreamHandle) {
        pointer.check()?;
        pointer.set(pool::allocate(bytes as u64, Some(pool), stream)?)
    }

    context fn cuDeviceGetDefaultMemPool(pool: Out<u64>, device: c_int) {
        pool.set(pool::default_of(device)?)
    }

    context fn cuDeviceGetMemPool(pool: Out<u64>, device: c_int) {
        pool.set(pool::current_of(device)?)
    }

    context fn cuMemGetDefaultMemPool(pool: Out<u64>, location: In<MemLocation>, kind: u32) {
        pool.set(pool::default_at(location.get()?, kind)?)
    }

    context fn cuMemGetMemPool(pool: Out<u64>, location: In<MemLocation>, kind: u32) {
        pool.set(pool::current_at(location.get()?, kind)?)
    }

    context fn cuMemSetMemPool(location: In<MemLocation>, kind: u32, pool: u64) {
        pool::set_current_at(location.get()?, kind, pool)
    }

    context fn cuMemPoolCreate(pool: Out<u64>, properties: In<MemPoolProps>) {
        pool.check()?;
        pool.set(pool::create(&properties.get()?)?)
    }

    context fn cuMemPoolSetAccess(pool: u64, wanted: In<MemAccessDesc>, count: usize) {
        pool::change_access(pool, &wanted.array(count)?)
    }

    context fn cuMemPoolGetAccess(flags: Out<u32>, pool: u64, location: In<MemLocation>) {
        flags.set(pool::access(pool, location.get()?)?)
    }

    context fn cuPointerGetAttribute(place: *mut c_void, attribute: u32, pointer: u64) {
        write_attribute(place, attribute, &known(pointer)?.ok_or(CudaError::InvalidValue)?)
    }

    context fn cuPointerGetAttributes(count: u32, attributes: In<u32>, places: In<*mut c_void>, pointer: u64) {
        let attributes = attributes.array(count as usize)?;
        let places = places.array(count as usize)?;
        let known = known(pointer)?;
        for (attribute, place) in attributes.into_iter().zip(places) {
            // An attribute that the address does not have is written as for an unknown address.
            match &known {
                Some(known) => write_attribute(place, attribute, known).or_else(|_| write_unknown(place, attribute))?,
                None => write_unknown(place, attribute)?,
            }
        }
        Ok(())
    }

    context fn cuPointerSetAttribute(value: *const c_void, attribute: u32, pointer: u64) {
        const SYNC_MEMOPS: u32 = 6;
        if value.is_null() || attribute != SYNC_MEMOPS || known(pointer)?.is_none() {
            return Err(CudaError::InvalidValue);
        }
        // Synchronous copies are synchronous without this attribute.
        Ok(())
    }
}
