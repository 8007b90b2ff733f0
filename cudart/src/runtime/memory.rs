//! Device memory.

use crate::abi::arguments::Out;
use crate::abi::copy::{Extent, PitchedPointer};
use crate::cuda_api;
use crate::session::graph::{allocation, footprint};
use crate::session::ranges::{self, Sharing};
use crate::session::{capture, connection, process};
use balar_host::{Call, CallResult, CudaError};

/// Rows of pitched memory begin at multiples of this.
const PITCH: u64 = 512;

/// Memory of the current device; no memory where none is asked for.
pub fn allocate(bytes: u64) -> Result<u64, CudaError> {
    if bytes == 0 {
        process::description()?;
        return Ok(0);
    }
    capture::require_safe()?;
    let pointer = connection::pointer(&Call::Malloc { bytes })?;
    ranges::note_device_memory(pointer, bytes);
    Ok(pointer)
}

/// Memory of rows; gives its address and pitch.
fn allocate_rows(width: u64, rows: Option<u64>) -> Result<(u64, u64), CudaError> {
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(CudaError::InvalidValue)?;
    let bytes = rows.and_then(|rows| pitch.checked_mul(rows)).ok_or(CudaError::InvalidValue)?;
    Ok((allocate(bytes)?, pitch))
}

cuda_api! {
    fn cudaMalloc(pointer: Out<u64>, bytes: usize) {
        pointer.check()?;
        pointer.set(allocate(bytes as u64)?)
    }

    fn cudaFree(pointer: u64) {
        if pointer == 0 {
            return process::description().map(|_| ());
        }
        capture::require_safe()?;
        if allocation::find(pointer).is_some() {
            // Memory of a graph: the device is done with it, its place is kept for the next launch.
            connection::done(&Call::DeviceSynchronize)?;
            return allocation::free(pointer).unwrap_or(Err(CudaError::InvalidValue));
        }
        let managed = ranges::remove(pointer, Sharing::Managed);
        connection::done(&Call::Free { pointer }).inspect_err(|_| managed.into_iter().for_each(ranges::restore))?;
        super::managed::forget(pointer);
        super::pool::forget(pointer);
        footprint::freed(pointer);
        ranges::forget_device_memory(pointer);
        Ok(())
    }

    fn cudaMallocPitch(pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize) {
        pointer.check()?;
        pitch.check()?;
        let (address, row) = allocate_rows(width as u64, Some(height as u64))?;
        pointer.set(address)?;
        pitch.set(row as usize)
    }

    fn cudaMalloc3D(pointer: Out<PitchedPointer>, extent: Extent) {
        pointer.check()?;
        let rows = extent.height.checked_mul(extent.depth);
        let (address, pitch) = allocate_rows(extent.width, rows)?;
        let Extent { width, height, .. } = extent;
        pointer.set(PitchedPointer { pointer: address, pitch, width, height })
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let CallResult::MemoryInfo { free: available, total: all } = connection::call(&Call::MemoryInfo)? else {
            return Err(CudaError::Unknown);
        };
        free.set(available as usize)?;
        total.set(all as usize)
    }
}
