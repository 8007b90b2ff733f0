//! Events.

use crate::abi::stream::StreamHandle;
use crate::session::order::{capture, stream};
use crate::session::state::events::{EVENTS, Event};
use crate::session::state::{captures, thread};
use crate::session::{connection, graph};
use balar_host::{Call, CallResult, CudaError};

/// `cudaEventBlockingSync`.
const BLOCKING_SYNC: u32 = 1;
/// `cudaEventDisableTiming`.
pub const DISABLE_TIMING: u32 = 2;
/// `cudaEventInterprocess`.
pub const INTERPROCESS: u32 = 4;

/// Makes an event on the current device.
pub fn create(flags: u32) -> Result<u64, CudaError> {
    let is_known = flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) == 0;
    // Events for several processes have no timing.
    if !is_known || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
        return Err(CudaError::InvalidValue);
    }
    let device = thread::device();
    let call = Call::EventCreate { timed: flags & DISABLE_TIMING == 0 };
    let CallResult::Event(number) = connection::call_on(device, &call)? else { return Err(CudaError::Unknown) };
    Ok(EVENTS.insert(Event { number, device, flags, captured: None }))
}

/// Ends an event.
pub fn destroy(handle: u64) -> Result<(), CudaError> {
    let event = EVENTS.remove(handle)?;
    connection::call_on(event.device, &Call::EventDestroy { event: event.number }).map(|_| ())
}

/// Forgets the events of a device that has been reset.
pub fn forget_device(device: u32) {
    let ended = EVENTS.retain(|_, event| event.device != device);
    drop(ended);
}

/// Records an event in a stream.
pub fn record(handle: u64, stream: StreamHandle, flags: u32) -> Result<(), CudaError> {
    const EXTERNAL: u32 = 1;
    if flags & !EXTERNAL != 0 {
        return Err(CudaError::InvalidValue);
    }
    let (event, device) = EVENTS.with(handle, |event| (event.number, event.device))?;
    let stream = stream::resolve(stream)?;
    if stream.device != device {
        return Err(CudaError::InvalidResourceHandle);
    }
    if flags & EXTERNAL != 0 {
        let node = capture::take_work(&stream, || Ok(graph::Work::EventRecord(handle)))?;
        return if node.is_some() { Ok(()) } else { Err(CudaError::IllegalState) };
    }
    let captured = captures::record(&stream)?;
    let is_captured = captured.is_some();
    EVENTS.with(handle, |event| event.captured = captured)?;
    if is_captured {
        return Ok(());
    }
    connection::call_on(device, &Call::EventRecord { event, stream: stream.number }).map(|_| ())
}

/// Asks whether an event has been reached; `NotReady` if it has not.
pub fn query(handle: u64) -> Result<(), CudaError> {
    let event = EVENTS.get(handle)?;
    captures::forbid_event(event.captured.as_ref())?;
    captures::require_safe()?;
    connection::call_on(event.device, &Call::EventQuery { event: event.number }).map(|_| ())
}

/// Waits for an event.
pub fn synchronize(handle: u64) -> Result<(), CudaError> {
    let event = EVENTS.get(handle)?;
    captures::forbid_event(event.captured.as_ref())?;
    captures::require_safe()?;
    connection::call_on(event.device, &Call::EventSynchronize { event: event.number }).map(|_| ())
}

/// Milliseconds between two events.
pub fn elapsed(start: u64, end: u64) -> Result<f32, CudaError> {
    let (start, end) = (EVENTS.get(start)?, EVENTS.get(end)?);
    captures::forbid_event(start.captured.as_ref())?;
    captures::forbid_event(end.captured.as_ref())?;
    if (start.flags | end.flags) & DISABLE_TIMING != 0 || start.device != end.device {
        return Err(CudaError::InvalidResourceHandle);
    }
    let call = Call::EventElapsed { start: start.number, end: end.number };
    let CallResult::Elapsed { picoseconds } = connection::call_on(start.device, &call)? else {
        return Err(CudaError::Unknown);
    };
    Ok((picoseconds as f64 / 1e9) as f32)
}
