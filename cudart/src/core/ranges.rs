//! Memory that host and devices share, as the program sees it: the host window, and registered ranges.

use super::{connection, devices, process};
use balar_host::memory::{self, BASE, HOST_BASE, HOST_BYTES};
use balar_host::{Call, CallResult, CudaError};
use rustix::mm::{MapFlags, MremapFlags, MsyncFlags, ProtFlags};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const PAGE: u64 = 4096;

/// Whose memory an address of the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The memory of this device.
    Device(u32),
    /// Pinned host memory: the address that devices know it by.
    Pinned(u64),
    /// Managed memory.
    Managed(u64),
    /// Memory of the program alone.
    Pageable,
}

/// How a range came to be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// `cudaMallocHost`, `cudaHostAlloc`.
    Allocated,
    /// `cudaHostRegister`.
    Registered,
    /// `cudaMallocManaged`.
    Managed,
}

/// A range of memory that host and devices share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The host's address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// The devices' address.
    pub window: u64,
    /// How it came to be.
    pub sharing: Sharing,
    /// The flags that the program gave.
    pub flags: u32,
    /// The device that was current.
    pub device: u32,
    /// Whether the program's pages are the devices': not where pages were shared with another registered range.
    is_mapped: bool,
}

/// By the host's address.
static RANGES: RwLock<BTreeMap<u64, Range>> = RwLock::new(BTreeMap::new());
/// Device memory that the program allocated, and addresses that it reserved: bytes by address. What other calls than `cudaFree` have freed may still be here.
static DEVICE_MEMORY: RwLock<BTreeMap<u64, u64>> = RwLock::new(BTreeMap::new());
/// Copies of as many bytes are looked at closely wherever they go.
const LARGE_COPY: u64 = 1 << 32;
/// The host window is there.
static WINDOW: AtomicBool = AtomicBool::new(false);

fn read() -> RwLockReadGuard<'static, BTreeMap<u64, Range>> {
    RANGES.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, BTreeMap<u64, Range>> {
    RANGES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Maps the host window where devices know it. Only pages that are used take memory.
pub fn map_host_window(memory: Option<&OwnedFd>) {
    let Some(memory) = memory else { return };
    // SAFETY: a range that nothing else is mapped at: the kernel refuses it otherwise.
    let mapped = unsafe {
        rustix::mm::mmap(
            HOST_BASE as *mut c_void,
            HOST_BYTES as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED_NOREPLACE | MapFlags::NORESERVE,
            memory,
            HOST_BASE - BASE,
        )
    };
    match mapped {
        Ok(_) => {
            // A core dump would have the size of the window.
            // SAFETY: the mapping just made.
            let _ = unsafe {
                rustix::mm::madvise(HOST_BASE as *mut c_void, HOST_BYTES as usize, rustix::mm::Advice::LinuxDontDump)
            };
            WINDOW.store(true, Ordering::Relaxed);
        }
        Err(error) => process::say(&format!(
            "no pinned and managed memory: {HOST_BYTES} bytes at {HOST_BASE:#x} cannot be mapped: {error}"
        )),
    }
}

/// Refuses host memory that the program could not reach.
fn window() -> Result<(), CudaError> {
    process::description()?;
    if WINDOW.load(Ordering::Relaxed) { Ok(()) } else { Err(CudaError::MemoryAllocation) }
}

/// Allocates memory that host and devices share.
pub fn allocate(sharing: Sharing, bytes: u64, flags: u32) -> Result<u64, CudaError> {
    window()?;
    super::capture::require_safe()?;
    let call = if sharing == Sharing::Managed { Call::MallocManaged { bytes } } else { Call::MallocHost { bytes } };
    let start = connection::pointer(&call)?;
    let device = super::thread::device();
    write().insert(start, Range { start, bytes, window: start, sharing, flags, device, is_mapped: true });
    Ok(start)
}

/// Ends a range that starts at `start`, if it came to be in this way.
pub fn remove(start: u64, sharing: Sharing) -> Option<Range> {
    let mut ranges = write();
    if ranges.get(&start)?.sharing != sharing {
        return None;
    }
    ranges.remove(&start)
}

/// Puts back a range that could not be ended.
pub fn restore(range: Range) {
    write().insert(range.start, range);
}

/// The range that an address is in.
pub fn find(address: u64) -> Option<Range> {
    let ranges = read();
    let (_, range) = ranges.range(..=address).next_back()?;
    (address - range.start < range.bytes.max(1)).then_some(*range)
}

/// Notes what was allocated of a device's memory.
pub fn note_device_memory(start: u64, bytes: u64) {
    DEVICE_MEMORY.write().unwrap_or_else(PoisonError::into_inner).insert(start, bytes);
}

/// Forgets what was freed of a device's memory.
pub fn forget_device_memory(start: u64) {
    DEVICE_MEMORY.write().unwrap_or_else(PoisonError::into_inner).remove(&start);
}

/// The noted memory that an address is in: where it begins, and its bytes.
fn noted(address: u64) -> Option<(u64, u64)> {
    let noted = DEVICE_MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    let (start, bytes) = noted.range(..=address).next_back()?;
    (address - start < *bytes).then_some((*start, *bytes))
}

/// The first address after the noted memory that an address is in.
pub fn noted_end(address: u64) -> Option<u64> {
    noted(address).map(|(start, bytes)| start + bytes)
}

/// Refuses a copy from the host that is longer than the memory that it goes to, before the host's memory is read.
pub fn check_room(address: u64, bytes: u64) -> Result<(), CudaError> {
    let fits = |(start, length): (u64, u64)| bytes <= length.saturating_sub(address - start);
    let looks_right = noted(address).map_or(bytes < LARGE_COPY, fits);
    if looks_right || memory::place_of(address) == memory::Place::Elsewhere {
        return Ok(());
    }
    match connection::call(&Call::PointerInfo { pointer: address })? {
        CallResult::PointerInfo(Some(found)) if fits((found.base, found.bytes)) => Ok(()),
        CallResult::PointerInfo(None) if bytes < LARGE_COPY => Ok(()),
        _ => Err(CudaError::InvalidValue),
    }
}

/// The registered range that devices know by this address.
pub fn find_by_window(address: u64) -> Option<Range> {
    let ranges = read();
    ranges.values().find(|range| address >= range.window && address - range.window < range.bytes.max(1)).copied()
}

/// Forgets what was allocated while a device was current that has been reset.
pub fn forget_device(device: u32) {
    let is_other = |address: &u64| {
        devices::of_node(device).is_ok_and(|device| memory::place_of(*address) != memory::Place::Device(device))
    };
    DEVICE_MEMORY.write().unwrap_or_else(PoisonError::into_inner).retain(|start, _| is_other(start));
    write().retain(|_, range| range.sharing == Sharing::Registered || range.device != device);
}

/// Whose memory the `bytes` from `address` on are.
pub fn place(address: u64, bytes: u64) -> Place {
    match memory::place_of(address) {
        memory::Place::Device(device) => Place::Device(devices::of_program(device)),
        memory::Place::HostWindow => match find(address).map(|range| range.sharing) {
            Some(Sharing::Allocated) => Place::Pinned(address),
            // Managed variables are in no range of ours.
            _ => Place::Managed(address),
        },
        memory::Place::Elsewhere => match find(address) {
            Some(range) if range.is_mapped && bytes <= range.bytes - (address - range.start) => {
                Place::Pinned(range.window + (address - range.start))
            }
            _ => Place::Pageable,
        },
    }
}

/// Makes the program's memory visible to devices: its pages become pages of the host window.
pub fn register(start: u64, bytes: u64, flags: u32) -> Result<(), CudaError> {
    window()?;
    if start == 0 || bytes == 0 || memory::place_of(start) != memory::Place::Elsewhere {
        return Err(CudaError::InvalidValue);
    }
    let end = start.checked_add(bytes).ok_or(CudaError::InvalidValue)?;
    let (first, last) = (start / PAGE * PAGE, end.checked_next_multiple_of(PAGE).ok_or(CudaError::InvalidValue)?);
    let mut ranges = write();
    if ranges.values().any(|range| range.start < end && start < range.start + range.bytes) {
        return Err(CudaError::HostMemoryAlreadyRegistered);
    }
    // A page can be one page of the window only. Copies treat a range that would need more as the program's own memory.
    let shares_pages = ranges
        .values()
        .filter(|range| range.sharing == Sharing::Registered)
        .any(|range| range.start / PAGE * PAGE < last && first < (range.start + range.bytes).next_multiple_of(PAGE));
    let window = connection::pointer(&Call::MallocHost { bytes: last - first })?;
    if !shares_pages && let Err(error) = replace_pages(first, last - first, window) {
        connection::done(&Call::FreeHost { pointer: window })?;
        return Err(error);
    }
    let device = super::thread::device();
    let range = Range {
        start,
        bytes,
        window: window + (start - first),
        sharing: Sharing::Registered,
        flags,
        device,
        is_mapped: !shares_pages,
    };
    ranges.insert(start, range);
    Ok(())
}

/// Moves the bytes of the program's pages to the window, and the window's pages to where they were.
fn replace_pages(first: u64, bytes: u64, window: u64) -> Result<(), CudaError> {
    let memory = process::node().and_then(|node| node.memory.as_ref()).ok_or(CudaError::MemoryAllocation)?;
    // The kernel says whether they are there, without a signal.
    // SAFETY: writes back pages of files, if any, and changes nothing.
    if unsafe { rustix::mm::msync(first as *mut c_void, bytes as usize, MsyncFlags::ASYNC) }.is_err() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: the program's pages, which it asks to register, and pages of the window that were just allocated. Between the two
    // calls nothing is done that could write them.
    unsafe {
        std::ptr::copy_nonoverlapping(first as *const u8, window as *mut u8, bytes as usize);
        rustix::mm::mmap(
            first as *mut c_void,
            bytes as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            memory,
            window - BASE,
        )
    }
    .map(|_| ())
    .map_err(|_| CudaError::MemoryAllocation)
}

/// Makes registered memory the program's own again.
pub fn unregister(start: u64) -> Result<(), CudaError> {
    let Some(range) = remove(start, Sharing::Registered) else { return Err(CudaError::HostMemoryNotRegistered) };
    let (first, last) = (start / PAGE * PAGE, (start + range.bytes).next_multiple_of(PAGE));
    if range.is_mapped {
        // Devices write the pages no longer when their bytes are taken.
        for device in 0..process::device_count()? {
            connection::call_on(device, &Call::DeviceSynchronize)?;
        }
        restore_pages(first, last - first)?;
    }
    connection::done(&Call::FreeHost { pointer: range.window - (start - first) })
}

fn restore_pages(first: u64, bytes: u64) -> Result<(), CudaError> {
    // SAFETY: new pages, filled with the bytes of those whose place they take.
    unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let private = rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes as usize, protection, MapFlags::PRIVATE)
            .map_err(|_| CudaError::MemoryAllocation)?;
        std::ptr::copy_nonoverlapping(first as *const u8, private.cast::<u8>(), bytes as usize);
        rustix::mm::mremap_fixed(private, bytes as usize, bytes as usize, MremapFlags::MAYMOVE, first as *mut c_void)
            .map(|_| ())
            .map_err(|_| CudaError::MemoryAllocation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_fits_needs_no_question() {
        let start = BASE + (1 << 39);
        note_device_memory(start, 4096);
        assert_eq!(check_room(start + 96, 4000), Ok(()));
        // Without a simulator the question has no answer.
        assert_eq!(check_room(start + 96, 4001), Err(CudaError::NoDevice));
        assert_eq!([start, start + 4095].map(noted_end), [Some(start + 4096); 2]);
        assert_eq!(noted_end(start + 4096), None);
        forget_device_memory(start);
        assert_eq!(check_room(start + 96, 4001), Ok(()));
        assert_eq!(check_room(start, 1 << 45), Err(CudaError::NoDevice));
    }

    #[test]
    fn memory_of_nobody_is_the_programs_own() {
        let local = 0_u32;
        assert_eq!(place(&raw const local as u64, 4), Place::Pageable);
        assert_eq!(place(BASE + 8, 4), Place::Device(0));
        assert_eq!(find(HOST_BASE), None);
    }
}
