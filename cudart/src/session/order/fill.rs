//! Filling memory (`cudaMemset`, `cuMemsetD8` and the like).

use crate::abi::stream::StreamHandle;
use crate::session::addresses::copy::address_of_devices;
use crate::session::order::enqueue;
use crate::session::order::operation::Operation;
use balar_host::call::CopyShape;
use balar_host::{Call, CudaError};

/// The memory to fill.
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
    enqueue::enqueue(stream, Operation::Call(call), asynchronous).map(|_| ())
}
