//! Filling memory (`cudaMemset` and its like).

use crate::abi::copy::{Extent, PitchedPointer};
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::operation::{self, HostRows, Operation};
use crate::session::ranges::{self, Place};
use balar_host::call::CopyShape;
use balar_host::{Call, CudaError};
use std::ffi::c_int;

/// What is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes of a row, rows, slices.
    pub shape: CopyShape,
    /// Bytes from a row to the next, from a slice to the next.
    pub pitch: [u64; 2],
    /// The value of every element, in its low bytes.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub element_bytes: u8,
}

/// Fills memory of a device, pinned or managed memory.
pub fn fill(fill: Fill, stream: StreamHandle, asynchronous: bool) -> Result<(), CudaError> {
    let Fill { address, shape, pitch, value, element_bytes } = fill;
    if shape.bytes() == 0 {
        return Ok(());
    }
    let rows = HostRows { address, shape, row_pitch: pitch[0], slice_pitch: pitch[1] };
    // CUDA waits for the end where it fills memory that the host sees.
    let (pointer, waits) = match ranges::place(address, rows.extent()) {
        Place::Device(_) => (address, false),
        Place::Pinned(address) | Place::Managed(address) => (address, true),
        Place::Pageable => return Err(CudaError::InvalidValue),
    };
    let asynchronous = asynchronous || !waits;
    let call = Call::Memset { pointer, shape, pitch, value, element_bytes, stream: 0, asynchronous };
    operation::enqueue(stream, Operation::Call(call), asynchronous).map(|_| ())
}

fn linear(address: u64, value: c_int, bytes: usize) -> Fill {
    let bytes = bytes as u64;
    Fill {
        address,
        shape: CopyShape::linear(bytes),
        pitch: [bytes; 2],
        value: u32::from(value as u8),
        element_bytes: 1,
    }
}

fn plane(address: u64, pitch: usize, value: c_int, width: usize, height: usize) -> Result<Fill, CudaError> {
    if width > pitch && height > 1 {
        return Err(CudaError::InvalidValue);
    }
    let (pitch, width, height) = (pitch as u64, width as u64, height as u64);
    let shape = CopyShape { width, height, depth: 1 };
    Ok(Fill { shape, pitch: [pitch, pitch.saturating_mul(height)], ..linear(address, value, 0) })
}

fn space(memory: PitchedPointer, value: c_int, extent: Extent) -> Result<Fill, CudaError> {
    let PitchedPointer { pointer, pitch, height: rows, .. } = memory;
    let Extent { width, height, depth } = extent;
    if (width > pitch && height.max(depth) > 1) || (height > rows && depth > 1) {
        return Err(CudaError::InvalidValue);
    }
    let pitch = [pitch, pitch.saturating_mul(rows)];
    Ok(Fill { shape: CopyShape { width, height, depth }, pitch, ..linear(pointer, value, 0) })
}

runtime_api! {
    stream fn cudaMemset(pointer: u64, value: c_int, bytes: usize) {
        fill(linear(pointer, value, bytes), StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemsetAsync(pointer: u64, value: c_int, bytes: usize, stream: StreamHandle) {
        fill(linear(pointer, value, bytes), stream, true)
    }

    stream fn cudaMemset2D(pointer: u64, pitch: usize, value: c_int, width: usize, height: usize) {
        fill(plane(pointer, pitch, value, width, height)?, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemset2DAsync(
        pointer: u64,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
        stream: StreamHandle,
    ) {
        fill(plane(pointer, pitch, value, width, height)?, stream, true)
    }

    stream fn cudaMemset3D(memory: PitchedPointer, value: c_int, extent: Extent) {
        fill(space(memory, value, extent)?, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemset3DAsync(memory: PitchedPointer, value: c_int, extent: Extent, stream: StreamHandle) {
        fill(space(memory, value, extent)?, stream, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_longer_than_their_pitch_are_refused() {
        assert_eq!(plane(64, 8, 0, 9, 2), Err(CudaError::InvalidValue));
        assert!(plane(64, 8, 0, 9, 1).is_ok());
        let memory = PitchedPointer { pointer: 64, pitch: 16, width: 10, height: 3 };
        let fill = space(memory, 0x1ff, Extent { width: 10, height: 2, depth: 4 }).unwrap();
        assert_eq!((fill.pitch, fill.value, fill.shape.bytes()), ([16, 48], 0xff, 80));
        assert_eq!(space(memory, 0, Extent { width: 10, height: 4, depth: 2 }), Err(CudaError::InvalidValue));
    }
}
