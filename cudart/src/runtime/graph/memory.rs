//! Nodes that allocate and free memory.

use crate::abi::arguments::{In, Out};
use crate::abi::graph::MemAllocNodeParams;
use crate::abi::pool::{MemPoolProps, graph_memory_attribute, location_type};
use crate::cuda_api;
use crate::session::graph::allocation::{self, Allocation};
use crate::session::graph::{self, Dependency, Work, footprint};
use crate::session::process;
use balar_host::CudaError;
use std::ffi::c_int;

/// `cudaMemAllocationTypePinned`.
const PINNED: u32 = 1;

/// Memory as the parameters of a node ask for it that comes after these.
fn allocate_work(graph: u64, after: &[Dependency], parameters: &MemAllocNodeParams) -> Result<(Work, u64), CudaError> {
    let MemAllocNodeParams { pool: MemPoolProps { allocation_type, handle_types, location, .. }, bytes, .. } =
        *parameters;
    if allocation_type != PINNED || handle_types != 0 || location.kind != location_type::DEVICE {
        return Err(CudaError::InvalidValue);
    }
    process::device_of(location.id)?;
    let device = location.id as u32;
    let memory = match allocation::reusable(graph, after, device, bytes) {
        Some(memory) => memory,
        None => Allocation::new(device, bytes)?,
    };
    let address = memory.address;
    Ok((Work::Allocate(memory), address))
}

/// Adds a node that allocates; writes the address into the parameters.
pub fn add_allocation(
    node: Out<u64>,
    graph: u64,
    after: &[Dependency],
    parameters: &mut MemAllocNodeParams,
) -> Result<(), CudaError> {
    node.check()?;
    let (work, address) = allocate_work(graph, after, parameters)?;
    node.set(graph::add(graph, after, work)?)?;
    parameters.pointer = address;
    Ok(())
}

/// Memory of a node as programs ask for it.
pub fn allocation_parameters(work: &Work) -> Result<MemAllocNodeParams, CudaError> {
    let Work::Allocate(memory) = work else { return Err(CudaError::InvalidValue) };
    let mut parameters = MemAllocNodeParams { bytes: memory.bytes, pointer: memory.address, ..Default::default() };
    parameters.pool.allocation_type = PINNED;
    parameters.pool.location.kind = location_type::DEVICE;
    parameters.pool.location.id = memory.device as i32;
    Ok(parameters)
}

cuda_api! {
    fn cudaGraphAddMemAllocNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        parameters: Out<MemAllocNodeParams>,
    ) {
        parameters.check()?;
        // SAFETY: a place that is not null holds the parameters.
        let mut filled = unsafe { parameters.pointer().read_unaligned() };
        add_allocation(node, graph, &Dependency::list(after, In::absent(), count)?, &mut filled)?;
        parameters.set(filled)
    }

    fn cudaGraphMemAllocNodeGetParams(node: u64, parameters: Out<MemAllocNodeParams>) {
        parameters.set(graph::with_node(node, |node| allocation_parameters(&node.work))?)
    }

    fn cudaGraphAddMemFreeNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, address: u64) {
        super::nodes::add(node, graph, &Dependency::list(after, In::absent(), count)?, Work::free(address)?)
    }

    fn cudaGraphMemFreeNodeGetParams(node: u64, address: Out<u64>) {
        address.set(graph::with_node(node, |node| match node.work {
            Work::Free(address) => Ok(address),
            _ => Err(CudaError::InvalidValue),
        })?)
    }

    fn cudaDeviceGraphMemTrim(device: c_int) {
        process::device_of(device)?;
        footprint::trim(device as u32)
    }

    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: u32, value: Out<u64>) {
        process::device_of(device)?;
        let device = device as u32;
        value.set(match attribute {
            graph_memory_attribute::USED_CURRENT => footprint::usage(device).used,
            graph_memory_attribute::USED_HIGH => footprint::highest(device).used,
            graph_memory_attribute::RESERVED_CURRENT => footprint::usage(device).reserved,
            graph_memory_attribute::RESERVED_HIGH => footprint::highest(device).reserved,
            _ => return Err(CudaError::InvalidValue),
        })
    }

    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: u32, value: In<u64>) {
        process::device_of(device)?;
        // The highest values can be set back, to zero alone.
        let of_used = match attribute {
            graph_memory_attribute::USED_HIGH => true,
            graph_memory_attribute::RESERVED_HIGH => false,
            _ => return Err(CudaError::InvalidValue),
        };
        if value.get()? != 0 {
            return Err(CudaError::InvalidValue);
        }
        footprint::reset_highest(device as u32, of_used);
        Ok(())
    }
}
