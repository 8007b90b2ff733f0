//! Streams.

use std::ffi::{c_int, c_void};

/// A stream's handle as C has it (`cudaStream_t`, `CUstream`).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHandle(pub u64);

impl StreamHandle {
    /// The default stream, whichever that is for the function called.
    pub const DEFAULT: StreamHandle = StreamHandle(0);
}

/// Value of an attribute of a stream (`cudaStreamAttrValue`, `CUstreamAttrValue`).
pub type AttributeValue = [u64; 8];

/// The function that `cudaStreamAddCallback` adds: it is called with the stream, the error, the data.
pub type StreamCallback = unsafe extern "C" fn(u64, c_int, *mut c_void);
