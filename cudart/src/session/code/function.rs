//! Settings of kernels, and questions about them.

use crate::abi::function::ClusterSettings;
use crate::session::code::loaded::Kernel;
use crate::session::connection;
use balar_host::call::{Function, FunctionAttributes};
use balar_host::{Call, CallResult, CudaError};
use std::ffi::c_int;
use std::sync::PoisonError;
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
    pub const CLUSTER_WIDTH: i32 = 11;
    pub const CLUSTER_DEPTH: i32 = 13;
    pub const NON_PORTABLE_CLUSTERS: i32 = 14;
    pub const CLUSTER_SCHEDULING: i32 = 15;
}

fn function_on(kernel: &Kernel, device: u32) -> Result<Function, CudaError> {
    let module = kernel.code.on(device)?;
    if !module.functions.contains_key(&kernel.name) {
        return Err(CudaError::InvalidDeviceFunction);
    }
    Ok(Function { module: module.number, name: kernel.name.clone() })
}

/// Launches of the kernel on a device prefer so much of the largest shared memory, percent.
fn set_carveout(kernel: &Kernel, device: u32, percent: Option<u8>) -> Result<(), CudaError> {
    let function = function_on(kernel, device)?;
    connection::call_on(device, &Call::SetPreferredCarveOut { function, percent }).map(|_| ())
}

/// Sets whether a kernel on a device prefers shared memory or the L1 cache (`cudaFuncCache`, `CUfunc_cache`), which is a carve-out, too: the
/// largest, the smallest, or a half. Where shared memory can have 16, 32 or 48 KiB, as on compute capability 3.5, these are 48, 16 and 32.
pub fn set_cache(kernel: &Kernel, device: u32, preference: c_int) -> Result<(), CudaError> {
    let percent = match preference {
        0 => None,
        1 => Some(100),
        2 => Some(0),
        3 => Some(50),
        _ => return Err(CudaError::InvalidValue),
    };
    set_carveout(kernel, device, percent)
}

fn set_clusters(kernel: &Kernel, change: impl FnOnce(&mut ClusterSettings)) -> Result<(), CudaError> {
    change(&mut kernel.clusters.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// Sets an attribute of a kernel on a device. Both APIs have the same numbers for the attributes that can be set.
pub fn set_attribute(kernel: &Kernel, device: u32, attribute: c_int, value: c_int) -> Result<(), CudaError> {
    match attribute {
        attribute::DYNAMIC_SHARED_BYTES => {
            let bytes = u32::try_from(value).map_err(|_| CudaError::InvalidValue)?;
            let function = function_on(kernel, device)?;
            connection::call_on(device, &Call::SetDynamicSharedLimit { function, bytes }).map(|_| ())
        }
        attribute::CARVEOUT if (-1..=100).contains(&value) => {
            set_carveout(kernel, device, u8::try_from(value).ok())?;
            kernel.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        attribute::CLUSTER_WIDTH..=attribute::CLUSTER_DEPTH => {
            let extent = u32::try_from(value).map_err(|_| CudaError::InvalidValue)?;
            let axis = (attribute - attribute::CLUSTER_WIDTH) as usize;
            set_clusters(kernel, |clusters| clusters.required[axis] = extent)
        }
        attribute::NON_PORTABLE_CLUSTERS if (0..=1).contains(&value) => {
            set_clusters(kernel, |clusters| clusters.non_portable = value != 0)
        }
        // How clusters are spread over SMs is a hint, which the simulator does not take.
        attribute::CLUSTER_SCHEDULING if (0..=2).contains(&value) => {
            set_clusters(kernel, |clusters| clusters.scheduling = value)
        }
        _ => Err(CudaError::InvalidValue),
    }
}
