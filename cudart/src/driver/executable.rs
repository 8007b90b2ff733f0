//! Executable graphs: making, launching and changing them.

use crate::abi::arguments::Out;
use crate::abi::graph::{InstantiateParams, UpdateResultInfo, update_result};
use crate::abi::stream::StreamHandle;
use crate::session::api::Outcome;
use crate::session::graph::executable;
use crate::{driver_api, forwards};
use balar_host::CudaError;
use std::ffi::c_char;

fn instantiate(place: Out<u64>, graph: u64, error_node: Out<u64>, log: Out<c_char>, log_bytes: usize) -> Outcome {
    place.check()?;
    let made = executable::instantiate(graph, 0);
    error_node.set_if_wanted(made.map_or_else(|error| error.node, |_| 0));
    if log_bytes > 0 {
        // The log adds nothing to the error.
        log.set_if_wanted(0);
    }
    place.set(made.map_err(|error| error.error)?)
}

forwards! {
    context fn cuGraphExecDestroy(executable: u64) => graph::launch::destroy;
    stream fn cuGraphLaunch(executable: u64, stream: StreamHandle) => order::graph_launch::launch;
    stream fn cuGraphUpload(executable: u64, stream: StreamHandle) => order::graph_launch::upload;
    context fn cuGraphNodeSetEnabled(executable: u64, node: u64, is_enabled: u32) => graph::executable::set_enabled;
}

driver_api! {
    context fn cuGraphInstantiate(
        executable: Out<u64>, graph: u64, error_node: Out<u64>, log: Out<c_char>, log_bytes: usize,
    ) {
        instantiate(executable, graph, error_node, log, log_bytes)
    }

    context fn cuGraphInstantiate_v2(
        executable: Out<u64>, graph: u64, error_node: Out<u64>, log: Out<c_char>, log_bytes: usize,
    ) {
        instantiate(executable, graph, error_node, log, log_bytes)
    }

    context fn cuGraphInstantiateWithFlags(executable: Out<u64>, graph: u64, flags: u64) {
        executable.check()?;
        executable.set(executable::instantiate(graph, flags).map_err(|error| error.error)?)
    }

    stream fn cuGraphInstantiateWithParams(executable: Out<u64>, graph: u64, parameters: Out<InstantiateParams>) {
        executable.check()?;
        parameters.check()?;
        // SAFETY: a place that is not null holds the parameters.
        let mut filled = unsafe { parameters.pointer().read_unaligned() };
        let made = executable::instantiate_with(graph, &mut filled);
        parameters.set(filled)?;
        executable.set(made?)
    }

    context fn cuGraphExecGetFlags(executable: u64, flags: Out<u64>) {
        flags.set(executable::with(executable, |executable| Ok(executable.flags))?)
    }

    context fn cuGraphExecUpdate(executable: u64, graph: u64, error_node: Out<u64>, result: Out<u32>) {
        let outcome = executable::update(executable, graph)?;
        error_node.set_if_wanted(outcome.map_or_else(|error| error.node, |()| 0));
        result.set_if_wanted(outcome.map_or_else(|error| error.result, |()| update_result::SUCCESS));
        outcome.map_err(|_| CudaError::GraphExecUpdateFailure)
    }

    context fn cuGraphExecUpdate_v2(executable: u64, graph: u64, result: Out<UpdateResultInfo>) {
        result.check()?;
        let outcome = executable::update(executable, graph)?;
        let mut info = UpdateResultInfo::default();
        if let Err(error) = outcome {
            (info.result, info.error_node) = (error.result, error.node);
        }
        result.set(info)?;
        outcome.map_err(|_| CudaError::GraphExecUpdateFailure)
    }

    context fn cuGraphNodeGetEnabled(executable: u64, node: u64, is_enabled: Out<u32>) {
        is_enabled.set(u32::from(executable::is_enabled(executable, node)?))
    }
}
