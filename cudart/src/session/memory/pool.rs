//! Memory in the order of streams, and the pools that it comes from.

use crate::abi::arguments::{In, Out};
use crate::abi::pool::{ACCESS_READ_WRITE, MemAccessDesc, MemLocation, MemPoolProps, location_type, pool_attribute};
use crate::abi::stream::StreamHandle;
use crate::session::connection::{self, description};
use crate::session::graph::{Work, allocation, footprint};
use crate::session::order::{capture, stream};
use crate::session::state::handles::{Handles, Kind};
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaMemAllocationTypePinned`.
const PINNED: u32 = 1;
/// Pools take memory in pieces of this size.
const PIECE: u64 = 32 << 20;

/// A memory pool. The simulator allocates and frees at once: only a pool's numbers show the memory that it keeps.
#[derive(Clone, Debug)]
struct Pool {
    device: u32,
    is_default: bool,
    /// Most bytes, 0 for no limit.
    maximum: u64,
    /// `cudaMemPoolReuse...`: ints, by attribute.
    reuse: [i32; 3],
    release_threshold: u64,
    reserved: u64,
    reserved_high: u64,
    used: u64,
    used_high: u64,
    /// The rights of devices other than its own, by device.
    access: BTreeMap<i32, u32>,
}

static POOLS: Handles<Pool> = Handles::new(Kind::MemoryPool);
static STATE: Mutex<State> =
    Mutex::new(State { defaults: BTreeMap::new(), current: BTreeMap::new(), allocations: BTreeMap::new() });

struct State {
    /// The default pool of each device.
    defaults: BTreeMap<u32, u64>,
    /// The pool of each device that was set in place of the default one.
    current: BTreeMap<u32, u64>,
    /// The pool and the bytes of each allocation, by address.
    allocations: BTreeMap<u64, (u64, u64)>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn new(device: u32, is_default: bool, maximum: u64) -> Pool {
        Pool {
            device,
            is_default,
            maximum,
            reuse: [1; 3],
            release_threshold: 0,
            reserved: 0,
            reserved_high: 0,
            used: 0,
            used_high: 0,
            access: BTreeMap::new(),
        }
    }

    fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
        self.reserved = self.reserved.max(self.used.next_multiple_of(PIECE));
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    fn give_back(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        self.trim(self.release_threshold);
    }

    /// Keeps no more than is used, or `keep`.
    fn trim(&mut self, keep: u64) {
        let used = self.used.next_multiple_of(PIECE);
        self.reserved = self.reserved.min(used.max(keep / PIECE * PIECE));
    }
}

/// The pool that a device has from the start.
pub fn default_of(device: c_int) -> Result<u64, CudaError> {
    description::device_of(device)?;
    Ok(default_pool(device as u32))
}

/// The pool that a device takes memory from where no other is named.
pub fn current_of(device: c_int) -> Result<u64, CudaError> {
    description::device_of(device)?;
    Ok(current_pool(device as u32))
}

/// Makes a pool the one that its device takes memory from where no other is named.
pub fn set_current_of(device: c_int, pool: u64) -> Result<(), CudaError> {
    description::device_of(device)?;
    if with(pool, |pool| Ok(pool.device))? != device as u32 {
        return Err(CudaError::InvalidValue);
    }
    state().current.insert(device as u32, pool);
    Ok(())
}

/// As [`default_of`], for memory of a kind at a location.
pub fn default_at(location: MemLocation, kind: u32) -> Result<u64, CudaError> {
    let device = device_at(location)?;
    if kind == PINNED { Ok(default_pool(device)) } else { Err(CudaError::NotSupported) }
}

/// As [`current_of`], for memory of a kind at a location.
pub fn current_at(location: MemLocation, kind: u32) -> Result<u64, CudaError> {
    let device = device_at(location)?;
    if kind == PINNED { Ok(current_pool(device)) } else { Err(CudaError::NotSupported) }
}

/// As [`set_current_of`], for memory of a kind at a location.
pub fn set_current_at(location: MemLocation, kind: u32, pool: u64) -> Result<(), CudaError> {
    let device = device_at(location)?;
    if kind != PINNED || with(pool, |pool| Ok(pool.device))? != device {
        return Err(CudaError::InvalidValue);
    }
    state().current.insert(device, pool);
    Ok(())
}

fn default_pool(device: u32) -> u64 {
    *state().defaults.entry(device).or_insert_with(|| POOLS.insert(Pool::new(device, true, 0)))
}

/// The pool that `cudaMallocAsync` takes from.
fn current_pool(device: u32) -> u64 {
    let set = state().current.get(&device).copied();
    set.unwrap_or_else(|| default_pool(device))
}

/// Refuses a handle of no pool.
pub fn check(pool: u64) -> Result<(), CudaError> {
    with(pool, |_| Ok(()))
}

fn with<T>(pool: u64, use_it: impl FnOnce(&mut Pool) -> Result<T, CudaError>) -> Result<T, CudaError> {
    POOLS.with(pool, use_it).map_err(|_| CudaError::InvalidValue)?
}

/// Memory for the work of a stream from now on.
pub fn allocate(bytes: u64, pool: Option<u64>, stream: StreamHandle) -> Result<u64, CudaError> {
    let stream = stream::resolve(stream)?;
    let pool = pool.unwrap_or_else(|| current_pool(stream.device));
    let (device, maximum, used) = with(pool, |pool| Ok((pool.device, pool.maximum, pool.used)))?;
    if bytes == 0 {
        return Ok(0);
    }
    if maximum != 0 && used.saturating_add(bytes) > maximum {
        return Err(CudaError::MemoryAllocation);
    }
    let mut address = 0;
    let node = capture::take_work(&stream, || {
        let memory = allocation::Allocation::new(device, bytes)?;
        address = memory.address;
        Ok(Work::Allocate(memory))
    })?;
    if node.is_some() {
        return Ok(address);
    }
    let call = if device == stream.device {
        Call::MallocAsync { bytes, stream: stream.number }
    } else {
        // Another device's stream cannot order it: the memory is there at once.
        Call::Malloc { bytes }
    };
    let CallResult::Pointer(address) = connection::call_on(device, &call)? else { return Err(CudaError::Unknown) };
    with(pool, |pool| {
        pool.take(bytes);
        Ok(())
    })?;
    state().allocations.insert(address, (pool, bytes));
    Ok(address)
}

/// The end of memory, when a stream gets there.
pub fn free(address: u64, stream: StreamHandle) -> Result<(), CudaError> {
    let stream = stream::resolve(stream)?;
    if address == 0 {
        return Ok(());
    }
    if capture::take_work(&stream, || Work::free(address))?.is_some() {
        return Ok(());
    }
    if let Some(freed) = allocation::free(address) {
        return freed;
    }
    connection::call_on(stream.device, &Call::FreeAsync { pointer: address, stream: stream.number })?;
    forget(address);
    footprint::freed(address);
    Ok(())
}

/// Memory has been freed: its pool has it back.
pub fn forget(address: u64) {
    let known = state().allocations.remove(&address);
    if let Some((pool, bytes)) = known {
        // The pool may have ended before its memory.
        let _ = with(pool, |pool| {
            pool.give_back(bytes);
            Ok(())
        });
    }
}

/// Makes a pool.
pub fn create(properties: &MemPoolProps) -> Result<u64, CudaError> {
    let MemPoolProps { allocation_type, handle_types, location, maximum_bytes, .. } = *properties;
    if allocation_type != PINNED {
        return Err(CudaError::InvalidValue);
    }
    if handle_types != 0 || location.kind != location_type::DEVICE {
        // A simulated node has no other processes, and pools of host memory are not modelled.
        return Err(CudaError::NotSupported);
    }
    description::device_of(location.id)?;
    Ok(POOLS.insert(Pool::new(location.id as u32, false, maximum_bytes)))
}

/// Ends a pool that the program made.
pub fn destroy(pool: u64) -> Result<(), CudaError> {
    if with(pool, |pool| Ok(pool.is_default))? {
        return Err(CudaError::InvalidValue);
    }
    POOLS.remove(pool).map_err(|_| CudaError::InvalidValue)?;
    state().current.retain(|_, current| *current != pool);
    Ok(())
}

/// An attribute's value; an int is its lower half.
fn attribute(pool: &Pool, attribute: u32) -> Result<u64, CudaError> {
    Ok(match attribute {
        pool_attribute::REUSE_FOLLOW_EVENT_DEPENDENCIES..=pool_attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
            u64::from(pool.reuse[attribute as usize - 1] as u32)
        }
        pool_attribute::RELEASE_THRESHOLD => pool.release_threshold,
        pool_attribute::RESERVED_CURRENT => pool.reserved,
        pool_attribute::RESERVED_HIGH => pool.reserved_high,
        pool_attribute::USED_CURRENT => pool.used,
        pool_attribute::USED_HIGH => pool.used_high,
        pool_attribute::ALLOCATION_TYPE => u64::from(PINNED),
        pool_attribute::EXPORT_HANDLE_TYPES => 0,
        pool_attribute::LOCATION_ID => u64::from(pool.device),
        pool_attribute::LOCATION_TYPE => u64::from(location_type::DEVICE),
        pool_attribute::MAXIMUM_BYTES => pool.maximum,
        pool_attribute::HARDWARE_DECOMPRESSION => 0,
        _ => return Err(CudaError::InvalidValue),
    })
}

/// Attributes that are no 64-bit numbers.
fn is_int(attribute: u32) -> bool {
    let is_number = matches!(attribute, pool_attribute::RELEASE_THRESHOLD..=pool_attribute::USED_HIGH)
        || attribute == pool_attribute::MAXIMUM_BYTES;
    !is_number
}

fn set_attribute(pool: &mut Pool, attribute: u32, value: u64) -> Result<(), CudaError> {
    match attribute {
        pool_attribute::REUSE_FOLLOW_EVENT_DEPENDENCIES..=pool_attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
            pool.reuse[attribute as usize - 1] = value as i32;
        }
        pool_attribute::RELEASE_THRESHOLD => pool.release_threshold = value,
        pool_attribute::RESERVED_HIGH if value == 0 => pool.reserved_high = pool.reserved,
        pool_attribute::USED_HIGH if value == 0 => pool.used_high = pool.used,
        _ => return Err(CudaError::InvalidValue),
    }
    Ok(())
}

/// The device of a location that must be one.
fn device_at(location: MemLocation) -> Result<u32, CudaError> {
    if location.kind != location_type::DEVICE {
        return Err(CudaError::InvalidValue);
    }
    description::device_of(location.id)?;
    Ok(location.id as u32)
}

fn set_access(pool: &mut Pool, wanted: &[MemAccessDesc]) -> Result<(), CudaError> {
    for MemAccessDesc { location, flags } in wanted {
        let device = device_at(*location)?;
        let is_own = device == pool.device;
        if !matches!(*flags, 0 | 1 | ACCESS_READ_WRITE) || is_own && *flags != ACCESS_READ_WRITE {
            return Err(CudaError::InvalidValue);
        }
        if !is_own {
            pool.access.insert(location.id, *flags);
        }
    }
    Ok(())
}

/// Lets devices reach each other's memory as pools allow it: peer access is by device, not by pool.
fn open_peer_access(owner: u32, wanted: &[MemAccessDesc]) -> Result<(), CudaError> {
    for MemAccessDesc { location, flags } in wanted {
        if *flags != 0 && location.id as u32 != owner {
            match connection::call_on(location.id as u32, &Call::PeerAccess { peer: owner, enabled: true }) {
                Ok(_) | Err(CudaError::PeerAccessAlreadyEnabled) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Trims a pool to its used memory, or to `keep` bytes.
pub fn trim(pool: u64, keep: usize) -> Result<(), CudaError> {
    with(pool, |pool| {
        pool.trim(keep as u64);
        Ok(())
    })
}

/// Writes an attribute of a pool.
pub fn get_attribute(pool: u64, kind: u32, value: Out<u64>) -> Result<(), CudaError> {
    value.check()?;
    let number = with(pool, |pool| attribute(pool, kind))?;
    if is_int(kind) {
        // SAFETY: the caller gives a place for the attribute's type, which is an int.
        return unsafe { Out::new(value.pointer().cast::<i32>()) }.set(number as i32);
    }
    value.set(number)
}

/// Sets an attribute of a pool.
pub fn change_attribute(pool: u64, kind: u32, value: In<u64>) -> Result<(), CudaError> {
    if value.is_null() {
        return Err(CudaError::InvalidValue);
    }
    let number = if is_int(kind) {
        // SAFETY: the caller gives a value of the attribute's type, which is an int.
        u64::from(unsafe { value.pointer().cast::<u32>().read_unaligned() })
    } else {
        value.get()?
    };
    with(pool, |pool| set_attribute(pool, kind, number))
}

/// Sets the rights of devices to a pool's memory.
pub fn change_access(pool: u64, wanted: &[MemAccessDesc]) -> Result<(), CudaError> {
    let owner = with(pool, |pool| {
        set_access(pool, wanted)?;
        Ok(pool.device)
    })?;
    open_peer_access(owner, wanted)
}

/// The rights of the device at a location to a pool's memory.
pub fn access(pool: u64, location: MemLocation) -> Result<u32, CudaError> {
    let device = device_at(location)?;
    with(pool, |pool| {
        let own = if device == pool.device { ACCESS_READ_WRITE } else { 0 };
        Ok(pool.access.get(&location.id).copied().unwrap_or(own))
    })
}

/// A device has been reset: its pools are as they were at the start.
pub fn forget_device(device: u32) {
    let ended: Vec<Pool> = POOLS.retain(|_, pool| pool.device != device);
    drop(ended);
    let mut state = state();
    state.defaults.remove(&device);
    state.current.remove(&device);
    state.allocations.retain(|_, (pool, _)| POOLS.with(*pool, |_| ()).is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_what_it_may() {
        let mut pool = Pool::new(0, false, 0);
        pool.take(PIECE + 1);
        assert_eq!((pool.used, pool.reserved), (PIECE + 1, 2 * PIECE));
        pool.release_threshold = PIECE;
        pool.give_back(PIECE + 1);
        assert_eq!((pool.used, pool.reserved), (0, PIECE));
        assert_eq!(attribute(&pool, pool_attribute::RESERVED_HIGH), Ok(2 * PIECE));
        assert_eq!(set_attribute(&mut pool, pool_attribute::RESERVED_HIGH, 7), Err(CudaError::InvalidValue));
        assert_eq!(set_attribute(&mut pool, pool_attribute::RESERVED_HIGH, 0), Ok(()));
        assert_eq!(attribute(&pool, pool_attribute::RESERVED_HIGH), Ok(PIECE));
        pool.trim(0);
        assert_eq!(pool.reserved, 0);
    }
}
