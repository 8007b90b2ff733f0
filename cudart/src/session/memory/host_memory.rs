//! Pinned host memory.

use crate::session::addresses::ranges::{self, Range, Sharing};
use crate::session::connection;
use crate::session::state::captures;
use balar_host::{Call, CudaError};

/// `cudaHostAllocPortable`, `cudaHostAllocMapped`, `cudaHostAllocWriteCombined`.
const ALLOCATION_FLAGS: u32 = 0x07;
/// `cudaHostRegisterPortable`, `Mapped`, `IoMemory`, `ReadOnly`.
const REGISTRATION_FLAGS: u32 = 0x0f;
/// `cudaHostAllocMapped`, which all pinned memory is where addresses are unified.
const MAPPED: u32 = 0x02;

/// Allocates pinned memory; none where none is asked for.
pub fn allocate(bytes: usize, flags: u32) -> Result<u64, CudaError> {
    if flags & !ALLOCATION_FLAGS != 0 {
        return Err(CudaError::InvalidValue);
    }
    if bytes == 0 { Ok(0) } else { ranges::allocate(Sharing::Allocated, bytes as u64, flags) }
}

/// Frees pinned memory that was allocated.
pub fn free(pointer: u64) -> Result<(), CudaError> {
    if pointer == 0 {
        return Ok(());
    }
    captures::require_safe()?;
    let Some(range) = ranges::remove(pointer, Sharing::Allocated) else { return Err(CudaError::InvalidValue) };
    connection::done(&Call::FreeHost { pointer }).inspect_err(|_| ranges::restore(range))
}

/// Pins memory of the program.
pub fn register(pointer: u64, bytes: usize, flags: u32) -> Result<(), CudaError> {
    if flags & !REGISTRATION_FLAGS != 0 {
        return Err(CudaError::InvalidValue);
    }
    ranges::register(pointer, bytes as u64, flags)
}

/// Ends the effect of [`register`].
pub fn unregister(pointer: u64) -> Result<(), CudaError> {
    if pointer == 0 {
        return Err(CudaError::InvalidValue);
    }
    ranges::unregister(pointer)
}

/// The pinned range that a host address is in.
fn range_of(address: u64) -> Result<Range, CudaError> {
    ranges::find(address).filter(|range| range.sharing != Sharing::Managed).ok_or(CudaError::InvalidValue)
}

/// The devices' address of pinned memory.
pub fn device_pointer(pointer: u64, flags: u32) -> Result<u64, CudaError> {
    if flags != 0 {
        return Err(CudaError::InvalidValue);
    }
    let range = range_of(pointer)?;
    Ok(range.window + (pointer - range.start))
}

/// The flags that pinned memory was allocated or registered with.
pub fn flags(pointer: u64) -> Result<u32, CudaError> {
    Ok(range_of(pointer)?.flags | MAPPED)
}
