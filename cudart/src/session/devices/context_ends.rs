//! How contexts end.

use crate::session::connection::description;
use crate::session::contexts::context::{
    CONTEXTS, ContextHandle, current, get, primaries, primary, runtime_is_used, with_device,
};
use crate::session::contexts::storage;
use crate::session::devices::device;
use crate::session::state::thread;
use balar_host::CudaError;
use std::ffi::c_int;

/// Ends a context: the work of its device is done first, as its memory would otherwise end under that work.
pub fn destroy(handle: ContextHandle) -> Result<(), CudaError> {
    let context = get(handle)?;
    if context.primary {
        return Err(CudaError::InvalidValue);
    }
    let outcome = with_device(context.device, device::synchronize);
    storage::context_ends(handle);
    CONTEXTS.remove(handle).map_err(|_| CudaError::DeviceUninitialized)?;
    if thread::with(|thread| thread.contexts.borrow().last() == Some(&handle)) {
        thread::with(|thread| thread.contexts.borrow_mut().pop());
        if let Ok((_, device)) = current() {
            thread::with(|thread| thread.device.set(device));
        }
    }
    // A mistake of earlier work is no failure of the end.
    match outcome {
        Err(error) if !device::is_sticky(error) => Err(error),
        _ => Ok(()),
    }
}

/// Ends one use that `context::attach` counted. The context ends with its last user.
pub fn detach(handle: ContextHandle) -> Result<(), CudaError> {
    get(handle)?;
    let attached = CONTEXTS.with(handle, |context| {
        context.attached = context.attached.saturating_sub(1);
        context.attached
    })?;
    if attached == 0 { destroy(handle) } else { Ok(()) }
}

/// Ends everything of the program on a device.
pub fn reset(device: c_int) -> Result<(), CudaError> {
    description::device_of(device)?;
    storage::context_ends(primary(device as u32));
    with_device(device as u32, device::reset)
}

/// Releases a primary context. The last release resets the device, unless the runtime or another context uses it.
pub fn release(device: c_int) -> Result<(), CudaError> {
    description::device_of(device)?;
    let last = {
        let mut primaries = primaries();
        let primary = primaries.entry(device as u32).or_default();
        if primary.retained == 0 {
            return Err(CudaError::DeviceUninitialized);
        }
        primary.retained -= 1;
        primary.retained == 0
    };
    // Contexts that the program has made share the device.
    let shared = || CONTEXTS.find(|context| !context.primary && context.device == device as u32).is_some();
    if last && !runtime_is_used() && !shared() { reset(device) } else { Ok(()) }
}
