//! Properties of devices: `cudaGetDeviceProperties` in three layouts, and attributes by number.

use crate::abi::arguments::{In, Out};
use crate::abi::device_properties::{DeviceProperties11, DeviceProperties12, DeviceProperties13};
use crate::runtime_api;
use crate::session::connection::description;
use crate::session::devices::device;
use balar_host::{CudaError, DeviceDescription};
use std::ffi::c_int;

/// Requirements of a program on a device (`cudaChooseDevice`), as far as devices differ in them; 0 means any.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    major: i32,
    minor: i32,
    memory_bytes: usize,
    multiprocessors: i32,
}

/// The device that meets most of the requirements.
fn choose(wish: Wish) -> Result<c_int, CudaError> {
    let devices = &description::description()?.devices;
    let fits = |device: &DeviceDescription| {
        let (major, minor) = device.compute_capability;
        u32::from((major as i32, minor as i32) >= (wish.major, wish.minor))
            + u32::from(device.memory_bytes as usize >= wish.memory_bytes)
            + u32::from(device.sm_count as i32 >= wish.multiprocessors)
    };
    // The first of those that fit best.
    let best = devices.iter().enumerate().rev().max_by_key(|(_, device)| fits(device));
    best.map(|(index, _)| index as c_int).ok_or(CudaError::NoDevice)
}

runtime_api! {
    fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        value.check()?;
        value.set(device::attribute(attribute, device)?)
    }

    /// The layout that had this name before CUDA 13.
    fn cudaGetDeviceProperties(properties: Out<DeviceProperties11>, device: c_int) {
        properties.set(DeviceProperties11::of(&device::described(device)?))
    }

    fn cudaGetDeviceProperties_v2(properties: Out<DeviceProperties12>, device: c_int) {
        properties.set(DeviceProperties12::of(&device::described(device)?))
    }

    fn cudaGetDeviceProperties_13(properties: Out<DeviceProperties13>, device: c_int) {
        properties.set(DeviceProperties13::of(&device::described(device)?))
    }

    /// The layouts of CUDA 11 and 12 begin alike.
    fn cudaChooseDevice(device: Out<c_int>, wish: In<DeviceProperties11>) {
        let wish = wish.get()?;
        device.set(choose(Wish {
            major: wish.major,
            minor: wish.minor,
            memory_bytes: wish.total_global_mem,
            multiprocessors: wish.multi_processor_count,
        })?)
    }

    fn cudaChooseDevice_13(device: Out<c_int>, wish: In<DeviceProperties13>) {
        let wish = wish.get()?;
        device.set(choose(Wish {
            major: wish.major,
            minor: wish.minor,
            memory_bytes: wish.total_global_mem,
            multiprocessors: wish.multi_processor_count,
        })?)
    }
}
