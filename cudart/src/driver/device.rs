//! Devices: their number, names and attributes.

use super::INITIALIZED;
use crate::core::api::Outcome;
use crate::core::arguments::Out;
use crate::core::process;
use crate::driver_api;
use balar_host::CudaError;
use std::ffi::{c_char, c_int};
use std::sync::atomic::Ordering;

/// The version of CUDA that the driver reports: 1000 * major + 10 * minor.
pub const DRIVER_VERSION: c_int = 13050;

/// Refuses a number that no device has.
pub(super) fn check(device: c_int) -> Outcome {
    process::device_of(device).map(|_| ())
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
