//! References that graphs hold to objects of the program.

use crate::session::graph::store;
use crate::session::graph::user_object::{release, retain};
use balar_host::CudaError;

/// `cudaGraphUserObjectMove`.
const MOVE: u32 = 1;

/// Adds references to the references of a graph, or moves them to it from the caller.
pub fn retain_for_graph(graph: u64, object: u64, count: u32, flags: u32) -> Result<(), CudaError> {
    if flags & !MOVE != 0 || count == 0 {
        return Err(CudaError::InvalidValue);
    }
    store::with(graph, |_| Ok(()))?;
    // References that are moved are the caller's no longer: none is added.
    if flags & MOVE == 0 {
        retain(object, count)?;
    }
    store::with(graph, |graph| {
        *graph.user_objects.entry(object).or_default() += count;
        Ok(())
    })
}

/// Removes references from the references of a graph.
pub fn release_from_graph(graph: u64, object: u64, count: u32) -> Result<(), CudaError> {
    store::with(graph, |graph| {
        let held = graph.user_objects.get_mut(&object).ok_or(CudaError::InvalidValue)?;
        *held = held.checked_sub(count).ok_or(CudaError::InvalidValue)?;
        if *held == 0 {
            graph.user_objects.remove(&object);
        }
        Ok(())
    })?;
    release(object, count)
}
