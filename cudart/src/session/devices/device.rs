//! Devices in use: waiting for them, resetting them, their limits and settings, and access between them.

use crate::abi::device_attribute;
use crate::abi::device_properties::Device;
use crate::abi::driver::DeviceResource;
use crate::session::addresses::ranges;
use crate::session::arrays::{array, texture};
use crate::session::code;
use crate::session::connection::{self, description, translation};
use crate::session::graph::footprint;
use crate::session::memory::pool;
use crate::session::order::{event, stream};
use crate::session::state::{captures, process, thread, visible_devices};
use balar_host::call::Limit;
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All flags that `cudaSetDeviceFlags` takes.
const DEVICE_FLAGS: u32 = 0xff;

/// Banks of shared memory have four bytes (`cudaSharedMemBankSizeFourByte`), whatever was asked for.
pub const BANK_SIZE: c_int = 1;

/// Settings of the process.
static SETTINGS: Mutex<Settings> = Mutex::new(Settings { devices: BTreeMap::new() });

struct Settings {
    devices: BTreeMap<u32, DeviceSettings>,
}

/// Settings of a device.
#[derive(Clone, Copy, Default)]
pub struct DeviceSettings {
    /// The flags of `cudaSetDeviceFlags`.
    pub flags: u32,
    /// The preference between cache and shared memory.
    pub cache: c_int,
    /// Sizes that are kept and change nothing: their numbers in `cudaLimit`, from [`KEPT_LIMITS`].
    kept: [Option<usize>; KEPT_LIMITS.len()],
}

/// Limits of features that the simulator does not have (`cudaLimitDevRuntimeSyncDepth` and so on), with their first values.
const KEPT_LIMITS: [(c_int, usize); 2] = [(3, 2), (5, 64)];

/// `CU_LIMIT_SHMEM_SIZE`, `CU_LIMIT_CIG_ENABLED` and `CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED`.
const SHARED_MEMORY_LIMIT: c_int = 7;
const SHARED_WITH_GRAPHICS: c_int = 8;
const SHARED_MEMORY_FALLBACK: c_int = 9;

fn all_settings() -> MutexGuard<'static, Settings> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The settings of the current device.
pub fn settings() -> DeviceSettings {
    all_settings().devices.get(&thread::device()).copied().unwrap_or_default()
}

fn change(change: impl FnOnce(&mut DeviceSettings)) {
    change(all_settings().devices.entry(thread::device()).or_default());
}

/// Waits for everything on the current device.
pub fn synchronize() -> Result<(), CudaError> {
    captures::forbid_all()?;
    connection::done(&Call::DeviceSynchronize)
}

/// A device as programs see it.
pub fn described(device: c_int) -> Result<Device<'static>, CudaError> {
    let description = description::device_of(device)?;
    let index = translation::of_node(device as u32)?;
    Ok(Device { description, index, uuid: visible_devices::uuid(index) })
}

/// An attribute of a device that both APIs know.
pub fn attribute(attribute: c_int, device: c_int) -> Result<c_int, CudaError> {
    let device = described(device)?;
    device_attribute::value(device.description, device.index, attribute).ok_or(CudaError::InvalidValue)
}

/// An attribute of a device that the driver knows.
pub fn driver_attribute(attribute: c_int, device: c_int) -> Result<c_int, CudaError> {
    let device = described(device)?;
    device_attribute::driver_value(device.description, device.index, attribute).ok_or(CudaError::InvalidValue)
}

/// The resource of a device that can be divided among work: its SMs. Work queues are shared by all and are not divided.
pub fn resource(device: c_int, kind: u32) -> Result<DeviceResource, CudaError> {
    let device = described(device)?.description;
    match kind {
        DeviceResource::SMS => Ok(DeviceResource::sms(device.sm_count, device.compute_capability.0)),
        _ => Err(CudaError::NotSupported),
    }
}

/// Ends everything of the program on the current device.
pub fn reset() -> Result<(), CudaError> {
    let device = thread::device();
    connection::done(&Call::DeviceReset)?;
    process::count_reset();
    code::forget_device(device);
    ranges::forget_device(device);
    footprint::forget_device(device);
    stream::forget_device(device);
    event::forget_device(device);
    array::forget_device(device);
    texture::forget_device(device);
    pool::forget_device(device);
    all_settings().devices.remove(&device);
    thread::with(|thread| thread.default_streams.borrow_mut().remove(&device));
    Ok(())
}

/// Makes a device the thread's current one.
pub fn set_current(device: c_int) -> Result<(), CudaError> {
    description::device_of(device)?;
    thread::with(|thread| thread.device.set(device as u32));
    Ok(())
}

/// A limit that the simulator has.
fn simulated_limit(number: c_int) -> Option<Limit> {
    match number {
        0 => Some(Limit::Stack),
        1 => Some(Limit::PrintQueue),
        2 => Some(Limit::Heap),
        4 => Some(Limit::PendingLaunches),
        6 => Some(Limit::PersistingL2),
        _ => None,
    }
}

fn kept_limit(number: c_int) -> Result<usize, CudaError> {
    KEPT_LIMITS.iter().position(|(kept, _)| *kept == number).ok_or(CudaError::UnsupportedLimit)
}

/// Sets a limit of the current device (`cudaLimit`).
pub fn set_limit(number: c_int, bytes: usize) -> Result<(), CudaError> {
    if let Some(limit) = simulated_limit(number) {
        return connection::done(&Call::SetLimit { limit, bytes: bytes as u64 });
    }
    let index = kept_limit(number)?;
    description::description()?;
    change(|settings| settings.kept[index] = Some(bytes));
    Ok(())
}

/// A limit of the current device.
pub fn limit(number: c_int) -> Result<usize, CudaError> {
    if let Some(limit) = simulated_limit(number) {
        let CallResult::Size(bytes) = connection::call(&Call::GetLimit { limit })? else {
            return Err(CudaError::Unknown);
        };
        return Ok(bytes as usize);
    }
    let index = kept_limit(number)?;
    description::description()?;
    Ok(settings().kept[index].unwrap_or(KEPT_LIMITS[index].1))
}

/// No line of the L2 is persisting any more.
pub fn reset_persisting_l2() -> Result<(), CudaError> {
    connection::done(&Call::ResetPersistingL2)
}

/// A limit of the current device that the driver knows: also limits of contexts that are shared with graphics, which do not exist here.
pub fn driver_limit(number: c_int) -> Result<usize, CudaError> {
    match number {
        // Shared memory of kernels there: what any kernel can have.
        SHARED_MEMORY_LIMIT => Ok(description::device(thread::device())?.cta_shared_bytes_optin as usize),
        // Whether it is such a context, and whether its kernels may use another way where shared memory is short.
        SHARED_WITH_GRAPHICS | SHARED_MEMORY_FALLBACK => description::description().map(|_| 0),
        _ => limit(number),
    }
}

/// Sets the preference between cache and shared memory, which is kept and changes nothing.
pub fn set_cache(preference: c_int) -> Result<(), CudaError> {
    if !(0..=3).contains(&preference) {
        return Err(CudaError::InvalidValue);
    }
    description::description()?;
    change(|settings| settings.cache = preference);
    Ok(())
}

/// Where a device, by the node's number, is on the bus: domain, bus and device, as `cudaDeviceProp` has them.
pub fn bus_id_of_node(device: u32) -> String {
    format!("0000:{:02X}:00.0", device + 1)
}

/// Where a device is on the bus.
pub fn bus_id(device: c_int) -> Result<String, CudaError> {
    description::device_of(device)?;
    Ok(bus_id_of_node(translation::of_node(device as u32)?))
}

/// The device at such a place: `domain:bus:device.function`, or without the domain or function.
pub fn at_bus_id(place: &str) -> Result<u32, CudaError> {
    let device = translation::of_program(of_node_at_bus_id(place)?);
    if device < description::device_count()? { Ok(device) } else { Err(CudaError::InvalidDevice) }
}

/// The node's number of the device at such a place, if there is one.
pub fn of_node_at_bus_id(place: &str) -> Result<u32, CudaError> {
    let number = |text: &str| u32::from_str_radix(text, 16).map_err(|_| CudaError::InvalidValue);
    let parts: Vec<&str> = place.split(':').collect();
    let (domain, bus, slot) = match parts[..] {
        [domain, bus, slot] => (number(domain)?, number(bus)?, slot),
        [bus, slot] => (0, number(bus)?, slot),
        _ => return Err(CudaError::InvalidValue),
    };
    let slot = number(slot.split('.').next().unwrap_or_default())?;
    match (domain, bus.checked_sub(1), slot) {
        (0, Some(device), 0) => Ok(device),
        _ => Err(CudaError::InvalidDevice),
    }
}

/// Can a device access another one's memory?
pub fn can_access(device: c_int, peer: c_int) -> Result<bool, CudaError> {
    description::device_of(device)?;
    description::device_of(peer)?;
    Ok(device != peer)
}

/// Lets the current device access another one's memory.
pub fn enable_peer_access(peer: c_int, flags: u32) -> Result<(), CudaError> {
    if flags != 0 {
        return Err(CudaError::InvalidValue);
    }
    if !can_access(thread::device() as c_int, peer)? {
        return Err(CudaError::InvalidDevice);
    }
    connection::done(&Call::PeerAccess { peer: peer as u32, enabled: true })
}

/// Ends the effect of [`enable_peer_access`].
pub fn disable_peer_access(peer: c_int) -> Result<(), CudaError> {
    description::device_of(peer)?;
    connection::done(&Call::PeerAccess { peer: peer as u32, enabled: false })
}

/// An attribute of the connection between two devices (`cudaDeviceP2PAttr`).
pub fn peer_attribute(attribute: c_int, device: c_int, peer: c_int) -> Result<c_int, CudaError> {
    if !can_access(device, peer)? {
        return Err(CudaError::InvalidDevice);
    }
    match attribute {
        // The rank of the connection; 0 is the best.
        1 => Ok(0),
        // Access, and native atomics.
        2 | 3 => Ok(1),
        // Arrays, and partial native atomics.
        4 | 5 => Ok(0),
        _ => Err(CudaError::InvalidValue),
    }
}

/// Waits for writes by other hardware of the system, which does not exist here.
pub fn flush_remote_writes() -> Result<(), CudaError> {
    description::description()?;
    Err(CudaError::NotSupported)
}

/// Sets the size of the banks of shared memory, which is checked and changes nothing.
pub fn set_bank_size(bank_size: c_int) -> Result<(), CudaError> {
    if !(0..=2).contains(&bank_size) {
        return Err(CudaError::InvalidValue);
    }
    description::description().map(|_| ())
}

/// Sets the flags of the current device.
pub fn set_flags(flags: u32) -> Result<(), CudaError> {
    if flags & !DEVICE_FLAGS != 0 || !matches!(flags & 7, 0 | 1 | 2 | 4) {
        return Err(CudaError::InvalidValue);
    }
    change(|settings| settings.flags = flags);
    Ok(())
}

/// Sets the flags of a device, unchecked as CUDA's `cudaInitDevice` has them.
pub fn set_flags_of(device: u32, flags: u32) {
    all_settings().devices.entry(device).or_default().flags = flags;
}

/// Is this an error after which nothing works on the device until it is reset?
pub fn is_sticky(error: CudaError) -> bool {
    use CudaError as E;
    matches!(
        error,
        E::IllegalAddress
            | E::LaunchTimeout
            | E::Assert
            | E::HardwareStackError
            | E::IllegalInstruction
            | E::MisalignedAddress
            | E::InvalidAddressSpace
            | E::InvalidPc
            | E::LaunchFailure
            | E::ECCUncorrectable
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_the_bus_have_domain_bus_and_device() {
        assert_eq!(bus_id_of_node(0), "0000:01:00.0");
        assert_eq!(bus_id_of_node(25), "0000:1A:00.0");
    }

    #[test]
    fn limits_that_nobody_knows_are_refused() {
        assert_eq!(kept_limit(7), Err(CudaError::UnsupportedLimit));
        assert_eq!(kept_limit(3).map(|index| KEPT_LIMITS[index].1), Ok(2));
    }
}
