//! Room for the bytes of asynchronous copies from the program's own memory.

use crate::session::connection::{self, waiting_bytes};
use balar_host::{Call, CudaError};

/// Bytes that are sent at a time of a copy that there is no room for.
pub const PIECE: usize = 32 << 20;

/// Is there room for the bytes of an asynchronous copy? Then they are counted.
pub fn admit(device: u32, stream: u32, bytes: u64) -> bool {
    if !waiting_bytes::can_have_room(bytes) {
        return false;
    }
    if waiting_bytes::add(device, stream, bytes) {
        return true;
    }
    // Some streams may have finished without being waited for.
    for (device, stream) in waiting_bytes::streams() {
        if connection::call_on(device, &Call::StreamQuery { stream }) != Err(CudaError::NotReady) {
            waiting_bytes::forget(device, stream);
        }
    }
    waiting_bytes::add(device, stream, bytes)
}
