//! Devices: which there are, which is current, waiting for them, their limits and settings.

use crate::abi::arguments::{In, Out, Text};
use crate::cuda_api;
use crate::session::graph::footprint;
use crate::session::{capture, code, connection, devices, process, ranges, thread};
use balar_host::call::Limit;
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaDeviceMapHost`: what every context has.
const MAP_HOST: u32 = 0x08;
/// All flags that `cudaSetDeviceFlags` takes.
const DEVICE_FLAGS: u32 = 0xff;

/// Settings of the process.
static SETTINGS: Mutex<Settings> = Mutex::new(Settings { devices: BTreeMap::new() });

struct Settings {
    devices: BTreeMap<u32, DeviceSettings>,
}

#[derive(Clone, Copy, Default)]
struct DeviceSettings {
    flags: u32,
    cache: c_int,
    bank_size: c_int,
    /// Sizes that are kept and change nothing: their numbers in `cudaLimit`, from [`KEPT_LIMITS`].
    kept: [Option<usize>; KEPT_LIMITS.len()],
}

/// Limits of what the simulator does not have (`cudaLimitDevRuntimeSyncDepth` and so on), with what they are at first.
const KEPT_LIMITS: [(c_int, usize); 4] = [(3, 2), (4, 2048), (5, 64), (6, 0)];

fn settings() -> MutexGuard<'static, Settings> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn current() -> DeviceSettings {
    settings().devices.get(&thread::device()).copied().unwrap_or_default()
}

fn change(change: impl FnOnce(&mut DeviceSettings)) {
    change(settings().devices.entry(thread::device()).or_default());
}

/// Waits for everything on the current device.
fn synchronize() -> Result<(), CudaError> {
    capture::forbid_all()?;
    connection::done(&Call::DeviceSynchronize)
}

/// Ends everything of the program on the current device.
fn reset() -> Result<(), CudaError> {
    let device = thread::device();
    connection::done(&Call::DeviceReset)?;
    process::count_reset();
    code::forget_device(device);
    ranges::forget_device(device);
    footprint::forget_device(device);
    crate::session::stream::forget_device(device);
    crate::session::event::forget_device(device);
    super::array::forget_device(device);
    super::texture::forget_device(device);
    crate::session::pool::forget_device(device);
    settings().devices.remove(&device);
    thread::with(|thread| thread.default_streams.borrow_mut().remove(&device));
    Ok(())
}

/// Makes a device the thread's current one.
fn set_device(device: c_int) -> Result<(), CudaError> {
    process::device_of(device)?;
    thread::with(|thread| thread.device.set(device as u32));
    Ok(())
}

/// A limit that the simulator has.
fn limit(number: c_int) -> Option<Limit> {
    match number {
        0 => Some(Limit::Stack),
        1 => Some(Limit::PrintQueue),
        2 => Some(Limit::Heap),
        _ => None,
    }
}

fn kept_limit(number: c_int) -> Result<usize, CudaError> {
    KEPT_LIMITS.iter().position(|(kept, _)| *kept == number).ok_or(CudaError::UnsupportedLimit)
}

fn set_limit(number: c_int, bytes: usize) -> Result<(), CudaError> {
    if let Some(limit) = limit(number) {
        return connection::done(&Call::SetLimit { limit, bytes: bytes as u64 });
    }
    let index = kept_limit(number)?;
    process::description()?;
    change(|settings| settings.kept[index] = Some(bytes));
    Ok(())
}

fn get_limit(number: c_int) -> Result<usize, CudaError> {
    if let Some(limit) = limit(number) {
        let CallResult::Size(bytes) = connection::call(&Call::GetLimit { limit })? else {
            return Err(CudaError::Unknown);
        };
        return Ok(bytes as usize);
    }
    let index = kept_limit(number)?;
    process::description()?;
    Ok(current().kept[index].unwrap_or(KEPT_LIMITS[index].1))
}

fn set_cache(preference: c_int) -> Result<(), CudaError> {
    if !(0..=3).contains(&preference) {
        return Err(CudaError::InvalidValue);
    }
    process::description()?;
    change(|settings| settings.cache = preference);
    Ok(())
}

/// Writes a text and a zero byte where there are `room` bytes.
///
/// # Safety
///
/// `place` is null or valid for writing `room` bytes.
unsafe fn write_text(place: *mut c_char, room: c_int, text: &str) -> Result<(), CudaError> {
    let room = usize::try_from(room).map_err(|_| CudaError::InvalidValue)?;
    if place.is_null() || room <= text.len() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: there is room for the text and the byte after it.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast::<u8>(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

/// Where a device, by the node's number, is on the bus: domain, bus and device, as `cudaDeviceProp` has them.
fn bus_id(device: u32) -> String {
    format!("0000:{:02X}:00.0", device + 1)
}

/// The device at such a place: `domain:bus:device.function`, or without the domain or function.
fn device_at(place: &str) -> Result<u32, CudaError> {
    let number = |text: &str| u32::from_str_radix(text, 16).map_err(|_| CudaError::InvalidValue);
    let parts: Vec<&str> = place.split(':').collect();
    let (domain, bus, slot) = match parts[..] {
        [domain, bus, slot] => (number(domain)?, number(bus)?, slot),
        [bus, slot] => (0, number(bus)?, slot),
        _ => return Err(CudaError::InvalidValue),
    };
    let slot = number(slot.split('.').next().unwrap_or_default())?;
    let count = process::device_count()?;
    match (domain, bus.checked_sub(1).map(devices::of_program), slot) {
        (0, Some(device), 0) if device < count => Ok(device),
        _ => Err(CudaError::InvalidDevice),
    }
}

/// Whether a device may access another's memory.
fn can_access(device: c_int, peer: c_int) -> Result<bool, CudaError> {
    process::device_of(device)?;
    process::device_of(peer)?;
    Ok(device != peer)
}

cuda_api! {
    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.check()?;
        let found = process::device_count();
        count.set(found.unwrap_or(0) as c_int)?;
        if found? == 0 { Err(CudaError::NoDevice) } else { Ok(()) }
    }

    fn cudaSetDevice(device: c_int) {
        set_device(device)
    }

    fn cudaInitDevice(device: c_int, device_flags: u32, flags: u32) {
        process::device_of(device)?;
        // `cudaInitDeviceFlagsAreValid` says that the flags are meant.
        if flags == 1 {
            settings().devices.entry(device as u32).or_default().flags = device_flags;
        }
        Ok(())
    }

    fn cudaGetDevice(device: Out<c_int>) {
        process::description()?;
        device.set(thread::device() as c_int)
    }

    /// The first of the list becomes the thread's device.
    fn cudaSetValidDevices(devices: In<c_int>, count: c_int) {
        let count = usize::try_from(count).map_err(|_| CudaError::InvalidValue)?;
        if count as u32 > process::device_count()? {
            return Err(CudaError::InvalidValue);
        }
        let devices = devices.array(count)?;
        for device in &devices {
            process::device_of(*device)?;
        }
        set_device(devices.first().copied().unwrap_or(0))
    }

    fn cudaSetDeviceFlags(flags: u32) {
        if flags & !DEVICE_FLAGS != 0 || !matches!(flags & 7, 0 | 1 | 2 | 4) {
            return Err(CudaError::InvalidValue);
        }
        change(|settings| settings.flags = flags);
        Ok(())
    }

    fn cudaGetDeviceFlags(flags: Out<u32>) {
        process::description()?;
        flags.set(current().flags | MAP_HOST)
    }

    fn cudaDeviceSynchronize() {
        synchronize()
    }

    fn cudaThreadSynchronize() {
        synchronize()
    }

    fn cudaDeviceReset() {
        reset()
    }

    fn cudaThreadExit() {
        reset()
    }

    fn cudaDeviceSetLimit(limit: c_int, value: usize) {
        set_limit(limit, value)
    }

    fn cudaThreadSetLimit(limit: c_int, value: usize) {
        set_limit(limit, value)
    }

    fn cudaDeviceGetLimit(value: Out<usize>, limit: c_int) {
        value.set(get_limit(limit)?)
    }

    fn cudaThreadGetLimit(value: Out<usize>, limit: c_int) {
        value.set(get_limit(limit)?)
    }

    fn cudaDeviceSetCacheConfig(preference: c_int) {
        set_cache(preference)
    }

    fn cudaThreadSetCacheConfig(preference: c_int) {
        set_cache(preference)
    }

    fn cudaDeviceGetCacheConfig(preference: Out<c_int>) {
        process::description()?;
        preference.set(current().cache)
    }

    fn cudaThreadGetCacheConfig(preference: Out<c_int>) {
        process::description()?;
        preference.set(current().cache)
    }

    fn cudaDeviceSetSharedMemConfig(bank_size: c_int) {
        if !(0..=2).contains(&bank_size) {
            return Err(CudaError::InvalidValue);
        }
        process::description()?;
        change(|settings| settings.bank_size = bank_size);
        Ok(())
    }

    /// Banks have four bytes (`cudaSharedMemBankSizeFourByte`), whatever was asked for.
    fn cudaDeviceGetSharedMemConfig(bank_size: Out<c_int>) {
        process::description()?;
        bank_size.set(1)
    }

    fn cudaDeviceGetPCIBusId(place: *mut c_char, room: c_int, device: c_int) {
        process::device_of(device)?;
        // SAFETY: CUDA's contract.
        unsafe { write_text(place, room, &bus_id(devices::of_node(device as u32)?)) }
    }

    fn cudaDeviceGetByPCIBusId(device: Out<c_int>, place: Text) {
        device.set(device_at(&place.get()?)? as c_int)
    }

    fn cudaDeviceCanAccessPeer(result: Out<c_int>, device: c_int, peer: c_int) {
        result.set(c_int::from(can_access(device, peer)?))
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: u32) {
        if flags != 0 {
            return Err(CudaError::InvalidValue);
        }
        if !can_access(thread::device() as c_int, peer)? {
            return Err(CudaError::InvalidDevice);
        }
        connection::done(&Call::PeerAccess { peer: peer as u32, enabled: true })
    }

    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        process::device_of(peer)?;
        connection::done(&Call::PeerAccess { peer: peer as u32, enabled: false })
    }

    fn cudaDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, device: c_int, peer: c_int) {
        let access = can_access(device, peer)?;
        if !access {
            return Err(CudaError::InvalidDevice);
        }
        value.set(match attribute {
            // Rank of the connection: 0 is the best; whether it can be accessed; native atomics; arrays.
            1 => 0,
            2 | 3 => 1,
            4 | 5 => 0,
            _ => return Err(CudaError::InvalidValue),
        })
    }

    /// There are no writes by other devices of the system to wait for.
    fn cudaDeviceFlushGPUDirectRDMAWrites(_target: c_int, _scope: c_int) {
        process::description()?;
        Err(CudaError::NotSupported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_needs_room_for_its_end() {
        let mut room = [1 as c_char; 16];
        // SAFETY: as much room as is said.
        unsafe {
            assert_eq!(write_text(room.as_mut_ptr(), 12, &bus_id(0)), Err(CudaError::InvalidValue));
            assert_eq!(write_text(room.as_mut_ptr(), 13, &bus_id(0)), Ok(()));
        }
        assert_eq!(room.map(|c| c as u8)[..14], *b"0000:01:00.0\0\x01");
    }

    #[test]
    fn limits_that_nobody_knows_are_refused() {
        assert_eq!(kept_limit(7), Err(CudaError::UnsupportedLimit));
        assert_eq!(kept_limit(4).map(|index| KEPT_LIMITS[index].1), Ok(2048));
    }
}
