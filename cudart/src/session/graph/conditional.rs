//! Conditional nodes: graphs that run as a word in device memory says.

use crate::abi::arguments::Out;
use crate::abi::graph::{ConditionalNodeParams, conditional_type};
use crate::session::graph::allocation::Allocation;
use crate::session::graph::condition::{Condition, ConditionalWork, find};
use crate::session::graph::node::Work;
use crate::session::graph::store;
use crate::session::state::dependency::Dependency;
use crate::session::state::thread;
use balar_host::CudaError;
use balar_host::call::ConditionalKind;
use std::sync::Arc;

/// Makes a condition for a graph, on the current device: gives its handle.
pub fn create(graph: u64, first_value: u32, flags: u32) -> Result<u64, CudaError> {
    /// `cudaGraphCondAssignDefault`.
    const ASSIGN_DEFAULT: u32 = 1;
    /// Bytes of the word.
    const BYTES: u64 = 4;
    if flags & !ASSIGN_DEFAULT != 0 {
        return Err(CudaError::InvalidValue);
    }
    store::with(graph, |_| Ok(()))?;
    let memory = Allocation::new(thread::device(), BYTES)?;
    let first_value = (flags == ASSIGN_DEFAULT).then_some(first_value);
    let condition = Condition::new(memory, first_value);
    let handle = condition.handle();
    store::with(graph, |graph| {
        graph.conditions.push(condition);
        Ok(handle)
    })
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
    store::with(graph, |graph| graph.check_dependencies(None, after))?;
    if !condition.take() {
        return Err(CudaError::InvalidValue);
    }
    let graphs: Arc<[u64]> = (0..parameters.size).map(|_| store::create()).collect();
    parameters.graphs = graphs.as_ptr() as u64;
    store::add_as_it_is(graph, after, Work::Conditional(ConditionalWork { condition, kind, graphs }))
}

/// The result of `create` goes to its place.
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
