//! Graphs and their nodes. The driver shares the runtime's structures but for copies.

use super::copy;
use crate::abi::arguments::{In, Out, Text};
use crate::abi::driver::{Copy3D, CopyEnd3D, KernelNode, KernelNode2, MEMORY_ARRAY, MEMORY_UNIFIED, NodeOfCopy};
use crate::abi::graph::{
    EdgeData, GraphNodeParams, HostNodeParams, KernelNodeParams, MemAllocNodeParams, MemsetParams, node_type,
};
use crate::abi::lists::{EdgePlaces, NodePlaces, give};
use crate::session::addresses::copy::End;
use crate::session::api::Outcome;
use crate::session::arrays::array;
use crate::session::code::{Kernel, module};
use crate::session::contexts::context;
use crate::session::graph::node::CopyWork;
use crate::session::graph::{
    self, Work, allocation_nodes, conditional, executable, footprint, kernel, parameters, user_object,
};
use crate::session::state::dependency::Dependency;
use crate::{driver_api, forwards};
use balar_host::CudaError;
use std::ffi::c_int;

/// A kernel node's parameters as the session has them: it knows kernels of libraries by the same handles as functions.
fn kernel_parameters(parameters: In<KernelNode2>) -> Result<KernelNodeParams, CudaError> {
    let KernelNode2 { base, kernel, .. } = parameters.get()?;
    let mut result: KernelNodeParams = bytemuck::Zeroable::zeroed();
    result.function = if base.function.is_null() { kernel as u64 } else { base.function as u64 };
    (result.grid, result.block, result.shared_bytes) = (base.grid, base.block, base.shared_bytes);
    (result.parameters, result.extra) = (base.arguments as u64, base.extra as u64);
    Ok(result)
}

/// Is the function with this handle a kernel of a library, which has the same handle?
fn is_of_library(function: u64) -> bool {
    Kernel::of_handle(function).is_ok_and(|kernel| module::library_of_kernel(&kernel).is_ok())
}

/// Adds a node after others.
fn add(node: Out<u64>, graph: u64, after: In<u64>, count: usize, work: Work) -> Outcome {
    node.check()?;
    node.set(graph::add(graph, &Dependency::list(after, In::absent(), count)?, work)?)
}

/// The work of a node that makes this copy.
fn copy_work(parameters: &Copy3D) -> Result<Work, CudaError> {
    Ok(Work::Copy(Box::new(CopyWork { copy: copy::described(parameters)?, parameters: None })))
}

/// An end of a copy as programs ask for it.
fn end_of(end: &End) -> Result<CopyEnd3D, CudaError> {
    let mut result = CopyEnd3D {
        x_bytes: 0,
        y: 0,
        z: 0,
        level: 0,
        memory_type: MEMORY_UNIFIED,
        host: std::ptr::null_mut(),
        device: 0,
        array: std::ptr::null_mut(),
        context: std::ptr::null_mut(),
        pitch: 0,
        height: 0,
    };
    match *end {
        End::Memory { address, row_pitch, slice_pitch } => {
            result.device = address;
            result.pitch = row_pitch as usize;
            result.height = slice_pitch.checked_div(row_pitch).unwrap_or(0) as usize;
        }
        End::Array { array, offset: [x, y, z] } => {
            result.memory_type = MEMORY_ARRAY;
            result.array = array::handle_of(array).ok_or(CudaError::InvalidResourceHandle)? as *mut _;
            (result.x_bytes, result.y, result.z) = (x as usize, y as usize, z as usize);
        }
    }
    Ok(result)
}

fn copy_parameters(node: u64) -> Result<Copy3D, CudaError> {
    let copy = graph::with_node(node, |node| match &node.work {
        Work::Copy(work) => Ok(work.copy),
        _ => Err(CudaError::InvalidValue),
    })?;
    Ok(Copy3D {
        source: end_of(&copy.source)?,
        destination: end_of(&copy.destination)?,
        width_bytes: copy.shape.width as usize,
        height: copy.shape.height as usize,
        depth: copy.shape.depth as usize,
    })
}

/// The parameters of a node of any kind, with a kernel as the session has it.
enum AnyNode {
    /// The parameters as the session has them.
    Same(Box<GraphNodeParams>),
    /// A copy.
    Copy(Box<Copy3D>),
}

fn any_node(parameters: &GraphNodeParams) -> AnyNode {
    // SAFETY: for each kind of node the value begins with that kind's structure, and any bits are a value of that structure.
    unsafe {
        match parameters.kind {
            node_type::MEMCPY => {
                AnyNode::Copy(Box::new(parameters.value.as_ptr().cast::<NodeOfCopy>().read_unaligned().copy))
            }
            node_type::KERNEL => {
                let mut parameters = *parameters;
                let node = parameters.value.as_ptr().cast::<KernelNode2>().read_unaligned();
                if node.base.function.is_null() {
                    parameters.value[0] = node.kernel as u64;
                }
                AnyNode::Same(Box::new(parameters))
            }
            _ => AnyNode::Same(Box::new(*parameters)),
        }
    }
}

fn add_node(node: Out<u64>, graph: u64, after: Vec<Dependency>, place: Out<GraphNodeParams>) -> Outcome {
    node.check()?;
    place.check()?;
    // SAFETY: a place that is not null holds the parameters.
    let given = unsafe { place.pointer().read_unaligned() };
    match any_node(&given) {
        AnyNode::Copy(copy) => node.set(graph::add(graph, &after, copy_work(&copy)?)?),
        AnyNode::Same(mut same) => {
            // SAFETY: CUDA's contract.
            node.set(unsafe { parameters::add(graph, &after, &mut same)? })?;
            if parameters::is_written(same.kind) { place.set(*same) } else { Ok(()) }
        }
    }
}

fn edges(graph: u64, places: EdgePlaces) -> Outcome {
    places.check()?;
    places.write(&graph::edges(graph)?)
}

fn check_context(context: u64) -> Outcome {
    context::device_of(context).map(|_| ())
}

forwards! {
    context fn cuGraphDestroy(graph: u64) => graph::destroy;
    context fn cuGraphDestroyNode(node: u64) => graph::destroy_node;
    context fn cuGraphAddDependencies_v2(
        graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize,
    ) => graph::add_edges;
    context fn cuGraphRemoveDependencies_v2(
        graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize,
    ) => graph::remove_edges;
    context fn cuDeviceGraphMemTrim(device: c_int) => graph::footprint::trim;
    context fn cuDeviceSetGraphMemAttribute(
        device: c_int, attribute: u32, value: In<u64>,
    ) => graph::footprint::set_attribute;
    // The destination comes first, as in CUDA 13's runtime.
    context fn cuGraphKernelNodeCopyAttributes(to: u64, from: u64) => graph::kernel::copy_attributes;
    context fn cuUserObjectRetain(object: u64, count: u32) => graph::user_object::retain;
    context fn cuUserObjectRelease(object: u64, count: u32) => graph::user_object::release;
    context fn cuGraphRetainUserObject(
        graph: u64, object: u64, count: u32, flags: u32,
    ) => graph::graph_objects::retain_for_graph;
    context fn cuGraphReleaseUserObject(graph: u64, object: u64, count: u32) => graph::graph_objects::release_from_graph;
}

driver_api! {
    context fn cuGraphCreate(graph: Out<u64>, flags: u32) {
        graph.check()?;
        graph.set(graph::create_with_flags(flags)?)
    }

    context fn cuGraphClone(copy: Out<u64>, graph: u64) {
        copy.check()?;
        copy.set(graph::copy(graph)?)
    }

    context fn cuGraphNodeFindInClone(node: Out<u64>, original: u64, copy: u64) {
        node.check()?;
        node.set(graph::find_in_copy(original, copy)?)
    }

    context fn cuGraphGetId(graph: u64, number: Out<u32>) {
        number.set(graph::with(graph, |graph| Ok(graph.number))?)
    }

    context fn cuGraphExecGetId(executable: u64, number: Out<u32>) {
        number.set(executable::with(executable, |executable| Ok(executable.number))?)
    }

    context fn cuGraphNodeGetContainingGraph(node: u64, graph: Out<u64>) {
        graph.set(graph::graph_of(node)?)
    }

    context fn cuGraphNodeGetLocalId(node: u64, number: Out<u32>) {
        number.set(graph::with_node(node, |node| Ok(node.local_id))?)
    }

    context fn cuGraphNodeGetToolsId(node: u64, number: Out<u64>) {
        number.set(graph::tools_id(node)?)
    }

    context fn cuGraphNodeGetType(node: u64, kind: Out<u32>) {
        kind.set(graph::with_node(node, |node| Ok(node.work.kind()))?)
    }

    context fn cuGraphChildGraphNodeGetGraph(node: u64, child: Out<u64>) {
        child.set(graph::child_of(node)?)
    }

    context fn cuGraphDebugDotPrint(graph: u64, path: Text, flags: u32) {
        graph::print(graph, &path.get()?, flags)
    }

    context fn cuGraphGetNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) {
        give(&graph::nodes(graph)?, nodes, count)
    }

    context fn cuGraphGetRootNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) {
        give(&graph::roots(graph)?, nodes, count)
    }

    context fn cuGraphGetEdges(graph: u64, from: Out<u64>, to: Out<u64>, count: Out<usize>) {
        edges(graph, EdgePlaces { from, to, data: Out::nowhere(), count })
    }

    context fn cuGraphGetEdges_v2(graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        edges(graph, EdgePlaces { from, to, data, count })
    }

    context fn cuGraphNodeGetDependencies(node: u64, nodes: Out<u64>, count: Out<usize>) {
        NodePlaces { nodes, data: Out::nowhere(), count }.write(&graph::dependencies(node)?)
    }

    context fn cuGraphNodeGetDependencies_v2(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        NodePlaces { nodes, data, count }.write(&graph::dependencies(node)?)
    }

    context fn cuGraphNodeGetDependentNodes(node: u64, nodes: Out<u64>, count: Out<usize>) {
        NodePlaces { nodes, data: Out::nowhere(), count }.write(&graph::dependents(node)?)
    }

    context fn cuGraphNodeGetDependentNodes_v2(node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>) {
        NodePlaces { nodes, data, count }.write(&graph::dependents(node)?)
    }

    context fn cuGraphAddDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) {
        graph::add_edges(graph, from, to, In::absent(), count)
    }

    context fn cuGraphRemoveDependencies(graph: u64, from: In<u64>, to: In<u64>, count: usize) {
        graph::remove_edges(graph, from, to, In::absent(), count)
    }

    context fn cuGraphAddMemAllocNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: Out<MemAllocNodeParams>,
    ) {
        parameters.check()?;
        // SAFETY: a place that is not null holds the parameters.
        let mut filled = unsafe { parameters.pointer().read_unaligned() };
        node.check()?;
        node.set(allocation_nodes::add_node(graph, &Dependency::list(after, In::absent(), count)?, &mut filled)?)?;
        parameters.set(filled)
    }

    context fn cuGraphMemAllocNodeGetParams(node: u64, parameters: Out<MemAllocNodeParams>) {
        parameters.set(graph::with_node(node, |node| allocation_nodes::parameters_of(&node.work))?)
    }

    context fn cuGraphAddMemFreeNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, address: u64) {
        add(node, graph, after, count, Work::free(address)?)
    }

    context fn cuGraphMemFreeNodeGetParams(node: u64, address: Out<u64>) {
        address.set(graph::with_node(node, |node| node.work.freed_address())?)
    }

    context fn cuDeviceGetGraphMemAttribute(device: c_int, attribute: u32, value: Out<u64>) {
        value.set(footprint::attribute(device, attribute)?)
    }

    // The kernel node of CUDA 11: as the runtime has it.
    context fn cuGraphAddKernelNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<KernelNodeParams>,
    ) {
        // SAFETY: CUDA's contract.
        add(node, graph, after, count, unsafe { kernel::work_of(&parameters.get()?)? })
    }

    context fn cuGraphKernelNodeGetParams(node: u64, parameters: Out<KernelNodeParams>) {
        parameters.check()?;
        parameters.set(kernel::get(node)?)
    }

    context fn cuGraphKernelNodeSetParams(node: u64, parameters: In<KernelNodeParams>) {
        // SAFETY: CUDA's contract.
        kernel::set(node, unsafe { kernel::work_of(&parameters.get()?)? })
    }

    context fn cuGraphExecKernelNodeSetParams(executable: u64, node: u64, parameters: In<KernelNodeParams>) {
        // SAFETY: CUDA's contract.
        executable::set(executable, node, unsafe { kernel::work_of(&parameters.get()?)? })
    }

    context fn cuGraphAddKernelNode_v2(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<KernelNode2>,
    ) {
        // SAFETY: CUDA's contract.
        add(node, graph, after, count, unsafe { kernel::work_of(&kernel_parameters(parameters)?)? })
    }

    context fn cuGraphKernelNodeGetParams_v2(node: u64, parameters: Out<KernelNode2>) {
        parameters.check()?;
        let found = kernel::get(node)?;
        parameters.set(KernelNode2 {
            base: KernelNode {
                function: found.function as *mut _,
                grid: found.grid,
                block: found.block,
                shared_bytes: found.shared_bytes,
                arguments: found.parameters as *mut _,
                extra: found.extra as *mut _,
            },
            // The runtime finds its host function by this.
            kernel: if is_of_library(found.function) { found.function as *mut _ } else { std::ptr::null_mut() },
            context: std::ptr::null_mut(),
        })
    }

    context fn cuGraphKernelNodeSetParams_v2(node: u64, parameters: In<KernelNode2>) {
        // SAFETY: CUDA's contract.
        kernel::set(node, unsafe { kernel::work_of(&kernel_parameters(parameters)?)? })
    }

    context fn cuGraphExecKernelNodeSetParams_v2(executable: u64, node: u64, parameters: In<KernelNode2>) {
        // SAFETY: CUDA's contract.
        executable::set(executable, node, unsafe { kernel::work_of(&kernel_parameters(parameters)?)? })
    }

    context fn cuGraphKernelNodeGetAttribute(node: u64, kind: u32, value: Out<[u64; 8]>) {
        value.check()?;
        value.set(kernel::attribute(node, kind)?)
    }

    context fn cuGraphKernelNodeSetAttribute(node: u64, kind: u32, value: In<[u64; 8]>) {
        kernel::set_attribute(node, kind, value.get()?)
    }

    context fn cuGraphAddMemcpyNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<Copy3D>, context: u64,
    ) {
        check_context(context)?;
        add(node, graph, after, count, copy_work(&parameters.get()?)?)
    }

    context fn cuGraphMemcpyNodeGetParams(node: u64, parameters: Out<Copy3D>) {
        parameters.check()?;
        parameters.set(copy_parameters(node)?)
    }

    context fn cuGraphMemcpyNodeSetParams(node: u64, parameters: In<Copy3D>) {
        graph::set(node, copy_work(&parameters.get()?)?)
    }

    context fn cuGraphExecMemcpyNodeSetParams(executable: u64, node: u64, parameters: In<Copy3D>, context: u64) {
        check_context(context)?;
        executable::set(executable, node, copy_work(&parameters.get()?)?)
    }

    context fn cuGraphAddMemsetNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<MemsetParams>, context: u64,
    ) {
        check_context(context)?;
        add(node, graph, after, count, Work::of_memset(&parameters.get()?)?)
    }

    context fn cuGraphMemsetNodeGetParams(node: u64, parameters: Out<MemsetParams>) {
        parameters.set(graph::with_node(node, |node| node.work.memset_parameters())?)
    }

    context fn cuGraphMemsetNodeSetParams(node: u64, parameters: In<MemsetParams>) {
        graph::set(node, Work::of_memset(&parameters.get()?)?)
    }

    context fn cuGraphExecMemsetNodeSetParams(executable: u64, node: u64, parameters: In<MemsetParams>, context: u64) {
        check_context(context)?;
        executable::set(executable, node, Work::of_memset(&parameters.get()?)?)
    }

    context fn cuGraphAddHostNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<HostNodeParams>,
    ) {
        add(node, graph, after, count, Work::host(parameters.get()?)?)
    }

    context fn cuGraphHostNodeGetParams(node: u64, parameters: Out<HostNodeParams>) {
        parameters.set(graph::with_node(node, |node| node.work.host_parameters())?)
    }

    context fn cuGraphHostNodeSetParams(node: u64, parameters: In<HostNodeParams>) {
        graph::set(node, Work::host(parameters.get()?)?)
    }

    context fn cuGraphExecHostNodeSetParams(executable: u64, node: u64, parameters: In<HostNodeParams>) {
        executable::set(executable, node, Work::host(parameters.get()?)?)
    }

    context fn cuGraphAddChildGraphNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, child: u64) {
        node.check()?;
        node.set(graph::add_child(graph, &Dependency::list(after, In::absent(), count)?, child)?)
    }

    context fn cuGraphExecChildGraphNodeSetParams(executable: u64, node: u64, child: u64) {
        executable::set(executable, node, Work::Graph(child))
    }

    context fn cuGraphAddEmptyNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize) {
        add(node, graph, after, count, Work::Empty)
    }

    context fn cuGraphAddEventRecordNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        add(node, graph, after, count, Work::event_record(event)?)
    }

    context fn cuGraphAddEventWaitNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        add(node, graph, after, count, Work::event_wait(event)?)
    }

    context fn cuGraphEventRecordNodeGetEvent(node: u64, event: Out<u64>) {
        event.set(graph::with_node(node, |node| node.work.recorded_event())?)
    }

    context fn cuGraphEventRecordNodeSetEvent(node: u64, event: u64) {
        graph::set(node, Work::event_record(event)?)
    }

    context fn cuGraphExecEventRecordNodeSetEvent(executable: u64, node: u64, event: u64) {
        executable::set(executable, node, Work::event_record(event)?)
    }

    context fn cuGraphEventWaitNodeGetEvent(node: u64, event: Out<u64>) {
        event.set(graph::with_node(node, |node| node.work.awaited_event())?)
    }

    context fn cuGraphEventWaitNodeSetEvent(node: u64, event: u64) {
        graph::set(node, Work::event_wait(event)?)
    }

    context fn cuGraphExecEventWaitNodeSetEvent(executable: u64, node: u64, event: u64) {
        executable::set(executable, node, Work::event_wait(event)?)
    }

    context fn cuUserObjectCreate(
        object: Out<u64>, pointer: u64, destructor: Option<user_object::Destructor>, references: u32, flags: u32,
    ) {
        object.check()?;
        object.set(user_object::create(pointer, destructor, references, flags)?)
    }

    context fn cuGraphAddNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: Out<GraphNodeParams>) {
        add_node(node, graph, Dependency::list(after, In::absent(), count)?, parameters)
    }

    context fn cuGraphAddNode_v2(
        node: Out<u64>, graph: u64, after: In<u64>, edges: In<EdgeData>, count: usize, parameters: Out<GraphNodeParams>,
    ) {
        add_node(node, graph, Dependency::list(after, edges, count)?, parameters)
    }

    context fn cuGraphConditionalHandleCreate(
        handle: Out<u64>, graph: u64, context: u64, first_value: u32, flags: u32,
    ) {
        check_context(context)?;
        conditional::create_into(handle, graph, first_value, flags)
    }

    context fn cuGraphNodeSetParams(node: u64, parameters: In<GraphNodeParams>) {
        match any_node(&parameters.get()?) {
            AnyNode::Copy(copy) => graph::set(node, copy_work(&copy)?),
            // SAFETY: CUDA's contract.
            AnyNode::Same(same) => unsafe { parameters::set(node, &same) },
        }
    }

    context fn cuGraphExecNodeSetParams(executable: u64, node: u64, parameters: In<GraphNodeParams>) {
        match any_node(&parameters.get()?) {
            AnyNode::Copy(copy) => executable::set(executable, node, copy_work(&copy)?),
            // SAFETY: CUDA's contract.
            AnyNode::Same(same) => unsafe { parameters::set_in_executable(executable, node, &same) },
        }
    }
}
