//! Memory that nodes of graphs allocate. Its address is known, and its place taken, from the node's creation on; a launch makes it
//! the program's.

use crate::core::connection;
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All of it, by address.
static ALL: Mutex<BTreeMap<u64, Weak<Allocation>>> = Mutex::new(BTreeMap::new());
static HIGHEST: Mutex<BTreeMap<u32, Usage>> = Mutex::new(BTreeMap::new());

/// Memory of a node. It ends with the graphs and executable graphs that have the node.
#[derive(Debug)]
pub struct Allocation {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// The device that has it.
    pub device: u32,
    /// A launch has allocated it, and nothing has freed it.
    is_live: AtomicBool,
}

/// Bytes in graphs' memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Allocated by launches.
    pub used: u64,
    /// Set aside.
    pub reserved: u64,
}

fn all() -> MutexGuard<'static, BTreeMap<u64, Weak<Allocation>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Allocation {
    /// Sets memory aside.
    pub fn new(device: u32, bytes: u64) -> Result<Arc<Allocation>, CudaError> {
        if bytes == 0 {
            return Err(CudaError::InvalidValue);
        }
        let CallResult::Pointer(address) = connection::call_on(device, &Call::Malloc { bytes })? else {
            return Err(CudaError::Unknown);
        };
        let allocation = Arc::new(Allocation { address, bytes, device, is_live: AtomicBool::new(false) });
        all().insert(address, Arc::downgrade(&allocation));
        note_highest(device);
        Ok(allocation)
    }

    /// A launch allocates it. Refused where it is allocated, unless the launch frees it before.
    pub fn allocate(&self, frees_first: bool) -> Result<(), CudaError> {
        if self.is_live.swap(true, Ordering::Relaxed) && !frees_first {
            return Err(CudaError::InvalidValue);
        }
        note_highest(self.device);
        Ok(())
    }

    /// Whether it is allocated.
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        all().remove(&self.address);
        // Nobody is told of an error: the device has failed, and all its memory with it.
        let _ = connection::call_on(self.device, &Call::FreeAsync { pointer: self.address, stream: 0 });
    }
}

/// The memory at this address, if a node allocates it.
pub fn find(address: u64) -> Option<Arc<Allocation>> {
    all().get(&address)?.upgrade()
}

/// Frees memory that a node allocates. `None` where the address is not of such memory.
pub fn free(address: u64) -> Option<Result<(), CudaError>> {
    let allocation = find(address)?;
    Some(if allocation.is_live.swap(false, Ordering::Relaxed) { Ok(()) } else { Err(CudaError::InvalidValue) })
}

/// What graphs have of a device's memory now.
pub fn usage(device: u32) -> Usage {
    let live: Vec<Arc<Allocation>> = all().values().filter_map(Weak::upgrade).collect();
    let of_device = live.iter().filter(|allocation| allocation.device == device);
    of_device.fold(Usage::default(), |usage, allocation| Usage {
        used: usage.used + if allocation.is_live() { allocation.bytes } else { 0 },
        reserved: usage.reserved + allocation.bytes,
    })
}

fn note_highest(device: u32) {
    let now = usage(device);
    let mut all = HIGHEST.lock().unwrap_or_else(PoisonError::into_inner);
    let highest = all.entry(device).or_default();
    highest.used = highest.used.max(now.used);
    highest.reserved = highest.reserved.max(now.reserved);
}

/// The most that graphs have had of a device's memory.
pub fn highest(device: u32) -> Usage {
    HIGHEST.lock().unwrap_or_else(PoisonError::into_inner).get(&device).copied().unwrap_or_default()
}

/// Forgets the most that graphs have had: of what was used, or of what was set aside.
pub fn reset_highest(device: u32, of_used: bool) {
    let now = usage(device);
    let mut all = HIGHEST.lock().unwrap_or_else(PoisonError::into_inner);
    let highest = all.entry(device).or_default();
    if of_used {
        highest.used = now.used;
    } else {
        highest.reserved = now.reserved;
    }
}
