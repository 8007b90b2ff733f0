//! Conditional nodes: graphs that run as a word in device memory says, which kernels write by its handle (`cudaGraphSetConditional`).
//!
//! A handle is the address of the word.

use super::allocation::Allocation;
use super::{Dependency, Work};
use crate::abi::arguments::Out;
use crate::abi::graph::{ConditionalNodeParams, conditional_type};
use crate::session::thread;
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
    /// What launches of the graph set it to, where they do.
    pub first_value: Option<u32>,
    /// It has a node.
    is_used: AtomicBool,
}

/// A conditional node.
#[derive(Clone, Debug)]
pub struct ConditionalWork {
    /// What it goes by.
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

/// Makes a condition for a graph, on the current device: gives its handle.
pub fn create(graph: u64, first_value: u32, flags: u32) -> Result<u64, CudaError> {
    /// `cudaGraphCondAssignDefault`.
    const ASSIGN_DEFAULT: u32 = 1;
    /// Bytes of the word.
    const BYTES: u64 = 4;
    if flags & !ASSIGN_DEFAULT != 0 {
        return Err(CudaError::InvalidValue);
    }
    super::with(graph, |_| Ok(()))?;
    let memory = Allocation::new(thread::device(), BYTES)?;
    let first_value = (flags == ASSIGN_DEFAULT).then_some(first_value);
    let condition = Arc::new(Condition { memory, first_value, is_used: AtomicBool::new(false) });
    let handle = condition.handle();
    all().insert(handle, Arc::downgrade(&condition));
    super::with(graph, |graph| {
        graph.conditions.push(condition);
        Ok(handle)
    })
}

/// The condition of a handle.
fn find(handle: u64) -> Result<Arc<Condition>, CudaError> {
    all().get(&handle).and_then(Weak::upgrade).ok_or(CudaError::InvalidValue)
}

/// Adds a node to a graph; the address of its graphs, which are empty, is written into the parameters.
pub fn add_node(graph: u64, after: &[Dependency], parameters: &mut ConditionalNodeParams) -> Result<u64, CudaError> {
    let (kind, most) = match parameters.kind {
        conditional_type::IF => (ConditionalKind::If, 2),
        conditional_type::WHILE => (ConditionalKind::While, 1),
        conditional_type::SWITCH => (ConditionalKind::Switch, u32::MAX),
        _ => return Err(CudaError::InvalidValue),
    };
    if parameters.size == 0 || parameters.size > most {
        return Err(CudaError::InvalidValue);
    }
    let condition = find(parameters.handle)?;
    super::with(graph, |graph| graph.check_dependencies(None, after))?;
    if condition.is_used.swap(true, Ordering::Relaxed) {
        return Err(CudaError::InvalidValue);
    }
    let graphs: Arc<[u64]> = (0..parameters.size).map(|_| super::create()).collect();
    parameters.graphs = graphs.as_ptr() as u64;
    super::add_as_it_is(graph, after, Work::Conditional(ConditionalWork { condition, kind, graphs }))
}

/// What is created by `create` goes to its place.
pub fn create_into(place: Out<u64>, graph: u64, first_value: u32, flags: u32) -> Result<(), CudaError> {
    place.check()?;
    place.set(create(graph, first_value, flags)?)
}

/// A conditional node as programs ask for it.
pub fn parameters_of(work: &ConditionalWork) -> ConditionalNodeParams {
    let kind = match work.kind {
        ConditionalKind::If => conditional_type::IF,
        ConditionalKind::While => conditional_type::WHILE,
        ConditionalKind::Switch => conditional_type::SWITCH,
    };
    let size = u32::try_from(work.graphs.len()).unwrap_or(u32::MAX);
    ConditionalNodeParams {
        handle: work.condition.handle(),
        kind,
        size,
        graphs: work.graphs.as_ptr() as u64,
        context: 0,
    }
}
