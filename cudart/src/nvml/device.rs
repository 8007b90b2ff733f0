//! The attributes of a device, as `cuDeviceGetAttribute` tells them.

use super::DeviceHandle;
use super::system::write;
use crate::abi::arguments::Out;
use crate::abi::device_attribute as attribute;
use crate::abi::nvml::{Attributes, NvmlError, PCI_INFO_BYTES, PciInfo};
use crate::management_api;
use crate::nvml::Outcome;
use crate::session::devices::device::bus_id_of_node;
use crate::session::state::visible_devices;
use balar_host::DeviceDescription;
use std::ffi::{c_char, c_int, c_ulong};

/// NVIDIA's number as a vendor of PCI devices, beside the number of a device that nobody sells.
const VENDOR: u32 = 0x10de;

/// `NVML_CLOCK_GRAPHICS`, `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const CLOCK_GRAPHICS: c_int = 0;
const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;
/// `NVML_DEVICE_ARCH_UNKNOWN`.
const UNKNOWN_ARCHITECTURE: u32 = u32::MAX;

/// An attribute of the device.
fn attribute_of(handle: DeviceHandle, attribute: i32) -> Result<u32, NvmlError> {
    let (node, number) = handle.device()?;
    let value = attribute::value(&node.devices[number as usize], number, attribute);
    Ok(value.ok_or(NvmlError::NotSupported)? as u32)
}

fn set(place: Out<u32>, handle: DeviceHandle, attribute: i32) -> Outcome {
    place.check()?;
    Ok(place.set(attribute_of(handle, attribute)?)?)
}

/// The description of the device, and its number in the node.
fn described(handle: DeviceHandle) -> Result<(DeviceDescription, u32), NvmlError> {
    let (mut node, number) = handle.device()?;
    Ok((node.devices.swap_remove(number as usize), number))
}

/// The clock of a domain, MHz: always the same, as simulated boards neither boost nor save power.
fn clock(handle: DeviceHandle, domain: c_int, place: Out<u32>) -> Outcome {
    place.check()?;
    let khz = match domain {
        CLOCK_GRAPHICS | CLOCK_SM => attribute_of(handle, attribute::CLOCK_RATE)?,
        CLOCK_MEMORY => attribute_of(handle, attribute::MEMORY_CLOCK_RATE)?,
        // Video engines, which do not exist here.
        3 => return Err(NvmlError::NotSupported),
        _ => return Err(NvmlError::InvalidArgument),
    };
    Ok(place.set(khz / 1000)?)
}

/// Cores of single precision of an SM (CUDA C++ Programming Guide, arithmetic throughput).
fn cores_of_sm(compute_capability: (u32, u32)) -> u32 {
    match compute_capability {
        (..=3, _) => 192,
        (6, 0) | (7, _) | (8, 0) => 64,
        _ => 128,
    }
}

/// `NVML_DEVICE_ARCH_*` of a compute capability.
fn architecture(compute_capability: (u32, u32)) -> u32 {
    match compute_capability {
        (3, _) => 2,
        (5, _) => 3,
        (6, _) => 4,
        (7, ..=2) => 5,
        (7, _) => 6,
        (8, 9) => 8,
        (8, _) => 7,
        (9, _) => 9,
        (10 | 12, _) => 10,
        _ => UNKNOWN_ARCHITECTURE,
    }
}

fn pci_info(handle: DeviceHandle) -> Result<PciInfo, NvmlError> {
    let (_, number) = handle.device()?;
    let bus_id = bus_id_of_node(number);
    let mut info: PciInfo = bytemuck::Zeroable::zeroed();
    info.bus_id_legacy[..bus_id.len()].copy_from_slice(bus_id.as_bytes());
    let long = format!("0000{bus_id}");
    info.bus_id[..long.len()].copy_from_slice(long.as_bytes());
    info.bus = attribute_of(handle, attribute::PCI_BUS_ID)?;
    info.device = attribute_of(handle, attribute::PCI_DEVICE_ID)?;
    info.domain = attribute_of(handle, attribute::PCI_DOMAIN_ID)?;
    info.device_id = VENDOR;
    Ok(info)
}

/// Writes as much of the information as a version of the function had.
fn old_pci_info(handle: DeviceHandle, place: *mut u8, bytes: usize) -> Outcome {
    if place.is_null() {
        return Err(NvmlError::InvalidArgument);
    }
    let info = pci_info(handle)?;
    // SAFETY: the caller's structure is at least as long.
    unsafe { place.copy_from_nonoverlapping(bytemuck::bytes_of(&info).as_ptr(), bytes) };
    Ok(())
}

fn attributes(handle: DeviceHandle, place: Out<Attributes>) -> Outcome {
    place.check()?;
    let (device, _) = described(handle)?;
    let attributes = Attributes {
        multiprocessors: device.sm_count,
        copy_engines: attribute_of(handle, attribute::ASYNC_ENGINE_COUNT)?,
        memory_mib: device.memory_bytes >> 20,
        ..Attributes::default()
    };
    Ok(place.set(attributes)?)
}

/// The processors that the calling process runs on, as a set of bits: a simulated host has no others.
fn processors(place: *mut c_ulong, words: u32) -> Outcome {
    if place.is_null() || words == 0 {
        return Err(NvmlError::InvalidArgument);
    }
    let set = rustix::thread::sched_getaffinity(None).map_err(|_| NvmlError::Unknown)?;
    let bits = c_ulong::BITS as usize;
    for word in 0..words as usize {
        let is_set = |bit: &usize| word * bits + bit < rustix::thread::CpuSet::MAX_CPU && set.is_set(word * bits + bit);
        let value = (0..bits).filter(is_set).fold(0, |value, bit| value | 1 << bit);
        // SAFETY: the caller has so many words there.
        unsafe { place.add(word).write_unaligned(value) };
    }
    Ok(())
}

management_api! {
    fn nvmlDeviceGetName(handle: DeviceHandle, place: *mut c_char, room: u32) {
        write(place, room, &described(handle)?.0.name)
    }

    /// The identity that `CUDA_VISIBLE_DEVICES` takes.
    fn nvmlDeviceGetUUID(handle: DeviceHandle, place: *mut c_char, room: u32) {
        write(place, room, &visible_devices::identity(handle.device()?.1))
    }

    fn nvmlDeviceGetIndex(handle: DeviceHandle, place: Out<u32>) {
        Ok(place.set(handle.device()?.1)?)
    }

    fn nvmlDeviceGetMinorNumber(handle: DeviceHandle, place: Out<u32>) {
        Ok(place.set(handle.device()?.1)?)
    }

    fn nvmlDeviceGetBoardId(handle: DeviceHandle, place: Out<u32>) {
        set(place, handle, attribute::MULTI_GPU_BOARD_GROUP_ID)
    }

    fn nvmlDeviceGetMultiGpuBoard(handle: DeviceHandle, place: Out<u32>) {
        set(place, handle, attribute::IS_MULTI_GPU_BOARD)
    }

    /// No brand (`NVML_BRAND_UNKNOWN`).
    fn nvmlDeviceGetBrand(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetArchitecture(handle: DeviceHandle, place: Out<u32>) {
        Ok(place.set(architecture(described(handle)?.0.compute_capability))?)
    }

    fn nvmlDeviceGetCudaComputeCapability(handle: DeviceHandle, major: Out<c_int>, minor: Out<c_int>) {
        major.check()?;
        minor.check()?;
        let (high, low) = described(handle)?.0.compute_capability;
        major.set(high as c_int)?;
        Ok(minor.set(low as c_int)?)
    }

    fn nvmlDeviceGetNumGpuCores(handle: DeviceHandle, place: Out<u32>) {
        let (device, _) = described(handle)?;
        Ok(place.set(device.sm_count.saturating_mul(cores_of_sm(device.compute_capability)))?)
    }

    fn nvmlDeviceGetMemoryBusWidth(handle: DeviceHandle, place: Out<u32>) {
        set(place, handle, attribute::GLOBAL_MEMORY_BUS_WIDTH)
    }

    fn nvmlDeviceGetAttributes(handle: DeviceHandle, place: Out<Attributes>) {
        attributes(handle, place)
    }

    fn nvmlDeviceGetAttributes_v2(handle: DeviceHandle, place: Out<Attributes>) {
        attributes(handle, place)
    }

    fn nvmlDeviceGetPciInfo(handle: DeviceHandle, place: *mut u8) {
        old_pci_info(handle, place, PCI_INFO_BYTES[0])
    }

    fn nvmlDeviceGetPciInfo_v2(handle: DeviceHandle, place: *mut u8) {
        old_pci_info(handle, place, PCI_INFO_BYTES[1])
    }

    fn nvmlDeviceGetPciInfo_v3(handle: DeviceHandle, place: Out<PciInfo>) {
        place.check()?;
        Ok(place.set(pci_info(handle)?)?)
    }

    fn nvmlDeviceGetClockInfo(handle: DeviceHandle, domain: c_int, place: Out<u32>) {
        clock(handle, domain, place)
    }

    fn nvmlDeviceGetMaxClockInfo(handle: DeviceHandle, domain: c_int, place: Out<u32>) {
        clock(handle, domain, place)
    }

    fn nvmlDeviceGetClock(handle: DeviceHandle, domain: c_int, _which: c_int, place: Out<u32>) {
        clock(handle, domain, place)
    }

    fn nvmlDeviceGetApplicationsClock(handle: DeviceHandle, domain: c_int, place: Out<u32>) {
        clock(handle, domain, place)
    }

    fn nvmlDeviceGetDefaultApplicationsClock(handle: DeviceHandle, domain: c_int, place: Out<u32>) {
        clock(handle, domain, place)
    }

    /// The highest (`NVML_PSTATE_0`): there are no others.
    fn nvmlDeviceGetPerformanceState(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetPowerState(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    /// Nothing slows a simulated board down.
    fn nvmlDeviceGetCurrentClocksThrottleReasons(handle: DeviceHandle, place: Out<u64>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetCurrentClocksEventReasons(handle: DeviceHandle, place: Out<u64>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetComputeMode(handle: DeviceHandle, place: Out<u32>) {
        set(place, handle, attribute::COMPUTE_MODE)
    }

    fn nvmlDeviceGetEccMode(handle: DeviceHandle, current: Out<u32>, pending: Out<u32>) {
        current.check()?;
        set(pending, handle, attribute::ECC_ENABLED)?;
        set(current, handle, attribute::ECC_ENABLED)
    }

    fn nvmlDeviceGetPersistenceMode(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetDisplayMode(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetDisplayActive(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    /// None (`NVML_GPU_VIRTUALIZATION_MODE_NONE`).
    fn nvmlDeviceGetVirtualizationMode(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceIsMigDeviceHandle(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetMaxMigDeviceCount(handle: DeviceHandle, place: Out<u32>) {
        handle.device()?;
        Ok(place.set(0)?)
    }

    fn nvmlDeviceGetCpuAffinity(handle: DeviceHandle, words: u32, place: *mut c_ulong) {
        handle.device()?;
        processors(place, words)
    }

    fn nvmlDeviceGetCpuAffinityWithinScope(handle: DeviceHandle, words: u32, place: *mut c_ulong, _scope: u32) {
        handle.device()?;
        processors(place, words)
    }

    /// The calling process may run where it does.
    fn nvmlDeviceSetCpuAffinity(handle: DeviceHandle) {
        handle.device()?;
        Ok(())
    }

    fn nvmlDeviceClearCpuAffinity(handle: DeviceHandle) {
        handle.device()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data sheets: a P100 has 56 SMs of 64 cores, a V100 80 of 64, a GTX 1080 Ti 28 of 128, a T4 40 of 64.
    #[test]
    fn cores_and_architectures_are_those_of_the_compute_capability() {
        let cores = [(56, (6, 0)), (80, (7, 0)), (28, (6, 1)), (40, (7, 5))].map(|(sms, of)| sms * cores_of_sm(of));
        assert_eq!(cores, [3584, 5120, 3584, 2560]);
        // NVML_DEVICE_ARCH_KEPLER to NVML_DEVICE_ARCH_TURING.
        assert_eq!([(3, 5), (6, 0), (7, 0), (7, 5)].map(architecture), [2, 4, 5, 6]);
    }
}
