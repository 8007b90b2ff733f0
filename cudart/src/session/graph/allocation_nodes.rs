//! Nodes that allocate: whose memory they have, and their parameters.

use crate::abi::graph::MemAllocNodeParams;
use crate::abi::pool::{MemPoolProps, location_type};
use crate::session::connection::description;
use crate::session::graph::allocation::Allocation;
use crate::session::graph::node::Work;
use crate::session::graph::store;
use crate::session::state::dependency::Dependency;
use balar_host::CudaError;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `cudaMemAllocationTypePinned`.
const PINNED: u32 = 1;

/// The memory of an allocation that is over where a new one would be made, after these nodes of a graph: the two can have one address.
pub fn reusable(graph: u64, after: &[Dependency], device: u32, bytes: u64) -> Option<Arc<Allocation>> {
    store::with(graph, |graph| {
        let mut before: BTreeSet<u64> = BTreeSet::new();
        let mut open: Vec<u64> = after.iter().map(|dependency| dependency.node).collect();
        while let Some(node) = open.pop() {
            if before.insert(node) {
                let dependencies = graph.nodes.get(&node).into_iter().flat_map(|node| &node.dependencies);
                open.extend(dependencies.map(|dependency| dependency.node));
            }
        }
        let address_of = |work: &Work| match work {
            Work::Allocate(memory) => Some((memory.address, true)),
            Work::Free(address) => Some((*address, false)),
            _ => None,
        };
        let fits = |node: &u64| match &graph.nodes.get(node)?.work {
            Work::Allocate(memory) if memory.device == device && memory.bytes == bytes => Some(memory.clone()),
            _ => None,
        };
        let is_over = |memory: &Allocation| {
            let mut balance = 0_i64;
            for (handle, node) in &graph.nodes {
                match address_of(&node.work) {
                    Some((address, allocates)) if address == memory.address => {
                        if !before.contains(handle) {
                            return false;
                        }
                        balance += if allocates { 1 } else { -1 };
                    }
                    _ => {}
                }
            }
            balance == 0
        };
        Ok(before.iter().filter_map(fits).find(|memory| is_over(memory)))
    })
    .ok()
    .flatten()
}

/// Memory as the parameters of a node ask for it that comes after these.
fn allocate_work(graph: u64, after: &[Dependency], parameters: &MemAllocNodeParams) -> Result<(Work, u64), CudaError> {
    let MemAllocNodeParams { pool: MemPoolProps { allocation_type, handle_types, location, .. }, bytes, .. } =
        *parameters;
    if allocation_type != PINNED || handle_types != 0 || location.kind != location_type::DEVICE {
        return Err(CudaError::InvalidValue);
    }
    description::device_of(location.id)?;
    let device = location.id as u32;
    let memory = match reusable(graph, after, device, bytes) {
        Some(memory) => memory,
        None => Allocation::new(device, bytes)?,
    };
    let address = memory.address;
    Ok((Work::Allocate(memory), address))
}

/// Adds a node that allocates, and writes the address into the parameters.
pub fn add_node(graph: u64, after: &[Dependency], parameters: &mut MemAllocNodeParams) -> Result<u64, CudaError> {
    let (work, address) = allocate_work(graph, after, parameters)?;
    let node = store::add(graph, after, work)?;
    parameters.pointer = address;
    Ok(node)
}

/// Memory of a node as programs ask for it.
pub fn parameters_of(work: &Work) -> Result<MemAllocNodeParams, CudaError> {
    let Work::Allocate(memory) = work else { return Err(CudaError::InvalidValue) };
    let mut parameters = MemAllocNodeParams { bytes: memory.bytes, pointer: memory.address, ..Default::default() };
    parameters.pool.allocation_type = PINNED;
    parameters.pool.location.kind = location_type::DEVICE;
    parameters.pool.location.id = memory.device as i32;
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::graph::store::{add, create};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn an_address_is_used_again_after_its_end_alone() {
        let memory = Arc::new(Allocation { address: 4096, bytes: 64, device: 0, is_live: AtomicBool::new(false) });
        let graph = create();
        let first = add(graph, &[], Work::Allocate(Arc::clone(&memory))).expect("a new node");
        let empty = add(graph, &[Dependency::on(first)], Work::Empty).expect("a new node");
        let found = |after: u64, device, bytes| {
            reusable(graph, &[Dependency::on(after)], device, bytes).map(|memory| memory.address)
        };
        assert_eq!(found(empty, 0, 64), None, "it is not freed");
        let freed = add(graph, &[Dependency::on(empty)], Work::Free(4096)).expect("a new node");
        let last = add(graph, &[Dependency::on(freed)], Work::Empty).expect("a new node");
        assert_eq!(found(last, 0, 64), Some(4096));
        assert_eq!([found(empty, 0, 64), found(last, 1, 64), found(last, 0, 32)], [None; 3]);
        add(graph, &[Dependency::on(freed)], Work::Allocate(Arc::clone(&memory))).expect("a new node");
        assert_eq!(found(last, 0, 64), None, "another node has it at the same time");
    }
}
