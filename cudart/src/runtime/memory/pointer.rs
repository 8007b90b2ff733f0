//! Attributes of addresses (`cudaPointerGetAttributes`).

use crate::abi::arguments::Out;
use crate::abi::pointer::{PointerAttributes, PointerAttributes13, memory_type};
use crate::runtime_api;
use crate::session::addresses::pointer::{self, Known};
use crate::session::connection::description;
use balar_host::call::AllocationKind;
use balar_host::{CudaError, memory};
use std::ffi::c_int;

fn described(known: &Known) -> PointerAttributes {
    PointerAttributes {
        kind: match known.kind {
            AllocationKind::Device => memory_type::DEVICE,
            AllocationKind::Host => memory_type::HOST,
            AllocationKind::Managed => memory_type::MANAGED,
        },
        device: known.device as c_int,
        device_pointer: known.for_devices,
        host_pointer: known.for_host.unwrap_or(0),
    }
}

fn attributes(address: u64) -> Result<PointerAttributes, CudaError> {
    description::description()?;
    if address == 0 {
        return Err(CudaError::InvalidValue);
    }
    // The simulator knows nothing of addresses beyond the node's memory: it is not asked about them.
    let known = match pointer::in_ranges(address) {
        None if memory::place_of(address) == memory::Place::Elsewhere => None,
        None => pointer::known(address)?,
        known => known,
    };
    // Memory that only the host knows has no device.
    let unregistered =
        PointerAttributes { kind: memory_type::UNREGISTERED, device: -2, device_pointer: 0, host_pointer: address };
    Ok(known.map_or(unregistered, |known| described(&known)))
}

runtime_api! {
    fn cudaPointerGetAttributes(result: Out<PointerAttributes>, pointer: u64) {
        result.check()?;
        result.set(attributes(pointer)?)
    }

    fn cudaPointerGetAttributes_13(result: Out<PointerAttributes13>, pointer: u64) {
        result.check()?;
        result.set(PointerAttributes13 { base: attributes(pointer)?, reserved: [0; 8] })
    }
}
