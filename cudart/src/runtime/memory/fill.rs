//! Filling memory (`cudaMemset` and its like).

use crate::abi::copy::{Extent, PitchedPointer};
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::order::fill::{Fill, fill};
use balar_host::CudaError;
use balar_host::call::CopyShape;
use std::ffi::c_int;

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
