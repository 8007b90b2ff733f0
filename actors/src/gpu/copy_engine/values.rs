//! What transfers do to the values of memory: they are written as pages come, and read as pages are done.

use super::CopyEngine;
use super::state::Transfer;
use crate::memory::{DeviceMemory, WriteLog};
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyOperation, Rows};
use std::sync::Arc;

/// Writes of at least so many consecutive bytes are announced to the memory.
const LARGE: u64 = 4 << 20;

impl CopyEngine {
    /// A transfer begins: fills take effect. Returns room for what it brings to the host.
    pub(super) fn begin_values(&mut self, now: SimTime, operation: &CopyOperation) -> Arc<[u8]> {
        if let Some(rows) = operation.destination().filter(|rows| rows.width >= LARGE) {
            for (address, bytes) in rows.runs(0, rows.bytes()) {
                self.device_memory.expect_writes(address, bytes);
            }
        }
        match operation {
            CopyOperation::Fill { destination, value, element_bytes } => {
                for (address, bytes) in destination.runs(0, destination.bytes()) {
                    self.writer.fill(now, address, bytes, *value, *element_bytes);
                }
                Arc::default()
            }
            CopyOperation::DeviceToHost { source } => balar_host::zeroed(source.bytes() as usize),
            CopyOperation::HostToDevice { .. } | CopyOperation::DeviceToDevice { .. } => Arc::default(),
        }
    }

    /// A page of the active transfer of engine `engine` has come over the link: its bytes are written. Where to; `None` where the
    /// transfer is not one whose pages come.
    pub(super) fn write_page(&mut self, engine: usize, now: SimTime, offset: u64, bytes: u32) -> Option<Rows> {
        let transfer = self.state.engines[engine].active.as_ref()?;
        match &transfer.operation {
            CopyOperation::HostToDevice { destination, data } => {
                let mut from = offset as usize;
                for (address, bytes) in destination.runs(offset, u64::from(bytes)) {
                    self.writer.write(now, address, data, from..from + bytes as usize);
                    from += bytes as usize;
                }
                Some(*destination)
            }
            CopyOperation::DeviceToDevice { destination, source } => {
                copy_runs(&mut self.writer, now, destination, source, offset, u64::from(bytes));
                Some(*destination)
            }
            CopyOperation::DeviceToHost { .. } | CopyOperation::Fill { .. } => None,
        }
    }
}

impl Transfer {
    /// Reads a page of what goes to pageable host memory. Where the source was freed since the transfer began, bytes stay zero.
    pub(super) fn read_page(&mut self, memory: &DeviceMemory, source: &Rows, offset: u64, bytes: u32) {
        let view = memory.view();
        if view.allocation_of(source.address).is_none() {
            return;
        }
        // The transfer is its only owner until it ends.
        let Some(data) = Arc::get_mut(&mut self.data) else { return };
        let mut to = offset as usize;
        for (address, bytes) in source.runs(offset, u64::from(bytes)) {
            let bytes = bytes as usize;
            view.bytes(address, bytes).read(0, &mut data[to..to + bytes]);
            to += bytes;
        }
    }
}

/// Logs copies of `bytes` bytes from `offset` of the packed rows on.
pub(super) fn copy_runs(log: &mut WriteLog, now: SimTime, destination: &Rows, source: &Rows, offset: u64, bytes: u64) {
    let (mut at, end) = (offset, offset + bytes);
    while let (Some((to, room)), Some((from, there))) = (destination.run_at(at, end), source.run_at(at, end)) {
        let bytes = room.min(there);
        log.copy(now, to, from, bytes);
        at += bytes;
    }
}
