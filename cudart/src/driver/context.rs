//! Contexts: what the driver calls a device in use. Each device has a primary one, which is the runtime's; a program can make more,
//! but they share the device's memory and streams.

use crate::abi::arguments::{In, Out};
use crate::driver_api;
use crate::runtime;
use crate::session::api::Outcome;
use crate::session::handles::{Handles, Kind};
use crate::session::{process, thread};
use balar_host::CudaError;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle of a context, or 0.
pub type ContextHandle = u64;

#[derive(Clone, Copy, Debug)]
struct Context {
    device: u32,
    primary: bool,
    flags: u32,
    /// How often `cuCtxAttach` has been called, and 1.
    attached: u32,
}

/// The primary context of a device.
#[derive(Clone, Copy, Debug, Default)]
struct Primary {
    handle: ContextHandle,
    /// `cuDevicePrimaryCtxRetain` less `cuDevicePrimaryCtxRelease`.
    retained: u32,
    flags: u32,
}

static CONTEXTS: Handles<Context> = Handles::new(Kind::Context);
static PRIMARY: Mutex<BTreeMap<u32, Primary>> = Mutex::new(BTreeMap::new());

/// The version of the interface that contexts report: that of CUDA 3.2, since which it has been the same.
const API_VERSION: u32 = 3020;

fn primaries() -> MutexGuard<'static, BTreeMap<u32, Primary>> {
    PRIMARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the program has called functions of the runtime: its primary contexts are then in use.
pub fn runtime_is_used() -> bool {
    crate::session::api::runtime_is_used()
}

/// The handle of a device's primary context.
pub(super) fn primary(device: u32) -> ContextHandle {
    let mut primaries = primaries();
    let primary = primaries.entry(device).or_default();
    if primary.handle == 0 {
        primary.handle = CONTEXTS.insert(Context { device, primary: true, flags: 0, attached: 1 });
    }
    primary.handle
}

/// The calling thread's context, or 0 where it has none.
fn top() -> ContextHandle {
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

fn get(handle: ContextHandle) -> Result<Context, CudaError> {
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
fn push(handle: ContextHandle) -> Outcome {
    let context = get(handle)?;
    thread::with(|thread| {
        thread.contexts.borrow_mut().push(handle);
        thread.device.set(context.device);
    });
    Ok(())
}

/// Ends the current context's being so; gives it.
fn pop() -> Result<ContextHandle, CudaError> {
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

fn create(place: Out<ContextHandle>, flags: u32, device: c_int) -> Outcome {
    place.check()?;
    process::device_of(device)?;
    let context = Context { device: device as u32, primary: false, flags, attached: 1 };
    let handle = CONTEXTS.insert(context);
    push(handle)?;
    place.set(handle)
}

/// Ends a context: the work of its device is done first, as what it holds would otherwise end under it.
fn destroy(handle: ContextHandle) -> Outcome {
    let context = get(handle)?;
    if context.primary {
        return Err(CudaError::InvalidValue);
    }
    let outcome = with_device(context.device, || runtime!(device::cudaDeviceSynchronize()));
    CONTEXTS.remove(handle).map_err(|_| CudaError::DeviceUninitialized)?;
    if thread::with(|thread| thread.contexts.borrow().last() == Some(&handle)) {
        thread::with(|thread| thread.contexts.borrow_mut().pop());
        if let Ok((_, device)) = current() {
            thread::with(|thread| thread.device.set(device));
        }
    }
    // What earlier work did wrong is no failure of the end.
    match outcome {
        Err(error) if !thread::is_sticky(error) => Err(error),
        _ => Ok(()),
    }
}

driver_api! {
    fn cuCtxCreate(place: Out<ContextHandle>, flags: u32, device: c_int) {
        create(place, flags, device)
    }

    fn cuCtxCreate_v2(place: Out<ContextHandle>, flags: u32, device: c_int) {
        create(place, flags, device)
    }

    fn cuCtxCreate_v3(place: Out<ContextHandle>, affinity: *const c_void, affinities: c_int, flags: u32, device: c_int) {
        if !affinity.is_null() && affinities != 0 {
            return Err(CudaError::UnsupportedExecAffinity);
        }
        create(place, flags, device)
    }

    fn cuCtxCreate_v4(place: Out<ContextHandle>, parameters: In<CreateParameters>, flags: u32, device: c_int) {
        if let Some(parameters) = parameters.get_if_given() {
            if !parameters.affinity.is_null() && parameters.affinities != 0 {
                return Err(CudaError::UnsupportedExecAffinity);
            }
            if !parameters.graphics.is_null() {
                return Err(CudaError::NotSupported);
            }
        }
        create(place, flags, device)
    }

    fn cuCtxDestroy(context: ContextHandle) {
        destroy(context)
    }

    fn cuCtxDestroy_v2(context: ContextHandle) {
        destroy(context)
    }

    fn cuCtxAttach(place: Out<ContextHandle>, flags: u32) {
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        let (handle, _) = current()?;
        CONTEXTS.with(handle, |context| context.attached += 1)?;
        place.set(handle)
    }

    fn cuCtxDetach(context: ContextHandle) {
        get(context)?;
        let attached = CONTEXTS.with(context, |context| {
            context.attached = context.attached.saturating_sub(1);
            context.attached
        })?;
        if attached == 0 { destroy(context) } else { Ok(()) }
    }

    fn cuCtxPushCurrent(context: ContextHandle) {
        push(context)
    }

    fn cuCtxPushCurrent_v2(context: ContextHandle) {
        push(context)
    }

    fn cuCtxPopCurrent(place: Out<ContextHandle>) {
        place.set_if_wanted(pop()?);
        Ok(())
    }

    fn cuCtxPopCurrent_v2(place: Out<ContextHandle>) {
        place.set_if_wanted(pop()?);
        Ok(())
    }

    fn cuCtxSetCurrent(context: ContextHandle) {
        if context == 0 {
            thread::with(|thread| thread.contexts.borrow_mut().pop());
            return Ok(());
        }
        let device = get(context)?.device;
        replace_top(context);
        thread::with(|thread| thread.device.set(device));
        Ok(())
    }

    fn cuCtxGetCurrent(place: Out<ContextHandle>) {
        place.set(top())
    }

    fn cuCtxGetDevice(place: Out<c_int>) {
        place.set(current()?.1 as c_int)
    }

    fn cuCtxGetDevice_v2(place: Out<c_int>, context: ContextHandle) {
        place.set(device_of(context)? as c_int)
    }

    fn cuCtxGetId(context: ContextHandle, place: Out<u64>) {
        let handle = if context == 0 { current()?.0 } else { context };
        get(handle)?;
        // Handles are never used again, which is what is wanted of the identifier.
        place.set(handle)
    }

    fn cuCtxGetFlags(place: Out<u32>) {
        let (handle, device) = current()?;
        let context = get(handle)?;
        let flags = if context.primary { primaries().get(&device).map_or(0, |primary| primary.flags) } else { context.flags };
        place.set(flags)
    }

    fn cuCtxSetFlags(flags: u32) {
        let (handle, device) = current()?;
        primaries().entry(device).or_default().flags = flags;
        CONTEXTS.with(handle, |context| context.flags = flags)
    }

    fn cuCtxGetApiVersion(context: ContextHandle, place: Out<u32>) {
        if context == 0 { current()?; } else { get(context)?; }
        place.set(API_VERSION)
    }

    context fn cuCtxSynchronize() {
        runtime!(device::cudaDeviceSynchronize())
    }

    fn cuCtxSynchronize_v2(context: ContextHandle) {
        let device = device_of(context)?;
        with_device(device, || runtime!(device::cudaDeviceSynchronize()))
    }

    fn cuDevicePrimaryCtxRetain(place: Out<ContextHandle>, device: c_int) {
        place.check()?;
        process::device_of(device)?;
        let handle = primary(device as u32);
        primaries().entry(device as u32).or_default().retained += 1;
        place.set(handle)
    }

    fn cuDevicePrimaryCtxRelease(device: c_int) {
        release(device)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        release(device)
    }

    fn cuDevicePrimaryCtxReset(device: c_int) {
        reset(device)
    }

    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        reset(device)
    }

    fn cuDevicePrimaryCtxSetFlags(device: c_int, flags: u32) {
        set_flags(device, flags)
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: u32) {
        set_flags(device, flags)
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<u32>, active: Out<c_int>) {
        process::device_of(device)?;
        let primary = primaries().get(&(device as u32)).copied().unwrap_or_default();
        flags.set(primary.flags)?;
        active.set(c_int::from(primary.retained > 0 || runtime_is_used()))
    }

    context fn cuCtxEnablePeerAccess(context: ContextHandle, flags: u32) {
        let peer = get(context)?.device as c_int;
        runtime!(device::cudaDeviceEnablePeerAccess(peer, flags))
    }

    context fn cuCtxDisablePeerAccess(context: ContextHandle) {
        let peer = get(context)?.device as c_int;
        runtime!(device::cudaDeviceDisablePeerAccess(peer))
    }

}

/// `CUctxCreateParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CreateParameters {
    affinity: *const c_void,
    affinities: c_int,
    /// For use together with a graphics library.
    graphics: *const c_void,
}

fn set_flags(device: c_int, flags: u32) -> Outcome {
    process::device_of(device)?;
    primaries().entry(device as u32).or_default().flags = flags;
    Ok(())
}

fn reset(device: c_int) -> Outcome {
    process::device_of(device)?;
    with_device(device as u32, || runtime!(device::cudaDeviceReset()))
}

/// Gives a primary context back. Nobody uses it after the last time, and what it holds ends; the runtime never gives it back.
fn release(device: c_int) -> Outcome {
    process::device_of(device)?;
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
