//! Values of device memory: one flat arena a GPU, written only between windows.

use balar_protocol::{SimTime, UnitId};
use std::sync::Arc;

/// A unit's writes to device memory within one window, and after the window the old values of its atomics.
#[derive(Debug, Default)]
pub struct WriteLog {
    fills: Vec<(SimTime, u64, u64, u8)>,
}

impl WriteLog {
    /// Is there nothing to apply?
    pub fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    /// At `time`, `bytes` from device address `address` become `value`.
    pub fn fill(&mut self, time: SimTime, address: u64, bytes: u64, value: u8) {
        self.fills.push((time, address, bytes, value));
    }

    /// At `time`, `data[range]` is written from device address `address` on.
    pub fn write(&mut self, _time: SimTime, _address: u64, _data: &Arc<[u8]>, _range: std::ops::Range<usize>) {}

    /// At `time`, `bytes` from `source` are copied to `destination`, as they are then.
    pub fn copy(&mut self, _time: SimTime, _destination: u64, _source: u64, _bytes: u64) {}

    /// At `time`, the range becomes an allocation: accesses to it are legal from the next window on.
    pub fn map(&mut self, _time: SimTime, _address: u64, _bytes: u64) {}

    /// At `time`, the allocation at `address` ends.
    pub fn unmap(&mut self, _time: SimTime, _address: u64) {}
}

/// The values of one GPU's device memory. Reads see the state at the start of the window.
#[derive(Debug, Default)]
pub struct DeviceMemory {}

impl DeviceMemory {
    /// First device address an allocation can have.
    pub const BASE: u64 = 0x7000_0000_0000;

    /// Copies `destination.len()` bytes from device address `address`; false where that is not inside an allocation.
    #[must_use]
    pub fn read(&self, _address: u64, _destination: &mut [u8]) -> bool {
        false
    }
}

/// Applies the logs of a window, in the order (time, unit, sequence), each to the memory of its unit's GPU, and leaves the old
/// values of atomics in the logs.
pub fn commit(_memories: &[Arc<DeviceMemory>], _logs: &mut [(UnitId, &mut WriteLog)]) {}
