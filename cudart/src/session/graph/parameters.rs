//! Nodes of any kind by one structure of parameters (`cudaGraphNodeParams`).

use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{
    ConditionalNodeParams, GraphNodeParams, HostNodeParams, KernelNodeParams, MEMCPY_NODE_PARAMETERS,
    MemAllocNodeParams, MemsetParams, node_type,
};
use crate::session::graph::node::Work;
use crate::session::graph::store::{self, with_node};
use crate::session::graph::{allocation_nodes, conditional, executable, kernel};
use crate::session::state::dependency::Dependency;
use balar_host::CudaError;
use bytemuck::Zeroable;

/// Values of `cudaGraphChildGraphNodeOwnership`, the second word of a child graph's parameters (CUDA 13).
mod ownership {
    pub const CLONE: u64 = 0;
    pub const MOVE: u64 = 1;
}

/// The work of a node with these parameters.
///
/// # Safety
///
/// If the node is a kernel, the parameters' pointers are as the kernel's parameters want them.
unsafe fn work_of(parameters: &GraphNodeParams) -> Result<Work, CudaError> {
    match parameters.kind {
        // SAFETY: the caller's promise.
        node_type::KERNEL => unsafe { kernel::work_of(parameters.value::<KernelNodeParams>()) },
        node_type::MEMCPY => Work::copy(&memcpy_parameters(parameters)),
        node_type::MEMSET => Work::of_memset(parameters.value::<MemsetParams>()),
        node_type::HOST => Work::host(*parameters.value::<HostNodeParams>()),
        node_type::GRAPH => Ok(Work::Graph(parameters.value[0])),
        node_type::EMPTY => Ok(Work::Empty),
        node_type::WAIT_EVENT => Work::event_wait(parameters.value[0]),
        node_type::EVENT_RECORD => Work::event_record(parameters.value[0]),
        node_type::MEM_FREE => Work::free(parameters.value[0]),
        node_type::SEMAPHORE_SIGNAL | node_type::SEMAPHORE_WAIT => Err(CudaError::NotSupported),
        _ => Err(CudaError::InvalidValue),
    }
}

fn memcpy_parameters(parameters: &GraphNodeParams) -> Memcpy3DParameters {
    let words = &bytemuck::bytes_of(&parameters.value)[8 * MEMCPY_NODE_PARAMETERS..];
    *bytemuck::from_bytes(&words[..size_of::<Memcpy3DParameters>()])
}

/// Adds a node. The address of memory that it allocates, or of the graphs that it has, is written into the parameters.
///
/// # Safety
///
/// If the node is a kernel, the parameters' pointers are as the kernel's parameters want them.
pub unsafe fn add(graph: u64, after: &[Dependency], parameters: &mut GraphNodeParams) -> Result<u64, CudaError> {
    match parameters.kind {
        node_type::MEM_ALLOC => allocation_nodes::add_node(graph, after, parameters.value_mut::<MemAllocNodeParams>()),
        node_type::CONDITIONAL => conditional::add_node(graph, after, parameters.value_mut::<ConditionalNodeParams>()),
        node_type::GRAPH => match parameters.value[1] & 0xffff_ffff {
            ownership::CLONE => store::add(graph, after, Work::Graph(parameters.value[0])),
            ownership::MOVE => store::add_moved(graph, after, parameters.value[0]),
            _ => Err(CudaError::InvalidValue),
        },
        // SAFETY: the caller's promise.
        _ => store::add(graph, after, unsafe { work_of(parameters)? }),
    }
}

/// Replaces the work of a node by work of the same kind.
///
/// # Safety
///
/// If the node is a kernel, the parameters' pointers are as the kernel's parameters want them.
pub unsafe fn set(node: u64, parameters: &GraphNodeParams) -> Result<(), CudaError> {
    // SAFETY: the caller's promise.
    match unsafe { work_of(parameters)? } {
        Work::Graph(_) | Work::Free(_) => Err(CudaError::InvalidValue),
        work @ Work::Kernel(_) => kernel::set(node, work),
        work => store::set(node, work),
    }
}

/// Replaces the work of a node of an executable graph by other work of the same kind.
///
/// # Safety
///
/// If the node is a kernel, the parameters' pointers are as the kernel's parameters want them.
pub unsafe fn set_in_executable(executable: u64, node: u64, parameters: &GraphNodeParams) -> Result<(), CudaError> {
    // SAFETY: the caller's promise.
    executable::set(executable, node, unsafe { work_of(parameters)? })
}

/// Whether adding a node writes into its parameters.
pub fn is_written(kind: u32) -> bool {
    matches!(kind, node_type::MEM_ALLOC | node_type::CONDITIONAL)
}

/// The parameters of a node.
pub fn get(node: u64) -> Result<GraphNodeParams, CudaError> {
    with_node(node, |node| parameters_of(&mut node.work))
}

fn parameters_of(work: &mut Work) -> Result<GraphNodeParams, CudaError> {
    let mut parameters = GraphNodeParams::zeroed();
    parameters.kind = work.kind();
    match work {
        Work::Kernel(kernel) => *parameters.value_mut() = kernel::parameters_of(kernel)?,
        Work::Copy(_) => {
            let copy = work.copy_parameters()?;
            let words = &mut bytemuck::bytes_of_mut(&mut parameters.value)[8 * MEMCPY_NODE_PARAMETERS..];
            words[..size_of::<Memcpy3DParameters>()].copy_from_slice(bytemuck::bytes_of(&copy));
        }
        Work::Memset(_) => *parameters.value_mut() = work.memset_parameters()?,
        Work::Host(host) => *parameters.value_mut() = *host,
        Work::Graph(handle) | Work::EventRecord(handle) | Work::EventWait(handle) | Work::Free(handle) => {
            parameters.value[0] = *handle;
        }
        Work::Conditional(node) => *parameters.value_mut() = conditional::parameters_of(node),
        Work::Empty => {}
        Work::Allocate(_) => *parameters.value_mut() = allocation_nodes::parameters_of(work)?,
    }
    Ok(parameters)
}
