//! Virtual memory management: address ranges, memory, and mappings.
//!
//! Memory is a device's, no other process gets it, and none of it is compressed. A mapping that may only be read may be written, too.

use crate::abi::arguments::{In, Out};
use crate::abi::pool::{ACCESS_READ_WRITE, MemAccessDesc, MemAllocationProps, MemLocation, location_type};
use crate::driver_api;
use crate::session::addresses::ranges;
use crate::session::connection::{self, description};
use balar_host::call::{GRANULARITY, MemoryAccess, VirtualMemoryCall};
use balar_host::{Call, CallResult, CudaError};
use std::ffi::{c_int, c_void};

/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
const PINNED: u32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READ`.
const ACCESS_READ: u32 = 1;
/// `CU_MEM_ALLOC_GRANULARITY_RECOMMENDED`, the higher of two.
const GRANULARITY_RECOMMENDED: u32 = 1;

/// The device of a location: the host has no memory of this kind.
fn device_at(location: MemLocation) -> Result<u32, CudaError> {
    match location.kind {
        location_type::DEVICE => description::device_of(location.id).map(|_| location.id as u32),
        location_type::HOST | location_type::HOST_NUMA | location_type::HOST_NUMA_CURRENT => {
            Err(CudaError::NotSupported)
        }
        _ => Err(CudaError::InvalidValue),
    }
}

/// The device that memory with these properties is of, whatever else the memory is for.
fn device_of(properties: &MemAllocationProps) -> Result<u32, CudaError> {
    if properties.allocation_type != PINNED {
        return Err(CudaError::InvalidValue);
    }
    device_at(properties.location)
}

/// As [`device_of`], for memory that can be made.
fn device_for(properties: &MemAllocationProps) -> Result<u32, CudaError> {
    let device = device_of(properties)?;
    // Memory for other processes, for other hardware, or for sparse arrays.
    let is_special = properties.handle_types != 0 || properties.rdma_capable != 0 || properties.usage != 0;
    if is_special { Err(CudaError::NotSupported) } else { Ok(device) }
}

fn check_flags(flags: u64) -> Result<(), CudaError> {
    if flags == 0 { Ok(()) } else { Err(CudaError::InvalidValue) }
}

fn call(call: VirtualMemoryCall) -> Result<CallResult, CudaError> {
    connection::call(&Call::VirtualMemory(call))
}

fn done(call: VirtualMemoryCall) -> Result<(), CudaError> {
    self::call(call).map(|_| ())
}

fn object(result: CallResult) -> Result<u64, CudaError> {
    match result {
        CallResult::Object(handle) => Ok(handle),
        _ => Err(CudaError::Unknown),
    }
}

fn access(flags: u32) -> Result<MemoryAccess, CudaError> {
    match flags {
        0 => Ok(MemoryAccess::None),
        ACCESS_READ => Ok(MemoryAccess::Read),
        ACCESS_READ_WRITE => Ok(MemoryAccess::ReadWrite),
        _ => Err(CudaError::InvalidValue),
    }
}

driver_api! {
    fn cuMemGetAllocationGranularity(granularity: Out<usize>, properties: In<MemAllocationProps>, option: u32) {
        granularity.check()?;
        // The same for memory that other processes or hardware may get, although none can be made.
        device_of(&properties.get()?)?;
        if option > GRANULARITY_RECOMMENDED {
            return Err(CudaError::InvalidValue);
        }
        granularity.set(GRANULARITY as usize)
    }

    fn cuMemAddressReserve(pointer: Out<u64>, bytes: usize, alignment: usize, _hint: u64, flags: u64) {
        pointer.check()?;
        check_flags(flags)?;
        let (bytes, alignment) = (bytes as u64, alignment as u64);
        let reserve = Call::VirtualMemory(VirtualMemoryCall::Reserve { bytes, alignment });
        let start = connection::pointer(&reserve)?;
        ranges::note_device_memory(start, bytes);
        pointer.set(start)
    }

    fn cuMemAddressFree(pointer: u64, bytes: usize) {
        done(VirtualMemoryCall::Unreserve { pointer, bytes: bytes as u64 })?;
        ranges::forget_device_memory(pointer);
        Ok(())
    }

    fn cuMemCreate(handle: Out<u64>, bytes: usize, properties: In<MemAllocationProps>, flags: u64) {
        handle.check()?;
        check_flags(flags)?;
        let device = device_for(&properties.get()?)?;
        let create = VirtualMemoryCall::Create { bytes: bytes as u64 };
        handle.set(object(connection::call_on(device, &Call::VirtualMemory(create))?)?)
    }

    fn cuMemRelease(handle: u64) {
        done(VirtualMemoryCall::Release { handle })
    }

    fn cuMemRetainAllocationHandle(handle: Out<u64>, pointer: u64) {
        handle.check()?;
        handle.set(object(call(VirtualMemoryCall::Retain { pointer })?)?)
    }

    fn cuMemGetAllocationPropertiesFromHandle(properties: Out<MemAllocationProps>, handle: u64) {
        properties.check()?;
        let CallResult::Owner(device) = call(VirtualMemoryCall::Owner { handle })? else {
            return Err(CudaError::Unknown);
        };
        let location = MemLocation { kind: location_type::DEVICE, id: device as c_int };
        properties.set(MemAllocationProps::pinned(location))
    }

    fn cuMemMap(pointer: u64, bytes: usize, offset: usize, handle: u64, flags: u64) {
        check_flags(flags)?;
        if offset != 0 {
            return Err(CudaError::InvalidValue);
        }
        done(VirtualMemoryCall::Map { pointer, bytes: bytes as u64, handle })
    }

    fn cuMemUnmap(pointer: u64, bytes: usize) {
        done(VirtualMemoryCall::Unmap { pointer, bytes: bytes as u64 })
    }

    fn cuMemSetAccess(pointer: u64, bytes: usize, wanted: In<MemAccessDesc>, count: usize) {
        if count == 0 {
            return Err(CudaError::InvalidValue);
        }
        let of = |wanted: MemAccessDesc| Ok((device_at(wanted.location)?, access(wanted.flags)?));
        let devices = wanted.array(count)?.into_iter().map(of).collect::<Result<_, CudaError>>()?;
        done(VirtualMemoryCall::SetAccess { pointer, bytes: bytes as u64, devices })
    }

    fn cuMemGetAccess(flags: Out<u64>, location: In<MemLocation>, pointer: u64) {
        flags.check()?;
        let device = device_at(location.get()?)?;
        let CallResult::Access(access) = call(VirtualMemoryCall::GetAccess { pointer, device })? else {
            return Err(CudaError::Unknown);
        };
        flags.set(u64::from(match access {
            MemoryAccess::None => 0,
            MemoryAccess::Read => ACCESS_READ,
            MemoryAccess::ReadWrite => ACCESS_READ_WRITE,
        }))
    }

    fn cuMemExportToShareableHandle(_shareable: *mut c_void, handle: u64, _kind: u32, flags: u64) {
        check_flags(flags)?;
        call(VirtualMemoryCall::Owner { handle })?;
        Err(CudaError::NotSupported)
    }

    fn cuMemImportFromShareableHandle(_handle: Out<u64>, _shareable: *mut c_void, _kind: u32) {
        description::description()?;
        Err(CudaError::NotSupported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_host_or_for_others_is_refused() {
        let of = |kind, id| MemAllocationProps::pinned(MemLocation { kind, id });
        assert_eq!(device_for(&of(location_type::HOST, 0)), Err(CudaError::NotSupported));
        assert_eq!(device_for(&of(9, 0)), Err(CudaError::InvalidValue));
        assert_eq!(device_for(&MemAllocationProps::default()), Err(CudaError::InvalidValue));
        // Without a simulator there is no device.
        assert_eq!(device_for(&of(location_type::DEVICE, 0)), Err(CudaError::NoDevice));
        assert_eq!([0, 1, 3].map(access), [MemoryAccess::None, MemoryAccess::Read, MemoryAccess::ReadWrite].map(Ok));
        assert_eq!(access(2), Err(CudaError::InvalidValue));
    }
}
