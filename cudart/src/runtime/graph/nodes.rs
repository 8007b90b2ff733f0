//! Nodes of each kind: adding them, asking for their parameters, changing those.

use crate::abi::arguments::{In, Out};
use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{HostNodeParams, KernelNodeParams, MemsetParams};
use crate::cuda_api;
use crate::runtime::copy::Direction;
use crate::session::graph::node::{CopyWork, KernelWork};
use crate::session::graph::{self, Dependency, Work};
use crate::session::launch;
use crate::session::operation::{Copy, End};
use crate::session::{code, copy_parameters, event, registry};
use balar_host::CudaError;
use balar_host::call::{CopyShape, Launch};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Adds a node.
pub fn add(node: Out<u64>, graph: u64, dependencies: &[Dependency], work: Work) -> Result<(), CudaError> {
    node.check()?;
    node.set(graph::add(graph, dependencies, work)?)
}

fn add_plain(node: Out<u64>, graph: u64, after: In<u64>, count: usize, work: Work) -> Result<(), CudaError> {
    add(node, graph, &Dependency::list(after, In::absent(), count)?, work)
}

/// Has a node do something else of the same kind.
pub fn set(node: u64, work: Work) -> Result<(), CudaError> {
    graph::with_node(node, |node| {
        if node.work.kind() != work.kind() {
            return Err(CudaError::InvalidValue);
        }
        node.work = work;
        Ok(())
    })
}

/// A launch as the program says it.
///
/// # Safety
///
/// The parameters' pointers are what the kernel's parameters want.
pub unsafe fn kernel_work(parameters: &KernelNodeParams) -> Result<Work, CudaError> {
    let kernel = registry::kernel(parameters.function as usize)?.loaded()?;
    let description = kernel.description();
    let block = if parameters.parameters != 0 || description.parameters.is_empty() {
        // SAFETY: the caller's promise.
        unsafe { launch::pack(&kernel, parameters.parameters as *const *const c_void)? }
    } else {
        // SAFETY: the caller's promise.
        unsafe { packed_by_program(parameters.extra as *const u64)? }
    };
    let extents = [parameters.grid, parameters.block];
    if extents.iter().flatten().any(|extent| *extent == 0) {
        return Err(CudaError::InvalidValue);
    }
    Ok(Work::Kernel(Box::new(KernelWork {
        name: Some(parameters.function),
        device: kernel.device,
        launch: Launch {
            function: kernel.function(),
            grid: parameters.grid,
            block: parameters.block,
            shared_memory_bytes: parameters.shared_bytes,
            stream: 0,
            parameters: block,
            cooperative: false,
        },
        attributes: BTreeMap::new(),
        shown: Vec::new(),
    })))
}

/// Parameters that the program has packed itself: a list of what follows and where it is.
///
/// # Safety
///
/// `extra` is null, or a list as `cuLaunchKernel` wants it.
unsafe fn packed_by_program(extra: *const u64) -> Result<Vec<u8>, CudaError> {
    const END: u64 = 0;
    const BUFFER: u64 = 1;
    const BYTES: u64 = 2;
    if extra.is_null() {
        return Err(CudaError::InvalidValue);
    }
    let (mut buffer, mut bytes) = (0_u64, 0_u64);
    for pair in 0.. {
        // SAFETY: the list goes on until its end is found.
        let (key, value) = unsafe { (extra.add(2 * pair).read(), extra.add(2 * pair)) };
        match key {
            END => break,
            // SAFETY: each key but the last has a value.
            BUFFER => buffer = unsafe { value.add(1).read() },
            // SAFETY: its value is the address of the number of bytes.
            BYTES => bytes = unsafe { (value.add(1).read() as *const u64).read() },
            _ => return Err(CudaError::InvalidValue),
        }
    }
    if buffer == 0 {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: the program says that so many bytes are there.
    Ok(unsafe { std::slice::from_raw_parts(buffer as *const u8, bytes as usize) }.to_vec())
}

/// The kernel of a launch.
fn kernel_of(work: &KernelWork) -> Result<Arc<code::Kernel>, CudaError> {
    match work.name {
        Some(name) => registry::kernel(name as usize),
        None => {
            registry::kernel_of_function(work.device, &work.launch.function).ok_or(CudaError::InvalidDeviceFunction)
        }
    }
}

/// A launch as programs ask for it.
pub fn kernel_parameters(work: &mut KernelWork) -> Result<KernelNodeParams, CudaError> {
    let kernel = kernel_of(work)?;
    let name = match work.name {
        Some(name) => name,
        None => registry::host_function(&kernel).map_or_else(|| kernel.handle(), |address| address as u64),
    };
    let loaded = kernel.loaded()?;
    let addresses = work.show_parameters(&loaded.description().parameters);
    Ok(KernelNodeParams {
        function: name,
        grid: work.launch.grid,
        block: work.launch.block,
        shared_bytes: work.launch.shared_memory_bytes,
        parameters: addresses,
        ..KernelNodeParams::default()
    })
}

/// A new launch for a node, which keeps the attributes.
pub fn replace_kernel(old: &Work, new: Work) -> Result<Work, CudaError> {
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(mut new)) => {
            new.attributes.clone_from(&old.attributes);
            new.launch.cooperative = old.launch.cooperative;
            Ok(Work::Kernel(new))
        }
        _ => Err(CudaError::InvalidValue),
    }
}

fn set_kernel(node: u64, new: Work) -> Result<(), CudaError> {
    graph::with_node(node, |node| {
        node.work = replace_kernel(&node.work, new)?;
        Ok(())
    })
}

/// A copy as the program says it.
pub fn copy_work(parameters: &Memcpy3DParameters) -> Result<Work, CudaError> {
    let copy = copy_parameters::copy_of(parameters)?;
    Ok(Work::Copy(Box::new(CopyWork { copy, parameters: Some(*parameters) })))
}

/// A copy as programs ask for it.
pub fn copy_parameters(work: &Work) -> Result<Memcpy3DParameters, CudaError> {
    match work {
        Work::Copy(work) => Ok(work.parameters.unwrap_or_else(|| copy_parameters::parameters_of(&work.copy))),
        _ => Err(CudaError::InvalidValue),
    }
}

/// A copy of bytes in a row.
pub fn linear_copy(destination: u64, source: u64, bytes: usize, kind: c_int) -> Result<Work, CudaError> {
    if bytes == 0 {
        return Err(CudaError::InvalidValue);
    }
    Direction::of_code(kind)?.check(destination, source)?;
    let bytes = bytes as u64;
    let copy = Copy {
        destination: End::linear(destination, bytes),
        source: End::linear(source, bytes),
        shape: CopyShape::linear(bytes),
    };
    Ok(Work::Copy(Box::new(CopyWork { copy, parameters: None })))
}

/// Address of `bytes` bytes from `offset` on of a variable.
pub fn symbol_address(symbol: usize, bytes: usize, offset: usize) -> Result<u64, CudaError> {
    let variable = registry::variable(symbol)?.loaded()?;
    let end = (offset as u64).checked_add(bytes as u64).ok_or(CudaError::InvalidValue)?;
    if end > variable.bytes {
        return Err(CudaError::InvalidValue);
    }
    Ok(variable.address + offset as u64)
}

/// Refuses an event that is none.
fn event_exists(event: u64) -> Result<u64, CudaError> {
    event::number(event).map(|_| event)
}

/// A function of the program, which must be given.
pub fn host_work(parameters: HostNodeParams) -> Result<Work, CudaError> {
    if parameters.function == 0 { Err(CudaError::InvalidValue) } else { Ok(Work::Host(parameters)) }
}

fn attribute(node: u64, attribute: u32) -> Result<[u64; 8], CudaError> {
    const COOPERATIVE: u32 = 2;
    const LAST: u32 = 18;
    graph::with_node(node, |node| match &node.work {
        Work::Kernel(_) if !(1..=LAST).contains(&attribute) => Err(CudaError::InvalidValue),
        Work::Kernel(kernel) if attribute == COOPERATIVE => {
            Ok([u64::from(kernel.launch.cooperative), 0, 0, 0, 0, 0, 0, 0])
        }
        Work::Kernel(kernel) => Ok(kernel.attributes.get(&attribute).copied().unwrap_or_default()),
        _ => Err(CudaError::InvalidValue),
    })
}

fn set_attribute(node: u64, attribute: u32, value: [u64; 8]) -> Result<(), CudaError> {
    const COOPERATIVE: u32 = 2;
    self::attribute(node, attribute)?;
    graph::with_node(node, |node| {
        let Work::Kernel(kernel) = &mut node.work else { return Err(CudaError::InvalidValue) };
        if attribute == COOPERATIVE {
            kernel.launch.cooperative = value[0] as u32 != 0;
        }
        kernel.attributes.insert(attribute, value);
        Ok(())
    })
}

fn copy_attributes(destination: u64, source: u64) -> Result<(), CudaError> {
    let (attributes, cooperative) = graph::with_node(source, |node| match &node.work {
        Work::Kernel(kernel) => Ok((kernel.attributes.clone(), kernel.launch.cooperative)),
        _ => Err(CudaError::InvalidValue),
    })?;
    graph::with_node(destination, |node| {
        let Work::Kernel(kernel) = &mut node.work else { return Err(CudaError::InvalidValue) };
        kernel.attributes = attributes;
        kernel.launch.cooperative = cooperative;
        Ok(())
    })
}

cuda_api! {
    fn cudaGraphAddKernelNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        parameters: In<KernelNodeParams>,
    ) {
        // SAFETY: CUDA's contract.
        add_plain(node, graph, after, count, unsafe { kernel_work(&parameters.get()?)? })
    }

    fn cudaGraphKernelNodeGetParams(node: u64, parameters: Out<KernelNodeParams>) {
        parameters.check()?;
        parameters.set(graph::with_node(node, |node| match &mut node.work {
            Work::Kernel(kernel) => kernel_parameters(kernel),
            _ => Err(CudaError::InvalidValue),
        })?)
    }

    fn cudaGraphKernelNodeSetParams(node: u64, parameters: In<KernelNodeParams>) {
        // SAFETY: CUDA's contract.
        set_kernel(node, unsafe { kernel_work(&parameters.get()?)? })
    }

    fn cudaGraphKernelNodeGetAttribute(node: u64, kind: u32, value: Out<[u64; 8]>) {
        value.check()?;
        value.set(attribute(node, kind)?)
    }

    fn cudaGraphKernelNodeSetAttribute(node: u64, kind: u32, value: In<[u64; 8]>) {
        set_attribute(node, kind, value.get()?)
    }

    fn cudaGraphKernelNodeCopyAttributes(source: u64, destination: u64) {
        copy_attributes(destination, source)
    }

    fn cudaGraphKernelNodeCopyAttributes_13(destination: u64, source: u64) {
        copy_attributes(destination, source)
    }

    fn cudaGraphAddMemcpyNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        parameters: In<Memcpy3DParameters>,
    ) {
        add_plain(node, graph, after, count, copy_work(&parameters.get()?)?)
    }

    fn cudaGraphMemcpyNodeGetParams(node: u64, parameters: Out<Memcpy3DParameters>) {
        parameters.set(graph::with_node(node, |node| copy_parameters(&node.work))?)
    }

    fn cudaGraphMemcpyNodeSetParams(node: u64, parameters: In<Memcpy3DParameters>) {
        set(node, copy_work(&parameters.get()?)?)
    }

    fn cudaGraphAddMemcpyNode1D(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        destination: u64,
        source: u64,
        bytes: usize,
        kind: c_int,
    ) {
        add_plain(node, graph, after, count, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParams1D(node: u64, destination: u64, source: u64, bytes: usize, kind: c_int) {
        set(node, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        symbol: usize,
        source: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let destination = symbol_address(symbol, bytes, offset)?;
        add_plain(node, graph, after, count, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: u64,
        symbol: usize,
        source: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        set(node, linear_copy(symbol_address(symbol, bytes, offset)?, source, bytes, kind)?)
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        destination: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let source = symbol_address(symbol, bytes, offset)?;
        add_plain(node, graph, after, count, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: u64,
        destination: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        set(node, linear_copy(destination, symbol_address(symbol, bytes, offset)?, bytes, kind)?)
    }

    fn cudaGraphAddMemsetNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<MemsetParams>) {
        add_plain(node, graph, after, count, Work::of_memset(&parameters.get()?)?)
    }

    fn cudaGraphMemsetNodeGetParams(node: u64, parameters: Out<MemsetParams>) {
        parameters.set(graph::with_node(node, |node| node.work.memset_parameters())?)
    }

    fn cudaGraphMemsetNodeSetParams(node: u64, parameters: In<MemsetParams>) {
        set(node, Work::of_memset(&parameters.get()?)?)
    }

    fn cudaGraphAddHostNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<HostNodeParams>) {
        add_plain(node, graph, after, count, host_work(parameters.get()?)?)
    }

    fn cudaGraphHostNodeGetParams(node: u64, parameters: Out<HostNodeParams>) {
        parameters.set(graph::with_node(node, |node| match node.work {
            Work::Host(host) => Ok(host),
            _ => Err(CudaError::InvalidValue),
        })?)
    }

    fn cudaGraphHostNodeSetParams(node: u64, parameters: In<HostNodeParams>) {
        set(node, host_work(parameters.get()?)?)
    }

    fn cudaGraphAddChildGraphNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, child: u64) {
        if graph == child {
            return Err(CudaError::InvalidValue);
        }
        add_plain(node, graph, after, count, Work::Graph(child))
    }

    fn cudaGraphAddEmptyNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize) {
        add_plain(node, graph, after, count, Work::Empty)
    }

    fn cudaGraphAddEventRecordNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        add_plain(node, graph, after, count, Work::EventRecord(event_exists(event)?))
    }

    fn cudaGraphAddEventWaitNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        add_plain(node, graph, after, count, Work::EventWait(event_exists(event)?))
    }

    fn cudaGraphEventRecordNodeGetEvent(node: u64, event: Out<u64>) {
        event.set(graph::with_node(node, |node| match node.work {
            Work::EventRecord(event) => Ok(event),
            _ => Err(CudaError::InvalidValue),
        })?)
    }

    fn cudaGraphEventRecordNodeSetEvent(node: u64, event: u64) {
        set(node, Work::EventRecord(event_exists(event)?))
    }

    fn cudaGraphEventWaitNodeGetEvent(node: u64, event: Out<u64>) {
        event.set(graph::with_node(node, |node| match node.work {
            Work::EventWait(event) => Ok(event),
            _ => Err(CudaError::InvalidValue),
        })?)
    }

    fn cudaGraphEventWaitNodeSetEvent(node: u64, event: u64) {
        set(node, Work::EventWait(event_exists(event)?))
    }
}
