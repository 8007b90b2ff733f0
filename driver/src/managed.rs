//! Managed memory where a driver of unified memory moves its pages: what that driver is told, and what it is waited for.
//!
//! A process that cannot tell what it accesses itself says so ([`Call::AssumeHostAccesses`]): its allocations are on the host until GPUs
//! ask for them, and again whenever it has waited for a device, a stream or an event.
//!
//! Without one ([`DriverSettings::has_unified_memory`](crate::DriverSettings)) every page is resident wherever it is used: it is told
//! nothing, prefetches are places in the order of their streams, and the program's own accesses wait for nothing.

use crate::calls::{CallOutcome, NOTHING, Outcome, not_modelled};
use crate::effect::Effect;
use crate::order::work::{OperationNumber, Work};
use crate::wait::{Then, Until, Wait};
use crate::{Driver, Failure};
use balar_host::memory::MANAGED_BASE;
use balar_host::{Call, CudaError};
use balar_protocol::managed::{AdviceChange, HostPages, ManagedMessage};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Advice and prefetches are about whole pages of the host's operating system, bytes.
const PAGE: u64 = 4096;

/// What the driver of unified memory was asked, and what it knows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UnifiedMemory {
    next: u32,
    /// By number: what is under way, and for whom.
    under_way: BTreeMap<u32, Asker>,
    /// Copies and fills whose pages are brought first: how many ranges are still to come.
    copies: BTreeMap<OperationNumber, (ContextId, u32)>,
    /// By number: what touches that are over have given.
    touched: BTreeMap<u32, Option<HostPages>>,
    /// By GPU: bytes allocated otherwise, as it was told last.
    reserved: Vec<u64>,
}

/// For whom the driver of unified memory does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Asker {
    /// A call that waits for it.
    Call,
    /// This prefetch, which is over with it.
    Prefetch(OperationNumber),
    /// This copy or fill, which begins when all its pages are there.
    Copy(OperationNumber),
}

impl UnifiedMemory {
    /// A number for what it is asked.
    fn begin(&mut self, asker: Asker) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.under_way.insert(id, asker);
        id
    }

    /// Is it over?
    pub fn is_over(&self, id: u32) -> bool {
        !self.under_way.contains_key(&id)
    }
}

/// A prefetch, as an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prefetch {
    pub address: u64,
    pub bytes: u64,
    /// A GPU, or `None` for the host.
    pub target: Option<u8>,
}

impl Driver {
    /// Tells the driver of unified memory something, where there is one.
    pub(crate) fn tell_unified_memory(&mut self, message: ManagedMessage) {
        if self.has_unified_memory {
            self.want(Effect::Managed(message));
        }
    }

    /// What has changed of the memory that is allocated otherwise: before what is done with it.
    pub(crate) fn tell_reserved(&mut self, into: &mut Vec<Effect>) {
        if !self.has_unified_memory {
            return;
        }
        let told = &mut self.state.unified_memory.reserved;
        told.resize(self.state.memories.len(), 0);
        for (gpu, (memory, told)) in self.state.memories.iter().zip(told).enumerate() {
            let bytes = memory.reserved();
            if std::mem::replace(told, bytes) != bytes {
                into.push(Effect::Managed(ManagedMessage::Reserved { gpu: gpu as u8, bytes }));
            }
        }
    }

    /// Advice, and what the program itself does with managed memory.
    pub(crate) fn managed_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let process = context.process();
        match call {
            Call::Advise { pointer, bytes, advice } => {
                self.check_managed(process, pointer, bytes)?;
                let location = match advice {
                    AdviceChange::PreferredLocation(location) | AdviceChange::AccessedBy(location, _) => location,
                    AdviceChange::ReadMostly(_) | AdviceChange::NoPreferredLocation => None,
                };
                self.check_location(location.map(u32::from))?;
                let (address, bytes) = whole_pages(pointer, bytes);
                self.tell_unified_memory(ManagedMessage::Advise { address, bytes, advice });
                NOTHING
            }
            Call::TouchManaged { pointer, bytes, write } => {
                self.check_managed(process, pointer, bytes)?;
                Ok(self.touch(pointer, bytes, write, Then::Touched))
            }
            Call::AssumeHostAccesses => {
                self.process(process).assumes_host_accesses = true;
                for address in self.state.window.managed_of_process(process) {
                    self.tell_unified_memory(ManagedMessage::AssumeHostAccesses { address, process });
                }
                NOTHING
            }
            Call::WriteManaged { pointer, data } => {
                self.check_managed(process, pointer, data.len())?;
                let bytes = data.data().cloned().unwrap_or_default();
                Ok(self.touch(pointer, data.len(), true, |_| Then::Write(pointer, bytes)))
            }
            Call::ReadManaged { pointer, bytes } => {
                self.check_managed(process, pointer, bytes)?;
                Ok(self.touch(pointer, bytes, false, |_| Then::Read(pointer, bytes)))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// The program's own access; what `then` makes of its number happens when its pages are where the host may access them.
    fn touch(&mut self, address: u64, bytes: u64, write: bool, then: impl FnOnce(Option<u32>) -> Then) -> Outcome {
        if !self.has_unified_memory {
            return Outcome::Waits(Wait { until: Until::Operations(Vec::new()), then: then(None) });
        }
        let id = self.state.unified_memory.begin(Asker::Call);
        self.want(Effect::Managed(ManagedMessage::Touch { address, bytes, write, id }));
        Outcome::Waits(Wait { until: Until::Managed(id), then: then(Some(id)) })
    }

    /// The pages that a touch has given, once: `None` where nobody was asked for them.
    pub fn take_touched(&mut self, touch: Option<u32>) -> Option<Option<HostPages>> {
        self.state.unified_memory.touched.remove(&touch?)
    }

    /// A managed allocation begins.
    pub(crate) fn tell_managed(&mut self, process: ProcessId, address: u64, bytes: u64) {
        self.tell_unified_memory(ManagedMessage::Allocate { address, bytes });
        if self.process(process).assumes_host_accesses {
            self.tell_unified_memory(ManagedMessage::AssumeHostAccesses { address, process });
        }
    }

    /// What a prefetch does in its stream: nothing where pages do not move.
    pub(crate) fn prefetch(
        &self,
        context: ContextId,
        pointer: u64,
        bytes: u64,
        target: Option<u32>,
    ) -> Result<Work, Failure> {
        self.check_location(target)?;
        self.check_managed(context.process(), pointer, bytes)?;
        if !self.has_unified_memory {
            return Ok(Work::Nothing);
        }
        let (address, bytes) = whole_pages(pointer, bytes);
        // There are fewer GPUs than a byte counts.
        Ok(Work::Prefetch(Prefetch { address, bytes, target: target.map(|gpu| gpu as u8) }))
    }

    /// Gives a prefetch to the driver of unified memory.
    pub(crate) fn begin_prefetch(&mut self, number: OperationNumber, prefetch: Prefetch) {
        let Prefetch { address, bytes, target } = prefetch;
        let id = self.state.unified_memory.begin(Asker::Prefetch(number));
        self.want(Effect::Managed(ManagedMessage::Prefetch { address, bytes, target, id }));
    }

    /// Brings the pages of a copy's or fill's managed ends to the GPU whose engine does it. Is there any such end? Then the copy begins
    /// when they are there.
    pub(crate) fn bring_for_copy(&mut self, number: OperationNumber, context: ContextId) -> bool {
        if !self.has_unified_memory {
            return false;
        }
        let Some((_, Work::Copy(copy))) = self.state.operations.under_way(number) else { return false };
        let ends = copy.operation.destination().into_iter().chain(copy.operation.source());
        let managed = ends.filter(|rows| rows.address >= MANAGED_BASE);
        let ranges: Vec<(u64, u64)> = managed.filter_map(|rows| Some((rows.address, rows.span()?))).collect();
        // There are fewer GPUs than a byte counts.
        let target = Some(copy.device as u8);
        let mut count = 0;
        for (address, bytes) in ranges.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let (address, bytes) = whole_pages(address, bytes);
            let id = self.state.unified_memory.begin(Asker::Copy(number));
            self.want(Effect::Managed(ManagedMessage::Prefetch { address, bytes, target, id }));
            count += 1;
        }
        if count > 0 {
            self.state.unified_memory.copies.insert(number, (context, count));
        }
        count > 0
    }

    /// What happens when the program has waited for a device: the driver of unified memory is waited for as well, where there is one and
    /// the process has managed memory.
    pub(crate) fn after_synchronisation(&self, process: ProcessId) -> Then {
        if self.has_unified_memory && self.state.window.has_managed(process) {
            Then::Synchronise
        } else {
            Then::Nothing
        }
    }

    /// The same of a stream or an event: pages come back then only to a process that does not tell of its accesses.
    pub(crate) fn after_wait(&mut self, process: ProcessId) -> Then {
        if self.process(process).assumes_host_accesses { self.after_synchronisation(process) } else { Then::Nothing }
    }

    /// The program has waited for all that its device does.
    pub(crate) fn synchronise_managed(&mut self, process: ProcessId) -> Outcome {
        let id = self.state.unified_memory.begin(Asker::Call);
        self.want(Effect::Managed(ManagedMessage::Synchronise { id, process }));
        Outcome::Waits(Wait { until: Until::Managed(id), then: Then::Nothing })
    }

    /// The driver of unified memory is done with what it was asked under this number.
    pub fn managed_done(&mut self, id: u32) {
        match self.state.unified_memory.under_way.remove(&id) {
            Some(Asker::Prefetch(operation)) => {
                self.state.operations.complete(operation);
            }
            Some(Asker::Copy(operation)) => {
                let copies = &mut self.state.unified_memory.copies;
                let Some((context, left)) = copies.get_mut(&operation) else { return };
                *left -= 1;
                if *left == 0 {
                    let context = *context;
                    copies.remove(&operation);
                    self.begin_copy(operation, context);
                }
            }
            Some(Asker::Call) | None => {}
        }
    }

    /// The same of a touch, which gives pages.
    pub fn managed_touched(&mut self, id: u32, pages: Option<HostPages>) {
        self.state.unified_memory.touched.insert(id, pages);
        self.managed_done(id);
    }

    /// Refuses what is not wholly in one managed allocation of the process.
    fn check_managed(&self, process: ProcessId, pointer: u64, bytes: u64) -> Result<(), Failure> {
        if bytes > 0 && pointer >= MANAGED_BASE && self.state.window.contains(process, pointer, bytes) {
            return Ok(());
        }
        Err((CudaError::InvalidValue, format!("{bytes} bytes at {pointer:#x} are not managed memory")))
    }

    /// Refuses a GPU that there is not; the host is always there.
    fn check_location(&self, gpu: Option<u32>) -> Result<(), Failure> {
        match gpu.filter(|gpu| *gpu as usize >= self.gpus.len()) {
            Some(gpu) => Err((CudaError::InvalidDevice, format!("there is no device {gpu}"))),
            None => Ok(()),
        }
    }
}

/// The pages that hold a range: their first address, and their bytes.
fn whole_pages(address: u64, bytes: u64) -> (u64, u64) {
    let first = address & !(PAGE - 1);
    (first, (address + bytes).next_multiple_of(PAGE) - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rounded_out_to_pages() {
        let expected =
            [((0, 1), (0, 4096)), ((4095, 2), (0, 8192)), ((4096, 4096), (4096, 4096)), ((8191, 1), (4096, 4096))];
        for ((address, bytes), pages) in expected {
            assert_eq!(whole_pages(address, bytes), pages, "{bytes} bytes at {address}");
        }
    }
}
