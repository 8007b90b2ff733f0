//! Handles that programs hold: numbers that tell the kind of their object, never addresses of anything. A wrong handle, or one whose object
//! is no longer there, is found.

use balar_host::{CudaError, memory};
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kind of a handle's object. The values are part of the handle.
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
    table: Mutex<Table>,
    entries: PhantomData<T>,
}

/// The entries of any kind, so that the tree is compiled once: all of a table are of the type of its [`Handles`].
struct Table {
    last: u64,
    entries: BTreeMap<u64, Box<dyn Any + Send>>,
}

impl Table {
    fn insert(&mut self, kind: Kind, entry: Box<dyn Any + Send>) -> u64 {
        self.last += 1;
        let handle = FIRST + ((kind as u64) << KIND_SHIFT) + self.last * ALIGNMENT;
        self.entries.insert(handle, entry);
        handle
    }

    fn remove(&mut self, handle: u64) -> Option<Box<dyn Any + Send>> {
        self.entries.remove(&handle)
    }

    fn get_mut(&mut self, handle: u64) -> Option<&mut (dyn Any + Send)> {
        self.entries.get_mut(&handle).map(Box::as_mut)
    }

    /// The handles whose entries satisfy `is_it`.
    fn which(&self, is_it: &mut dyn FnMut(u64, &(dyn Any + Send)) -> bool) -> Vec<u64> {
        self.entries
            .iter()
            .filter(|(handle, entry)| is_it(**handle, entry.as_ref()))
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// The first handle whose entry satisfies `is_it`.
    fn find(&self, is_it: &dyn Fn(&(dyn Any + Send)) -> bool) -> Option<u64> {
        self.entries.iter().find(|(_, entry)| is_it(entry.as_ref())).map(|(handle, _)| *handle)
    }
}

impl<T: Send + 'static> Handles<T> {
    /// An empty table.
    pub const fn new(kind: Kind) -> Handles<T> {
        Handles { kind, table: Mutex::new(Table { last: 0, entries: BTreeMap::new() }), entries: PhantomData }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a handle that has never been used before.
    pub fn insert(&self, value: T) -> u64 {
        self.lock().insert(self.kind, Box::new(value))
    }

    /// As [`Handles::insert`], with the handle in C's form.
    pub fn insert_pointer(&self, value: T) -> *mut c_void {
        self.insert(value) as *mut c_void
    }

    /// Ends a handle.
    pub fn remove(&self, handle: u64) -> Result<T, CudaError> {
        let removed = self.lock().remove(handle).and_then(|entry| entry.downcast().ok());
        removed.map(|entry| *entry).ok_or(CudaError::InvalidResourceHandle)
    }

    /// The object of the handle.
    pub fn get(&self, handle: u64) -> Result<T, CudaError>
    where
        T: Clone,
    {
        self.with(handle, |value| value.clone())
    }

    /// Calls `use_it` with the entry of a handle while the table is locked: it must not call the simulator.
    pub fn with<U>(&self, handle: u64, use_it: impl FnOnce(&mut T) -> U) -> Result<U, CudaError> {
        let mut table = self.lock();
        let entry = table.get_mut(handle).and_then(|entry| entry.downcast_mut());
        entry.map(use_it).ok_or(CudaError::InvalidResourceHandle)
    }

    /// Removes the entries that `keep` rejects, and returns them.
    pub fn retain(&self, mut keep: impl FnMut(u64, &T) -> bool) -> Vec<T> {
        let mut table = self.lock();
        let ended = table.which(&mut |handle, entry| entry.downcast_ref().is_some_and(|value| !keep(handle, value)));
        let ended = ended.into_iter().filter_map(|handle| table.remove(handle)?.downcast().ok());
        ended.map(|entry| *entry).collect()
    }

    /// The first handle whose entry satisfies `is_it`.
    pub fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<u64> {
        self.lock().find(&|entry| entry.downcast_ref().is_some_and(&is_it))
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
