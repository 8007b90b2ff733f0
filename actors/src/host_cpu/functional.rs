//! Copies and fills that are not timed: no copy engine, link or memory sees them. Their writes can be seen at the end of the epoch, and
//! then they are done.

use super::HostCpu;
use crate::engine::Outbox;
use crate::memory::transfer;
use balar_driver::Delivery;
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyId, CopyOperation};
use std::sync::Arc;

/// A copy that has been made.
#[derive(Debug)]
struct MadeCopy {
    /// When it is done.
    at: SimTime,
    id: CopyId,
    /// The bytes that it brings to pageable memory.
    data: Option<Arc<[u8]>>,
    /// Why it was not made.
    error: Option<Box<str>>,
}

/// Copies that have been made, and whose end has not come, in the order in which they end.
#[derive(Debug, Default)]
pub(super) struct MadeCopies(std::collections::VecDeque<MadeCopy>);

impl MadeCopies {
    /// When the next one ends.
    pub fn next(&self) -> Option<SimTime> {
        self.0.front().map(|copy| copy.at)
    }
}

impl HostCpu {
    /// Makes a copy.
    pub(super) fn copy_at_once(&mut self, now: SimTime, id: CopyId, operation: &CopyOperation) {
        let at = self.writer.visible_at(now);
        let error = transfer::problem(&self.memory.view(), operation).map(Box::from);
        let mut data = None;
        if error.is_none() {
            transfer::expect_writes(&self.memory, operation);
            match operation {
                CopyOperation::DeviceToHost { source } => {
                    let mut bytes = balar_host::zeroed(usize::try_from(source.bytes()).unwrap_or(0));
                    if let Some(bytes) = Arc::get_mut(&mut bytes) {
                        transfer::read(&self.memory.view(), source, 0, bytes);
                    }
                    data = Some(bytes);
                }
                operation => transfer::write(&mut self.writer, now, operation, 0, operation.bytes()),
            }
        }
        self.made_copies.0.push_back(MadeCopy { at, id, data, error });
    }

    /// The next copy that has been made is done.
    pub(super) fn made_copy_ends(&mut self, now: SimTime, out: &mut Outbox) {
        if let Some(MadeCopy { id, data, error, .. }) = self.made_copies.0.pop_front() {
            self.copy_completed(now, id, data, error, out);
        }
    }

    /// A copy is done, and the stream that it was in goes on.
    pub(super) fn copy_completed(
        &mut self,
        now: SimTime,
        copy: CopyId,
        data: Option<Arc<[u8]>>,
        error: Option<Box<str>>,
        out: &mut Outbox,
    ) {
        self.activity.copy_ends(now, copy);
        self.spans.copy_ends(now, copy, error.as_deref());
        let brought = self.driver.copy_completed(copy, data, error);
        match (brought, &mut self.host) {
            (Some((Delivery::Thread(thread), data)), _) => self.threads.receive(thread, data),
            (Some((Delivery::Transfer(process, transfer), data)), Some(host)) => {
                host.receive(process, transfer, data);
            }
            _ => {}
        }
        self.work_done(now, out);
    }
}
