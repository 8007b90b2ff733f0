//! Contexts: the driver's name for a device in use. Each device has a primary one, which is the runtime's; a program can make more, but
//! they share the device's memory and streams.

use crate::session::connection::description;
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::thread;
use balar_host::CudaError;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle of a context, or 0.
pub type ContextHandle = u64;

#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Context {
    pub(in crate::session) device: u32,
    pub(in crate::session) primary: bool,
    pub(in crate::session) flags: u32,
    /// How often `cuCtxAttach` has been called, and 1.
    pub(in crate::session) attached: u32,
}

/// The primary context of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::session) struct Primary {
    pub(in crate::session) handle: ContextHandle,
    /// `cuDevicePrimaryCtxRetain` less `cuDevicePrimaryCtxRelease`.
    pub(in crate::session) retained: u32,
    pub(in crate::session) flags: u32,
}

/// The program has called functions of the runtime.
static RUNTIME_IS_USED: AtomicBool = AtomicBool::new(false);

pub(in crate::session) static CONTEXTS: Handles<Context> = Handles::new(Kind::Context);

static PRIMARY: Mutex<BTreeMap<u32, Primary>> = Mutex::new(BTreeMap::new());

pub(in crate::session) fn primaries() -> MutexGuard<'static, BTreeMap<u32, Primary>> {
    PRIMARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the program called functions of the runtime? Its primary contexts are then in use.
pub fn runtime_is_used() -> bool {
    RUNTIME_IS_USED.load(Ordering::Relaxed)
}

/// The program has called a function of the runtime.
pub fn use_runtime() {
    RUNTIME_IS_USED.store(true, Ordering::Relaxed);
}

/// The handle of a device's primary context.
pub fn primary(device: u32) -> ContextHandle {
    let mut primaries = primaries();
    let primary = primaries.entry(device).or_default();
    if primary.handle == 0 {
        primary.handle = CONTEXTS.insert(Context { device, primary: true, flags: 0, attached: 1 });
    }
    primary.handle
}

/// The calling thread's context, or 0 where it has none.
pub fn top() -> ContextHandle {
    let (top, device) = thread::with(|thread| (thread.contexts.borrow().last().copied(), thread.device.get()));
    match top {
        Some(handle) => {
            // `cudaSetDevice` makes the device's primary context the current one.
            if CONTEXTS.get(handle).is_ok_and(|context| context.device != device) {
                let primary = primary(device);
                replace_top(primary);
                return primary;
            }
            handle
        }
        None if runtime_is_used() => primary(device),
        None => 0,
    }
}

fn replace_top(handle: ContextHandle) {
    thread::with(|thread| {
        let mut stack = thread.contexts.borrow_mut();
        stack.pop();
        stack.push(handle);
    });
}

/// The calling thread's context and its device.
pub fn current() -> Result<(ContextHandle, u32), CudaError> {
    match top() {
        0 => Err(CudaError::DeviceUninitialized),
        handle => match CONTEXTS.get(handle) {
            Ok(context) => Ok((handle, context.device)),
            Err(_) => Err(CudaError::ContextIsDestroyed),
        },
    }
}

pub(in crate::session) fn get(handle: ContextHandle) -> Result<Context, CudaError> {
    CONTEXTS.get(handle).map_err(|_| CudaError::DeviceUninitialized)
}

/// The device of a context; that of the current one for 0.
pub fn device_of(handle: ContextHandle) -> Result<u32, CudaError> {
    if handle == 0 { current().map(|(_, device)| device) } else { get(handle).map(|context| context.device) }
}

/// Calls `call` with `device` as the thread's current device.
pub fn with_device<T>(device: u32, call: impl FnOnce() -> T) -> T {
    let before = thread::with(|thread| thread.device.replace(device));
    let result = call();
    thread::with(|thread| thread.device.set(before));
    result
}

/// Makes a context the current one, over those that the thread has.
pub fn push(handle: ContextHandle) -> Result<(), CudaError> {
    let context = get(handle)?;
    thread::with(|thread| {
        thread.contexts.borrow_mut().push(handle);
        thread.device.set(context.device);
    });
    Ok(())
}

/// Ends the current context's being so; gives it.
pub fn pop() -> Result<ContextHandle, CudaError> {
    let (handle, _) = current()?;
    thread::with(|thread| {
        let mut stack = thread.contexts.borrow_mut();
        stack.pop();
        if let Some(context) = stack.last().and_then(|below| CONTEXTS.get(*below).ok()) {
            thread.device.set(context.device);
        }
    });
    Ok(handle)
}

/// Makes a context and makes it the current one.
pub fn create(flags: u32, device: c_int) -> Result<ContextHandle, CudaError> {
    description::device_of(device)?;
    let handle = CONTEXTS.insert(Context { device: device as u32, primary: false, flags, attached: 1 });
    push(handle)?;
    Ok(handle)
}

/// Makes a context the current one in place of the one that is; 0 makes the one below that the current one.
pub fn set_current(handle: ContextHandle) -> Result<(), CudaError> {
    if handle == 0 {
        thread::with(|thread| thread.contexts.borrow_mut().pop());
        return Ok(());
    }
    let device = get(handle)?.device;
    replace_top(handle);
    thread::with(|thread| thread.device.set(device));
    Ok(())
}

/// Counts a user of the current context; returns the context.
pub fn attach() -> Result<ContextHandle, CudaError> {
    let (handle, _) = current()?;
    CONTEXTS.with(handle, |context| context.attached += 1)?;
    Ok(handle)
}

/// The handle of a context that is there; that of the current one for 0.
pub fn check(handle: ContextHandle) -> Result<ContextHandle, CudaError> {
    if handle == 0 { current().map(|(handle, _)| handle) } else { get(handle).map(|_| handle) }
}

/// The device of a context that is named.
pub fn peer(handle: ContextHandle) -> Result<u32, CudaError> {
    get(handle).map(|context| context.device)
}

/// The flags of the current context.
pub fn flags() -> Result<u32, CudaError> {
    let (handle, device) = current()?;
    let context = get(handle)?;
    Ok(if context.primary { primaries().get(&device).map_or(0, |primary| primary.flags) } else { context.flags })
}

/// Sets the flags of the current context.
pub fn set_flags(flags: u32) -> Result<(), CudaError> {
    let (handle, device) = current()?;
    primaries().entry(device).or_default().flags = flags;
    CONTEXTS.with(handle, |context| context.flags = flags)
}

/// Counts a user of a device's primary context; returns the context.
pub fn retain(device: c_int) -> Result<ContextHandle, CudaError> {
    description::device_of(device)?;
    let handle = primary(device as u32);
    primaries().entry(device as u32).or_default().retained += 1;
    Ok(handle)
}

/// The flags of a device's primary context, and whether it is in use.
pub fn primary_state(device: c_int) -> Result<(u32, bool), CudaError> {
    description::device_of(device)?;
    let primary = primaries().get(&(device as u32)).copied().unwrap_or_default();
    Ok((primary.flags, primary.retained > 0 || runtime_is_used()))
}

/// Sets the flags of a primary context.
pub fn set_primary_flags(device: c_int, flags: u32) -> Result<(), CudaError> {
    description::device_of(device)?;
    primaries().entry(device as u32).or_default().flags = flags;
    Ok(())
}
