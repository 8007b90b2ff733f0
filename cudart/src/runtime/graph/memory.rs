//! Nodes that allocate and free memory.

use crate::abi::arguments::{In, Out};
use crate::abi::graph::MemAllocNodeParams;
use crate::runtime_api;
use crate::session::graph::{self, Work, allocation_nodes, footprint};
use crate::session::state::dependency::Dependency;
use std::ffi::c_int;

runtime_api! {
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
        node.check()?;
        node.set(allocation_nodes::add_node(graph, &Dependency::list(after, In::absent(), count)?, &mut filled)?)?;
        parameters.set(filled)
    }

    fn cudaGraphMemAllocNodeGetParams(node: u64, parameters: Out<MemAllocNodeParams>) {
        parameters.set(graph::with_node(node, |node| allocation_nodes::parameters_of(&node.work))?)
    }

    fn cudaGraphAddMemFreeNode(node: Out<u64>, graph: u64, after: In<u64>, count: usize, address: u64) {
        super::nodes::add(node, graph, after, count, Work::free(address)?)
    }

    fn cudaGraphMemFreeNodeGetParams(node: u64, address: Out<u64>) {
        address.set(graph::with_node(node, |node| node.work.freed_address())?)
    }

    fn cudaDeviceGraphMemTrim(device: c_int) {
        footprint::trim(device)
    }

    fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: u32, value: Out<u64>) {
        value.set(footprint::attribute(device, attribute)?)
    }

    fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: u32, value: In<u64>) {
        footprint::set_attribute(device, attribute, value)
    }
}
