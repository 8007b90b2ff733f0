//! The profiling library (CUPTI, `libcupti.so`): the part of it that records a program's activity (the Activity API), as PyTorch's profiler
//! uses it.
//!
//! Calls are those of the runtime, with the times at which the program made them. Kernels, copies and fills have the times of the
//! simulation: each as long as it was simulated, and as long after its call as it was simulated, so that they stand beside the calls in
//! one timeline although simulated time and the program's pass differently. Callbacks may be subscribed to, and are never called.

pub mod activity;
mod records;
pub mod subscriber;

use crate::abi::cupti::CuptiError;
use balar_host::CudaError;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a function of the library.
pub type Outcome = Result<(), CuptiError>;

impl From<CudaError> for CuptiError {
    fn from(error: CudaError) -> CuptiError {
        match error {
            CudaError::InvalidValue => CuptiError::InvalidParameter,
            CudaError::DeviceUninitialized => CuptiError::InvalidContext,
            CudaError::NotSupported => CuptiError::NotSupported,
            _ => CuptiError::Unknown,
        }
    }
}

/// Defines functions of the library and exports each as `balar_NAME`.
#[macro_export]
macro_rules! profiling_api {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nThe arguments are as CUPTI wants them for this function.")]
            #[expect(non_snake_case, reason = "CUPTI's names")]
            #[unsafe(export_name = concat!("balar_", stringify!($name)))]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
                $crate::cupti::contained(&mut move || -> $crate::cupti::Outcome { $body })
            }
        )*
    };
}

/// Runs the body of a function. A panic becomes an error.
pub fn contained(body: &mut dyn FnMut() -> Outcome) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(CuptiError::Unknown));
    outcome.map_or_else(|error| error as c_int, |()| 0)
}

/// Where the names of the library lead that have no implementation: counters, metrics, samples.
#[unsafe(no_mangle)]
pub extern "C" fn balar_cupti_not_supported() -> c_int {
    CuptiError::NotSupported as c_int
}
