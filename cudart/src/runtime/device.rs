//! Devices: which there are, which is current, waiting for them, their limits and settings.

use crate::abi::arguments::{In, Out, Text, write_text};
use crate::abi::driver::DeviceResource;
use crate::runtime_api;
use crate::session::connection::description;
use crate::session::devices::device;
use crate::session::state::thread;
use balar_host::CudaError;
use std::ffi::{c_char, c_int};

/// `cudaDeviceMapHost`, a flag that every context has.
const MAP_HOST: u32 = 0x08;

runtime_api! {
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.check()?;
        let found = description::device_count();
        count.set(found.unwrap_or(0) as c_int)?;
        if found? == 0 { Err(CudaError::NoDevice) } else { Ok(()) }
    }

    fn cudaSetDevice(device: c_int) {
        device::set_current(device)
    }

    fn cudaInitDevice(device: c_int, device_flags: u32, flags: u32) {
        description::device_of(device)?;
        // `cudaInitDeviceFlagsAreValid` says that the flags are meant.
        if flags == 1 {
            device::set_flags_of(device as u32, device_flags);
        }
        Ok(())
    }

    fn cudaGetDevice(device: Out<c_int>) {
        description::description()?;
        device.set(thread::device() as c_int)
    }

    /// The first of the list becomes the thread's device.
    fn cudaSetValidDevices(devices: In<c_int>, count: c_int) {
        let count = usize::try_from(count).map_err(|_| CudaError::InvalidValue)?;
        if count as u32 > description::device_count()? {
            return Err(CudaError::InvalidValue);
        }
        let devices = devices.array(count)?;
        for device in &devices {
            description::device_of(*device)?;
        }
        device::set_current(devices.first().copied().unwrap_or(0))
    }

    fn cudaSetDeviceFlags(flags: u32) {
        device::set_flags(flags)
    }

    fn cudaGetDeviceFlags(flags: Out<u32>) {
        description::description()?;
        flags.set(device::settings().flags | MAP_HOST)
    }

    fn cudaDeviceSynchronize() {
        device::synchronize()
    }

    fn cudaThreadSynchronize() {
        device::synchronize()
    }

    fn cudaDeviceReset() {
        device::reset()
    }

    fn cudaThreadExit() {
        device::reset()
    }

    fn cudaDeviceSetLimit(limit: c_int, value: usize) {
        device::set_limit(limit, value)
    }

    fn cudaThreadSetLimit(limit: c_int, value: usize) {
        device::set_limit(limit, value)
    }

    fn cudaDeviceGetLimit(value: Out<usize>, limit: c_int) {
        value.set(device::limit(limit)?)
    }

    fn cudaThreadGetLimit(value: Out<usize>, limit: c_int) {
        value.set(device::limit(limit)?)
    }

    fn cudaDeviceSetCacheConfig(preference: c_int) {
        device::set_cache(preference)
    }

    fn cudaThreadSetCacheConfig(preference: c_int) {
        device::set_cache(preference)
    }

    fn cudaDeviceGetCacheConfig(preference: Out<c_int>) {
        description::description()?;
        preference.set(device::settings().cache)
    }

    fn cudaThreadGetCacheConfig(preference: Out<c_int>) {
        description::description()?;
        preference.set(device::settings().cache)
    }

    fn cudaDeviceSetSharedMemConfig(bank_size: c_int) {
        device::set_bank_size(bank_size)
    }

    fn cudaDeviceGetSharedMemConfig(bank_size: Out<c_int>) {
        description::description()?;
        bank_size.set(device::BANK_SIZE)
    }

    fn cudaDeviceGetPCIBusId(place: *mut c_char, room: c_int, device: c_int) {
        // SAFETY: CUDA's contract.
        unsafe { write_text(place, room, &device::bus_id(device)?) }
    }

    fn cudaDeviceGetByPCIBusId(device: Out<c_int>, place: Text) {
        device.set(device::at_bus_id(&place.get()?)? as c_int)
    }

    fn cudaDeviceCanAccessPeer(result: Out<c_int>, device: c_int, peer: c_int) {
        result.set(c_int::from(device::can_access(device, peer)?))
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: u32) {
        device::enable_peer_access(peer, flags)
    }

    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        device::disable_peer_access(peer)
    }

    fn cudaDeviceGetDevResource(device: c_int, resource: Out<DeviceResource>, kind: u32) {
        resource.check()?;
        resource.set(device::resource(device, kind)?)
    }

    fn cudaDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, device: c_int, peer: c_int) {
        value.set(device::peer_attribute(attribute, device, peer)?)
    }

    fn cudaDeviceFlushGPUDirectRDMAWrites(_target: c_int, _scope: c_int) {
        device::flush_remote_writes()
    }
}
