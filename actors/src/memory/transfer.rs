//! The effect of transfers on the values of memory, for every unit that makes them.

use super::{DeviceMemory, DeviceMemoryView, WriteLog};
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyOperation, Rows};

/// Writes of at least so many consecutive bytes are announced to the memory.
const LARGE: u64 = 4 << 20;

/// Why a transfer cannot be done.
pub fn problem(view: &DeviceMemoryView, operation: &CopyOperation) -> Option<String> {
    let (destination, source) = (operation.destination(), operation.source());
    let bytes = operation.bytes();
    if [destination, source].into_iter().flatten().any(|rows| rows.bytes() != bytes) {
        return Some(format!("{bytes} bytes to or from rows of another size"));
    }
    let inside = |rows: &Rows| rows.span().is_some_and(|span| view.is_allocated(rows.address, span));
    let outside = [destination, source].into_iter().flatten().find(|rows| bytes > 0 && !inside(rows))?;
    let span = outside.span().unwrap_or(u64::MAX);
    Some(format!("{span} bytes at {:#x} are not inside one allocation", outside.address))
}

/// Tells the memory which bytes will be written, where these are many.
pub fn expect_writes(memory: &DeviceMemory, operation: &CopyOperation) {
    if let Some(rows) = operation.destination().filter(|rows| rows.width >= LARGE) {
        for (address, bytes) in rows.runs(0, rows.bytes()) {
            memory.expect_writes(address, bytes);
        }
    }
}

/// Logs `bytes` bytes of a transfer that writes memory of the node, from `offset` of the packed rows on.
pub fn write(log: &mut WriteLog, now: SimTime, operation: &CopyOperation, offset: u64, bytes: u64) {
    match operation {
        CopyOperation::HostToDevice { destination, data } => {
            let mut from = offset as usize;
            for (address, bytes) in destination.runs(offset, bytes) {
                log.write(now, address, data, from..from + bytes as usize);
                from += bytes as usize;
            }
        }
        CopyOperation::DeviceToDevice { destination, source } => {
            let (mut at, end) = (offset, offset + bytes);
            while let (Some((to, room)), Some((from, there))) = (destination.run_at(at, end), source.run_at(at, end)) {
                let bytes = room.min(there);
                log.copy(now, to, from, bytes);
                at += bytes;
            }
        }
        CopyOperation::Fill { destination, value, element_bytes } => {
            for (address, bytes) in destination.runs(offset, bytes) {
                log.fill(now, address, bytes, *value, *element_bytes);
            }
        }
        CopyOperation::DeviceToHost { .. } => {}
    }
}

/// Reads bytes from `offset` of the packed rows on, as many as there is room for.
pub fn read(view: &DeviceMemoryView, source: &Rows, offset: u64, into: &mut [u8]) {
    let mut to = 0;
    for (address, bytes) in source.runs(offset, into.len() as u64) {
        let bytes = bytes as usize;
        view.read(address, &mut into[to..to + bytes]);
        to += bytes;
    }
}
