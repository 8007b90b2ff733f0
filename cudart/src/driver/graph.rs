//! Graphs: those of the runtime. The driver shares its structures but for copies.

use super::copy;
use crate::abi::arguments::{In, Out, Text};
use crate::abi::driver::{Copy3D, CopyEnd3D, KernelNode2, MEMORY_ARRAY, MEMORY_UNIFIED, NodeOfCopy};
use crate::abi::graph::{
    EdgeData, GraphNodeParams, HostNodeParams, InstantiateParams, KernelNodeParams, MemAllocNodeParams, MemsetParams,
    UpdateResultInfo, node_type,
};
use crate::abi::stream::StreamHandle;
use crate::session::api::Outcome;
use crate::session::array;
use crate::session::context;
use crate::session::graph::node::CopyWork;
use crate::session::graph::{self, Dependency, Work};
use crate::session::operation::End;
use crate::{driver_api, forwards_to_runtime, runtime};
use balar_host::CudaError;
use std::ffi::c_int;

forwards_to_runtime! {
    context cuGraphCreate(graph: Out<u64>, flags: u32) => graph::cudaGraphCreate;
    context cuGraphDestroy(graph: u64) => graph::cudaGraphDestroy;
    context cuGraphClone(copy: Out<u64>, graph: u64) => graph::cudaGraphClone;
    context cuGraphNodeFindInClone(node: Out<u64>, original: u64, copy: u64) => graph::cudaGraphNodeFindInClone;
    context cuGraphDestroyNode(node: u64) => graph::cudaGraphDestroyNode;
    context cuGraphGetId(graph: u64, number: Out<u32>) => graph::cudaGraphGetId;
    context cuGraphExecGetId(executable: u64, number: Out<u32>) => graph::cudaGraphExecGetId;
    context cuGraphNodeGetContainingGraph(node: u64, graph: Out<u64>) => graph::cudaGraphNodeGetContainingGraph;
    context cuGraphNodeGetLocalId(node: u64, number: Out<u32>) => graph::cudaGraphNodeGetLocalId;
    context cuGraphNodeGetToolsId(node: u64, number: Out<u64>) => graph::cudaGraphNodeGetToolsId;
    context cuGraphNodeGetType(node: u64, kind: Out<u32>) => graph::cudaGraphNodeGetType;
    context cuGraphChildGraphNodeGetGraph(node: u64, child: Out<u64>) => graph::cudaGraphChildGraphNodeGetGraph;
    context cuGraphDebugDotPrint(graph: u64, path: Text, flags: u32) => graph::cudaGraphDebugDotPrint;

    context cuGraphGetNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) => graph::edges::cudaGraphGetNodes;
    context cuGraphGetRootNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) => graph::edges::cudaGraphGetRootNodes;
    context cuGraphGetEdges(graph: u64, from: Out<u64>, to: Out<u64>, count: Out<usize>) => graph::edges::cudaGraphGetEdges;
    context cuGraphGetEdges_v2(
        graph: u64, from: Out<u64>, to: Out<u64>, data: Out<EdgeData>, count: Out<usize>,
    ) => graph::edges::cudaGraphGetEdges_v2;
    context cuGraphNodeGetDependencies(node: u64, nodes: Out<u64>, count: Out<usize>) => graph::edges::cudaGraphNodeGetDependencies;
    context cuGraphNodeGetDependencies_v2(
        node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>,
    ) => graph::edges::cudaGraphNodeGetDependencies_v2;
    context cuGraphNodeGetDependentNodes(
        node: u64, nodes: Out<u64>, count: Out<usize>,
    ) => graph::edges::cudaGraphNodeGetDependentNodes;
    context cuGraphNodeGetDependentNodes_v2(
        node: u64, nodes: Out<u64>, data: Out<EdgeData>, count: Out<usize>,
    ) => graph::edges::cudaGraphNodeGetDependentNodes_v2;
    context cuGraphAddDependencies(
        graph: u64, from: In<u64>, to: In<u64>, count: usize,
    ) => graph::edges::cudaGraphAddDependencies;
    context cuGraphAddDependencies_v2(
        graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize,
    ) => graph::edges::cudaGraphAddDependencies_v2;
    context cuGraphRemoveDependencies(
        graph: u64, from: In<u64>, to: In<u64>, count: usize,
    ) => graph::edges::cudaGraphRemoveDependencies;
    context cuGraphRemoveDependencies_v2(
        graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize,
    ) => graph::edges::cudaGraphRemoveDependencies_v2;

    context cuGraphAddMemAllocNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: Out<MemAllocNodeParams>,
    ) => graph::memory::cudaGraphAddMemAllocNode;
    context cuGraphMemAllocNodeGetParams(
        node: u64, parameters: Out<MemAllocNodeParams>,
    ) => graph::memory::cudaGraphMemAllocNodeGetParams;
    context cuGraphAddMemFreeNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, address: u64,
    ) => graph::memory::cudaGraphAddMemFreeNode;
    context cuGraphMemFreeNodeGetParams(node: u64, address: Out<u64>) => graph::memory::cudaGraphMemFreeNodeGetParams;
    context cuDeviceGraphMemTrim(device: c_int) => graph::memory::cudaDeviceGraphMemTrim;
    context cuDeviceGetGraphMemAttribute(
        device: c_int, attribute: u32, value: Out<u64>,
    ) => graph::memory::cudaDeviceGetGraphMemAttribute;
    context cuDeviceSetGraphMemAttribute(
        device: c_int, attribute: u32, value: In<u64>,
    ) => graph::memory::cudaDeviceSetGraphMemAttribute;

    // The kernel node of CUDA 11: as the runtime has it.
    context cuGraphAddKernelNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<KernelNodeParams>,
    ) => graph::nodes::cudaGraphAddKernelNode;
    context cuGraphKernelNodeGetParams(
        node: u64, parameters: Out<KernelNodeParams>,
    ) => graph::nodes::cudaGraphKernelNodeGetParams;
    context cuGraphKernelNodeSetParams(
        node: u64, parameters: In<KernelNodeParams>,
    ) => graph::nodes::cudaGraphKernelNodeSetParams;
    context cuGraphKernelNodeGetAttribute(
        node: u64, kind: u32, value: Out<[u64; 8]>,
    ) => graph::nodes::cudaGraphKernelNodeGetAttribute;
    context cuGraphKernelNodeSetAttribute(
        node: u64, kind: u32, value: In<[u64; 8]>,
    ) => graph::nodes::cudaGraphKernelNodeSetAttribute;
    // The destination comes first, as in CUDA 13's runtime.
    context cuGraphKernelNodeCopyAttributes(to: u64, from: u64) => graph::nodes::cudaGraphKernelNodeCopyAttributes_13;
    context cuGraphMemsetNodeGetParams(
        node: u64, parameters: Out<MemsetParams>,
    ) => graph::nodes::cudaGraphMemsetNodeGetParams;
    context cuGraphMemsetNodeSetParams(
        node: u64, parameters: In<MemsetParams>,
    ) => graph::nodes::cudaGraphMemsetNodeSetParams;
    context cuGraphAddHostNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<HostNodeParams>,
    ) => graph::nodes::cudaGraphAddHostNode;
    context cuGraphHostNodeGetParams(node: u64, parameters: Out<HostNodeParams>) => graph::nodes::cudaGraphHostNodeGetParams;
    context cuGraphHostNodeSetParams(node: u64, parameters: In<HostNodeParams>) => graph::nodes::cudaGraphHostNodeSetParams;
    context cuGraphAddChildGraphNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, child: u64,
    ) => graph::nodes::cudaGraphAddChildGraphNode;
    context cuGraphAddEmptyNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize,
    ) => graph::nodes::cudaGraphAddEmptyNode;
    context cuGraphAddEventRecordNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64,
    ) => graph::nodes::cudaGraphAddEventRecordNode;
    context cuGraphAddEventWaitNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64,
    ) => graph::nodes::cudaGraphAddEventWaitNode;
    context cuGraphEventRecordNodeGetEvent(node: u64, event: Out<u64>) => graph::nodes::cudaGraphEventRecordNodeGetEvent;
    context cuGraphEventRecordNodeSetEvent(node: u64, event: u64) => graph::nodes::cudaGraphEventRecordNodeSetEvent;
    context cuGraphEventWaitNodeGetEvent(node: u64, event: Out<u64>) => graph::nodes::cudaGraphEventWaitNodeGetEvent;
    context cuGraphEventWaitNodeSetEvent(node: u64, event: u64) => graph::nodes::cudaGraphEventWaitNodeSetEvent;

    context cuUserObjectRetain(object: u64, count: u32) => graph::user_object::cudaUserObjectRetain;
    context cuUserObjectRelease(object: u64, count: u32) => graph::user_object::cudaUserObjectRelease;
    context cuGraphRetainUserObject(
        graph: u64, object: u64, count: u32, flags: u32,
    ) => graph::user_object::cudaGraphRetainUserObject;
    context cuGraphReleaseUserObject(graph: u64, object: u64, count: u32) => graph::user_object::cudaGraphReleaseUserObject;

    context cuGraphInstantiateWithFlags(executable: Out<u64>, graph: u64, flags: u64) => graph::executable::cudaGraphInstantiateWithFlags;
    stream cuGraphInstantiateWithParams(
        executable: Out<u64>, graph: u64, parameters: Out<InstantiateParams>,
    ) => graph::executable::cudaGraphInstantiateWithParams;
    context cuGraphExecGetFlags(executable: u64, flags: Out<u64>) => graph::executable::cudaGraphExecGetFlags;
    context cuGraphExecDestroy(executable: u64) => graph::executable::cudaGraphExecDestroy;
    stream cuGraphLaunch(executable: u64, stream: StreamHandle) => graph::executable::cudaGraphLaunch;
    stream cuGraphUpload(executable: u64, stream: StreamHandle) => graph::executable::cudaGraphUpload;
    context cuGraphExecUpdate(executable: u64, graph: u64, error_node: Out<u64>, result: Out<u32>) => graph::executable::cudaGraphExecUpdate_11;
    context cuGraphExecUpdate_v2(
        executable: u64, graph: u64, result: Out<UpdateResultInfo>,
    ) => graph::executable::cudaGraphExecUpdate;
    context cuGraphExecKernelNodeSetParams(
        executable: u64, node: u64, parameters: In<KernelNodeParams>,
    ) => graph::executable::cudaGraphExecKernelNodeSetParams;
    context cuGraphExecHostNodeSetParams(
        executable: u64, node: u64, parameters: In<HostNodeParams>,
    ) => graph::executable::cudaGraphExecHostNodeSetParams;
    context cuGraphExecEventRecordNodeSetEvent(
        executable: u64, node: u64, event: u64,
    ) => graph::executable::cudaGraphExecEventRecordNodeSetEvent;
    context cuGraphExecEventWaitNodeSetEvent(
        executable: u64, node: u64, event: u64,
    ) => graph::executable::cudaGraphExecEventWaitNodeSetEvent;
    context cuGraphExecChildGraphNodeSetParams(
        executable: u64, node: u64, child: u64,
    ) => graph::executable::cudaGraphExecChildGraphNodeSetParams;
    context cuGraphNodeSetEnabled(executable: u64, node: u64, is_enabled: u32) => graph::executable::cudaGraphNodeSetEnabled;
    context cuGraphNodeGetEnabled(
        executable: u64, node: u64, is_enabled: Out<u32>,
    ) => graph::executable::cudaGraphNodeGetEnabled;
}

/// A kernel node's parameters as the runtime has them: it knows kernels of libraries by the same handles as functions.
fn kernel_parameters(parameters: In<KernelNode2>) -> Result<KernelNodeParams, CudaError> {
    let KernelNode2 { base, kernel, .. } = parameters.get()?;
    let mut result: KernelNodeParams = bytemuck::Zeroable::zeroed();
    result.function = if base.function.is_null() { kernel as u64 } else { base.function as u64 };
    (result.grid, result.block, result.shared_bytes) = (base.grid, base.block, base.shared_bytes);
    (result.parameters, result.extra) = (base.arguments as u64, base.extra as u64);
    Ok(result)
}

/// The argument of a function of the runtime that takes it by address.
fn input<T>(value: &T) -> In<T> {
    // SAFETY: the argument is used while `value` is there.
    unsafe { In::new(value) }
}

fn dependencies(after: In<u64>, count: usize) -> Result<Vec<Dependency>, CudaError> {
    Ok(after.array(count)?.into_iter().map(Dependency::on).collect())
}

/// What a node does that makes this copy.
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

/// The parameters of a node of any kind, with a kernel or a copy as the runtime has them.
enum AnyNode {
    /// As the runtime has them.
    Same(Box<GraphNodeParams>),
    /// A copy.
    Copy(Box<Copy3D>),
}

fn any_node(parameters: &GraphNodeParams) -> AnyNode {
    // SAFETY: of each kind of node the value begins with that kind's structure, of which any bits are a value.
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

fn add_node(node: Out<u64>, graph: u64, after: Vec<Dependency>, parameters: Out<GraphNodeParams>) -> Outcome {
    node.check()?;
    parameters.check()?;
    // SAFETY: a place that is not null holds the parameters.
    let given = unsafe { parameters.pointer().read_unaligned() };
    match any_node(&given) {
        AnyNode::Copy(copy) => node.set(graph::add(graph, &after, copy_work(&copy)?)?),
        AnyNode::Same(mut same) => {
            let nodes: Vec<u64> = after.iter().map(|dependency| dependency.node).collect();
            let edges: Vec<EdgeData> = after.iter().map(|dependency| dependency.edge).collect();
            // SAFETY: the arguments are used while the values are there.
            let (nodes, edges, place, count) =
                unsafe { (In::new(nodes.as_ptr()), In::new(edges.as_ptr()), Out::new(&raw mut *same), nodes.len()) };
            runtime!(graph::generic::cudaGraphAddNode_v2(node, graph, nodes, edges, count, place))?;
            if same.kind == node_type::MEM_ALLOC { parameters.set(*same) } else { Ok(()) }
        }
    }
}

fn check_context(context: u64) -> Outcome {
    context::device_of(context).map(|_| ())
}

driver_api! {
    context fn cuGraphInstantiate(executable: Out<u64>, graph: u64, error_node: Out<u64>, log: Out<std::ffi::c_char>, log_bytes: usize) {
        runtime!(graph::executable::cudaGraphInstantiate_11(executable, graph, error_node, log, log_bytes))
    }

    context fn cuGraphInstantiate_v2(
        executable: Out<u64>, graph: u64, error_node: Out<u64>, log: Out<std::ffi::c_char>, log_bytes: usize,
    ) {
        runtime!(graph::executable::cudaGraphInstantiate_11(executable, graph, error_node, log, log_bytes))
    }

    context fn cuGraphAddKernelNode_v2(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<KernelNode2>,
    ) {
        let parameters = kernel_parameters(parameters)?;
        let parameters = input(&parameters);
        runtime!(graph::nodes::cudaGraphAddKernelNode(node, graph, after, count, parameters))
    }

    context fn cuGraphKernelNodeGetParams_v2(node: u64, parameters: Out<KernelNode2>) {
        parameters.check()?;
        let mut found = KernelNodeParams::default();
        // SAFETY: the argument is used while `found` is there.
        let place = unsafe { Out::new(&raw mut found) };
        runtime!(graph::nodes::cudaGraphKernelNodeGetParams(node, place))?;
        parameters.set(KernelNode2 {
            base: crate::abi::driver::KernelNode {
                function: found.function as *mut _,
                grid: found.grid,
                block: found.block,
                shared_bytes: found.shared_bytes,
                arguments: found.parameters as *mut _,
                extra: found.extra as *mut _,
            },
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        })
    }

    context fn cuGraphKernelNodeSetParams_v2(node: u64, parameters: In<KernelNode2>) {
        let parameters = kernel_parameters(parameters)?;
        let parameters = input(&parameters);
        runtime!(graph::nodes::cudaGraphKernelNodeSetParams(node, parameters))
    }

    context fn cuGraphExecKernelNodeSetParams_v2(executable: u64, node: u64, parameters: In<KernelNode2>) {
        let parameters = kernel_parameters(parameters)?;
        let parameters = input(&parameters);
        runtime!(graph::executable::cudaGraphExecKernelNodeSetParams(executable, node, parameters))
    }

    context fn cuGraphAddMemcpyNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<Copy3D>, context: u64,
    ) {
        check_context(context)?;
        node.check()?;
        node.set(graph::add(graph, &dependencies(after, count)?, copy_work(&parameters.get()?)?)?)
    }

    context fn cuGraphMemcpyNodeGetParams(node: u64, parameters: Out<Copy3D>) {
        parameters.check()?;
        parameters.set(copy_parameters(node)?)
    }

    context fn cuGraphMemcpyNodeSetParams(node: u64, parameters: In<Copy3D>) {
        crate::runtime::graph::nodes::set(node, copy_work(&parameters.get()?)?)
    }

    context fn cuGraphExecMemcpyNodeSetParams(executable: u64, node: u64, parameters: In<Copy3D>, context: u64) {
        check_context(context)?;
        let work = copy_work(&parameters.get()?)?;
        graph::executable::with(executable, |executable| executable.set_work(node, work))
    }

    context fn cuGraphAddMemsetNode(
        node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<MemsetParams>, context: u64,
    ) {
        check_context(context)?;
        runtime!(graph::nodes::cudaGraphAddMemsetNode(node, graph, after, count, parameters))
    }

    context fn cuGraphExecMemsetNodeSetParams(executable: u64, node: u64, parameters: In<MemsetParams>, context: u64) {
        check_context(context)?;
        runtime!(graph::executable::cudaGraphExecMemsetNodeSetParams(executable, node, parameters))
    }

    context fn cuUserObjectCreate(
        object: Out<u64>, pointer: u64, destructor: Option<graph::user_object::Destructor>, references: u32, flags: u32,
    ) {
        runtime!(graph::user_object::cudaUserObjectCreate(object, pointer, destructor, references, flags))
    }

    context fn cuGraphAddNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: Out<GraphNodeParams>) {
        add_node(node, graph, dependencies(after, count)?, parameters)
    }

    context fn cuGraphAddNode_v2(
        node: Out<u64>, graph: u64, after: In<u64>, edges: In<EdgeData>, count: usize, parameters: Out<GraphNodeParams>,
    ) {
        let nodes = after.array(count)?;
        let edges = if edges.is_null() { vec![EdgeData::default(); count] } else { edges.array(count)? };
        let after = nodes.into_iter().zip(edges).map(|(node, edge)| Dependency { node, edge }).collect();
        add_node(node, graph, after, parameters)
    }

    context fn cuGraphNodeSetParams(node: u64, parameters: In<GraphNodeParams>) {
        match any_node(&parameters.get()?) {
            AnyNode::Copy(copy) => crate::runtime::graph::nodes::set(node, copy_work(&copy)?),
            AnyNode::Same(same) => {
                let parameters = input(&*same);
                runtime!(graph::generic::cudaGraphNodeSetParams(node, parameters))
            }
        }
    }

    context fn cuGraphExecNodeSetParams(executable: u64, node: u64, parameters: In<GraphNodeParams>) {
        match any_node(&parameters.get()?) {
            AnyNode::Copy(copy) => {
                let work = copy_work(&copy)?;
                graph::executable::with(executable, |executable| executable.set_work(node, work))
            }
            AnyNode::Same(same) => {
                let parameters = input(&*same);
                runtime!(graph::generic::cudaGraphExecNodeSetParams(executable, node, parameters))
            }
        }
    }
}
