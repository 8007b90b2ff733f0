//! Memory of devices, of the host, and managed; what is known of an address.

use super::context;
use crate::abi::arguments::{In, Out};
use crate::abi::driver::{DevicePointer, MEMORY_DEVICE, MEMORY_HOST};
use crate::abi::pool::{MemAccessDesc, MemLocation, MemPoolProps};
use crate::abi::stream::StreamHandle;
use crate::runtime::managed::Location;
use crate::session::api::Outcome;
use crate::session::connection;
use crate::session::ranges::{self, Sharing};
use crate::{driver_api, forwards_to_runtime, runtime};
use balar_host::call::{AllocationKind, PointerDescription};
use balar_host::{Call, CallResult, CudaError};
use std::ffi::{c_int, c_void};

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
struct Known {
    kind: AllocationKind,
    device: u32,
    /// First address and bytes, as the program knows the memory.
    base: u64,
    bytes: u64,
    /// The devices' address of what the program asks about.
    for_devices: u64,
    /// The host's, if it has one.
    for_host: Option<u64>,
}

/// The allocation that an address is in.
fn allocation(pointer: u64) -> Result<Option<PointerDescription>, CudaError> {
    match connection::call(&Call::PointerInfo { pointer })? {
        CallResult::PointerInfo(description) => Ok(description),
        _ => Err(CudaError::Unknown),
    }
}

fn known(pointer: u64) -> Result<Option<Known>, CudaError> {
    if let Some(range) = ranges::find(pointer) {
        let kind = if range.sharing == Sharing::Managed { AllocationKind::Managed } else { AllocationKind::Host };
        let for_devices = range.window + (pointer - range.start);
        let (base, bytes) = (range.start, range.bytes);
        return Ok(Some(Known { kind, device: range.device, base, bytes, for_devices, for_host: Some(pointer) }));
    }
    let found = allocation(pointer)?;
    Ok(found.map(|PointerDescription { kind, device, base, bytes }| {
        let for_host = (kind != AllocationKind::Device).then_some(pointer);
        Known { kind, device, base, bytes, for_devices: pointer, for_host }
    }))
}

/// Writes an attribute of an address (`CUpointer_attribute`).
fn write_attribute(place: *mut c_void, attribute: u32, known: &Known) -> Outcome {
    let byte = |value: bool| write(place, u8::from(value));
    match attribute {
        1 => write(place, context::primary(known.device)),
        2 => write(place, if known.kind == AllocationKind::Host { MEMORY_HOST } else { MEMORY_DEVICE }),
        3 => write(place, known.for_devices),
        4 => write(place, known.for_host.ok_or(CudaError::InvalidValue)?),
        // Synchronous copies are so without being asked.
        6 => write(place, 0_u32),
        7 => write(place, known.base),
        8 => write(place, u32::from(known.kind == AllocationKind::Managed)),
        9 => write(place, known.device as c_int),
        // No memory can be shared with other processes.
        10 | 15 => byte(false),
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

/// Writes what attributes of an address are that CUDA knows nothing of.
fn write_unknown(place: *mut c_void, attribute: u32) -> Outcome {
    match attribute {
        2 | 6 | 8 => write(place, 0_u32),
        9 => write(place, -2_i32),
        10 | 13 | 15 => write(place, 0_u8),
        1..=20 => write(place, 0_u64),
        _ => Err(CudaError::InvalidValue),
    }
}

forwards_to_runtime! {
    context cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) => memory::cudaMemGetInfo;
    context cuMemFree_v2(pointer: DevicePointer) => memory::cudaFree;
    context cuMemHostGetDevicePointer_v2(
        place: Out<u64>, pointer: u64, flags: u32,
    ) => host_memory::cudaHostGetDevicePointer;
    context cuMemHostGetFlags(flags: Out<u32>, pointer: u64) => host_memory::cudaHostGetFlags;
    context cuMemHostRegister(pointer: u64, bytes: usize, flags: u32) => host_memory::cudaHostRegister;
    context cuMemHostRegister_v2(pointer: u64, bytes: usize, flags: u32) => host_memory::cudaHostRegister;
    context cuMemHostUnregister(pointer: u64) => host_memory::cudaHostUnregister;
    context cuMemAllocManaged(pointer: Out<u64>, bytes: usize, flags: u32) => managed::cudaMallocManaged;
    stream cuMemPrefetchAsync(
        pointer: u64, bytes: usize, device: c_int, stream: StreamHandle,
    ) => managed::cudaMemPrefetchAsync;
    stream cuMemPrefetchAsync_v2(
        pointer: u64, bytes: usize, location: Location, flags: u32, stream: StreamHandle,
    ) => managed::cudaMemPrefetchAsync_v2;
    context cuMemAdvise(pointer: u64, bytes: usize, advice: c_int, device: c_int) => managed::cudaMemAdvise;
    context cuMemAdvise_v2(pointer: u64, bytes: usize, advice: c_int, location: Location) => managed::cudaMemAdvise_v2;
    context cuMemRangeGetAttribute(
        place: *mut c_void, room: usize, attribute: c_int, pointer: u64, bytes: usize,
    ) => managed::cudaMemRangeGetAttribute;
    context cuMemRangeGetAttributes(
        places: In<*mut c_void>, rooms: In<usize>, attributes: In<c_int>, count: usize, pointer: u64, bytes: usize,
    ) => managed::cudaMemRangeGetAttributes;

    stream cuMemAllocFromPoolAsync(
        pointer: Out<u64>, bytes: usize, pool: u64, stream: StreamHandle,
    ) => pool::cudaMallocFromPoolAsync;
    stream cuMemFreeAsync(pointer: u64, stream: StreamHandle) => pool::cudaFreeAsync;
    context cuDeviceGetDefaultMemPool(pool: Out<u64>, device: c_int) => pool::cudaDeviceGetDefaultMemPool;
    context cuDeviceGetMemPool(pool: Out<u64>, device: c_int) => pool::cudaDeviceGetMemPool;
    context cuDeviceSetMemPool(device: c_int, pool: u64) => pool::cudaDeviceSetMemPool;
    context cuMemGetDefaultMemPool(pool: Out<u64>, location: In<MemLocation>, kind: u32) => pool::cudaMemGetDefaultMemPool;
    context cuMemGetMemPool(pool: Out<u64>, location: In<MemLocation>, kind: u32) => pool::cudaMemGetMemPool;
    context cuMemSetMemPool(location: In<MemLocation>, kind: u32, pool: u64) => pool::cudaMemSetMemPool;
    context cuMemPoolCreate(pool: Out<u64>, properties: In<MemPoolProps>) => pool::cudaMemPoolCreate;
    context cuMemPoolDestroy(pool: u64) => pool::cudaMemPoolDestroy;
    context cuMemPoolTrimTo(pool: u64, keep: usize) => pool::cudaMemPoolTrimTo;
    context cuMemPoolGetAttribute(pool: u64, attribute: u32, value: Out<u64>) => pool::cudaMemPoolGetAttribute;
    context cuMemPoolSetAttribute(pool: u64, attribute: u32, value: In<u64>) => pool::cudaMemPoolSetAttribute;
    context cuMemPoolSetAccess(pool: u64, wanted: In<MemAccessDesc>, count: usize) => pool::cudaMemPoolSetAccess;
    context cuMemPoolGetAccess(flags: Out<u32>, pool: u64, location: In<MemLocation>) => pool::cudaMemPoolGetAccess;
}

driver_api! {
    stream fn cuMemAllocAsync(pointer: Out<u64>, bytes: usize, stream: StreamHandle) {
        if bytes == 0 {
            return Err(CudaError::InvalidValue);
        }
        runtime!(pool::cudaMallocAsync(pointer, bytes, stream))
    }

    context fn cuMemAlloc_v2(pointer: Out<u64>, bytes: usize) {
        if bytes == 0 {
            return Err(CudaError::InvalidValue);
        }
        runtime!(memory::cudaMalloc(pointer, bytes))
    }

    context fn cuMemAllocPitch_v2(pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element_bytes: u32) {
        if width == 0 || height == 0 || ![4, 8, 16].contains(&element_bytes) {
            return Err(CudaError::InvalidValue);
        }
        runtime!(memory::cudaMallocPitch(pointer, pitch, width, height))
    }

    context fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, pointer: DevicePointer) {
        let known = known(pointer)?.ok_or(CudaError::SymbolNotFound)?;
        base.set_if_wanted(known.base);
        bytes.set_if_wanted(known.bytes as usize);
        Ok(())
    }

    context fn cuMemAllocHost_v2(pointer: Out<u64>, bytes: usize) {
        if bytes == 0 {
            return Err(CudaError::InvalidValue);
        }
        runtime!(host_memory::cudaMallocHost(pointer, bytes))
    }

    context fn cuMemHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) {
        if bytes == 0 {
            return Err(CudaError::InvalidValue);
        }
        runtime!(host_memory::cudaHostAlloc(pointer, bytes, flags))
    }

    context fn cuMemFreeHost(pointer: u64) {
        if pointer == 0 {
            return Err(CudaError::InvalidValue);
        }
        runtime!(host_memory::cudaFreeHost(pointer))
    }

    context fn cuPointerGetAttribute(place: *mut c_void, attribute: u32, pointer: u64) {
        write_attribute(place, attribute, &known(pointer)?.ok_or(CudaError::InvalidValue)?)
    }

    context fn cuPointerGetAttributes(count: u32, attributes: In<u32>, places: In<*mut c_void>, pointer: u64) {
        let attributes = attributes.array(count as usize)?;
        let places = places.array(count as usize)?;
        let known = known(pointer)?;
        for (attribute, place) in attributes.into_iter().zip(places) {
            // What an address does not have is as of one that CUDA knows nothing of.
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
        // Synchronous copies are so without being asked.
        Ok(())
    }
}
