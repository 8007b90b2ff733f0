//! Copies of memory.

use crate::core::operation::{self, Copy, End, Operation};
use crate::core::ranges::{self, Place};
use crate::core::stream::StreamHandle;
use crate::cuda_api;
use balar_host::CudaError;
use balar_host::call::CopyShape;
use std::ffi::c_int;

/// What the program says a copy is (`cudaMemcpyKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Within the host's memory.
    HostToHost,
    /// To a device.
    HostToDevice,
    /// From a device.
    DeviceToHost,
    /// Within or between devices.
    DeviceToDevice,
    /// As the addresses say.
    Default,
}

impl Direction {
    /// The direction with C's number.
    pub fn of_code(code: c_int) -> Result<Direction, CudaError> {
        match code {
            0 => Ok(Direction::HostToHost),
            1 => Ok(Direction::HostToDevice),
            2 => Ok(Direction::DeviceToHost),
            3 => Ok(Direction::DeviceToDevice),
            4 => Ok(Direction::Default),
            _ => Err(CudaError::InvalidMemcpyDirection),
        }
    }

    /// Refuses addresses that are not where the direction says: memory of devices where the host's is expected, and the other way
    /// around. Pinned and managed memory can be either.
    pub fn check(self, destination: u64, source: u64) -> Result<(), CudaError> {
        let (to_host, from_host) = match self {
            Direction::HostToHost => (Some(true), Some(true)),
            Direction::HostToDevice => (Some(false), Some(true)),
            Direction::DeviceToHost => (Some(true), Some(false)),
            Direction::DeviceToDevice => (Some(false), Some(false)),
            Direction::Default => (None, None),
        };
        let fits = |address: u64, host: Option<bool>| match (ranges::place(address, 1), host) {
            (Place::Device(_), Some(host)) => !host,
            (Place::Pageable, Some(host)) => host,
            _ => true,
        };
        if address_is_valid(destination)
            && address_is_valid(source)
            && fits(destination, to_host)
            && fits(source, from_host)
        {
            Ok(())
        } else {
            Err(CudaError::InvalidValue)
        }
    }
}

fn address_is_valid(address: u64) -> bool {
    address != 0
}

/// Whether a copy that the program need not wait for returns before it is over: CUDA does not wait for copies within devices.
fn within_devices(destination: u64, source: u64) -> bool {
    let is_device = |address| matches!(ranges::place(address, 1), Place::Device(_));
    is_device(destination) && is_device(source)
}

/// Copies `bytes` bytes.
pub fn copy(
    destination: u64,
    source: u64,
    bytes: usize,
    direction: Direction,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    if bytes == 0 {
        return Ok(());
    }
    direction.check(destination, source)?;
    let bytes = bytes as u64;
    let copy = Copy {
        destination: End::linear(destination, bytes),
        source: End::linear(source, bytes),
        shape: CopyShape::linear(bytes),
    };
    let asynchronous = asynchronous || within_devices(destination, source);
    operation::enqueue(stream, Operation::Copy(copy), asynchronous).map(|_| ())
}

cuda_api! {
    stream fn cudaMemcpy(destination: u64, source: u64, bytes: usize, kind: c_int) {
        copy(destination, source, bytes, Direction::of_code(kind)?, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpyAsync(destination: u64, source: u64, bytes: usize, kind: c_int, stream: StreamHandle) {
        copy(destination, source, bytes, Direction::of_code(kind)?, stream, true)
    }
}
