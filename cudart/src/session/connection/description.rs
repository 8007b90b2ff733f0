//! The simulator's description of the node, for threads that are connected.

use crate::session::connection::calls;
use crate::session::state::process;
use balar_host::{CudaError, DeviceDescription, NodeDescription};

/// The description of the node; connects the thread where needed.
pub fn description() -> Result<&'static NodeDescription, CudaError> {
    calls::connect()?;
    process::node().map(|node| &node.description).ok_or(CudaError::InitializationError)
}

/// The description of a device; connects the thread where needed.
pub fn device(index: u32) -> Result<&'static DeviceDescription, CudaError> {
    match &description()?.devices[..] {
        [] => Err(CudaError::NoDevice),
        devices => devices.get(index as usize).ok_or(CudaError::InvalidDevice),
    }
}

/// The description of the device with the number that C gave.
pub fn device_of(number: i32) -> Result<&'static DeviceDescription, CudaError> {
    device(u32::try_from(number).map_err(|_| CudaError::InvalidDevice)?)
}

/// How many devices there are.
pub fn device_count() -> Result<u32, CudaError> {
    Ok(description()?.devices.len() as u32)
}
