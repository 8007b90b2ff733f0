//! Device memory.

use crate::abi::arguments::Out;
use crate::abi::copy::{Extent, PitchedPointer};
use crate::runtime_api;
use crate::session::memory::device_memory;

runtime_api! {
    fn cudaMalloc(pointer: Out<u64>, bytes: usize) {
        pointer.check()?;
        pointer.set(device_memory::allocate(bytes as u64)?)
    }

    fn cudaFree(pointer: u64) {
        device_memory::free(pointer)
    }

    fn cudaMallocPitch(pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize) {
        pointer.check()?;
        pitch.check()?;
        let (address, row) = device_memory::allocate_rows(width as u64, Some(height as u64))?;
        pointer.set(address)?;
        pitch.set(row as usize)
    }

    fn cudaMalloc3D(pointer: Out<PitchedPointer>, extent: Extent) {
        pointer.check()?;
        let rows = extent.height.checked_mul(extent.depth);
        let (address, pitch) = device_memory::allocate_rows(extent.width, rows)?;
        let Extent { width, height, .. } = extent;
        pointer.set(PitchedPointer { pointer: address, pitch, width, height })
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (available, all) = device_memory::info()?;
        free.set(available as usize)?;
        total.set(all as usize)
    }
}
