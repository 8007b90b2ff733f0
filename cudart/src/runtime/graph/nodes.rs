//! Nodes of each kind: adding them, asking for their parameters, changing those.

use crate::abi::arguments::{In, Out};
use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{HostNodeParams, KernelNodeParams, MemsetParams};
use crate::runtime::memory::copy::Direction;
use crate::runtime::memory::symbol;
use crate::runtime_api;
use crate::session::addresses::copy::{Copy, End};
use crate::session::graph::node::CopyWork;
use crate::session::graph::{self, Work, kernel};
use crate::session::state::dependency::Dependency;
use balar_host::CudaError;
use balar_host::call::CopyShape;
use std::ffi::c_int;

/// Adds a node after others.
pub fn add(node: Out<u64>, graph: u64, after: In<u64>, count: usize, work: Work) -> Result<(), CudaError> {
    node.check()?;
    node.set(graph::add(graph, &Dependency::list(after, In::absent(), count)?, work)?)
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

runtime_api! {
    fn cudaGraphAddKernelNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        parameters: In<KernelNodeParams>,
    ) {
        // SAFETY: CUDA's contract.
        add(node, graph, after, count, unsafe { kernel::work_of(&parameters.get()?)? })
    }

    fn cudaGraphKernelNodeGetParams(node: u64, parameters: Out<KernelNodeParams>) {
        parameters.check()?;
        parameters.set(kernel::get(node)?)
    }

    fn cudaGraphKernelNodeSetParams(node: u64, parameters: In<KernelNodeParams>) {
        // SAFETY: CUDA's contract.
        kernel::set(node, unsafe { kernel::work_of(&parameters.get()?)? })
    }

    fn cudaGraphKernelNodeGetAttribute(node: u64, kind: u32, value: Out<[u64; 8]>) {
        value.check()?;
        value.set(kernel::attribute(node, kind)?)
    }

    fn cudaGraphKernelNodeSetAttribute(node: u64, kind: u32, value: In<[u64; 8]>) {
        kernel::set_attribute(node, kind, value.get()?)
    }

    fn cudaGraphKernelNodeCopyAttributes(source: u64, destination: u64) {
        kernel::copy_attributes(destination, source)
    }

    fn cudaGraphKernelNodeCopyAttributes_13(destination: u64, source: u64) {
        kernel::copy_attributes(destination, source)
    }

    fn cudaGraphAddMemcpyNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: usize,
        parameters: In<Memcpy3DParameters>,
    ) {
        add(node, graph, after, count, Work::copy(&parameters.get()?)?)
    }

    fn cudaGraphMemcpyNodeGetParams(node: u64, parameters: Out<Memcpy3DParameters>) {
        parameters.set(graph::with_node(node, |node| node.work.copy_parameters())?)
    }

    fn cudaGraphMemcpyNodeSetParams(node: u64, parameters: In<Memcpy3DParameters>) {
        graph::set(node, Work::copy(&parameters.get()?)?)
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
        add(node, graph, after, count, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParams1D(node: u64, destination: u64, source: u64, bytes: usize, kind: c_int) {
        graph::set(node, linear_copy(destination, source, bytes, kind)?)
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
        let destination = symbol::address(symbol, offset, bytes)?;
        add(node, graph, after, count, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: u64,
        symbol: usize,
        source: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        graph::set(node, linear_copy(symbol::address(symbol, offset, bytes)?, source, bytes, kind)?)
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
        let source = symbol::address(symbol, offset, bytes)?;
        add(node, graph, after, count, linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: u64,
        destination: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        graph::set(node, linear_copy(destination, symbol::address(symbol, offset, bytes)?, bytes, kind)?)
    }

    fn cudaGraphAddMemsetNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<MemsetParams>) {
        add(node, graph, after, count, Work::of_memset(&parameters.get()?)?)
    }

    fn cudaGraphMemsetNodeGetParams(node: u64, parameters: Out<MemsetParams>) {
        parameters.set(graph::with_node(node, |node| node.work.memset_parameters())?)
    }

    fn cudaGraphMemsetNodeSetParams(node: u64, parameters: In<MemsetParams>) {
        graph::set(node, Work::of_memset(&parameters.get()?)?)
    }

    fn cudaGraphAddHostNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, parameters: In<HostNodeParams>) {
        add(node, graph, after, count, Work::host(parameters.get()?)?)
    }

    fn cudaGraphHostNodeGetParams(node: u64, parameters: Out<HostNodeParams>) {
        parameters.set(graph::with_node(node, |node| node.work.host_parameters())?)
    }

    fn cudaGraphHostNodeSetParams(node: u64, parameters: In<HostNodeParams>) {
        graph::set(node, Work::host(parameters.get()?)?)
    }

    fn cudaGraphAddChildGraphNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, child: u64) {
        node.check()?;
        node.set(graph::add_child(graph, &Dependency::list(after, In::absent(), count)?, child)?)
    }

    fn cudaGraphAddEmptyNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize) {
        add(node, graph, after, count, Work::Empty)
    }

    fn cudaGraphAddEventRecordNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        add(node, graph, after, count, Work::event_record(event)?)
    }

    fn cudaGraphAddEventWaitNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        add(node, graph, after, count, Work::event_wait(event)?)
    }

    fn cudaGraphEventRecordNodeGetEvent(node: u64, event: Out<u64>) {
        event.set(graph::with_node(node, |node| node.work.recorded_event())?)
    }

    fn cudaGraphEventRecordNodeSetEvent(node: u64, event: u64) {
        graph::set(node, Work::event_record(event)?)
    }

    fn cudaGraphEventWaitNodeGetEvent(node: u64, event: Out<u64>) {
        event.set(graph::with_node(node, |node| node.work.awaited_event())?)
    }

    fn cudaGraphEventWaitNodeSetEvent(node: u64, event: u64) {
        graph::set(node, Work::event_wait(event)?)
    }
}
