//! How devices are connected: each by a link of its own to the host.

use super::DeviceHandle;
use crate::abi::arguments::Out;
use crate::abi::nvml::{FieldValue, NvmlError};
use crate::management_api;
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

management_api! {
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
