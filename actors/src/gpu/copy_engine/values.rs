//! The effect of transfers on the values of memory: they are written as pages come, and read as pages are done.

use super::CopyEngine;
use super::state::Transfer;
use crate::memory::{DeviceMemory, transfer};
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyOperation, Rows};
use std::sync::Arc;

impl CopyEngine {
    /// A transfer begins: fills take effect. Returns room for the bytes that it brings to the host.
    pub(super) fn begin_values(&mut self, now: SimTime, operation: &CopyOperation) -> Arc<[u8]> {
        transfer::expect_writes(&self.device_memory, operation);
        match operation {
            CopyOperation::Fill { .. } => {
                transfer::write(&mut self.writer, now, operation, 0, operation.bytes());
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
            operation @ (CopyOperation::HostToDevice { destination, .. }
            | CopyOperation::DeviceToDevice { destination, .. }) => {
                transfer::write(&mut self.writer, now, operation, offset, u64::from(bytes));
                Some(*destination)
            }
            CopyOperation::DeviceToHost { .. } | CopyOperation::Fill { .. } => None,
        }
    }
}

impl Transfer {
    /// Reads a page of a transfer to pageable host memory. Where the source was freed since the transfer began, bytes stay zero.
    pub(super) fn read_page(&mut self, memory: &DeviceMemory, source: &Rows, offset: u64, bytes: u32) {
        let view = memory.view();
        if view.allocation_of(source.address).is_none() {
            return;
        }
        // The transfer is its only owner until it ends.
        let Some(data) = Arc::get_mut(&mut self.data) else { return };
        transfer::read(&view, source, offset, &mut data[offset as usize..][..bytes as usize]);
    }
}
