//! Executable graphs: making, launching and changing them.

use super::nodes;
use crate::abi::arguments::{In, Out};
use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{
    HostNodeParams, InstantiateParams, KernelNodeParams, MemsetParams, UpdateResultInfo, update_result,
};
use crate::abi::stream::StreamHandle;
use crate::runtime::memory::symbol;
use crate::runtime_api;
use crate::session::graph::{Work, executable, kernel, launch};
use crate::session::order::graph_launch;
use balar_host::CudaError;
use std::ffi::{c_char, c_int};

fn instantiate_into(place: Out<u64>, graph: u64, flags: u64) -> Result<(), CudaError> {
    place.check()?;
    place.set(executable::instantiate(graph, flags).map_err(|error| error.error)?)
}

fn instantiate_with(place: Out<u64>, graph: u64, parameters: Out<InstantiateParams>) -> Result<(), CudaError> {
    place.check()?;
    parameters.check()?;
    // SAFETY: a place that is not null holds the parameters.
    let mut filled = unsafe { parameters.pointer().read_unaligned() };
    let made = executable::instantiate_with(graph, &mut filled);
    parameters.set(filled)?;
    place.set(made?)
}

runtime_api! {
    fn cudaGraphInstantiate(executable: Out<u64>, graph: u64, flags: u64) {
        instantiate_into(executable, graph, flags)
    }

    fn cudaGraphInstantiate_11(
        executable: Out<u64>,
        graph: u64,
        error_node: Out<u64>,
        log: Out<c_char>,
        log_bytes: usize,
    ) {
        executable.check()?;
        let made = executable::instantiate(graph, 0);
        error_node.set_if_wanted(made.map_or_else(|error| error.node, |_| 0));
        if log_bytes > 0 {
            // The log adds nothing to the error.
            log.set_if_wanted(0);
        }
        executable.set(made.map_err(|error| error.error)?)
    }

    fn cudaGraphInstantiateWithFlags(executable: Out<u64>, graph: u64, flags: u64) {
        instantiate_into(executable, graph, flags)
    }

    stream fn cudaGraphInstantiateWithParams(executable: Out<u64>, graph: u64, parameters: Out<InstantiateParams>) {
        instantiate_with(executable, graph, parameters)
    }

    fn cudaGraphExecGetFlags(executable: u64, flags: Out<u64>) {
        flags.set(executable::with(executable, |executable| Ok(executable.flags))?)
    }

    fn cudaGraphExecDestroy(executable: u64) {
        launch::destroy(executable)
    }

    stream fn cudaGraphLaunch(executable: u64, stream: StreamHandle) {
        graph_launch::launch(executable, stream)
    }

    stream fn cudaGraphUpload(executable: u64, stream: StreamHandle) {
        graph_launch::upload(executable, stream)
    }

    fn cudaGraphExecUpdate(executable: u64, graph: u64, result: Out<UpdateResultInfo>) {
        result.check()?;
        let outcome = executable::update(executable, graph)?;
        let mut info = UpdateResultInfo::default();
        if let Err(error) = outcome {
            info.result = error.result;
            info.error_node = error.node;
        }
        result.set(info)?;
        outcome.map_err(|_| CudaError::GraphExecUpdateFailure)
    }

    fn cudaGraphExecUpdate_11(executable: u64, graph: u64, error_node: Out<u64>, result: Out<u32>) {
        let outcome = executable::update(executable, graph)?;
        error_node.set_if_wanted(outcome.map_or_else(|error| error.node, |()| 0));
        result.set_if_wanted(outcome.map_or_else(|error| error.result, |()| update_result::SUCCESS));
        outcome.map_err(|_| CudaError::GraphExecUpdateFailure)
    }

    fn cudaGraphExecKernelNodeSetParams(executable: u64, node: u64, parameters: In<KernelNodeParams>) {
        // SAFETY: CUDA's contract.
        executable::set(executable, node, unsafe { kernel::work_of(&parameters.get()?)? })
    }

    fn cudaGraphExecMemcpyNodeSetParams(executable: u64, node: u64, parameters: In<Memcpy3DParameters>) {
        executable::set(executable, node, Work::copy(&parameters.get()?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(
        executable: u64,
        node: u64,
        destination: u64,
        source: u64,
        bytes: usize,
        kind: c_int,
    ) {
        executable::set(executable, node, nodes::linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        executable: u64,
        node: u64,
        symbol: usize,
        source: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let destination = symbol::address(symbol, offset, bytes)?;
        executable::set(executable, node, nodes::linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        executable: u64,
        node: u64,
        destination: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
    ) {
        let source = symbol::address(symbol, offset, bytes)?;
        executable::set(executable, node, nodes::linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphExecMemsetNodeSetParams(executable: u64, node: u64, parameters: In<MemsetParams>) {
        executable::set(executable, node, Work::of_memset(&parameters.get()?)?)
    }

    fn cudaGraphExecHostNodeSetParams(executable: u64, node: u64, parameters: In<HostNodeParams>) {
        executable::set(executable, node, Work::host(parameters.get()?)?)
    }

    fn cudaGraphExecEventRecordNodeSetEvent(executable: u64, node: u64, event: u64) {
        executable::set(executable, node, Work::event_record(event)?)
    }

    fn cudaGraphExecEventWaitNodeSetEvent(executable: u64, node: u64, event: u64) {
        executable::set(executable, node, Work::event_wait(event)?)
    }

    fn cudaGraphExecChildGraphNodeSetParams(executable: u64, node: u64, child: u64) {
        executable::set(executable, node, Work::Graph(child))
    }

    fn cudaGraphNodeSetEnabled(executable: u64, node: u64, is_enabled: u32) {
        executable::set_enabled(executable, node, is_enabled)
    }

    fn cudaGraphNodeGetEnabled(executable: u64, node: u64, is_enabled: Out<u32>) {
        is_enabled.set(u32::from(executable::is_enabled(executable, node)?))
    }
}
