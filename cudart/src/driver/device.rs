//! Devices: their number, names and attributes.

use super::INITIALIZED;
use crate::abi::arguments::{self, Out, Text};
use crate::abi::device_attribute as attribute;
use crate::abi::driver::{DeviceResource, OldProperties};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::connection::description;
use crate::session::connection::management::driver_version;
use crate::session::devices::device;
use balar_host::CudaError;
use std::ffi::{c_char, c_int};
use std::sync::atomic::Ordering;

/// Writes a text and a zero byte into `room` bytes; a text that is too long is truncated.
fn write_text(place: *mut c_char, room: c_int, text: &str) -> Outcome {
    let Some(room) = usize::try_from(room).ok().filter(|room| *room > 0 && !place.is_null()) else {
        return Err(CudaError::InvalidValue);
    };
    let text = &text.as_bytes()[..text.len().min(room - 1)];
    // SAFETY: the caller has `room` bytes there.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

driver_api! {
    early fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        if description::device_count()? == 0 {
            return Err(CudaError::NoDevice);
        }
        INITIALIZED.store(true, Ordering::Relaxed);
        Ok(())
    }

    early fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(driver_version().number() as c_int)
    }

    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        description::device_of(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(description::device_count()? as c_int)
    }

    fn cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int) {
        write_text(name, room, &description::device_of(device)?.name)
    }

    fn cuDeviceTotalMem(bytes: Out<u32>, device: c_int) {
        // What 32 bits can say, as of before CUDA 3.2.
        let all = description::device_of(device)?.memory_bytes;
        bytes.set(u32::try_from(all).unwrap_or(u32::MAX))
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        bytes.set(description::device_of(device)?.memory_bytes as usize)
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        let (high, low) = description::device_of(device)?.compute_capability;
        major.set(high as c_int)?;
        minor.set(low as c_int)
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        value.check()?;
        value.set(device::driver_attribute(attribute, device)?)
    }

    fn cuDeviceGetDevResource(device: c_int, resource: Out<DeviceResource>, kind: u32) {
        resource.check()?;
        resource.set(device::resource(device, kind)?)
    }

    fn cuDeviceGetProperties(properties: Out<OldProperties>, device: c_int) {
        properties.check()?;
        let of = |number: c_int| device::driver_attribute(number, device);
        properties.set(OldProperties {
            block_threads: of(attribute::MAX_THREADS_PER_BLOCK)?,
            block_extents: [of(attribute::MAX_BLOCK_DIM_X)?, of(attribute::MAX_BLOCK_DIM_Y)?, of(attribute::MAX_BLOCK_DIM_Z)?],
            grid_extents: [of(attribute::MAX_GRID_DIM_X)?, of(attribute::MAX_GRID_DIM_Y)?, of(attribute::MAX_GRID_DIM_Z)?],
            shared_bytes: of(attribute::MAX_SHARED_MEMORY_PER_BLOCK)?,
            constant_bytes: of(attribute::TOTAL_CONSTANT_MEMORY)?,
            warp_threads: of(attribute::WARP_SIZE)?,
            pitch_bytes: of(attribute::MAX_PITCH)?,
            registers: of(attribute::MAX_REGISTERS_PER_BLOCK)?,
            clock_khz: of(attribute::CLOCK_RATE)?,
            texture_alignment: of(attribute::TEXTURE_ALIGNMENT)?,
        })
    }

    fn cuDeviceGetPCIBusId(place: *mut c_char, room: c_int, device: c_int) {
        // SAFETY: CUDA's contract.
        unsafe { arguments::write_text(place, room, &device::bus_id(device)?) }
    }

    fn cuDeviceGetByPCIBusId(device: Out<c_int>, text: Text) {
        device.set(device::at_bus_id(&text.get()?)? as c_int)
    }

    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        can.set(c_int::from(device::can_access(device, peer)?))
    }

    fn cuDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, device: c_int, peer: c_int) {
        value.set(device::peer_attribute(attribute, device, peer)?)
    }

    fn cuDeviceGetUuid(place: Out<[u8; 16]>, device: c_int) {
        place.set(device::described(device)?.uuid)
    }

    fn cuDeviceGetUuid_v2(place: Out<[u8; 16]>, device: c_int) {
        place.set(device::described(device)?.uuid)
    }

    context fn cuFlushGPUDirectRDMAWrites(_target: c_int, _scope: c_int) {
        device::flush_remote_writes()
    }

    fn cuDeviceGetExecAffinitySupport(supported: Out<c_int>, _kind: c_int, device: c_int) {
        description::device_of(device)?;
        supported.set(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_there_is_no_room() {
        let mut room = [1 as c_char; 6];
        write_text(room.as_mut_ptr(), 5, "Simulated").unwrap();
        assert_eq!(room.map(|byte| byte as u8), *b"Simu\0\x01");
        assert_eq!(write_text(room.as_mut_ptr(), 0, "S"), Err(CudaError::InvalidValue));
        assert_eq!(write_text(std::ptr::null_mut(), 5, "S"), Err(CudaError::InvalidValue));
    }
}
