//! Putting operations into streams, or into the graphs that streams capture.

use crate::abi::stream::StreamHandle;
use crate::session::connection;
use crate::session::order::operation::Operation;
use crate::session::order::{capture, copying, stream};
use crate::session::state::thread;
use balar_host::{CallResult, CudaError};

/// Puts an operation into a stream, or into the graph that the stream captures. A copy that is not `asynchronous` is over when this
/// returns.
pub fn enqueue(handle: StreamHandle, operation: Operation, asynchronous: bool) -> Result<CallResult, CudaError> {
    enqueue_on(thread::device(), handle, operation, asynchronous)
}

/// As [`enqueue`], with another device than the current one for work that depends on it.
pub fn enqueue_on(
    device: u32,
    handle: StreamHandle,
    operation: Operation,
    asynchronous: bool,
) -> Result<CallResult, CudaError> {
    let stream = stream::resolve(handle)?;
    let Some(operation) = capture::take(&stream, operation, asynchronous)? else { return Ok(CallResult::None) };
    match operation {
        Operation::Copy(copy) => copying::run(&copy, device, stream.number, asynchronous).map(|()| CallResult::None),
        Operation::Call(mut call) => {
            if let Some(own) = call.stream_mut() {
                *own = stream.number;
            }
            connection::call_on(device, &call)
        }
    }
}
