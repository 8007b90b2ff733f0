//! Conditions: words in device memory that conditional nodes go by, and that kernels write by their handles (`cudaGraphSetConditional`).
//!
//! A handle is the address of the word.

use crate::session::graph::allocation::Allocation;
use balar_host::CudaError;
use balar_host::call::ConditionalKind;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All conditions, by handle.
static ALL: Mutex<BTreeMap<u64, Weak<Condition>>> = Mutex::new(BTreeMap::new());

/// The word that a node goes by. It ends with the graph that it was made for and the executable graphs that have the node.
#[derive(Debug)]
pub struct Condition {
    memory: Arc<Allocation>,
    /// The value that launches of the graph set, where they set one.
    pub first_value: Option<u32>,
    /// It has a node.
    is_used: AtomicBool,
}

/// A conditional node.
#[derive(Clone, Debug)]
pub struct ConditionalWork {
    /// Its condition.
    pub condition: Arc<Condition>,
    /// How.
    pub kind: ConditionalKind,
    /// Its graphs, which belong to it. Programs have the address of the list.
    pub graphs: Arc<[u64]>,
}

fn all() -> MutexGuard<'static, BTreeMap<u64, Weak<Condition>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Condition {
    /// A condition at a word of its own, which launches of the graph set to a value where one is given.
    pub fn new(memory: Arc<Allocation>, first_value: Option<u32>) -> Arc<Condition> {
        let condition = Arc::new(Condition { memory, first_value, is_used: AtomicBool::new(false) });
        all().insert(condition.handle(), Arc::downgrade(&condition));
        condition
    }

    /// A node goes by it. False where one does already.
    pub fn take(&self) -> bool {
        !self.is_used.swap(true, Ordering::Relaxed)
    }

    /// The handle that programs know it by: the address of the word.
    pub fn handle(&self) -> u64 {
        self.memory.address
    }

    /// Whether a node goes by it.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        all().remove(&self.handle());
    }
}

/// The condition of a handle.
pub fn find(handle: u64) -> Result<Arc<Condition>, CudaError> {
    all().get(&handle).and_then(Weak::upgrade).ok_or(CudaError::InvalidValue)
}
