//! Memory that host and devices share, as the program sees it: the host window, and registered ranges.

use crate::session::accesses;
use crate::session::connection::{self, description, host_window, translation};
use crate::session::pages::{self, PAGE};
use crate::session::state::{captures, process, thread};
use balar_host::memory::{self, BASE};
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The window of a range that is being registered.
const NO_WINDOW: u64 = 0;

/// Whose memory an address of the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
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

/// Ranges, by the host's address.
static RANGES: RwLock<BTreeMap<u64, Range>> = RwLock::new(BTreeMap::new());
/// Device memory that the program allocated, and addresses that it reserved: bytes by address. Memory that calls other than `cudaFree` have
/// freed may still be here.
static DEVICE_MEMORY: RwLock<BTreeMap<u64, u64>> = RwLock::new(BTreeMap::new());
/// Copies of as many bytes are looked at closely wherever they go.
const LARGE_COPY: u64 = 1 << 32;

fn read() -> RwLockReadGuard<'static, BTreeMap<u64, Range>> {
    RANGES.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, BTreeMap<u64, Range>> {
    RANGES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses host memory that the program could not reach.
fn window() -> Result<(), CudaError> {
    description::description()?;
    if host_window::is_mapped() { Ok(()) } else { Err(CudaError::MemoryAllocation) }
}

/// Allocates memory that host and devices share.
pub fn allocate(sharing: Sharing, bytes: u64, flags: u32) -> Result<u64, CudaError> {
    window()?;
    captures::require_safe()?;
    let call = if sharing == Sharing::Managed { Call::MallocManaged { bytes } } else { Call::MallocHost { bytes } };
    if sharing == Sharing::Managed {
        accesses::prepare()?;
    }
    let start = connection::pointer(&call)?;
    // SAFETY: the window is mapped, and these pages of it are the new allocation's.
    unsafe { pages::clear(start, bytes) };
    let device = thread::device();
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
    (address - range.start < range.bytes.max(1) && range.window != NO_WINDOW).then_some(*range)
}

/// Notes an allocation of a device's memory.
pub fn note_device_memory(start: u64, bytes: u64) {
    DEVICE_MEMORY.write().unwrap_or_else(PoisonError::into_inner).insert(start, bytes);
}

/// Forgets a freed allocation of a device's memory.
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

/// Forgets the allocations that were made while a device was current that has been reset.
pub fn forget_device(device: u32) {
    let is_other = |address: &u64| {
        translation::of_node(device).is_ok_and(|device| memory::place_of(*address) != memory::Place::Device(device))
    };
    DEVICE_MEMORY.write().unwrap_or_else(PoisonError::into_inner).retain(|start, _| is_other(start));
    write().retain(|_, range| range.sharing == Sharing::Registered || range.device != device);
}

/// Is it an address of a device's memory? That needs no look at the allocations.
pub fn is_of_device(address: u64) -> bool {
    matches!(memory::place_of(address), memory::Place::Device(_))
}

/// Whose memory the `bytes` from `address` on are.
pub fn residence(address: u64, bytes: u64) -> Residence {
    match memory::place_of(address) {
        memory::Place::Device(device) => Residence::Device(translation::of_program(device)),
        memory::Place::HostWindow => match find(address).map(|range| range.sharing) {
            Some(Sharing::Allocated) => Residence::Pinned(address),
            // Managed variables are in none of these ranges.
            _ => Residence::Managed(address),
        },
        memory::Place::Elsewhere => match find(address) {
            Some(range) if range.is_mapped && bytes <= range.bytes - (address - range.start) => {
                Residence::Pinned(range.window + (address - range.start))
            }
            _ => Residence::Pageable,
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
    // The range is in the table from now on, so that no other thread registers it, but is not found before it has a window.
    let device = thread::device();
    let sharing = Sharing::Registered;
    let range = Range { start, bytes, window: NO_WINDOW, sharing, flags, device, is_mapped: false };
    let moving = reserve(range, first..last)?;
    let made = make_window(first, last, moving.is_some());
    match made {
        Ok(window) => {
            write().insert(start, Range { window: window + (start - first), is_mapped: moving.is_some(), ..range });
            Ok(())
        }
        Err(error) => {
            write().remove(&start);
            Err(error)
        }
    }
}

/// Notes a new range. Gives its pages, unless they are, or are becoming, those of another range: a page can be one page of the
/// window only, and copies treat a range that would need more as the program's own memory.
fn reserve(range: Range, pages: std::ops::Range<u64>) -> Result<Option<Moving>, CudaError> {
    let mut ranges = write();
    let end = range.start + range.bytes;
    if ranges.values().any(|other| other.start < end && range.start < other.start + other.bytes) {
        return Err(CudaError::HostMemoryAlreadyRegistered);
    }
    let overlaps = |other: &Range| {
        other.start / PAGE * PAGE < pages.end && pages.start < (other.start + other.bytes).next_multiple_of(PAGE)
    };
    let shared = ranges.values().any(|other| other.sharing == Sharing::Registered && overlaps(other));
    let moving = if shared { None } else { Moving::begin(pages) };
    ranges.insert(range.start, range);
    Ok(moving)
}

/// Allocates a window for pages of the program, which they become where they are to.
fn make_window(first: u64, last: u64, become_pages: bool) -> Result<u64, CudaError> {
    let window = connection::pointer(&Call::MallocHost { bytes: last - first })?;
    if !become_pages {
        return Ok(window);
    }
    let memory = process::node().and_then(|node| node.memory.as_ref()).ok_or(CudaError::MemoryAllocation);
    // SAFETY: the program asks to register the pages, and the window was just allocated.
    let replaced = memory.and_then(|memory| {
        unsafe { pages::replace(first, last - first, window, memory, window - BASE) }.map_err(error_of)
    });
    if let Err(error) = replaced {
        connection::done(&Call::FreeHost { pointer: window })?;
        return Err(error);
    }
    Ok(window)
}

/// The CUDA error for pages that cannot change places.
fn error_of(error: rustix::io::Errno) -> CudaError {
    static SAID: AtomicBool = AtomicBool::new(false);
    match error {
        rustix::io::Errno::NOMEM => CudaError::InvalidValue,
        error => {
            if !SAID.swap(true, Ordering::Relaxed) {
                process::say(&format!(
                    "cudaHostRegister has to stop the program's other threads while it moves memory, which the system refuses: {error}"
                ));
            }
            CudaError::NotSupported
        }
    }
}

/// Pages that are changing places.
static MOVING: Mutex<Vec<std::ops::Range<u64>>> = Mutex::new(Vec::new());

/// Pages that this thread has reserved for changing their places.
struct Moving(std::ops::Range<u64>);

impl Moving {
    fn pages() -> MutexGuard<'static, Vec<std::ops::Range<u64>>> {
        MOVING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` where another thread has reserved some of them.
    fn begin(pages: std::ops::Range<u64>) -> Option<Moving> {
        let mut all = Moving::pages();
        if all.iter().any(|other| other.start < pages.end && pages.start < other.end) {
            return None;
        }
        all.push(pages.clone());
        Some(Moving(pages))
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        Moving::pages().retain(|pages| *pages != self.0);
    }
}

/// Makes registered memory the program's own again.
pub fn unregister(start: u64) -> Result<(), CudaError> {
    let (range, moving) = {
        let mut ranges = write();
        let found =
            ranges.get(&start).filter(|range| range.sharing == Sharing::Registered && range.window != NO_WINDOW);
        let range = *found.ok_or(CudaError::HostMemoryNotRegistered)?;
        ranges.remove(&start);
        let pages = start / PAGE * PAGE..(start + range.bytes).next_multiple_of(PAGE);
        (range, if range.is_mapped { Moving::begin(pages) } else { None })
    };
    if range.is_mapped {
        // No other thread moves the pages of a range that is in the table.
        let Some(Moving(pages)) = &moving else { return Ok(()) };
        // No device writes the pages any more when their bytes are copied.
        for device in 0..description::device_count()? {
            connection::call_on(device, &Call::DeviceSynchronize)?;
        }
        // SAFETY: the pages have been the window's since the range was registered.
        if unsafe { pages::restore(pages.start, pages.end - pages.start) }.is_err() {
            // The pages stay the window's: the program sees no difference, and nothing else is given them.
            return Ok(());
        }
    }
    connection::done(&Call::FreeHost { pointer: range.window - start % PAGE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::memory::HOST_BASE;

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
        assert_eq!(residence(&raw const local as u64, 4), Residence::Pageable);
        assert_eq!(residence(BASE + 8, 4), Residence::Device(0));
        assert_eq!(find(HOST_BASE), None);
    }
}
