//! Nodes of any kind by one structure of parameters (`cudaGraphNodeParams`).

use super::{memory, nodes};
use crate::abi::arguments::{In, Out};
use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{
    EdgeData, GraphNodeParams, HostNodeParams, KernelNodeParams, MEMCPY_NODE_PARAMETERS, MemAllocNodeParams,
    MemsetParams, node_type,
};
use crate::cuda_api;
use crate::session::graph::{self, Dependency, Work, executable};
use balar_host::CudaError;
use bytemuck::Zeroable;

/// Values of `cudaGraphChildGraphNodeOwnership`, the second word of a child graph's parameters (CUDA 13).
mod ownership {
    pub const CLONE: u64 = 0;
    pub const MOVE: u64 = 1;
}

/// What a node with these parameters does.
///
/// # Safety
///
/// Of a kernel, the parameters' pointers are what the kernel's parameters want.
unsafe fn work_of(parameters: &GraphNodeParams) -> Result<Work, CudaError> {
    match parameters.kind {
        // SAFETY: the caller's promise.
        node_type::KERNEL => unsafe { nodes::kernel_work(parameters.value::<KernelNodeParams>()) },
        node_type::MEMCPY => nodes::copy_work(&memcpy_parameters(parameters)),
        node_type::MEMSET => Work::of_memset(parameters.value::<MemsetParams>()),
        node_type::HOST => nodes::host_work(*parameters.value::<HostNodeParams>()),
        node_type::GRAPH => Ok(Work::Graph(parameters.value[0])),
        node_type::EMPTY => Ok(Work::Empty),
        node_type::WAIT_EVENT => {
            crate::session::event::number(parameters.value[0]).map(|_| Work::EventWait(parameters.value[0]))
        }
        node_type::EVENT_RECORD => {
            crate::session::event::number(parameters.value[0]).map(|_| Work::EventRecord(parameters.value[0]))
        }
        node_type::MEM_FREE => Work::free(parameters.value[0]),
        node_type::SEMAPHORE_SIGNAL | node_type::SEMAPHORE_WAIT | node_type::CONDITIONAL => {
            Err(CudaError::NotSupported)
        }
        _ => Err(CudaError::InvalidValue),
    }
}

fn memcpy_parameters(parameters: &GraphNodeParams) -> Memcpy3DParameters {
    let words = &bytemuck::bytes_of(&parameters.value)[8 * MEMCPY_NODE_PARAMETERS..];
    *bytemuck::from_bytes(&words[..size_of::<Memcpy3DParameters>()])
}

fn add(node: Out<u64>, graph: u64, after: &[Dependency], parameters: Out<GraphNodeParams>) -> Result<(), CudaError> {
    node.check()?;
    parameters.check()?;
    // SAFETY: a place that is not null holds the parameters.
    let mut filled = unsafe { parameters.pointer().read_unaligned() };
    if filled.kind == node_type::MEM_ALLOC {
        memory::add_allocation(node, graph, after, filled.value_mut::<MemAllocNodeParams>())?;
        return parameters.set(filled);
    }
    if filled.kind == node_type::GRAPH {
        return match filled.value[1] & 0xffff_ffff {
            ownership::CLONE => nodes::add(node, graph, after, Work::Graph(filled.value[0])),
            ownership::MOVE => node.set(graph::add_moved(graph, after, filled.value[0])?),
            _ => Err(CudaError::InvalidValue),
        };
    }
    // SAFETY: CUDA's contract.
    nodes::add(node, graph, after, unsafe { work_of(&filled)? })
}

/// The parameters of a node.
fn parameters_of(work: &mut Work) -> Result<GraphNodeParams, CudaError> {
    let mut parameters = GraphNodeParams::zeroed();
    parameters.kind = work.kind();
    match work {
        Work::Kernel(kernel) => *parameters.value_mut() = nodes::kernel_parameters(kernel)?,
        Work::Copy(_) => {
            let copy = nodes::copy_parameters(work)?;
            let words = &mut bytemuck::bytes_of_mut(&mut parameters.value)[8 * MEMCPY_NODE_PARAMETERS..];
            words[..size_of::<Memcpy3DParameters>()].copy_from_slice(bytemuck::bytes_of(&copy));
        }
        Work::Memset(_) => *parameters.value_mut() = work.memset_parameters()?,
        Work::Host(host) => *parameters.value_mut() = *host,
        Work::Graph(handle) | Work::EventRecord(handle) | Work::EventWait(handle) | Work::Free(handle) => {
            parameters.value[0] = *handle;
        }
        Work::Empty => {}
        Work::Allocate(_) => *parameters.value_mut() = memory::allocation_parameters(work)?,
    }
    Ok(parameters)
}

cuda_api! {
    fn cudaGraphAddNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: Out<GraphNodeParams>) {
        add(node, graph, &Dependency::list(after, In::absent(), count)?, parameters)
    }

    fn cudaGraphAddNode_v2(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        parameters: Out<GraphNodeParams>,
    ) {
        add(node, graph, &Dependency::list(after, edges, count)?, parameters)
    }

    fn cudaGraphAddNode_13(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        edges: In<EdgeData>,
        count: usize,
        parameters: Out<GraphNodeParams>,
    ) {
        add(node, graph, &Dependency::list(after, edges, count)?, parameters)
    }

    fn cudaGraphNodeSetParams(node: u64, parameters: In<GraphNodeParams>) {
        // SAFETY: CUDA's contract.
        let work = unsafe { work_of(&parameters.get()?)? };
        if matches!(work, Work::Graph(_) | Work::Free(_)) {
            return Err(CudaError::InvalidValue);
        }
        graph::with_node(node, |node| {
            if node.work.kind() != work.kind() {
                return Err(CudaError::InvalidValue);
            }
            node.work = match work {
                Work::Kernel(_) => nodes::replace_kernel(&node.work, work)?,
                work => work,
            };
            Ok(())
        })
    }

    fn cudaGraphNodeGetParams(node: u64, parameters: Out<GraphNodeParams>) {
        parameters.check()?;
        parameters.set(graph::with_node(node, |node| parameters_of(&mut node.work))?)
    }

    fn cudaGraphExecNodeSetParams(executable: u64, node: u64, parameters: In<GraphNodeParams>) {
        // SAFETY: CUDA's contract.
        let work = unsafe { work_of(&parameters.get()?)? };
        executable::with(executable, |executable| match work {
            Work::Graph(child) => executable.update_child(node, child).map_err(|_| CudaError::GraphExecUpdateFailure),
            work => executable.set_work(node, work),
        })
    }
}
