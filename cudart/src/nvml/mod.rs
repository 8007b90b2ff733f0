//! The management library (NVML, `libnvidia-ml.so.1`): tools and libraries ask it about the node without using the node.
//!
//! Its devices are all of the node, whatever `CUDA_VISIBLE_DEVICES` says. A question makes no call of CUDA, takes no simulated time and
//! changes no statistics. Questions about parts that a simulated board lacks (sensors, fans, a serial number, NVLink, MIG) give
//! `NVML_ERROR_NOT_SUPPORTED`, as on boards of NVIDIA's that lack them.

pub mod device;
pub mod links;
pub mod state;
pub mod system;

use crate::abi::nvml::NvmlError;
use crate::session::connection::management;
use balar_host::{CudaError, NodeDescription};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the library was initialised more than it was shut down.
static USERS: AtomicU32 = AtomicU32::new(0);

/// The result of a function of the library.
pub type Outcome = Result<(), NvmlError>;

/// A device's handle: its number in the node, counted from 1.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceHandle(*mut c_void);

impl DeviceHandle {
    /// The handle of the device with this number in the node.
    fn of(number: u32) -> DeviceHandle {
        DeviceHandle(std::ptr::without_provenance_mut(number as usize + 1))
    }

    /// The node, and the device's number in it.
    fn device(self) -> Result<(NodeDescription, u32), NvmlError> {
        let node = management::node()?;
        let number = self.0.addr().checked_sub(1).filter(|number| *number < node.devices.len());
        number.map(|number| (node, number as u32)).ok_or(NvmlError::InvalidArgument)
    }
}

impl From<CudaError> for NvmlError {
    fn from(error: CudaError) -> NvmlError {
        match error {
            CudaError::InvalidValue => NvmlError::InvalidArgument,
            CudaError::InvalidDevice => NvmlError::NotFound,
            CudaError::NoDevice => NvmlError::DriverNotLoaded,
            CudaError::DevicesUnavailable => NvmlError::GpuIsLost,
            CudaError::NotSupported => NvmlError::NotSupported,
            _ => NvmlError::Unknown,
        }
    }
}

/// Defines functions of the library and exports each as `balar_NAME`.
///
/// - `early fn`: works before the library is initialised.
/// - `fn`: does not.
#[macro_export]
macro_rules! management_api {
    () => {};
    ($(#[$meta:meta])* early fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\n\nThe arguments are as NVML wants them for this function.")]
        #[expect(non_snake_case, reason = "NVML's names")]
        #[unsafe(export_name = concat!("balar_", stringify!($name)))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            $crate::nvml::early(&mut move || -> $crate::nvml::Outcome { $body })
        }
        $crate::management_api! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::management_api! {
            $(#[$meta])*
            early fn $name($($argument: $type),*) { $crate::nvml::initialized()?; $body }
            $($rest)*
        }
    };
}

/// Runs the body of a function. A panic becomes an error.
pub fn early(body: &mut dyn FnMut() -> Outcome) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(NvmlError::Unknown));
    outcome.map_or_else(|error| error as c_int, |()| 0)
}

/// Refuses a function that needs the library to be initialised.
pub fn initialized() -> Outcome {
    if USERS.load(Ordering::Relaxed) == 0 { Err(NvmlError::Uninitialized) } else { Ok(()) }
}

/// The function behind the names of the library that have no implementation: no simulated board has their subjects.
#[unsafe(no_mangle)]
pub extern "C" fn balar_nvml_not_supported() -> c_int {
    early(&mut || initialized().and(Err(NvmlError::NotSupported)))
}

fn begin() -> Outcome {
    management::device_count()?;
    USERS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

management_api! {
    early fn nvmlInit() {
        begin()
    }

    early fn nvmlInit_v2() {
        begin()
    }

    early fn nvmlInitWithFlags(_flags: u32) {
        begin()
    }

    fn nvmlShutdown() {
        USERS.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}
