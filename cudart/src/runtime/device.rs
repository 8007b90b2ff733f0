//! Devices: which there are, which is current, waiting for them.

use crate::core::arguments::Out;
use crate::core::{code, connection, process, ranges, thread};
use crate::cuda_api;
use balar_host::{Call, CudaError};
use std::ffi::c_int;

/// Waits for everything on the current device.
fn synchronize() -> Result<(), CudaError> {
    connection::done(&Call::DeviceSynchronize)
}

/// Ends everything of the program on the current device.
fn reset() -> Result<(), CudaError> {
    let device = thread::device();
    connection::done(&Call::DeviceReset)?;
    process::count_reset();
    code::forget_device(device);
    ranges::forget_device(device);
    Ok(())
}

cuda_api! {
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.check()?;
        let found = process::device_count();
        count.set(found.unwrap_or(0) as c_int)?;
        found.map(|_| ())
    }

    fn cudaSetDevice(device: c_int) {
        process::device_of(device)?;
        thread::with(|thread| thread.device.set(device as u32));
        Ok(())
    }

    fn cudaGetDevice(device: Out<c_int>) {
        process::description()?;
        device.set(thread::device() as c_int)
    }

    fn cudaDeviceSynchronize() {
        synchronize()
    }

    fn cudaThreadSynchronize() {
        synchronize()
    }

    fn cudaDeviceReset() {
        reset()
    }

    fn cudaThreadExit() {
        reset()
    }
}
