//! Contexts: the driver's name for a device in use.

use crate::abi::arguments::{In, Out};
use crate::abi::driver::{ContextParameters, DeviceResource};
use crate::session::api::Outcome;
use crate::session::connection::description;
use crate::session::contexts::context::{self, ContextHandle};
use crate::session::devices::device;
use crate::{driver_api, forwards};
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

/// The version of the interface that contexts report: that of CUDA 3.2, since which it has been the same.
const API_VERSION: u32 = 3020;

fn create(place: Out<ContextHandle>, flags: u32, device: c_int) -> Outcome {
    place.check()?;
    place.set(context::create(flags, device)?)
}

fn pop(place: Out<ContextHandle>) -> Outcome {
    place.set_if_wanted(context::pop()?);
    Ok(())
}

forwards! {
    fn cuCtxDestroy(context: ContextHandle) => devices::context_ends::destroy;
    fn cuCtxDestroy_v2(context: ContextHandle) => devices::context_ends::destroy;
    fn cuCtxDetach(context: ContextHandle) => devices::context_ends::detach;
    fn cuCtxPushCurrent(context: ContextHandle) => contexts::context::push;
    fn cuCtxPushCurrent_v2(context: ContextHandle) => contexts::context::push;
    fn cuCtxSetCurrent(context: ContextHandle) => contexts::context::set_current;
    fn cuCtxSetFlags(flags: u32) => contexts::context::set_flags;
    context fn cuCtxSynchronize() => devices::device::synchronize;
    fn cuDevicePrimaryCtxRelease(device: c_int) => devices::context_ends::release;
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) => devices::context_ends::release;
    fn cuDevicePrimaryCtxReset(device: c_int) => devices::context_ends::reset;
    fn cuDevicePrimaryCtxReset_v2(device: c_int) => devices::context_ends::reset;
    fn cuDevicePrimaryCtxSetFlags(device: c_int, flags: u32) => contexts::context::set_primary_flags;
    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: u32) => contexts::context::set_primary_flags;
    context fn cuCtxSetLimit(limit: c_int, value: usize) => devices::device::set_limit;
    context fn cuCtxSetCacheConfig(preference: c_int) => devices::device::set_cache;
    context fn cuCtxSetSharedMemConfig(banks: c_int) => devices::device::set_bank_size;
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

    fn cuCtxCreate_v4(place: Out<ContextHandle>, parameters: In<ContextParameters>, flags: u32, device: c_int) {
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

    fn cuCtxAttach(place: Out<ContextHandle>, flags: u32) {
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        place.set(context::attach()?)
    }

    fn cuCtxPopCurrent(place: Out<ContextHandle>) {
        pop(place)
    }

    fn cuCtxPopCurrent_v2(place: Out<ContextHandle>) {
        pop(place)
    }

    fn cuCtxGetCurrent(place: Out<ContextHandle>) {
        place.set(context::top())
    }

    fn cuCtxGetDevice(place: Out<c_int>) {
        place.set(context::current()?.1 as c_int)
    }

    fn cuCtxGetDevice_v2(place: Out<c_int>, context: ContextHandle) {
        place.set(context::device_of(context)? as c_int)
    }

    fn cuCtxGetDevResource(context: ContextHandle, resource: Out<DeviceResource>, kind: u32) {
        resource.check()?;
        resource.set(device::resource(context::device_of(context)? as c_int, kind)?)
    }

    fn cuCtxGetId(context: ContextHandle, place: Out<u64>) {
        // Handles are never reused, so that they can serve as identifiers.
        place.set(context::check(context)?)
    }

    fn cuCtxGetFlags(place: Out<u32>) {
        place.set(context::flags()?)
    }

    fn cuCtxGetApiVersion(context: ContextHandle, place: Out<u32>) {
        context::check(context)?;
        place.set(API_VERSION)
    }

    fn cuCtxSynchronize_v2(context: ContextHandle) {
        context::with_device(context::device_of(context)?, device::synchronize)
    }

    fn cuDevicePrimaryCtxRetain(place: Out<ContextHandle>, device: c_int) {
        place.check()?;
        place.set(context::retain(device)?)
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<u32>, active: Out<c_int>) {
        let (found, is_active) = context::primary_state(device)?;
        flags.set(found)?;
        active.set(c_int::from(is_active))
    }

    context fn cuCtxEnablePeerAccess(context: ContextHandle, flags: u32) {
        device::enable_peer_access(context::peer(context)? as c_int, flags)
    }

    context fn cuCtxDisablePeerAccess(context: ContextHandle) {
        device::disable_peer_access(context::peer(context)? as c_int)
    }

    context fn cuCtxGetLimit(value: Out<usize>, limit: c_int) {
        value.set(device::driver_limit(limit)?)
    }

    context fn cuCtxGetCacheConfig(preference: Out<c_int>) {
        description::description()?;
        preference.set(device::settings().cache)
    }

    context fn cuCtxGetSharedMemConfig(banks: Out<c_int>) {
        description::description()?;
        banks.set(device::BANK_SIZE)
    }
}
