//! Facts about an address.

use crate::session::addresses::ranges::{self, Range, Sharing};
use crate::session::connection;
use balar_host::call::{AllocationKind, PointerDescription};
use balar_host::{Call, CallResult, CudaError, memory};

/// The allocation that an address is in.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its kind.
    pub kind: AllocationKind,
    /// The device that has it, or that was current when it was allocated.
    pub device: u32,
    /// First address, as the program knows the memory.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// The devices' address of the byte that the program asks about.
    pub for_devices: u64,
    /// The host's, if it has one.
    pub for_host: Option<u64>,
}

impl Known {
    fn in_range(range: Range, offset: u64) -> Known {
        let kind = if range.sharing == Sharing::Managed { AllocationKind::Managed } else { AllocationKind::Host };
        Known {
            kind,
            device: range.device,
            base: range.start,
            bytes: range.bytes,
            for_devices: range.window + offset,
            for_host: Some(range.start + offset),
        }
    }
}

/// The facts about an address that are known without asking the simulator.
pub fn in_ranges(address: u64) -> Option<Known> {
    if let Some(range) = ranges::find(address) {
        return Some(Known::in_range(range, address - range.start));
    }
    if memory::place_of(address) != memory::Place::HostWindow {
        return None;
    }
    ranges::find_by_window(address).map(|range| Known::in_range(range, address - range.window))
}

/// The facts about an address; `None` if CUDA does not know it.
pub fn known(address: u64) -> Result<Option<Known>, CudaError> {
    if let Some(known) = in_ranges(address) {
        return Ok(Some(known));
    }
    let CallResult::PointerInfo(found) = connection::call(&Call::PointerInfo { pointer: address })? else {
        return Err(CudaError::Unknown);
    };
    Ok(found.map(|PointerDescription { kind, device, base, bytes }| {
        let for_host = (kind != AllocationKind::Device).then_some(address);
        Known { kind, device, base, bytes, for_devices: address, for_host }
    }))
}
