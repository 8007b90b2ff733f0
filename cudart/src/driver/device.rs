//! Devices: their number, names and attributes.

use super::INITIALIZED;
use crate::abi::arguments::{self, Out, Text};
use crate::abi::driver::OldProperties;
use crate::driver_api;
use crate::runtime;
use crate::session::api::Outcome;
use crate::session::procedure::DRIVER_VERSION;
use crate::session::{device, devices, process};
use balar_host::CudaError;
use std::ffi::{c_char, c_int};
use std::sync::atomic::Ordering;

/// Attributes that the runtime does not know (`CUdevice_attribute`): handles of virtual memory management for other processes,
/// compression, and direct access from other hardware, none of which is there.
const ABSENT: [c_int; 6] = [92, 103, 104, 105, 107, 110];
/// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`.
const VIRTUAL_MEMORY: c_int = 102;
/// `CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER`.
const TEXTURE_GATHER: c_int = 44;

fn uuid(device: c_int) -> Result<[u8; 16], CudaError> {
    check(device)?;
    Ok(devices::uuid(devices::of_node(device as u32)?))
}

/// Refuses a number that no device has.
pub(super) fn check(device: c_int) -> Outcome {
    process::device_of(device).map(|_| ())
}

/// An attribute of a device.
pub(super) fn attribute(attribute: c_int, device: c_int) -> Result<c_int, CudaError> {
    check(device)?;
    if ABSENT.contains(&attribute) {
        return Ok(0);
    }
    if matches!(attribute, TEXTURE_GATHER | VIRTUAL_MEMORY) {
        return Ok(1);
    }
    let mut value = 0;
    // SAFETY: `value` outlives the call.
    let place = unsafe { Out::new(&raw mut value) };
    runtime!(attributes::cudaDeviceGetAttribute(place, attribute, device))?;
    Ok(value)
}

/// Writes a text and a zero byte into `room` bytes; what has no room is left out.
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
        if process::device_count()? == 0 {
            return Err(CudaError::NoDevice);
        }
        INITIALIZED.store(true, Ordering::Relaxed);
        Ok(())
    }

    early fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(DRIVER_VERSION)
    }

    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        check(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(process::device_count()? as c_int)
    }

    fn cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int) {
        write_text(name, room, &process::device_of(device)?.name)
    }

    fn cuDeviceTotalMem(bytes: Out<u32>, device: c_int) {
        // What 32 bits can say, as of before CUDA 3.2.
        let all = process::device_of(device)?.memory_bytes;
        bytes.set(u32::try_from(all).unwrap_or(u32::MAX))
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        bytes.set(process::device_of(device)?.memory_bytes as usize)
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        let (high, low) = process::device_of(device)?.compute_capability;
        major.set(high as c_int)?;
        minor.set(low as c_int)
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        value.check()?;
        value.set(self::attribute(attribute, device)?)
    }

    fn cuDeviceGetProperties(properties: Out<OldProperties>, device: c_int) {
        properties.check()?;
        let of = |attribute: c_int| self::attribute(attribute, device);
        properties.set(OldProperties {
            block_threads: of(1)?,
            block_extents: [of(2)?, of(3)?, of(4)?],
            grid_extents: [of(5)?, of(6)?, of(7)?],
            shared_bytes: of(8)?,
            constant_bytes: of(9)?,
            warp_threads: of(10)?,
            pitch_bytes: of(11)?,
            registers: of(12)?,
            clock_khz: of(13)?,
            texture_alignment: of(14)?,
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
        place.set(uuid(device)?)
    }

    fn cuDeviceGetUuid_v2(place: Out<[u8; 16]>, device: c_int) {
        place.set(uuid(device)?)
    }

    context fn cuFlushGPUDirectRDMAWrites(_target: c_int, _scope: c_int) {
        device::flush_remote_writes()
    }

    fn cuDeviceGetExecAffinitySupport(supported: Out<c_int>, _kind: c_int, device: c_int) {
        check(device)?;
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
