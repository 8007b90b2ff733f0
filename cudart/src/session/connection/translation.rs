//! The program's numbers of devices and those of the node: calls are translated on their way to the simulator, which knows the node's
//! numbers alone, and results on their way back.

use crate::session::state::process;
use balar_host::call::{AdviceChange, GraphNode, VirtualMemoryCall};
use balar_host::{Call, CallResult, CudaError};
use std::borrow::Cow;

/// The node's number of a device that the program sees.
pub fn of_node(device: u32) -> Result<u32, CudaError> {
    match process::node() {
        Some(node) if node.numbers.is_empty() => Err(CudaError::NoDevice),
        Some(node) => node.numbers.get(device as usize).copied().ok_or(CudaError::InvalidDevice),
        None => Ok(device),
    }
}

/// The program's number of a device of the node; `u32::MAX` if the program does not see it.
pub fn of_program(device: u32) -> u32 {
    let Some(node) = process::node() else { return device };
    node.numbers.iter().position(|number| *number == device).map_or(u32::MAX, |number| number as u32)
}

/// A call, with the node's numbers of the devices that it names.
pub fn call_of_node(call: &Call) -> Result<Cow<'_, Call>, CudaError> {
    if process::node().is_none_or(|node| node.shows_all()) {
        return Ok(Cow::Borrowed(call));
    }
    let mut call = call.clone();
    translate(&mut call)?;
    Ok(Cow::Owned(call))
}

fn translate(call: &mut Call) -> Result<(), CudaError> {
    match call {
        Call::PeerAccess { peer: device, .. } | Call::Prefetch { device: Some(device), .. } => {
            *device = of_node(*device)?
        }
        Call::Advise {
            advice: AdviceChange::PreferredLocation(Some(gpu)) | AdviceChange::AccessedBy(Some(gpu), _),
            ..
        } => *gpu = of_node(u32::from(*gpu))?.try_into().map_err(|_| CudaError::InvalidDevice)?,
        Call::VirtualMemory(VirtualMemoryCall::GetAccess { device, .. }) => *device = of_node(*device)?,
        Call::VirtualMemory(VirtualMemoryCall::SetAccess { devices, .. }) => {
            for (device, _) in devices {
                *device = of_node(*device)?;
            }
        }
        Call::GraphLaunch { nodes, .. } => {
            translate_nodes(nodes)?;
        }
        _ => {}
    }
    Ok(())
}

/// Translates the calls of a graph's nodes.
fn translate_nodes(nodes: &mut [GraphNode]) -> Result<(), CudaError> {
    for GraphNode { call, conditional, .. } in nodes {
        call.as_deref_mut().map_or(Ok(()), translate)?;
        let graphs = conditional.as_deref_mut().into_iter().flat_map(|conditional| &mut conditional.graphs);
        graphs.into_iter().try_for_each(|graph| translate_nodes(graph))?;
    }
    Ok(())
}

/// A result, with the program's numbers of the devices that it names.
pub fn result_of_program(result: CallResult) -> CallResult {
    match result {
        CallResult::PointerInfo(Some(mut found)) => {
            found.device = of_program(found.device);
            CallResult::PointerInfo(Some(found))
        }
        CallResult::Owner(device) => CallResult::Owner(of_program(device)),
        other => other,
    }
}
