//! The contents of a device and its use: the simulation's own figures.

use super::DeviceHandle;
use crate::abi::arguments::Out;
use crate::abi::nvml::{
    Memory, MemoryV2, NOT_AVAILABLE, NvmlError, ProcessInfo, ProcessInfoV1, Utilization, version_of,
};
use crate::management_api;
use crate::nvml::Outcome;
use crate::session::connection::management;
use crate::session::state::process;

/// Writes the answer of `info` about the process itself, if it has used CUDA: nothing is known here about others.
fn processes<T>(handle: DeviceHandle, count: Out<u32>, places: *mut T, info: impl Fn(u32) -> T) -> Outcome {
    handle.device()?;
    count.check()?;
    // SAFETY: the place is not null, and holds how much room there is.
    let room = unsafe { count.pointer().read_unaligned() };
    if process::node().is_none() || process::is_forked() {
        return Ok(count.set(0)?);
    }
    count.set(1)?;
    if room == 0 {
        return Err(NvmlError::InsufficientSize);
    }
    if places.is_null() {
        return Err(NvmlError::InvalidArgument);
    }
    // SAFETY: there is room for one.
    unsafe { places.write_unaligned(info(std::process::id())) };
    Ok(())
}

fn no_processes(handle: DeviceHandle, count: Out<u32>) -> Outcome {
    handle.device()?;
    Ok(count.set(0)?)
}

fn old_info(process: u32) -> ProcessInfoV1 {
    ProcessInfoV1 { process, used: NOT_AVAILABLE }
}

fn info(process: u32) -> ProcessInfo {
    ProcessInfo { process, used: NOT_AVAILABLE, gpu_instance: u32::MAX, compute_instance: u32::MAX }
}

management_api! {
    fn nvmlDeviceGetMemoryInfo(handle: DeviceHandle, place: Out<Memory>) {
        place.check()?;
        let state = management::device_state(handle.device()?.1)?;
        Ok(place.set(Memory { total: state.total, free: state.free, used: state.total.saturating_sub(state.free) })?)
    }

    fn nvmlDeviceGetMemoryInfo_v2(handle: DeviceHandle, place: Out<MemoryV2>) {
        place.check()?;
        let version = version_of::<MemoryV2>(2);
        // SAFETY: the place is not null, and begins with the version.
        if unsafe { place.pointer().cast::<u32>().read_unaligned() } != version {
            return Err(NvmlError::ArgumentVersionMismatch);
        }
        let state = management::device_state(handle.device()?.1)?;
        let used = state.total.saturating_sub(state.free);
        Ok(place.set(MemoryV2 { version, total: state.total, reserved: 0, free: state.free, used })?)
    }

    /// Shares of the simulated time since the process asked last: in which kernels ran, and in which kernels, copies or fills were under
    /// way.
    fn nvmlDeviceGetUtilizationRates(handle: DeviceHandle, place: Out<Utilization>) {
        place.check()?;
        let used = management::utilization(handle.device()?.1)?;
        Ok(place.set(Utilization { gpu: used.kernels, memory: used.busy })?)
    }

    fn nvmlDeviceGetComputeRunningProcesses(handle: DeviceHandle, count: Out<u32>, places: *mut ProcessInfoV1) {
        processes(handle, count, places, old_info)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(handle: DeviceHandle, count: Out<u32>, places: *mut ProcessInfo) {
        processes(handle, count, places, info)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(handle: DeviceHandle, count: Out<u32>, places: *mut ProcessInfo) {
        processes(handle, count, places, info)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(handle: DeviceHandle, count: Out<u32>, _places: *mut ProcessInfoV1) {
        no_processes(handle, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2(handle: DeviceHandle, count: Out<u32>, _places: *mut ProcessInfo) {
        no_processes(handle, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(handle: DeviceHandle, count: Out<u32>, _places: *mut ProcessInfo) {
        no_processes(handle, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses(handle: DeviceHandle, count: Out<u32>, _places: *mut ProcessInfoV1) {
        no_processes(handle, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(handle: DeviceHandle, count: Out<u32>, _places: *mut ProcessInfo) {
        no_processes(handle, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(handle: DeviceHandle, count: Out<u32>, _places: *mut ProcessInfo) {
        no_processes(handle, count)
    }
}
