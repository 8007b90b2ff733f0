//! Streams as programs name them: special values, and handles.

use super::connection;
use super::handles::{Handles, Kind};
use super::thread;
use balar_host::{Call, CallResult, CudaError};

/// `cudaStreamLegacy`.
const LEGACY: u64 = 1;
/// `cudaStreamPerThread`.
const PER_THREAD: u64 = 2;

/// A stream's handle as C has it (`cudaStream_t`, `CUstream`).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHandle(pub u64);

impl StreamHandle {
    /// The default stream, whichever that is for the function called.
    pub const DEFAULT: StreamHandle = StreamHandle(0);
}

/// A stream that the program made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The simulator's number.
    pub number: u32,
    /// The device that it belongs to.
    pub device: u32,
    /// The flags of its creation.
    pub flags: u32,
    /// Its priority.
    pub priority: i32,
}

/// The streams that the program has made.
pub static STREAMS: Handles<Stream> = Handles::new(Kind::Stream);

/// A default stream, or one that the program made.
pub fn resolve(handle: StreamHandle) -> Result<Stream, CudaError> {
    let device = thread::device();
    let default = |number| Stream { number, device, flags: 0, priority: 0 };
    match handle.0 {
        0 if thread::default_stream_is_of_thread() => Ok(default(of_thread(device)?)),
        0 | LEGACY => Ok(default(0)),
        PER_THREAD => Ok(default(of_thread(device)?)),
        handle => STREAMS.get(handle),
    }
}

/// The simulator's number of a stream.
pub fn number(handle: StreamHandle) -> Result<u32, CudaError> {
    Ok(resolve(handle)?.number)
}

/// The calling thread's own default stream, which is made when it is first used.
fn of_thread(device: u32) -> Result<u32, CudaError> {
    if let Some(number) = thread::with(|thread| thread.default_streams.borrow().get(&device).copied()) {
        return Ok(number);
    }
    let create = Call::StreamCreate { non_blocking: false, priority: 0 };
    let CallResult::Stream(number) = connection::call_on(device, &create)? else { return Err(CudaError::Unknown) };
    thread::with(|thread| thread.default_streams.borrow_mut().insert(device, number));
    Ok(number)
}
