//! Which devices of the node the program sees, and in which order (`CUDA_VISIBLE_DEVICES`).
//!
//! The program's numbers are those of the devices that it sees. The simulator knows the node's numbers alone: calls are translated on
//! their way to it, results on their way back.

use super::process;
use balar_host::call::{AdviceChange, GraphNode, VirtualMemoryCall};
use balar_host::{Call, CallResult, CudaError};
use std::borrow::Cow;
use std::fmt::Write;

/// The environment variable with the list.
pub const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";
/// How the name of a device by its identity begins; enough of it to tell the devices apart follows.
const IDENTITY: &str = "GPU-";

/// The identity of a device, by the node's number, which no other of the node has.
pub fn uuid(number: u32) -> [u8; 16] {
    let mut uuid = *b"balar-actors \0\0\0";
    uuid[12..].copy_from_slice(&number.to_be_bytes());
    uuid
}

/// An identity as `CUDA_VISIBLE_DEVICES` has it.
pub fn identity(number: u32) -> String {
    let mut text = IDENTITY.to_owned();
    for (index, byte) in uuid(number).into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The node's numbers of the devices that a list names. Its first invalid entry ends it; one that is there twice makes it empty.
pub fn visible(list: &str, count: u32) -> Vec<u32> {
    let mut devices = Vec::new();
    for entry in list.split(',') {
        let Some(device) = named(entry.trim(), count) else { break };
        if devices.contains(&device) {
            return Vec::new();
        }
        devices.push(device);
    }
    devices
}

/// The device that an entry names, if it is one.
fn named(entry: &str, count: u32) -> Option<u32> {
    if entry.starts_with(IDENTITY) {
        let entry = entry.to_ascii_lowercase();
        let mut found = (0..count).filter(|device| identity(*device).to_ascii_lowercase().starts_with(&entry));
        let first = found.next()?;
        return found.next().is_none().then_some(first);
    }
    // Anything after the digits is ignored.
    let number = entry.strip_prefix('+').unwrap_or(entry);
    let digits = number.find(|character: char| !character.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok().filter(|device| *device < count)
}

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

/// Of the calls of a graph's nodes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_devices_and_in_which_order() {
        for (list, expected) in [
            ("0", &[0][..]),
            ("2,0", &[2, 0]),
            (" 1 , 3", &[1, 3]),
            ("+1,2x", &[1, 2]),
            ("", &[]),
            ("-1", &[]),
            ("none", &[]),
            ("NoDevFiles", &[]),
            ("1,-1,2", &[1]),
            ("0,4,1", &[0]),
            ("3,,1", &[3]),
            ("99999999999999999999", &[]),
            ("1,0,1", &[]),
        ] {
            assert_eq!(visible(list, 4), expected, "{list:?}");
        }
    }

    #[test]
    fn devices_can_be_named_by_identity() {
        // "balar-actors" and the number, in hexadecimal digits.
        assert_eq!(identity(1), "GPU-62616c61-722d-6163-746f-727300000001");
        assert_eq!(visible(&format!("{},{}", identity(1), identity(0)), 2), [1, 0]);
        assert_eq!(visible(&identity(1).to_ascii_uppercase(), 2), [1]);
        // As much as tells the devices apart: anything for one device, all of it for two.
        assert_eq!(visible("GPU-6261", 1), [0]);
        assert_eq!(visible("GPU-6261", 2), []);
        assert_eq!(visible(&format!("0,{}", identity(7)), 2), [0]);
    }
}
