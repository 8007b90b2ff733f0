//! Memory and events that processes share.

use crate::abi::ipc::IpcHandle;
use crate::session::addresses::ranges;
use crate::session::connection::{self, translation};
use crate::session::order::event;
use crate::session::state::events::{EVENTS, Event};
use crate::session::state::{captures, thread};
use balar_host::call::IpcCall;
use balar_host::{Call, CallResult, CudaError};

/// The first words of handles, which tell their kind.
const MEMORY: u64 = u64::from_le_bytes(*b"balarmem");
const EVENT: u64 = u64::from_le_bytes(*b"balarevt");
/// `cudaIpcMemLazyEnablePeerAccess`: the one flag that there is, and a must.
const LAZY_PEER_ACCESS: u32 = 1;

/// A handle of a kind: the simulator's number, and a device of the node.
fn handle(kind: u64, number: u64, device: u64) -> IpcHandle {
    IpcHandle([kind, number, device, 0, 0, 0, 0, 0])
}

/// The number and the device of a handle of a kind.
fn read(handle: IpcHandle, kind: u64, otherwise: CudaError) -> Result<(u64, u64), CudaError> {
    match handle.0 {
        [found, number, device, 0, 0, 0, 0, 0] if found == kind => Ok((number, device)),
        _ => Err(otherwise),
    }
}

fn object(call: IpcCall) -> Result<u64, CudaError> {
    match connection::call(&Call::Ipc(call))? {
        CallResult::Object(number) => Ok(number),
        _ => Err(CudaError::Unknown),
    }
}

/// The handle of the device memory that an address is in.
pub fn memory_handle(pointer: u64) -> Result<IpcHandle, CudaError> {
    captures::require_safe()?;
    Ok(handle(MEMORY, object(IpcCall::MemoryHandle { pointer })?, 0))
}

/// Opens memory of another process; returns where it begins.
pub fn open_memory(shared: IpcHandle, flags: u32) -> Result<u64, CudaError> {
    if flags != LAZY_PEER_ACCESS {
        return Err(CudaError::InvalidValue);
    }
    let (number, _) = read(shared, MEMORY, CudaError::InvalidValue)?;
    captures::require_safe()?;
    connection::pointer(&Call::Ipc(IpcCall::OpenMemory { handle: number }))
}

/// Closes memory of another process, once for each time that it was opened.
pub fn close_memory(pointer: u64) -> Result<(), CudaError> {
    captures::require_safe()?;
    connection::done(&Call::Ipc(IpcCall::CloseMemory { pointer }))?;
    ranges::forget_device_memory(pointer);
    Ok(())
}

/// The handle of an event that was made for several processes.
pub fn event_handle(event: u64) -> Result<IpcHandle, CudaError> {
    let Event { number, device, flags, .. } = EVENTS.get(event)?;
    if flags & event::INTERPROCESS == 0 {
        return Err(CudaError::InvalidResourceHandle);
    }
    let node_device = translation::of_node(device)?;
    Ok(handle(EVENT, object(IpcCall::EventHandle { event: number })?, node_device.into()))
}

/// Opens an event of another process.
pub fn open_event(shared: IpcHandle) -> Result<u64, CudaError> {
    let (number, node_device) = read(shared, EVENT, CudaError::InvalidResourceHandle)?;
    let node_device = u32::try_from(node_device).map_err(|_| CudaError::InvalidResourceHandle)?;
    let call = Call::Ipc(IpcCall::OpenEvent { handle: number });
    let CallResult::Event(number) = connection::call_on(thread::device(), &call)? else {
        return Err(CudaError::Unknown);
    };
    let device = translation::of_program(node_device);
    if device == u32::MAX {
        // The process does not see the event's device, so no stream of it can wait for it.
        connection::call(&Call::EventDestroy { event: number })?;
        return Err(CudaError::InvalidDevice);
    }
    let flags = event::INTERPROCESS | event::DISABLE_TIMING;
    Ok(EVENTS.insert(Event { number, device, flags, captured: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_told_apart() {
        let shared = handle(MEMORY, 7, 0);
        assert_eq!(read(shared, MEMORY, CudaError::InvalidValue), Ok((7, 0)));
        let wrong = CudaError::InvalidResourceHandle;
        assert_eq!(read(shared, EVENT, wrong), Err(wrong));
        assert_eq!(read(IpcHandle([0; 8]), EVENT, wrong), Err(wrong));
        let mut longer = shared;
        longer.0[7] = 1;
        assert_eq!(read(longer, MEMORY, wrong), Err(wrong));
    }
}
