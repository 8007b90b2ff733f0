//! What an address is (`cudaPointerGetAttributes`).

use crate::abi::arguments::Out;
use crate::cuda_api;
use crate::session::ranges::{self, Place, Range, Sharing};
use crate::session::{connection, process, thread};
use balar_host::call::{AllocationKind, PointerDescription};
use balar_host::{Call, CallResult, CudaError, memory};
use std::ffi::c_int;

/// `cudaPointerAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerAttributes {
    /// `cudaMemoryType`.
    pub kind: c_int,
    /// The device that was current when it was allocated.
    pub device: c_int,
    /// The address for devices, or 0.
    pub device_pointer: u64,
    /// The address for the host, or 0.
    pub host_pointer: u64,
}

/// `cudaPointerAttributes` of CUDA 13.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerAttributes13 {
    /// What there was before.
    pub base: PointerAttributes,
    reserved: [i64; 8],
}

/// `cudaMemoryType`.
mod kind {
    pub const UNREGISTERED: i32 = 0;
    pub const HOST: i32 = 1;
    pub const DEVICE: i32 = 2;
    pub const MANAGED: i32 = 3;
}

/// What the simulator knows of an address of the node.
pub fn description(pointer: u64) -> Result<Option<PointerDescription>, CudaError> {
    match connection::call(&Call::PointerInfo { pointer })? {
        CallResult::PointerInfo(description) => Ok(description),
        _ => Err(CudaError::Unknown),
    }
}

fn of_range(range: Range, offset: u64) -> PointerAttributes {
    PointerAttributes {
        kind: if range.sharing == Sharing::Managed { kind::MANAGED } else { kind::HOST },
        device: range.device as c_int,
        device_pointer: range.window + offset,
        host_pointer: range.start + offset,
    }
}

fn attributes(address: u64) -> Result<PointerAttributes, CudaError> {
    process::description()?;
    if address == 0 {
        return Err(CudaError::InvalidValue);
    }
    // Older than unified addresses for everything: memory that only the host knows has no device.
    let unregistered =
        PointerAttributes { kind: kind::UNREGISTERED, device: -2, device_pointer: 0, host_pointer: address };
    if let Some(range) = ranges::find(address) {
        return Ok(of_range(range, address - range.start));
    }
    if memory::place_of(address) == memory::Place::Elsewhere {
        return Ok(unregistered);
    }
    if let Some(range) = ranges::find_by_window(address) {
        return Ok(of_range(range, address - range.window));
    }
    let Some(found) = description(address)? else { return Ok(unregistered) };
    let (kind, host_pointer) = match found.kind {
        AllocationKind::Device => (kind::DEVICE, 0),
        AllocationKind::Host => (kind::HOST, address),
        AllocationKind::Managed => (kind::MANAGED, address),
    };
    Ok(PointerAttributes { kind, device: found.device as c_int, device_pointer: address, host_pointer })
}

/// The device whose memory an address is; the current one's where the host shares it.
pub fn device_of(address: u64) -> u32 {
    match ranges::place(address, 1) {
        Place::Device(device) => device,
        _ => thread::device(),
    }
}

cuda_api! {
    fn cudaPointerGetAttributes(result: Out<PointerAttributes>, pointer: u64) {
        result.check()?;
        result.set(attributes(pointer)?)
    }

    fn cudaPointerGetAttributes_13(result: Out<PointerAttributes13>, pointer: u64) {
        result.check()?;
        result.set(PointerAttributes13 { base: attributes(pointer)?, reserved: [0; 8] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<PointerAttributes>(24, 8);
        check::<PointerAttributes13>(88, 8);
        assert_eq!(std::mem::offset_of!(PointerAttributes, host_pointer), 16);
    }
}
