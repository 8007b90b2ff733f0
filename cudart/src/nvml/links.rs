//! How devices are connected: each by a link of its own to the host.

use super::DeviceHandle;
use crate::abi::arguments::Out;
use crate::abi::nvml::{FieldValue, NvmlError};
use crate::management_api;
use crate::nvml::Outcome;
use std::ffi::c_int;

/// `NVML_TOPOLOGY_INTERNAL`: on one board.
const SAME_BOARD: u32 = 0;
/// `NVML_TOPOLOGY_HOSTBRIDGE`: below the host.
const HOST_BRIDGE: u32 = 30;
/// `NVML_P2P_STATUS_OK` and `NVML_P2P_STATUS_NOT_SUPPORTED`.
const PEER_OK: u32 = 0;
const PEER_NOT_SUPPORTED: u32 = 5;
/// `NVML_P2P_CAPS_INDEX_NVLINK`, among the others from 0 to 4.
const PEER_NVLINK: c_int = 2;
const PEER_LAST: c_int = 4;
/// `NVML_FI_DEV_NVLINK_LINK_COUNT`.
const NVLINK_COUNT: u32 = 91;
/// `NVML_VALUE_TYPE_UNSIGNED_INT`.
const UNSIGNED_INT: u32 = 1;

/// Bytes a second of 16 lanes of each generation of PCI Express, and its transfers, millions a second (PCI Express Base Specification: encodings
/// of 8b/10b, then of 128b/130b, then of 242 bytes in flits of 256).
const GENERATIONS: [(u64, u32); 6] = [
    (4_000_000_000, 2500),
    (8_000_000_000, 5000),
    (15_753_846_154, 8000),
    (31_507_692_308, 16_000),
    (63_015_384_615, 32_000),
    (121_000_000_000, 64_000),
];
/// Lanes that a link is taken to have.
const LANES: u32 = 16;

/// The generation of PCI Express, counted from 1, whose 16 lanes carry nearest to as much.
fn generation(bytes_per_second: u64) -> Option<u32> {
    let nearest = (1..).zip(GENERATIONS).min_by_key(|(_, (of, _))| of.abs_diff(bytes_per_second));
    nearest.filter(|_| bytes_per_second > 0).map(|(generation, _)| generation)
}

fn generation_of(handle: DeviceHandle) -> Result<u32, NvmlError> {
    let (node, number) = handle.device()?;
    generation(node.devices[number as usize].link_bytes_per_second).ok_or(NvmlError::NotSupported)
}

fn set_generation(handle: DeviceHandle, place: Out<u32>) -> Outcome {
    place.check()?;
    Ok(place.set(generation_of(handle)?)?)
}

fn set_width(handle: DeviceHandle, place: Out<u32>) -> Outcome {
    generation_of(handle)?;
    Ok(place.set(LANES)?)
}

management_api! {
    fn nvmlDeviceGetMaxPcieLinkGeneration(handle: DeviceHandle, place: Out<u32>) {
        set_generation(handle, place)
    }

    fn nvmlDeviceGetGpuMaxPcieLinkGeneration(handle: DeviceHandle, place: Out<u32>) {
        set_generation(handle, place)
    }

    fn nvmlDeviceGetCurrPcieLinkGeneration(handle: DeviceHandle, place: Out<u32>) {
        set_generation(handle, place)
    }

    fn nvmlDeviceGetMaxPcieLinkWidth(handle: DeviceHandle, place: Out<u32>) {
        set_width(handle, place)
    }

    fn nvmlDeviceGetCurrPcieLinkWidth(handle: DeviceHandle, place: Out<u32>) {
        set_width(handle, place)
    }

    /// `NVML_PCIE_LINK_MAX_SPEED_*`, numbered as the generations.
    fn nvmlDeviceGetPcieLinkMaxSpeed(handle: DeviceHandle, place: Out<u32>) {
        set_generation(handle, place)
    }

    fn nvmlDeviceGetPcieSpeed(handle: DeviceHandle, place: Out<u32>) {
        place.check()?;
        Ok(place.set(GENERATIONS[generation_of(handle)? as usize - 1].1)?)
    }

    fn nvmlDeviceGetTopologyCommonAncestor(one: DeviceHandle, other: DeviceHandle, place: Out<u32>) {
        let (one, other) = (one.device()?.1, other.device()?.1);
        Ok(place.set(if one == other { SAME_BOARD } else { HOST_BRIDGE })?)
    }

    /// Devices access each other's memory over the links to the host.
    fn nvmlDeviceGetP2PStatus(one: DeviceHandle, other: DeviceHandle, kind: c_int, place: Out<u32>) {
        place.check()?;
        let (one, other) = (one.device()?.1, other.device()?.1);
        if one == other || !(0..=PEER_LAST).contains(&kind) {
            return Err(NvmlError::InvalidArgument);
        }
        Ok(place.set(if kind == PEER_NVLINK { PEER_NOT_SUPPORTED } else { PEER_OK })?)
    }

    /// There is no NVLink; other fields are those of sensors and counters that there are not.
    fn nvmlDeviceGetFieldValues(handle: DeviceHandle, count: c_int, values: *mut FieldValue) {
        handle.device()?;
        let count = usize::try_from(count).map_err(|_| NvmlError::InvalidArgument)?;
        if values.is_null() || count == 0 {
            return Err(NvmlError::InvalidArgument);
        }
        for index in 0..count {
            // SAFETY: the caller passes as many values, in which it says what it asks for.
            let place = unsafe { values.add(index) };
            // SAFETY: as before.
            let mut value = unsafe { place.read_unaligned() };
            (value.timestamp, value.latency, value.value_type, value.value) = (0, 0, UNSIGNED_INT, 0);
            value.result = if value.field == NVLINK_COUNT { 0 } else { NvmlError::NotSupported as i32 };
            // SAFETY: as before.
            unsafe { place.write_unaligned(value) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A V100's link carries 15.75 GB/s: PCI Express 3.0 (`topologies/v100_node.ron`).
    #[test]
    fn a_link_is_of_the_generation_that_carries_as_much() {
        assert_eq!(
            [0, 15_750_000_000, 16_000_000_000, 25_000_000_000].map(generation),
            [None, Some(3), Some(3), Some(4)]
        );
    }
}
