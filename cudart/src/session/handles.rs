//! Handles that programs hold: numbers that say what they are of, never addresses of anything. A handle that is wrong, or whose object
//! is no longer there, is found.

use balar_host::{CudaError, memory};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a handle is of. The values are part of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "named as CUDA names them")]
pub enum Kind {
    FatBinary = 1,
    Kernel,
    Stream,
    Event,
    Array,
    MipmappedArray,
    Graph,
    GraphNode,
    GraphExec,
    MemoryPool,
    Module,
    Library,
    Context,
    Linker,
    UserObject,
    Function,
    TextureReference,
    SurfaceReference,
    GreenContext,
    Other,
}

/// Handles look like addresses of a program, as CUDA's are: some programs and languages take them for positive numbers of 47 bits,
/// or for aligned. They lie where nothing is mapped: Linux places nothing of a program there, and the node's memory begins where
/// they end.
const FIRST: u64 = memory::BASE - (32 << KIND_SHIFT);
/// Addresses of a kind.
const KIND_SHIFT: u32 = 38;
/// From one handle to the next.
const ALIGNMENT: u64 = 16;

/// The things of one kind that programs have handles of.
pub struct Handles<T> {
    kind: Kind,
    table: Mutex<Table<T>>,
}

struct Table<T> {
    last: u64,
    entries: BTreeMap<u64, T>,
}

impl<T> Handles<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Handles<T> {
        Handles { kind, table: Mutex::new(Table { last: 0, entries: BTreeMap::new() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a handle that has never been used before.
    pub fn insert(&self, value: T) -> u64 {
        let mut table = self.lock();
        table.last += 1;
        let handle = FIRST + ((self.kind as u64) << KIND_SHIFT) + table.last * ALIGNMENT;
        table.entries.insert(handle, value);
        handle
    }

    /// As [`Handles::insert`]: the handle as C has it.
    pub fn insert_pointer(&self, value: T) -> *mut c_void {
        self.insert(value) as *mut c_void
    }

    /// Ends a handle.
    pub fn remove(&self, handle: u64) -> Result<T, CudaError> {
        self.lock().entries.remove(&handle).ok_or(CudaError::InvalidResourceHandle)
    }

    /// What the handle is of.
    pub fn get(&self, handle: u64) -> Result<T, CudaError>
    where
        T: Clone,
    {
        self.with(handle, |value| value.clone())
    }

    /// Calls `use_it` with the entry of a handle while the table is locked: it must not call the simulator.
    pub fn with<U>(&self, handle: u64, use_it: impl FnOnce(&mut T) -> U) -> Result<U, CudaError> {
        self.lock().entries.get_mut(&handle).map(use_it).ok_or(CudaError::InvalidResourceHandle)
    }

    /// Removes the entries that `keep` rejects, and returns them.
    pub fn retain(&self, mut keep: impl FnMut(u64, &T) -> bool) -> Vec<T> {
        let mut table = self.lock();
        let ended: Vec<u64> =
            table.entries.iter().filter(|(handle, value)| !keep(**handle, value)).map(|(handle, _)| *handle).collect();
        ended.into_iter().filter_map(|handle| table.entries.remove(&handle)).collect()
    }

    /// The first handle whose entry satisfies `is_it`.
    pub fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<u64> {
        self.lock().entries.iter().find(|(_, value)| is_it(value)).map(|(handle, _)| *handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_ends_for_good() {
        let handles: Handles<&str> = Handles::new(Kind::Event);
        let first = handles.insert("first");
        assert_eq!(handles.get(first), Ok("first"));
        assert_eq!(handles.remove(first), Ok("first"));
        assert_eq!(handles.remove(first), Err(CudaError::InvalidResourceHandle));
        assert_ne!(handles.insert("second"), first);
        assert_eq!(handles.get(0), Err(CudaError::InvalidResourceHandle));
    }

    #[test]
    fn handles_of_different_kinds_differ() {
        assert_ne!(Handles::new(Kind::Stream).insert(()), Handles::new(Kind::Event).insert(()));
    }

    #[test]
    fn handles_look_like_addresses_of_a_program() {
        for kind in [Kind::FatBinary, Kind::Stream, Kind::Function, Kind::Other] {
            let handles = Handles::new(kind);
            for handle in [handles.insert(()), handles.insert(())] {
                // Below the half of the address space that is the program's, and aligned as what `malloc` gives.
                assert!(handle < 1 << 47 && handle % 16 == 0, "{kind:?}: {handle:#x}");
                assert_eq!(memory::place_of(handle), memory::Place::Elsewhere, "{kind:?}: {handle:#x}");
            }
        }
    }
}
