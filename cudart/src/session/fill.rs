//! Filling memory (`cudaMemset`, `cuMemsetD8` and the like).

use super::operation::{self, HostRows, Operation};
use super::ranges::{self, Place};
use crate::abi::stream::StreamHandle;
use balar_host::call::CopyShape;
use balar_host::{Call, CudaError};

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
    // CUDA waits for the end where it fills memory that the host sees.
    let (pointer, waits) = address_of_devices(address, shape, pitch)?;
    let asynchronous = asynchronous || !waits;
    let call = Call::Memset { pointer, shape, pitch, value, element_bytes, stream: 0, asynchronous };
    operation::enqueue(stream, Operation::Call(call), asynchronous).map(|_| ())
}

/// The address by which devices know memory that is to be filled, and whether the host sees it.
pub fn address_of_devices(address: u64, shape: CopyShape, pitch: [u64; 2]) -> Result<(u64, bool), CudaError> {
    let rows = HostRows { address, shape, row_pitch: pitch[0], slice_pitch: pitch[1] };
    match ranges::place(address, rows.extent()) {
        Place::Device(_) => Ok((address, false)),
        Place::Pinned(address) | Place::Managed(address) => Ok((address, true)),
        Place::Pageable => Err(CudaError::InvalidValue),
    }
}
