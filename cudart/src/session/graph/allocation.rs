//! Memory that nodes of graphs allocate. Its address is known, and its place taken, from the node's creation on; a launch makes it
//! the program's.

use crate::session::connection;
use crate::session::graph::footprint;
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All of it, by address.
static ALL: Mutex<BTreeMap<u64, Weak<Allocation>>> = Mutex::new(BTreeMap::new());

/// Memory of a node. It ends with the graphs and executable graphs that have the node. Memory that is allocated then belongs to the
/// program, which frees it as any other memory.
#[derive(Debug)]
pub struct Allocation {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// The device that has it.
    pub device: u32,
    /// A launch has allocated it, and nothing has freed it.
    pub(in crate::session) is_live: AtomicBool,
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
        Ok(allocation)
    }

    /// A launch allocates it. Refused where it is allocated, unless the launch frees it before.
    pub fn allocate(&self, frees_first: bool) -> Result<(), CudaError> {
        if self.is_live.swap(true, Ordering::Relaxed) && !frees_first {
            return Err(CudaError::InvalidValue);
        }
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
        if self.is_live() {
            return;
        }
        // An error is not reported: the device has failed, and all its memory with it.
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
    footprint::freed(address);
    Some(if allocation.is_live.swap(false, Ordering::Relaxed) { Ok(()) } else { Err(CudaError::InvalidValue) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_outlives_its_graph() {
        let memory = Arc::new(Allocation { address: 8192, bytes: 64, device: 0, is_live: AtomicBool::new(false) });
        all().insert(8192, Arc::downgrade(&memory));
        assert_eq!((memory.allocate(false), memory.allocate(false)), (Ok(()), Err(CudaError::InvalidValue)));
        assert_eq!((free(8192), free(8192)), (Some(Ok(())), Some(Err(CudaError::InvalidValue))));
        assert_eq!(memory.allocate(false), Ok(()));
        drop(memory);
        assert_eq!(free(8192), None, "it is freed as other memory is");
    }
}
