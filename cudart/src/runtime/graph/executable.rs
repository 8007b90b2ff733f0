//! Executable graphs: making, launching and changing them.

use super::nodes;
use crate::abi::arguments::{In, Out};
use crate::abi::copy::Memcpy3DParameters;
use crate::abi::graph::{
    HostNodeParams, InstantiateParams, KernelNodeParams, MemsetParams, UpdateResultInfo, instantiate_flags,
    update_result,
};
use crate::abi::stream::StreamHandle;
use crate::cuda_api;
use crate::session::graph::executable::{self, InstantiationError, UpdateError};
use crate::session::graph::{self, Work};
use crate::session::stream;
use crate::session::{capture, event, thread};
use balar_host::CudaError;
use std::ffi::{c_char, c_int};

fn instantiate(graph: u64, flags: u64) -> Result<u64, InstantiationError> {
    const KNOWN: u64 = instantiate_flags::AUTO_FREE_ON_LAUNCH
        | instantiate_flags::UPLOAD
        | instantiate_flags::DEVICE_LAUNCH
        | instantiate_flags::USE_NODE_PRIORITY;
    if flags & !KNOWN != 0 {
        return Err(CudaError::InvalidValue.into());
    }
    // Kernels that launch graphs.
    if flags & instantiate_flags::DEVICE_LAUNCH != 0 {
        return Err(CudaError::NotSupported.into());
    }
    executable::instantiate(graph, thread::device(), flags)
}

fn instantiate_into(place: Out<u64>, graph: u64, flags: u64) -> Result<(), CudaError> {
    place.check()?;
    place.set(instantiate(graph, flags).map_err(|error| error.error)?)
}

fn instantiate_with(place: Out<u64>, graph: u64, parameters: Out<InstantiateParams>) -> Result<(), CudaError> {
    const SUCCESS: u32 = 0;
    const ERROR: u32 = 1;
    const INVALID_STRUCTURE: u32 = 2;
    const OPERATION_NOT_SUPPORTED: u32 = 3;
    place.check()?;
    parameters.check()?;
    // SAFETY: a place that is not null holds the parameters.
    let mut filled = unsafe { parameters.pointer().read_unaligned() };
    let made = instantiate(graph, filled.flags);
    filled.error_node = made.map_or_else(|error| error.node, |_| 0);
    filled.result = match made {
        Ok(_) => SUCCESS,
        Err(InstantiationError { error: CudaError::NotSupported, .. }) => OPERATION_NOT_SUPPORTED,
        Err(InstantiationError { node, .. }) if node != 0 => INVALID_STRUCTURE,
        Err(_) => ERROR,
    };
    parameters.set(filled)?;
    place.set(made.map_err(|error| error.error)?)
}

/// Launches an executable graph, or makes a child graph of it where the stream is captured.
fn launch(handle: u64, stream: StreamHandle) -> Result<(), CudaError> {
    let stream = stream::resolve(stream)?;
    let as_graph = || executable::with(handle, |executable| executable.as_graph()).map(Work::Graph);
    let mut child = None;
    let taken = capture::take_work(&stream, || {
        let work = as_graph()?;
        if let Work::Graph(graph) = work {
            child = Some(graph);
        }
        Ok(work)
    });
    // The node has a copy.
    if let Some(child) = child {
        graph::destroy(child)?;
    }
    if taken?.is_some() {
        return Ok(());
    }
    executable::with(handle, |executable| executable.launch(stream.device, stream.number))
}

fn update(handle: u64, graph: u64) -> Result<Result<(), UpdateError>, CudaError> {
    graph::with(graph, |_| Ok(()))?;
    executable::with(handle, |executable| Ok(executable.update(graph)))
}

fn set(handle: u64, node: u64, work: Work) -> Result<(), CudaError> {
    executable::with(handle, |executable| executable.set_work(node, work))
}

fn set_event(handle: u64, node: u64, event: u64, work: impl Fn(u64) -> Work) -> Result<(), CudaError> {
    event::number(event)?;
    set(handle, node, work(event))
}

cuda_api! {
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
        let made = instantiate(graph, 0);
        error_node.set_if_wanted(made.map_or_else(|error| error.node, |_| 0));
        if log_bytes > 0 {
            // Nothing is said that the error does not.
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
        executable::destroy(executable)
    }

    stream fn cudaGraphLaunch(executable: u64, stream: StreamHandle) {
        launch(executable, stream)
    }

    stream fn cudaGraphUpload(executable: u64, stream: StreamHandle) {
        capture::forbid(&stream::resolve(stream)?)?;
        // A launch carries all that it needs.
        executable::with(executable, |_| Ok(()))
    }

    fn cudaGraphExecUpdate(executable: u64, graph: u64, result: Out<UpdateResultInfo>) {
        result.check()?;
        let outcome = update(executable, graph)?;
        let mut info = UpdateResultInfo::default();
        if let Err(error) = outcome {
            info.result = error.result;
            info.error_node = error.node;
        }
        result.set(info)?;
        outcome.map_err(|_| CudaError::GraphExecUpdateFailure)
    }

    fn cudaGraphExecUpdate_11(executable: u64, graph: u64, error_node: Out<u64>, result: Out<u32>) {
        let outcome = update(executable, graph)?;
        error_node.set_if_wanted(outcome.map_or_else(|error| error.node, |()| 0));
        result.set_if_wanted(outcome.map_or_else(|error| error.result, |()| update_result::SUCCESS));
        outcome.map_err(|_| CudaError::GraphExecUpdateFailure)
    }

    fn cudaGraphExecKernelNodeSetParams(executable: u64, node: u64, parameters: In<KernelNodeParams>) {
        // SAFETY: CUDA's contract.
        let new = unsafe { nodes::kernel_work(&parameters.get()?)? };
        executable::with(executable, |executable| {
            let new = nodes::replace_kernel(&executable.step(node)?.work, new)?;
            executable.set_work(node, new)
        })
    }

    fn cudaGraphExecMemcpyNodeSetParams(executable: u64, node: u64, parameters: In<Memcpy3DParameters>) {
        set(executable, node, nodes::copy_work(&parameters.get()?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(
        executable: u64,
        node: u64,
        destination: u64,
        source: u64,
        bytes: usize,
        kind: c_int,
    ) {
        set(executable, node, nodes::linear_copy(destination, source, bytes, kind)?)
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
        let destination = nodes::symbol_address(symbol, bytes, offset)?;
        set(executable, node, nodes::linear_copy(destination, source, bytes, kind)?)
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
        let source = nodes::symbol_address(symbol, bytes, offset)?;
        set(executable, node, nodes::linear_copy(destination, source, bytes, kind)?)
    }

    fn cudaGraphExecMemsetNodeSetParams(executable: u64, node: u64, parameters: In<MemsetParams>) {
        set(executable, node, Work::of_memset(&parameters.get()?)?)
    }

    fn cudaGraphExecHostNodeSetParams(executable: u64, node: u64, parameters: In<HostNodeParams>) {
        set(executable, node, nodes::host_work(parameters.get()?)?)
    }

    fn cudaGraphExecEventRecordNodeSetEvent(executable: u64, node: u64, event: u64) {
        set_event(executable, node, event, Work::EventRecord)
    }

    fn cudaGraphExecEventWaitNodeSetEvent(executable: u64, node: u64, event: u64) {
        set_event(executable, node, event, Work::EventWait)
    }

    fn cudaGraphExecChildGraphNodeSetParams(executable: u64, node: u64, child: u64) {
        executable::with(executable, |executable| {
            executable.update_child(node, child).map_err(|_| CudaError::GraphExecUpdateFailure)
        })
    }

    fn cudaGraphNodeSetEnabled(executable: u64, node: u64, is_enabled: u32) {
        executable::with(executable, |executable| {
            let step = executable.step(node)?;
            if !step.work.can_be_disabled() {
                return Err(CudaError::InvalidValue);
            }
            step.is_enabled = is_enabled != 0;
            Ok(())
        })
    }

    fn cudaGraphNodeGetEnabled(executable: u64, node: u64, is_enabled: Out<u32>) {
        is_enabled.set(executable::with(executable, |executable| {
            let step = executable.step(node)?;
            if step.work.can_be_disabled() { Ok(u32::from(step.is_enabled)) } else { Err(CudaError::InvalidValue) }
        })?)
    }
}
