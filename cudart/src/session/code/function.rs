//! Settings of kernels, and questions about them.

use crate::session::code::loaded::Kernel;
use crate::session::connection;
use balar_host::call::{Function, FunctionAttributes};
use balar_host::{Call, CallResult, CudaError};
use std::ffi::c_int;
use std::sync::atomic::Ordering;

/// The attributes of a kernel on the device that runs it.
pub fn attributes(kernel: &Kernel) -> Result<FunctionAttributes, CudaError> {
    let loaded = kernel.loaded()?;
    let call = Call::FunctionAttributes { function: loaded.function() };
    match connection::call_on(loaded.device, &call)? {
        CallResult::Attributes(attributes) => Ok(attributes),
        _ => Err(CudaError::Unknown),
    }
}

/// Values of `cudaFuncAttribute`.
mod attribute {
    pub const DYNAMIC_SHARED_BYTES: i32 = 8;
    pub const CARVEOUT: i32 = 9;
    pub const NON_PORTABLE_CLUSTERS: i32 = 14;
    pub const CLUSTER_SCHEDULING: i32 = 15;
}

/// Sets an attribute of a kernel on a device. Both APIs have the same numbers for the attributes that can be set.
pub fn set_attribute(kernel: &Kernel, device: u32, attribute: c_int, value: c_int) -> Result<(), CudaError> {
    match attribute {
        attribute::DYNAMIC_SHARED_BYTES => {
            let bytes = u32::try_from(value).map_err(|_| CudaError::InvalidValue)?;
            let module = kernel.code.on(device)?;
            if !module.functions.contains_key(&kernel.name) {
                return Err(CudaError::InvalidDeviceFunction);
            }
            let function = Function { module: module.number, name: kernel.name.clone() };
            connection::call_on(device, &Call::SetDynamicSharedLimit { function, bytes }).map(|_| ())
        }
        attribute::CARVEOUT if (-1..=100).contains(&value) => {
            kernel.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        // The devices have no clusters: how they would be scheduled changes nothing.
        attribute::NON_PORTABLE_CLUSTERS | attribute::CLUSTER_SCHEDULING => Ok(()),
        _ => Err(CudaError::InvalidValue),
    }
}
