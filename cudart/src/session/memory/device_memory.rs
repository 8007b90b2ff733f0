//! Device memory.

use crate::session::addresses::ranges::{self, Sharing};
use crate::session::connection::{self, description};
use crate::session::graph::{allocation, footprint};
use crate::session::memory::{managed, pool};
use crate::session::state::captures;
use balar_host::{Call, CallResult, CudaError};

/// Rows of pitched memory begin at multiples of this.
const PITCH: u64 = 512;

/// Allocates memory of the current device; none where none is asked for.
pub fn allocate(bytes: u64) -> Result<u64, CudaError> {
    if bytes == 0 {
        description::description()?;
        return Ok(0);
    }
    captures::require_safe()?;
    let pointer = connection::pointer(&Call::Malloc { bytes })?;
    ranges::note_device_memory(pointer, bytes);
    Ok(pointer)
}

/// Allocates memory for rows of `width` bytes, whose number is `None` where it overflows; returns its address and pitch.
pub fn allocate_rows(width: u64, rows: Option<u64>) -> Result<(u64, u64), CudaError> {
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(CudaError::InvalidValue)?;
    let bytes = rows.and_then(|rows| pitch.checked_mul(rows)).ok_or(CudaError::InvalidValue)?;
    Ok((allocate(bytes)?, pitch))
}

/// Frees memory of a device, or managed memory.
pub fn free(pointer: u64) -> Result<(), CudaError> {
    if pointer == 0 {
        return description::description().map(|_| ());
    }
    captures::require_safe()?;
    if allocation::find(pointer).is_some() {
        // Memory of a graph: the device is done with it, its place is kept for the next launch.
        connection::done(&Call::DeviceSynchronize)?;
        return allocation::free(pointer).unwrap_or(Err(CudaError::InvalidValue));
    }
    let managed = ranges::remove(pointer, Sharing::Managed);
    connection::done(&Call::Free { pointer }).inspect_err(|_| managed.into_iter().for_each(ranges::restore))?;
    managed::forget(pointer);
    pool::forget(pointer);
    footprint::freed(pointer);
    ranges::forget_device_memory(pointer);
    Ok(())
}

/// The free bytes of the current device, and all its bytes.
pub fn info() -> Result<(u64, u64), CudaError> {
    match connection::call(&Call::MemoryInfo)? {
        CallResult::MemoryInfo { free, total } => Ok((free, total)),
        _ => Err(CudaError::Unknown),
    }
}
