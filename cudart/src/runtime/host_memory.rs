//! Pinned host memory.

use crate::abi::arguments::Out;
use crate::cuda_api;
use crate::session::ranges::{self, Range, Sharing};
use crate::session::{capture, connection};
use balar_host::{Call, CudaError};

/// `cudaHostAllocPortable`, `cudaHostAllocMapped`, `cudaHostAllocWriteCombined`.
const ALLOCATION_FLAGS: u32 = 0x07;
/// `cudaHostRegisterPortable`, `Mapped`, `IoMemory`, `ReadOnly`.
const REGISTRATION_FLAGS: u32 = 0x0f;
/// `cudaHostAllocMapped`, which all pinned memory is where addresses are unified.
const MAPPED: u32 = 0x02;

/// Pinned memory; none where none is asked for.
pub fn allocate(pointer: Out<u64>, bytes: usize, flags: u32) -> Result<(), CudaError> {
    pointer.check()?;
    if flags & !ALLOCATION_FLAGS != 0 {
        return Err(CudaError::InvalidValue);
    }
    if bytes == 0 {
        return pointer.set(0);
    }
    pointer.set(ranges::allocate(Sharing::Allocated, bytes as u64, flags)?)
}

/// Ends pinned memory that was allocated.
pub fn free(pointer: u64) -> Result<(), CudaError> {
    if pointer == 0 {
        return Ok(());
    }
    capture::require_safe()?;
    let Some(range) = ranges::remove(pointer, Sharing::Allocated) else { return Err(CudaError::InvalidValue) };
    connection::done(&Call::FreeHost { pointer }).inspect_err(|_| ranges::restore(range))
}

/// The pinned range that a host address is in.
pub fn range_of(address: u64) -> Result<Range, CudaError> {
    ranges::find(address).filter(|range| range.sharing != Sharing::Managed).ok_or(CudaError::InvalidValue)
}

cuda_api! {
    fn cudaMallocHost(pointer: Out<u64>, bytes: usize) {
        allocate(pointer, bytes, 0)
    }

    fn cudaHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) {
        allocate(pointer, bytes, flags)
    }

    fn cudaFreeHost(pointer: u64) {
        free(pointer)
    }

    fn cudaHostRegister(pointer: u64, bytes: usize, flags: u32) {
        if flags & !REGISTRATION_FLAGS != 0 {
            return Err(CudaError::InvalidValue);
        }
        ranges::register(pointer, bytes as u64, flags)
    }

    fn cudaHostUnregister(pointer: u64) {
        if pointer == 0 {
            return Err(CudaError::InvalidValue);
        }
        ranges::unregister(pointer)
    }

    fn cudaHostGetDevicePointer(device_pointer: Out<u64>, pointer: u64, flags: u32) {
        device_pointer.check()?;
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        let range = range_of(pointer)?;
        device_pointer.set(range.window + (pointer - range.start))
    }

    fn cudaHostGetFlags(flags: Out<u32>, pointer: u64) {
        flags.check()?;
        flags.set(range_of(pointer)?.flags | MAPPED)
    }
}
