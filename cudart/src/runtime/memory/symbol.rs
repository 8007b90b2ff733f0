//! Variables of device code.

use super::copy::{self, Direction};
use crate::abi::arguments::Out;
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::code;
use crate::session::code::registry::{self, HostVariable};
use balar_host::call::ModuleVariable;
use balar_host::{CudaError, memory};
use std::ffi::c_int;

/// The variable that the program knows by this address of the host.
fn variable(symbol: usize) -> Result<ModuleVariable, CudaError> {
    // The host knows a managed variable by the address that devices have for it too.
    if memory::place_of(symbol as u64) == memory::Place::HostWindow {
        return code::managed_variable(symbol as u64).ok_or(CudaError::InvalidSymbol);
    }
    let variable = registry::variable(symbol)?;
    if !matches!(variable.kind, HostVariable::Memory(_)) {
        return Err(CudaError::InvalidSymbol);
    }
    variable.loaded()
}

/// The address of `bytes` bytes within a variable.
pub fn address(symbol: usize, offset: usize, bytes: usize) -> Result<u64, CudaError> {
    let variable = variable(symbol)?;
    let end = (offset as u64).checked_add(bytes as u64).ok_or(CudaError::InvalidValue)?;
    if end > variable.bytes {
        return Err(CudaError::InvalidValue);
    }
    Ok(variable.address + offset as u64)
}

/// Refuses directions that do not lead to a device, or from one.
fn check(direction: Direction, expected: Direction) -> Result<Direction, CudaError> {
    match direction {
        Direction::Default | Direction::DeviceToDevice => Ok(direction),
        direction if direction == expected => Ok(direction),
        _ => Err(CudaError::InvalidMemcpyDirection),
    }
}

fn to_symbol(
    (symbol, offset): (usize, usize),
    source: u64,
    bytes: usize,
    kind: c_int,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    let direction = check(Direction::of_code(kind)?, Direction::HostToDevice)?;
    copy::copy(address(symbol, offset, bytes)?, source, bytes, direction, stream, asynchronous)
}

fn from_symbol(
    destination: u64,
    (symbol, offset): (usize, usize),
    bytes: usize,
    kind: c_int,
    stream: StreamHandle,
    asynchronous: bool,
) -> Result<(), CudaError> {
    let direction = check(Direction::of_code(kind)?, Direction::DeviceToHost)?;
    copy::copy(destination, address(symbol, offset, bytes)?, bytes, direction, stream, asynchronous)
}

runtime_api! {
    fn cudaGetSymbolAddress(pointer: Out<u64>, symbol: usize) {
        pointer.check()?;
        pointer.set(variable(symbol)?.address)
    }

    fn cudaGetSymbolSize(bytes: Out<usize>, symbol: usize) {
        bytes.check()?;
        bytes.set(variable(symbol)?.bytes as usize)
    }

    stream fn cudaMemcpyToSymbol(symbol: usize, source: u64, bytes: usize, offset: usize, kind: c_int) {
        to_symbol((symbol, offset), source, bytes, kind, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpyToSymbolAsync(
        symbol: usize,
        source: u64,
        bytes: usize,
        offset: usize,
        kind: c_int,
        stream: StreamHandle,
    ) {
        to_symbol((symbol, offset), source, bytes, kind, stream, true)
    }

    stream fn cudaMemcpyFromSymbol(destination: u64, symbol: usize, bytes: usize, offset: usize, kind: c_int) {
        from_symbol(destination, (symbol, offset), bytes, kind, StreamHandle::DEFAULT, false)
    }

    stream fn cudaMemcpyFromSymbolAsync(
        destination: u64,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_int,
        stream: StreamHandle,
    ) {
        from_symbol(destination, (symbol, offset), bytes, kind, stream, true)
    }
}
