//! Versions, errors and devices.

use super::DeviceHandle;
use crate::abi::arguments::{In, Out, Text, write_text};
use crate::abi::nvml::{ERROR_TEXTS, NvmlError, Uuid};
use crate::management_api;
use crate::nvml::Outcome;
use crate::session::api::raw;
use crate::session::connection::management::{self, driver_version};
use crate::session::devices::device;
use crate::session::state::visible_devices;
use std::ffi::{CStr, c_char, c_int};

/// Writes a text and a zero byte into `room` bytes.
pub(super) fn write(place: *mut c_char, room: u32, text: &str) -> Outcome {
    if place.is_null() {
        return Err(NvmlError::InvalidArgument);
    }
    // SAFETY: the caller has `room` bytes there.
    unsafe { write_text(place, room.min(i32::MAX as u32) as c_int, text) }.map_err(|_| NvmlError::InsufficientSize)
}

fn count(place: Out<u32>) -> Outcome {
    Ok(place.set(management::device_count()?)?)
}

fn by_number(number: u32, place: Out<DeviceHandle>) -> Outcome {
    if number >= management::device_count()? {
        return Err(NvmlError::InvalidArgument);
    }
    Ok(place.set(DeviceHandle::of(number))?)
}

fn by_bus_id(text: Text, place: Out<DeviceHandle>) -> Outcome {
    place.check()?;
    let number = device::of_node_at_bus_id(&text.get()?)?;
    if number < management::device_count()? { by_number(number, place) } else { Err(NvmlError::NotFound) }
}

/// The device with this identity ("GPU-62616c61-...").
fn by_identity(identity: &str, place: Out<DeviceHandle>) -> Outcome {
    let found = (0..management::device_count()?)
        .find(|number| visible_devices::identity(*number).eq_ignore_ascii_case(identity));
    by_number(found.ok_or(NvmlError::NotFound)?, place)
}

management_api! {
    fn nvmlSystemGetDriverVersion(place: *mut c_char, room: u32) {
        write(place, room, driver_version().package())
    }

    /// The library's own version: CUDA's, and that of the driver that it comes with.
    fn nvmlSystemGetNVMLVersion(place: *mut c_char, room: u32) {
        let version = driver_version();
        write(place, room, &format!("{}.{}", version.major(), version.package()))
    }

    fn nvmlSystemGetCudaDriverVersion(place: Out<c_int>) {
        Ok(place.set(driver_version().number() as c_int)?)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(place: Out<c_int>) {
        Ok(place.set(driver_version().number() as c_int)?)
    }

    fn nvmlSystemGetProcessName(process: u32, place: *mut c_char, room: u32) {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).map_err(|_| NvmlError::NotFound)?;
        let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
        write(place, room, &String::from_utf8_lossy(name))
    }

    fn nvmlDeviceGetCount(place: Out<u32>) {
        count(place)
    }

    fn nvmlDeviceGetCount_v2(place: Out<u32>) {
        count(place)
    }

    fn nvmlDeviceGetHandleByIndex(number: u32, place: Out<DeviceHandle>) {
        by_number(number, place)
    }

    fn nvmlDeviceGetHandleByIndex_v2(number: u32, place: Out<DeviceHandle>) {
        by_number(number, place)
    }

    fn nvmlDeviceGetHandleByPciBusId(text: Text, place: Out<DeviceHandle>) {
        by_bus_id(text, place)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(text: Text, place: Out<DeviceHandle>) {
        by_bus_id(text, place)
    }

    fn nvmlDeviceGetHandleByUUID(text: Text, place: Out<DeviceHandle>) {
        place.check()?;
        by_identity(&text.get()?, place)
    }

    fn nvmlDeviceGetHandleByUUIDV(identity: In<Uuid>, place: Out<DeviceHandle>) {
        place.check()?;
        let Uuid { kind, value, .. } = identity.get()?;
        match kind {
            1 => {
                let text = CStr::from_bytes_until_nul(&value).map_err(|_| NvmlError::InvalidArgument)?;
                by_identity(&text.to_string_lossy(), place)
            }
            2 => {
                let mut numbers = 0..management::device_count()?;
                let found = numbers.find(|number| visible_devices::uuid(*number) == value[..16]);
                by_number(found.ok_or(NvmlError::NotFound)?, place)
            }
            _ => Err(NvmlError::InvalidArgument),
        }
    }

    fn nvmlGetExcludedDeviceCount(place: Out<u32>) {
        Ok(place.set(0)?)
    }

    fn nvmlUnitGetCount(place: Out<u32>) {
        Ok(place.set(0)?)
    }
}

/// `nvmlErrorString`.
#[expect(non_snake_case, reason = "NVML's name")]
#[unsafe(export_name = "balar_nvmlErrorString")]
pub extern "C" fn nvmlErrorString(code: c_int) -> *const c_char {
    raw(|| {
        let text = usize::try_from(code).ok().and_then(|code| ERROR_TEXTS.get(code)).copied();
        text.unwrap_or(c"Unknown Error").as_ptr()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_works_before_the_library_is_initialised() {
        let mut count = 7;
        // SAFETY: the place outlives the call.
        assert_eq!(unsafe { nvmlDeviceGetCount_v2(Out::new(&raw mut count)) }, NvmlError::Uninitialized as c_int);
        assert_eq!(count, 7);
        let text = |code| {
            // SAFETY: a text that lives as long as the program.
            unsafe { CStr::from_ptr(nvmlErrorString(code)) }.to_str().unwrap_or_default()
        };
        // As the comments of nvml.h name them.
        assert_eq!(
            [0, 3, 9, 30, 999, -1].map(text),
            [
                "Success",
                "Not Supported",
                "Driver Not Loaded",
                "Reset Type Not Supported",
                "Unknown Error",
                "Unknown Error"
            ]
        );
    }
}
